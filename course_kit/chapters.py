"""The chapters in reading order: the one list that page, module, exercises, tests and title page share.

A stem names a chapter's page, module, exercises and test: `book/<stem>.md`, `course_lib/<stem>.py` and so on.
"""

__all__ = ["STEMS"]

STEMS = (
    "attention",
    "scaled_dot_product",
    "multi_head",
    "masking",
    "positional_encoding",
    "transformer",
    "training",
    "debugging",
    "decoding",
    "inspection",
    "efficiency",
    "language_model",
)
