"""Grading on a Dask cluster: the same grading, in the workers' processes, for classes too large for one machine.

What travels between client and workers is ours (files as text, results); no object of a submission does.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator

from course_grade.grading.assignment import Assignment
from course_grade.grading.grade import Grader, reason_of, ungraded
from course_grade.grading.results import Result
from course_grade.sandbox.walls import Walls
from course_grade.submission.submissions import Submission

__all__ = ["ClusterGrader"]

_GRADERS: dict[str, Grader] = {}  # of this worker; a fork server serves all of its threads
_LOCK = threading.Lock()


class ClusterGrader:
    """Grades on the workers of a cluster, as a `Grader` does on this machine.

    Args:
        address: of the scheduler, such as tcp://host:8786. Every worker needs the same version of course_lib.
        assignment: what is asked for; with tasks.

    Raises:
        OSError: the scheduler does not answer.
    """

    def __init__(self, address: str, assignment: Assignment):
        from distributed import Client

        self.address, self.assignment = address, assignment
        self.client = Client(address, timeout=10, set_as_default=False)

    def walls(self) -> list[Walls]:
        """What keeps submissions to themselves, each kind that some worker has.

        Raises:
            OSError: the cluster has no workers.
        """
        walls = self.client.run(walls_here, self.assignment)
        if not walls:
            raise OSError(f"the cluster at {self.address} has no workers; start some, and run the command again")
        return list({repr(one): one for one in walls.values()}.values())

    def grade_each(self, submissions: list[Submission], jobs: int) -> Iterator[tuple[Submission, Result]]:
        """Each submission with its result, as soon as that is there; the workers, not `jobs`, say how many run."""
        from distributed import as_completed

        futures = self.client.map(grade_here, submissions, assignment=self.assignment, pure=False, retries=1)
        owners = {future.key: submission for future, submission in zip(futures, submissions, strict=True)}
        for future, outcome in as_completed(futures, with_results=True, raise_errors=False, loop=self.client.loop):
            submission = owners[future.key]
            if future.status == "finished":
                yield submission, outcome
            else:  # the worker was lost, or could not start: the others are graded all the same
                reason = reason_of(outcome[1]) if outcome else f"the cluster answered {future.status}"
                yield submission, ungraded(submission, self.assignment, reason)

    def __enter__(self) -> ClusterGrader:
        return self

    def __exit__(self, kind: type | None, *error) -> None:
        with self.client:
            if kind is None:
                self.client.run(close_here)


def walls_here(assignment: Assignment) -> Walls:
    """On a worker: the walls that are up there."""
    return _grader(assignment).server.walls


def grade_here(submission: Submission, assignment: Assignment) -> Result:
    """On a worker: grade one submission."""
    return _grader(assignment).grade(submission)


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
