"""Grading a class: points, misbehaviour, resuming, the same bytes every time."""

import contextlib
import json
import re
import signal
import subprocess
import sys
import time
from types import SimpleNamespace

import pytest
from handed_in import CAUSAL, IMPORT

from course_grade.grading import one_submission
from course_grade.grading.assignment import AssignedExercise, Assignment
from course_grade.grading.grade import Grader, grade_all
from course_grade.grading.scheduling import SharedOrExclusiveLock
from course_grade.sandbox.session import Ended
from course_grade.sandbox.walls import Limits
from course_grade.submission.submissions import read_submission
from course_kit.checker.notebook import SELF_CHECK_SEED, self_check
from course_kit.checker.observing import Observation
from course_kit.checker.verdict.sheet import sheet_of
from course_kit.exercises import all_exercises, find
from tools.publisher import ROOT

pytestmark = pytest.mark.usefixtures("lent_fork_servers")

ATTENTION = """
import math
import torch
def scaled_dot_product_attention(query, key, value, mask=None):
    scores = query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])
    if mask is not None:
        scores = scores.masked_fill(~mask, float("-inf"))
    weights = scores.softmax(-1)
    return weights @ value, weights
"""
NO_MASK = ATTENTION.replace("if mask is not None", "if False")
NO_SCALE = ATTENTION.replace(" / math.sqrt(query.shape[-1])", "")
TASKS = (AssignedExercise("scaled_dot_product_attention", 4.0), AssignedExercise("causal_mask", 1.0))
QUICK = Assignment(tasks=TASKS, seed=5, limits=Limits(seconds=1.0, load_seconds=8.0, total_seconds=10.0, memory_mb=400))


@pytest.fixture(scope="module")
def grader():
    with Grader(QUICK) as grader:
        yield grader


@pytest.fixture
def grade(grader, tmp_path):
    def run(code, name="student"):
        path = tmp_path / f"{name}.py"
        path.write_text(code)
        return grader.grade(read_submission(name, [path]))

    return run


def tasks_of(result) -> dict:
    return {task.name: task for task in result.tasks}


def test_a_right_submission_gets_all_points_and_states_its_walls(grade, grader):
    result = grade(ATTENTION + CAUSAL)
    assert (result.points, result.of) == (5.0, 5.0)
    assert {task.status for task in result.tasks} == {"passed"}
    assert result.walls == str(grader.server.walls)


def test_a_wrong_one_gets_the_name_of_its_mistake_and_points_by_weight_for_conduct_by_what_is_right(grade):
    task = tasks_of(grade(NO_MASK + CAUSAL))["scaled_dot_product_attention"]
    assert (task.status, task.diagnosis["key"]) == ("failed", "mask_ignored")
    held = {line["says"] for line in task.lines if line["holds"]}
    assert any(message.startswith("It works with any number of batch dimensions") for message in held)
    assert not any(message.startswith("A masked key gets weight zero") for message in held)
    values = [line for line in task.lines if line["weight"] != 0.5]
    right = sum(line["weight"] for line in values if line["holds"])
    conduct = sum(line["weight"] for line in task.lines if line["weight"] == 0.5 and line["holds"])
    share = right / sum(line["weight"] for line in values)
    expected = 4 * (right + share * conduct) / sum(line["weight"] for line in task.lines)
    assert float(task.points) == pytest.approx(expected, abs=1e-12)
    assert 0 < task.points < 4


def test_what_nobody_wrote_is_not_attempted(grade):
    imported = "from course_lib import causal_mask\n"
    for code in (ATTENTION, "def causal_mask(length):\n    raise NotImplementedError\n", imported + ATTENTION):
        task = tasks_of(grade(code))["causal_mask"]
        assert (task.status, task.points) == ("not attempted", 0), code


def test_pytorchs_own_function_counts_where_an_instructor_allows_it_and_the_packages_never(tmp_path):
    path, found = tmp_path / "s.py", []
    for code, allow in (("torch.softmax", False), ("torch.softmax", True), ("cl.softmax", True)):
        path.write_text(f"import torch\nimport course_lib as cl\ndef softmax(s, dim=-1):\n    return {code}(s, dim)\n")
        with Grader(Assignment(tasks=(AssignedExercise("softmax", 1.0, allow),), seed=1)) as own:
            (task,) = own.grade(read_submission("s", [path])).tasks
        found.append((task.status, task.points))
    assert found == [("not counted", 0), ("passed", 1), ("not counted", 0)]
    assert "uses course_lib.softmax" in task.note


MISBEHAVIOUR = {
    "hangs": ("while True: pass", "took longer than 1 s"),
    "exits": ("import os; os._exit(0)", "exit status 0"),
    "leaves": ("import sys; sys.exit('bye')", "SystemExit"),
    "aborts": ("import os; os.abort()", "signal 6 (an abort)"),
    "crashes": ("import ctypes; ctypes.string_at(0)", "signal 11"),
    "eats memory": ("return torch.ones(10**9, dtype=torch.float64)", "emory"),
    "eats python memory": ("x = [0] * 10**9; return x", "MemoryError"),
    "floods output": ("print('x' * 10**8)", "File too large"),
    "recurses": ("return causal_mask(length)", "RecursionError"),
    "forks": ("import os; os.fork()", "PermissionError"),
    "connects": ("import socket; socket.create_connection(('127.0.0.1', 9))", "PermissionError"),
    "writes a file": ("open('/usr/course-lib-canary', 'w')", "OSError: [Errno 30] Read-only file system"),
    "reads a file": ("open('/etc/passwd').read()", "Error: [Errno"),
}


@pytest.mark.parametrize("kind", MISBEHAVIOUR)
def test_misbehaviour_ends_in_a_readable_line_and_costs_only_its_exercise(grade, grader, kind):
    code, message = MISBEHAVIOUR[kind]
    if "Permission" in message and grader.server.walls.level != "full":
        pytest.skip(str(grader.server.walls))
    result = grade(f"import torch\ndef causal_mask(length):\n    {code}\n" + ATTENTION)
    task = tasks_of(result)["causal_mask"]
    assert task.status == "failed"
    assert task.points == 0
    assert message in task.text + task.note
    assert tasks_of(result)["scaled_dot_product_attention"].status == "passed"
    assert grade(ATTENTION + CAUSAL).points == 5.0


def test_a_case_that_must_raise_is_judged_as_in_a_notebook(tmp_path):
    """It ends with the constructor, which is then not called on without arguments."""
    lines = find("MultiHeadAttention").solution.splitlines(keepends=True)
    start = next(number for number, line in enumerate(lines) if "%" in line)
    code = "import math\nimport torch\nfrom torch import nn\n" + "".join(lines[:start] + lines[start + 2 :])
    path = tmp_path / "layer.py"
    path.write_text(code)
    with Grader(Assignment(tasks=(AssignedExercise("MultiHeadAttention"),), seed=SELF_CHECK_SEED)) as grader:
        (task,) = grader.grade(read_submission("layer", [path])).tasks
    space = {"__name__": "layer"}
    exec(compile(code, str(path), "exec"), space)
    report = self_check(find("MultiHeadAttention"), space["MultiHeadAttention"])
    assert task.status == "failed"
    assert (task.diagnosis["key"], task.diagnosis["says"]) == (report.diagnosis.key, report.diagnosis.message)
    assert [line["holds"] for line in task.lines] == [line.holds for line in report.verdict.lines]


def test_code_that_looks_around_gets_a_remark_and_no_verdict_of_its_own(grade):
    result = grade("import ctypes, torch\n" + CAUSAL.replace("return", "ctypes.sizeof(ctypes.c_int); return"))
    assert result.tasks[1].status == "passed"
    assert result.tasks[1].note == "look at the code: it mentions ctypes"


def test_waiting_for_others_costs_a_submission_nothing(grader, tmp_path, monkeypatch):
    """The first call is doubtful, since others run beside it."""
    path = tmp_path / "masks.py"
    path.write_text(IMPORT + CAUSAL)
    turns, clock, calls = SharedOrExclusiveLock(), [0.0], []

    @contextlib.contextmanager
    def alone(*, from_beside):
        clock[0] += 1000 * QUICK.limits.total_seconds
        yield

    def observe(frame):
        calls.append(frame)
        if len(calls) == 1:
            end = Ended("took longer than 1 s for a call, and was stopped")
            end.too_long = end.doubtful = True
            raise end
        return Observation(value=None)

    monkeypatch.setattr(turns, "alone", alone)
    monkeypatch.setattr(one_submission.time, "monotonic", lambda: clock[0])
    run = one_submission.Run(grader.server, read_submission("masks", [path]), [find("causal_mask")], turns)
    monkeypatch.setattr(run, "_session", lambda: SimpleNamespace(observe=observe, used_at_load={}))
    observations, note = run.observe(sheet_of(find("causal_mask"), 5))
    assert note == ""
    assert not any(seen.problem for seen in observations)


MASK = "def causal_mask(length):\n    return torch.ones(length, length{})"
PLACES = {
    "n.ipynb, cell 2, line 2: return torch.ones(length, length, oops)": ["import torch", MASK.format(", oops")],
    "n.ipynb, cell 2 could not be read": ["import torch", "def helper(n:\n    1", MASK.format(", helper(length)")],
    "No module named 'no_such_module'": ["import torch", "import no_such_module as nm", MASK.format(", nm.x")],
}


@pytest.mark.parametrize("place", PLACES)
def test_the_line_of_an_error_is_named_where_it_matters(grader, tmp_path, place):
    path = tmp_path / "n.ipynb"
    cells = [{"cell_type": "code", "source": source} for source in PLACES[place]]
    path.write_text(json.dumps({"cells": cells, "nbformat": 4}))
    assert place in tasks_of(grader.grade(read_submission("n", [path])))["causal_mask"].text


@pytest.mark.thorough
def test_a_fork_server_that_was_killed_is_replaced(own_fork_server, tmp_path):
    path = tmp_path / "s.py"
    path.write_text(ATTENTION + CAUSAL)
    with Grader(QUICK) as own:
        own.server._process.kill()
        assert own.grade(read_submission("s", [path])).points == 5.0


BESIDE = """
import time
import torch
import course_lib as cl
def causal_mask(length):
    mask = torch.ones(length, length)
    rows = [mask for query in range(1)]
    return rows[0].tril().bool()
"""
TRIED = {
    "a name that the solution uses inside, too": "mask = cl.causal_mask(4)",
    "a loop over such a name": "for length in (1, 2):\n    time.sleep(30)",
    "a comprehension": "rows = [cl.causal_mask(length) for length in range(3)]",
    "a training run": "query, length = 0, 0\nwhile True:\n    length += 1",
}


def test_what_a_student_tries_beside_the_solution_is_left_alone(grade):
    for kind, code in TRIED.items():
        task = tasks_of(grade(BESIDE + code))["causal_mask"]
        assert task.status == "passed", f"{kind}: {task.text}"


@pytest.mark.parametrize("page", ["attention", "scaled_dot_product", "deeper/softmax_saturation"])
def test_a_pages_notebook_with_its_stubs_filled_in_gets_all_points(page, tmp_path):
    """With everything else that the page runs: training, figures, comparisons with the package."""
    notebook = json.loads((ROOT / f"book/{page}.ipynb").read_text(encoding="utf-8"))
    stubs, exercises = {exercise.stub.rstrip(): exercise for exercise in all_exercises().values()}, []
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code" and "".join(cell["source"]) in stubs:
            exercises.append(stubs["".join(cell["source"])])
            cell["source"] = exercises[-1].solution
    text = (ROOT / f"book/{page}.md").read_text("utf-8")
    assert len(exercises) == len(re.findall(r"^```{exercise} ", text, re.M)) > 0
    path = tmp_path / "page.ipynb"
    path.write_text(json.dumps(notebook))
    assignment = Assignment(tasks=tuple(AssignedExercise(exercise.name) for exercise in exercises), seed=1)
    (result,) = grade_all([read_submission("s", [path])], assignment, None)
    assert result.points == result.of, [task.text for task in result.tasks]


# A class


def files_of(out) -> dict[str, bytes]:
    return {str(p.relative_to(out)): p.read_bytes() for p in sorted(out.rglob("*")) if p.is_file()}


KEPT = "Stopped. What has been graded is kept; the same command continues from here."


@pytest.mark.thorough
@pytest.mark.parametrize(("number", "status", "said"), [(signal.SIGKILL, -9, ""), (signal.SIGINT, 130, KEPT)])
def test_a_grader_ended_half_way_goes_on_where_it_stopped(tmp_path, number, status, said):
    folder = tmp_path / "class"
    folder.mkdir()
    slow = ATTENTION.replace("    scores", "    import time; time.sleep(0.05)\n    scores", 1)
    for student in range(12):
        (folder / f"s{student:02d}.py").write_text(slow + CAUSAL + f"# {student}\n")
    names = [part for task in TASKS for part in ("-e", task.name)]
    command = [sys.executable, "-m", "course_grade.command", "grade", folder, "--seed", "3", *names, "--out"]
    out, options = tmp_path / "out", {"stderr": subprocess.PIPE, "text": True}
    # What a shell starts in the background, these tests for instance, ignores Ctrl-C, and so do its children.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    with subprocess.Popen([*command, out, "--jobs", "1", "--quiet"], **options) as process:
        signal.signal(signal.SIGINT, before)
        deadline = time.monotonic() + 90
        while time.monotonic() < deadline and len(list(out.glob("submissions/*.json"))) < 3:
            time.sleep(0.02)
        process.send_signal(number)
        _, error = process.communicate(timeout=60)
    assert (process.returncode, error.strip()) == (status, said)
    assert not (out / "results.json").exists()
    kept = {path: path.stat().st_mtime_ns for path in out.glob("submissions/*.json")}
    assert 3 <= len(kept) < 12
    done = subprocess.run([*command, out, "--jobs", "2"], check=True, timeout=120, stdout=subprocess.PIPE, **options)
    assert f"{len(kept)} of 12 were graded by an earlier run" in " ".join(done.stdout.split())
    assert all(path.stat().st_mtime_ns == when for path, when in kept.items())
    subprocess.run([*command, tmp_path / "whole", "--quiet"], check=True, timeout=120)
    results = {name: content for name, content in files_of(out).items() if ".partial" not in name}
    assert results == files_of(tmp_path / "whole")
