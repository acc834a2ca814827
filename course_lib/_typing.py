"""Shape annotations that cost nothing outside the tests.

Signatures say `Float[Tensor, "... len_q d_k"]`. The tests import jaxtyping before `course_lib` and so have every
call checked; without jaxtyping the same annotation reads as plain `Tensor`, and nothing more is imported.
"""

import sys

if "jaxtyping" in sys.modules:
    from jaxtyping import Bool, Float, Int
else:

    class _Shaped:
        def __class_getitem__(cls, item):
            return item[0]  # Float[Tensor, "..."] -> Tensor

    class Bool(_Shaped):
        """A tensor of bool."""

    class Float(_Shaped):
        """A tensor of floating-point numbers."""

    class Int(_Shaped):
        """A tensor of integers."""


__all__ = ["Bool", "Float", "Int"]
