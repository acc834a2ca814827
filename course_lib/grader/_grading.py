"""Grade submissions: run each in a process of its own, judge it here, keep every result on disk as soon as it is
there."""

from __future__ import annotations

import ast
import contextlib
import hashlib
import json
import re
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from datetime import datetime, timezone
from functools import lru_cache
from pathlib import Path
from typing import Any

from course_lib import __version__
from course_lib._files import write_whole
from course_lib.exercises import Exercise, find
from course_lib.grader._assignment import Assignment, Task
from course_lib.grader._judging import Sheet, sheet_of
from course_lib.grader._observing import Observation, Problem
from course_lib.grader._protocol import clean, encode, pack_case
from course_lib.grader._reporting import Report, html_of, report_on, text_of
from course_lib.grader._session import Ended, ForkServer, ServerGone, Session
from course_lib.grader._submissions import Submission, needed

__all__ = ["Grader", "Result", "Store", "TaskResult", "earlier_results", "grade_all"]

RESTARTS = 2  # of a submission's process, for one exercise; after that its remaining cases are not run
ATTEMPTS = 3  # to grade a submission, where the fork server ended
GRADE_HEADING = "graded"


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


class Grader:
    """Grades one submission after another, from any number of threads.

    Args:
        assignment: what is asked for; with tasks.
    """

    def __init__(self, assignment: Assignment):
        self.assignment = assignment
        self._lock = threading.Lock()
        self._closed = False
        self.server = ForkServer(assignment.limits, assignment.walls)

    def grade(self, submission: Submission) -> Result:
        """Run and judge one submission."""
        for _ in range(ATTEMPTS):
            server = self.server
            if self._closed:
                text = "not graded: the grading was stopped"
                break
            try:
                return self._graded(submission, server)
            except ServerGone:  # this submission's doing, or that of one that runs beside it
                text = "could not be graded: its process, or one beside it, ended the grader's fork server"
                self._renew(server)
            except Exception as error:  # ours or theirs: no submission may end the grading of the others
                text = clean(f"could not be graded: {type(error).__name__}: {error}", 300)
                break
        return self._not_graded(submission, text)

    def _renew(self, old: ForkServer) -> None:
        with self._lock:
            if self.server is old and not self._closed:
                old.close()
                self.server = ForkServer(self.assignment.limits, self.assignment.walls)

    def _not_graded(self, submission: Submission, text: str) -> Result:
        tasks = [
            TaskResult(task.name, "failed", 0.0, task.points, note=text, text=f"{task.name}: {text}")
            for task in self.assignment.tasks
        ]
        return Result(submission.student, tasks, [*submission.problems, text], walls=str(self.server.walls))

    def _graded(self, submission: Submission, server: ForkServer) -> Result:
        assignment = self.assignment
        exercises = [find(task.name) for task in assignment.tasks]
        run = _Run(server, submission, {e.name: e.stem for e in exercises})
        try:
            tasks = [self._task(run, task, e) for task, e in zip(assignment.tasks, exercises, strict=True)]
        finally:
            run.close()
        days = _days_late(submission, assignment)
        penalty = min(1.0, days * assignment.late_penalty)
        problems = [*submission.problems, *run.problems]
        return Result(submission.student, tasks, problems, days, penalty, str(server.walls))

    def _task(self, run: _Run, task: Task, exercise: Exercise) -> TaskResult:
        source = run.submission.find(exercise.name, exercise.stem)
        if source is None:
            broken = run.submission.broken(exercise.name)
            status = "failed" if broken else "not attempted"
            text = f"{exercise.name}: {broken or 'not attempted'}"
            return TaskResult(exercise.name, status, 0.0, task.points, note=broken, text=text)
        sheet = sheet_of(exercise, self.assignment.seed)
        observations, note = run.observe(sheet)
        # What the process says of itself: names that could be in use, and nothing else.
        possible = {f"torch's {twin}" for twin in exercise.twins} | {f"course_lib.{exercise.name}"}
        used = {name for o in observations for name in o.used} & possible | forbidden_in(
            needed(source, exercise.name), exercise
        )
        for number, seen in enumerate(observations):
            seen.used = tuple(sorted(used)) if number == 0 else ()
        report = report_on(sheet, observations, allow_twins=task.allow_twins)
        return _result(report, task, note)

    def close(self) -> None:
        """End the fork server, and with it whatever still runs."""
        with self._lock:
            self._closed = True
            self.server.close()

    def __enter__(self) -> Grader:
        return self

    def __exit__(self, *error) -> None:
        self.close()


def _result(report: Report, task: Task, note: str) -> TaskResult:
    verdict, diagnosis = report.verdict, report.diagnosis
    if verdict.used and verdict.status == "not counted":
        note = f"{note}; uses {', '.join(verdict.used)}".removeprefix("; ")
    return TaskResult(
        task.name,
        verdict.status,
        round(task.points * verdict.score, 2),
        task.points,
        [{"says": line.says, "holds": line.holds, "weight": line.weight} for line in verdict.lines],
        diagnosis and {"key": diagnosis.key, "says": diagnosis.says},
        note,
        text_of(report, GRADE_HEADING, graded=True),
        html_of(report, GRADE_HEADING, graded=True),
    )


def _days_late(submission: Submission, assignment: Assignment) -> int:
    if assignment.due is None or not submission.modified:
        return 0
    late = datetime.fromtimestamp(submission.modified, timezone.utc) - assignment.due
    seconds = late.total_seconds()
    return 0 if seconds <= 0 else int(seconds // 86400) + 1


class _Run:
    """One submission's process, started again when it breaks."""

    def __init__(self, server: ForkServer, submission: Submission, stems: dict[str, str]):
        self.server, self.submission = server, submission
        self.request = submission.request(stems)
        self.session: Session | None = None
        self.failed: dict[str, Problem] = {}
        self.problems: list[str] = []
        self.began = time.monotonic()

    def observe(self, sheet: Sheet) -> tuple[list[Observation], str]:
        """Observations of every trial, and a note where the process did not survive them all."""
        name = sheet.exercise.name
        observations: list[Observation] = []
        notes: list[str] = []
        stopped = ""
        for frame in _frames(sheet):
            if time.monotonic() - self.began > self.server.limits.total_seconds:
                stopped = f"not run: the submission took longer than {self.server.limits.total_seconds:g} s altogether"
            if stopped:
                observations.append(_not_run(stopped))
                continue
            try:
                session = self._session()
                if name in self.failed:
                    observations.append(Observation(problem=self.failed[name], stage="build"))
                    continue
                seen = session.observe(frame)
                self._say_what_is_missing(seen)
                observations.append(seen)
            except Ended as end:
                self.session = None
                notes.append(str(end))
                observations.append(_not_run(str(end)))
                if end.too_long:
                    stopped = f"not run, since an earlier call {end}"
                elif len(notes) > RESTARTS:
                    stopped = f"not run, since earlier calls {end}"
        return observations, "; ".join(dict.fromkeys(notes))

    def _session(self) -> Session:
        if self.session is None:
            session = Session(self.server)
            try:
                self.failed = session.load(self.request)
            except BaseException:
                session.close()
                raise
            self.session = session
        return self.session

    def _say_what_is_missing(self, seen: Observation) -> None:
        """A name that is not defined because the line that defines it failed: say that line's error."""
        problem = seen.problem
        if problem is None or problem.type != "NameError":
            return
        missing = re.search(r"name '(\w+)' is not defined", problem.message)
        if missing and (why := self.submission.broken(missing[1])):
            message = f"{problem.message}, because {why}"
            seen.problem = Problem(problem.type, message, problem.line, problem.code, problem.bases, problem.file)
        for name, cause in self.failed.items():
            if f"'{name}'" in problem.message:
                message = f"{problem.message}, because its own line failed: {cause.type}: {cause.message}"
                seen.problem = Problem(problem.type, message, cause.line, cause.code, problem.bases, cause.file)

    def close(self) -> None:
        if self.session is not None:
            self.session.close()


def _not_run(why: str) -> Observation:
    return Observation(problem=Problem("Stopped", why), stage="call")


@lru_cache(maxsize=64)
def _frames_of(exercise: Exercise, seed: int) -> tuple[bytes, ...]:
    frames = []
    for trial in sheet_of(exercise, seed).trials:
        message, blobs = pack_case(trial.case, trial.cotangents, trial.train_too)
        head = {"do": "case", "exercise": exercise.name, "seed": _chance(seed, exercise, trial.number), **message}
        frames.append(encode(head, blobs))
    return tuple(frames)


def _chance(seed: int, exercise: Exercise, number: int) -> int:
    """A seed for the submission's own draws, from which the instructor's cannot be told."""
    digest = hashlib.sha256(f"{seed} {exercise.name} {number}".encode()).digest()
    return int.from_bytes(digest[:4], "big") >> 1


def _frames(sheet: Sheet) -> tuple[bytes, ...]:
    return _frames_of(sheet.exercise, sheet.seed)


# Forbidden functions, found by reading


def forbidden_in(pieces: list, exercise: Exercise) -> set[str]:
    """Forbidden functions that the code names through its imports: `F.softmax`, `torch.softmax`, `course_lib.softmax`.

    Calls are noticed while the code runs, too; this cannot be switched off from inside.
    """
    known: dict[str, str] = {}
    trees = []
    for piece in pieces:
        with contextlib.suppress(SyntaxError, ValueError, RecursionError, MemoryError):
            trees.append(ast.parse(piece.code))
    for node in (n for tree in trees for n in ast.walk(tree)):
        if isinstance(node, ast.Import):
            for alias in node.names:
                known[alias.asname or alias.name.split(".")[0]] = (
                    alias.name if alias.asname else alias.name.split(".")[0]
                )
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            for alias in node.names:
                known[alias.asname or alias.name] = f"{node.module}.{alias.name}"
    used = set()
    for node in (n for tree in trees for n in ast.walk(tree)):
        dotted = _dotted(node, known)
        root, _, last = dotted.rpartition(".")
        if root.split(".")[0] == "torch" and last in exercise.twins:
            used.add(f"torch's {last}")
        if root.split(".")[0] == "course_lib" and last == exercise.name:
            used.add(f"course_lib.{last}")
    return used


def _dotted(node: ast.AST, known: dict[str, str]) -> str:
    parts = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name) or node.id not in known:
        return ""
    return ".".join([known[node.id], *reversed(parts)])


# A class


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
        safe = "".join(c if c.isalnum() or c in "-_ " else "_" for c in submission.student)[:60]
        return self.folder / f"{safe}-{_short_hash(submission.student)}.json"

    def load(self, submission: Submission) -> Result | None:
        """The result of an earlier run on the same files, or None."""
        try:
            stored = json.loads(self.path(submission).read_text(encoding="utf-8"))
            if stored["key"] != self.key or stored["digest"] != submission.digest:
                return None
            result = stored["result"]
            return Result(**{**result, "tasks": [TaskResult(**task) for task in result["tasks"]]})
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def save(self, submission: Submission, result: Result) -> None:
        """Write a result, all of it or nothing."""
        stored = {"key": self.key, "digest": submission.digest, "result": as_dict(result)}
        write_whole(self.path(submission), json.dumps(stored, ensure_ascii=False))


def as_dict(result: Result) -> dict[str, Any]:
    """A result as plain data."""
    return {**vars(result), "tasks": [dict(vars(task)) for task in result.tasks]}


def _short_hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:8]


def grade_all(
    submissions: list[Submission],
    assignment: Assignment,
    store: Store | None,
    *,
    jobs: int = 1,
    on_result: Callable[[Submission, Result, bool], None] = lambda submission, result, again: None,
) -> list[Result]:
    """Grade every submission, in the order of the list.

    Args:
        store: where results are kept; those that are there already are used.
        jobs: how many submissions run side by side.
        on_result: called with each result, and whether it came from an earlier run.
    """
    results, todo = earlier_results(submissions, store, on_result)
    if todo:
        with Grader(assignment) as grader:
            for submission, result in _graded(grader, todo, jobs):
                if store:
                    store.save(submission, result)
                results[submission.student] = result
                on_result(submission, result, False)
    return [results[submission.student] for submission in submissions]


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


def _graded(grader: Grader, todo: list[Submission], jobs: int) -> Iterator[tuple[Submission, Result]]:
    pool = ThreadPoolExecutor(jobs)
    waiting: dict[Future, Submission] = {pool.submit(grader.grade, submission): submission for submission in todo}
    try:
        while waiting:
            done, _ = wait(waiting, return_when=FIRST_COMPLETED)
            for future in done:
                yield waiting.pop(future), future.result()
    finally:  # whoever stops the grading need not wait for what still runs
        pool.shutdown(wait=False, cancel_futures=True)
