"""`course-lib list`, `show` and `doctor`, and the installed command as a process."""

import contextlib
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from commands import (
    IMPORT,
    SOFTMAX,
    command,
    first,
    grades,
)

from course_grade.command import main
from course_grade.sandbox.walls import WALLS
from course_kit.exercises import STEMS, all_exercises, find
from course_lib._version import __version__

pytestmark = pytest.mark.usefixtures("lent_fork_servers")

# list, show, doctor


def test_list_names_every_exercise_below_its_chapter_in_reading_order(capsys):
    assert main(["list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line for line in lines if not line.startswith(" ")] == list(STEMS)
    assert [line.split()[0] for line in lines if line.startswith(" ")] == list(all_exercises())
    for exercise in all_exercises().values():
        (line,) = (line for line in lines if line.split()[0] == exercise.name)
        assert line.endswith(f"{exercise.minutes:>3} min  {exercise.title}")
        assert line.count("●") == exercise.difficulty


@pytest.mark.parametrize("name", list(all_exercises()))
def test_show_gives_statement_and_stub_and_keeps_hints_and_solution(capsys, name):
    exercise = find(name)
    assert main(["show", name]) == 0
    text = capsys.readouterr().out
    assert text.startswith(exercise.title)
    assert exercise.statement.rstrip() in text
    assert exercise.stub.rstrip() in text
    assert not any(hint in text for hint in exercise.hints)
    assert exercise.solution.rstrip() not in text


def test_show_gives_all_hints_and_a_solution_where_they_are_asked_for(capsys):
    exercise = find("softmax")
    assert main(["show", "softmax", "--hints"]) == 0
    text = capsys.readouterr().out
    for number, hint in enumerate(exercise.hints, 1):
        assert f"Hint {number}: {hint}" in text
    assert exercise.solution.rstrip() not in text
    assert main(["show", "softmax", "--solution"]) == 0
    text = capsys.readouterr().out
    assert exercise.solution.rstrip() in text
    assert "Hint 1" not in text


@grades
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


def test_version(capsys):
    with pytest.raises(SystemExit) as ended:
        main(["--version"])
    assert ended.value.code == 0
    assert capsys.readouterr().out == f"course-lib {__version__}\n"


# As a process


@grades
@pytest.mark.thorough
def test_the_installed_command_grades(half, week):
    done = subprocess.run(
        [command(), "grade", half, "-a", week, "--strict"], capture_output=True, encoding="utf-8", timeout=120
    )
    assert done.returncode == 1
    assert done.stderr == ""
    assert "softmax: graded" in done.stdout
    assert "of 5 points" in done.stdout


@grades
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


@grades
@pytest.mark.thorough
@pytest.mark.skipif(os.name != "posix", reason="Ctrl-C is a signal")
def test_after_ctrl_c_the_same_command_goes_on(ada):
    Path("slow.py").write_text(IMPORT + SOFTMAX + "\nimport time\ndef causal_mask(length):\n    time.sleep(1.5)\n")
    Path("week.yaml").write_text("seed: 1\nexercises: [softmax, causal_mask]\nlimits: {seconds: 2, total_seconds: 8}\n")
    arguments = [sys.executable, "-m", "course_grade.command", "grade", ada, "slow.py", "-a", "week.yaml", "-j", "1"]
    options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "encoding": "utf-8"}
    # What a shell starts in the background, these tests for instance, ignores Ctrl-C, and so do its children.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    with subprocess.Popen(arguments, **options) as process:
        signal.signal(signal.SIGINT, before)
        end = time.monotonic() + 60
        while not list(Path().glob("grading/submissions/ada-*.json")) and time.monotonic() < end:
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        _, error = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Stopped. What has been graded is kept; the same command continues from here." in error
    assert "Traceback" not in error
    assert not Path("grading", "results.json").exists()
    done = subprocess.run(arguments, capture_output=True, encoding="utf-8", timeout=120, check=True)
    assert re.search(r"[12] of 2 were graded by an earlier run", done.stdout)
    assert first("grading/results.json")["points"] == 2
