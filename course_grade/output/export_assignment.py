"""Assignments for students and for the platforms where they submit: a notebook, Gradescope, GitHub Classroom."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Iterable
from fractions import Fraction
from pathlib import Path

from course_grade.grading.assignment import Assignment
from course_kit._files import write_whole
from course_kit.checker.points import percent, plain_number
from course_kit.exercises import Exercise, find

__all__ = ["export", "level_of"]


def export(kind: str, path: Path, assignment: Assignment, install: str) -> None:
    """Write an assignment.

    Args:
        kind: "notebook", "gradescope" or "classroom".
        path: the file to write.
        assignment: its exercises.
        install: what pip installs where it is graded, or in the notebook if the package is missing; "" for nothing.
    """
    make = {"notebook": notebook, "gradescope": gradescope_zip, "classroom": classroom}[kind]
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, make(assignment, install))


def _repairs(names: Iterable[str]) -> str:
    """What to do with that line where the code is given and has to be repaired."""
    if not any(find(name).repair for name in names):
        return ""
    return "; where the code is given, repair it, and delete that line when you have, or when nothing needs repair"


def notebook(assignment: Assignment, install: str) -> str:
    """A notebook with statement, stub and check of each exercise."""
    points = {task.name: task.points for task in assignment.tasks}
    allowed = {task.name for task in assignment.tasks if task.allow_twins}
    title = assignment.title or "Exercises"
    intro = (
        f"# {title}\n\nWrite your solution in place of `raise NotImplementedError`{_repairs(points)}. `check` tells "
        'you at once what holds and which mistake it looks like; `hint("name")` gives one hint at a time. Hand in '
        "this notebook: cells may be added, moved and copied, the last definition of a name counts."
    )
    facts = [f"{plain_number(assignment.points)} points in all."]
    if assignment.due:
        facts.append(f"Due {assignment.due:%Y-%m-%d %H:%M %z}.")
        if assignment.late_penalty:
            facts.append(f"Each day begun after that costs {percent(assignment.late_penalty)} of the points.")
    intro += "\n\n" + " ".join(facts)
    setup = INSTALLING.replace("INSTALL", install) if install else MISSING
    setup += "import math\n\nimport torch\nfrom torch import nn\n\nfrom course_kit import check, hint, progress"
    cells = [_cell("markdown", intro), _cell("code", setup)]
    for name in points:
        exercise = find(name)
        cells.append(_cell("markdown", _statement(exercise, points[name])))
        if name in allowed and exercise.forbidden:
            cells.append(_cell("markdown", "PyTorch's own function counts here, although `check` asks for your own."))
        cells.append(_cell("code", exercise.stub.rstrip()))
        cells.append(_cell("code", f"check({name})"))
    for number, cell in enumerate(cells):
        cell["id"] = f"cell-{number:03d}"
    content = {
        "cells": cells,
        "metadata": {
            "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
            "language_info": {"name": "python"},
        },
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    return json.dumps(content, indent=1, ensure_ascii=False) + "\n"


INSTALLING = """\
# The course's package. Does nothing where it is installed.
import importlib.util

if importlib.util.find_spec("course_lib") is None:
    %pip install --quiet "INSTALL"

"""
MISSING = """\
# The course's package.
import importlib.util

if importlib.util.find_spec("course_lib") is None:
    raise ModuleNotFoundError("course_lib is not installed: ask your instructor where to get it, then pip install it.")

"""


def level_of(exercise: Exercise) -> str:
    """The difficulty, in five circles."""
    return "●" * exercise.difficulty + "○" * (5 - exercise.difficulty)


def _statement(exercise: Exercise, points: Fraction) -> str:
    worth = f"{plain_number(points)} point{'s' if points != 1 else ''}"
    facts = f"*{level_of(exercise)} · about {exercise.minutes} minutes · {worth}*"
    return f"## {exercise.title}\n\n{facts}\n\n{exercise.statement.rstrip()}"


def _cell(kind: str, text: str) -> dict:
    lines = text.splitlines(keepends=True)
    cell = {"cell_type": kind, "metadata": {}, "source": lines}
    if kind == "code":
        cell |= {"execution_count": None, "outputs": []}
    return cell


def assignment_yaml(assignment: Assignment) -> str:
    """The assignment as the YAML that `course-lib grade --assignment` reads."""
    import yaml

    content = assignment.as_dict()
    del content["walls"]
    content["exercises"] = {task.pop("name"): task for task in content["exercises"]}
    content = {name: value for name, value in content.items() if value not in (None, "")}
    return yaml.safe_dump(content, sort_keys=False, allow_unicode=True)


SETUP = """\
#!/usr/bin/env bash
# Runs once, when Gradescope builds the autograder's image.
set -euo pipefail
apt-get update -qq
DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends python3 python3-venv
python3 -m venv /autograder/venv
/autograder/venv/bin/pip install --quiet "INSTALL"
"""
RUN = """\
#!/usr/bin/env bash
# Runs for each submission.
cd /autograder
mkdir -p results
status=0
# This container has one submission and goes with it, so fewer walls will do; none runs as root all the same.
venv/bin/course-lib grade submission --as-one --assignment source/assignment.yaml --jobs 1 --quiet \\
    --require-walls process \\
    --gradescope results/results.json 2> results/stderr.txt || status=$?
# With status 3 something is "not graded"; results.json says what, and what to do.
if [ $status -ne 0 ] && [ $status -ne 3 ]; then
  venv/bin/python - <<'END'
import json
text = open("results/stderr.txt", encoding="utf-8", errors="replace").read()[-2000:]
output = (
    "The grader could not run, so this submission is not graded. The 0 is what Gradescope asks for, not a grade. "
    "Please tell your instructor.\\n" + text
)
json.dump({"score": 0, "output": output}, open("results/results.json", "w"))
END
fi
"""


def gradescope_zip(assignment: Assignment, install: str) -> bytes:
    """What Gradescope accepts as an autograder: `setup.sh`, `run_autograder` and the assignment."""
    files = {
        "setup.sh": SETUP.replace("INSTALL", install),
        "run_autograder": RUN,
        "assignment.yaml": assignment_yaml(assignment),
    }
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in files.items():
            info = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))  # the same bytes every time
            info.external_attr = (0o755 if not name.endswith(".yaml") else 0o644) << 16
            archive.writestr(info, text)
    return buffer.getvalue()


CLASSROOM = """\
# GitHub Classroom: grades what a student pushes. Put it into .github/workflows of the assignment's template.
name: grade
on: [push, workflow_dispatch]
permissions:
  contents: read
jobs:
  grade:
    runs-on: ubuntu-latest
    timeout-minutes: 15
    steps:
      - uses: actions/checkout@v4
      - uses: actions/setup-python@v5
        with:
          python-version: "3.12"
      - name: Install
        run: python -m pip install --quiet "INSTALL"
      - name: Grade
        run: |
          cat > "$RUNNER_TEMP/assignment.yaml" <<'END'
ASSIGNMENT
          END
          course-lib grade . --as-one --assignment "$RUNNER_TEMP/assignment.yaml" --strict \\
            --out "$RUNNER_TEMP/grading" --junit "$RUNNER_TEMP/grading/junit.xml"
      - uses: actions/upload-artifact@v4
        if: always()
        with:
          name: grading
          path: ${{ runner.temp }}/grading
"""


def classroom(assignment: Assignment, install: str) -> str:
    """A workflow that grades each push and keeps the feedback page."""
    indented = "\n".join(f"          {line}" for line in assignment_yaml(assignment).rstrip().split("\n"))
    return CLASSROOM.replace("INSTALL", install).replace("ASSIGNMENT", indented)
