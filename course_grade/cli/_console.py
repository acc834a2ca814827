"""What `course-lib grade` prints: progress, a report or a table."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from course_grade.grading.assignment import Assignment
from course_grade.grading.lateness import Times
from course_grade.grading.results import NOT_GRADED, Result
from course_grade.grading.similarity import Pair
from course_grade.grading.store import Store
from course_grade.submission.submissions import Submission
from course_kit.checker.points import percent, plain_number

__all__ = ["Console"]


class Console:
    """A progress bar and a table, or neither."""

    def __init__(self, *, quiet: bool):
        from rich.console import Console

        self.console = Console(quiet=quiet, highlight=False, stderr=False, emoji=False)
        self.quiet = quiet

    def say(self, text: str) -> None:
        self.console.print(text, markup=False, emoji=False, soft_wrap=True)

    def reading(self, submissions: Iterable[Submission], total: int) -> Iterable[Submission]:
        """The submissions, while a bar says how many of them have been read."""
        from rich.progress import track

        hidden = self.quiet or not self.console.is_terminal
        return track(submissions, "reading", total, console=self.console, transient=True, disable=hidden)

    def progress(self, total: int, store: Store | None = None):
        from contextlib import contextmanager

        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        @contextmanager
        def bar():
            columns = (
                TextColumn("grading"),
                BarColumn(),
                MofNCompleteColumn(),
                TimeRemainingColumn(),
                TextColumn("{task.fields[note]}"),
            )
            with Progress(*columns, console=self.console, transient=True, disable=self.quiet) as progress:
                task = progress.add_task("grading", total=total, note="")
                earlier = ungraded = 0

                def advance(submission: Submission, result: Result, again: bool) -> None:
                    nonlocal earlier, ungraded
                    earlier += again
                    ungraded += result.ungraded > 0
                    notes = {"from an earlier run": earlier, "ungraded": ungraded}
                    note = ", ".join(f"{count} {what}" for what, count in notes.items() if count)
                    progress.update(task, advance=1, note=note)

                yield advance
            if store and store.distrusted:
                names = ", ".join(store.distrusted[:10]) + " …" * (len(store.distrusted) > 10)
                self.say(
                    f"{len(store.distrusted)} stored result(s) were not written by your grader on this machine, or were"
                    f" changed or moved since. They were not used, and these submissions were graded again: {names}."
                )
            if earlier:
                self.say(f"{earlier} of {total} were graded by an earlier run; --fresh grades them again.")

        return bar()

    def unknown_times(self, times: Times) -> None:
        """Every student for whom the platform's export does not say when the submission was received."""
        if times.unknown:
            self.say(f"Could not decide whether these {len(times.unknown)} submission(s) are on time:")
            for student, why in sorted(times.unknown.items()):
                self.say(f"  {student}: {why}")

    def similar(self, pairs: list[Pair], page: Path) -> None:
        """Pairs that are nearly the same, for the instructor to read."""
        from rich import box
        from rich.table import Table
        from rich.text import Text

        self.say(f"{len(pairs)} pair(s) of submissions are nearly the same; the code side by side: {page}")
        if pairs:
            table = Table("student", "other student", "in common", box=box.SIMPLE_HEAD)
            for pair in pairs[:20]:
                table.add_row(Text(pair.one.student), Text(pair.other.student), f"{pair.share:.0%}")
            self.console.print(table)

    def ungraded(self, results: list[Result]) -> int:
        """Report how many submissions have exercises without a verdict, and what to do about them."""
        count = sum(result.ungraded > 0 for result in results)
        if count:
            names = ", ".join(result.student for result in results if result.ungraded)
            self.say(
                f"{count} submission(s) could not be graded in full, because of the grader: {names}. "
                "Run the same command again to grade just these."
            )
        return count

    def table(self, results: list[Result], assignment: Assignment) -> None:
        from rich import box
        from rich.table import Column, Table
        from rich.text import Text

        if len(results) == 1:
            self._one(results[0])
        else:
            table = Table(
                Column("student", overflow="fold"),
                "points",
                "passed",
                "failed",
                "not attempted",
                "ungraded",
                "remarks",
                box=box.SIMPLE_HEAD,
            )
            for result in results:
                counts = [
                    sum(task.status == status for task in result.tasks)
                    for status in ("passed", "failed", "not attempted", NOT_GRADED)
                ]
                remarks = [*result.problems, *(f"{t.name}: {t.note}" for t in result.tasks if t.note)]
                if result.undecided:
                    remarks.insert(0, result.lateness)
                if result.late_days:
                    remarks.insert(0, f"{result.late_days} day(s) late")
                points = f"{plain_number(result.points)} of {plain_number(result.of)}"
                table.add_row(Text(result.student), points, *map(str, counts), Text("; ".join(remarks)[:200]))
            self.console.print(table)
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


def _by_exercise(results: list[Result], assignment: Assignment):
    """How the class did: one row per exercise, with its most frequent mistake."""
    from collections import Counter

    from rich import box
    from rich.table import Table

    headings = ("passed", "failed", "not attempted", "ungraded")
    table = Table("exercise", "mean points", *headings, "most frequent mistake", box=box.SIMPLE_HEAD)
    for number, task in enumerate(assignment.tasks):
        column = [result.tasks[number] for result in results]
        counts = Counter("failed" if t.status == "not counted" else t.status for t in column)
        mistakes = Counter(t.diagnosis["key"] for t in column if t.diagnosis).most_common(1)
        graded = [t for t in column if t.status != NOT_GRADED]
        mean = (
            f"{float(sum(t.points for t in graded) / len(graded)):.2f} of {plain_number(task.points)}" if graded else ""
        )
        often = f"{mistakes[0][0]} ({mistakes[0][1]})" if mistakes else ""
        states = [str(counts[status]) for status in ("passed", "failed", "not attempted", NOT_GRADED)]
        table.add_row(task.name, mean, *states, often)
    return table
