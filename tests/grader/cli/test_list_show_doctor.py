"""`course-lib list`, `show` and `doctor`; help, a package that is missing, and what terminals and pipes see."""

import contextlib
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from commands import run

from course_grade.command import main
from course_grade.grading.assignment import read_assignment
from course_grade.sandbox.walls import WALLS
from course_kit.exercises import STEMS, all_exercises, find
from course_lib._version import __version__

pytestmark = pytest.mark.usefixtures("lent_fork_servers")


def test_list_names_every_exercise_below_its_chapter_in_reading_order(capsys):
    assert main(["list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line for line in lines if not line.startswith(" ")] == list(STEMS)
    assert [line.split()[0] for line in lines if line.startswith(" ")] == list(all_exercises())
    for exercise in all_exercises().values():
        (line,) = (line for line in lines if line.split()[0] == exercise.name)
        assert line.endswith(f"{exercise.minutes:>3} min  {exercise.title}")
        assert line.count("●") == exercise.difficulty


def test_show_gives_statement_and_stub_and_keeps_hints_and_solution(capsys):
    for name, exercise in all_exercises().items():
        assert main(["show", name]) == 0
        text = capsys.readouterr().out
        assert text.startswith(exercise.title)
        assert exercise.statement.rstrip() in text
        assert exercise.stub.rstrip() in text
        assert not any(hint in text for hint in exercise.hints)
        assert exercise.solution.rstrip() not in text


def test_show_gives_all_hints_and_a_solution_where_they_are_asked_for(capsys):
    exercise, shown = find("softmax"), {}
    for option in ("--hints", "--solution"):
        assert main(["show", "softmax", option]) == 0
        shown[option] = capsys.readouterr().out
    hints = [f"Hint {number}: {hint}" for number, hint in enumerate(exercise.hints, 1)]
    assert [all(hint in text for hint in hints) for text in shown.values()] == [True, False]
    assert [exercise.solution.rstrip() in text for text in shown.values()] == [False, True]


def test_doctor_says_what_this_machine_has(own_fork_server, capsys):
    assert main(["doctor"]) == 0
    text = capsys.readouterr().out
    assert re.search(rf"^course-lib +{re.escape(__version__)}$", text, re.MULTILINE)
    assert re.search(r"^sandbox +(full|partial|process)$", text, re.MULTILINE)
    assert re.search(r"^grading +works; a process takes \d+ ms$", text, re.MULTILINE)
    assert re.search(rf"^exercises +{len(all_exercises())}$", text, re.MULTILINE)
    for wall, does in WALLS.items():
        assert re.search(rf"^  {wall} +{re.escape(does)}: (up|not needed|not available, .+)$", text, re.MULTILINE)


def test_doctor_says_what_is_not_installed(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "distributed", None)
    main(["doctor"])
    assert re.search(r"^distributed +not installed \(needed by grade --dask only\)$", capsys.readouterr().out, re.M)


def test_help_is_there_for_every_command_and_shows_an_assignment_file_that_works(capsys):
    for command in ("", "list ", "show ", "clauses ", "export ", "doctor ", "grade "):
        with pytest.raises(SystemExit) as ended:
            main(f"{command}--help".split())
        assert ended.value.code == 0
        text = capsys.readouterr().out
        assert f"usage: course-lib {command}".strip() in text
    example = text.partition("everything optional:")[2]
    Path("example.yaml").write_text(example)
    assert len(read_assignment(Path("example.yaml")).tasks) == 3


@pytest.mark.parametrize("missing", ["rich", "yaml"])
def test_a_package_that_is_missing_is_named_with_what_installs_it(ada, week, monkeypatch, capsys, missing):
    for name in [name for name in sys.modules if name.split(".")[0] == missing or name.endswith("._console")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, missing, None)
    assert run("grade", ada, "-a", week) == 2
    said = capsys.readouterr().err
    package = {"yaml": "pyyaml"}.get(missing, missing)
    assert f"course-lib needs {missing}, which is not installed: pip install {package}," in said
    assert "[grading]" in said


def test_version(capsys):
    with pytest.raises(SystemExit) as ended:
        main(["--version"])
    assert ended.value.code == 0
    assert capsys.readouterr().out == f"course-lib {__version__}\n"


# As a process


def test_a_reader_who_has_read_enough_is_no_error():
    """`course-lib list | head`: the pipe is closed before everything is written."""
    read, write = os.pipe()
    os.close(read)
    arguments = [sys.executable, "-m", "course_grade.command", "list"]
    done = subprocess.run(arguments, stdout=write, stderr=subprocess.PIPE, text=True)
    os.close(write)
    assert (done.returncode, done.stderr) == (141, "")


@pytest.mark.thorough
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="a terminal is made here, as Linux does it")
def test_a_terminal_shows_a_progress_bar(ada, half, week):
    master, slave = os.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "120", "PYTHONIOENCODING": "utf-8"}
    arguments = [sys.executable, "-m", "course_grade.command", "grade", ada, half, "-a", week]
    with subprocess.Popen(arguments, stdout=slave, stderr=slave, env=environment) as process:
        os.close(slave)
        shown = b""
        with contextlib.suppress(OSError):  # how the end of a terminal reads
            while more := os.read(master, 4096):
                shown += more
        os.close(master)
    text = re.sub(r"\x1b\[[\d;?]*[a-zA-Z]", "", shown.decode())
    assert process.returncode == 0, text
    assert re.search("grading +[━╺╸ ]+ +0/2", text)
    assert text.index("0/2") < text.index("student")
