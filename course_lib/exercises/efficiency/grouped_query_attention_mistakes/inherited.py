"""Mistakes in `grouped_query_attention`: those of the attention inside it."""

from __future__ import annotations

from course_lib.exercises._mistakes import Mistakes
from course_lib.exercises.efficiency.grouped_query_attention_mistakes.parts import repeated
from course_lib.exercises.scaled_dot_product.scaled_dot_product_attention import exercise as attention_exercise

mistake = Mistakes()


def _of_repeated_heads(attention):
    """A wrong attention, of keys and values that are repeated rightly."""
    return lambda query, key, value: attention(*(query, *(repeated(x, query.shape[1]) for x in (key, value))))[0]


mistake.contains(attention_exercise, _of_repeated_heads, called="attention")
