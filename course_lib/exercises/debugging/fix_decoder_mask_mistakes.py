"""The mistakes in `fix_decoder_mask`."""

from __future__ import annotations

from course_lib.exercises._mistakes import Mistakes

mistake = Mistakes()
