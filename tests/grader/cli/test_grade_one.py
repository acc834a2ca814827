"""`course-lib grade` for one submission: reports, formats, chosen exercises, seeds, and continuing."""

import csv
import json
import os
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest
from commands import (
    CAUSAL,
    IMPORT,
    NOT_STABLE,
    SOFTMAX,
    first,
    grades,
    notebook_of,
    results,
    run,
)

pytestmark = pytest.mark.usefixtures("lent_fork_servers")

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
