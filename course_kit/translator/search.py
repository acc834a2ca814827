"""Writing with a trained `Transformer`, a batch of sources at once: greedily, with a beam, by drawing.

`course_lib.decoding` has the same ideas in a few lines each, for one sentence; this is the code to work with. It keeps
keys and values (`Transformer.step`), and leaves out the sentences that are done. `use_cache=False` computes everything
again at every step with `Transformer.decode`: slower, and the reference for the tests.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from course_kit._checks import check_whole
from course_kit.nn import Transformer
from course_kit.translator.hypotheses import Hypotheses, Hypothesis, can_win, hypotheses
from course_kit.translator.next_token import check_cuts, next_token_distribution
from course_kit.translator.search_arguments import NOT_A_NUMBER, check_length_penalty, checked_source, evaluating
from course_kit.translator.steps import Cached, Uncached, of_parents
from course_lib._typing import Int

__all__ = ["Hypotheses", "beam", "greedy", "next_token_distribution", "sample"]


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
    check_cuts(temperature, top_k, top_p)
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
    with evaluating(model):
        source, limits = checked_source(model, source, bos_id, eos_id, max_length)
        found: list[list[Hypothesis]] = [[] for _ in limits]
        if not limits:
            return hypotheses([], eos_id)
        state = (Cached if use_cache else Uncached)(model, source)
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
            written = torch.cat((of_parents(parents, written), tokens[..., None]), dim=-1)  # (R, W, n)

            at_limit = torch.tensor([limits[row] == n for row in rows], device=source.device)
            closed = ((tokens == eos_id) | at_limit[:, None]) & (sums > -math.inf)
            for (r, _), text, total in zip(
                closed.nonzero().tolist(), written[closed].tolist(), sums[closed].tolist(), strict=True
            ):
                found[rows[r]].append(Hypothesis(text, total, total / n**length_penalty))
            sums = sums.masked_fill(closed, -math.inf)

            hopes = sums.amax(1).tolist()
            if any(math.isnan(hope) for hope in hopes):
                raise ValueError(NOT_A_NUMBER)
            # A sum only falls, and is divided by most at the limit; with a negative penalty, at the next step.
            lengths = [limits[row] if length_penalty >= 0 else n + 1 for row in rows]
            undecided = [
                r
                for r, row in enumerate(rows)
                if hopes[r] > -math.inf and can_win(found[row], num_best, hopes[r] / lengths[r] ** length_penalty)
            ]
            if not undecided:
                break
            if _worth_dropping(len(rows) - len(undecided), len(rows)):
                keep = torch.tensor(undecided, device=source.device)
                rows = [rows[r] for r in undecided]
                state.select(keep)
                tokens, written, sums, parents = (x.index_select(0, keep) for x in (tokens, written, sums, parents))
    # Sorting is stable: of equal scores the one found first stays first.
    return hypotheses([sorted(each, key=lambda h: -h.score)[:num_best] for each in found], eos_id)


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
    with evaluating(model):
        source, limits = checked_source(model, source, bos_id, eos_id, max_length)
        if not limits:
            return hypotheses([], eos_id)
        state = (Cached if use_cache else Uncached)(model, source)
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
    every = [Hypothesis(text, total, total) for text, total in zip(texts, totals.tolist(), strict=True)]
    if any(math.isnan(hypothesis.score) for hypothesis in every):
        raise ValueError(NOT_A_NUMBER)
    return hypotheses([every[i : i + copies] for i in range(0, len(every), copies)], eos_id)


def _log_sum_exp_in_place(x: Tensor) -> Tensor:
    # The logits are not needed any more; torch.logsumexp would take memory of their size twice, at every step.
    largest = x.amax(-1, keepdim=True)
    return x.sub_(largest).exp_().sum(-1).log_() + largest[..., 0]


def _first_of_the_largest(x: Tensor) -> Tensor:
    return x.max(-1).indices  # the same as argmax, which takes three times as long on a CPU


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
