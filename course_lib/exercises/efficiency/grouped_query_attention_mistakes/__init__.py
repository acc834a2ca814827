"""The mistakes in `grouped_query_attention` by theme, in the order in which they are tried."""

from course_lib.exercises._mistakes import Mistakes
from course_lib.exercises.efficiency.grouped_query_attention_mistakes import groups, inherited, within_a_head

__all__ = ["mistake"]

mistake = Mistakes(groups, within_a_head, inherited)
