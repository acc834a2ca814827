"""What the tests of the command share: small submissions, a class, and how to run `course-lib`."""

import json
import os
import shutil
import sys
from pathlib import Path

import pytest
from handed_in import CAUSAL, IMPORT, NOT_STABLE, SOFTMAX

from course_grade.command import main

posix = pytest.mark.skipif(os.name != "posix" or shutil.which("bash") is None, reason="shell scripts need bash")

HANGS = """
def causal_mask(length):
    while True:
        pass
"""
WEEK = """\
title: Week 3
seed: 4711
exercises: {softmax: 2, causal_mask: 3}
limits: {seconds: 1}
"""


INSTALL = ["--install", "course_lib[grading] @ git+https://example.org/course@v1"]


def notebook_of(*sources: str) -> str:
    cells = [{"cell_type": "code", "metadata": {}, "source": s, "outputs": [], "execution_count": 1} for s in sources]
    return json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5})


def make_class(folder: Path) -> Path:
    """Five students: a file, a folder, a notebook, and two who handed in no code."""
    (folder / "bob").mkdir(parents=True)
    (folder / "dora").mkdir()
    (folder / "ada.py").write_text(IMPORT + SOFTMAX + CAUSAL)
    (folder / "bob" / "homework.py").write_text(IMPORT + NOT_STABLE)
    (folder / "cy.ipynb").write_text(notebook_of("%matplotlib inline\nimport torch", SOFTMAX, "check(softmax)", HANGS))
    (folder / "dora" / "homework.pdf").write_bytes(b"%PDF")
    (folder / "finn.zip").write_bytes(b"PK")
    (folder / ".ipynb_checkpoints").mkdir()
    return folder


def run(*arguments) -> int:
    return main([str(argument) for argument in arguments])


def results(path="out.json") -> dict:
    return json.loads(Path(path).read_text(encoding="utf-8"))


def first(path="out.json") -> dict:
    return results(path)["submissions"][0]


def command() -> str:
    path = shutil.which("course-lib", path=str(Path(sys.executable).parent))
    if path is None:
        pytest.skip("the package is not installed here")
    return path
