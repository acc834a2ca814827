"""What attention maps say: how broad a head is, what it looks at, and where information flows through the layers.

Most functions here need only attention weights. `course_kit.interpret` goes further: it adds the values to the weights,
changes a model while it runs, tests what its output depends on, and reads its hidden states.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from course_lib._checks import check_that, check_whole, checked
from course_lib._typing import Float, Int, Mask
from course_lib.multi_head import merge_heads

__all__ = [
    "attention_between_words",
    "attention_entropy",
    "attention_rollout",
    "head_scores",
    "head_switched_off",
    "previous_token_score",
]

_SELF_ATTENTION = "weights of self-attention are square"


@checked
def attention_entropy(weights: Float[Tensor, "*batch len_q len_k"]) -> Float[Tensor, "*batch len_q"]:
    """How widely each query spreads its attention, in nats.

    `H_i = −Σ_j w_ij log w_ij`, with `0 · log 0 = 0`: zero for a query that attends to one key, `log L_k` for one that
    attends to all keys alike.

    Raises:
        ValueError: a weight is negative, as the scores before the softmax are.

    Source: Shannon (1948), section 6; of attention heads: Clark et al. (2019), section 3.3.
    """
    _check_weights(weights)
    # log 0 never enters the graph: its gradient, 0 · ∞, would be NaN even where the result is multiplied by zero.
    logarithms = torch.where(weights > 0, weights, 1).log()
    return -(weights * logarithms).sum(-1)  # (..., L_q)


def _check_weights(weights: Tensor) -> None:
    if (weights < 0).any():
        raise ValueError(
            f"weights must not be negative, got {weights.min():.3g}; pass what the softmax returns, not the scores"
        )


@checked(weights="stack the layers of self-attention with torch.stack", length=_SELF_ATTENTION)
def attention_rollout(
    weights: Float[Tensor, "num_layers batch heads length length"],
) -> Float[Tensor, "batch length length"]:
    """How much of each input token reaches each output position, if a model consisted of attention and residuals only.

    `R = Â_N ⋯ Â_2 Â_1` with `Â_l = ½ A_l + ½ I`, where A_l is the mean of the heads of layer l, and I represents the
    residual connection. Row i of R says where the vector at position i after the last layer comes from, and sums to
    one. A query that attends to nothing keeps its own vector.

    Raises:
        ValueError: there is no layer, or a weight is negative.

    Source: Abnar & Zuidema (2020), section 3.
    """
    check_that(len(weights) > 0, "weights must be those of at least one layer", weights, "stack the layers")
    _check_weights(weights)
    identity = torch.eye(weights.shape[-1], dtype=weights.dtype, device=weights.device)
    mixed = weights.mean(2) + identity  # (num_layers, B, L, L)
    mixed = mixed / mixed.sum(-1, keepdim=True)  # halves a row that sums to two; that of a masked query is I already
    rollout = mixed[0]  # (B, L, L)
    for layer in mixed[1:]:
        rollout = layer @ rollout
    return rollout


@checked(tokens="pass the ids that the weights were computed for", length="one token for each key of self-attention")
def head_scores(
    weights: Float[Tensor, "*layers batch heads length length"],
    tokens: Int[Tensor, "batch length"],
    *,
    delimiters: Sequence[int] = (),
    mask: Mask["batch 1 length length"] | None = None,
) -> dict[str, Float[Tensor, "*layers batch heads"]]:
    """What each head looks at in each sentence: five numbers between 0 and 1, `(..., B, H)` each.

    | score | average over the words of a sentence: |
    |---|---|
    | `"previous"` | the weight on the token before |
    | `"next"` | the weight on the token after |
    | `"same"` | the weight on all occurrences of the query's own token, its own position included |
    | `"delimiter"` | the weight on delimiters |
    | `"broad"` | the entropy, divided by that of equal weights: log(number of keys that the query may attend to) |

    Delimiters count as keys but not as queries. A query also does not count if it is padding (the mask lets no query
    attend to that position), or if it may attend to none of the keys in question: the first word has no token before
    it, and in a decoder no word has one after it. If no query of a sentence counts, the score is 0.

    Args:
        weights: `(num_layers, B, H, L, L)` for a whole model, `(B, H, L, L)` for a layer.
        delimiters: ids of tokens such as [CLS] and [SEP].
        mask: the mask of the attention, `padding_mask(tokens, pad_id)` or `decoder_mask(tokens, pad_id)`.

    Raises:
        ValueError: a weight is negative.

    Source: after Clark et al. (2019), section 3.
    """
    _check_ids(delimiters)
    batch, length = tokens.shape
    if mask is None:
        mask = torch.ones(length, length, dtype=torch.bool, device=weights.device)
    may_attend = mask.expand(batch, 1, length, length)[:, 0]  # (B, L, L)
    is_delimiter = torch.isin(tokens, torch.tensor(delimiters, dtype=tokens.dtype, device=tokens.device))
    # In a mask, a padded position is a query like any other, but it is the key of none.
    is_word = may_attend.any(-2) & ~is_delimiter  # (B, L)

    def mean(values, counts):  # of (..., B, H, L), over the words that count, (B, L); 0 where none does
        counts = (is_word & counts)[:, None]  # (B, 1, L)
        return (values * counts).sum(-1) / counts.sum(-1).clamp(min=1)

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
        scores[name] = mean(share, of_interest.any(-1))
    num_keys = may_attend.sum(-1)  # (B, L)
    equal = num_keys.clamp(min=2).to(weights.dtype).log()  # a query with fewer than two keys does not count
    scores["broad"] = mean(attention_entropy(weights) / equal[:, None], num_keys > 1)
    return scores


def _check_ids(delimiters: Sequence[int]) -> None:
    for number in delimiters:
        check_whole(delimiters=number, least=-(2**63), hint="; these are token ids")


@checked(length=f"{_SELF_ATTENTION}; in cross-attention there is no token before")
def previous_token_score(weights: Float[Tensor, "*batch length length"]) -> Float[Tensor, "*batch"]:
    """How much of its weight a head puts on the token before, over all queries that have one.

    `s = 1 / (L − 1) · Σ_{i ≥ 1} w_{i, i−1}`. `head_scores` measures the same over words alone.

    Raises:
        ValueError: there are fewer than two tokens.

    Source: Clark et al. (2019), section 3.1.
    """
    check_that(weights.shape[-1] > 1, "weights must be those of at least two tokens", weights, "pass more of them")
    return weights.diagonal(offset=-1, dim1=-2, dim2=-1).mean(-1)  # (...)


@checked(heads="split merged heads first", d_out="pass weight and bias of the output projection")
def head_switched_off(
    heads: Float[Tensor, "batch num_heads length d_head"],
    weight: Float[Tensor, "d_out d_model"],
    bias: Float[Tensor, " d_out"],
    off: int,
) -> Float[Tensor, "batch length d_out"]:
    """Output of multi-head attention without the contribution of head `off`, counted from 0.

    `y = Σ_{h ≠ off} W_O^h head_h + b_O`, where `heads` are weights times values, and `weight` and `bias` belong to the
    output projection (d_model is num_heads · d_head). `course_kit.interpret.interventions.heads_off` does the same
    inside a model.

    Raises:
        ValueError: there is no such head, or the projection does not fit the heads.

    Source: Michel, Levy & Neubig (2019), section 2.3.
    """
    _check_projection(heads, weight, off)
    remaining = heads.clone()  # the caller's heads stay as they are
    remaining[:, off] = 0
    merged = merge_heads(remaining)  # (B, L, H · d_head)
    return merged @ weight.T + bias  # (B, L, d_out)


def _check_projection(heads: Tensor, weight: Tensor, off: int) -> None:
    _, num_heads, _, d_head = heads.shape
    if not 0 <= off < num_heads:
        raise ValueError(f"off must be one of the heads 0 … {num_heads - 1}, got {off}")
    if weight.shape[1] != num_heads * d_head:
        raise ValueError(
            f"weight must be (d_out, {num_heads * d_head}) for heads {tuple(heads.shape)}, got {tuple(weight.shape)}; "
            f"pass that of the output projection"
        )


@checked(len_q="number the word of each query token", len_k="number the word of each key token")
def attention_between_words(
    weights: Float[Tensor, "*batch len_q len_k"], query_words: Int[Tensor, " len_q"], key_words: Int[Tensor, " len_k"]
) -> Float[Tensor, "*batch words_q words_k"]:
    """Attention between words from attention between their pieces.

    `W_uv = mean over the pieces i of word u of Σ_{pieces j of word v} w_ij`: the weights *to* the pieces of a word are
    added and the weights *from* them averaged, so that the attention of a word still sums to one.

    Args:
        weights: between tokens.
        query_words: number of the word to which each query token belongs, counted from 0; −1 leaves it out.
        key_words: the same for the keys. The weight on a key that is left out is lost.

    Raises:
        ValueError: there is no word, or one before the last has no token.

    Source: Clark et al. (2019), section 4.1.
    """
    _check_words("query_words", query_words)
    _check_words("key_words", key_words)

    def pieces(words):  # 1 where a token is a piece of a word, (L, number of words)
        number = torch.arange(words.max() + 1, device=words.device)
        return (words[:, None] == number).to(weights.dtype)

    queries, keys = pieces(query_words), pieces(key_words)
    return (queries / queries.sum(0)).T @ weights @ keys  # (..., query words, key words)


def _check_words(name: str, words: Tensor) -> None:
    numbers = words[words >= 0].unique()
    if not len(numbers) or numbers[-1] >= len(numbers):
        raise ValueError(f"{name} must number the words 0, 1, 2, … without gaps, got {numbers.tolist()}")
