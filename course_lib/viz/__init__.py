"""Figures of the course, of tensors only: nothing here knows a model."""

from course_lib.viz.attention_map import attention_map, description_of, save_figure
from course_lib.viz.describing import describe
from course_lib.viz.diagram import BlockDiagram, block_diagram
from course_lib.viz.heads_map import heads_map
from course_lib.viz.style import PALETTE, SERIES, WEIGHTS, use_style

__all__ = [
    "PALETTE",
    "SERIES",
    "WEIGHTS",
    "BlockDiagram",
    "attention_map",
    "block_diagram",
    "describe",
    "description_of",
    "heads_map",
    "save_figure",
    "use_style",
]
