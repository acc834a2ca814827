"""The command `course-lib` as an instructor uses it: every command and option, what is written and what is said."""

import contextlib
import csv
import io
import json
import os
import re
import shutil
import signal
import stat
import subprocess
import sys
import time
import zipfile
from pathlib import Path
from xml.etree import ElementTree

import nbformat
import pytest
import yaml
from nbclient import NotebookClient

from course_lib._version import __version__
from course_lib.cli import main
from course_lib.exercises import STEMS, all_exercises, find
from course_lib.grader.grading.assignment import AssignedExercise, read_assignment
from course_lib.grader.sandbox.walls import WALLS

pytestmark = pytest.mark.usefixtures("lent_fork_servers")

grades = pytest.mark.skipif(not hasattr(os, "fork"), reason="grading needs fork")
posix = pytest.mark.skipif(os.name != "posix" or shutil.which("bash") is None, reason="shell scripts need bash")

IMPORT = "import torch\n"
SOFTMAX = """
def softmax(scores, dim=-1):
    e = (scores - scores.amax(dim, keepdim=True)).exp()
    return e / e.sum(dim, keepdim=True)
"""
NOT_STABLE = """
def softmax(scores, dim=-1):
    return scores.exp() / scores.exp().sum(dim, keepdim=True)
"""
CAUSAL = """
def causal_mask(length):
    return torch.ones(length, length, dtype=torch.bool).tril()
"""
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


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path, monkeypatch):
    """In an empty folder, with a wide terminal."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")


@pytest.fixture
def ada():
    path = Path("ada.py")
    path.write_text(IMPORT + SOFTMAX + CAUSAL)
    return "ada.py"


@pytest.fixture
def half():
    path = Path("half.py")
    path.write_text(IMPORT + NOT_STABLE)
    return "half.py"


@pytest.fixture
def week():
    Path("week3.yaml").write_text(WEEK)
    return "week3.yaml"


def run(*arguments) -> int:
    return main([str(argument) for argument in arguments])


def results(path="out.json") -> dict:
    return json.loads(Path(path).read_text(encoding="utf-8"))


def first(path="out.json") -> dict:
    return results(path)["submissions"][0]


# grade: a class


@pytest.fixture(scope="module")
def graded(tmp_path_factory):
    """A class, graded once: folder of results, and what was printed."""
    if not hasattr(os, "fork"):
        pytest.skip("grading needs fork")
    folder = tmp_path_factory.mktemp("class")
    make_class(folder / "in")
    (folder / "week3.yaml").write_text(WEEK)
    printed = io.StringIO()
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(printed):
        patch.setenv("COLUMNS", "200")
        status = run("grade", folder / "in", "-a", folder / "week3.yaml", "--out", folder / "out", "-j", 2)
    assert status == 0
    return folder / "out", printed.getvalue()


def test_a_class_gets_a_table_with_a_row_a_student(graded):
    _, text = graded
    (ada,) = (line for line in text.splitlines() if line.split()[:1] == ["ada"])
    assert ada.split() == ["ada", "5", "of", "5", "2", "0", "0", "0"]
    (bob,) = (line for line in text.splitlines() if line.split()[:1] == ["bob"])
    assert re.search(r"bob +1\.\d+ of 5 +0 +1 +1 +0$", bob.strip())
    assert re.search(r"cy +2 of 5 +1 +1 +0 +0 +causal_mask: took longer than 1 s", text)
    assert re.search(r"dora +0 of 5 +0 +0 +2 +0 +no \.py or \.ipynb file was handed in", text)


def test_a_class_gets_a_table_with_a_row_an_exercise(graded):
    out, text = graded
    students = results(out / "results.json")["submissions"]
    mean = sum(student["tasks"][0]["points"] for student in students) / 5
    assert re.search(rf"softmax +{mean:.2f} of 2 +2 +1 +2 ", text)
    assert re.search(r"causal_mask +0\.60 of 3 +1 +1 +3 ", text)


def test_an_archive_has_a_row_that_says_why_it_is_not_graded(graded):
    why = r"no \.py or \.ipynb file was handed in; found: finn\.zip"
    assert re.search(rf"finn +0 of 5 +0 +0 +2 +0 +{why}", graded[1])
    (page,) = (graded[0] / "feedback").glob("finn-*.html")
    assert re.search(why, page.read_text())


def test_what_tools_leave_behind_is_named(graded):
    assert "Not read, since tools leave such files behind: .ipynb_checkpoints" in graded[1]


def test_the_seed_the_sandbox_and_the_place_of_the_results_are_said(graded):
    out, text = graded
    assert "Seed 4711. Sandbox: " in text
    assert re.search(r"Sandbox: (full|partial|process) \(", text)
    assert str(out) in text.replace("\n", "")


def test_a_class_gets_json_csv_and_a_page_a_student(graded):
    out, _ = graded
    content = results(out / "results.json")
    assert [s["student"] for s in content["submissions"]] == ["ada", "bob", "cy", "dora", "finn"]
    assert [s["of"] for s in content["submissions"]] == [5] * 5
    rows = list(csv.DictReader((out / "results.csv").read_text(encoding="utf-8-sig").splitlines()))
    assert [float(row["points"]) for row in rows] == [s["points"] for s in content["submissions"]]
    assert [row["softmax"] for row in rows][::2] == ["2", "2", "0"]
    pages = sorted((out / "feedback").iterdir())
    assert [page.name.partition("-")[0] for page in pages] == ["ada", "bob", "cy", "dora", "finn"]
    for page, student in zip(pages, content["submissions"], strict=True):
        text = page.read_text(encoding="utf-8")
        assert f"<h1>Week 3 · {student['student']}</h1>" in text
        assert f"<b>{student['points']:g} of 5 points</b>" in text


def test_partial_credit_is_by_property(graded):
    bob = results(graded[0] / "results.json")["submissions"][1]
    (softmax, causal) = bob["tasks"]
    assert {line["holds"] for line in softmax["lines"]} == {True, False}
    assert softmax["status"] == "failed"
    assert 0 < softmax["points"] < softmax["of"] == 2
    assert causal["status"] == "not attempted"


def test_nothing_but_results_is_left_in_the_folder(graded):
    out, _ = graded
    assert {path.name for path in out.iterdir()} <= {"results.json", "results.csv", "feedback", "submissions"}
    assert not [path for path in out.rglob("*") if "partial" in path.name]


@grades
def test_two_runs_with_one_seed_are_the_same_bytes_whatever_the_number_of_jobs(graded):
    out, _ = graded
    source = out.parent
    assert run("grade", source / "in", "-a", source / "week3.yaml", "--out", "again", "-j", 1, "--quiet") == 0
    names = sorted(path.relative_to(out) for path in out.rglob("*") if path.is_file())
    assert names == sorted(path.relative_to("again") for path in Path("again").rglob("*") if path.is_file())
    assert len(names) == 12
    for name in names:
        assert (out / name).read_bytes() == (Path("again") / name).read_bytes(), name


@grades
def test_several_submissions_write_to_a_folder_of_their_own_and_one_does_not(ada, half, week):
    assert run("grade", ada, "-a", week, "--quiet") == 0
    assert not Path("grading").exists()
    assert run("grade", ada, half, "-a", week, "--quiet") == 0
    assert Path("grading", "results.json").exists()


# grade: one submission


@grades
def test_one_submission_gets_its_report(half, week, capsys):
    assert run("grade", half, "-a", week) == 0
    text = capsys.readouterr().out
    assert "softmax: graded" in text
    assert "✓" in text
    assert "✗" in text
    assert "ailing case" in text
    assert "causal_mask: not attempted" in text
    assert re.search(r"half: 1\.\d+ of 5 points", text)
    assert "Seed 4711. Sandbox: " in text


@grades
def test_without_an_assignment_a_point_for_each_exercise_that_is_defined(ada, capsys):
    assert run("grade", ada, "--json", "out.json", "--seed", 3) == 0
    assert [task["name"] for task in first()["tasks"]] == ["softmax", "causal_mask"]
    assert first()["points"] == 2
    assert "ada: 2 of 2 points" in capsys.readouterr().out


@grades
def test_every_format_is_written_where_it_is_asked_for_and_quiet_says_nothing(half, week, capfd):
    formats = {name: Path("new", name, f"r.{name}") for name in ("json", "csv", "junit", "gradescope")}
    options = [part for name, path in formats.items() for part in (f"--{name}", path)]
    assert run("grade", half, "-a", week, "--quiet", *options) == 0
    points = first(formats["json"])["points"]
    assert float(next(csv.DictReader(formats["csv"].read_text(encoding="utf-8-sig").splitlines()))["points"]) == points
    assert json.loads(formats["gradescope"].read_text())["score"] == points
    (suite,) = ElementTree.parse(formats["junit"]).getroot().findall("testsuite")
    assert suite.get("name") == "half"
    assert sorted(path.name for path in Path().iterdir()) == ["half.py", "new", "week3.yaml"]
    assert "".join(capfd.readouterr()) == ""


@grades
def test_an_exercise_can_be_chosen_and_keeps_its_points(ada, week):
    assert run("grade", ada, "-a", week, "-e", "causal_mask", "--quiet", "--json", "out.json") == 0
    assert [(task["name"], task["points"]) for task in first()["tasks"]] == [("causal_mask", 3)]


@grades
def test_exercises_are_chosen_by_repeating_the_option_and_need_no_definition(ada):
    arguments = ["grade", ada, "-e", "FeedForward", "-e", "softmax", "--quiet", "--json", "out.json"]
    assert run(*arguments) == 0
    assert [(task["name"], task["status"]) for task in first()["tasks"]] == [
        ("softmax", "passed"),
        ("FeedForward", "not attempted"),
    ]


@grades
def test_folders_and_files_as_one_are_one_student():
    Path("repo", "src").mkdir(parents=True)
    Path("repo", "src", "one.py").write_text(IMPORT + SOFTMAX)
    Path("two.ipynb").write_text(notebook_of(IMPORT, CAUSAL))
    assert run("grade", "repo", "two.ipynb", "--as-one", "--quiet", "--json", "out.json", "--seed", 1) == 0
    (student,) = results()["submissions"]
    assert (student["student"], student["points"], student["of"]) == ("repo", 2, 2)


@grades
def test_files_of_one_name_in_two_folders_are_two_students_each_late_by_itself(capsys):
    for student in ("ada", "bob"):
        Path(student).mkdir()
        Path(student, "week3.py").write_text(IMPORT + (SOFTMAX if student == "ada" else NOT_STABLE))
    os.utime("ada/week3.py", (1767268801, 1767268801))
    Path("due.yaml").write_text("due: 2026-01-01 12:00:00Z\nexercises: [softmax]\n")
    assert run("grade", "ada/week3.py", "bob/week3.py", "-a", "due.yaml") == 0
    ada, bob = results("grading/results.json")["submissions"]
    assert (ada["student"], bob["student"]) == ("ada/week3.py", "bob/week3.py")
    assert ada["points"] == 1 > bob["points"]
    assert len(list(Path("grading", "feedback").iterdir())) == 2
    text = capsys.readouterr().out
    assert re.search(r"ada/week3\.py +1 of 1 .* 1 day\(s\) late", text)
    assert re.search(r"bob/week3\.py .* \d+ day\(s\) late", text)


@grades
def test_late_work_is_marked_and_costs_its_share(ada, capsys):
    Path("late.yaml").write_text("due: 2026-01-01 12:00:00Z\nlate_penalty: 10%\nexercises: {softmax: 2}\n")
    due = 1767268800  # 2026-01-01 12:00 UTC
    for seconds, days, points in ((0, 0, 2.0), (86401, 2, 1.6)):
        os.utime(ada, (due + seconds, due + seconds))
        capsys.readouterr()
        assert run("grade", ada, "-a", "late.yaml", "--json", "out.json") == 0
        assert (first()["late_days"], first()["points"]) == (days, points)
        assert (f"{days} day(s) late" in capsys.readouterr().out) == (days > 0)


@grades
def test_strict_tells_by_its_status_whether_everything_is_passed(ada, half, week):
    assert run("grade", ada, "-a", week, "--strict", "--quiet") == 0
    Path(half).write_text(IMPORT + NOT_STABLE + CAUSAL)
    assert run("grade", half, "-a", week, "--strict", "--quiet") == 1


@grades
@pytest.mark.parametrize("other", ["", "\ndef causal_mask(length):\n    raise NotImplementedError\n"])
def test_strict_wants_what_was_not_attempted_too(half, week, other):
    Path(half).write_text(IMPORT + SOFTMAX + other)
    assert run("grade", half, "-a", week, "--strict", "--quiet", "--json", "out.json") == 1
    assert {task["status"] for task in first()["tasks"]} == {"passed", "not attempted"}


# grade: seeds, and going on


@grades
def test_a_seed_is_drawn_and_printed_and_grades_the_same_again(half, capsys):
    assert run("grade", half, "--json", "one.json") == 0
    seed = re.search(r"Seed (\d+)\.", capsys.readouterr().out)[1]
    assert results("one.json")["assignment"]["seed"] == int(seed)
    assert run("grade", half, "--json", "two.json", "--seed", seed) == 0
    assert Path("one.json").read_bytes() == Path("two.json").read_bytes()


@grades
def test_the_seed_of_the_command_goes_before_that_of_the_assignment(ada, week):
    assert run("grade", ada, "-a", week, "--seed", 9, "--quiet", "--json", "out.json") == 0
    assert results()["assignment"]["seed"] == 9


@grades
def test_a_second_start_goes_on_with_the_same_seed_and_grades_only_what_has_changed(ada, half, capsys):
    assert run("grade", ada, half, "-e", "softmax") == 0
    said, written = capsys.readouterr().out, Path("grading", "results.json").read_bytes()
    assert "earlier run" not in said
    assert run("grade", ada, half, "-e", "softmax") == 0
    said = capsys.readouterr().out
    assert "2 of 2 were graded by an earlier run; --fresh grades them again." in said
    assert Path("grading", "results.json").read_bytes() == written
    Path(half).write_text(IMPORT + SOFTMAX)
    assert run("grade", ada, half, "-e", "softmax") == 0
    assert "1 of 2 were graded by an earlier run" in capsys.readouterr().out
    assert [s["points"] for s in results("grading/results.json")["submissions"]] == [1, 1]


@grades
def test_fresh_and_another_assignment_grade_everything_again(ada, capsys):
    assert run("grade", ada, "-e", "softmax", "--seed", 5, "--out", "out", "--quiet") == 0
    for option in (["--fresh"], ["--seed", "6"], ["-e", "causal_mask"]):
        assert run("grade", ada, "-e", "softmax", "--seed", 5, "--out", "out", *option) == 0
        assert "earlier run" not in capsys.readouterr().out, option


@grades
def test_a_damaged_result_of_an_earlier_run_is_graded_again(ada, capsys):
    assert run("grade", ada, "-e", "softmax", "--seed", 5, "--out", "out", "--quiet") == 0
    (stored,) = Path("out", "submissions").iterdir()
    stored.write_text(stored.read_text()[:100])
    assert run("grade", ada, "-e", "softmax", "--seed", 5, "--out", "out", "--strict") == 0
    assert "earlier run" not in capsys.readouterr().out


# grade: wrong use


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ("grade nobody.py", "expected a file or folder of submissions, got nobody.py, which does not exist"),
        ("grade week3.yaml", "expected .py or .ipynb files in week3.yaml, got none"),
        ("grade empty", "expected .py or .ipynb files in empty, got none"),
        ("grade ada.py -j 0", "--jobs must be at least 1, got 0"),
        ("grade ada.py -e sofmax", "got 'sofmax'. Did you mean softmax"),
        ("grade ada.py -a none.yaml", "none.yaml"),
        ("grade ada.py -a ada.py", "ada.py"),
        ("grade ada.py -a empty", "empty"),
        ("grade ada.py -a bad.yaml", "bad.yaml: exercises: softmax: points must be a number of at least 0, got -2"),
        ("grade ada.py ada2.py --gradescope g.json", "--gradescope writes the results of a single submission, got 2"),
        ("grade other.py", "expected a definition of an exercise in the submissions, found none"),
        ("grade ada.py --out week3.yaml", "week3.yaml"),
        ("show sofmax", "got 'sofmax'. Did you mean softmax"),
        ("export sofmax --notebook n.ipynb", "got 'sofmax'. Did you mean softmax"),
        ("export softmax", "expected --notebook, --gradescope or --classroom with a file to write"),
        ("export --notebook n.ipynb", "expected names of exercises, or an assignment that names some"),
        ("export softmax --notebook week3.yaml/n.ipynb", "week3.yaml"),
        ("export softmax --gradescope g.zip", "--gradescope needs --install REQUIREMENT"),
        ("export softmax --classroom c.yml", "--classroom needs --install REQUIREMENT"),
        ("export -a bad.yaml --notebook n.ipynb", "bad.yaml: exercises: softmax: points must be a number"),
    ],
)
def test_wrong_use_is_answered_in_a_line_with_status_2(ada, week, capsys, arguments, says):
    Path("empty").mkdir()
    Path("other.py").write_text("x = 1\n")
    Path("ada2.py").write_text(SOFTMAX)
    Path("bad.yaml").write_text("exercises: {softmax: -2}\n")
    assert main(arguments.split()) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert re.match("course-lib: [^'\"]", said.err), "a sentence, not the repr of one"
    assert says in said.err
    assert "Traceback" not in said.err
    assert not Path("grading").exists()


@pytest.mark.parametrize(
    "arguments", ["", "grade", "grades", "grade x.py --seed one", "grade x.py -j many", "show", "list x", "export -x"]
)
def test_options_that_do_not_exist_end_with_status_2_and_the_usage(capsys, arguments):
    with pytest.raises(SystemExit) as ended:
        main(arguments.split())
    assert ended.value.code == 2
    assert "usage: course-lib" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["", "grade ", "list ", "show ", "export ", "doctor "])
def test_help_is_there_for_every_command(capsys, command):
    with pytest.raises(SystemExit) as ended:
        main(f"{command}--help".split())
    assert ended.value.code == 0
    assert f"usage: course-lib {command}".strip() in capsys.readouterr().out


def test_the_help_shows_an_assignment_file_that_works(capsys):
    with pytest.raises(SystemExit):
        main(["grade", "--help"])
    example = capsys.readouterr().out.partition("everything optional:")[2]
    Path("example.yaml").write_text(example)
    assert len(read_assignment(Path("example.yaml")).tasks) == 3


@grades
@pytest.mark.parametrize("missing", ["rich", "yaml"])
def test_a_package_that_is_missing_is_named_with_what_installs_it(ada, week, monkeypatch, capsys, missing):
    for name in [name for name in sys.modules if name.split(".")[0] == missing]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, missing, None)
    assert run("grade", ada, "-a", week) == 2
    said = capsys.readouterr().err
    package = {"yaml": "pyyaml"}.get(missing, missing)
    assert f"course-lib needs {missing}, which is not installed: pip install {package}," in said
    assert "[grading]" in said


def make_forged(folder: Path) -> None:
    """A folder that looks as if the grader had written results to it."""
    (folder / "submissions").mkdir(parents=True)
    (folder / "results.json").write_text("{}")
    (folder / "submissions" / "mallory-0123456789abcdef.json").write_text('{"result": {"points": 5}}')


@grades
def test_a_folder_that_looks_like_results_is_a_student_like_any_other(ada):
    make_forged(Path("class/grading"))
    make_forged(Path("class/mallory"))
    Path(ada).rename("class/ada.py")
    assert run("grade", "class", "--out", "out", "--quiet") == 0
    students = results("out/results.json")["submissions"]
    assert [(s["student"], s["points"]) for s in students] == [("ada", 2), ("grading", 0), ("mallory", 0)]


def test_an_empty_path_is_not_the_working_directory(ada, capsys):
    with pytest.raises(SystemExit) as end:
        run("grade", "")
    assert end.value.code == 2
    assert "expected a file or folder, got an empty text" in capsys.readouterr().err


@grades
def test_names_that_look_like_emoji_or_are_long_are_shown_as_they_are(capsys):
    Path("class").mkdir()
    for name in (":smile:", "a" * 150):
        Path(f"class/{name}.py").write_text(CAUSAL)
    assert run("grade", "class") == 0
    said = capsys.readouterr().out
    assert ":smile:" in said
    assert re.sub(r"[^a]", "", said).count("a") >= 150


def test_an_export_of_chosen_exercises_keeps_their_points(week):
    assert run("export", "softmax", "causal_mask", "-a", week, "--notebook", "n.ipynb") == 0
    text = Path("n.ipynb").read_text()
    given = {task.name: task for task in read_assignment(Path(week)).tasks}
    worth = sum(given[name].points if name in given else 1 for name in ("softmax", "causal_mask"))
    assert f"{float(worth):g} points in all" in text


def test_nothing_is_written_where_one_of_several_exports_cannot_be(week, capsys):
    assert run("export", "-a", week, "--notebook", "n.ipynb", "--gradescope", "g.zip") == 2
    assert "--gradescope needs --install" in capsys.readouterr().err
    assert not Path("n.ipynb").exists()


@pytest.mark.parametrize("requirement", ['a"b', "a'b", "a$(b)", "a`b`", "a\\b", "a\nb"])
def test_a_requirement_that_would_break_a_shell_line_is_refused(week, capsys, requirement):
    assert run("export", "-a", week, "--classroom", "c.yml", "--install", requirement) == 2
    assert "--install: expected a requirement without quotes" in capsys.readouterr().err
    assert not Path("c.yml").exists()


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


def command() -> str:
    path = shutil.which("course-lib", path=str(Path(sys.executable).parent))
    if path is None:
        pytest.skip("the package is not installed here")
    return path


@grades
@pytest.mark.slow
def test_the_installed_command_grades(half, week):
    done = subprocess.run(
        [command(), "grade", half, "-a", week, "--strict"], capture_output=True, encoding="utf-8", timeout=120
    )
    assert done.returncode == 1
    assert done.stderr == ""
    assert "softmax: graded" in done.stdout
    assert "of 5 points" in done.stdout


@grades
@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="a terminal is made here, as Linux does it")
def test_a_terminal_shows_a_progress_bar(ada, half, week):
    master, slave = os.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "120", "PYTHONIOENCODING": "utf-8"}
    arguments = [sys.executable, "-m", "course_lib.cli", "grade", ada, half, "-a", week]
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
@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="Ctrl-C is a signal")
def test_after_ctrl_c_the_same_command_goes_on(ada):
    Path("slow.py").write_text(IMPORT + SOFTMAX + "\nimport time\ndef causal_mask(length):\n    time.sleep(1.5)\n")
    Path("week.yaml").write_text("seed: 1\nexercises: [softmax, causal_mask]\nlimits: {seconds: 2, total_seconds: 8}\n")
    arguments = [sys.executable, "-m", "course_lib.cli", "grade", ada, "slow.py", "-a", "week.yaml", "-j", "1"]
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


# export: a notebook


@pytest.fixture(params=["without --install", "with --install"])
def exported(request, week):
    install = INSTALL if request.param == "with --install" else []
    assert run("export", "-a", week, "--notebook", "new/week3.ipynb", *install) == 0
    return nbformat.read("new/week3.ipynb", as_version=4)


def test_a_notebook_is_valid_and_holds_statement_stub_and_check_of_each_exercise(exported):
    nbformat.validate(exported)
    assert exported.cells[0].source.startswith("# Week 3\n")
    sources = [cell.source for cell in exported.cells]
    for name, worth in (("softmax", "2 points"), ("causal_mask", "3 points")):
        exercise = find(name)
        place = sources.index(exercise.stub.rstrip())
        assert exercise.statement.rstrip() in sources[place - 1]
        assert worth in sources[place - 1]
        assert sources[place + 1] == f"check({name})"
    assert sources.index(find("softmax").stub.rstrip()) < sources.index(find("causal_mask").stub.rstrip())
    assert not any("4711" in source for source in sources)


def test_a_notebook_says_all_points_and_when_it_is_due():
    Path("due.yaml").write_text(
        "due: 2026-11-30 23:59 +0100\nlate_penalty: 10%\nexercises: {softmax: 2, attend: 1.5}\n"
    )
    assert run("export", "-a", "due.yaml", "--notebook", "due.ipynb") == 0
    intro = nbformat.read("due.ipynb", as_version=4).cells[0].source
    assert "3.5 points in all. Due 2026-11-30 23:59 +0100." in intro
    assert "costs 10% of the points" in intro


def test_a_notebook_installs_the_package_only_where_that_is_asked_for():
    assert run("export", "softmax", "--notebook", "without.ipynb") == 0
    assert run("export", "softmax", "--notebook", "with.ipynb", *INSTALL) == 0
    assert "pip install -" not in Path("without.ipynb").read_text(encoding="utf-8")
    assert f'%pip install --quiet "{INSTALL[1]}"' in nbformat.read("with.ipynb", as_version=4).cells[1].source


def test_a_notebook_of_all_exercises_is_valid_and_tells_no_solution():
    names = list(all_exercises())
    assert run("export", *names, "--notebook", "all.ipynb") == 0
    notebook = nbformat.read("all.ipynb", as_version=4)
    nbformat.validate(notebook)
    code = [cell.source for cell in notebook.cells if cell.cell_type == "code"]
    assert [source for source in code if source.startswith("check(")] == [f"check({name})" for name in names]
    for source in code:
        compile(source, "cell", "exec")
    text = Path("all.ipynb").read_text(encoding="utf-8")
    for name in names:
        assert json.dumps(find(name).solution.rstrip(), ensure_ascii=False)[1:-1] not in text
    assert len({cell.id for cell in notebook.cells}) == len(notebook.cells)


def test_an_export_is_the_same_bytes_every_time(week):
    for name in ("one", "two"):
        options = [f"--notebook={name}.ipynb", f"--gradescope={name}.zip", f"--classroom={name}.yml"]
        assert run("export", "-a", week, *options, *INSTALL) == 0
    for kind in ("ipynb", "zip", "yml"):
        assert Path(f"one.{kind}").read_bytes() == Path(f"two.{kind}").read_bytes()


def execute(notebook) -> str:
    """Run all cells as a student does; what was shown."""
    NotebookClient(notebook, timeout=120, kernel_name="python3").execute()
    outputs = [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]
    assert not [output for output in outputs if output.output_type == "error"]
    return "\n".join(output.get("text", "") or output.get("data", {}).get("text/plain", "") for output in outputs)


@grades
@pytest.mark.slow
def test_a_notebook_runs_as_it_is_and_then_grades_as_not_attempted(exported, week):
    shown = execute(exported)
    assert shown.count("Not attempted yet") == 2
    nbformat.write(exported, "run.ipynb")
    assert run("grade", "run.ipynb", "-a", week, "--quiet", "--json", "out.json") == 0
    assert [task["status"] for task in first()["tasks"]] == ["not attempted", "not attempted"]


@grades
@pytest.mark.slow
def test_a_notebook_with_solutions_checks_green_and_grades_in_full(exported, week):
    for cell in exported.cells:
        if cell.source.startswith("def softmax"):
            cell.source = SOFTMAX
        elif cell.source.startswith("def causal_mask"):
            cell.source = CAUSAL
    shown = execute(exported)
    assert shown.count("All of it holds.") == 2
    nbformat.write(exported, "solved.ipynb")
    assert run("grade", "solved.ipynb", "-a", week, "--strict", "--quiet", "--json", "out.json") == 0
    assert first()["points"] == 5


# export: Gradescope


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
@pytest.mark.slow
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
@pytest.mark.slow
def test_the_autograder_says_so_where_it_cannot_run(gradescope_machine):
    root, start = gradescope_machine
    (root / "submission" / "homework.py").write_text(IMPORT + SOFTMAX)
    (root / "source" / "assignment.yaml").write_text("exercises: {softmax: -2}\n")
    content = start()
    assert content["score"] == 0
    assert "The grader could not run, so this submission is not graded." in content["output"]
    assert "points must be a number of at least 0, got -2" in content["output"]


# export: GitHub Classroom


@pytest.fixture
def workflow(week):
    assert run("export", "-a", week, "--classroom", ".github/workflows/grade.yml", "--install", "course_lib[x]") == 0
    return yaml.safe_load(Path(".github/workflows/grade.yml").read_text(encoding="utf-8"))


def steps_of(workflow) -> list[dict]:
    (job,) = workflow["jobs"].values()
    assert job["runs-on"] == "ubuntu-latest"
    return job["steps"]


def test_the_workflow_is_one_that_github_reads(workflow):
    assert "push" in workflow[True]  # YAML reads the key `on` as true
    assert workflow["permissions"] == {"contents": "read"}
    steps = steps_of(workflow)
    for step in steps:
        assert ("uses" in step) != ("run" in step)
    assert [step["uses"].partition("@")[0] for step in steps if "uses" in step] == [
        "actions/checkout",
        "actions/setup-python",
        "actions/upload-artifact",
    ]
    assert 'pip install --quiet "course_lib[x]"' in steps[2]["run"]


@posix
def test_the_workflows_steps_are_shell(workflow):
    for step in steps_of(workflow):
        if "run" in step:
            subprocess.run(["bash", "-n"], input=step["run"].encode(), check=True, timeout=20)


@grades
@posix
@pytest.mark.slow
@pytest.mark.parametrize(("code", "status"), [(SOFTMAX + CAUSAL, 0), (SOFTMAX, 1)])
def test_the_workflow_grades_a_repository_and_fails_unless_all_is_passed(workflow, tmp_path, week, code, status):
    (step,) = (step["run"] for step in steps_of(workflow) if "course-lib grade" in step.get("run", ""))
    (tmp_path / "repository").mkdir()
    (tmp_path / "temp").mkdir()
    (tmp_path / "repository" / "homework.py").write_text(IMPORT + code)
    path = f"{Path(command()).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-e"],
        input=step.encode(),
        cwd=tmp_path / "repository",
        env={**os.environ, "RUNNER_TEMP": str(tmp_path / "temp"), "PATH": path},
        timeout=120,
        stdout=subprocess.DEVNULL,
    )
    assert done.returncode == status
    assert read_assignment(tmp_path / "temp" / "assignment.yaml") == read_assignment(Path(week))
    assert (tmp_path / "temp" / "grading" / "junit.xml").exists()
    (page,) = (tmp_path / "temp" / "grading" / "feedback").iterdir()
    assert page.name.startswith("repository-")
    assert os.listdir(tmp_path / "repository") == ["homework.py"]


@pytest.mark.parametrize("title", ["Übung 3: “Masken” # 1", "'quoted' \"twice\"", "a" * 200, "$HOME `id` $(id)"])
def test_a_title_arrives_as_it_is(title, tmp_path):
    Path("t.yaml").write_text(yaml.safe_dump({"title": title, "seed": 1, "exercises": ["softmax"]}), encoding="utf-8")
    targets = ["--classroom", "c.yml", "--gradescope", "g.zip", "--notebook", "n.ipynb"]
    assert run("export", "-a", "t.yaml", *targets, *INSTALL) == 0
    steps = steps_of(yaml.safe_load(Path("c.yml").read_text(encoding="utf-8")))
    script = next(step["run"] for step in steps if "assignment.yaml" in step.get("run", ""))
    inside = script.partition("<<'END'\n")[2].partition("\nEND\n")[0]
    with zipfile.ZipFile("g.zip") as archive:
        for text in (inside, archive.read("assignment.yaml").decode()):
            assert yaml.safe_load(text)["title"] == title
    assert nbformat.read("n.ipynb", as_version=4).cells[0].source.startswith(f"# {title}\n")


def test_names_choose_exercises_and_three_targets_are_written_at_once(capsys):
    targets = {"notebook": "n.ipynb", "gradescope": "g.zip", "classroom": "c.yml"}
    assert run("export", "attend", "softmax", *(f"--{kind}={path}" for kind, path in targets.items()), *INSTALL) == 0
    assert capsys.readouterr().out == "".join(f"{path}: written\n" for path in targets.values())
    with zipfile.ZipFile("g.zip") as archive:
        Path("inside.yaml").write_bytes(archive.read("assignment.yaml"))
    assert read_assignment(Path("inside.yaml")).tasks == (AssignedExercise("softmax"), AssignedExercise("attend"))


def test_a_reader_who_has_read_enough_is_no_error():
    """`course-lib list | head`: the pipe is closed before everything is written."""
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run(
        [sys.executable, "-m", "course_lib.cli", "list"], stdout=write, stderr=subprocess.PIPE, text=True, check=False
    )
    os.close(write)
    assert (done.returncode, done.stderr) == (141, "")
