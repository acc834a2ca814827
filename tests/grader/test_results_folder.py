"""Where results are kept: never inside of what is graded, and used again only where this grader wrote them."""

import dataclasses
import json
import os
import re
import shlex
import stat
from datetime import datetime, timezone
from pathlib import Path

import pytest

from course_grade.command import main
from course_grade.grading import store as stores
from course_grade.grading.assignment import AssignedExercise, Assignment
from course_grade.grading.results import Result, TaskResult
from course_grade.grading.store import Store, key_file
from course_grade.submission.submissions import Submission

pytestmark = pytest.mark.usefixtures("lent_fork_servers")

RIGHT = "import torch\ndef causal_mask(length):\n    return torch.ones(length, length).tril().bool()\n"
WRONG = RIGHT.replace("tril", "triu")
ASSIGNMENT = Assignment(tasks=(AssignedExercise("causal_mask", 5),), seed=1)
FULL = Result("eve", [TaskResult("causal_mask", "passed", 5, 5)], walls="full")
EVE = Submission("eve", digest="d1")


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    """A class in ./class, with three students, one of them called grading."""
    folder = tmp_path / "class"
    (folder / "grading").mkdir(parents=True)
    (folder / "ada.py").write_text(RIGHT)
    (folder / "eve.py").write_text(WRONG)
    (folder / "grading" / "homework.py").write_text(RIGHT)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "250")
    return folder


# Where


INSIDE = {
    "the default": ("class", ".", None),
    "by name": (".", "class", "class/results"),
    "the folder itself": (".", "class", "class"),
    "two folders up and down": (".", "class", "class/../class/x/../results"),
    "through a link": (".", "class", "link/results"),
    "a link to what is graded": (".", "link", "class/results"),
    "inside of a student's folder": (".", "class", "class/grading/out"),
}


@pytest.mark.parametrize("kind", INSIDE)
def test_a_results_folder_inside_of_what_is_graded_is_refused_with_a_command_that_works(
    folder, kind, monkeypatch, capsys
):
    Path("link").symlink_to("class")
    here, graded, out = INSIDE[kind]
    monkeypatch.chdir(here)
    before = sorted(folder.rglob("*"))
    assert main(["grade", graded, "-e", "causal_mask", *(["--out", out] if out else [])]) == 2
    error = capsys.readouterr().err
    assert "is inside a graded folder" in error
    assert sorted(folder.rglob("*")) == before
    command = shlex.split(re.search(r"course-lib (grade .*)", error)[1])
    assert not Path(os.path.realpath(command[command.index("--out") + 1])).is_relative_to(folder)
    if kind == "the default":
        assert main([*command, "-e", "causal_mask", "--seed", "1"]) == 0
        students = json.loads((folder.parent / "class-grading" / "results.json").read_text())["submissions"]
        assert {s["student"]: s["points"] for s in students} == {"ada": 1, "eve": 0, "grading": 1}


@pytest.mark.parametrize("option", ["--json", "--csv", "--junit"])
def test_an_output_does_not_replace_a_submission_or_another_output(folder, option, capsys):
    assert main(["grade", "class", option, "class/ada.py"]) == 2
    assert "would replace a submission" in capsys.readouterr().err
    assert (folder / "ada.py").read_text() == RIGHT
    other = "--csv" if option != "--csv" else "--json"
    assert main(["grade", "class", option, "r.txt", other, "./r.txt"]) == 2
    assert "name the same file" in capsys.readouterr().err


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="pipes have names on POSIX systems only")
def test_what_is_not_a_file_is_refused_before_anything_is_graded_or_replaced(folder, capsys, monkeypatch):
    monkeypatch.setattr("course_grade.cli.grade.grade_all", None)
    os.mkfifo("pipe")
    grade, export = ["grade", "class/ada.py", "-e", "causal_mask"], ["export", "softmax", "--install", "course_lib"]
    lines = [(grade, option) for option in ("--json", "--csv", "--junit", "--gradescope")]
    for command, option in [*lines, *((export, option) for option in ("--notebook", "--gradescope", "--classroom"))]:
        assert main([*command, option, "pipe"]) == 2
        expected = "pipe cannot be written: expected a file or a new name, but it is a pipe"
        assert expected in capsys.readouterr().err, option
        assert Path("pipe").is_fifo()


# Genuine


@pytest.fixture
def state(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "state"


@pytest.fixture
def store(tmp_path, state):
    return lambda assignment=ASSIGNMENT: Store(tmp_path / "out" / "submissions", assignment)


def forged(raw: bytes) -> bytes:
    """With all points, in the words of the file."""
    return raw.replace(b'"points": "0"', b'"points": "5"').replace(b'"failed"', b'"passed"')


ZERO = Result("eve", [TaskResult("causal_mask", "failed", 0, 5)], walls="full")
FORGERIES = {
    "changed": forged,
    "without a code": lambda raw: raw[raw.index(b"{", 1) :],
    "with an empty code": lambda raw: re.sub(rb'"mac": "[^"]*"', b'"mac": ""', raw),
    "with a code of zeros": lambda raw: re.sub(rb'"mac": "[^"]*"', b'"mac": "' + b"0" * 64 + b'"', forged(raw)),
    "as before there were codes": lambda raw: json.dumps(json.loads(raw)["content"]).encode(),
    "cut": lambda raw: raw[:-20],
    "longer": lambda raw: raw + b" ",
    "deep": lambda raw: b"[" * 100_000,
    "not text": lambda raw: bytes(range(256)),
    "empty": lambda raw: b"",
}


@pytest.mark.parametrize("kind", FORGERIES)
def test_a_forged_result_is_not_used_and_that_is_noted(store, kind):
    first = store()
    first.save(EVE, ZERO)
    path = first.path(EVE)
    path.write_bytes(FORGERIES[kind](path.read_bytes()))
    again = store()
    assert again.load(EVE) is None
    assert again.distrusted == ["eve"]


def test_a_result_that_was_moved_to_another_student_is_not_used(store):
    first = store()
    first.save(Submission("ada", digest="d1"), Result("ada", FULL.tasks))
    first.path(Submission("ada")).rename(first.path(EVE))
    assert first.load(EVE) is None
    assert first.distrusted == ["eve"]


def test_a_result_is_used_again_also_where_title_or_lateness_changed(store):
    """Lateness is judged anew in every run, so nothing has to be graded again for it."""
    store().save(EVE, FULL)
    due = datetime(2026, 11, 30, tzinfo=timezone.utc)
    for change in ({}, {"title": "Week 3"}, {"due": due}, {"late_penalty": "1/10"}):
        again = store(assignment=dataclasses.replace(ASSIGNMENT, **change))
        assert (again.load(EVE), again.distrusted) == (FULL, [])


def test_a_result_of_something_else_is_graded_again(store, monkeypatch):
    store().save(EVE, FULL)
    tries = [(store(Assignment(ASSIGNMENT.tasks, seed=2)), EVE), (store(), Submission("eve", digest="d2"))]
    tries.append((store(dataclasses.replace(ASSIGNMENT, tasks=(AssignedExercise("causal_mask", 4),))), EVE))
    monkeypatch.setattr(stores, "__version__", "0.0.0")
    for again, submission in [*tries, (store(), EVE)]:
        assert again.load(submission) is None
        assert again.distrusted == []  # genuine, and of something else


def test_the_key_is_this_users_and_lies_elsewhere(store, state, tmp_path):
    store()
    assert key_file() == state / "course-lib" / "results.key"
    assert stat.S_IMODE(key_file().stat().st_mode) == 0o600
    assert len(key_file().read_bytes()) == 32
    assert [p.name for p in key_file().parent.iterdir()] == ["results.key"]
    assert not list((tmp_path / "out").rglob("*.key"))


def test_another_machine_or_user_grades_again(store, state):
    store().save(EVE, FULL)
    key_file().unlink()
    again = store()
    assert again.load(EVE) is None
    assert again.distrusted == ["eve"]


SPOILED = {
    "readable by others": lambda path: path.chmod(0o604),
    "readable by its group": lambda path: path.chmod(0o640),
    "short": lambda path: path.write_bytes(b"short"),
    "long": lambda path: path.write_bytes(b"k" * 33),
    "a folder": lambda path: (path.unlink(), path.mkdir()),
    "a pipe": lambda path: (path.unlink(), os.mkfifo(path, 0o600)),
    "a link": lambda path: (path.rename(path.with_name("other")), path.symlink_to("other")),
}


@pytest.mark.parametrize("kind", SPOILED)
def test_a_key_that_cannot_be_used_loses_no_work(store, kind):
    store().save(EVE, FULL)
    SPOILED[kind](key_file())
    again = store()
    assert "the key to stored results cannot be used" in again.trouble
    assert again.load(EVE) is None
    again.save(EVE, FULL)


def test_a_key_in_a_home_that_cannot_be_written_or_inside_of_the_results_is_not_used(store, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    for home, trouble in {"file/state": "cannot be used", "out": "is in the folder of the results"}.items():
        monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / home))
        assert trouble in store().trouble


def test_two_graders_that_start_at_once_have_one_key(store, monkeypatch):
    """The second one finds no key, and when it has made one, the first one's is there."""
    first = []
    lexists = os.path.lexists

    def late(path):
        found = lexists(path)
        if str(path).endswith("results.key") and not first:
            first.append(None)
            first[0] = store()
        return found

    monkeypatch.setattr(os.path, "lexists", late)
    second = store()
    first[0].save(EVE, FULL)
    assert second.load(EVE) == FULL


def test_the_command_grades_a_forged_result_again_and_says_so(folder, capsys):
    command = ["grade", "class", "-e", "causal_mask", "--out", "out"]
    assert main(command) == 0
    (path,) = Path("out/submissions").glob("eve-*.json")
    genuine = path.read_bytes()
    path.write_bytes(forged(genuine))
    capsys.readouterr()
    assert main(command) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert "1 stored result(s) were not written by your grader on this machine" in printed
    assert "graded again: eve." in printed
    assert "2 of 3 were graded by an earlier run; --fresh grades them again." in printed
    assert path.read_bytes() == genuine
    students = json.loads(Path("out/results.json").read_text())["submissions"]
    assert {s["student"]: s["points"] for s in students} == {"ada": 1, "eve": 0, "grading": 1}


# Names

NAMES = {
    "60 letters of four bytes": "𝔸" * 60,
    "200 letters of four bytes": "𐐷" * 200,
    "half a character at the limit": "a" + "𝔸" * 60,
    "slashes and dots": "../../etc/passwd",
    "control characters": "a\nb\x00c\x1b[2J",
    "half a character": "caf\udce9",
    "nothing": "",
    "a reserved name": "CON",
}


@pytest.mark.parametrize("kind", NAMES)
def test_a_result_is_kept_under_any_name(store, kind):
    submission = Submission(NAMES[kind], digest="d")
    store().save(submission, FULL)
    assert store().load(submission) is not None
    path = store().path(submission)
    assert path.parent == store().folder
    assert len(path.name.encode()) <= 100  # the feedback page and the temporary file beside it get longer names


def test_names_that_look_alike_have_files_of_their_own(store):
    names = ["Zoe", "zoe", "zoe!", "zoe?", "Jose\u0301", "Jos\u00e9", "𝔸" * 60, "𝔸" * 61]
    # Some file systems ignore case, and some the way in which a character is composed.
    assert len({store().path(Submission(name)).name.casefold() for name in names}) == len(names)
