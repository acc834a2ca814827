"""What refuses a wrong solution: the lines of the report that fail, and the name of the mistake."""

from __future__ import annotations

from collections.abc import Callable

from course_lib.grader.verdict.diagnose import diagnose
from course_lib.grader.verdict.judge import judge
from course_lib.grader.verdict.sheet import Sheet

__all__ = ["refusal_of"]


def refusal_of(sheet: Sheet, solution: Callable) -> tuple[tuple[str, ...], str]:
    """The failing lines, none where the solution passes, and the key of its mistake, "" where it has no name.

    Args:
        sheet: of the exercise.
        solution: the function or class; forbidden functions are allowed.
    """
    seen = sheet.run(solution)
    verdict = judge(sheet.exercise, sheet.trials, seen, allow_twins=True)
    if verdict.status != "failed":
        return (), ""
    found = diagnose(sheet, verdict, seen)
    return tuple(line.says for line in verdict.lines if line.holds is False), found.key if found else ""
