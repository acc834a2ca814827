"""The mistakes in `attention_rollout` by theme, in the order in which they are tried."""

from course_lib.exercises._mistakes import Mistakes
from course_lib.exercises.inspection.attention_rollout_mistakes import heads, identities, products

__all__ = ["mistake"]

mistake = Mistakes(products, identities, heads)
