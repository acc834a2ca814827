"""What came out of grading: one exercise, one submission."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

__all__ = ["Result", "TaskResult", "as_dict"]


@dataclass
class TaskResult:
    """One exercise of one submission.

    Args:
        name: of the exercise.
        status: "passed", "failed", "not attempted" or "not counted".
        points: what it earned, before any penalty.
        of: what can be earned.
        lines: each property: its text, whether it holds, its weight.
        diagnosis: key and words of the diagnosis, or None.
        note: what happened to the process, or what is in use that is forbidden; "" if nothing.
        text: the report as text.
        html: the report as HTML.
    """

    name: str
    status: str
    points: float
    of: float
    lines: list[dict[str, Any]] = field(default_factory=list)
    diagnosis: dict[str, str] | None = None
    note: str = ""
    text: str = ""
    html: str = ""


@dataclass
class Result:
    """One submission.

    Args:
        student: name of the file or folder.
        tasks: a result for each exercise.
        problems: what could not be read.
        late_days: days begun after the due date.
        penalty: share of the points that is lost for that.
        walls: what kept the submission to itself.
    """

    student: str
    tasks: list[TaskResult]
    problems: list[str] = field(default_factory=list)
    late_days: int = 0
    penalty: float = 0.0
    walls: str = ""

    @property
    def points(self) -> float:
        """Earned, after the penalty."""
        return round(sum(task.points for task in self.tasks) * (1 - self.penalty), 2)

    @property
    def of(self) -> float:
        """What can be earned."""
        return sum(task.of for task in self.tasks)


def as_dict(result: Result) -> dict[str, Any]:
    """A result as plain data."""
    return {**vars(result), "tasks": [dict(vars(task)) for task in result.tasks]}
