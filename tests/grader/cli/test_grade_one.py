"""`course-lib grade` for one submission: reports, formats, chosen exercises, seeds, and continuing."""

import csv
import json
import os
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest
from commands import CAUSAL, IMPORT, NOT_STABLE, SOFTMAX, first, notebook_of, results, run

pytestmark = pytest.mark.usefixtures("lent_fork_servers")

# grade: one submission


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


def test_without_an_assignment_a_point_for_each_exercise_that_is_defined(ada, capsys):
    assert run("grade", ada, "--json", "out.json", "--seed", 3) == 0
    assert [task["name"] for task in first()["tasks"]] == ["softmax", "causal_mask"]
    assert first()["points"] == 2
    assert "ada: 2 of 2 points" in capsys.readouterr().out


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


def test_exercises_are_chosen_by_name_keep_their_points_and_need_no_definition(ada, week):
    chosen = ["-e", "FeedForward", "-e", "causal_mask"]
    assert run("grade", ada, "-a", week, *chosen, "--quiet", "--json", "out.json") == 0
    tasks = [(task["name"], task["status"], task["of"]) for task in first()["tasks"]]
    assert tasks == [("causal_mask", "passed", 3), ("FeedForward", "not attempted", 1)]


def test_folders_and_files_as_one_are_one_student():
    Path("repo", "src").mkdir(parents=True)
    Path("repo", "src", "one.py").write_text(IMPORT + SOFTMAX)
    Path("two.ipynb").write_text(notebook_of(IMPORT, CAUSAL))
    assert run("grade", "repo", "two.ipynb", "--as-one", "--quiet", "--json", "out.json", "--seed", 1) == 0
    (student,) = results()["submissions"]
    assert (student["student"], student["points"], student["of"]) == ("repo", 2, 2)


def test_late_work_is_marked_and_costs_its_share(ada, capsys):
    Path("late.yaml").write_text("due: 2026-01-01 12:00:00Z\nlate_penalty: 10%\nexercises: {softmax: 2}\n")
    due = 1767268800  # 2026-01-01 12:00 UTC
    for seconds, days, points in ((0, 0, 2.0), (86401, 2, 1.6)):
        os.utime(ada, (due + seconds, due + seconds))
        capsys.readouterr()
        assert run("grade", ada, "-a", "late.yaml", "--json", "out.json") == 0
        assert (first()["late_days"], first()["points"]) == (days, points)
        assert (f"{days} day(s) late" in capsys.readouterr().out) == (days > 0)


def test_strict_tells_by_its_status_whether_everything_is_passed(ada, half, week):
    assert run("grade", ada, "-a", week, "--strict", "--quiet") == 0
    stub = "\ndef causal_mask(length):\n    raise NotImplementedError\n"
    for code in (NOT_STABLE + CAUSAL, SOFTMAX, SOFTMAX + stub):
        Path(half).write_text(IMPORT + code)
        assert run("grade", half, "-a", week, "--strict", "--quiet") == 1


# grade: seeds, and going on


def test_a_seed_is_drawn_and_printed_and_grades_the_same_again(half, capsys):
    assert run("grade", half, "--json", "one.json") == 0
    seed = re.search(r"Seed (\d+)\.", capsys.readouterr().out)[1]
    assert results("one.json")["assignment"]["seed"] == int(seed)
    Path("other.yaml").write_text("seed: 1\n")  # the command goes before the assignment
    assert run("grade", half, "-a", "other.yaml", "--json", "two.json", "--seed", seed) == 0
    assert Path("one.json").read_bytes() == Path("two.json").read_bytes()


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


def test_fresh_and_another_assignment_grade_everything_again(ada, capsys):
    assert run("grade", ada, "-e", "softmax", "--seed", 5, "--out", "out", "--quiet") == 0
    for option in (["--fresh"], ["--seed", "6"], ["-e", "causal_mask"]):
        assert run("grade", ada, "-e", "softmax", "--seed", 5, "--out", "out", *option) == 0
        assert "earlier run" not in capsys.readouterr().out, option
