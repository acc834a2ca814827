"""Exercises of the chapter on attention as a weighted average, in the order of the page."""

__all__ = ["EXERCISES"]

EXERCISES = ("softmax", "additive_score", "attend", "kernel_regression")
