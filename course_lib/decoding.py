"""From probabilities to text: greedy and beam search, top-p, BLEU, and attention that remembers keys and values.

The two searches see a model as a function `next_log_probs(tokens)`: ids so far, bos first, to `(V,)` log-probabilities
of the next id. They go through one sentence at a time, to be read; `course_kit.translator.search` has whole batches.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from course_kit._checks import (
    check_axes,
    check_dtypes,
    check_finite,
    check_floats,
    check_number,
    check_sequence,
    check_whole,
)
from course_lib._typing import Float
from course_lib.scaled_dot_product import scaled_dot_product_attention

__all__ = [
    "Candidate",
    "beam_search",
    "beam_trace",
    "cached_attention",
    "corpus_bleu",
    "greedy_decode",
    "top_p_filter",
]


def greedy_decode(
    next_log_probs: Callable[[list[int]], Tensor], bos_id: int, eos_id: int, max_length: int
) -> list[int]:
    """Take the most probable token at every step, until it is eos.

    `y_t = argmax_v log p(v | bos, y_1 … y_{t−1})`. No choice is ever revised.

    Args:
        next_log_probs: function from the ids so far, bos first, to log-probabilities `(V,)` of the next one.
        bos_id: the token with which every sequence begins.
        eos_id: the token that ends it.
        max_length: largest number of generated tokens.

    Returns:
        The generated ids, without bos and eos.

    Raises:
        TypeError: next_log_probs cannot be called, or an id or max_length is not a whole number.
        ValueError: max_length is negative, or the model does not return log-probabilities `(V,)`.
    """
    _check_search(next_log_probs, bos_id, eos_id, max_length)
    tokens = [bos_id]
    for _ in range(max_length):
        best = int(_checked(next_log_probs(list(tokens))).argmax())
        if best == eos_id:
            break
        tokens.append(best)
    return tokens[1:]


@dataclass(frozen=True)
class Candidate:
    """A hypothesis of a beam search, extended by one token.

    Args:
        tokens: generated ids, eos included, bos not; the hypothesis that was extended is `tokens[:-1]`.
        log_prob: sum of their log-probabilities, by which a beam chooses.
        score: `log_prob / n^length_penalty` with `n = len(tokens)`, by which the winner is chosen.
        survives: whether it is among the beam_size best of its step.
        finished: whether it ends in eos.
    """

    tokens: tuple[int, ...]
    log_prob: float
    score: float
    survives: bool
    finished: bool


def beam_trace(
    next_log_probs: Callable[[list[int]], Tensor],
    bos_id: int,
    eos_id: int,
    beam_size: int,
    max_length: int,
    length_penalty: float = 0.0,
) -> list[list[Candidate]]:
    """Everything that a beam search considers: all candidates of each step, the best first.

    At each step every open hypothesis is extended by every token. Of all these candidates the beam_size with the
    highest sum of log-probabilities survive. Survivors that end in eos are finished, the others are open in the next
    step. The search is over when none is open, or after max_length steps.

    Arguments and errors are those of `beam_search`.
    """
    _check_search(next_log_probs, bos_id, eos_id, max_length)
    check_whole(beam_size=beam_size, hint="; with 1 the search is greedy")
    check_length_penalty(length_penalty)
    steps: list[list[Candidate]] = []
    hypotheses: list[tuple[tuple[int, ...], float]] = [((), 0.0)]  # generated tokens, sum of log-probabilities
    while hypotheses and len(steps) < max_length:
        extended = [
            ((*tokens, token), total + log_prob)
            for tokens, total in hypotheses
            for token, log_prob in enumerate(_checked(next_log_probs([bos_id, *tokens])).tolist())
        ]
        extended.sort(key=lambda candidate: candidate[1], reverse=True)
        steps.append(
            [
                Candidate(
                    tokens=tokens,
                    log_prob=total,
                    score=total / len(tokens) ** length_penalty,
                    survives=rank < beam_size,
                    finished=tokens[-1] == eos_id,
                )
                for rank, (tokens, total) in enumerate(extended)
            ]
        )
        hypotheses = [(c.tokens, c.log_prob) for c in steps[-1] if c.survives and not c.finished]
    return steps


def beam_search(
    next_log_probs: Callable[[list[int]], Tensor],
    bos_id: int,
    eos_id: int,
    beam_size: int,
    max_length: int,
    length_penalty: float = 0.0,
) -> list[int]:
    """Follow the beam_size best hypotheses at once, and return the best that has ended.

    The winner has the highest `Σ_t log p(y_t | bos, y_1 … y_{t−1}) / n^length_penalty`, where n counts the generated
    tokens, eos included. A hypothesis that has not ended after max_length tokens competes as it is. With beam_size 1
    this is `greedy_decode`.

    Args:
        next_log_probs: function from the ids so far, bos first, to log-probabilities `(V,)` of the next one.
        bos_id: the token with which every sequence begins.
        eos_id: the token that ends it.
        beam_size: number of survivors of each step, at least 1.
        max_length: largest number of generated tokens.
        length_penalty: 0 compares sums, in which every token costs; 1 compares means.

    Returns:
        The generated ids of the winner, without bos and eos.

    Raises:
        TypeError: next_log_probs cannot be called, an id or a size is not a whole number, or length_penalty is not a
            number.
        ValueError: beam_size is below 1, max_length is negative, length_penalty is not between −10 and 10, or the model
            does not return log-probabilities `(V,)`.

    Source: Graves (2012) for the search; Wu et al. (2016), section 7, for a length penalty, with another
    formula.
    """
    steps = beam_trace(next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty)
    ended = [c for step in steps for c in step if c.survives and (c.finished or len(c.tokens) == max_length)]
    if not ended:  # max_length is 0
        return []
    best = max(ended, key=lambda candidate: candidate.score)
    return list(best.tokens[:-1] if best.finished else best.tokens)


def top_p_filter(logits: Float[Tensor, "*batch vocab"], p: float) -> Float[Tensor, "*batch vocab"]:
    """Keep the smallest set of most probable tokens whose probability reaches p; the others get −inf.

    In order of falling probability, a token is kept if the tokens before it have a total probability below p. So the
    token that reaches p is kept, and the most probable token is always kept.

    Args:
        logits: `(V,)`, or `(..., V)`, where each row is filtered separately.
        p: probability to be reached, 0 to 1; at 1 all tokens stay.

    Returns:
        Logits of the same shape, ready for a softmax.

    Raises:
        TypeError: logits is not a floating-point tensor, or p is not a number.
        ValueError: p is not between 0 and 1, or a logit is NaN.

    Source: Holtzman et al. (2020), section 3.1 (nucleus sampling).
    """
    _check_logits(logits, p)
    dtype = torch.promote_types(logits.dtype, torch.float32)
    probs, order = torch.softmax(logits, dim=-1, dtype=dtype).sort(dim=-1, descending=True, stable=True)
    # Mass of a token and of all that are less probable. Those before it have 1 minus that; summed up from the small
    # end nothing is lost to rounding, and p = 1 keeps tokens of probability 1e-12 too.
    rest = probs.flip(-1).cumsum(-1).flip(-1)  # (..., V)
    keep = rest > 1 - p
    keep[..., 0] = True
    keep = torch.zeros_like(keep).scatter(-1, order, keep)  # back into the order of the vocabulary
    return logits.masked_fill(~keep, float("-inf"))


def corpus_bleu(
    hypotheses: Sequence[Sequence[Hashable]], references: Sequence[Sequence[Hashable]], max_order: int = 4
) -> float:
    """BLEU of a whole corpus, 0 to 100: the share of the hypotheses' n-grams that occur in the references.

    `BLEU = 100 · BP · (p_1 p_2 p_3 p_4)^(1/4)`. p_n counts over all sentences how many n-grams match, each at most as
    often as it occurs in its own reference, and divides by how many there are. This alone would favour short output, so
    `BP = exp(1 − r/h)` for h hypothesis tokens against r > h reference tokens, and 1 otherwise. No smoothing: an order
    without any match gives 0.0.

    Args:
        hypotheses: a list of tokens for each sentence.
        references: as many, one reference per sentence.
        max_order: length of the longest n-grams that count.

    Raises:
        TypeError: hypotheses or references is not a list of lists of tokens. A string is not accepted as a sentence,
            since its letters would count as tokens.
        ValueError: the numbers of sentences differ, there are none, or max_order is below 1.

    Source: Papineni et al. (2002), section 2, with one reference.
    """
    _check_corpora(hypotheses, references, max_order)
    log_precisions = []
    for order in range(1, max_order + 1):
        matches = total = 0
        for hypothesis, reference in zip(hypotheses, references, strict=True):
            found, wanted = _ngrams(hypothesis, order), _ngrams(reference, order)
            matches += (found & wanted).total()  # & takes the smaller count of each n-gram: no match counts twice
            total += found.total()
        if matches == 0:
            return 0.0
        log_precisions.append(math.log(matches / total))
    len_hypotheses, len_references = sum(map(len, hypotheses)), sum(map(len, references))
    brevity = min(1.0, math.exp(1 - len_references / len_hypotheses))
    return 100 * brevity * math.exp(sum(log_precisions) / max_order)


def _ngrams(tokens: Sequence[Hashable], order: int) -> Counter:
    return Counter(tuple(tokens[start : start + order]) for start in range(len(tokens) - order + 1))


def cached_attention(
    query: Float[Tensor, "*batch 1 d_k"],
    key: Float[Tensor, "*batch 1 d_k"],
    value: Float[Tensor, "*batch 1 d_v"],
    cache: tuple[Float[Tensor, "*batch len_past d_k"], Float[Tensor, "*batch len_past d_v"]] | None = None,
) -> tuple[Float[Tensor, "*batch 1 d_v"], tuple[Float[Tensor, "*batch len_k d_k"], Float[Tensor, "*batch len_k d_v"]]]:
    """One decoding step of causal self-attention, with the keys and values of all earlier steps from a cache.

    The newest query may attend to everything so far, so no mask is needed, and the result is the last row of causal
    attention over the whole sequence. Earlier rows need not be computed again, because later tokens do not change them.

    Args:
        query: of the newest token, `(B, H, 1, d)`.
        key: its key.
        value: its value.
        cache: `(keys, values)` of the tokens before it, `(B, H, t, d)` each; None at the first step.

    Returns:
        `(output, (keys, values))`: output `(B, H, 1, d)`, and the cache of the next step, `(B, H, t + 1, d)` each. The
        old cache is left as it is, so that several hypotheses can continue from it.

    Raises:
        TypeError: an argument is not a floating-point tensor, or cache is not a pair of them.
        ValueError: query, key and value are not those of a single step, or the cache belongs to another batch.
    """
    check_axes(query=query, key=key, value=value)
    if not query.shape[-2] == key.shape[-2] == value.shape[-2] == 1:
        raise ValueError(
            f"expected one step, axes (B, H, 1, d), got query {tuple(query.shape)}, key {tuple(key.shape)}, value "
            f"{tuple(value.shape)}; pass the newest token alone, since the earlier ones are in the cache"
        )
    if cache is None:
        keys, values = key, value
    else:
        _check_cache(key, value, cache)
        keys = torch.cat((cache[0], key), dim=-2)  # (B, H, t + 1, d)
        values = torch.cat((cache[1], value), dim=-2)
    output, _ = scaled_dot_product_attention(query, keys, values)
    return output, (keys, values)


def _check_cache(key: Tensor, value: Tensor, cache: tuple[Tensor, Tensor]) -> None:
    if not isinstance(cache, tuple | list) or len(cache) != 2:
        raise TypeError(f"cache must be a pair (keys, values), got {type(cache).__name__}; at the first step pass None")
    for name, new, old in zip(("key", "value"), (key, value), cache, strict=True):
        check_dtypes(**{name: new, "cache": old})
        if (*old.shape[:-2], *old.shape[-1:]) != (*new.shape[:-2], new.shape[-1]):
            raise ValueError(
                f"cached {name}s (of cache) must agree with the new {name} in all axes but the length, got "
                f"{tuple(old.shape)} and {tuple(new.shape)}; a cache belongs to one batch, start the next one with None"
            )


def _check_search(next_log_probs: Callable, bos_id: int, eos_id: int, max_length: int) -> None:
    if not callable(next_log_probs):
        raise TypeError(
            f"next_log_probs must be a function of ids, got {next_log_probs!r:.40}; pass the function itself"
        )
    check_whole(bos_id=bos_id, eos_id=eos_id, least=-math.inf)  # a mark of your own may lie outside the vocabulary
    check_whole(max_length=max_length, least=0, hint="; it is the number of generated tokens at most")


def check_length_penalty(length_penalty: float) -> None:
    """Refuse an exponent for which tokens^length_penalty is NaN or beyond the range of a float.

    Raises:
        TypeError: it is not a number.
        ValueError: it is not between −10 and 10.
    """
    check_finite("length_penalty", length_penalty, -10, 10)


def _checked(log_probs: Tensor) -> Tensor:
    """What a model returned, if it can be searched."""
    if not isinstance(log_probs, Tensor) or log_probs.dim() != 1 or log_probs.isnan().any():
        got = f"shape {tuple(log_probs.shape)}" if isinstance(log_probs, Tensor) else type(log_probs).__name__
        got += " with NaN" if isinstance(log_probs, Tensor) and log_probs.isnan().any() else ""
        raise ValueError(
            f"next_log_probs must return log-probabilities (V,) without NaN, got {got}; look for NaN in the model's "
            f"weights, and take the last position of a single sentence"
        )
    return log_probs


def _check_logits(logits: Tensor, p: float) -> None:
    check_number("p", p)
    if not 0 <= p <= 1:
        raise ValueError(f"p must be a probability between 0 and 1, got {p}; for 90 % pass 0.9")
    check_floats(logits=logits, axes=1)
    if not logits.shape[-1] or logits.isnan().any():
        raise ValueError(f"logits must be (..., V) without NaN, got {tuple(logits.shape)}; look for NaN in the model")


def _check_corpora(hypotheses: Sequence, references: Sequence, max_order: int) -> None:
    _check_sentences(hypotheses=hypotheses, references=references)
    if not hypotheses or len(hypotheses) != len(references):
        raise ValueError(
            f"expected as many references as hypotheses, and at least one, got {len(hypotheses)} hypotheses and "
            f"{len(references)} references; pass two lists with a list of tokens for each sentence"
        )
    check_whole(max_order=max_order)


def _check_sentences(**corpora: Sequence) -> None:
    for name, sentences in corpora.items():
        if not isinstance(sentences, str):
            check_sequence(**{name: sentences})
        wrong = sentences if isinstance(sentences, str) else next((s for s in sentences if isinstance(s, str)), None)
        if wrong is not None:
            raise TypeError(
                f"{name} must be lists with a list of tokens for each sentence, got the string {wrong[:30]!r}; pass "
                f"sentence.split() for each"
            )
        for sentence in sentences:
            check_sequence(**{f"each sentence of {name}": sentence})
            if not all(isinstance(token, Hashable) for token in sentence):
                raise TypeError(
                    f"the tokens of {name} must be strings or ids, got {sentence!r:.40}; tokenise the sentences"
                )
