"""One wrong argument in each public function of the chapters: refused by name, or computed as its signature says."""

from __future__ import annotations

import torch
from wrong_arguments import Call, floats, right_and_wrong, weights

import course_lib as cl
from course_kit import nn as full
from course_kit._checks import check_tokens
from course_kit.beam_trace import beam_trace
from course_kit.chunked_linear_attention import chunked_linear_attention
from course_kit.flash_attention import TiledAttention, flash_attention
from course_kit.interpret.readouts import leave_one_out_labels
from course_kit.interpret.weighted_values import distant_twin_weights, twin_weights
from course_kit.nn import named_attentions
from course_kit.nn.attention import attention_with_bias, check_mask, unmask_empty_rows
from course_kit.stats import bootstrap_interval, rank_correlation
from course_kit.translator.alignments import alignment_counts, alignment_error_rate, attention_alignment
from course_lib import language_model as block

IDS = torch.tensor([[3, 4, 0], [3, 3, 4]])
OPEN = torch.tensor([True, False, True])
# Kinds of wrong values that each of these arguments admits: batches broadcast; of another precision than the weights',
# autocast decides, and otherwise PyTorch's own layers say what does not fit.
NAMES = ("query", "key", "value", "x", "memory", "scores", "weights", "grad_weights", "target", "draft")
NAMES += ("maximum", "total", "output")
BATCHES, DOUBLE = dict.fromkeys(NAMES, "one axis (more|less)"), dict.fromkeys(NAMES, "double")
ANY_DTYPE = "complex|integers|bool"
QUERY, KEY, VALUE = floats(2, 3, 4), floats(2, 5, 4), floats(2, 5, 6)
WEIGHTS = weights(2, 2, 3, 3)  # (B, H, L, L)
BLOCK = {"d_model": 8, "num_heads": 4, "num_kv_heads": 2, "d_ff": 5}
ATTENTION = {"query": QUERY, "key": KEY, "value": VALUE}
BIASED = {**ATTENTION, "mask": torch.ones(3, 5).bool(), "bias": floats(3, 5), "dropout": 0.0}
DECODED = {
    "x": floats(2, 3, 4),
    "memory": floats(2, 5, 4),
    "self_mask": torch.ones(3, 3).bool(),
    "memory_mask": torch.ones(3, 5).bool(),
}


def log_probs(tokens):
    """A model that always finds the same tokens probable."""
    return torch.tensor([0.1, 0.2, 0.3, 0.4]).log()


SEARCH = {"next_log_probs": log_probs, "bos_id": 0, "eos_id": 1, "max_length": 3}

CALLS = {
    # attention
    "softmax": Call(cl.softmax, {"scores": floats(3, 4), "dim": -1}),
    "dot_product_score": Call(cl.dot_product_score, {"query": QUERY, "key": KEY}, open=BATCHES),
    "additive_score": Call(
        cl.additive_score,
        {"query": QUERY, "key": KEY, "w_query": floats(7, 4), "w_key": floats(7, 4), "v": floats(7)},
        called={"query": "w_query", "key": "w_key"},
        open=BATCHES,
    ),
    "attend": Call(cl.attend, {"scores": floats(2, 3, 5), "value": VALUE}, open=BATCHES),
    "kernel_regression": Call(
        cl.kernel_regression, {"x_query": floats(3), "x_key": floats(5), "y_key": floats(5), "bandwidth": 0.5}
    ),
    "AdditiveScore": Call(cl.AdditiveScore, {"d_query": 4, "d_key": 5, "d_attn": 3}, draws=True),
    # scaled dot product
    "scaled_dot_product_attention": Call(
        cl.scaled_dot_product_attention, {**ATTENTION, "mask": torch.ones(3, 5).bool()}, open=BATCHES
    ),
    "attention_with_bias": Call(attention_with_bias, BIASED, open=BATCHES),
    "fused_attention": Call(full.fused_attention, BIASED, open=BATCHES),
    "self_attention": Call(
        cl.self_attention,
        {"x": QUERY, "w_q": floats(4, 3), "w_k": floats(4, 3), "w_v": floats(4, 6), "mask": torch.ones(3, 3).bool()},
        open=BATCHES,
    ),
    "softmax_backward": Call(
        cl.softmax_backward, {"weights": weights(3, 4), "grad_weights": floats(3, 4)}, open=BATCHES
    ),
    "attention_flops": Call(cl.attention_flops, {"len_q": 2, "len_k": 3, "d_k": 4, "d_v": 5}),
    # language model
    "rms_norm": Call(block.rms_norm, {"x": floats(2, 3, 4), "gain": floats(4), "eps": 1e-5}, open=BATCHES),
    "swiglu": Call(
        block.swiglu,
        {"x": floats(2, 3, 4), "w_gate": floats(5, 4), "w_up": floats(5, 4), "w_down": floats(4, 5)},
        open=BATCHES,
    ),
    "RMSNorm": Call(block.RMSNorm, {"d_model": 4, "eps": 1e-5}),
    "SwiGLU": Call(block.SwiGLU, {"d_model": 4, "d_ff": 5}, draws=True),
    "RotaryAttention": Call(
        block.RotaryAttention, {"d_model": 8, "num_heads": 4, "num_kv_heads": 2, "base": 100.0}, draws=True
    ),
    "LanguageBlock": Call(block.LanguageBlock, {**BLOCK, "base": 100.0, "eps": 1e-5}, draws=True),
    "LanguageModel": Call(
        block.LanguageModel, {"vocab_size": 7, "num_layers": 1, **BLOCK, "base": 100.0, "eps": 1e-5}, draws=True
    ),
    "RotaryAttention.forward": Call(block.RotaryAttention(8, 4, 2), {"x": floats(2, 3, 8)}, open=DOUBLE),
    "LanguageBlock.forward": Call(block.LanguageBlock(**BLOCK), {"x": floats(2, 3, 8)}, open=DOUBLE),
    "LanguageModel.forward": Call(block.LanguageModel(7, num_layers=1, **BLOCK), {"tokens": IDS}),
    "next_token_loss": Call(
        block.next_token_loss,
        {"logits": floats(2, 3, 7), "tokens": IDS, "counted": torch.ones(2, 3).bool()},
        called={"logits": "logits|tokens"},
    ),
    "dequantise": Call(
        block.dequantise,
        {"blocks": torch.zeros(3, 18, dtype=torch.uint8), "kind": "Q4_0"},
        open={"blocks": "negative"},  # as bytes of a scale, they are NaN
    ),
    "induction_score": Call(block.induction_score, {"weights": weights(2, 5, 5), "period": 2}, open=BATCHES),
    "lora": Call(
        block.lora,
        {"x": floats(2, 3, 4), "weight": floats(5, 4), "a": floats(2, 4), "b": floats(5, 2), "alpha": 2.0},
        open=BATCHES,
    ),
    "load_balancing_loss": Call(
        block.load_balancing_loss, {"router_probs": weights(3, 4), "chosen": torch.tensor([0, 3, 3])}
    ),
    # efficiency
    "convolution_layers": Call(cl.convolution_layers, {"length": 9, "kernel_size": 3, "dilated": False}),
    "online_softmax_step": Call(
        cl.online_softmax_step,
        {
            "maximum": floats(2, 3),
            "total": floats(2, 3),
            "output": floats(2, 3, 6),
            "scores": floats(2, 3, 5),
            "value": VALUE,
        },
        open=BATCHES,
    ),
    "tiled_attention": Call(cl.tiled_attention, {**ATTENTION, "block_size": 2}, open=BATCHES),
    "grouped_query_attention": Call(
        cl.grouped_query_attention,
        {"query": floats(1, 4, 3, 5), "key": floats(1, 2, 6, 5), "value": floats(1, 2, 6, 5)},
    ),
    "cache_bytes": Call(
        cl.cache_bytes,
        {"num_layers": 2, "num_kv_heads": 3, "d_head": 4, "length": 5, "batch_size": 1, "bytes_per_number": 2},
    ),
    "linear_attention": Call(cl.linear_attention, {"query": floats(2, 5, 4), "key": KEY, "value": VALUE}, open=BATCHES),
    "chunked_linear_attention": Call(
        chunked_linear_attention, {"query": floats(2, 5, 4), "key": KEY, "value": VALUE, "chunk_size": 2}, open=BATCHES
    ),
    "speculative_acceptance": Call(
        cl.speculative_acceptance, {"target": weights(2, 4), "draft": weights(2, 4)}, open=BATCHES
    ),
    "flash_attention": Call(
        flash_attention,
        {**ATTENTION, "block_size": 2, "causal": True},
        covers=(flash_attention, TiledAttention),
        open=BATCHES,
    ),
    # masking
    "causal_mask": Call(cl.causal_mask, {"length": 3}),
    "decoder_mask": Call(cl.decoder_mask, {"tokens": IDS, "pad_id": 0}, open={"tokens": "bool|bytes"}),
    "padding_mask": Call(cl.padding_mask, {"tokens": IDS, "pad_id": 0}, open={"tokens": "bool|bytes"}),
    "masked_softmax": Call(cl.masked_softmax, {"scores": floats(2, 3, 3), "mask": OPEN}),
    "sliding_window_mask": Call(cl.sliding_window_mask, {"length": 4, "window": 2}),
    "check_mask": Call(lambda mask: check_mask(mask, (3, 3)), {"mask": OPEN}),
    "check_tokens": Call(check_tokens, {"tokens": IDS}),
    "unmask_empty_rows": Call(unmask_empty_rows, {"mask": torch.ones(3, 5).bool()}),
    # positions
    "sinusoidal_encoding": Call(cl.sinusoidal_encoding, {"length": 3, "d_model": 4}),
    "shift_matrix": Call(cl.shift_matrix, {"offset": 2, "d_model": 4}, open={"offset": "half"}),
    "apply_rotary": Call(cl.apply_rotary, {"x": floats(2, 3, 4), "positions": torch.arange(3), "base": 100.0}),
    "alibi_bias": Call(cl.alibi_bias, {"num_heads": 2, "length": 3}),
    "SinusoidalPositionalEncoding": Call(full.SinusoidalPositionalEncoding, {"d_model": 4}),
    "SinusoidalPositionalEncoding.forward": Call(
        full.SinusoidalPositionalEncoding(4), {"x": floats(2, 3, 4), "offset": 1}, open=BATCHES
    ),
    "cl.LearnedPositionalEmbedding": Call(cl.LearnedPositionalEmbedding, {"max_length": 5, "d_model": 4}, draws=True),
    "cl.LearnedPositionalEmbedding.forward": Call(cl.LearnedPositionalEmbedding(5, 4), {"x": floats(2, 3, 4)}),
    "LearnedPositionalEmbedding": Call(full.LearnedPositionalEmbedding, {"max_length": 5, "d_model": 4}, draws=True),
    "LearnedPositionalEmbedding.forward": Call(
        full.LearnedPositionalEmbedding(5, 4), {"x": floats(2, 3, 4), "offset": 1}, called={"offset": "x"}, open=BATCHES
    ),
    "RotaryPosition": Call(full.RotaryPosition, {"base": 100.0}),
    "RotaryPosition.rotate": Call(
        full.RotaryPosition().rotate,
        {"query": floats(2, 2, 3, 4), "key": floats(2, 2, 5, 4), "positions": torch.arange(5)},
        called={"query": "x", "key": "x"},
        open=BATCHES,
    ),
    "AlibiPosition.bias": Call(
        full.AlibiPosition().bias,
        {"query": floats(2, 2, 3, 4), "key": floats(2, 2, 5, 4), "positions": torch.arange(5)},
    ),
    # heads
    "split_heads": Call(
        cl.split_heads, {"x": floats(2, 3, 4), "num_heads": 2}, called={"x": "d_model"}, open={"x": ANY_DTYPE}
    ),
    "merge_heads": Call(cl.merge_heads, {"x": floats(2, 2, 3, 4)}, open={"x": ANY_DTYPE}),
    "multi_head_parameter_count": Call(cl.multi_head_parameter_count, {"d_model": 8, "num_heads": 2}),
    "cl.MultiHeadAttention": Call(cl.MultiHeadAttention, {"d_model": 4, "num_heads": 2}, draws=True),
    "cl.MultiHeadAttention.forward": Call(
        cl.MultiHeadAttention(4, 2),
        {"query": QUERY, "key": KEY, "value": floats(2, 5, 4), "mask": torch.ones(3, 5).bool()},
        open=DOUBLE,
    ),
    "MultiHeadAttention": Call(full.MultiHeadAttention, {"d_model": 4, "num_heads": 2, "dropout": 0.1}, draws=True),
    "MultiHeadAttention.forward": Call(
        full.MultiHeadAttention(4, 2),
        {"query": QUERY, "key": KEY, "value": floats(2, 5, 4), "mask": torch.ones(3, 5).bool()},
        open=DOUBLE,
    ),
    "named_attentions": Call(named_attentions, {"model": full.MultiHeadAttention(4, 2)}),
    # layers
    "layer_norm": Call(cl.layer_norm, {"x": floats(2, 3, 4), "gain": floats(4), "bias": floats(4), "eps": 1e-5}),
    "cl.FeedForward": Call(cl.FeedForward, {"d_model": 4, "d_ff": 8}, draws=True),
    "cl.FeedForward.forward": Call(cl.FeedForward(4, 8), {"x": floats(2, 3, 4)}, open=DOUBLE),
    "cl.EncoderLayer": Call(cl.EncoderLayer, {"d_model": 4, "num_heads": 2, "d_ff": 8}, draws=True),
    "cl.EncoderLayer.forward": Call(
        cl.EncoderLayer(4, 2, 8), {"x": floats(2, 3, 4), "mask": torch.ones(3, 3).bool()}, open=DOUBLE
    ),
    "cl.DecoderLayer": Call(cl.DecoderLayer, {"d_model": 4, "num_heads": 2, "d_ff": 8}, draws=True),
    "cl.DecoderLayer.forward": Call(cl.DecoderLayer(4, 2, 8), DECODED, open=DOUBLE),
    "FeedForward": Call(
        full.FeedForward,
        {"d_model": 4, "d_ff": 8, "dropout": 0.1, "activation": torch.relu},
        open={"activation": "returns None"},
        draws=True,
    ),
    "FeedForward.forward": Call(full.FeedForward(4, 8), {"x": floats(2, 3, 4)}, open=DOUBLE),
    "EncoderLayer": Call(
        full.EncoderLayer,
        {"d_model": 4, "num_heads": 2, "d_ff": 8, "dropout": 0.1, "activation": torch.relu, "norm_eps": 1e-5},
        open={"activation": "returns None"},
        draws=True,
    ),
    "EncoderLayer.forward": Call(
        full.EncoderLayer(4, 2, 8),
        {"x": floats(2, 3, 4), "mask": torch.ones(3, 3).bool()},
        called={"x": "query"},
        open=DOUBLE,
    ),
    "DecoderLayer": Call(full.DecoderLayer, {"d_model": 4, "num_heads": 2, "d_ff": 8, "dropout": 0.1}, draws=True),
    "DecoderLayer.forward": Call(
        full.DecoderLayer(4, 2, 8),
        DECODED,
        called={"x": "query", "memory": "key", "self_mask": "mask", "memory_mask": "mask"},
        open=DOUBLE,
    ),
    "transformer_parameter_count": Call(
        cl.transformer_parameter_count, {"vocab_size": 9, "d_model": 4, "num_layers": 1, "d_ff": 8}
    ),
    # training
    "teacher_forcing_pair": Call(cl.teacher_forcing_pair, {"tokens": IDS}),
    "label_smoothing_loss": Call(
        cl.label_smoothing_loss,
        {"logits": floats(3, 5), "targets": torch.tensor([1, 4, 0]), "smoothing": 0.1, "pad_id": 0},
    ),
    "warmup_rate": Call(cl.warmup_rate, {"step": 3, "d_model": 8, "warmup_steps": 4}),
    "token_batches": Call(cl.token_batches, {"lengths": [3, 2, 4], "max_tokens": 6}),
    # decoding
    "greedy_decode": Call(cl.greedy_decode, SEARCH),
    "beam_search": Call(cl.beam_search, {**SEARCH, "beam_size": 2, "length_penalty": 0.5}),
    "beam_trace": Call(beam_trace, {**SEARCH, "beam_size": 2, "length_penalty": 0.5}),
    "top_p_filter": Call(cl.top_p_filter, {"logits": floats(3, 5), "p": 0.9}),
    "corpus_bleu": Call(cl.corpus_bleu, {"hypotheses": [["a", "b"], ["c"]], "references": [["a", "b"], ["c", "d"]]}),
    "cached_attention": Call(
        cl.cached_attention,
        {
            "query": floats(2, 1, 4),
            "key": floats(2, 1, 4),
            "value": floats(2, 1, 6),
            "cache": (floats(2, 3, 4), floats(2, 3, 6)),
        },
        open=BATCHES,
    ),
    # inspection
    "attention_entropy": Call(cl.attention_entropy, {"weights": WEIGHTS}),
    "attention_rollout": Call(cl.attention_rollout, {"weights": WEIGHTS[None]}),
    "head_scores": Call(
        cl.head_scores, {"weights": WEIGHTS, "tokens": IDS, "delimiters": [4], "mask": torch.ones(2, 1, 1, 3).bool()}
    ),
    "previous_token_score": Call(cl.previous_token_score, {"weights": WEIGHTS}),
    "head_switched_off": Call(
        cl.head_switched_off, {"heads": floats(2, 2, 3, 4), "weight": floats(8, 8), "bias": floats(8), "off": 1}
    ),
    "attention_between_words": Call(
        cl.attention_between_words,
        {"weights": weights(2, 3, 4), "query_words": torch.tensor([0, 0, 1]), "key_words": torch.tensor([0, 1, 1, 2])},
        called={"weights": "query_words|key_words"},
    ),
    "attention_alignment": Call(attention_alignment, {"weights": weights(3, 4)}),
    "alignment_counts": Call(alignment_counts, {"predicted": [(0, 1)], "sure": [(0, 1)], "possible": [(1, 1)]}),
    "alignment_error_rate": Call(alignment_error_rate, {"counts": torch.tensor([[1, 1, 2, 2]])}),
    "twin_weights": Call(twin_weights, {"weights": weights(3, 5), "values": floats(5, 2)}),
    "distant_twin_weights": Call(distant_twin_weights, {"weights": weights(3, 5), "values": floats(5, 2)}),
    "leave_one_out_labels": Call(
        leave_one_out_labels,
        {"vectors": floats(4, 3), "labels": torch.tensor([0, 0, 1, 1]), "folds": torch.tensor([0, 1, 0, 1])},
    ),
    "bootstrap_interval": Call(
        bootstrap_interval,
        {"values": floats(5), "statistic": torch.mean, "confidence": 0.9, "samples": 5, "seed": 0},
        called={"values": "statistic"},
        open={"values": "integers|bool"},
    ),
    "rank_correlation": Call(rank_correlation, {"x": floats(5), "y": floats(5).flip(0)}),
}


test_the_documented_shapes_come_out, test_a_wrong_argument_is_refused_by_name_or_computed = right_and_wrong(CALLS)
