"""The mistakes in `token_batches` by theme, in the order in which they are tried."""

from course_lib.exercises._mistakes import Mistakes
from course_lib.exercises.training.token_batches_mistakes import long_sentences_and_lists, loops, order_and_form, room

__all__ = ["mistake"]

mistake = Mistakes(room, order_and_form, long_sentences_and_lists, loops)
