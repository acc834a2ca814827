"""`course-lib grade` for a class: tables, files, and the same bytes in every run."""

import contextlib
import csv
import io
import re
from pathlib import Path

import pytest
from commands import CAUSAL, WEEK, make_class, results, run

pytestmark = pytest.mark.usefixtures("lent_fork_servers")


@pytest.fixture(scope="module")
def graded(tmp_path_factory):
    """A class, graded once: folder of results, and what was printed."""
    folder = tmp_path_factory.mktemp("class")
    make_class(folder / "in")
    (folder / "week3.yaml").write_text(WEEK)
    printed = io.StringIO()
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(printed):
        patch.setenv("COLUMNS", "200")
        status = run("grade", folder / "in", "-a", folder / "week3.yaml", "--out", folder / "out", "-j", 2)
    assert status == 0
    return folder / "out", printed.getvalue()


def test_a_class_gets_a_table_with_a_row_a_student_and_what_else_there_is_to_say(graded):
    out, text = graded
    (ada,) = (line for line in text.splitlines() if line.split()[:1] == ["ada"])
    assert ada.split() == ["ada", "5", "of", "5", "2", "0", "0", "0"]
    (bob,) = (line for line in text.splitlines() if line.split()[:1] == ["bob"])
    assert re.search(r"bob +1\.\d+ of 5 +0 +1 +1 +0$", bob.strip())
    why = r"no \.py or \.ipynb file was handed in; found: finn\.zip"
    for line in (
        r"cy +2 of 5 +1 +1 +0 +0 +causal_mask: took longer than 1 s",
        r"dora +0 of 5 +0 +0 +2 +0 +no \.py or \.ipynb file was handed in",
        rf"finn +0 of 5 +0 +0 +2 +0 +{why}",
        r"Not read, since tools leave such files behind: \.ipynb_checkpoints",
        r"Seed 4711\. Sandbox: (full|partial|process) \(",
    ):
        assert re.search(line, text), line
    assert f"a feedback page per student: {out}" in text.replace("\n", "")
    (page,) = (out / "feedback").glob("finn-*.html")
    assert re.search(why, page.read_text())


def test_a_class_gets_a_table_with_a_row_an_exercise(graded):
    out, text = graded
    students = results(out / "results.json")["submissions"]
    mean = sum(student["tasks"][0]["points"] for student in students) / 5
    assert re.search(rf"softmax +{mean:.2f} of 2 +2 +1 +2 +0 +unstable \(1\)", text)
    assert re.search(r"causal_mask +0\.60 of 3 +1 +1 +3 ", text)


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


def test_nothing_but_results_is_left_in_the_folder(graded):
    out, _ = graded
    assert {path.name for path in out.iterdir()} == {"results.json", "results.csv", "feedback", "submissions"}
    assert not [path for path in out.rglob("*") if "partial" in path.name]


def test_two_runs_with_one_seed_are_the_same_bytes_whatever_the_number_of_jobs(graded):
    out, _ = graded
    source = out.parent
    assert run("grade", source / "in", "-a", source / "week3.yaml", "--out", "again", "-j", 1, "--quiet") == 0
    names = sorted(path.relative_to(out) for path in out.rglob("*") if path.is_file())
    assert names == sorted(path.relative_to("again") for path in Path("again").rglob("*") if path.is_file())
    assert len(names) == 12
    for name in names:
        assert (out / name).read_bytes() == (Path("again") / name).read_bytes(), name


def test_a_class_writes_to_a_folder_of_its_own_and_names_pages_of_those_who_are_not_graded_now(ada, half, week, capsys):
    assert run("grade", ada, "-a", week, "--quiet") == 0
    assert not Path("grading").exists()
    assert run("grade", ada, half, "-a", week, "--quiet") == 0
    assert Path("grading", "results.json").exists()
    assert capsys.readouterr().out == ""
    assert run("grade", half, "-a", week, "--out", "grading") == 0
    assert "1 feedback page(s) there belong to submissions not graded now: ada-" in capsys.readouterr().out


def test_a_folder_that_looks_like_results_is_a_student_like_any_other(ada):
    for folder in (Path("class/grading"), Path("class/mallory")):  # as if the grader had written results to them
        (folder / "submissions").mkdir(parents=True)
        (folder / "results.json").write_text("{}")
        (folder / "submissions" / "mallory-0123456789abcdef.json").write_text('{"result": {"points": 5}}')
    Path(ada).rename("class/ada.py")
    assert run("grade", "class", "--out", "out", "--quiet") == 0
    students = results("out/results.json")["submissions"]
    assert [(s["student"], s["points"]) for s in students] == [("ada", 2), ("grading", 0), ("mallory", 0)]


def test_names_that_look_like_emoji_or_are_long_are_shown_as_they_are(capsys):
    Path("class").mkdir()
    for name in (":smile:", "a" * 150):
        Path(f"class/{name}.py").write_text(CAUSAL)
    assert run("grade", "class") == 0
    said = capsys.readouterr().out
    assert ":smile:" in said
    assert re.sub(r"[^a]", "", said).count("a") >= 150
