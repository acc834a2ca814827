"""The mistakes in `beam_search` by theme, in the order in which they are tried."""

from course_lib.exercises._mistakes import Mistakes
from course_lib.exercises.decoding.beam_search_mistakes import (
    beam,
    candidates,
    scores,
    steps_and_results,
    sums_and_choices,
)

__all__ = ["mistake"]

mistake = Mistakes(beam, scores, steps_and_results, candidates, sums_and_choices)
