"""What came out of grading: one exercise, one submission."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from course_kit.checker.points import exact

__all__ = ["NOT_GRADED", "UNDECIDED", "Result", "TaskResult", "ungraded_task"]

NOT_GRADED = "not graded"
UNDECIDED = "could not decide whether this is on time"


@dataclass
class TaskResult:
    """One exercise of one submission.

    Args:
        name: of the exercise.
        status: "passed", "failed", "not attempted", "not counted", or "not graded" where the grader could not reach a
            verdict for a reason of its own.
        points: what it earned, before any penalty; an exact fraction.
        of: what can be earned; an exact fraction.
        lines: each property: its text, whether it holds, its weight.
        diagnosis: key and words of the diagnosis, or None.
        note: what happened to the process, what is in use that is forbidden, or why it was not graded; "" if nothing.
        text: the report as text.
        html: the report as HTML.
    """

    name: str
    status: str
    points: Fraction
    of: Fraction
    lines: list[dict[str, Any]] = field(default_factory=list)
    diagnosis: dict[str, str] | None = None
    note: str = ""
    text: str = ""
    html: str = ""

    def __post_init__(self) -> None:
        self.points, self.of = exact(self.points), exact(self.of)


@dataclass
class Result:
    """One submission.

    Args:
        student: name of the file or folder.
        tasks: a result for each exercise.
        problems: what could not be read.
        late_days: days begun after the due date.
        penalty: share of the points that is lost for that, 0 to 1; an exact fraction.
        walls: what kept the submission to itself.
        lateness: late or on time, and by which clock; "" if there is no due date.
    """

    student: str
    tasks: list[TaskResult]
    problems: list[str] = field(default_factory=list)
    late_days: int = 0
    penalty: Fraction = Fraction()
    walls: str = ""
    lateness: str = ""

    def __post_init__(self) -> None:
        self.penalty = min(Fraction(1), max(Fraction(), exact(self.penalty)))

    @property
    def before_penalty(self) -> Fraction:
        """Earned, before the penalty."""
        return sum((task.points for task in self.tasks), Fraction())

    @property
    def points(self) -> Fraction:
        """Earned, after the penalty."""
        return self.before_penalty * (1 - self.penalty)

    @property
    def undecided(self) -> bool:
        """Whether it is not known if this is on time."""
        return self.lateness.startswith(UNDECIDED)

    @property
    def ungraded(self) -> int:
        """How many exercises have no verdict, through no fault of the submission."""
        return sum(task.status == NOT_GRADED for task in self.tasks)

    @property
    def remarks(self) -> list[str]:
        """What a person should know: an undecided lateness, what could not be read, notes on exercises."""
        notes = [f"{task.name}: {task.note}" for task in self.tasks if task.note]
        return [*[self.lateness] * self.undecided, *self.problems, *notes]

    @property
    def of(self) -> Fraction:
        """What can be earned."""
        return sum((task.of for task in self.tasks), Fraction())


def ungraded_task(name: str, of: Fraction, reason: str) -> TaskResult:
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
    return TaskResult(name, NOT_GRADED, Fraction(), of, note=f"not graded: {reason}", text=text)
