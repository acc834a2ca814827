"""Grade submissions: run each in a process of its own, judge it here, keep every result on disk as soon as it is
there."""

from __future__ import annotations

import threading
import traceback
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

from course_grade.grading.assignment import AssignedExercise, Assignment
from course_grade.grading.lateness import Times, judge_lateness
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
from course_kit.exercises import find

__all__ = ["Grader", "grade_all", "reason_of", "ungraded"]

GRADE_HEADING = "graded"


def grade_all(
    submissions: list[Submission],
    assignment: Assignment,
    store: Store | None,
    *,
    jobs: int = 1,
    times: Times | None = None,
    start: Callable[[Assignment], Grader] | None = None,
    on_start: Callable[[Walls], None] = lambda walls: None,
    on_result: Callable[[Submission, Result, bool], None] = lambda submission, result, again: None,
) -> list[Result]:
    """Grade every submission, in the order of the list.

    Args:
        store: where results are kept; those that are there already are used. What was not graded is not kept, so that
            the next run grades it again.
        jobs: how many submissions run side by side.
        times: when the platform received each submission; None to use the times of the files.
        start: what grades, a `Grader` if None; called only if a submission is left to grade.
        on_start: called with the walls before the code of any submission runs; what it raises ends the run.
        on_result: called with each result, and whether it came from an earlier run.
    """
    results: dict[str, Result] = {}

    def take(submission: Submission, result: Result, again: bool) -> None:
        judge_lateness(result, submission, assignment, times)
        results[submission.student] = result
        on_result(submission, result, again)

    todo = []
    for submission in submissions:
        if store and (earlier := store.load(submission)):
            take(submission, earlier, True)
        else:
            todo.append(submission)
    if todo:
        with (start or Grader)(assignment) as grader:
            for walls in grader.walls():
                on_start(walls)
            for submission, result in grader.grade_each(todo, jobs):
                if store and not result.ungraded:
                    store.save(submission, result)
                take(submission, result, False)
    return [results[submission.student] for submission in submissions]


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

    def walls(self) -> list[Walls]:
        """What keeps submissions to themselves."""
        return [self.server.walls]

    def grade_each(self, submissions: list[Submission], jobs: int) -> Iterator[tuple[Submission, Result]]:
        """Grade many side by side; each with its result, as soon as that is there."""
        pool = ThreadPoolExecutor(jobs)
        owners = {pool.submit(self.grade, submission): submission for submission in submissions}
        try:
            for future in as_completed(owners):
                yield owners.pop(future), future.result()
        finally:  # stopping the grading need not wait for calls that are still running
            pool.shutdown(wait=False, cancel_futures=True)

    def grade(self, submission: Submission) -> Result:
        """Run and judge one submission. Whatever keeps the grader from a verdict is in the result, as "not graded"."""
        try:
            try:
                with self._turns.beside():
                    return self._graded(submission, self._turns)
            except ServerGone:  # this submission's doing, or that of one that ran beside it: alone, it will be seen
                with self._turns.alone():
                    return self._graded(submission)
        except ServerGone:
            reason = "the grading was stopped"
            if not self._closed:
                reason = "the process that starts submissions ended while this one was graded, even alone"
        except Exception as error:  # no submission may end the grading of the others
            reason = reason_of(error)
        return ungraded(submission, self.assignment, reason, str(self.server.walls))

    def _graded(self, submission: Submission, turns: SharedOrExclusiveLock | None = None) -> Result:
        server = self._usable()
        run = Run(server, submission, [find(task.name) for task in self.assignment.tasks], turns)
        try:
            tasks = [self._task(run, task) for task in self.assignment.tasks]
        finally:
            run.close()
        return Result(submission.student, tasks, list(submission.problems), walls=str(server.walls))

    def _usable(self) -> ForkServer:
        """The fork server; a new one where the last has ended."""
        with self._lock:
            if self._closed:
                raise ServerGone("the grading was stopped")
            if self.server.gone:
                self.server.close()
                self.server = ForkServer(self.assignment.limits, self.assignment.walls)
            return self.server

    def _task(self, run: Run, task: AssignedExercise) -> TaskResult:
        try:
            return _judged(run, task, self.assignment.seed)
        except ServerGone:
            raise
        except Exception as error:  # the other exercises of the submission are graded all the same
            return ungraded_task(task.name, task.points, reason_of(error))

    def close(self) -> None:
        """End the fork server, and with it whatever still runs."""
        with self._lock:
            self._closed = True
            self.server.close()

    def __enter__(self) -> Grader:
        return self

    def __exit__(self, *error) -> None:
        self.close()


def _judged(run: Run, task: AssignedExercise, seed: int) -> TaskResult:
    exercise, submission = find(task.name), run.submission
    source = submission.find(exercise.name, exercise.stem)
    if source is None:
        broken, module = submission.broken(exercise.name), submission.imports(exercise.name)
        why = broken or (f"{exercise.name} is imported from {module}, not written here" if module else "")
        status, text = "failed" if broken else "not attempted", f"{exercise.name}: {why or 'not attempted'}"
        return TaskResult(exercise.name, status, 0, task.points, note=why, text=text)
    sheet = sheet_of(exercise, seed)
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


def ungraded(submission: Submission, assignment: Assignment, reason: str, walls: str = "") -> Result:
    """The result of a submission that could not be graded at all; see `ungraded_task`."""
    tasks = [ungraded_task(task.name, task.points, reason) for task in assignment.tasks]
    return Result(submission.student, tasks, list(submission.problems), walls=walls)


def reason_of(error: Exception) -> str:
    """Why an error kept the grader from a verdict, with the place in the grader that a report of the fault needs."""
    if isinstance(error, NotGraded | ServerGone):
        return bounded_text(str(error), 300)
    frames = traceback.extract_tb(error.__traceback__)
    place = f" ({Path(frames[-1].filename).name}, line {frames[-1].lineno})" if frames else ""
    return bounded_text(f"the grader failed: {type(error).__name__}: {error}", 300) + place
