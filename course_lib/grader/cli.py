"""Commands of `course-lib` for teachers: grade, list and show exercises, export assignments, look at this machine."""

from __future__ import annotations

import argparse
import dataclasses
import os
import platform
import time
from collections.abc import Callable
from pathlib import Path

import torch

from course_lib import __version__
from course_lib._files import write_whole
from course_lib.exercises import STEMS, all_exercises, find
from course_lib.grader._assignment import EXAMPLE, Assignment, draw_seed, read_assignment, tasks_for
from course_lib.grader._grading import grade_all
from course_lib.grader._outputs import csv_text, gradescope, json_text, junit, write_feedback
from course_lib.grader._results import Result
from course_lib.grader._sandbox import WALLS, probe
from course_lib.grader._store import Store
from course_lib.grader._submissions import Submission, ignored_files, read_submissions

__all__ = ["add_commands"]

SEED_FILE = "seed.txt"


def add_commands(commands: argparse._SubParsersAction) -> None:
    """Add the grader's commands to those of `course-lib`."""
    grade = commands.add_parser(
        "grade",
        help="grade files, notebooks, or folders with one a student",
        description="Grade submissions. Their code runs in processes of its own; verdicts are computed outside.",
        epilog=f"An assignment file (--assignment), everything optional:\n\n{EXAMPLE}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    grade.add_argument("paths", nargs="+", type=Path, metavar="PATH", help=".py, .ipynb, or a folder of submissions")
    grade.add_argument("--as-one", action="store_true", help="all files below the paths are one student's")
    grade.add_argument(
        "-a", "--assignment", type=Path, metavar="YAML", help="exercises, points, due date, seed, limits"
    )
    grade.add_argument(
        "-e", "--exercise", action="append", metavar="NAME", help="grade this exercise only (repeatable)"
    )
    grade.add_argument("--seed", type=int, help="of the random cases; drawn and printed if not given")
    grade.add_argument(
        "--out", type=Path, metavar="DIR", help="results and feedback pages (default for several: grading)"
    )
    grade.add_argument("--json", type=Path, metavar="FILE", help="all results")
    grade.add_argument("--csv", type=Path, metavar="FILE", help="a row a student")
    grade.add_argument("--junit", type=Path, metavar="FILE", help="JUnit XML, for CI")
    grade.add_argument("--gradescope", type=Path, metavar="FILE", help="Gradescope's results.json; one submission only")
    grade.add_argument(
        "-j", "--jobs", type=int, default=os.cpu_count() or 1, help="submissions side by side (default: cores)"
    )
    grade.add_argument("--dask", metavar="ADDRESS", help="grade on a Dask cluster, such as tcp://host:8786")
    grade.add_argument("--fresh", action="store_true", help="grade again what an earlier run has graded")
    grade.add_argument("--strict", action="store_true", help="exit with 1 unless every exercise is passed")
    grade.add_argument("--quiet", action="store_true", help="no progress bar and no table")
    grade.set_defaults(run=_grade)

    listing = commands.add_parser("list", help="all exercises")
    listing.set_defaults(run=_list)

    show = commands.add_parser("show", help="one exercise: statement, stub, hints")
    show.add_argument("name", metavar="NAME")
    show.add_argument("--hints", action="store_true", help="with all hints")
    show.add_argument("--solution", action="store_true", help="with a solution")
    show.set_defaults(run=_show)

    export = commands.add_parser(
        "export", help="an assignment as notebook, Gradescope autograder, or GitHub Classroom workflow"
    )
    export.add_argument("names", nargs="*", metavar="NAME", help="exercises; all of the assignment if none is named")
    export.add_argument("-a", "--assignment", type=Path, metavar="YAML", help="exercises, points and title")
    export.add_argument("--notebook", type=Path, metavar="FILE", help="stubs and checks, for students")
    export.add_argument("--gradescope", type=Path, metavar="FILE", help="autograder zip")
    export.add_argument("--classroom", type=Path, metavar="FILE", help="workflow for GitHub Classroom")
    export.add_argument("--install", metavar="REQUIREMENT", help="what pip installs there: an address of your copy")
    export.set_defaults(run=_export)

    doctor = commands.add_parser("doctor", help="sandbox level and versions of this machine")
    doctor.set_defaults(run=_doctor)


# grade


def _grade(options: argparse.Namespace) -> int:
    out = options.out or Path("grading")
    submissions = list(read_submissions(options.paths, as_one=options.as_one, results=out))
    if options.gradescope and len(submissions) != 1:
        raise ValueError(f"--gradescope writes the results of one submission, got {len(submissions)}")
    if options.jobs < 1:
        raise ValueError(f"--jobs must be at least 1, got {options.jobs}")
    out = options.out or (out if len(submissions) > 1 else None)
    assignment = _assignment(options, submissions, out)
    if not assignment.tasks:
        raise ValueError(
            "expected a definition of an exercise in the submissions, found none; `course-lib list` shows the names, "
            "--exercise grades one even where nobody defines it"
        )
    store = Store(out / "submissions", assignment) if out else None
    if store and options.fresh:
        for submission in submissions:
            store.path(submission).unlink(missing_ok=True)
    console = _Console(quiet=options.quiet)
    with console.progress(len(submissions)) as advance:
        if options.dask:
            from course_lib.grader._dask import grade_on_cluster

            results = grade_on_cluster(options.dask, submissions, assignment, store, on_result=advance)
        else:
            results = grade_all(submissions, assignment, store, jobs=options.jobs, on_result=advance)
    _write(options, out, submissions, results, assignment)
    console.table(results, assignment)
    if ignored := ignored_files(options.paths) if not options.as_one else []:
        console.say(f"Not read, since they are no .py or .ipynb: {', '.join(ignored[:10])}{' …' * (len(ignored) > 10)}")
    if out:
        console.say(f"Results and a feedback page a student: {out}")
        pages = {f"{Store(out / 'submissions', assignment).path(s).stem}.html" for s in submissions}
        if old := [p.name for p in (out / "feedback").glob("*.html") if p.name not in pages]:
            console.say(f"{len(old)} feedback page(s) there belong to submissions not graded now: {', '.join(old[:5])}")
    return int(options.strict and any(task.status != "passed" for r in results for task in r.tasks))


def _assignment(options: argparse.Namespace, submissions: list[Submission], out: Path | None) -> Assignment:
    assignment = read_assignment(options.assignment) if options.assignment else Assignment(seed=-1)
    given = options.seed
    if given is None and not (options.assignment and _has_seed(options.assignment)):
        given = _remembered_seed(out)
    if given is not None:
        assignment = dataclasses.replace(assignment, seed=given)
    assignment = _only(assignment, options.exercise or [])
    if not assignment.tasks:
        names = set().union(*(submission.defined() for submission in submissions))
        assignment = dataclasses.replace(assignment, tasks=tasks_for(names))
    return assignment


def _only(assignment: Assignment, names: list[str]) -> Assignment:
    """The assignment with these exercises, and their points where it gives them; all of it if none is named."""
    if not names:
        return assignment
    chosen = {find(name).name for name in names}
    given = {task.name for task in assignment.tasks}
    tasks = [task for task in assignment.tasks if task.name in chosen]
    return dataclasses.replace(assignment, tasks=(*tasks, *tasks_for(chosen - given)))


def _has_seed(path: Path) -> bool:
    import yaml

    return (yaml.safe_load(path.read_text(encoding="utf-8")) or {}).get("seed") is not None


def _remembered_seed(out: Path | None) -> int:
    """The seed of an earlier run into the same folder, so that a second start grades the same cases; else a new one."""
    path = out / SEED_FILE if out else None
    if path and path.exists():
        text = path.read_text(encoding="ascii").strip()
        if text.isdigit():
            return int(text)
    seed = draw_seed()
    if path:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, f"{seed}\n")
    return seed


def _write(
    options, out: Path | None, submissions: list[Submission], results: list[Result], assignment: Assignment
) -> None:
    if out:
        for submission, result in zip(submissions, results, strict=True):
            name = Store(out / "submissions", assignment).path(submission).stem
            write_feedback(out / "feedback", name, result, assignment)
    writers: dict[str, Callable[[], str]] = {
        "json": lambda: json_text(results, assignment),
        "csv": lambda: csv_text(results, assignment),
        "junit": lambda: junit(results),
        "gradescope": lambda: gradescope(results[0]),
    }
    for name, text in writers.items():
        path = getattr(options, name)
        if path is None and out and name in {"json", "csv"}:
            path = out / f"results.{name}"
        if path:
            path.parent.mkdir(parents=True, exist_ok=True)
            write_whole(path, text())


class _Console:
    """A progress bar and a table, or neither."""

    def __init__(self, *, quiet: bool):
        from rich.console import Console

        self.console = Console(quiet=quiet, highlight=False, stderr=False, emoji=False)
        self.quiet = quiet

    def say(self, text: str) -> None:
        self.console.print(text, markup=False, emoji=False, soft_wrap=True)

    def progress(self, total: int):
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
                earlier = 0

                def advance(submission: Submission, result: Result, again: bool) -> None:
                    nonlocal earlier
                    earlier += again
                    note = f"{earlier} from an earlier run" if earlier else ""
                    progress.update(task, advance=1, note=note)

                yield advance
            if earlier:
                self.say(f"{earlier} of {total} were graded by an earlier run; --fresh grades them again.")

        return bar()

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
                "remarks",
                box=box.SIMPLE_HEAD,
            )
            for result in results:
                counts = [
                    sum(task.status == status for task in result.tasks)
                    for status in ("passed", "failed", "not attempted")
                ]
                remarks = [*result.problems, *(f"{t.name}: {t.note}" for t in result.tasks if t.note)]
                if result.late_days:
                    remarks.insert(0, f"{result.late_days} day(s) late")
                points = f"{result.points:g} of {result.of:g}"
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
        if result.late_days:
            self.say(f"{result.late_days} day(s) late, {result.penalty:.0%} taken off")
        self.say(f"{result.student}: {result.points:g} of {result.of:g} points")


def _by_exercise(results: list[Result], assignment: Assignment):
    """How the class did: a row an exercise, with the mistake that was made most often."""
    from collections import Counter

    from rich import box
    from rich.table import Table

    table = Table(
        "exercise", "mean points", "passed", "failed", "not attempted", "most frequent mistake", box=box.SIMPLE_HEAD
    )
    for number, task in enumerate(assignment.tasks):
        column = [result.tasks[number] for result in results]
        counts = Counter("failed" if t.status == "not counted" else t.status for t in column)
        mistakes = Counter(t.diagnosis["key"] for t in column if t.diagnosis).most_common(1)
        mean = sum(t.points for t in column) / len(column)
        often = f"{mistakes[0][0]} ({mistakes[0][1]})" if mistakes else ""
        states = [str(counts[status]) for status in ("passed", "failed", "not attempted")]
        table.add_row(task.name, f"{mean:.2f} of {task.points:g}", *states, often)
    return table


# list, show, doctor


def _list(options: argparse.Namespace) -> int:
    for stem in STEMS:
        exercises = [exercise for exercise in all_exercises().values() if exercise.stem == stem]
        if exercises:
            print(stem)
        for exercise in exercises:
            level = "●" * exercise.difficulty + "○" * (5 - exercise.difficulty)
            print(f"  {exercise.name:<30} {level} {exercise.minutes:>3} min  {exercise.title}")
    return 0


def _show(options: argparse.Namespace) -> int:
    exercise = find(options.name)
    level = "●" * exercise.difficulty + "○" * (5 - exercise.difficulty)
    print(f"{exercise.title}\nchapter {exercise.stem}, difficulty {level}, about {exercise.minutes} minutes\n")
    print(exercise.statement.rstrip() + "\n")
    print(exercise.stub.rstrip())
    if not (options.hints or options.solution):
        print(f"\n{len(exercise.hints)} hints: course-lib show {exercise.name} --hints")
    if options.hints:
        print()
        for number, text in enumerate(exercise.hints, 1):
            print(f"Hint {number}: {text}")
    if options.solution:
        print("\n" + exercise.solution.rstrip())
    return 0


def _doctor(options: argparse.Namespace) -> int:
    import numpy

    print(f"course-lib  {__version__}")
    print(
        f"python      {platform.python_version()} on {platform.system()} {platform.machine()}, {os.cpu_count()} cores"
    )
    print(f"torch       {torch.__version__}, numpy {numpy.__version__}")
    for name in ("rich", "yaml", "distributed"):
        try:
            __import__(name)
            print(f"{name:<11} installed")
        except ModuleNotFoundError:
            what = "needed by grade" if name != "distributed" else "needed by grade --dask only"
            print(f"{name:<11} not installed ({what})")
    walls = probe()
    print(f"exercises   {len(all_exercises())}")
    print(f"sandbox     {walls.level}")
    for name, does in WALLS.items():
        state = "up" if name in walls.up else walls.missing.get(name, "not needed")
        print(f"  {name:<10}  {does}: {state if state in {'up', 'not needed'} else f'not available, {state}'}")
    if not hasattr(os, "fork"):
        print("grading     not on this system: it needs fork (Linux, macOS, WSL)")
        return 1
    from course_lib.grader._assignment import Limits
    from course_lib.grader._session import ForkServer, Session

    with ForkServer(Limits()) as server:
        start = time.perf_counter()
        Session(server).close()
        print(f"grading     works; a process takes {1000 * (time.perf_counter() - start):.0f} ms")
    return 0


def _export(options: argparse.Namespace) -> int:
    from course_lib.grader._exporting import export

    assignment = read_assignment(options.assignment) if options.assignment else Assignment(seed=draw_seed())
    assignment = _only(assignment, options.names)
    if not assignment.tasks:
        raise ValueError("expected names of exercises, or an assignment that names some; `course-lib list` shows all")
    targets = {"notebook": options.notebook, "gradescope": options.gradescope, "classroom": options.classroom}
    if not any(targets.values()):
        raise ValueError("expected --notebook, --gradescope or --classroom with a file to write")
    for kind, path in targets.items():
        if path and kind != "notebook" and not options.install:
            raise ValueError(
                f"--{kind} needs --install REQUIREMENT, what pip installs where it is graded: for instance "
                f'"course_lib[grading] @ git+https://…" with the address of your copy of the course and a version'
            )
    if set(options.install or "") & set("\"'\\`$\n"):
        raise ValueError(
            f"--install: expected a requirement without quotes, $ and backslashes, got {options.install!r}"
        )
    for kind, path in targets.items():
        if path:
            export(kind, path, assignment, options.install or "")
            print(f"{path}: written")
    return 0
