"""The mistakes in `tiled_attention` by theme, in the order in which they are tried."""

from course_lib.exercises._mistakes import Mistakes
from course_lib.exercises.efficiency.tiled_attention_mistakes import blocks, inherited, online_softmax, results, scale

__all__ = ["mistake"]

mistake = Mistakes(online_softmax, blocks, scale, results, inherited)
