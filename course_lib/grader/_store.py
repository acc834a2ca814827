"""Results of an earlier run, kept on disk as soon as they are there."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path

from course_lib import __version__
from course_lib._files import write_whole
from course_lib.grader._assignment import Assignment
from course_lib.grader._results import Result, packed, unpacked
from course_lib.grader._submissions import Submission

__all__ = ["Store", "earlier_results"]


class Store:
    """Results on disk, one file a submission, so that a grader that was killed goes on where it stopped.

    Args:
        folder: where; made if it is not there.
        assignment: results of another one are not used.
    """

    def __init__(self, folder: Path, assignment: Assignment):
        self.folder = folder
        self.key = json.dumps({"version": __version__, **assignment.as_dict()}, sort_keys=True)
        folder.mkdir(parents=True, exist_ok=True)

    def path(self, submission: Submission) -> Path:
        """The file of a submission; what is not safe in a name is replaced, and a hash keeps names apart."""
        safe = "".join(c if c.isalnum() or c in "-_ " else "_" for c in submission.student)
        safe = safe.encode()[:60].decode("utf-8", "ignore")  # file systems limit the bytes of a name
        return self.folder / f"{safe}-{_short_hash(submission.student)}.json"

    def load(self, submission: Submission) -> Result | None:
        """The result of an earlier run on the same files, or None."""
        try:
            stored = json.loads(self.path(submission).read_text(encoding="utf-8"))
            if stored["key"] != self.key or stored["digest"] != submission.digest:
                return None
            return unpacked(stored["result"])
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def save(self, submission: Submission, result: Result) -> None:
        """Write a result, all of it or nothing."""
        stored = {"key": self.key, "digest": submission.digest, "result": packed(result)}
        write_whole(self.path(submission), json.dumps(stored, ensure_ascii=False))


def _short_hash(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def earlier_results(
    submissions: list[Submission], store: Store | None, on_result: Callable[[Submission, Result, bool], None]
) -> tuple[dict[str, Result], list[Submission]]:
    """What an earlier run has graded already, by student, and what is left to do."""
    results: dict[str, Result] = {}
    todo = []
    for submission in submissions:
        earlier = store.load(submission) if store else None
        if earlier is None:
            todo.append(submission)
        else:
            results[submission.student] = earlier
            on_result(submission, earlier, True)
    return results, todo
