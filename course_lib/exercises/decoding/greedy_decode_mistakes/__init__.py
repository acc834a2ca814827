"""The mistakes in `greedy_decode` by theme, in the order in which they are tried."""

from course_lib.exercises._mistakes import Mistakes
from course_lib.exercises.decoding.greedy_decode_mistakes import loop_and_result, steps_exchanged

__all__ = ["mistake"]

mistake = Mistakes(loop_and_result, steps_exchanged)
