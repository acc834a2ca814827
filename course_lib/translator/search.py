"""Writing with a trained `Transformer`, a batch of sources at once: greedily, with a beam, by drawing.

`course_lib.decoding` has the same ideas in a few lines each, for one sentence; this is the code to work with. It keeps
keys and values (`Transformer.step`), and leaves out the sentences that are done. `use_cache=False` computes everything
again at every step with `Transformer.decode`: slower, and the reference for the tests.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from numbers import Integral

import torch
from torch import Tensor, nn

from course_lib._checks import check_floats, check_instance, check_number, check_whole
from course_lib._typing import Float, Int
from course_lib.decoding import check_length_penalty
from course_lib.models import Transformer, TransformerConfig

__all__ = ["Hypotheses", "beam", "greedy", "next_token_distribution", "sample"]


MOST_TOKENS = 1_000_000  # of a hypothesis; room for all of them is made at once


@dataclass(frozen=True)
class Hypotheses:
    """What was written for each source: lists over sources of lists over hypotheses, the best first.

    Attributes:
        tokens: ids, without those that begin and end a sentence.
        log_probs: sum of the model's log-probabilities of the tokens, that of the end included.
        scores: what the hypotheses are ranked by, log_prob / n^length_penalty, n = tokens with the end.
        finished: whether the model ended the sentence; otherwise it was cut at max_length.
    """

    tokens: list[list[list[int]]]
    log_probs: list[list[float]]
    scores: list[list[float]]
    finished: list[list[bool]]


def greedy(
    model: Transformer,
    source: Int[Tensor, "batch len_source"],
    *,
    bos_id: int,
    eos_id: int,
    max_length: int | Sequence[int] | Tensor,
    use_cache: bool = True,
) -> Hypotheses:
    """Take the most probable token at each step, of equal ones the one with the smallest id.

    Args:
        model: an encoder–decoder; it runs in eval mode and without gradients, and is given back as it was.
        source: ids `(B, L_source)`, padded with `model.config.pad_id`.
        bos_id: the token that begins a sentence; neither it nor padding is ever written.
        eos_id: the token that ends one.
        max_length: how many tokens are written at most, the end counted: one number, or one for each source.
        use_cache: False recomputes all positions at each step; the result is the same up to rounding.

    Returns:
        One hypothesis for each source. It does not depend on the other sources in the batch, up to rounding.

    Raises:
        TypeError: the model is no `Transformer`, or has a `decode` of its own and is to use a cache.
        ValueError: ids that are not tokens or not different, a source without a token, a max_length that is less than 1
            or more than learned positions reach, or logits that are no numbers.
    """
    return _one_by_one(model, source, bos_id, eos_id, max_length, use_cache, choose=_first_of_the_largest)


def sample(
    model: Transformer,
    source: Int[Tensor, "batch len_source"],
    *,
    bos_id: int,
    eos_id: int,
    max_length: int | Sequence[int] | Tensor,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
    generator: torch.Generator | None = None,
    num_samples: int = 1,
    use_cache: bool = True,
) -> Hypotheses:
    """Draw each token from `next_token_distribution`.

    The other arguments and errors are those of `greedy`.

    Args:
        model: an encoder–decoder.
        source: ids `(B, L_source)`.
        bos_id: begins a sentence.
        eos_id: ends one.
        max_length: of each hypothesis.
        temperature: above 1 draws more evenly, below 1 more greedily.
        top_k: draw among so many most probable tokens only.
        top_p: draw among the smallest set of most probable tokens whose probability reaches this only.
        generator: where the random numbers come from, on the device of the model; PyTorch's own if not given. The same
            seed gives the same sentences for the same batch.
        num_samples: hypotheses for each source, independent of each other.
        use_cache: as in `greedy`.

    Returns:
        `num_samples` hypotheses for each source, in the order in which they were drawn. Log-probabilities are the
        model's, before temperature and cuts, so that they can be compared with those of the other functions.

    Raises:
        ValueError: also temperature, top_k, top_p or num_samples out of range.
    """
    _check_cuts(temperature, top_k, top_p)
    check_whole(num_samples=num_samples)

    def choose(logits: Tensor) -> Tensor:
        probabilities = next_token_distribution(logits, temperature=temperature, top_k=top_k, top_p=top_p)
        return torch.multinomial(probabilities, 1, generator=generator)[:, 0]

    return _one_by_one(model, source, bos_id, eos_id, max_length, use_cache, choose=choose, copies=num_samples)


def beam(
    model: Transformer,
    source: Int[Tensor, "batch len_source"],
    *,
    bos_id: int,
    eos_id: int,
    beam_size: int,
    max_length: int | Sequence[int] | Tensor,
    length_penalty: float = 0.0,
    num_best: int = 1,
    use_cache: bool = True,
) -> Hypotheses:
    """Keep the `beam_size` best beginnings at each step.

    Every open hypothesis is extended by every token, and of all these candidates those with the highest sum of
    log-probabilities survive. Survivors that end are finished, with score = sum / n^length_penalty, n counting the end;
    the others stay open. One that is open after max_length tokens competes as it is. A sentence stops earlier when
    no open hypothesis can come to a better score than those that are finished: sums only fall.

    Of equal sums the one that continues the better hypothesis comes first, then the more probable last token, then the
    smaller id. Of equal scores the one that was finished first.

    Args:
        model: an encoder–decoder, as in `greedy`.
        source: ids `(B, L_source)`.
        bos_id: begins a sentence.
        eos_id: ends one.
        beam_size: 1 is `greedy`.
        max_length: as in `greedy`.
        length_penalty: 0 compares sums, which favours short hypotheses; 1 compares means; more favours long ones.
        num_best: how many hypotheses to return for each source.
        use_cache: as in `greedy`.

    Returns:
        The `num_best` hypotheses of the highest scores for each source, or all where there are fewer.

    Raises:
        ValueError: also beam_size or num_best less than 1, num_best more than beam_size, a length_penalty that is not
            between −10 and 10.
    """
    check_whole(beam_size=beam_size, num_best=num_best)
    if num_best > beam_size:
        raise ValueError(
            f"num_best must be at most beam_size, got num_best = {num_best} for beam_size = {beam_size}; a beam that "
            f"keeps {beam_size} has no more hypotheses: raise beam_size, or ask for fewer"
        )
    check_length_penalty(length_penalty)
    with _evaluating(model):
        source, limits = _checked(model, source, bos_id, eos_id, max_length)
        found: list[list[_Hypothesis]] = [[] for _ in limits]
        if not limits:
            return _hypotheses([], eos_id)
        state = (_Cached if use_cache else _Uncached)(model, source)
        rows = list(range(len(limits)))  # which source each row of the batch belongs to
        tokens = source.new_full((len(rows), 1), bos_id)  # (R, W): W hypotheses of each, the best first
        written = tokens[..., None][..., :0]  # (R, W, n), what they have written
        sums = torch.zeros(tokens.shape, device=source.device)  # (R, W), -inf for one that is not open
        parents = None  # (R, W), the hypothesis of the last step that each continues
        for n in range(1, max(limits) + 1):
            log_probs = state.step(tokens, parents).log_softmax(-1)  # (R, W, V)
            log_probs[..., state.pad_id] = log_probs[..., bos_id] = -math.inf
            # The best of all candidates are among the best of each hypothesis.
            best, token = _top(log_probs, beam_size)  # (R, W, beam_size or V)
            sums, place = _top((sums[..., None] + best).flatten(1), beam_size)  # (R, W), a new W
            parents, tokens = place // best.shape[-1], token.flatten(1).gather(1, place)  # (R, W)
            written = torch.cat((_of(parents, written), tokens[..., None]), dim=-1)  # (R, W, n)

            at_limit = torch.tensor([limits[row] == n for row in rows], device=source.device)
            closed = ((tokens == eos_id) | at_limit[:, None]) & (sums > -math.inf)
            for (r, _), text, total in zip(
                closed.nonzero().tolist(), written[closed].tolist(), sums[closed].tolist(), strict=True
            ):
                found[rows[r]].append(_Hypothesis(text, total, total / n**length_penalty))
            sums = sums.masked_fill(closed, -math.inf)

            hopes = sums.amax(1).tolist()
            if any(math.isnan(hope) for hope in hopes):
                raise ValueError(_NOT_A_NUMBER)
            # A sum only falls, and is divided by most at the limit; with a negative penalty, at the next step.
            lengths = [limits[row] if length_penalty >= 0 else n + 1 for row in rows]
            undecided = [
                r
                for r, row in enumerate(rows)
                if hopes[r] > -math.inf and _can_win(found[row], num_best, hopes[r] / lengths[r] ** length_penalty)
            ]
            if not undecided:
                break
            if _worth_dropping(len(rows) - len(undecided), len(rows)):
                keep = torch.tensor(undecided, device=source.device)
                rows = [rows[r] for r in undecided]
                state.select(keep)
                tokens, written, sums, parents = (x.index_select(0, keep) for x in (tokens, written, sums, parents))
    # Sorting is stable: of equal scores the one found first stays first.
    return _hypotheses([sorted(each, key=lambda h: -h.score)[:num_best] for each in found], eos_id)


def next_token_distribution(
    logits: Float[Tensor, "*batch vocab"],
    *,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
) -> Float[Tensor, "*batch vocab"]:
    """Probabilities to draw the next token from: softmax(logits / temperature), of the most probable tokens only.

    top_k keeps the k most probable tokens. top_p keeps, of what is left and with probabilities that sum to one again,
    the smallest set of most probable tokens whose probability reaches p: at least one. Of equally probable tokens the
    one with the smaller id counts as more probable.

    Args:
        logits: `(..., V)`; -inf for a token that is not to come.
        temperature: above 0; 1 leaves the distribution as it is, towards 0 it becomes the greedy choice.
        top_k: at least 1; None for no cut.
        top_p: in (0, 1]; None or 1 for no cut.

    Returns:
        `(..., V)`, each row sums to one; float32 for logits of less precision.

    Raises:
        ValueError: temperature, top_k or top_p out of range; a row without a token that may come, or with NaN (on a
            CPU; on a GPU the row becomes NaN).

    Source: top-k: Fan, Lewis & Dauphin (2018), section 5.2; top-p: Holtzman et al. (2020), section 3.1.
    """
    _check_cuts(temperature, top_k, top_p)
    check_floats(logits=logits, axes=1)
    if not logits.shape[-1]:
        raise ValueError(f"logits must be (..., V) of at least one token, got {tuple(logits.shape)}")
    logits = logits.to(torch.promote_types(logits.dtype, torch.float32))
    largest = logits.amax(-1, keepdim=True)
    if largest.device.type == "cpu" and not largest.isfinite().all():
        raise ValueError(
            f"each row of logits must have a finite largest entry, got {largest[~largest.isfinite()][0].item()}"
        )
    # The largest is 0 before the division, so that a low temperature gives 0 and -inf, and no NaN.
    probabilities = ((logits - largest) / temperature).softmax(-1)  # (..., V)
    if (top_k is None or top_k >= logits.shape[-1]) and (top_p is None or top_p == 1.0):
        return probabilities
    # Sorted by logits: two tokens may differ in these and have the same probability, 0, at a low temperature.
    order = logits.argsort(dim=-1, descending=True, stable=True)
    ordered = probabilities.gather(-1, order)
    if top_k is not None:
        ordered[..., top_k:] = 0.0
        ordered = ordered / ordered.sum(-1, keepdim=True)
    if top_p is not None:
        before = ordered.cumsum(-1) - ordered  # probability of all that are more probable
        ordered = ordered.masked_fill(before >= top_p, 0.0)
        ordered = ordered / ordered.sum(-1, keepdim=True)
    return torch.zeros_like(ordered).scatter(-1, order, ordered)


# One hypothesis a row


def _one_by_one(
    model: Transformer,
    source: Tensor,
    bos_id: int,
    eos_id: int,
    max_length: int | Sequence[int] | Tensor,
    use_cache: bool,
    *,
    choose: Callable[[Tensor], Tensor],
    copies: int = 1,
) -> Hypotheses:
    """Write `copies` hypotheses of each source, each token chosen by `choose`, logits `(R, V)` to ids `(R,)`."""
    with _evaluating(model):
        source, limits = _checked(model, source, bos_id, eos_id, max_length)
        if not limits:
            return _hypotheses([], eos_id)
        state = (_Cached if use_cache else _Uncached)(model, source)
        tokens = source.new_full((len(limits), 1), bos_id)  # (B, 1), then (R, 1): the rows that are not done
        limit = torch.tensor(limits, device=source.device).repeat_interleave(copies)  # (B * copies,)
        rows = torch.arange(len(limit), device=source.device)  # (R,), which hypothesis each row is
        written = source.new_full((len(limit), max(limits)), state.pad_id)
        totals = torch.zeros(len(limit), dtype=state.dtype, device=source.device)
        is_open = torch.ones_like(limit, dtype=torch.bool)  # (R,)
        for n in range(max(limits)):
            logits = state.step(tokens)[:, 0]  # (R, V)
            if n == 0 and copies > 1:
                # The first distribution is the same for all hypotheses of a source: computed once.
                again = rows // copies
                logits = logits.index_select(0, again)
                state.select(again)
            banned = logits[:, [state.pad_id, bos_id]]
            logits[:, state.pad_id] = logits[:, bos_id] = -math.inf
            chosen = choose(logits)  # (R,)
            logit = logits.gather(1, chosen[:, None])[:, 0]
            log_prob = logit - torch.logaddexp(_log_sum_exp_in_place(logits), banned.logsumexp(1))
            written[rows, n] = chosen.where(is_open, state.pad_id)
            totals[rows] += log_prob.where(is_open, 0.0)
            is_open = is_open & (chosen != eos_id) & (n + 1 < limit[rows])
            left = is_open.nonzero()[:, 0]
            if not len(left):
                break
            tokens = chosen[:, None]
            if _worth_dropping(len(rows) - len(left), len(rows)):
                rows, tokens, is_open = rows[left], tokens[left], is_open[left]
                state.select(left)
    texts = [[token for token in text if token != state.pad_id] for text in written.tolist()]
    every = [_Hypothesis(text, total, total) for text, total in zip(texts, totals.tolist(), strict=True)]
    if any(math.isnan(hypothesis.score) for hypothesis in every):
        raise ValueError(_NOT_A_NUMBER)
    return _hypotheses([every[i : i + copies] for i in range(0, len(every), copies)], eos_id)


# What computes the next token's logits


class _Uncached:
    """All positions recomputed at each step, by `Transformer.decode`."""

    def __init__(self, model: Transformer, source: Tensor):
        self.model = model
        self.pad_id = model.config.pad_id
        self.dtype = torch.promote_types(model.output.weight.dtype, torch.float32)
        self.source, self.memory = source, model.encode(source)
        self.written: Tensor | None = None  # (R, W, n)

    def step(self, tokens: Tensor, parents: Tensor | None = None) -> Tensor:
        """Logits `(R, W, V)` after one token more, `(R, W)`; `parents` as in `Transformer.step`."""
        width = tokens.shape[1]
        self.written = (
            tokens[..., None]
            if self.written is None
            else torch.cat((_of(parents, self.written), tokens[..., None]), -1)
        )
        memory, source = (x.repeat_interleave(width, 0) for x in (self.memory, self.source))  # (R * W, …)
        logits = self.model.decode(self.written.flatten(0, 1), memory, source)[:, -1]  # (R * W, V)
        return logits.to(self.dtype).unflatten(0, (-1, width))

    def select(self, rows: Tensor) -> None:
        """Keep these sentences."""
        self.source, self.memory, self.written = (
            x.index_select(0, rows) for x in (self.source, self.memory, self.written)
        )


class _Cached:
    """The new position only, by `Transformer.step`."""

    def __init__(self, model: Transformer, source: Tensor):
        self.model = model
        self.pad_id = model.config.pad_id
        self.dtype = torch.promote_types(model.output.weight.dtype, torch.float32)
        self.cache = model.begin(source)

    def step(self, tokens: Tensor, parents: Tensor | None = None) -> Tensor:
        """As in `_Uncached`."""
        return self.model.step(tokens, self.cache, parents=parents).to(self.dtype)

    def select(self, rows: Tensor) -> None:
        """Keep these sentences."""
        self.cache.select(rows)


def _log_sum_exp_in_place(x: Tensor) -> Tensor:
    # The logits are not needed any more; torch.logsumexp would take memory of their size twice, at every step.
    largest = x.amax(-1, keepdim=True)
    return x.sub_(largest).exp_().sum(-1).log_() + largest[..., 0]


def _first_of_the_largest(x: Tensor) -> Tensor:
    return x.max(-1).indices  # the same as argmax, which takes three times as long on a CPU


def _of(parents: Tensor | None, x: Tensor) -> Tensor:
    """What belongs to the parents, `(R, W)`, of x `(R, W before, n)`."""
    return x if parents is None else x.gather(1, parents[..., None].expand(-1, -1, x.shape[-1]))  # (R, W, n)


def _worth_dropping(done: int, rows: int) -> bool:
    """Whether the rows that are done cost more than it takes to copy the others: 1 in 8 is about right."""
    return 8 * done >= rows


def _top(x: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """The k largest of the last axis (all, if there are fewer) and their places; equal ones in the order of places."""
    values, places = x.topk(min(k + 1, x.shape[-1]), dim=-1)  # one more, to see whether it equals the last
    tied = ((values[..., 1:] == values[..., :-1]) & (values[..., 1:] > -math.inf)).any(-1)
    if tied.any():  # topk leaves the order of equal values open
        ordered, order = x[tied].sort(dim=-1, descending=True, stable=True)
        values[tied], places[tied] = ordered[:, : values.shape[-1]], order[:, : values.shape[-1]]
    return values[..., :k], places[..., :k]


# What comes out


@dataclass(frozen=True)
class _Hypothesis:
    tokens: list[int]  # with the end
    total: float
    score: float


def _hypotheses(each: list[list[_Hypothesis]], eos_id: int) -> Hypotheses:
    ended = [[h.tokens[-1] == eos_id for h in those] for those in each]
    return Hypotheses(
        tokens=[[h.tokens[:-1] if h.tokens[-1] == eos_id else h.tokens for h in those] for those in each],
        log_probs=[[h.total for h in those] for those in each],
        scores=[[h.score for h in those] for those in each],
        finished=ended,
    )


def _can_win(found: list[_Hypothesis], num_best: int, hope: float) -> bool:
    """Whether a score of `hope` would still be among the `num_best`; of equal ones the earlier counts as better."""
    return sum(h.score >= hope for h in found) < num_best


# What comes in

_NOT_A_NUMBER = (
    "expected logits that are numbers, got NaN from the model; look for NaN or infinity in its weights, or run it in a "
    "dtype of more range"
)


@contextmanager
def _evaluating(model: nn.Module) -> Iterator[None]:
    """Eval mode and no gradients inside; afterwards each module is in its own mode again."""
    if not isinstance(model, Transformer):
        raise TypeError(
            f"model must be a course_lib Transformer, which reads a source and generates a target, got "
            f"{type(model).__name__}"
        )
    training = [(module, module.training) for module in model.modules()]
    model.eval()
    try:
        with torch.no_grad():
            yield
    finally:
        for module, mode in training:
            module.training = mode


def _checked(
    model: Transformer, source: Tensor, bos_id: int, eos_id: int, max_length: int | Sequence[int] | Tensor
) -> tuple[Tensor, list[int]]:
    """The source on the model's device, and a limit for each row."""
    config = model.config
    check_instance(Tensor, source=source)
    check_whole(bos_id=bos_id, eos_id=eos_id, least=-math.inf)
    if source.dim() != 2 or source.is_floating_point() or source.is_complex():
        raise ValueError(
            f"source must be integer ids (batch, length), got {source.dtype} {tuple(source.shape)}; for one sentence "
            f"add a batch axis with source[None]"
        )
    special = {"bos_id": bos_id, "eos_id": eos_id, "model.config.pad_id": config.pad_id}
    vocab_size = config.target_vocab_size or config.vocab_size
    for name, token in special.items():
        if not 0 <= token < vocab_size:
            raise ValueError(f"{name} must be a token of the vocabulary, 0 … {vocab_size - 1}, got {token}")
    if len(set(special.values())) < len(special):
        given = ", ".join(f"{name} = {token}" for name, token in special.items())
        raise ValueError(f"beginning, end and padding must be three different tokens, got {given}")
    source = source.to(model.output.weight.device, torch.int64)
    empty = (source == config.pad_id).all(1).nonzero()[:, 0].tolist()
    if empty:
        raise ValueError(
            f"each source must have at least one token that is not padding ({config.pad_id}), got none in row "
            f"{', '.join(map(str, empty[:5]))}{' …' if len(empty) > 5 else ''}; leave empty sentences out"
        )
    return source, _limits(max_length, len(source), config)


def _limits(max_length: int | Sequence[int] | Tensor, batch: int, config: TransformerConfig) -> list[int]:
    given = max_length.tolist() if isinstance(max_length, Tensor) else max_length
    limits = list(given) if isinstance(given, Sequence) else [given] * batch
    if len(limits) != batch:
        raise ValueError(f"max_length must be one number, or one for each of the {batch} sources, got {len(limits)}")
    wrong = [limit for limit in limits if not isinstance(limit, Integral) or not 1 <= limit <= MOST_TOKENS]
    if wrong:
        raise ValueError(
            f"max_length must be a whole number of at least 1 and at most {MOST_TOKENS}, got {wrong[0]}; the end "
            f"counts as a token"
        )
    if config.positions == "learned" and max(limits, default=0) > config.max_length:
        raise ValueError(
            f"max_length must be at most {config.max_length}, the positions that this model has learned, got "
            f"{max(limits)}; generate fewer tokens, or build the model with a larger config.max_length"
        )
    return limits


def _check_cuts(temperature: float, top_k: int | None, top_p: float | None) -> None:
    check_number("temperature", temperature)
    if not 0.0 < temperature < 1e38:  # beyond, -inf divided by it is NaN in float32
        raise ValueError(
            f"temperature must be a finite number above 0 and below 1e38, got {temperature}; for the most probable "
            f"token each time use greedy"
        )
    if top_k is not None:
        check_whole(top_k=top_k, hint="; None draws from all tokens")
    if top_p is not None:
        check_number("top_p", top_p)
    if top_p is not None and not 0.0 < top_p <= 1.0:
        raise ValueError(f"top_p must be a probability in (0, 1], got {top_p}; None draws from all tokens")
