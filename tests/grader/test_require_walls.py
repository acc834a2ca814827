"""Submissions run only behind the walls that are required; which ones are up is printed before any of them runs."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from course_grade.cli import doctor
from course_grade.cli._preparing import WallsMissing, check_walls, required_walls
from course_grade.command import main
from course_grade.grading import grade as grading
from course_grade.sandbox.walls import Walls

pytestmark = [
    pytest.mark.usefixtures("lent_fork_servers"),
    pytest.mark.skipif(not hasattr(os, "fork"), reason="grading needs fork"),
]

ALL = Walls(("limits", "user", "namespaces", "landlock", "seccomp"))
SOME = Walls(("limits", "user", "landlock", "seccomp"), {"namespaces": "not permitted"})
NONE = Walls(("limits",), dict.fromkeys(("user", "namespaces", "landlock", "seccomp"), "not Linux"))
RIGHT = "import torch\ndef causal_mask(length):\n    return torch.ones(length, length).tril().bool()\n"


@pytest.fixture
def ordinary(monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: 1000)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Two students, whose code leaves a trace where it runs."""
    (tmp_path / "class").mkdir()
    for name in ("ada", "bob"):
        (tmp_path / "class" / f"{name}.py").write_text(RIGHT)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "250")
    return tmp_path


@pytest.mark.parametrize(("walls", "count"), [(ALL, 3), (SOME, 2), (NONE, 1)])
def test_a_level_is_enough_for_itself_and_less(ordinary, walls, count):
    levels = ["process", "partial", "full"]
    for required in levels[:count]:
        check_walls(walls, required)
    for required in levels[count:]:
        with pytest.raises(WallsMissing, match=f"expected {required} walls .* --require-walls {walls.level}"):
            check_walls(walls, required)


def test_where_grades_are_at_stake_more_is_required():
    assert [required_walls(None, at_stake=at_stake) for at_stake in (True, False)] == ["partial", "process"]
    assert required_walls("process", at_stake=True) == "process"
    assert required_walls("full", at_stake=False) == "full"


@pytest.mark.parametrize("up", [("limits",), ("limits", "landlock", "seccomp"), ()])
def test_nothing_runs_as_root_whatever_is_accepted(monkeypatch, up):
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    with pytest.raises(WallsMissing, match=r"would run as root.* a user namespace for them \(p(rocess|artial)\b"):
        check_walls(Walls(up), "process")
    for other in ("user", "namespaces"):
        check_walls(Walls((*up, other)), "process")


@pytest.fixture
def weak(lender, monkeypatch, ordinary):
    """A machine without walls, on which no process of a submission may start."""

    monkeypatch.setattr(grading, "ForkServer", lambda limits, walls: lender.lend(limits, ("limits",)))


def test_a_class_is_refused_without_walls_and_one_file_is_not(folder, weak, monkeypatch, capsys):
    with monkeypatch.context() as patch:
        patch.setattr("course_grade.grading.one_submission.Session", None)  # nothing of a submission is started
        assert main(["grade", "class", "-e", "causal_mask", "--out", "out"]) == 4
        printed = capsys.readouterr()
        assert "Walls around submissions: process (limits" in printed.out
        assert "accept fewer with --require-walls process" in printed.err
        assert not Path("out/results.csv").exists()
        assert main(["grade", "class/ada.py", "-e", "causal_mask", "--gradescope", "r.json"]) == 4
        assert main(["grade", "class/ada.py", "-e", "causal_mask", "--require-walls", "full"]) == 4
    capsys.readouterr()
    assert main(["grade", "class/ada.py", "-e", "causal_mask"]) == 0
    assert capsys.readouterr().out.startswith("Walls around submissions: ")


@pytest.mark.parametrize(("walls", "status"), [(ALL, 0), (SOME, 0), (NONE, 4)])
def test_doctor_tells_by_its_status_whether_a_class_can_be_graded(ordinary, monkeypatch, capsys, walls, status):
    monkeypatch.setattr(doctor, "probe", lambda: walls)
    assert main(["doctor"]) == status
    said = capsys.readouterr().out
    assert ("too few to grade a class" in said) == bool(status)
    assert ("--require-walls process" in said) == bool(status)


@pytest.mark.thorough
def test_sigterm_ends_a_run_in_a_line_and_the_same_command_goes_on(folder):
    slow = RIGHT.replace("    return", "    import time; time.sleep(0.3)\n    return")
    for number in range(6):
        (folder / "class" / f"s{number}.py").write_text(slow + f"# {number}\n")
    grade = ["grade", "class", "-e", "causal_mask", "--out", "out", "-j", "1"]
    command = [sys.executable, "-m", "course_grade.command", *grade]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline and len(list(Path("out/submissions").glob("*.json"))) < 1:
        time.sleep(0.05)
    process.send_signal(signal.SIGTERM)
    _, error = process.communicate(timeout=60)
    assert process.returncode == 143
    assert error.strip() == "Stopped. What has been graded is kept; the same command continues from here."
    assert 0 < len(list(Path("out/submissions").glob("*.json"))) < 8
