"""Headings of the book that the mistakes of several exercises point to: page, colon, heading; and titles of pages."""

from __future__ import annotations

__all__ = [
    "DECODER_LAYER",
    "DIVIDE_BY_ROOT",
    "ENCODER_LAYER",
    "GREEDY_DECODING",
    "PRE_OR_POST",
    "RESIDUALS",
    "TITLES",
    "VIEW_BUG",
]


VIEW_BUG = "view_transpose_contiguous: The bug"
GREEDY_DECODING = "decoding: Greedy decoding"
DIVIDE_BY_ROOT = "scaled_dot_product: Why divide by the root of d"
RESIDUALS = "transformer: Residual connections and layer norm"
PRE_OR_POST = "pre_norm_post_norm: Pre-norm and post-norm"
ENCODER_LAYER = "transformer: The encoder layer"
DECODER_LAYER = "transformer: The decoder layer"

# Titles of pages that exercises point to, without what follows a colon.
TITLES = {
    "attention_as_explanation": "Is attention an explanation?",
    "attention_bugs": "Bugs in attention code",
    "attention_recurrence_convolution": "Attention, recurrence and convolution compared",
    "attention_scores": "Additive, dot-product and scaled dot-product attention compared",
    "attention_rollout": "Attention rollout against gradients and leaving tokens out",
    "batches_by_tokens": "Batches by tokens",
    "beam_search": "Beam search",
    "bleu": "BLEU",
    "cost_of_attention": "What attention costs",
    "cost_of_heads": "What heads cost",
    "kernel_regression": "Kernel regression",
    "key_value_cache": "The key–value cache",
    "length_penalty": "Length penalty",
    "linear_attention": "Linear attention",
    "lora": "LoRA",
    "mask_bugs": "Bugs in attention masks",
    "masks_in_half_precision": "Masks in half precision",
    "mixture_of_experts": "Mixture of experts",
    "model_bugs": "Model bugs",
    "notation": "Notation",
    "pre_norm_post_norm": "Pre-norm and post-norm in deep stacks",
    "relative_positions": "Relative positions",
    "shift_is_a_rotation": "Sinusoidal positions",
    "sliding_window_attention": "Sliding window attention",
    "softmax_saturation": "Softmax saturation",
    "speculative_decoding": "Speculative decoding",
    "transformer_parameters": "How many parameters a transformer has",
    "view_transpose_contiguous": "Tensors in memory",
}
