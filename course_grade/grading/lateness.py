"""Whether a submission is late, by how much, and what that costs."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from fractions import Fraction

from course_grade.grading.assignment import Assignment
from course_grade.grading.results import UNDECIDED, Result
from course_grade.submission.submissions import Submission

__all__ = ["Times", "judge_lateness"]

DAY = timedelta(days=1)


@dataclass(frozen=True)
class Times:
    """When the platform received each submission.

    Args:
        source: where that is written, for reports.
        moments: by student.
        unknown: students whose time could not be found, with the reason.
    """

    source: str
    moments: dict[str, datetime] = field(default_factory=dict)
    unknown: dict[str, str] = field(default_factory=dict)


def judge_lateness(result: Result, submission: Submission, assignment: Assignment, times: Times | None) -> None:
    """Write into a result how late it is, what that costs, and by which clock.

    Args:
        times: those of the platform; None to use the times of the files, which their owners can set.
    """
    result.late_days, result.penalty, result.lateness = 0, Fraction(), ""
    if assignment.due is None:
        return
    if times is None:
        moment = datetime.fromtimestamp(submission.modified, timezone.utc) if submission.modified else None
        clock = "by the times of the files, which can be set back"
    else:
        moment = times.moments.get(submission.student)
        clock = f"by {times.source}"
    if moment is None:
        why = times.unknown.get(submission.student, "no time is known") if times else "no file was handed in"
        result.lateness = f"{UNDECIDED}: {why}"
        return
    late = moment - assignment.due
    if late > timedelta():
        result.late_days = late // DAY + 1
        result.penalty = min(Fraction(1), result.late_days * assignment.late_penalty)
    result.lateness = f"{'late' if result.late_days else 'on time'} {clock}"
