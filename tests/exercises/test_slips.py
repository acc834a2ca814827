"""Small slips in solutions: nearly each is known to its exercise by name."""

import pytest
from exercise_cells import cells

from course_lib.exercises import find
from course_lib.grader.verdict.diagnose import diagnose
from course_lib.grader.verdict.judge import judge
from course_lib.grader.verdict.sheet import sheet_of

pytestmark = pytest.mark.judging


def test_slips_are_named_by_their_exercise():
    unnamed = []
    slips = [cell for cell in cells("dev") if cell.stem.endswith("_slips")]
    for cell in slips:
        exercise = find(cell.exercise)
        sheet = sheet_of(exercise, 7)
        seen = sheet.run(cell.load())
        found = diagnose(sheet, judge(exercise, sheet.trials, seen, allow_twins=False), seen)
        if found is None or found.key.startswith("any/"):
            unnamed.append(f"{cell.key}: {cell.says} ({found.key if found else 'unknown'})")
    assert len(slips) > 70
    assert len(unnamed) <= 0.15 * len(slips), unnamed
