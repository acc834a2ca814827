"""`course-lib export`: an assignment for students and for the places where they hand in."""

from __future__ import annotations

import argparse
from pathlib import Path

from course_grade.grading.assignment import Assignment, chosen, draw_seed, read_assignment
from course_kit._files import check_output

__all__ = ["add_to"]


def add_to(commands: argparse._SubParsersAction) -> None:
    """Add the command."""
    export = commands.add_parser(
        "export", help="an assignment as notebook, Gradescope autograder, or GitHub Classroom workflow"
    )
    export.add_argument("names", nargs="*", metavar="NAME", help="exercises; all of the assignment if none is named")
    export.add_argument("-a", "--assignment", type=Path, metavar="YAML", help="exercises, points and title")
    export.add_argument("--notebook", type=Path, metavar="FILE", help="stubs and checks, for students")
    export.add_argument("--gradescope", type=Path, metavar="FILE", help="autograder zip")
    export.add_argument("--classroom", type=Path, metavar="FILE", help="workflow for GitHub Classroom")
    export.add_argument("--install", metavar="REQUIREMENT", help="what pip installs there: the address of your copy")
    export.set_defaults(run=_export)


def _export(options: argparse.Namespace) -> int:
    from course_grade.output.export_assignment import export

    assignment = read_assignment(options.assignment) if options.assignment else Assignment(seed=draw_seed())
    assignment = chosen(assignment, options.names)
    if not assignment.tasks:
        raise ValueError("expected names of exercises, or an assignment that names some; `course-lib list` shows all")
    targets = {"notebook": options.notebook, "gradescope": options.gradescope, "classroom": options.classroom}
    if not any(targets.values()):
        raise ValueError("expected --notebook, --gradescope or --classroom with a file to write")
    for kind, path in targets.items():
        if path and kind != "notebook" and not options.install:
            raise ValueError(
                f"--{kind} needs --install REQUIREMENT, what pip should install where it is graded, for example "
                f'"course_lib[grading] @ git+https://…" with the address of your copy of the course and a version'
            )
    if set(options.install or "") & set("\"'\\`$\n"):
        raise ValueError(
            f"--install: expected a requirement without quotes, $ and backslashes, got {options.install!r}"
        )
    for path in filter(None, targets.values()):
        check_output(path)
    for kind, path in targets.items():
        if path:
            export(kind, path, assignment, options.install or "")
            print(f"{path}: written")
    return 0
