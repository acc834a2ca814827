"""Mistakes in `tiled_attention`: those of the online softmax inside it."""

from __future__ import annotations

from course_lib.exercises._mistakes import Mistakes
from course_lib.exercises.efficiency.online_softmax_step import exercise as step_exercise
from course_lib.exercises.efficiency.tiled_attention_mistakes.parts import tiled_with

mistake = Mistakes()

# A learner may have written the step as a function of its own, or may have it in the loop.
mistake.contains(
    step_exercise,
    lambda wrong: tiled_with(step=wrong),
    called="online softmax",
    # What a step returns is looked at by no one here, and another shape of the state would grow from block to block.
    without=("axis_left_over", "output_first", "total_first", "only_the_output"),
)
