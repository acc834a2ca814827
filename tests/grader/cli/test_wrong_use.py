"""Wrong use of `course-lib` is answered in one line."""

import re
import sys
from pathlib import Path

import pytest
from commands import CAUSAL, SOFTMAX, grades, results, run

from course_grade.command import main
from course_grade.grading.assignment import read_assignment

pytestmark = pytest.mark.usefixtures("lent_fork_servers")


@pytest.mark.parametrize(
    ("arguments", "message"),
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
def test_wrong_use_is_answered_in_a_line_with_status_2(ada, week, capsys, arguments, message):
    Path("empty").mkdir()
    Path("other.py").write_text("x = 1\n")
    Path("ada2.py").write_text(SOFTMAX)
    Path("bad.yaml").write_text("exercises: {softmax: -2}\n")
    assert main(arguments.split()) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert re.match("course-lib: [^'\"]", said.err), "a sentence, not the repr of one"
    assert message in said.err
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
