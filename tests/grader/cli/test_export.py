"""`course-lib export`: a notebook for a class, an autograder for Gradescope, a workflow for GitHub Classroom."""

import json
import os
import stat
import subprocess
import sys
import zipfile
from pathlib import Path

import nbformat
import pytest
import yaml
from commands import CAUSAL, IMPORT, INSTALL, SOFTMAX, command, first, notebook_of, posix, run
from nbclient import NotebookClient

from course_grade.grading.assignment import AssignedExercise, read_assignment
from course_kit.exercises import all_exercises, find

pytestmark = pytest.mark.usefixtures("lent_fork_servers")

TARGETS = {"notebook": "n.ipynb", "gradescope": "g.zip", "classroom": "c.yml"}
ALL = [f"--{kind}={path}" for kind, path in TARGETS.items()]


def sources_of(path="n.ipynb") -> list[str]:
    return [cell.source for cell in nbformat.read(path, as_version=4).cells]


def inside(path="g.zip", name="assignment.yaml") -> str:
    with zipfile.ZipFile(path) as archive:
        return archive.read(name).decode()


def steps_of(path="c.yml") -> list[dict]:
    workflow = yaml.safe_load(Path(path).read_text(encoding="utf-8"))
    assert "push" in workflow[True]  # YAML reads the key `on` as true
    assert workflow["permissions"] == {"contents": "read"}
    (job,) = workflow["jobs"].values()
    assert job["runs-on"] == "ubuntu-latest"
    return job["steps"]


# All of them


def test_three_targets_at_once_hold_the_exercises_that_are_named_and_are_the_same_bytes_every_time(capsys):
    Path("week.yaml").write_text("seed: 1\n")
    written = []
    for _ in range(2):
        assert run("export", "attend", "softmax", "-a", "week.yaml", *ALL, *INSTALL) == 0
        assert capsys.readouterr().out == "".join(f"{path}: written\n" for path in TARGETS.values())
        written.append([Path(path).read_bytes() for path in TARGETS.values()])
    assert written[0] == written[1]
    Path("inside.yaml").write_text(inside())
    assert read_assignment(Path("inside.yaml")).tasks == (AssignedExercise("softmax"), AssignedExercise("attend"))


def test_a_title_arrives_as_it_is():
    title = "Übung 3: “Masken” # 1 'quoted' \"twice\" $HOME `id` $(id) " + "a" * 200
    Path("t.yaml").write_text(yaml.safe_dump({"title": title, "seed": 1, "exercises": ["softmax"]}), encoding="utf-8")
    assert run("export", "-a", "t.yaml", *ALL, *INSTALL) == 0
    script = next(step["run"] for step in steps_of() if "assignment.yaml" in step.get("run", ""))
    for text in (script.partition("<<'END'\n")[2].partition("\nEND\n")[0], inside()):
        assert yaml.safe_load(text)["title"] == title
    assert sources_of()[0].startswith(f"# {title}\n")


def test_chosen_exercises_keep_their_points_and_without_a_seed_one_is_drawn():
    Path("week.yaml").write_text("exercises: {softmax: 2}\n")
    assert run("export", "softmax", "causal_mask", "-a", "week.yaml", *ALL, *INSTALL) == 0
    assert "3 points in all" in sources_of()[0]
    content = yaml.safe_load(inside())
    assert content["seed"] >= 0
    assert {name: task["points"] for name, task in content["exercises"].items()} == {"softmax": 2, "causal_mask": 1}


def test_nothing_is_written_where_one_of_several_exports_cannot_be(week, capsys):
    assert run("export", "-a", week, "--notebook", "n.ipynb", "--gradescope", "g.zip") == 2
    assert "--gradescope needs --install" in capsys.readouterr().err
    for requirement in ('a"b', "a'b", "a$(b)", "a`b`", "a\\b", "a\nb"):  # each would break a line of shell
        assert run("export", "-a", week, *ALL, "--install", requirement) == 2
        assert "--install: expected a requirement without quotes" in capsys.readouterr().err
    assert not any(Path(path).exists() for path in TARGETS.values())


# A notebook


@pytest.fixture(params=["without --install", "with --install"])
def exported(request, week):
    install = INSTALL if request.param == "with --install" else []
    assert run("export", "-a", week, "--notebook", "new/week3.ipynb", *install) == 0
    notebook = nbformat.read("new/week3.ipynb", as_version=4)
    assert (f'%pip install --quiet "{INSTALL[1]}"' in notebook.cells[1].source) == bool(install)
    assert ("pip install -" in notebook.cells[1].source) == bool(install)
    return notebook


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


def test_a_notebook_says_all_points_and_when_it_is_due_and_what_counts():
    tasks = "{softmax: {points: 2, allow_twins: true}, attend: 1.5}"
    Path("due.yaml").write_text(f"due: 2026-11-30 23:59 +0100\nlate_penalty: 10%\nexercises: {tasks}\n")
    assert run("export", "-a", "due.yaml", "--notebook", "n.ipynb") == 0
    intro, *others = sources_of()
    assert "3.5 points in all. Due 2026-11-30 23:59 +0100." in intro
    assert "costs 10% of the points" in intro
    assert sum("PyTorch's own function counts here" in source for source in others) == 1


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


def test_a_notebook_says_what_to_do_with_code_to_repair_only_where_it_has_some():
    asked = "where the code is given, repair it, and delete that line when you have, or when nothing needs repair"
    for names, said in ((["fix_loss"], True), (["softmax", "fix_loss"], True), (["softmax", "causal_mask"], False)):
        assert run("export", *names, "--notebook", "n.ipynb") == 0
        intro = sources_of()[0]
        assert intro.startswith("# Exercises\n\nWrite your solution in place of `raise NotImplementedError`")
        assert (asked in intro) is said


def execute(notebook) -> str:
    """Run all cells as a student does; what was shown."""
    NotebookClient(notebook, timeout=120, kernel_name="python3").execute()
    outputs = [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]
    assert not [output for output in outputs if output.output_type == "error"]
    return "\n".join(output.get("text", "") or output.get("data", {}).get("text/plain", "") for output in outputs)


@pytest.mark.thorough
def test_a_notebook_runs_and_grades_as_it_is_and_with_solutions(exported, week):
    for solutions in ({}, {"softmax": SOFTMAX, "causal_mask": CAUSAL}):
        for cell in exported.cells:
            cell.source = next((s for n, s in solutions.items() if cell.source.startswith(f"def {n}(")), cell.source)
        shown = execute(exported)
        assert shown.count("All of it holds." if solutions else "Not attempted yet") == 2
        nbformat.write(exported, "run.ipynb")
        assert run("grade", "run.ipynb", "-a", week, "--quiet", "--json", "out.json") == 0
        assert {task["status"] for task in first()["tasks"]} == {"passed" if solutions else "not attempted"}


# An autograder for Gradescope


@pytest.fixture
def archive(week):
    assert run("export", "-a", week, "--gradescope", "new/autograder.zip", "--install", "course_lib==0.1.0") == 0
    assert [path.name for path in Path("new").iterdir()] == ["autograder.zip"]
    with zipfile.ZipFile("new/autograder.zip") as archive:
        yield archive


def test_the_autograder_holds_the_assignment_and_scripts_with_their_modes(archive, week):
    assert archive.testzip() is None
    modes = {info.filename: stat.S_IMODE(info.external_attr >> 16) for info in archive.infolist()}
    assert modes == {"setup.sh": 0o755, "run_autograder": 0o755, "assignment.yaml": 0o644}
    Path("inside.yaml").write_bytes(archive.read("assignment.yaml"))
    assert read_assignment(Path("inside.yaml")) == read_assignment(Path(week))
    assert 'pip install --quiet "course_lib==0.1.0"' in archive.read("setup.sh").decode()


@posix
def test_all_scripts_are_shell_with_unix_line_ends(archive, week):
    assert run("export", "-a", week, "--classroom", "c.yml", "--install", "course_lib[x]") == 0
    steps = [step["run"].encode() for step in steps_of() if "run" in step]
    scripts = [archive.read(name) for name in ("setup.sh", "run_autograder")]
    assert all(script.startswith(b"#!/usr/bin/env bash\n") for script in scripts)
    for script in [*steps, *scripts]:
        assert b"\r" not in script
        subprocess.run(["bash", "-n"], input=script, check=True, timeout=20)


@pytest.fixture
def gradescope_machine(archive, tmp_path):
    """A folder that looks as /autograder does; gives a function that runs the script there."""
    root = tmp_path / "autograder"
    for folder in ("source", "submission", "venv/bin"):
        (root / folder).mkdir(parents=True)
    (root / "venv/bin/course-lib").symlink_to(command())
    (root / "venv/bin/python").symlink_to(sys.executable)
    archive.extractall(root / "source")
    script = (root / "source" / "run_autograder").read_text()
    assert "/autograder" in script

    def start() -> dict:
        moved = script.replace("/autograder", str(root))
        subprocess.run(["bash"], input=moved.encode(), check=True, timeout=120, cwd=tmp_path)
        return json.loads((root / "results" / "results.json").read_text(encoding="utf-8"))

    return root, start


@posix
@pytest.mark.thorough
def test_the_autograder_grades_a_submission_and_says_so_where_it_cannot_run(gradescope_machine):
    root, start = gradescope_machine
    (root / "submission" / "my homework.ipynb").write_text(notebook_of(IMPORT, SOFTMAX))
    content = start()
    assert content["score"] == 2
    tests = [(test["name"], test["max_score"], test["status"]) for test in content["tests"]]
    assert tests == [("softmax", 2, "passed"), ("causal_mask", 3, "failed")]
    (root / "source" / "assignment.yaml").write_text("exercises: {softmax: -2}\n")
    content = start()
    assert content["score"] == 0
    assert "The grader could not run, so this submission is not graded." in content["output"]
    assert "points must be a number of at least 0, got -2" in content["output"]


# A workflow for GitHub Classroom


def test_the_workflow_is_one_that_github_reads(week):
    assert run("export", "-a", week, "--classroom", ".github/workflows/grade.yml", "--install", "course_lib[x]") == 0
    steps = steps_of(".github/workflows/grade.yml")
    assert all(("uses" in step) != ("run" in step) for step in steps)
    used = [step["uses"].partition("@")[0] for step in steps if "uses" in step]
    assert used == ["actions/checkout", "actions/setup-python", "actions/upload-artifact"]
    assert 'pip install --quiet "course_lib[x]"' in steps[2]["run"]


@posix
@pytest.mark.thorough
@pytest.mark.parametrize(("code", "status"), [(SOFTMAX + CAUSAL, 0), (SOFTMAX, 1)])
def test_the_workflow_grades_a_repository_and_fails_unless_all_is_passed(tmp_path, week, code, status):
    assert run("export", "-a", week, "--classroom", "c.yml", "--install", "course_lib[x]") == 0
    (step,) = (step["run"] for step in steps_of() if "course-lib grade" in step.get("run", ""))
    (tmp_path / "repository").mkdir()
    (tmp_path / "temp").mkdir()
    (tmp_path / "repository" / "homework.py").write_text(IMPORT + code)
    path = f"{Path(command()).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "RUNNER_TEMP": str(tmp_path / "temp"), "PATH": path}
    more = {"cwd": tmp_path / "repository", "env": environment, "timeout": 120, "stdout": subprocess.DEVNULL}
    assert subprocess.run(["bash", "-e"], input=step.encode(), **more).returncode == status
    assert read_assignment(tmp_path / "temp" / "assignment.yaml") == read_assignment(Path(week))
    assert (tmp_path / "temp" / "grading" / "junit.xml").exists()
    (page,) = (tmp_path / "temp" / "grading" / "feedback").iterdir()
    assert page.name.startswith("repository-")
    assert os.listdir(tmp_path / "repository") == ["homework.py"]
