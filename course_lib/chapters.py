"""The chapters in reading order: the one list that page, module, exercises, tests and the map of chapters share."""

from typing import NamedTuple

__all__ = ["CHAPTERS", "Chapter"]


class Chapter(NamedTuple):
    """A chapter.

    Args:
        stem: names its page, module, exercises and test: `book/<stem>.md`, `course_lib/<stem>.py` and so on.
        name: a short one, for the map.
        line: what it is about, in a few words.
    """

    stem: str
    name: str
    line: str


CHAPTERS = (
    Chapter("attention", "Attention", "an average that chooses"),
    Chapter("scaled_dot_product", "Scaled dot product", "softmax(QKᵀ/√d)V"),
    Chapter("multi_head", "Multi-head", "several at once"),
    Chapter("masking", "Masking", "who may look where"),
    Chapter("positional_encoding", "Positions", "telling order"),
    Chapter("transformer", "Transformer", "all of it, stacked"),
    Chapter("training", "Training", "German into English"),
    Chapter("decoding", "Decoding", "from probabilities to text"),
    Chapter("inspection", "Inside a model", "what attention maps show"),
)
