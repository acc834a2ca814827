"""Exercises of the chapter on the inside of a trained model, in the order of the page."""

__all__ = ["EXERCISES"]

EXERCISES = (
    "attention_entropy",
    "attention_rollout",
    "previous_token_score",
    "attention_between_words",
    "head_switched_off",
)
