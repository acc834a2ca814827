"""Figures of the course, of tensors only: nothing here knows a model."""

from course_lib.viz.attention_map import attention_map
from course_lib.viz.style import PALETTE, SERIES, WEIGHTS, use_style

__all__ = ["PALETTE", "SERIES", "WEIGHTS", "attention_map", "use_style"]
