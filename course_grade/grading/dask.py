"""Grading on a Dask cluster: the same grading, in the workers' processes, for classes too large for one machine.

What travels between client and workers is ours (files as text, results); no object of a submission does.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable

from course_grade.grading.assignment import Assignment
from course_grade.grading.collecting import Collection, OnResult
from course_grade.grading.grade import Grader, reason_of, ungraded
from course_grade.grading.lateness import Times
from course_grade.grading.results import Result
from course_grade.grading.store import Store
from course_grade.sandbox.walls import Walls
from course_grade.submission.submissions import Submission

__all__ = ["grade_on_cluster"]

_GRADERS: dict[str, Grader] = {}  # of this worker; a fork server serves all of its threads
_LOCK = threading.Lock()


def grade_on_cluster(
    address: str,
    submissions: list[Submission],
    assignment: Assignment,
    store: Store | None,
    *,
    times: Times | None = None,
    on_start: Callable[[Walls], None] = lambda walls: None,
    on_result: OnResult = lambda submission, result, again: None,
) -> list[Result]:
    """Grade every submission, in the order of the list; the arguments are those of `grade_all`.

    Args:
        address: of the scheduler, such as tcp://host:8786. Every worker needs the same version of course_lib.
        on_start: called with the walls of each worker.

    Raises:
        OSError: the scheduler does not answer, or has no workers.
    """
    from distributed import Client, as_completed

    with Client(address, timeout=10, set_as_default=False) as client:
        collection = Collection(assignment, store, times, on_result)
        todo = collection.from_earlier(submissions)
        if todo:
            walls = client.run(walls_here, assignment)
            if not walls:
                raise OSError(f"the cluster at {address} has no workers; start some, and run the command again")
            for one in dict.fromkeys(map(repr, walls.values())):
                on_start(next(w for w in walls.values() if repr(w) == one))
        futures = client.map(grade_here, todo, assignment=assignment, pure=False, retries=1)
        owners = {future.key: submission for future, submission in zip(futures, todo, strict=True)}
        for future, outcome in as_completed(futures, with_results=True, raise_errors=False, loop=client.loop):
            submission = owners[future.key]
            if future.status == "finished":
                result = outcome[1]
            else:  # the worker was lost, or could not start: the others are graded all the same
                reason = reason_of(outcome[1]) if outcome else f"the cluster answered {future.status}"
                result = ungraded(submission, assignment, reason)
            collection.add(submission, result)
        client.run(close_here)
    return collection.in_order_of(submissions)


def walls_here(assignment: Assignment) -> Walls:
    """On a worker: the walls that are up there."""
    return _grader(assignment).server.walls


def grade_here(submission: Submission, assignment: Assignment) -> tuple[str, Result]:
    """On a worker: grade one submission."""
    return submission.student, _grader(assignment).grade(submission)


def _grader(assignment: Assignment) -> Grader:
    with _LOCK:
        key = json.dumps(assignment.as_dict(), sort_keys=True)
        if key not in _GRADERS:
            _GRADERS[key] = Grader(assignment)
        return _GRADERS[key]


def close_here() -> None:
    """On a worker: end the fork servers."""
    while _GRADERS:
        _GRADERS.popitem()[1].close()
