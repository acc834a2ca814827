"""A student with several files: each is a module of its own, and they may import each other as Python would."""

import textwrap

import pytest

from course_grade.grading.assignment import AssignedExercise, Assignment
from course_grade.grading.grade import Grader
from course_grade.submission.finding import HandedIn
from course_grade.submission.submissions import read_each

pytestmark = pytest.mark.usefixtures("lent_fork_servers")

SOFTMAX = """
import torch

AXIS = {axis}

def normalised(e):
    return e / e.sum(AXIS, keepdim=True)

def softmax(scores, dim=-1):
    moved = scores.movedim(dim, AXIS)
    return normalised((moved - moved.amax(AXIS, keepdim=True)).exp()).movedim(AXIS, dim)
"""
CAUSAL = """
import torch
{imports}

AXIS = 1

def normalised(length):
    return torch.arange(length)

def causal_mask(length):
    return {body}
"""
LOWER = """
import torch

def lower(length):
    return torch.ones(length, length, dtype=torch.bool).tril()
"""
WRONG = LOWER.replace("tril", "triu")


@pytest.fixture(scope="module")
def grader():
    with Grader(Assignment(tasks=(AssignedExercise("softmax"), AssignedExercise("causal_mask")), seed=5)) as grader:
        yield grader


@pytest.fixture
def statuses(grader, tmp_path):
    """Grades files, given by name, and returns what came of both exercises."""

    def grade(**files):
        for name, text in files.items():
            path = tmp_path / "student" / name.replace("__", "/")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.with_name(path.name + ".py").write_text(textwrap.dedent(text))
        names = [task.name for task in grader.assignment.tasks]
        (submission,) = read_each([HandedIn("student", (tmp_path / "student",))], names)
        tasks = grader.grade(submission).tasks
        return {task.name: task.status if task.status == "passed" else task.text for task in tasks}

    return grade


BOTH = {"softmax": "passed", "causal_mask": "passed"}


def test_names_of_one_file_do_not_overwrite_those_of_another(statuses):
    masks = CAUSAL.format(imports="", body="normalised(length)[None] <= normalised(length)[:, None]")
    assert statuses(attention=SOFTMAX.format(axis=-1), week2=masks) == BOTH


def test_an_imported_function_is_not_a_definition_that_counts(statuses):
    body = "softmax(torch.ones(length, length)).tril() > 0"
    masks = CAUSAL.format(imports="from course_lib import softmax", body=body)
    assert statuses(attention=masks, week1=SOFTMAX.format(axis=-1)) == BOTH


IMPORTS = {
    "more__helpers": [
        "from more.helpers import lower",
        "from .more.helpers import lower",
        "import more.helpers\nlower = more.helpers.lower",
        "import more.helpers as h\nlower = h.lower",
    ],
    "helpers": [
        "from helpers import lower",
        "from .helpers import lower",
        "import helpers\nlower = helpers.lower",
        "from importlib import import_module\nlower = import_module('helpers').lower",
    ],
}


@pytest.mark.parametrize("place", IMPORTS)
def test_helpers_beside_a_file_or_in_a_folder(statuses, place):
    for imports in IMPORTS[place]:
        masks = CAUSAL.format(imports=imports, body="lower(length)")
        assert statuses(attention=SOFTMAX.format(axis=0), masking=masks, **{place: LOWER}) == BOTH, imports


def test_two_folders_may_each_have_their_own_helpers(statuses):
    """The nearest one is meant; one that lies above is found, too."""
    axis = SOFTMAX.format(axis="chosen").replace("import torch", "import torch\nfrom helpers import chosen")
    axis = axis.replace("torch\n", "torch\nfrom common import nothing\n", 1)
    masks = CAUSAL.format(imports="from helpers import lower\nfrom ..common import nothing", body="lower(length)")
    files = {"week1__attention": axis, "week1__helpers": "chosen = -1", "week2__masking": masks}
    assert statuses(**files, week2__helpers=LOWER, helpers=WRONG, common="nothing = None") == BOTH


def test_a_folder_does_not_hide_a_library_of_its_name(statuses):
    masks = CAUSAL.format(imports="from torch import tril", body="tril(torch.ones(length, length)) > 0")
    assert statuses(attention=SOFTMAX.format(axis=-1), work__masking=masks, torch__notes="x = 1") == BOTH


def test_checks_that_stand_in_a_file_do_not_run(statuses):
    masks = CAUSAL.format(imports="from course_kit import check, hint\nfrom helpers import lower", body="lower(length)")
    helpers = LOWER + "\nfrom course_kit import check\ncheck(lower, 'causal_mask')\n"
    assert statuses(attention=SOFTMAX.format(axis=-1), masking=masks, helpers=helpers) == BOTH
