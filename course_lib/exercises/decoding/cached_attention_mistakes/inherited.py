"""Mistakes in `cached_attention`: those of the attention inside it."""

from __future__ import annotations

from course_lib.exercises._mistakes import Mistakes
from course_lib.exercises.decoding.cached_attention_mistakes.parts import cached
from course_lib.exercises.scaled_dot_product.scaled_dot_product_attention import exercise as attention_exercise

mistake = Mistakes()


def _with_attention(attention):
    """The step with a wrong attention."""
    return cached(attend=lambda query, key, value: attention(query, key, value)[0])


mistake.contains(attention_exercise, _with_attention, called="attention")
