"""From probabilities to text: greedy and beam search, top-p, BLEU, and attention that remembers keys and values.

The two searches see a model as a function `next_log_probs(tokens)`: ids so far, bos first, to `(V,)` log-probabilities
of the next id. They decode one sentence at a time, which is easier to read; `course_kit.translator.search` decodes
whole batches.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from typing import Annotated

import torch
from torch import Tensor

from course_lib._checks import check_sequence, checked, got
from course_lib._typing import Bounds, Count, Float, Size
from course_lib.scaled_dot_product import scaled_dot_product_attention

__all__ = ["beam_search", "cached_attention", "corpus_bleu", "greedy_decode", "top_p_filter"]

_LOG_PROBS = "look for NaN in the model's weights, and take the last position of a single sentence"


@checked(next_log_probs=_LOG_PROBS)
def greedy_decode(
    next_log_probs: Callable[[list[int]], Float[Tensor, " vocab"]], bos_id: int, eos_id: int, max_length: Count
) -> list[int]:
    """Take the most probable token at every step, until it is eos.

    `y_t = argmax_v log p(v | bos, y_1 … y_{t−1})`. No choice is ever revised. The result has at most `max_length` ids,
    without bos and eos.
    """
    tokens = [bos_id]
    for _ in range(max_length):
        token = int(next_log_probs(list(tokens)).argmax())  # a copy, in case the model changes it
        if token == eos_id:
            break
        tokens.append(token)
    return tokens[1:]


@checked(next_log_probs=_LOG_PROBS, beam_size="with 1 the search is greedy")
def beam_search(
    next_log_probs: Callable[[list[int]], Float[Tensor, " vocab"]],
    bos_id: int,
    eos_id: int,
    beam_size: Size,
    max_length: Count,
    length_penalty: Annotated[float, Bounds(-10, 10)] = 0.0,
) -> list[int]:
    """Follow the beam_size best hypotheses at once, and return the best of all, without bos and eos.

    At each step every open hypothesis is extended by every token, and of all these candidates the beam_size with the
    highest sum of log-probabilities survive. The winner has the highest
    `Σ_t log p(y_t | bos, y_1 … y_{t−1}) / n^length_penalty`, where n counts the generated tokens, eos included. A
    hypothesis that has not ended after max_length tokens competes as it is. With beam_size 1 this is `greedy_decode`. A
    length_penalty of 0 compares sums, in which every token costs; 1 compares means.

    Source: Graves (2012) for the search; Wu et al. (2016), section 7, for a length penalty, with another formula.
    """
    if max_length == 0:
        return []
    open_, ended = [([], 0.0)], []  # (generated tokens, sum of log-probabilities)
    for length in range(1, max_length + 1):
        candidates = [
            ([*tokens, token], total + log_prob)
            for tokens, total in open_
            for token, log_prob in enumerate(next_log_probs([bos_id, *tokens]).tolist())
        ]
        candidates.sort(key=lambda candidate: candidate[1], reverse=True)
        open_ = []
        for tokens, total in candidates[:beam_size]:
            if tokens[-1] == eos_id:
                ended.append((tokens[:-1], total / length**length_penalty))
            else:
                open_.append((tokens, total))
    ended += [(tokens, total / max_length**length_penalty) for tokens, total in open_]
    return max(ended, key=lambda hypothesis: hypothesis[1])[0]


@checked(p="for 90 % pass 0.9")
def top_p_filter(
    logits: Float[Tensor, "*batch vocab"], p: Annotated[float, Bounds(0, 1)]
) -> Float[Tensor, "*batch vocab"]:
    """Keep the smallest set of most probable tokens whose probability reaches p; the others get −inf.

    In order of falling probability, a token is kept if the tokens before it have a total probability below p. So the
    token that reaches p is kept, and the most probable token is always kept. At p = 1 all tokens stay.

    Raises:
        ValueError: there is no logit, or one is NaN.

    Source: Holtzman et al. (2020), section 3.1 (nucleus sampling).
    """
    _check_logits(logits)
    probs, order = logits.double().softmax(-1).sort(descending=True, stable=True)
    before = probs.cumsum(-1) - probs  # (..., V), of the tokens that are more probable
    keep = (before < p) | (p == 1)  # at p = 1, rounding must not cut off the tail
    keep[..., 0] = True  # for p = 0
    keep = keep.gather(-1, order.argsort())  # back into the order of the vocabulary
    return logits.masked_fill(~keep, float("-inf"))


def _check_logits(logits: Tensor) -> None:
    if not logits.shape[-1] or logits.isnan().any():
        raise ValueError(f"logits must be (..., V) without NaN, got {tuple(logits.shape)}; look for NaN in the model")


@checked
def corpus_bleu(hypotheses: Sequence[Sequence[Hashable]], references: Sequence[Sequence[Hashable]]) -> float:
    """BLEU of a whole corpus, 0 to 100: the share of the hypotheses' n-grams that occur in the references.

    `BLEU = 100 · BP · (p_1 p_2 p_3 p_4)^(1/4)`. p_n counts over all sentences how many n-grams match, each at most as
    often as it occurs in its own reference, and divides by how many there are. This alone would favour short output, so
    `BP = exp(1 − r/h)` for h hypothesis tokens against r > h reference tokens, and 1 otherwise. No smoothing: an order
    of n-grams without any match gives 0.0. Each sentence is a list of tokens and has one reference.

    Raises:
        TypeError: a sentence is not a list of tokens. A string is not accepted, since its letters would count as
            tokens.
        ValueError: the numbers of sentences differ, or there are none.

    Source: Papineni et al. (2002), section 2, with one reference.
    """

    def ngrams(tokens, n):
        return Counter(tuple(tokens[i : i + n]) for i in range(len(tokens) - n + 1))

    _check_corpora(hypotheses, references)
    logs = 0.0
    for n in range(1, 5):
        pairs = [(ngrams(h, n), ngrams(r, n)) for h, r in zip(hypotheses, references, strict=True)]
        matches = sum(sum((found & wanted).values()) for found, wanted in pairs)  # & takes the smaller count
        if matches == 0:
            return 0.0
        logs += math.log(matches / sum(sum(found.values()) for found, _ in pairs))
    h, r = sum(map(len, hypotheses)), sum(map(len, references))
    return 100 * min(1.0, math.exp(1 - r / h)) * math.exp(logs / 4)


def _check_corpora(hypotheses: Sequence, references: Sequence) -> None:
    for name, sentences in (("hypotheses", hypotheses), ("references", references)):
        for sentence in sentences:
            if isinstance(sentence, str):
                raise TypeError(
                    f"{name} must have a list of tokens for each sentence, got the string {sentence[:30]!r}; pass "
                    f"sentence.split()"
                )
            check_sequence(**{f"each sentence of {name}": sentence})
            if not all(isinstance(token, Hashable) for token in sentence):
                raise TypeError(
                    f"the tokens of {name} must be strings or ids, got {sentence!r:.40}; tokenise the sentences"
                )
    if not hypotheses or len(hypotheses) != len(references):
        raise ValueError(
            f"expected as many references as hypotheses, and at least one, got {len(hypotheses)} hypotheses and "
            f"{len(references)} references; pass two lists with a list of tokens for each sentence"
        )


@checked(**{"1": "pass the newest token alone, since the earlier ones are in the cache"})
def cached_attention(
    query: Float[Tensor, "*batch 1 d_k"],
    key: Float[Tensor, "*batch 1 d_k"],
    value: Float[Tensor, "*batch 1 d_v"],
    cache: tuple[Float[Tensor, "*batch len_past d_k"], Float[Tensor, "*batch len_past d_v"]] | None = None,
) -> tuple[Float[Tensor, "*batch 1 d_v"], tuple[Float[Tensor, "*batch len_k d_k"], Float[Tensor, "*batch len_k d_v"]]]:
    """One decoding step of causal self-attention, with the keys and values of all earlier steps from a cache.

    The newest query may attend to everything so far, so no mask is needed, and the result is the last row of causal
    attention over the whole sequence. Earlier rows need not be computed again, because later tokens do not change them.

    The cache is `(keys, values)` of the tokens before, None at the first step. The output comes with the cache of the
    next step; the old one is left as it is, so that several hypotheses can continue from it.

    Raises:
        TypeError: the cache is not a pair.
        ValueError: the cache is not that of this batch.
    """
    _check_cache(key, value, cache)
    if cache is not None:
        key = torch.cat((cache[0], key), dim=-2)  # (B, H, past + 1, d)
        value = torch.cat((cache[1], value), dim=-2)
    output, _ = scaled_dot_product_attention(query, key, value)
    return output, (key, value)


def _check_cache(key: Tensor, value: Tensor, cache: tuple[Tensor, Tensor] | None) -> None:
    if cache is None:
        return
    if not isinstance(cache, tuple | list) or len(cache) != 2:
        raise TypeError(f"cache must be a pair (keys, values), got {type(cache).__name__}; at the first step pass None")
    for name, new, old in zip(("key", "value"), (key, value), cache, strict=True):
        fits = isinstance(old, Tensor) and old.dtype == new.dtype and old.dim() == new.dim()
        if not fits or (*old.shape[:-2], old.shape[-1]) != (*new.shape[:-2], new.shape[-1]):
            raise ValueError(
                f"the {name}s in cache must agree with the new {name} in dtype and in all axes but the length, "
                f"got {got(old)} and {got(new)}; a cache belongs to one batch, start the next one with None"
            )
