"""Exercises of the chapter on positions, in the order of the page."""

__all__ = ["EXERCISES"]

EXERCISES = ("sinusoidal_encoding", "learned_positional_embedding", "shift_matrix", "apply_rotary", "alibi_bias")
