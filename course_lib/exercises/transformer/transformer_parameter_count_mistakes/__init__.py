"""The mistakes in `transformer_parameter_count` by theme, in the order in which they are tried."""

from course_lib.exercises._mistakes import Mistakes
from course_lib.exercises.transformer.transformer_parameter_count_mistakes import (
    embeddings_and_biases,
    layers_and_norms,
    two_at_once,
)

__all__ = ["mistake"]

mistake = Mistakes(embeddings_and_biases, layers_and_norms, two_at_once)
