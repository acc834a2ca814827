"""Exercises of the chapter on scaled dot-product attention, in the order of the page."""

__all__ = ["EXERCISES"]

EXERCISES = ("scaled_dot_product_attention", "self_attention", "softmax_backward", "attention_flops")
