"""The mistakes in `LearnedPositionalEmbedding` by theme, in the order in which they are tried."""

from course_lib.exercises._mistakes import Mistakes
from course_lib.exercises.positional_encoding.learned_positional_embedding_mistakes import (
    parameters_and_gradients,
    too_long,
    what_is_added,
)

__all__ = ["mistake"]

mistake = Mistakes(what_is_added, too_long, parameters_and_gradients)
