"""The parts that have a place in a transformer, which of them contain others, and what a model always has."""

from __future__ import annotations

__all__ = [
    "ALWAYS_THERE",
    "CLASSES",
    "CONTAINS",
    "INSIDE_ATTENTION",
    "OURS",
    "PLACES",
    "POSITIONS",
    "STUB",
    "WITH_A_DECODER",
    "YOURS",
]

# Every part that has a place, in reading order.
PLACES = (
    *("softmax", "attend", "scaled_dot_product_attention", "split_heads", "merge_heads", "MultiHeadAttention"),
    *("padding_mask", "causal_mask", "decoder_mask", "masked_softmax", "sinusoidal_encoding"),
    *("LearnedPositionalEmbedding", "apply_rotary", "alibi_bias", "layer_norm", "FeedForward"),
    *("EncoderLayer", "DecoderLayer"),
)
CLASSES = ("MultiHeadAttention", "LearnedPositionalEmbedding", "FeedForward", "EncoderLayer", "DecoderLayer")
# Which part does the work of which others: where yours is put in, nothing is left to do for those.
CONTAINS = {
    "MultiHeadAttention": (
        *("split_heads", "scaled_dot_product_attention", "merge_heads"),
        *("masked_softmax", "attend", "softmax"),
    ),
    "scaled_dot_product_attention": ("masked_softmax", "attend", "softmax"),
    "masked_softmax": ("attend", "softmax"),
    "attend": ("softmax",),
    "decoder_mask": ("causal_mask",),
}
INSIDE_ATTENTION = CONTAINS["MultiHeadAttention"]
POSITIONS = {
    "sinusoidal": "sinusoidal_encoding",
    "learned": "LearnedPositionalEmbedding",
    "rotary": "apply_rotary",
    "alibi": "alibi_bias",
}
# The parts of a model when none are passed.
ALWAYS_THERE = {
    *("scaled_dot_product_attention", "split_heads", "merge_heads", "MultiHeadAttention"),
    *("layer_norm", "FeedForward", "EncoderLayer"),
}
WITH_A_DECODER = {"padding_mask", "causal_mask", "decoder_mask", "masked_softmax", "DecoderLayer"}
YOURS, OURS, STUB = "yours", "the course's", "the course's (yours is a stub)"
