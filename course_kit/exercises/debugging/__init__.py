"""Exercises of the chapter on debugging, in the order of the pages: code to repair."""

__all__ = ["EXERCISES"]

EXERCISES = (
    "fix_loss",
    "fix_decoder_mask",
    "fix_decoder_attention",
    "fix_layer_stack",
    "fix_head_split",
    "fix_softmax",
    "fix_scaled_attention",
    "fix_attention_weights",
    "fix_masked_softmax",
    "fix_padding_mask",
    "fix_cached_attention",
    "fix_layer_norm",
)
