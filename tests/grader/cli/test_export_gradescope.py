"""`course-lib export --gradescope`: an archive that grades on Gradescope."""

import json
import stat
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
import yaml
from commands import IMPORT, INSTALL, SOFTMAX, command, grades, notebook_of, posix, run

from course_grade.grading.assignment import read_assignment

pytestmark = pytest.mark.usefixtures("lent_fork_servers")


@pytest.fixture
def archive(week):
    assert run("export", "-a", week, "--gradescope", "new/autograder.zip", "--install", "course_lib==0.1.0") == 0
    with zipfile.ZipFile("new/autograder.zip") as archive:
        yield archive


def test_the_autograder_has_its_files_with_their_modes_and_nothing_else(archive):
    assert archive.testzip() is None
    modes = {info.filename: stat.S_IMODE(info.external_attr >> 16) for info in archive.infolist()}
    assert modes == {"setup.sh": 0o755, "run_autograder": 0o755, "assignment.yaml": 0o644}
    assert [path.name for path in Path("new").iterdir()] == ["autograder.zip"]


@posix
@pytest.mark.parametrize("name", ["setup.sh", "run_autograder"])
def test_the_autograders_scripts_are_shell_with_unix_line_ends(archive, name):
    script = archive.read(name)
    assert script.startswith(b"#!/usr/bin/env bash\n")
    assert b"\r" not in script
    subprocess.run(["bash", "-n"], input=script, check=True, timeout=20)


def test_the_autograder_holds_the_assignment_and_installs_what_is_asked_for(archive, week):
    Path("inside.yaml").write_bytes(archive.read("assignment.yaml"))
    assert read_assignment(Path("inside.yaml")) == read_assignment(Path(week))
    assert 'pip install --quiet "course_lib==0.1.0"' in archive.read("setup.sh").decode()


def test_an_autograder_without_a_seed_gets_one_for_all_students():
    assert run("export", "softmax", "--gradescope", "a.zip", *INSTALL) == 0
    with zipfile.ZipFile("a.zip") as archive:
        content = yaml.safe_load(archive.read("assignment.yaml"))
    assert content["seed"] >= 0
    assert list(content["exercises"]) == ["softmax"]


@pytest.fixture
def gradescope_machine(archive, tmp_path):
    """A folder that looks as /autograder does; gives a function that runs the script there."""
    root = tmp_path / "autograder"
    (root / "source").mkdir(parents=True)
    (root / "submission").mkdir()
    (root / "venv" / "bin").mkdir(parents=True)
    (root / "venv" / "bin" / "course-lib").symlink_to(command())
    (root / "venv" / "bin" / "python").symlink_to(sys.executable)
    archive.extractall(root / "source")
    script = (root / "source" / "run_autograder").read_text()
    assert "/autograder" in script

    def start() -> dict:
        moved = script.replace("/autograder", str(root))
        subprocess.run(["bash"], input=moved.encode(), check=True, timeout=120, cwd=tmp_path)
        return json.loads((root / "results" / "results.json").read_text(encoding="utf-8"))

    return root, start


@grades
@posix
@pytest.mark.thorough
def test_the_autograder_grades_a_submission(gradescope_machine):
    root, start = gradescope_machine
    (root / "submission" / "my homework.ipynb").write_text(notebook_of(IMPORT, SOFTMAX))
    content = start()
    assert content["score"] == 2
    assert [(test["name"], test["max_score"], test["status"]) for test in content["tests"]] == [
        ("softmax", 2, "passed"),
        ("causal_mask", 3, "failed"),
    ]


@posix
@pytest.mark.thorough
def test_the_autograder_says_so_where_it_cannot_run(gradescope_machine):
    root, start = gradescope_machine
    (root / "submission" / "homework.py").write_text(IMPORT + SOFTMAX)
    (root / "source" / "assignment.yaml").write_text("exercises: {softmax: -2}\n")
    content = start()
    assert content["score"] == 0
    assert "The grader could not run, so this submission is not graded." in content["output"]
    assert "points must be a number of at least 0, got -2" in content["output"]
