"""Right solutions in other styles, written by people who knew the contract only, get full marks behind every wall.

einsum, torch.func, checkpoints, custom autograd functions, every route to half precision, the meta device, scripted and
compiled functions, threads, generators, …: what a solution is made of is its author's business.
"""

import sys

import pytest
from solutions_by_others import cells

from course_grade.grading.assignment import AssignedExercise, Assignment
from course_grade.grading.grade import Grader
from course_grade.sandbox.walls import WALLS, Limits
from course_grade.submission.submissions import read_submission

pytestmark = [
    pytest.mark.thorough,
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the walls are Linux's"),
]

RIGHT = cells("right")
LIMITS = Limits(seconds=30.0, load_seconds=60.0, total_seconds=300.0)
LEVELS = {
    "all walls": tuple(WALLS),
    "no Landlock": ("limits", "user", "namespaces", "seccomp"),
    "no namespaces": ("limits", "user", "landlock", "seccomp"),
    "no seccomp": ("limits", "user", "namespaces", "landlock"),
}
EACH = 12  # of this many, one is graded at each of the lower levels, to save time


@pytest.fixture(scope="module", params=LEVELS)
def level(request):
    return request.param


@pytest.fixture(scope="module")
def grader(level):
    try:
        grader = Grader(Assignment(tasks=(AssignedExercise("softmax"),), seed=11, limits=LIMITS, walls=LEVELS[level]))
    except OSError as error:  # root, and Python's files where no other user can read them
        pytest.skip(str(error))
    with grader:
        yield grader


@pytest.mark.parametrize("stem", sorted({cell.stem for cell in RIGHT}))
def test_a_right_solution_gets_full_marks(stem, level, grader, tmp_path):
    chapter = [cell for cell in RIGHT if cell.stem == stem]
    refused = {}
    for cell in chapter if level == "all walls" else chapter[::EACH]:
        path = tmp_path / "ada.py"
        path.write_text(f"\n\n{cell.code}", encoding="utf-8")  # a comment in the first lines could name an encoding
        grader.assignment = Assignment(
            tasks=(AssignedExercise(cell.exercise),), seed=11, limits=LIMITS, walls=LEVELS[level]
        )
        (task,) = grader.grade(read_submission("ada", [path])).tasks
        if task.status != "passed":
            refused[f"{cell.key}: {cell.message}"] = f"{task.status} {task.note} {task.text[:2000]}"
    assert refused == {}


TOGETHER = """
import threading
import torch


def causal_mask(length):
    together, found = threading.Barrier(8), []

    def one():
        together.wait()
        found.append(torch.arange(length))

    threads = [threading.Thread(target=one) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found[7][None, :] <= found[0][:, None]
"""


def test_threads_may_be_the_first_to_use_torch(tmp_path):
    """PyTorch makes its pool of threads anew after a fork; threads that did so at once crashed one case in four."""
    path = tmp_path / "ada.py"
    path.write_text(TOGETHER, encoding="utf-8")
    with Grader(Assignment(tasks=(AssignedExercise("causal_mask"),), seed=11, limits=LIMITS)) as grader:
        tasks = [grader.grade(read_submission("ada", [path])).tasks[0] for _ in range(12)]
    assert [(task.status, task.note) for task in tasks] == [("passed", "")] * 12
