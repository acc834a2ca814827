"""Exercises of the chapter on several heads, in the order of the page."""

__all__ = ["EXERCISES"]

EXERCISES = ("split_heads", "merge_heads", "multi_head_attention", "multi_head_parameter_count")
