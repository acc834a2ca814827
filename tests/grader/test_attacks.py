"""Submissions that try to get points without solving anything, or to do harm. Written by someone who had read the
grader.

Each defines `softmax` or `causal_mask` and solves neither. None may gain a point, each has to end in a verdict that
people can read, and the honest submission that follows has to get all of its points.

`attacks/*.md` holds them, a file for each kind: under a heading what an attack does and when it has succeeded, and its
code. The code below `## Before each` belongs to all of the file.
"""

import os
import re
import sys
from pathlib import Path

import pytest

from course_grade.grading.assignment import AssignedExercise, Assignment
from course_grade.grading.grade import Grader
from course_grade.output.result_files import csv_text, json_text, junit
from course_grade.output.student_page import feedback_page
from course_grade.sandbox.walls import Limits
from course_grade.submission.submissions import read_submission

FOLDER = Path(__file__).parent / "attacks"
_SECTION = re.compile(r"^## (.+)\n((?:(?!```|## ).*\n)*)```python\n((?:.*\n)*?)```$", re.MULTILINE)


def attacks_in(path: Path) -> dict[str, tuple[str, str]]:
    """What each attack of a file does, and its code, by its name."""
    text = path.read_text(encoding="utf-8")
    found = {name: (" ".join(does.split()), code) for name, does, code in _SECTION.findall(text)}
    assert len(found) == text.count("\n```python\n"), path.name
    _, before = found.pop("Before each", ("", ""))
    return {name: (does, f"{before}\n\n{code}" if before else code) for name, (does, code) in found.items()}


KNOWN_LIMITS = attacks_in(FOLDER / "known_limits.md")
KINDS = {path.stem: attacks_in(path) for path in sorted(FOLDER.glob("*.md")) if path.stem != "known_limits"}
ATTACKS = {name: code for attacks in KINDS.values() for name, (_, code) in attacks.items()}
FIRST = {next(iter(attacks)) for attacks in KINDS.values()}
HONEST = """
import torch
def softmax(scores, dim=-1):
    e = (scores - scores.amax(dim, keepdim=True)).exp()
    return e / e.sum(dim, keepdim=True)
def causal_mask(length):
    return torch.ones(length, length, dtype=torch.bool).tril()
"""
# What needs a wall to be harmless is not run without walls.
NEEDS_WALLS = re.compile(
    "^(bomb_|process_|scratch_|signal_|write_|rewrite_|chmod_|fchmod_|flags_|xattr_|symlink_|network_)"
)
LIMITS = Limits(seconds=1.0, load_seconds=6.0, total_seconds=8.0, memory_mb=512)
TASKS = (AssignedExercise("softmax"), AssignedExercise("causal_mask"))

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the walls are Linux's")


@pytest.fixture(scope="module", params=["all walls", pytest.param("no walls", marks=pytest.mark.thorough)])
def grader(request):
    walls = {} if request.param == "all walls" else {"walls": ("limits",)}
    with Grader(Assignment(tasks=TASKS, seed=77, limits=LIMITS, **walls)) as grader:
        yield grader


@pytest.fixture
def canaries():
    """A file and a folder that attacks are after, and must be as they were afterwards."""
    file, folder = Path("/tmp/course-lib-canary-file"), Path("/tmp/course-lib-canary-folder")
    folder.mkdir(exist_ok=True)
    for path in (file, folder / "kept"):
        if not path.exists():
            path.write_text("kept")
    before = file.stat(), os.listxattr(file)
    yield
    assert (file.stat(), os.listxattr(file)) == before
    assert [path.read_text() for path in (file, folder / "kept")] == ["kept", "kept"]


@pytest.fixture(scope="module")
def honest(tmp_path_factory):
    path = tmp_path_factory.mktemp("honest") / "honest.py"
    path.write_text(HONEST)
    return read_submission("honest", [path])


@pytest.mark.parametrize(
    "name", [name if name in FIRST else pytest.param(name, marks=pytest.mark.thorough) for name in ATTACKS]
)
def test_an_attack_gains_nothing_and_harms_nobody(name, grader, honest, tmp_path, canaries):
    if NEEDS_WALLS.match(name) and "seccomp" not in grader.server.walls.up:
        pytest.skip("harmless behind walls only")
    if grader.server.walls.level == "partial" and len(grader.assignment.walls) > 1 and NEEDS_WALLS.match(name):
        pytest.skip(f"this machine has not all walls: {grader.server.walls}")
    path = tmp_path / f"{name}.py"
    path.write_text(ATTACKS[name], encoding="utf-8")
    result = grader.grade(read_submission(name, [path]))
    assert result.points == 0, [task.text for task in result.tasks]
    for task in result.tasks:
        assert task.status in {"failed", "not attempted", "not counted"}
        assert task.text.startswith(f"{task.name}: ")
        assert "Traceback" not in task.text
        written = task.text + task.note + task.html + " ".join(result.problems)
        assert all(c.isprintable() or c == "\n" for c in written), repr(written)
        assert "<script" not in task.html.lower()
        assert not re.search(r"^(?!softmax: |causal_mask: )\S.*\b(passed|points)\b", task.text, re.MULTILINE), task.text
    assert feedback_page(result, grader.assignment)
    assert csv_text([result], grader.assignment)
    assert json_text([result], grader.assignment)
    assert junit([result])
    after = grader.grade(honest)
    assert after.points == after.of, [task.text for task in after.tasks]


def test_known_limits_forge_no_value_and_are_told_to_instructors(grader, tmp_path):
    """Hidden calls of a function that does the whole exercise: right by value, so they get points."""
    assert len(ATTACKS) == sum(map(len, KINDS.values())) >= 40  # no name twice
    remarked, words = 0, ("none", "one", "two", "three", "four", "five", "six")
    for name, (does, code) in KNOWN_LIMITS.items():
        assert "known limit" in does
        path = tmp_path / f"{name}.py"
        path.write_text(code, encoding="utf-8")
        result = grader.grade(read_submission(name, [path]))
        (passed,) = [task for task in result.tasks if task.status != "not attempted"]
        assert passed.status == "passed", f"{name} gains nothing any more: it belongs to the other attacks"
        remarked += "look at the code" in passed.note
    page = (FOLDER.parents[2] / "book/teaching.md").read_text(encoding="utf-8")
    assert f"{len(ATTACKS)} submissions try to gain unearned points" in page
    assert f"{words[len(KNOWN_LIMITS)].capitalize()} more hide a call" in page
    assert f"{words[remarked].capitalize()} of these get a remark" in page


def test_no_process_is_left_behind(grader, honest):
    grader.grade(honest)
    pid = grader.server._process.pid
    assert Path(f"/proc/{pid}/task/{pid}/children").read_text() == ""
