"""The mistakes in `fix_masked_softmax`."""

from __future__ import annotations

from course_lib.exercises._mistakes import Mistakes

mistake = Mistakes()
