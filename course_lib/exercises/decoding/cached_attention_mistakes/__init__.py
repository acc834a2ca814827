"""The mistakes in `cached_attention` by theme, in the order in which they are tried."""

from course_lib.exercises._mistakes import Mistakes
from course_lib.exercises.decoding.cached_attention_mistakes import (
    attention,
    attention_exchanged,
    cache,
    cache_exchanged,
    inherited,
    results,
)

__all__ = ["mistake"]

mistake = Mistakes(cache, attention, results, attention_exchanged, cache_exchanged, inherited)
