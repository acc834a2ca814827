"""`course-lib grade`: grade files, notebooks, or a class of them."""

from __future__ import annotations

import argparse
import functools
import os
import sys
from collections.abc import Callable
from pathlib import Path

from course_grade.cli._preparing import (
    AT_STAKE,
    LEVELS,
    TOO_WEAK,
    WallsMissing,
    assignment_for,
    check_outputs,
    check_results_folder,
    check_walls,
    required_walls,
)
from course_grade.grading.assignment import EXAMPLE, Assignment
from course_grade.grading.grade import grade_all
from course_grade.grading.lateness import Times
from course_grade.grading.platform_timestamps import read_times
from course_grade.grading.results import Result
from course_grade.grading.similarity import script_of, similar_pairs
from course_grade.grading.store import Store
from course_grade.output.result_files import csv_text, gradescope, json_text, junit
from course_grade.output.similarity_page import similarity_csv, similarity_page
from course_grade.output.student_page import write_feedback
from course_grade.sandbox.walls import Walls
from course_grade.submission.submissions import Submission, find_submissions, ignored_files, read_each
from course_kit._files import write_whole

__all__ = ["add_to"]

UNGRADED = 3  # exit status
STATUS = """\
Exit status: 0 when everything was graded, 1 with --strict unless every exercise is passed, 2 for wrong use, 3 when the
grader could not grade something (the same command then grades just that again), 4 when the machine has too few walls
to run submissions."""


def add_to(commands: argparse._SubParsersAction) -> None:
    """Add the command."""
    grade = commands.add_parser(
        "grade",
        help="grade files, notebooks, or folders with one submission per student",
        description="Grade submissions. Their code runs in separate processes; verdicts are computed outside them.",
        epilog=f"{STATUS}\n\nAn assignment file (--assignment), everything optional:\n\n{EXAMPLE}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    grade.add_argument("paths", nargs="+", type=_path, metavar="PATH", help=".py, .ipynb, or a folder of submissions")
    grade.add_argument("--as-one", action="store_true", help="treat all files below the paths as one student's")
    grade.add_argument(
        "-a", "--assignment", type=Path, metavar="YAML", help="exercises, points, due date, seed, limits"
    )
    grade.add_argument(
        "-e", "--exercise", action="append", metavar="NAME", help="grade this exercise only (repeatable)"
    )
    grade.add_argument("--seed", type=int, help="seed of the random cases; drawn and printed if not given")
    grade.add_argument(
        "--out", type=Path, metavar="DIR", help="results and feedback pages (default for several: grading)"
    )
    grade.add_argument("--json", type=Path, metavar="FILE", help="all results")
    grade.add_argument("--csv", type=Path, metavar="FILE", help="one row per student")
    grade.add_argument("--junit", type=Path, metavar="FILE", help="JUnit XML, for CI")
    grade.add_argument("--gradescope", type=Path, metavar="FILE", help="Gradescope's results.json; one submission only")
    grade.add_argument(
        "-j", "--jobs", type=int, default=os.cpu_count() or 1, help="submissions side by side (default: cores)"
    )
    grade.add_argument("--dask", metavar="ADDRESS", help="grade on a Dask cluster, such as tcp://host:8786")
    grade.add_argument(
        "--submitted-at",
        type=Path,
        metavar="CSV",
        help="when the platform received each submission, as exported by Moodle, Canvas or Gradescope; file times can "
        "be set back",
    )
    grade.add_argument(
        "--similarity", action="store_true", help="list pairs of submissions that are nearly the same, with a report"
    )
    grade.add_argument(
        "--require-walls",
        choices=LEVELS,
        metavar="LEVEL",
        help=f"process, partial or full: run submissions only behind at least these walls; `course-lib doctor` shows "
        f"yours (default: {AT_STAKE} for several submissions or Gradescope, else process)",
    )
    grade.add_argument(
        "--fresh", action="store_true", help="grade everything again, even if an earlier run has graded it"
    )
    grade.add_argument("--strict", action="store_true", help="exit with 1 unless every exercise is passed")
    grade.add_argument("--quiet", action="store_true", help="no progress bar and no table")
    grade.set_defaults(run=_grade)


def _path(text: str) -> Path:
    """A path of the command line; an empty one is a variable that is not set, not the working directory."""
    if not text:
        raise argparse.ArgumentTypeError("expected a file or folder, got an empty text")
    return Path(text)


def _grade(options: argparse.Namespace) -> int:
    # What is asked for, and what was handed in
    if options.jobs < 1:
        raise ValueError(f"--jobs must be at least 1, got {options.jobs}")
    handed_in = find_submissions(options.paths, as_one=options.as_one)
    if options.gradescope and len(handed_in) != 1:
        raise ValueError(f"--gradescope writes the results of a single submission, got {len(handed_in)}")
    if options.similarity and len(handed_in) < 2:
        raise ValueError(f"--similarity compares submissions, so it needs at least two; got {len(handed_in)}")
    out = options.out or (Path("grading") if len(handed_in) > 1 else None)
    if out:
        check_results_folder(out, options.paths)
    check_outputs({name: getattr(options, name) for name in ("json", "csv", "junit", "gradescope")}, out)
    from course_grade.cli._console import Console  # it needs rich

    console = Console(quiet=options.quiet)
    submissions = list(console.reading(read_each(handed_in), len(handed_in)))
    assignment = assignment_for(options, submissions, out)
    times = _times(options, assignment, submissions)
    if times:
        console.unknown_times(times)

    # Results of earlier runs
    store = Store(out / "submissions", assignment) if out else None
    if store and store.trouble:
        console.say(f"Results of earlier runs: {store.trouble}.")
    if store and options.fresh:
        for submission in submissions:
            store.path(submission).unlink(missing_ok=True)

    # Grading
    required = required_walls(options.require_walls, at_stake=len(submissions) > 1 or bool(options.gradescope))

    def on_start(walls: Walls) -> None:
        console.say(f"Walls around submissions: {walls}.")
        check_walls(walls, required)

    def on_result(submission: Submission, result: Result, again: bool) -> None:
        """Write the page at once: the pages of a class need not be in memory together."""
        if store:
            write_feedback(out / "feedback", store.path(submission).stem, result, assignment)
        if not options.gradescope:
            for task in result.tasks:
                task.html = ""
        advance(result, again)

    start = None
    if options.dask:
        from course_grade.grading.dask import ClusterGrader

        start = functools.partial(ClusterGrader, options.dask)
    more = {"jobs": options.jobs, "times": times, "start": start, "on_start": on_start, "on_result": on_result}
    with console.progress(len(submissions), store.distrusted if store else []) as advance:
        try:
            results = grade_all(submissions, assignment, store, **more)
        except WallsMissing as error:
            print(f"course-lib: {error}", file=sys.stderr)
            return TOO_WEAK

    # Reports
    _write(options, out, results, assignment)
    console.results(results, assignment)
    if ignored := ignored_files(options.paths) if not options.as_one else []:
        some = ", ".join(ignored[:10]) + " …" * (len(ignored) > 10)
        console.say(f"Not read, since tools leave such files behind: {some}")
    if store:
        console.say(f"Results and a feedback page per student: {out}")
        pages = {f"{store.path(submission).stem}.html" for submission in submissions}
        if old := [p.name for p in (out / "feedback").glob("*.html") if p.name not in pages]:
            console.say(f"{len(old)} feedback page(s) there belong to submissions not graded now: {', '.join(old[:5])}")
    if options.similarity:
        names = [task.name for task in assignment.tasks]
        pairs = similar_pairs([script_of(submission, names) for submission in submissions])
        write_whole(out / "similarity.html", similarity_page(pairs, len(submissions)))
        write_whole(out / "similarity.csv", similarity_csv(pairs))
        console.similar(pairs, out / "similarity.html")
    if ungraded := [result.student for result in results if result.ungraded]:
        console.say(
            f"{len(ungraded)} submission(s) could not be graded in full, because of the grader: {', '.join(ungraded)}. "
            "Run the same command again to grade just these."
        )
        return UNGRADED
    return int(options.strict and any(task.status != "passed" for r in results for task in r.tasks))


def _times(options: argparse.Namespace, assignment: Assignment, submissions: list[Submission]) -> Times | None:
    if options.submitted_at is None:
        return None
    if assignment.due is None:
        raise ValueError("--submitted-at needs a due date in the assignment (--assignment), or nothing can be late")
    return read_times(options.submitted_at, [s.student for s in submissions], assignment.due.tzinfo)


def _write(options: argparse.Namespace, out: Path | None, results: list[Result], assignment: Assignment) -> None:
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
