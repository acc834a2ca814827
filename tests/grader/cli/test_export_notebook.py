"""`course-lib export`: a notebook for a class."""

import json
from pathlib import Path

import nbformat
import pytest
from commands import CAUSAL, INSTALL, SOFTMAX, first, grades, run
from nbclient import NotebookClient

from course_kit.exercises import all_exercises, find

pytestmark = pytest.mark.usefixtures("lent_fork_servers")


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


@pytest.mark.parametrize(
    ("names", "said"), [(["fix_loss"], True), (["softmax", "fix_loss"], True), (["softmax", "causal_mask"], False)]
)
def test_a_notebook_says_what_to_do_with_code_to_repair_only_where_it_has_some(names, said):
    assert run("export", *names, "--notebook", "repair.ipynb") == 0
    intro = nbformat.read("repair.ipynb", as_version=4).cells[0].source
    assert intro.startswith("# Exercises\n\nWrite your solution in place of `raise NotImplementedError`")
    asked = "where the code is given, repair it, and delete that line when you have, or when nothing needs repair"
    assert (asked in intro) is said


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
@pytest.mark.thorough
def test_a_notebook_runs_as_it_is_and_then_grades_as_not_attempted(exported, week):
    shown = execute(exported)
    assert shown.count("Not attempted yet") == 2
    nbformat.write(exported, "run.ipynb")
    assert run("grade", "run.ipynb", "-a", week, "--quiet", "--json", "out.json") == 0
    assert [task["status"] for task in first()["tasks"]] == ["not attempted", "not attempted"]


@grades
@pytest.mark.thorough
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
