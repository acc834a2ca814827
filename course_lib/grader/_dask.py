"""Grading on a Dask cluster: the same grading, in the workers' processes, for classes too large for one machine.

What travels between client and workers is ours (files as text, results); no object of a submission does.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable

from course_lib.grader._assignment import Assignment
from course_lib.grader._grading import Grader, reason_of, ungraded
from course_lib.grader._results import Result
from course_lib.grader._store import Store, earlier_results
from course_lib.grader._submissions import Submission

__all__ = ["grade_on_cluster"]

_GRADERS: dict[str, Grader] = {}  # of this worker; a fork server serves all of its threads
_LOCK = threading.Lock()


def grade_on_cluster(
    address: str,
    submissions: list[Submission],
    assignment: Assignment,
    store: Store | None,
    *,
    on_result: Callable[[Submission, Result, bool], None] = lambda submission, result, again: None,
) -> list[Result]:
    """Grade every submission, in the order of the list; the arguments are those of `grade_all`.

    Args:
        address: of the scheduler, such as tcp://host:8786. Every worker needs the same version of course_lib.

    Raises:
        OSError: the scheduler does not answer.
    """
    from distributed import Client, as_completed

    by_name = {submission.student: submission for submission in submissions}
    with Client(address, timeout=10, set_as_default=False) as client:
        results, todo = earlier_results(submissions, store, on_result)
        futures = client.map(grade_here, todo, assignment=assignment, pure=False, retries=1)
        owners = {future.key: submission for future, submission in zip(futures, todo, strict=True)}
        for future, outcome in as_completed(futures, with_results=True, raise_errors=False, loop=client.loop):
            if future.status == "finished":
                student, result = outcome
            else:  # the worker was lost, or could not start: the others are graded all the same
                student = owners[future.key].student
                reason = reason_of(outcome[1]) if outcome else f"the cluster answered {future.status}"
                result = ungraded(owners[future.key], assignment, reason)
            if store and not result.ungraded:
                store.save(by_name[student], result)
            results[student] = result
            on_result(by_name[student], result, False)
        client.run(close_here)
    return [results[submission.student] for submission in submissions]


def grade_here(submission: Submission, assignment: Assignment) -> tuple[str, Result]:
    """On a worker: grade one submission."""
    with _LOCK:
        key = json.dumps(assignment.as_dict(), sort_keys=True)
        if key not in _GRADERS:
            _GRADERS[key] = Grader(assignment)
    return submission.student, _GRADERS[key].grade(submission)


def close_here() -> None:
    """On a worker: end the fork servers."""
    while _GRADERS:
        _GRADERS.popitem()[1].close()
