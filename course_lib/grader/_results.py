"""What came out of grading: one exercise, one submission."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

__all__ = ["NOT_GRADED", "Result", "TaskResult", "as_dict", "ungraded_task"]

NOT_GRADED = "not graded"


@dataclass
class TaskResult:
    """One exercise of one submission.

    Args:
        name: of the exercise.
        status: "passed", "failed", "not attempted", "not counted", or "not graded" where the grader could not reach a
            verdict for a reason of its own.
        points: what it earned, before any penalty.
        of: what can be earned.
        lines: each property: its text, whether it holds, its weight.
        diagnosis: key and words of the diagnosis, or None.
        note: what happened to the process, what is in use that is forbidden, or why it was not graded; "" if nothing.
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
    def ungraded(self) -> int:
        """How many exercises have no verdict, through no fault of the submission."""
        return sum(task.status == NOT_GRADED for task in self.tasks)

    @property
    def of(self) -> float:
        """What can be earned."""
        return sum(task.of for task in self.tasks)


def ungraded_task(name: str, of: float, reason: str) -> TaskResult:
    """The result of an exercise that the grader could not grade.

    Args:
        name: of the exercise.
        of: what can be earned.
        reason: why not, as the end of a sentence.
    """
    text = (
        f"{name}: not graded, because {reason}\nThis is a fault of the grader or its machine, not of the submission. "
        "No points are lost: the exercise must be graded again."
    )
    return TaskResult(name, NOT_GRADED, 0.0, of, note=f"not graded: {reason}", text=text)


def as_dict(result: Result) -> dict[str, Any]:
    """A result as plain data."""
    return {**vars(result), "tasks": [dict(vars(task)) for task in result.tasks]}
