"""`course-lib grade`: grade files, notebooks, or a class of them."""

from __future__ import annotations

import argparse
import dataclasses
import os
from collections.abc import Callable
from pathlib import Path

from course_lib._files import write_whole
from course_lib.grader._assignment import EXAMPLE, Assignment, chosen, draw_seed, read_assignment, tasks_for
from course_lib.grader._grading import grade_all
from course_lib.grader._outputs import csv_text, gradescope, json_text, junit
from course_lib.grader._page import write_feedback
from course_lib.grader._results import Result
from course_lib.grader._store import Store
from course_lib.grader._submissions import Submission, ignored_files, read_submissions
from course_lib.grader.cli._console import Console

__all__ = ["add_to"]

SEED_FILE = "seed.txt"
UNGRADED = 3  # exit status
STATUS = """\
Exit status: 0 when everything was graded, 1 with --strict unless every exercise is passed, 2 for wrong use, 3 when the
grader could not grade something; the same command then grades just that again."""


def add_to(commands: argparse._SubParsersAction) -> None:
    """Add the command."""
    grade = commands.add_parser(
        "grade",
        help="grade files, notebooks, or folders with one a student",
        description="Grade submissions. Their code runs in processes of its own; verdicts are computed outside.",
        epilog=f"{STATUS}\n\nAn assignment file (--assignment), everything optional:\n\n{EXAMPLE}",
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
    console = Console(quiet=options.quiet)
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
    if console.ungraded(results):
        return UNGRADED
    return int(options.strict and any(task.status != "passed" for r in results for task in r.tasks))


def _assignment(options: argparse.Namespace, submissions: list[Submission], out: Path | None) -> Assignment:
    assignment = read_assignment(options.assignment) if options.assignment else Assignment(seed=-1)
    given = options.seed
    if given is None and not (options.assignment and _has_seed(options.assignment)):
        given = _remembered_seed(out)
    if given is not None:
        assignment = dataclasses.replace(assignment, seed=given)
    assignment = chosen(assignment, options.exercise or [])
    if not assignment.tasks:
        names = set().union(*(submission.defined() for submission in submissions))
        assignment = dataclasses.replace(assignment, tasks=tasks_for(names))
    return assignment


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
