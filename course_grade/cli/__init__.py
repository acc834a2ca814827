"""Commands of `course-lib` for instructors: grade, list and show exercises, export assignments, test this machine."""

from __future__ import annotations

import argparse

from course_grade.cli import doctor, export, grade, listing

__all__ = ["add_commands"]


def add_commands(commands: argparse._SubParsersAction) -> None:
    """Add the grader's commands to those of `course-lib`."""
    for module in (grade, listing, export, doctor):
        module.add_to(commands)
