"""Exercises of the chapter on masks, in the order of the page."""

__all__ = ["EXERCISES"]

EXERCISES = ("padding_mask", "causal_mask", "decoder_mask", "masked_softmax", "sliding_window_mask")
