"""Results as they come in, from an earlier run, from this machine or from a cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from course_grade.grading.assignment import Assignment
from course_grade.grading.lateness import Times, judge_lateness
from course_grade.grading.results import Result
from course_grade.grading.store import Store
from course_grade.submission.submissions import Submission

__all__ = ["Collection", "OnResult"]

OnResult = Callable[[Submission, Result, bool], None]


class Collection:
    """Results by student: lateness is judged, what has a verdict is kept on disk, and each result is reported.

    Args:
        assignment: what was asked for.
        store: where results are kept, or None.
        times: when the platform received each submission; None to use the times of the files.
        on_result: called with each result, and whether it came from an earlier run.
    """

    def __init__(self, assignment: Assignment, store: Store | None, times: Times | None, on_result: OnResult):
        self.assignment, self.store, self.times, self.on_result = assignment, store, times, on_result
        self._results: dict[str, Result] = {}

    def from_earlier(self, submissions: Iterable[Submission]) -> list[Submission]:
        """Take what an earlier run has graded; the submissions that are left to grade."""
        todo = []
        for submission in submissions:
            earlier = self.store.load(submission) if self.store else None
            if earlier is None:
                todo.append(submission)
            else:
                self._take(submission, earlier, again=True)
        return todo

    def add(self, submission: Submission, result: Result) -> None:
        """Take a new result. What was not graded is not kept on disk, so that the next run grades it again."""
        if self.store and not result.ungraded:
            self.store.save(submission, result)
        self._take(submission, result, again=False)

    def _take(self, submission: Submission, result: Result, *, again: bool) -> None:
        judge_lateness(result, submission, self.assignment, self.times)
        self._results[submission.student] = result
        self.on_result(submission, result, again)

    def in_order_of(self, submissions: Iterable[Submission]) -> list[Result]:
        """The results of these submissions."""
        return [self._results[submission.student] for submission in submissions]
