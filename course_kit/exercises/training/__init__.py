"""Exercises of the chapter on training, in the order of the page."""

__all__ = ["EXERCISES"]

EXERCISES = ("teacher_forcing_pair", "label_smoothing_loss", "warmup_rate", "token_batches")
