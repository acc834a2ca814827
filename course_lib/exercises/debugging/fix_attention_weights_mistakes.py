"""The mistakes in `fix_attention_weights`."""

from __future__ import annotations

from course_lib.exercises._mistakes import Mistakes

mistake = Mistakes()
