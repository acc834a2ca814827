"""What `course-lib grade` checks before anything runs: where results go, what is asked for, whether the walls
suffice."""

from __future__ import annotations

import argparse
import dataclasses
import os
import shlex
from pathlib import Path

from course_grade.grading.assignment import Assignment, chosen, draw_seed, read_assignment, tasks_for
from course_grade.sandbox.walls import Walls
from course_grade.submission.submissions import Submission
from course_kit._files import check_output, write_whole

__all__ = [
    "AT_STAKE",
    "LEVELS",
    "TOO_WEAK",
    "WallsMissing",
    "assignment_for",
    "check_outputs",
    "check_results_folder",
    "check_walls",
    "required_walls",
]

SEED_FILE = "seed.txt"
LEVELS = ("process", "partial", "full")
TOO_WEAK = 4  # exit status
AT_STAKE = "partial"  # the level that is required where grades are at stake


class WallsMissing(Exception):  # noqa: N818 - nothing is wrong but the machine
    """This machine has too few walls to run submissions; the message says what to do."""


def required_walls(asked: str | None, *, at_stake: bool) -> str:
    """The level that is required: what the instructor asks for, or else "partial" if grades are at stake."""
    return asked or (AT_STAKE if at_stake else LEVELS[0])


def check_walls(walls: Walls, required: str) -> None:
    """Compare the available walls with the required level.

    Raises:
        WallsMissing: there are too few, or submissions would run as root.
    """
    if hasattr(os, "geteuid") and os.geteuid() == 0 and not {"user", "namespaces"} & set(walls.up):
        raise WallsMissing(
            "submissions would run as root, because this machine has neither another user nor a user namespace for "
            f"them ({walls}); run the grader as an ordinary user"
        )
    if LEVELS.index(walls.level) < LEVELS.index(required):
        raise WallsMissing(
            f"expected {required} walls around submissions, but this machine has {walls}. `course-lib doctor` shows "
            "what is missing; a Linux machine or container with Landlock and user namespaces has all of them. "
            f"To grade on this machine anyway, accept fewer with --require-walls {walls.level}"
        )


def check_results_folder(out: Path, paths: list[Path]) -> None:
    """Refuse to keep results inside a folder that is graded, because students could write there.

    Raises:
        ValueError: the folder lies there; the message names a command that works.
    """
    folders = [Path(os.path.realpath(path)) for path in paths if path.is_dir()]

    def around(place: Path) -> Path | None:
        return next((folder for folder in folders if Path(os.path.realpath(place)).is_relative_to(folder)), None)

    graded = around(out)
    if graded is None:
        return
    above = next((parent for parent in graded.parents if not around(parent)), None)
    advice = "give --out a folder elsewhere"
    if above is not None:
        other = os.path.relpath(above / f"{graded.name}-grading")
        advice += f": course-lib grade {' '.join(shlex.quote(str(p)) for p in paths)} --out {shlex.quote(other)}"
    raise ValueError(f"the results folder {out} is inside a graded folder, where students could write; {advice}")


def check_outputs(files: dict[str, Path | None], out: Path | None) -> None:
    """Check before grading whether every file can be written.

    Args:
        files: by option.
        out: the folder of results, if there is one.

    Raises:
        ValueError: two options name one file, or an option names a submission.
        OSError: a file cannot be written.
    """
    seen: dict[str, str] = {}
    for option, path in files.items():
        if path is None:
            continue
        if path.suffix.lower() in {".py", ".ipynb"}:
            raise ValueError(f"--{option}: expected a file for results, got {path}, which would replace a submission")
        check_output(path)
        other = seen.setdefault(os.path.realpath(path), option)
        if other != option:
            raise ValueError(f"--{option} and --{other} name the same file, {path}; each needs a file of its own")
    if out:
        names = ("results.json", "results.csv", "similarity.html", "similarity.csv", SEED_FILE)
        for name in (*names, "feedback/page.html", "submissions/result.json"):
            check_output(out / name)


def assignment_for(options: argparse.Namespace, submissions: list[Submission], out: Path | None) -> Assignment:
    """The assignment that the options describe.

    Raises:
        ValueError, KeyError: it is not one, or has no exercises.
    """

    def seed() -> int:
        return _remembered_seed(out) if options.seed is None else options.seed

    assignment = read_assignment(options.assignment, seed) if options.assignment else Assignment(seed=seed())
    if options.seed is not None:
        assignment = dataclasses.replace(assignment, seed=options.seed)
    assignment = chosen(assignment, options.exercise or [])
    if not assignment.tasks:
        names = set().union(*(submission.defined() for submission in submissions))
        assignment = dataclasses.replace(assignment, tasks=tasks_for(names))
    if not assignment.tasks:
        raise ValueError(
            "expected a definition of an exercise in the submissions, found none; `course-lib list` shows the names, "
            "--exercise grades one even if no submission defines it"
        )
    return assignment


def _remembered_seed(out: Path | None) -> int:
    """The seed of an earlier run into the same folder, so that a restarted run grades the same cases; otherwise a new
    one."""
    path = out / SEED_FILE if out else None
    if path and path.is_file():
        text = path.read_text(encoding="ascii", errors="replace").strip()
        if text.isascii() and text.isdecimal() and len(text) < 100:
            return int(text)
    seed = draw_seed()
    if path:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, f"{seed}\n", private=True)
    return seed
