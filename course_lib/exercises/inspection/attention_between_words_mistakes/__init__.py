"""The mistakes in `attention_between_words` by theme, in the order in which they are tried."""

from course_lib.exercises._mistakes import Mistakes
from course_lib.exercises.inspection.attention_between_words_mistakes import left_out, numbers_and_axes, sums_and_pieces

__all__ = ["mistake"]

mistake = Mistakes(sums_and_pieces, left_out, numbers_and_axes)
