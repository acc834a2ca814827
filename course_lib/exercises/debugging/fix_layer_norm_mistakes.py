"""The mistakes in `fix_layer_norm`."""

from __future__ import annotations

from course_lib.exercises._mistakes import Mistakes

mistake = Mistakes()
