"""Grade submissions: run each in a process of its own, judge it here, keep every result on disk as soon as it is
there."""

from __future__ import annotations

import threading
import traceback
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from fractions import Fraction
from pathlib import Path

from course_grade.grading.assignment import AssignedExercise, Assignment
from course_grade.grading.collecting import Collection, OnResult
from course_grade.grading.lateness import Times
from course_grade.grading.one_submission import Run
from course_grade.grading.results import Result, TaskResult, ungraded_task
from course_grade.grading.scheduling import SharedOrExclusiveLock
from course_grade.grading.store import Store
from course_grade.sandbox.session import ForkServer, NotGraded, ServerGone
from course_grade.sandbox.walls import Walls
from course_grade.submission.submissions import Submission, needed
from course_kit.checker.forbidden_calls import forbidden_in, names_of
from course_kit.checker.protocol import bounded_text
from course_kit.checker.report.html_report import html_of
from course_kit.checker.report.plain_report import text_of
from course_kit.checker.report.report import Report, report_on
from course_kit.checker.verdict.sheet import sheet_of
from course_kit.exercises import Exercise, find

__all__ = ["Grader", "grade_all"]

GRADE_HEADING = "graded"


class Grader:
    """Grades one submission after another, from any number of threads.

    Args:
        assignment: what is asked for; with tasks.
    """

    def __init__(self, assignment: Assignment):
        self.assignment = assignment
        self._lock = threading.Lock()
        self._closed = False
        self._turns = SharedOrExclusiveLock()
        self.server = ForkServer(assignment.limits, assignment.walls)

    def grade(self, submission: Submission) -> Result:
        """Run and judge one submission. Whatever keeps the grader from a verdict is in the result, as "not graded"."""
        try:
            try:
                with self._turns.beside():
                    return self._graded(submission, self._usable(), self._turns)
            except ServerGone:  # this submission's doing, or that of one that ran beside it: alone, it will be seen
                with self._turns.alone():
                    return self._graded(submission, self._usable())
        except ServerGone:
            reason = "the grading was stopped"
            if not self._closed:
                reason = "the process that starts submissions ended while this one was graded, even alone"
        except Exception as error:  # no submission may end the grading of the others
            reason = reason_of(error)
        return ungraded(submission, self.assignment, reason, str(self.server.walls))

    def _usable(self) -> ForkServer:
        """The fork server; a new one where the last has ended."""
        with self._lock:
            if self._closed:
                raise ServerGone("the grading was stopped")
            if self.server.gone:
                self.server.close()
                self.server = ForkServer(self.assignment.limits, self.assignment.walls)
            return self.server

    def _graded(self, submission: Submission, server: ForkServer, turns: SharedOrExclusiveLock | None = None) -> Result:
        assignment = self.assignment
        exercises = [find(task.name) for task in assignment.tasks]
        run = Run(server, submission, exercises, turns)
        try:
            tasks = [self._task(run, task, e) for task, e in zip(assignment.tasks, exercises, strict=True)]
        finally:
            run.close()
        return Result(submission.student, tasks, [*submission.problems, *run.problems], walls=str(server.walls))

    def _task(self, run: Run, task: AssignedExercise, exercise: Exercise) -> TaskResult:
        try:
            return self._judged(run, task, exercise)
        except ServerGone:
            raise
        except Exception as error:  # the other exercises of the submission are graded all the same
            return ungraded_task(task.name, task.points, reason_of(error))

    def _judged(self, run: Run, task: AssignedExercise, exercise: Exercise) -> TaskResult:
        source = run.submission.find(exercise.name, exercise.stem)
        if source is None:
            broken = run.submission.broken(exercise.name)
            status = "failed" if broken else "not attempted"
            module = run.submission.imports(exercise.name)
            why = broken or (f"{exercise.name} is imported from {module}, not written here" if module else "")
            text = f"{exercise.name}: {why or 'not attempted'}"
            return TaskResult(exercise.name, status, Fraction(), task.points, note=why, text=text)
        sheet = sheet_of(exercise, self.assignment.seed)
        observations, note = run.observe(sheet)
        # What the process says of itself: names that could be in use, and nothing else.
        pieces = needed(source, exercise.name)
        used = {name for o in observations for name in o.used} & names_of(exercise) | forbidden_in(pieces, exercise)
        for number, seen in enumerate(observations):
            seen.used = tuple(sorted(used)) if number == 0 else ()
        ours = any(name.startswith(("course_lib.", "course_kit.")) for name in used)  # that is our solution
        allow = task.allow_twins and not ours
        report = report_on(sheet, observations, allow_twins=allow, sources=[piece.code for piece in pieces])
        if odd := run.suspicious:
            note = f"{note}; look at the code: it mentions {', '.join(odd)}".removeprefix("; ")
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


def ungraded(submission: Submission, assignment: Assignment, reason: str, walls: str = "") -> Result:
    """The result of a submission that could not be graded at all; see `ungraded_task`."""
    tasks = [ungraded_task(task.name, task.points, reason) for task in assignment.tasks]
    return Result(submission.student, tasks, [*submission.problems], walls=walls)


def reason_of(error: Exception) -> str:
    """Why an error kept the grader from a verdict, with the place in the grader that a report of the fault needs."""
    if isinstance(error, NotGraded | ServerGone):
        return bounded_text(str(error), 300)
    frames = traceback.extract_tb(error.__traceback__)
    place = f" ({Path(frames[-1].filename).name}, line {frames[-1].lineno})" if frames else ""
    return bounded_text(f"the grader failed: {type(error).__name__}: {error}", 300) + place


def _result(report: Report, task: AssignedExercise, note: str) -> TaskResult:
    verdict, diagnosis = report.verdict, report.diagnosis
    if verdict.used and verdict.status == "not counted":
        note = f"{note}; uses {', '.join(verdict.used)}".removeprefix("; ")
    return TaskResult(
        task.name,
        verdict.status,
        task.points * verdict.score,
        task.points,
        [{"says": line.message, "holds": line.holds, "weight": line.weight} for line in verdict.lines],
        diagnosis and {"key": diagnosis.key, "says": diagnosis.message},
        note,
        text_of(report, GRADE_HEADING, graded=True),
        html_of(report, GRADE_HEADING, graded=True),
    )


def grade_all(
    submissions: list[Submission],
    assignment: Assignment,
    store: Store | None,
    *,
    jobs: int = 1,
    times: Times | None = None,
    on_start: Callable[[Walls], None] = lambda walls: None,
    on_result: OnResult = lambda submission, result, again: None,
) -> list[Result]:
    """Grade every submission, in the order of the list.

    Args:
        store: where results are kept; those that are there already are used. What was not graded is not kept, so that
            the next run grades it again.
        jobs: how many submissions run side by side.
        times: when the platform received each submission; None to use the times of the files.
        on_start: called with the walls before the code of any submission runs; what it raises ends the run.
        on_result: called with each result, and whether it came from an earlier run.
    """
    collection = Collection(assignment, store, times, on_result)
    todo = collection.from_earlier(submissions)
    if todo:
        with Grader(assignment) as grader:
            on_start(grader.server.walls)
            for submission, result in _graded(grader, todo, jobs):
                collection.add(submission, result)
    return collection.in_order_of(submissions)


def _graded(grader: Grader, todo: list[Submission], jobs: int) -> Iterator[tuple[Submission, Result]]:
    pool = ThreadPoolExecutor(jobs)
    waiting: dict[Future, Submission] = {pool.submit(grader.grade, submission): submission for submission in todo}
    try:
        while waiting:
            done, _ = wait(waiting, return_when=FIRST_COMPLETED)
            for future in done:
                yield waiting.pop(future), future.result()
    finally:  # stopping the grading need not wait for calls that are still running
        pool.shutdown(wait=False, cancel_futures=True)
