"""One submission's process: every case of an exercise is run in it, and it is started again when it breaks."""

from __future__ import annotations

import dataclasses
import hmac
import re
import time
from functools import cached_property, lru_cache

from course_grade.grading.scheduling import SharedOrExclusiveLock
from course_grade.sandbox.session import Ended, ForkServer, NotGraded, Session
from course_grade.submission.submissions import Submission
from course_kit.checker.blocked_by_sandbox import LIBRARY
from course_kit.checker.forbidden_calls import suspicious_in
from course_kit.checker.observing import Observation, Problem
from course_kit.checker.protocol import encode, pack_case, pack_exercise
from course_kit.checker.verdict.sheet import Sheet, sheet_of
from course_kit.exercises import Exercise

__all__ = ["Run"]

RESTARTS = 2  # of a submission's process, for one exercise; after that its remaining cases are not run


class Run:
    """One submission's process, started again when it breaks.

    Args:
        server: where it is forked from.
        submission: whose code it runs.
        exercises: that are graded.
        turns: where the caller is `beside` others: what may be their fault is tried again alone.
    """

    def __init__(
        self,
        server: ForkServer,
        submission: Submission,
        exercises: list[Exercise],
        turns: SharedOrExclusiveLock | None = None,
    ):
        self.server, self.submission, self.turns = server, submission, turns
        self.request = submission.request({exercise.name: exercise.stem for exercise in exercises})
        self.request["exercises"] = [pack_exercise(exercise) for exercise in exercises]
        self.session: Session | None = None
        self.lenient = False  # whether the walls permit what is harmless, since the code broke without it
        self.failed: dict[str, dict[str, Problem]] = {}  # by exercise, by name
        self.spent = 0.0  # seconds of its own calls; waiting for others is not among them

    def observe(self, sheet: Sheet) -> tuple[list[Observation], str]:
        """Observations of every trial, and a note where the process did not survive them all."""
        name = sheet.exercise.name
        observations: list[Observation] = []
        notes: list[str] = []
        stopped = ""
        for frame in _frames(sheet.exercise, sheet.seed):
            if self.spent > self.server.limits.total_seconds:
                stopped = f"not run: the submission took longer than {self.server.limits.total_seconds:g} s altogether"
            if stopped:
                observations.append(_not_run(stopped))
                continue
            try:
                observations.append(self._certain(name, frame))
            except Ended as end:
                self.session = None
                notes.append(str(end))
                observations.append(_not_run(str(end)))
                if end.too_long:
                    stopped = f"not run, since an earlier call {end}"
                elif len(notes) > RESTARTS:
                    stopped = f"not run, since earlier calls {end}"
        if self.session is not None and observations:
            used = self.session.used_at_load.get(name, set())
            observations[0].used = tuple({*observations[0].used, *used})
        return observations, "; ".join(dict.fromkeys(notes))

    @cached_property
    def suspicious(self) -> list[str]:
        """What a person should look at in the submission's code, see `suspicious_in`."""
        texts = [piece["code"] for piece in self.request["pieces"]]
        return suspicious_in([*texts, *(text for _, text in self.request["siblings"].values())])

    def _certain(self, name: str, frame: bytes) -> Observation:
        """One case; where it took too long while others ran beside it, it is run once more, alone."""
        try:
            return self._observed(name, frame)
        except Ended as end:
            if not end.doubtful or self.turns is None:
                raise
        self.session = None
        with self.turns.alone(from_beside=True):
            return self._observed(name, frame)

    def _observed(self, name: str, frame: bytes) -> Observation:
        """One case; where the walls refused something, it is run once more where they permit more.

        Raises:
            NotGraded: they still refuse what a library does for the solution.
        """
        began = time.monotonic()
        try:
            seen = self._seen(name, frame)
            if seen.problem and seen.problem.refused and not self.lenient:
                self.lenient = True
                self.close()
                seen = self._seen(name, frame)
        finally:
            self.spent += time.monotonic() - began
        if (problem := seen.problem) and problem.refused == LIBRARY:
            what = f"{problem.type}: {problem.message}".splitlines()[0][:200]
            raise NotGraded(f"the sandbox refused what a library does for the solution ({what})")
        self._say_what_is_missing(name, seen)
        return seen

    def _seen(self, name: str, frame: bytes) -> Observation:
        session = self._session()
        if name in self.failed.get(name, {}):
            return Observation(problem=self.failed[name][name], stage="build")
        return session.observe(frame)

    def _session(self) -> Session:
        if self.session is None:
            session = Session(self.server, lenient=self.lenient)
            try:
                self.failed = session.load(self.request)
            except BaseException:
                session.close()
                raise
            self.session = session
        return self.session

    def _say_what_is_missing(self, exercise: str, seen: Observation) -> None:
        """A name that is not defined because the line that defines it failed: say that line's error."""
        problem = seen.problem
        if problem is None or problem.type != "NameError":
            return
        missing = re.search(r"name '(\w+)' is not defined", problem.message)
        if missing and (why := self.submission.broken(missing[1])):
            message = f"{problem.message}, because {why}"
            seen.problem = dataclasses.replace(problem, message=message)
        for name, cause in self.failed.get(exercise, {}).items():
            if f"'{name}'" in problem.message:
                message = f"{problem.message}, because its own line failed: {cause.type}: {cause.message}"
                seen.problem = Problem(problem.type, message, cause.line, cause.code, problem.bases, cause.file)

    def close(self) -> None:
        """End its process."""
        if self.session is not None:
            self.session.close()
            self.session = None


def _not_run(why: str) -> Observation:
    return Observation(problem=Problem("Stopped", why), stage="call")


@lru_cache(maxsize=64)
def _frames(exercise: Exercise, seed: int) -> tuple[bytes, ...]:
    """What is sent for each case: the same for all submissions."""
    frames = []
    for trial in sheet_of(exercise, seed).trials:
        message, blobs = pack_case(trial.case, trial.cotangents, trial.train_too)
        head = {"do": "case", "exercise": exercise.name, "seed": _chance(seed, exercise, trial.number), **message}
        frames.append(encode(head, blobs))
    return tuple(frames)


def _chance(seed: int, exercise: Exercise, number: int) -> int:
    """A seed for the submission's own draws, from which the instructor's cannot be told."""
    message = f"the submission's own draws\0{exercise.name}\0{number}"
    digest = hmac.digest(str(seed).encode(), message.encode(), "sha256")
    return int.from_bytes(digest[:4], "big") >> 1
