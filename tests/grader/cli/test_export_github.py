"""`course-lib export --github`: a workflow for GitHub Classroom."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import nbformat
import pytest
import yaml
from commands import CAUSAL, IMPORT, INSTALL, SOFTMAX, command, grades, posix, run

from course_grade.grading.assignment import AssignedExercise, read_assignment

pytestmark = pytest.mark.usefixtures("lent_fork_servers")


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
@pytest.mark.thorough
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
        [sys.executable, "-m", "course_grade.command", "list"],
        stdout=write,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    os.close(write)
    assert (done.returncode, done.stderr) == (141, "")
