"""Multi-head attention as learners write it: wrong masks end in PyTorch's errors, since nothing checks them before."""

from course_kit.exercises._mistakes import built
from course_kit.exercises.multi_head.multi_head_attention import exercise

__all__ = ["MultiHeadAttention"]

MultiHeadAttention = built(exercise.written_out, "MultiHeadAttention", "course_lib.multi_head")
