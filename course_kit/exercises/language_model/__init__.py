"""Exercises of the chapter on today's language models, in the order of the pages."""

__all__ = ["EXERCISES"]

EXERCISES = (
    "next_token_loss",
    "rms_norm",
    "swiglu",
    "induction_score",
    "rotary_attention",
    "dequantise",
    "lora",
    "load_balancing_loss",
)
