"""What attention maps say: how broad a head is, what it looks at, and where information flows through the layers.

Functions of attention weights alone. `course_kit.interpret` goes further: it adds the values to the weights, changes a
model while it runs, tests what its output depends on, and reads its hidden states.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import torch
from torch import Tensor

from course_kit._checks import check_dtypes, check_floats, check_ids, check_whole, got
from course_lib._typing import Bool, Float, Int
from course_lib.masking import broadcasts_to
from course_lib.multi_head import merge_heads

__all__ = [
    "attention_between_words",
    "attention_entropy",
    "attention_rollout",
    "head_scores",
    "head_switched_off",
    "previous_token_score",
]


def attention_entropy(weights: Float[Tensor, "*batch len_q len_k"]) -> Float[Tensor, "*batch len_q"]:
    """How widely each query spreads its attention, in nats.

    `H_i = −Σ_j w_ij log w_ij`, with `0 · log 0 = 0`: zero for a query that attends to one key, `log L_k` for one that
    attends to all keys alike.

    Args:
        weights: attention weights `(..., L_q, L_k)`, not negative, with rows that sum to one.

    Returns:
        `(..., L_q)`.

    Raises:
        TypeError: weights is not a floating-point tensor.
        ValueError: a weight is negative, as the scores before the softmax are.

    Source: Shannon (1948), section 6; of attention heads: Clark et al. (2019), section 3.3.
    """
    _check_weights(weights)
    # log 0 never enters the graph: its gradient, 0 · ∞, would be NaN even where the result is multiplied by zero.
    logarithms = torch.where(weights > 0, weights, 1).log()
    return -(weights * logarithms).sum(-1)  # (..., L_q)


def attention_rollout(
    weights: Float[Tensor, "layers batch heads length length"],
) -> Float[Tensor, "batch length length"]:
    """How much of each input token reaches each output position, if a model consisted of attention and residuals only.

    `R = Â_N ⋯ Â_2 Â_1` with `Â_l = ½ A_l + ½ I`, where A_l is the mean of the heads of layer l, and I represents the
    residual connection. Row i of R says where the vector at position i after the last layer comes from.

    Args:
        weights: `(num_layers, B, H, L, L)` of self-attention, the first layer first.

    Returns:
        `(B, L, L)`, rows sum to one. A query that attends to nothing keeps what it has.

    Raises:
        TypeError: weights is not a floating-point tensor.
        ValueError: the weights are not square in their last two axes, or have other than five axes, or one is negative.

    Source: Abnar & Zuidema (2020), section 3.
    """
    check_floats(weights=weights)
    if weights.dim() != 5 or weights.shape[-1] != weights.shape[-2] or len(weights) == 0:
        raise ValueError(
            f"weights must be those of self-attention, (num_layers, batch, heads, length, length) with at least one "
            f"layer, got {tuple(weights.shape)}; stack the layers with torch.stack"
        )
    _check_weights(weights)
    mixed = weights.mean(2) + torch.eye(weights.shape[-1], dtype=weights.dtype, device=weights.device)
    mixed = mixed / mixed.sum(-1, keepdim=True)  # halves a row that sums to one; the row of a masked query becomes I
    rollout = mixed[0]  # (B, L, L)
    for layer in mixed[1:]:
        rollout = layer @ rollout
    return rollout


def head_scores(
    weights: Float[Tensor, "*layers batch heads length length"],
    tokens: Int[Tensor, "batch length"],
    *,
    delimiters: Iterable[int] = (),
    mask: Bool[Tensor, "..."] | None = None,
) -> dict[str, Float[Tensor, "*layers batch heads"]]:
    """What each head looks at in each sentence: five numbers between 0 and 1.

    | score | mean over the words of a sentence of |
    |---|---|
    | `"previous"` | the weight on the token before |
    | `"next"` | the weight on the token after |
    | `"same"` | the weight on all occurrences of the query's own token, its own position included |
    | `"delimiter"` | the weight on delimiters |
    | `"broad"` | the entropy, divided by that of equal weights: log(number of keys that the query may attend to) |

    Delimiters and padding are keys like others, but they are not counted as queries. Nor is a query that may not attend
    to any key in question: the first word has no token before it, and in a decoder no word has one after it. A score
    for which no query of the sentence counts is 0.

    Args:
        weights: `(..., B, H, L, L)` of self-attention; `(num_layers, B, H, L, L)` for a whole model.
        tokens: ids, `(B, L)`.
        delimiters: ids of tokens such as [CLS] and [SEP].
        mask: the mask of the attention, True = may attend, broadcasts to `(B, 1, L, L)`: `padding_mask(tokens)` or
            `decoder_mask(tokens)`.

    Returns:
        A dictionary from the name of each score to a tensor `(..., B, H)`.

    Raises:
        TypeError: weights is not a floating-point tensor, tokens or delimiters are not integers, or mask is not bool.
        ValueError: the tokens or the mask are not those of the weights, or a weight is negative.

    Source: after Clark et al. (2019), section 3.
    """
    check_floats(weights=weights, axes=4)
    check_ids(tokens=tokens)
    if weights.shape[-1] != weights.shape[-2]:
        raise ValueError(f"weights must be those of self-attention, (..., B, H, L, L), got {tuple(weights.shape)}")
    batch, _, length, _ = weights.shape[-4:]
    if tokens.shape != (batch, length):
        raise ValueError(
            f"tokens must be one for each key, (batch, length) = {(batch, length)}, got {tuple(tokens.shape)}; pass "
            f"the ids that the weights were computed for"
        )
    may_attend = _mask_of_all_heads(mask, batch, length, weights.device)  # (B, L, L)
    is_delimiter = torch.isin(tokens, torch.tensor(_ids(delimiters), dtype=tokens.dtype, device=tokens.device))
    # A padded position is a query like any other, but it is the key of none.
    is_word = may_attend.any(-2) & ~is_delimiter  # (B, L)
    place = torch.arange(length, device=weights.device)
    steps_back = (place[:, None] - place).expand(batch, -1, -1)  # query minus key
    keys = {
        "previous": steps_back == 1,
        "next": steps_back == -1,
        "same": tokens[:, :, None] == tokens[:, None, :],
        "delimiter": is_delimiter[:, None, :].expand(-1, length, -1),
    }
    scores = {}
    for name, of_interest in keys.items():
        of_interest = of_interest & may_attend
        share = (weights * of_interest[:, None]).sum(-1)  # (..., B, H, L)
        scores[name] = _mean_over(share, is_word & of_interest.any(-1))
    num_keys = may_attend.sum(-1)  # (B, L)
    equal = num_keys.clamp(min=2).to(weights.dtype).log()  # its place is taken by no query of fewer than two keys
    scores["broad"] = _mean_over(attention_entropy(weights) / equal[:, None], is_word & (num_keys > 1))
    return scores


def previous_token_score(weights: Float[Tensor, "*batch length length"]) -> Float[Tensor, "*batch"]:
    """How much of its weight a head puts on the token before, over all queries that have one.

    `s = 1 / (L − 1) · Σ_{i ≥ 1} w_{i, i−1}`. `head_scores` measures the same over words alone.

    Args:
        weights: `(..., L, L)` of self-attention, with L ≥ 2.

    Returns:
        `(...)`, from 0 to 1.

    Raises:
        TypeError: weights is not a floating-point tensor.
        ValueError: the weights are not square, or there are fewer than two tokens.

    Source: Clark et al. (2019), section 3.1.
    """
    _check_square(weights)
    return weights.diagonal(offset=-1, dim1=-2, dim2=-1).mean(-1)  # (...)


def _check_square(weights: Tensor) -> None:
    check_floats(weights=weights)
    if weights.dim() < 2 or weights.shape[-1] != weights.shape[-2] or weights.shape[-1] < 2:
        raise ValueError(
            f"weights must be those of self-attention, (..., length, length) with at least two tokens, got "
            f"{tuple(weights.shape)}; cross-attention has no token before"
        )


def head_switched_off(
    heads: Float[Tensor, "batch num_heads length d_head"],
    weight: Float[Tensor, "d_out d_model"],
    bias: Float[Tensor, " d_out"],
    off: int,
) -> Float[Tensor, "batch length d_out"]:
    """Output of multi-head attention without the contribution of one head.

    `y = Σ_{h ≠ off} W_O^h head_h + b_O`. `course_kit.interpret.interventions.heads_off` does the same inside a model.

    Args:
        heads: what the heads computed, weights times values, `(B, H, L, d_head)`.
        weight: of the output projection, `(d_out, H · d_head)`.
        bias: of the output projection, `(d_out,)`.
        off: number of the head, counted from 0.

    Returns:
        `(B, L, d_out)`.

    Raises:
        TypeError: an argument is not a floating-point tensor, or off is not a whole number.
        ValueError: there is no such head, or the projection does not fit the heads.

    Source: Michel, Levy & Neubig (2019), section 2.3.
    """
    _check_projection(heads, weight, bias, off)
    rest = heads.clone()  # the caller's heads stay as they are
    rest[:, off] = 0
    return merge_heads(rest) @ weight.T + bias  # (B, L, d_out)


def attention_between_words(
    weights: Float[Tensor, "*batch len_q len_k"], query_words: Int[Tensor, " len_q"], key_words: Int[Tensor, " len_k"]
) -> Float[Tensor, "*batch words_q words_k"]:
    """Attention between words from attention between their pieces.

    `W_uv = mean over the pieces i of word u of Σ_{pieces j of word v} w_ij`: the weights *to* the pieces of a word are
    added and the weights *from* them averaged, so that the attention of a word still sums to one.

    Args:
        weights: `(..., L_q, L_k)` between tokens.
        query_words: number of the word to which each query token belongs, counted from 0, `(L_q,)`; −1 leaves it out.
        key_words: the same for the keys, `(L_k,)`. The weight on a key that is left out is lost.

    Returns:
        `(..., number of query words, number of key words)`.

    Raises:
        TypeError: weights is not a floating-point tensor, or the words are not tensors of integers.
        ValueError: a tensor of words does not have one number per token, or a word before the last has no token.

    Source: Clark et al. (2019), section 4.1.
    """
    check_floats(weights=weights, axes=2)
    queries = _membership("query_words", query_words, weights.shape[-2]).to(weights)  # (L_q, words_q)
    keys = _membership("key_words", key_words, weights.shape[-1]).to(weights)  # (L_k, words_k)
    return (queries / queries.sum(0)).T @ weights @ keys


def _membership(name: str, words: Tensor, length: int) -> Tensor:
    """Bool `(length, words)`: which token belongs to which word."""
    check_ids(**{name: words})
    if words.shape != (length,):
        raise ValueError(f"{name} must have one word number per token, {length} of them, got {tuple(words.shape)}")
    number = int(words.max()) + 1 if length else 0
    if number > length:
        raise ValueError(f"{name} must number the words 0, 1, 2, … without gaps, got {number - 1} for {length} tokens")
    belongs = words[:, None] == torch.arange(number, device=words.device)
    if not belongs.any(0).all() or number == 0:
        missing = (~belongs.any(0)).nonzero().flatten().tolist() if number else "all of them"
        raise ValueError(
            f"{name} must number the words 0, 1, 2, … without gaps, got {number} words, missing: {missing}"
        )
    return belongs


def _check_projection(heads: Tensor, weight: Tensor, bias: Tensor, off: int) -> None:
    check_dtypes(heads=heads, weight=weight, bias=bias)
    if heads.dim() != 4:
        raise ValueError(f"heads must be (B, H, L, d_head), got {tuple(heads.shape)}; split merged heads first")
    check_whole(off=off, least=-math.inf)
    if not 0 <= off < heads.shape[1]:
        raise ValueError(f"off must be one of the heads 0 … {heads.shape[1] - 1}, got {off}")
    d_model = heads.shape[1] * heads.shape[3]
    if weight.dim() != 2 or weight.shape[1] != d_model or bias.shape != weight.shape[:1]:
        raise ValueError(
            f"weight must be (d_out, H · d_head = {d_model}) for these heads and bias (d_out,), got "
            f"{tuple(weight.shape)} and {tuple(bias.shape)}; pass those of the output projection"
        )


def _ids(delimiters: Iterable[int]) -> list[int]:
    if isinstance(delimiters, str) or not isinstance(delimiters, Iterable):
        raise TypeError(f"delimiters must be ids, such as [101, 102], got {delimiters!r:.40}; pass a list")
    ids = list(delimiters)
    for number in ids:
        check_whole(delimiters=number, least=-math.inf, hint=", the ids of tokens")
    return ids


def _mean_over(values: Tensor, counted: Tensor) -> Tensor:
    """Mean of `(..., B, H, L)` over the positions that count, `(B, L)`; 0 where none does."""
    counted = counted[:, None]  # (B, 1, L)
    return (values * counted).sum(-1) / counted.sum(-1).clamp(min=1)


def _mask_of_all_heads(mask: Tensor | None, batch: int, length: int, device: torch.device) -> Tensor:
    if mask is None:
        return torch.ones(batch, length, length, dtype=torch.bool, device=device)
    if not isinstance(mask, Tensor) or mask.dtype != torch.bool:
        raise TypeError(f"mask must be bool with True = may attend, got {got(mask)}; convert it with mask.bool()")
    if not broadcasts_to(mask.shape, (batch, 1, length, length)):
        raise ValueError(
            f"mask must broadcast to (batch, 1, length, length) = {(batch, 1, length, length)}, got "
            f"{tuple(mask.shape)}; pass the mask that the attention was given"
        )
    return mask.expand(batch, 1, length, length)[:, 0]


def _check_weights(weights: Tensor) -> None:
    check_floats(weights=weights, axes=2)
    if (weights < 0).any():
        raise ValueError(
            f"attention weights are not negative, got {weights.min():.3g}; pass what the softmax returns, not "
            f"the scores"
        )
