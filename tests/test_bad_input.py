"""What cannot be computed is refused at the door: the error says what was expected and what came."""

from __future__ import annotations

import math

import pytest
import torch

import course_lib as cl
from course_kit import nn as full
from course_kit.nn import LearnedPositionalEmbedding, SinusoidalPositionalEncoding
from course_lib.training import label_smoothing_loss

pytestmark = pytest.mark.usefixtures("unchecked")

T = torch.ones
OPEN = torch.tensor([True, False, True])
IDS = torch.tensor([[3, 4, 0]])


def says(value):
    """A model that always returns the same."""
    return lambda tokens: value


NAN = says(torch.full((5,), math.nan))
GOOD = says(torch.full((5,), 0.2).log())

REFUSED = {
    # attention
    "another batch": (lambda: cl.dot_product_score(T(2, 3, 4), T(3, 3, 4)), ValueError, "the same axes in place"),
    "a vector as query": (lambda: cl.dot_product_score(T(4), T(3, 4)), ValueError, r"query must be .*, got \(4,\)"),
    "two precisions": (lambda: cl.dot_product_score(T(3, 4), T(3, 4).double()), TypeError, "query and key.*same dtype"),
    "additive batch": (
        lambda: cl.additive_score(T(2, 3, 4), T(3, 3, 4), T(5, 4), T(5, 4), T(5)), ValueError, "the same axes in place",
    ),
    "additive v": (lambda: cl.additive_score(T(3, 4), T(3, 4), T(5, 4), T(5, 4), T(())), ValueError, "v must be"),
    "attend batch": (lambda: cl.attend(T(2, 3, 3), T(3, 3, 4)), ValueError, "scores and value must have the same axes"),
    "attend to a vector": (lambda: cl.attend(T(3, 3), T(3)), ValueError, r"value must be .*, got \(3,\)"),
    "one y too few": (lambda: cl.kernel_regression(T(2), T(3), T(2), 1.0), ValueError, "one y for each known x"),
    # scaled dot product
    "batch of query and key": (
        lambda: cl.scaled_dot_product_attention(T(2, 3, 4), T(3, 3, 4), T(3, 3, 4)), ValueError, "query and key must",
    ),
    "batch of value": (
        lambda: full.fused_attention(T(2, 3, 4), T(2, 3, 4), T(3, 3, 4)), ValueError, "query, key and value must",
    ),
    "integers": (
        lambda: cl.scaled_dot_product_attention(*3 * [T(3, 4, dtype=torch.int64)]), TypeError, "floating-point",
    ),
    "mask as a list": (
        lambda: cl.scaled_dot_product_attention(T(3, 4), T(3, 4), T(3, 4), [True]), TypeError, "bool tensor.*got list",
    ),
    "transposed projection": (
        lambda: cl.self_attention(T(3, 4), T(5, 4), T(4, 5), T(4, 2)), ValueError, r"w_q must .*\(5, 4\).*transposed",
    ),
    "projections of two widths": (
        lambda: cl.self_attention(T(3, 4), T(4, 5), T(4, 2), T(4, 2)), ValueError, "w_q and w_k must agree in d_k",
    ),
    "negative flops": (lambda: cl.attention_flops(3, -1, 4, 4), ValueError, "len_k must be at least 0, got -1"),
    "a gradient too many": (lambda: cl.softmax_backward(T(3), T(4)), ValueError, "one gradient per weight"),
    # masking
    "scores of one axis": (lambda: cl.masked_softmax(T(3), OPEN), ValueError, r"scores must be .*, got \(3,\)"),
    "integer scores": (lambda: cl.masked_softmax(T(3, 3).int(), OPEN), TypeError, "floating-point.*got torch.int32"),
    "tokens of one sentence": (lambda: cl.padding_mask(IDS[0], 0), ValueError, r"\(batch, length\), got \(3,\)"),
    "tokens of three axes": (lambda: cl.padding_mask(IDS[None], 0), ValueError, r"\(batch, length\)"),
    "float tokens": (lambda: cl.decoder_mask(IDS.float(), 0), TypeError, "an integer tensor, got torch.float32"),
    "negative length": (lambda: cl.causal_mask(-1), ValueError, "length must be at least 0, got -1"),
    "half a position": (lambda: cl.causal_mask(2.5), TypeError, "length must be a whole number, got 2.5"),
    "half a window": (lambda: cl.sliding_window_mask(4, 1.5), TypeError, "window must be a whole number, got 1.5"),
    # positions
    "length of a table": (lambda: cl.sinusoidal_encoding(-1, 4), ValueError, "length must be at least 0, got -1"),
    "a table of 2.5 rows": (lambda: cl.sinusoidal_encoding(2.5, 4), TypeError, "length must be a whole number"),
    "no features": (lambda: cl.sinusoidal_encoding(3, 0), ValueError, "d_model must be at least 1"),
    "offset NaN": (lambda: cl.shift_matrix(math.nan, 4), ValueError, "offset must be a finite number, got nan"),
    "rotary of integers": (
        lambda: cl.apply_rotary(T(3, 4).long(), torch.arange(3)), TypeError, "floating-point tensor, got torch.int64",
    ),
    "rotary of a vector": (lambda: cl.apply_rotary(T(4), torch.arange(1)), ValueError, r"x must be \(..., length, d\)"),
    "negative base": (lambda: cl.apply_rotary(T(3, 4), torch.arange(3), -2.0), ValueError, "base must be positive"),
    "NaN as base": (lambda: cl.apply_rotary(T(3, 4), torch.arange(3), math.nan), ValueError, "base must be positive"),
    "2.5 heads": (lambda: cl.alibi_bias(2.5, 3), TypeError, "num_heads must be a whole number, got 2.5"),
    "ALiBi length": (lambda: cl.alibi_bias(2, -3), ValueError, "length must be at least 0, got -3"),
    "offset of the table": (
        lambda: SinusoidalPositionalEncoding(4)(T(1, 3, 4), offset=-1), ValueError, "offset must be at least 0, got -1",
    ),
    "offset of learned": (
        lambda: LearnedPositionalEmbedding(5, 4)(T(1, 3, 4), offset=-3), ValueError, "offset must be at least 0",
    ),
    "a table without rows": (lambda: LearnedPositionalEmbedding(0, 4), ValueError, "max_length must be at least 1"),
    # heads and layers
    "heads of a vector": (lambda: cl.split_heads(T(4), 2), ValueError, r"x must be \(..., length, d_model\)"),
    "2.0 heads": (lambda: cl.split_heads(T(3, 4), 2.0), TypeError, "num_heads must be a whole number, got 2.0"),
    "merged without heads": (lambda: cl.merge_heads(T(3, 4)), ValueError, r"num_heads, length, d_head\), got"),
    "negative width": (lambda: cl.multi_head_parameter_count(-8, 2), ValueError, "d_model must be at least 0, got -8"),
    "gain": (lambda: cl.layer_norm(T(3, 4), T(3), T(4)), ValueError, r"agree in d, got x \(3, 4\) .*gain \(3,\)"),
    "gain per position": (lambda: cl.layer_norm(T(3, 4), T(3, 4), T(4)), ValueError, "gain must be"),
    "negative layers": (lambda: cl.transformer_parameter_count(9, 8, -1, 4), ValueError, "num_layers must be at least"),
    "2.5 layers": (lambda: full.TransformerConfig(num_layers=2.5), TypeError, "num_layers must be a whole number"),
    "NaN heads": (lambda: full.TransformerConfig(num_heads=math.nan), TypeError, "num_heads must be a whole number"),
    "dropout in words": (lambda: full.TransformerConfig(dropout="much"), TypeError, "dropout must be a number"),
    "pad_id 0.5": (lambda: full.TransformerConfig(pad_id=0.5), TypeError, "pad_id must be a whole number"),
    "uint8 tokens": (
        lambda: full.LanguageModel(
            full.TransformerConfig(vocab_size=9, d_model=4, num_heads=1, num_layers=1, d_ff=4)
        )(IDS.to(torch.uint8)),
        TypeError, r"tokens must be int64 or int32, got torch.uint8; pass tokens.long\(\)",
    ),
    # training and decoding
    "float targets": (
        lambda: label_smoothing_loss(T(2, 3), T(2), 0.1, 0), TypeError, "targets must be an integer tensor",
    ),
    "greedy, NaN": (lambda: cl.greedy_decode(NAN, 0, 1, 5), ValueError, r"got torch.float32 \(5,\) with NaN"),
    "greedy, batch": (lambda: cl.greedy_decode(says(T(1, 5)), 0, 1, 5), ValueError, r"got torch.float32 \(1, 5\)"),
    "greedy, list": (lambda: cl.greedy_decode(says([0.1, 0.9]), 0, 1, 5), ValueError, "got list"),
    "beam, NaN": (lambda: cl.beam_search(NAN, 0, 1, 2, 5), ValueError, "without NaN"),
    "2.5 tokens": (lambda: cl.greedy_decode(GOOD, 0, 1, 2.5), TypeError, "max_length must be a whole number, got 2.5"),
    "beam of 1.5": (lambda: cl.beam_search(GOOD, 0, 1, 1.5, 3), TypeError, "beam_size must be a whole number, got 1.5"),
    "penalty 1e308": (
        lambda: cl.beam_search(GOOD, 0, 1, 2, 3, length_penalty=1e308), ValueError, r"in \[-10, 10\], got 1e\+308",
    ),
    "penalty NaN": (lambda: cl.beam_search(GOOD, 0, 1, 2, 3, length_penalty=math.nan), ValueError, "got nan"),
    "NaN logits": (lambda: cl.top_p_filter(torch.tensor([0.0, math.nan]), 0.5), ValueError, "without NaN"),
    "sentences as strings": (lambda: cl.corpus_bleu(["a b"], [["a", "b"]]), TypeError, "hypotheses.*the string 'a b'"),
    "references as strings": (lambda: cl.corpus_bleu([["a"]], ["a"]), TypeError, r"references.*sentence.split\(\)"),
    "one step, vectors": (lambda: cl.cached_attention(T(4), T(4), T(4)), ValueError, r"query must be \(..., 1, d_k\)"),
}  # fmt: skip


@pytest.mark.parametrize(("call", "error", "message"), REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_computed_is_refused(call, error, message):
    with pytest.raises(error, match=message) as caught:
        call()
    assert caught.value.__suppress_context__ or caught.value.__context__ is None  # raised once


def test_what_broadcasts_is_computed():
    """Heads may share keys and values: only what no matrix product takes is refused."""
    query, key = torch.randn(2, 3, 5, 4), torch.randn(7, 4)
    output, weights = cl.scaled_dot_product_attention(query, key, key)
    assert (output.shape, weights.shape) == ((2, 3, 5, 4), (2, 3, 5, 7))
