"""What `course-lib grade` prints: progress, a report or a table."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from rich import box
from rich.console import Console as RichConsole
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn, track
from rich.table import Column, Table
from rich.text import Text

from course_grade.grading.assignment import Assignment
from course_grade.grading.lateness import Times
from course_grade.grading.results import NOT_GRADED, Result
from course_grade.grading.similarity import Pair
from course_grade.submission.submissions import Submission
from course_kit.checker.points import percent, plain_number

__all__ = ["Console"]

STATUSES = ("passed", "failed", "not attempted", NOT_GRADED)
HEADINGS = ("passed", "failed", "not attempted", "ungraded")


class Console:
    """Progress bars, tables and sentences; none of them if quiet."""

    def __init__(self, *, quiet: bool):
        self.console = RichConsole(quiet=quiet, highlight=False, stderr=False, emoji=False)
        self.quiet = quiet

    def say(self, text: str) -> None:
        self.console.print(text, markup=False, emoji=False, soft_wrap=True)

    def reading(self, submissions: Iterable[Submission], total: int) -> Iterable[Submission]:
        """The submissions, while a bar says how many of them have been read."""
        hidden = self.quiet or not self.console.is_terminal
        return track(submissions, "reading", total, console=self.console, transient=True, disable=hidden)

    @contextlib.contextmanager
    def progress(self, total: int, distrusted: list[str]) -> Iterator[Callable[[Result, bool], None]]:
        """A bar, and the function that moves it on by a result; then a sentence on results of earlier runs.

        Args:
            total: how many results there will be.
            distrusted: students whose stored results are found not to be genuine meanwhile.
        """
        note = TextColumn("{task.fields[note]}")
        columns = (TextColumn("grading"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(), note)
        counts = {"from an earlier run": 0, "ungraded": 0}
        with Progress(*columns, console=self.console, transient=True, disable=self.quiet) as progress:
            task = progress.add_task("grading", total=total, note="")

            def advance(result: Result, again: bool) -> None:
                counts["from an earlier run"] += again
                counts["ungraded"] += result.ungraded > 0
                progress.update(task, advance=1, note=", ".join(f"{n} {what}" for what, n in counts.items() if n))

            yield advance
        if distrusted:
            names = ", ".join(distrusted[:10]) + " …" * (len(distrusted) > 10)
            self.say(
                f"{len(distrusted)} stored result(s) were not written by your grader on this machine, or were"
                f" changed or moved since. They were not used, and these submissions were graded again: {names}."
            )
        if earlier := counts["from an earlier run"]:
            self.say(f"{earlier} of {total} were graded by an earlier run; --fresh grades them again.")

    def unknown_times(self, times: Times) -> None:
        """Every student for whom the platform's export does not say when the submission was received."""
        if times.unknown:
            self.say(f"Could not decide whether these {len(times.unknown)} submission(s) are on time:")
            for student, why in sorted(times.unknown.items()):
                self.say(f"  {student}: {why}")

    def similar(self, pairs: list[Pair], page: Path) -> None:
        """Pairs that are nearly the same, for the instructor to read."""
        self.say(f"{len(pairs)} pair(s) of submissions are nearly the same; the code side by side: {page}")
        if pairs:
            table = Table("student", "other student", "in common", box=box.SIMPLE_HEAD)
            for pair in pairs[:20]:
                table.add_row(Text(pair.one.student), Text(pair.other.student), f"{pair.share:.0%}")
            self.console.print(table)

    def results(self, results: list[Result], assignment: Assignment) -> None:
        """The report on one submission, or tables of students and of exercises."""
        if len(results) == 1:
            self._one(results[0])
        else:
            self.console.print(_by_student(results))
            self.console.print(_by_exercise(results, assignment))
        walls = results[0].walls if results else ""
        self.say(f"Seed {assignment.seed}. Sandbox: {walls}.")

    def _one(self, result: Result) -> None:
        for task in result.tasks:
            self.say(task.text + (f"\n({task.note})" if task.note and task.note not in task.text else "") + "\n")
        for problem in result.problems:
            self.say(problem)
        if result.undecided:
            self.say(result.lateness)
        if result.late_days:
            self.say(f"{result.late_days} day(s) late, {percent(result.penalty)} taken off")
        self.say(f"{result.student}: {plain_number(result.points)} of {plain_number(result.of)} points")


def _by_student(results: list[Result]) -> Table:
    table = Table(Column("student", overflow="fold"), "points", *HEADINGS, "remarks", box=box.SIMPLE_HEAD)
    for result in results:
        counts = Counter(task.status for task in result.tasks)
        late = [f"{result.late_days} day(s) late"] if result.late_days else []
        remarks = "; ".join([*late, *result.remarks])[:200]
        points = f"{plain_number(result.points)} of {plain_number(result.of)}"
        table.add_row(Text(result.student), points, *(str(counts[status]) for status in STATUSES), Text(remarks))
    return table


def _by_exercise(results: list[Result], assignment: Assignment) -> Table:
    """How the class did: one row per exercise, with its most frequent mistake."""
    table = Table("exercise", "mean points", *HEADINGS, "most frequent mistake", box=box.SIMPLE_HEAD)
    for number, task in enumerate(assignment.tasks):
        column = [result.tasks[number] for result in results]
        counts = Counter("failed" if t.status == "not counted" else t.status for t in column)
        mistakes = Counter(t.diagnosis["key"] for t in column if t.diagnosis).most_common(1)
        earned = [t.points for t in column if t.status != NOT_GRADED]
        mean = f"{float(sum(earned) / len(earned)):.2f} of {plain_number(task.points)}" if earned else ""
        often = f"{mistakes[0][0]} ({mistakes[0][1]})" if mistakes else ""
        table.add_row(task.name, mean, *(str(counts[status]) for status in STATUSES), often)
    return table
