"""`course-lib doctor`: what this machine provides for grading."""

from __future__ import annotations

import argparse
import os
import platform
import time

import torch

from course_grade.cli._preparing import AT_STAKE, TOO_WEAK, WallsMissing, check_walls
from course_grade.sandbox.session import ForkServer, Session
from course_grade.sandbox.walls import WALLS, Limits, probe
from course_kit.exercises import all_exercises
from course_lib._version import __version__

__all__ = ["add_to"]


def add_to(commands: argparse._SubParsersAction) -> None:
    """Add the command."""
    doctor = commands.add_parser("doctor", help="sandbox level and versions of this machine")
    doctor.set_defaults(run=_doctor)


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
    with ForkServer(Limits()) as server:
        start = time.perf_counter()
        Session(server).close()
        print(f"grading     works; a process takes {1000 * (time.perf_counter() - start):.0f} ms")
    try:
        check_walls(walls, AT_STAKE)
    except WallsMissing as error:
        print(f"walls       too few to grade a class: {error}")
        return TOO_WEAK
    print(f"walls       enough to grade a class ({AT_STAKE} or more)")
    return 0
