"""Grading a class: points, misbehaviour, resuming, the same bytes every time."""

import contextlib
import dataclasses
import json
import os
import re
import signal
import subprocess
import sys
import time
from datetime import datetime, timedelta, timezone
from typing import ClassVar

import pytest

from course_grade.grading import one_submission
from course_grade.grading.assignment import AssignedExercise, Assignment
from course_grade.grading.grade import Grader, grade_all
from course_grade.grading.scheduling import SharedOrExclusiveLock
from course_grade.grading.store import Store
from course_grade.sandbox.session import Ended
from course_grade.sandbox.walls import Limits
from course_grade.submission.submissions import read_submission, read_submissions
from course_kit.checker.notebook import SELF_CHECK_SEED, self_check
from course_kit.checker.observing import Observation
from course_kit.checker.verdict.sheet import sheet_of
from course_kit.exercises import all_exercises, find
from tools.publisher import ROOT

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="grading needs fork"),
    pytest.mark.usefixtures("lent_fork_servers"),
]

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
CAUSAL = """
import torch
def causal_mask(length):
    return torch.ones(length, length, dtype=torch.bool).tril()
"""
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


def test_a_right_submission_gets_all_points(grade):
    result = grade(ATTENTION + CAUSAL)
    assert (result.points, result.of) == (5.0, 5.0)
    assert {task.status for task in result.tasks} == {"passed"}


def test_a_wrong_one_gets_points_for_what_holds_and_the_name_of_its_mistake(grade):
    task = tasks_of(grade(NO_MASK + CAUSAL))["scaled_dot_product_attention"]
    assert task.status == "failed"
    assert task.diagnosis["key"] == "mask_ignored"
    held = {line["says"] for line in task.lines if line["holds"]}
    assert any(message.startswith("It works with any number of batch dimensions") for message in held)
    assert not any(message.startswith("A masked key gets weight zero") for message in held)
    assert 0 < task.points < 4


def test_points_follow_the_weights_and_conduct_only_what_is_right(grade):
    task = tasks_of(grade(NO_MASK))["scaled_dot_product_attention"]
    values = [line for line in task.lines if line["weight"] != 0.5]
    right = sum(line["weight"] for line in values if line["holds"])
    conduct = sum(line["weight"] for line in task.lines if line["weight"] == 0.5 and line["holds"])
    share = right / sum(line["weight"] for line in values)
    expected = 4 * (right + share * conduct) / sum(line["weight"] for line in task.lines)
    assert float(task.points) == pytest.approx(expected, abs=1e-12)


def test_what_nobody_wrote_is_not_attempted(grade):
    result = grade(CAUSAL)
    assert tasks_of(result)["scaled_dot_product_attention"].status == "not attempted"
    stub = grade("def causal_mask(length):\n    raise NotImplementedError\n")
    assert tasks_of(stub)["causal_mask"].status == "not attempted"
    assert stub.points == 0


def test_an_import_of_the_packages_own_function_is_not_attempted(grade):
    result = grade("from course_lib import causal_mask\n" + ATTENTION)
    assert tasks_of(result)["causal_mask"].status == "not attempted"


def test_calling_the_packages_own_function_is_not_counted(grade):
    result = grade("import course_lib as cl\ndef causal_mask(length):\n    return cl.causal_mask(length)\n")
    task = tasks_of(result)["causal_mask"]
    assert (task.status, task.points) == ("not counted", 0.0)
    assert "uses course_lib.causal_mask" in task.note


def test_an_instructor_may_allow_pytorchs_own_function(tmp_path):
    path = tmp_path / "s.py"
    path.write_text("import torch\ndef softmax(scores, dim=-1):\n    return torch.softmax(scores, dim)\n")
    points = {}
    for allow in (False, True):
        with Grader(Assignment(tasks=(AssignedExercise("softmax", 1.0, allow),), seed=1)) as own:
            points[allow] = own.grade(read_submission("s", [path])).points
    assert points == {False: 0.0, True: 1.0}


def test_the_packages_own_function_never_counts(tmp_path):
    path = tmp_path / "s.py"
    path.write_text("import course_lib as cl\ndef softmax(scores, dim=-1):\n    return cl.softmax(scores, dim)\n")
    with Grader(Assignment(tasks=(AssignedExercise("softmax", 1.0, allow_twins=True),), seed=1)) as own:
        (task,) = own.grade(read_submission("s", [path])).tasks
    assert (task.status, task.points) == ("not counted", 0)


MISBEHAVIOUR = {
    "hangs": ("while True: pass", "took longer than 1 s"),
    "exits": ("import os; os._exit(0)", "exit status 0"),
    "leaves": ("import sys; sys.exit('bye')", "SystemExit"),
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


def test_an_abort_is_called_an_abort(grade):
    result = grade(CAUSAL.replace("return", "import os; os.abort(); return"))
    assert "signal 6 (an abort)" in result.tasks[1].note


def test_a_case_that_must_raise_is_judged_as_in_a_notebook(tmp_path):
    """It ends with the constructor, which is then not called on without arguments."""
    code = find("MultiHeadAttention").solution
    lines = code.splitlines(keepends=True)
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
    result = grade("import ctypes\n" + CAUSAL.replace("return", "ctypes.sizeof(ctypes.c_int); return"))
    assert result.tasks[1].status == "passed"
    assert result.tasks[1].note == "look at the code: it mentions ctypes"


class _Slow:
    """A process whose first call is doubtful, since others run beside it."""

    used_at_load: ClassVar = {}

    def __init__(self):
        self.calls = 0

    def observe(self, frame):
        self.calls += 1
        if self.calls == 1:
            end = Ended("took longer than 1 s for a call, and was stopped")
            end.too_long = end.doubtful = True
            raise end
        return Observation(value=None)


def test_waiting_for_others_costs_a_submission_nothing(grader, tmp_path, monkeypatch):
    path = tmp_path / "masks.py"
    path.write_text(CAUSAL)
    session, turns, clock = _Slow(), SharedOrExclusiveLock(), [0.0]

    @contextlib.contextmanager
    def alone(*, from_beside):
        clock[0] += 1000 * QUICK.limits.total_seconds
        yield

    monkeypatch.setattr(turns, "alone", alone)
    monkeypatch.setattr(one_submission.time, "monotonic", lambda: clock[0])
    run = one_submission.Run(grader.server, read_submission("masks", [path]), [find("causal_mask")], turns)
    monkeypatch.setattr(run, "_session", lambda: session)
    observations, note = run.observe(sheet_of(find("causal_mask"), 5))
    assert note == ""
    assert not any(seen.problem for seen in observations)


def test_the_line_of_an_error_in_a_notebook_names_the_cell(grader, tmp_path):
    cells = ["import torch", "def causal_mask(length):\n    return torch.ones(length, oops)"]
    notebook = {"cells": [{"cell_type": "code", "source": source} for source in cells], "nbformat": 4}
    path = tmp_path / "n.ipynb"
    path.write_text(json.dumps(notebook))
    text = tasks_of(grader.grade(read_submission("n", [path])))["causal_mask"].text
    assert "n.ipynb, cell 2, line 2: return torch.ones(length, oops)" in text


def test_a_line_that_fails_at_import_is_named_where_it_matters(grade):
    result = grade("import no_such_module as nm\n" + CAUSAL.replace(".tril()", ".tril() & nm.x"))
    assert "No module named 'no_such_module'" in tasks_of(result)["causal_mask"].text


def test_late_days_and_their_penalty(tmp_path):
    path = tmp_path / "late.py"
    path.write_text(CAUSAL)
    due = datetime.now(timezone.utc)
    late = (due + timedelta(hours=25)).timestamp()
    os.utime(path, (late, late))
    assignment = Assignment(tasks=(AssignedExercise("causal_mask", 10.0),), seed=1, due=due, late_penalty=0.1)
    (result,) = grade_all([read_submission("late", [path])], assignment, None)
    assert result.late_days == 2
    assert result.points == 8.0
    on_time = dataclasses.replace(assignment, due=due + timedelta(days=2))
    (result,) = grade_all([read_submission("late", [path])], on_time, None)
    assert (result.late_days, result.points) == (0, 10.0)


def test_the_level_of_the_sandbox_is_stated(grade, grader):
    assert str(grader.server.walls) == grade(CAUSAL).walls
    assert grader.server.walls.level in grade(CAUSAL).walls


@pytest.mark.thorough
def test_without_walls_the_verdict_is_the_same(tmp_path):
    path = tmp_path / "s.py"
    path.write_text(NO_SCALE + CAUSAL)
    points = set()
    for walls in ((), ("limits",), QUICK.walls):
        with Grader(dataclasses.replace(QUICK, walls=walls)) as own:
            result = own.grade(read_submission("s", [path]))
            points.add((result.points, result.tasks[0].diagnosis["key"]))
            assert (own.server.walls.level == "process") == (len(walls) < 2)
    assert len(points) == 1


@pytest.mark.thorough
def test_a_fork_server_that_was_killed_is_replaced(own_fork_server, tmp_path):
    path = tmp_path / "s.py"
    path.write_text(ATTENTION + CAUSAL)
    with Grader(QUICK) as own:
        own.server._process.kill()
        assert own.grade(read_submission("s", [path])).points == 5.0


COMPARISONS = {
    "a name that the solution uses inside, too": "mask = cl.causal_mask(4)",
    "a loop over such a name": "for length in (1, 2):\n    time.sleep(30)",
    "a comprehension": "rows = [cl.causal_mask(length) for length in range(3)]",
    "a training run": "query, length = 0, 0\nwhile True:\n    length += 1",
}


@pytest.mark.parametrize("kind", COMPARISONS)
def test_what_a_student_tries_beside_the_solution_is_left_alone(grade, kind):
    code = """
import time
import torch
import course_lib as cl
def causal_mask(length):
    mask = torch.ones(length, length)
    rows = [mask for query in range(1)]
    return rows[0].tril().bool()
"""
    task = tasks_of(grade(code + COMPARISONS[kind]))["causal_mask"]
    assert task.status == "passed", task.text


@pytest.mark.parametrize("page", ["attention", "scaled_dot_product", "deeper/softmax_saturation"])
def test_a_pages_notebook_with_its_stubs_filled_in_gets_all_points(page, tmp_path):
    """With everything else that the page runs: training, figures, comparisons with the package."""
    notebook = json.loads((ROOT / f"book/{page}.ipynb").read_text(encoding="utf-8"))
    stubs, exercises = {exercise.stub.rstrip(): exercise for exercise in all_exercises().values()}, []
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code" and "".join(cell["source"]) in stubs:
            exercises.append(stubs["".join(cell["source"])])
            cell["source"] = exercises[-1].solution
    assert (
        len(exercises) == len(re.findall(r"^```{exercise} ", (ROOT / f"book/{page}.md").read_text("utf-8"), re.M)) > 0
    )
    path = tmp_path / "page.ipynb"
    path.write_text(json.dumps(notebook))
    assignment = Assignment(tasks=tuple(AssignedExercise(exercise.name) for exercise in exercises), seed=1)
    (result,) = grade_all([read_submission("s", [path])], assignment, None)
    assert result.points == result.of, [task.text for task in result.tasks]


def test_what_builds_on_a_broken_cell_says_so(grader, tmp_path):
    cells = ["import torch", "def helper(n:\n    return n", "def causal_mask(length):\n    return helper(length)"]
    path = tmp_path / "n.ipynb"
    path.write_text(json.dumps({"cells": [{"cell_type": "code", "source": source} for source in cells], "nbformat": 4}))
    text = tasks_of(grader.grade(read_submission("n", [path])))["causal_mask"].text
    assert "n.ipynb, cell 2 could not be read" in text


def test_two_students_of_one_name_stay_two(tmp_path):
    for place in ("a/bob.py", "a/bob.ipynb", "b/bob.py"):
        (tmp_path / place).parent.mkdir(exist_ok=True)
        (tmp_path / place).write_text('{"cells": []}' if place.endswith("ipynb") else CAUSAL)
    students = [s.student for s in read_submissions([tmp_path / "a", tmp_path / "b"])]
    assert sorted(students) == ["a/bob.py", "b/bob.py", "bob.ipynb"]
    assert [s.student for s in read_submissions([tmp_path / "b"])] == ["bob"]


# A class


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "class"
    folder.mkdir()
    for number in range(12):
        (folder / f"s{number:02d}.py").write_text((ATTENTION, NO_SCALE, "")[number % 3] + CAUSAL)
    return folder


def test_results_are_kept_and_used_again_until_a_file_changes(folder, tmp_path):
    submissions = list(read_submissions([folder]))
    seen: list[bool] = []
    for _ in range(2):
        store = Store(tmp_path / "store", QUICK)
        first = grade_all(submissions, QUICK, store, jobs=2, on_result=lambda s, r, again: seen.append(again))
    assert seen == [False] * 12 + [True] * 12
    (folder / "s00.py").write_text(CAUSAL)
    seen.clear()
    again = grade_all(
        list(read_submissions([folder])),
        QUICK,
        Store(tmp_path / "store", QUICK),
        on_result=lambda s, r, a: seen.append(a),
    )
    assert seen.count(False) == 1
    assert again[0].points < first[0].points
    other = dataclasses.replace(QUICK, seed=6)
    assert Store(tmp_path / "store", other).load(submissions[1]) is None


def test_a_damaged_result_is_graded_again(folder, tmp_path):
    submissions = list(read_submissions([folder]))[:1]
    store = Store(tmp_path / "store", QUICK)
    grade_all(submissions, QUICK, store)
    for damage in ("{", '{"key": 1}', ""):
        store.path(submissions[0]).write_text(damage)
        assert store.load(submissions[0]) is None


def command(folder, out, *options):
    names = [part for task in TASKS for part in ("-e", task.name)]
    return [
        sys.executable,
        "-m",
        "course_grade.command",
        "grade",
        str(folder),
        "--out",
        str(out),
        "--seed",
        "3",
        *names,
        *options,
    ]


def files_of(out) -> dict[str, bytes]:
    return {str(p.relative_to(out)): p.read_bytes() for p in sorted(out.rglob("*")) if p.is_file()}


@pytest.mark.thorough
def test_two_runs_with_one_seed_are_the_same_to_the_byte_whatever_the_jobs(folder, tmp_path):
    for out, jobs in (("a", "1"), ("b", "2")):
        subprocess.run(command(folder, tmp_path / out, "--jobs", jobs, "--quiet"), check=True, timeout=120)
    assert files_of(tmp_path / "a") == files_of(tmp_path / "b")
    assert "results.json" in files_of(tmp_path / "a")


@pytest.mark.thorough
def test_a_grader_killed_half_way_goes_on_where_it_stopped(folder, tmp_path):
    slow = ATTENTION.replace("    scores", "    import time; time.sleep(0.05)\n    scores", 1)
    for number in range(12):
        (folder / f"s{number:02d}.py").write_text(slow + CAUSAL + f"# {number}\n")
    out = tmp_path / "out"
    process = subprocess.Popen(command(folder, out, "--jobs", "1", "--quiet"))
    store = out / "submissions"
    deadline = time.monotonic() + 90
    while time.monotonic() < deadline and (not store.is_dir() or len(list(store.glob("*.json"))) < 3):
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.wait()
    kept = {path: path.stat().st_mtime_ns for path in store.glob("*.json")}
    assert 3 <= len(kept) < 12
    done = subprocess.run(command(folder, out, "--jobs", "2"), check=True, timeout=120, capture_output=True, text=True)
    assert f"{len(kept)} of 12 were graded by an earlier run" in " ".join(done.stdout.split())
    assert all(path.stat().st_mtime_ns == when for path, when in kept.items())
    subprocess.run(command(folder, tmp_path / "whole", "--quiet"), check=True, timeout=120)
    results = {name: content for name, content in files_of(out).items() if ".partial" not in name}
    assert results == files_of(tmp_path / "whole")
