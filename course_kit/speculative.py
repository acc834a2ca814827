"""Speculative sampling: a small model drafts several tokens, and the large one checks all of them in one call.

The models are functions, as in `course_lib.decoding`. The draft model is called once per token. The target model is
called once per draft, and returns a distribution for every drafted position.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from course_kit._checks import check_callable, check_finite, check_instance, check_whole, got
from course_lib.efficiency import speculative_acceptance

__all__ = ["SpeculativeSample", "expected_tokens_per_step", "speculative_sample"]


@dataclass(frozen=True)
class SpeculativeSample:
    """A sequence and the work that it took.

    Args:
        tokens: generated ids, without bos and eos.
        finished: whether eos was drawn; otherwise the sequence was cut at max_length.
        target_calls: calls of the target model.
        drafted: tokens that the draft model proposed.
        compared: proposed tokens that were accepted or rejected; those after a rejection are dropped unread.
        accepted: proposed tokens that were kept; `accepted / compared` estimates the acceptance rate.
    """

    tokens: list[int]
    finished: bool
    target_calls: int
    drafted: int
    compared: int
    accepted: int

    @property
    def generated(self) -> int:
        """Tokens written, eos included."""
        return len(self.tokens) + self.finished


def speculative_sample(
    target_log_probs: Callable[[list[int], int], Tensor],
    draft_log_probs: Callable[[list[int]], Tensor],
    bos_id: int,
    eos_id: int,
    max_length: int,
    num_draft: int,
    *,
    temperature: float = 1.0,
    generator: torch.Generator | None = None,
) -> SpeculativeSample:
    """Draw a sequence from the target model, with fewer calls of it than tokens.

    Each step drafts up to num_draft tokens, and the target model scores all of them in one call. They are compared in
    order: a token x is kept with probability `min(1, target(x) / draft(x))`. The first one that is not kept is replaced
    by a draw from `max(target − draft, 0)`, normalised, and the rest is dropped. If all are kept, one more token is
    drawn from the target. The sequence has the same distribution as if every token were drawn from the target.

    Args:
        target_log_probs: function of the ids so far, bos first, and a number n. It returns `(n, V)`: log-probabilities
            of the token after each of the last n ids. The ids before those have been scored by earlier calls.
        draft_log_probs: function from the ids so far to log-probabilities `(V,)` of the next one, as in
            `greedy_decode`.
        bos_id: the token with which every sequence begins.
        eos_id: the token that ends it; it is never passed to a model.
        max_length: largest number of generated tokens, eos included.
        num_draft: tokens drafted per step; with 0 every token is drawn from the target.
        temperature: both models are sampled from softmax(log-probabilities / temperature); towards 0 the result is
            that of `greedy_decode` with the target.
        generator: where the random numbers come from, on the CPU; PyTorch's own if not given.

    Returns:
        The sequence and its statistics.

    Raises:
        TypeError: a model cannot be called, an id or a number is not a whole number, temperature is not a number, or
            generator is of another type.
        ValueError: max_length or num_draft is negative, temperature is not above 0, or a model does not return
            log-probabilities of the expected shape.

    Source: Leviathan et al. (2023), algorithm 1; Chen et al. (2023), algorithm 2.
    """
    _check(target_log_probs, draft_log_probs, bos_id, eos_id, max_length, num_draft, temperature, generator)
    tokens, calls, drafted, compared, accepted = [bos_id], 0, 0, 0, 0
    finished = False
    while len(tokens) <= max_length and not finished:
        most = min(num_draft, max_length - len(tokens))  # one place is left for the target's own token
        drafts, guesses = _draft(draft_log_probs, tokens, most, eos_id, temperature, generator)
        ends = drafts[-1:] == [eos_id]
        read = tokens + (drafts[:-1] if ends else drafts)  # nothing follows eos
        answer = target_log_probs(list(read), len(read) - len(tokens) + 1)
        shape = (len(read) - len(tokens) + 1, guesses[0].shape[-1] if guesses else None)
        target = _distributions("target_log_probs", answer, shape, temperature)  # (n, V)
        calls, drafted = calls + 1, drafted + len(drafts)
        for token, wanted, guess in zip(drafts, target, guesses, strict=False):
            accept, residual = speculative_acceptance(wanted, guess)  # (V,) each
            compared += 1
            if _drawn(torch.stack((1 - accept[token], accept[token])), generator):
                tokens.append(token)
                accepted += 1
            else:
                tokens.append(_drawn(residual, generator))
                break
        else:
            if not ends:
                tokens.append(_drawn(target[-1], generator))
        finished = tokens[-1] == eos_id
    return SpeculativeSample(tokens[1 : len(tokens) - finished], finished, calls, drafted, compared, accepted)


def expected_tokens_per_step(alpha: float, num_draft: int) -> float:
    """How many tokens one call of the target model gives, if each drafted token is accepted with probability α.

    `1 + α + … + α^γ = (1 − α^(γ+1)) / (1 − α)` with γ = num_draft: the i-th drafted token is kept if it and all before
    it are accepted, and one more token always comes from the target. The acceptances must be independent and equally
    probable, and no sequence ends early.

    Args:
        alpha: acceptance rate, 0 to 1.
        num_draft: tokens drafted per step, 0 or more.

    Raises:
        TypeError: alpha is not a number, or num_draft not a whole number.
        ValueError: alpha is not between 0 and 1, or num_draft is negative.

    Source: Leviathan et al. (2023), equation 1.
    """
    check_finite("alpha", alpha, 0, 1)
    check_whole(num_draft=num_draft, least=0)
    if alpha in (0, 1):
        return 1.0 + alpha * num_draft
    return -math.expm1((num_draft + 1) * math.log(alpha)) / (1 - alpha)  # accurate for α close to 1, too


def _draft(
    log_probs: Callable[[list[int]], Tensor],
    tokens: list[int],
    most: int,
    eos_id: int,
    temperature: float,
    generator: torch.Generator | None,
) -> tuple[list[int], list[Tensor]]:
    """Up to `most` drafted tokens, none after eos, and the distributions that they were drawn from."""
    drafts: list[int] = []
    guesses: list[Tensor] = []
    while len(drafts) < most and drafts[-1:] != [eos_id]:
        answer = log_probs([*tokens, *drafts])
        guesses.append(_distributions("draft_log_probs", answer, (None,), temperature))
        drafts.append(_drawn(guesses[-1], generator))
    return drafts, guesses


def _drawn(probabilities: Tensor, generator: torch.Generator | None) -> int:
    """An index, drawn with its probability. One uniform number per draw: the same on every processor."""
    cumulative = probabilities.cumsum(-1)  # (V,)
    level = torch.rand((), dtype=torch.float64, generator=generator) * cumulative[-1]
    return int(torch.searchsorted(cumulative, level, right=True))  # a token of probability 0 is never drawn


def _distributions(name: str, log_probs: Tensor, shape: tuple, temperature: float) -> Tensor:
    """What a model returned, as probabilities in double precision on the CPU; None in `shape` admits any size."""
    fits = isinstance(log_probs, Tensor) and log_probs.dim() == len(shape) and log_probs.shape[-1]
    if not fits or any(want not in (None, size) for want, size in zip(shape, log_probs.shape, strict=True)):
        wanted = ", ".join("V" if want is None else str(want) for want in shape)
        raise ValueError(
            f"{name} must return log-probabilities ({wanted}{',' * (len(shape) == 1)}), got {got(log_probs)}; return "
            f"one row per position, over the vocabulary that both models share"
        )
    log_probs = log_probs.detach().cpu().double()
    largest = log_probs.amax(-1, keepdim=True)
    if not largest.isfinite().all():  # NaN or +inf, or −inf in the whole row
        raise ValueError(
            f"{name} must return log-probabilities without NaN, at least one of them finite, got a row whose largest "
            f"is {largest[~largest.isfinite()][0].item()}; look for NaN in the model's weights"
        )
    # The largest is 0 before the division, so a low temperature gives 0 and −inf, but no NaN.
    return torch.softmax((log_probs - largest) / temperature, dim=-1)


def _check(target, draft, bos_id, eos_id, max_length, num_draft, temperature, generator) -> None:
    check_callable(target_log_probs=target, draft_log_probs=draft)
    check_whole(bos_id=bos_id, eos_id=eos_id, least=-math.inf)  # bos may lie outside the vocabulary
    check_whole(max_length=max_length, num_draft=num_draft, least=0)
    check_finite("temperature", temperature)
    if temperature <= 0:
        raise ValueError(f"temperature must be above 0, got {temperature}; for greedy decoding pass a small one")
    if generator is not None:
        check_instance(torch.Generator, generator=generator)
