"""Functions that are the whole exercise are noticed wherever they are called: at load, at run time, in packages.

`forbidden_calls.md` has the submissions: what a cheat may try, and right solutions that call something of the same
name, or what another exercise may not.
"""

import importlib
import re
import sys
import threading
from pathlib import Path

import pytest

from course_grade.grading.assignment import AssignedExercise, Assignment
from course_grade.grading.grade import Grader
from course_grade.submission.submissions import read_submission
from course_kit.checker.forbidden_calls import CallWatcher, names_of
from course_kit.exercises import all_exercises, find

pytestmark = pytest.mark.usefixtures("lent_fork_servers")

TEXT = Path(__file__).with_name("forbidden_calls.md").read_text(encoding="utf-8")
SOLUTIONS = re.findall(r"^## (.+)\n(\w+): (.+)\n```python\n((?:.*\n)*?)```$", TEXT, re.MULTILINE)


@pytest.fixture(scope="module")
def graders():
    made: dict[str, Grader] = {}

    def of(*names) -> Grader:
        key = " ".join(names)
        if key not in made:
            made[key] = Grader(Assignment(tasks=tuple(map(AssignedExercise, names)), seed=5))
        return made[key]

    yield of
    for grader in made.values():
        grader.close()


def graded(graders, tmp_path, code, *names):
    path = tmp_path / "ada.py"
    path.write_text(code)
    return graders(*names).grade(read_submission("ada", [path])).tasks


@pytest.mark.parametrize(("exercise", "said", "code"), [s[1:] for s in SOLUTIONS], ids=[s[0] for s in SOLUTIONS])
def test_only_a_function_that_is_the_whole_exercise_does_not_count(exercise, said, code, graders, tmp_path):
    (task,) = graded(graders, tmp_path, code, exercise)
    if said == "passed":
        assert task.status == "passed", task.text
    else:
        assert (task.status, task.points) == ("not counted", 0.0), task.text
        assert said in task.note, task.note


def test_no_solution_is_left_out():
    assert len(SOLUTIONS) == TEXT.count("\n## ") == TEXT.count("\n```python\n")


def test_a_table_made_for_one_exercise_says_nothing_about_another(graders, tmp_path):
    code = next(code for name, *_, code in SOLUTIONS if name == "the package's other functions at load")
    code += "def causal_mask(length):\n    return torch.ones(length, length, dtype=torch.bool).tril()\n"
    assert [task.status for task in graded(graders, tmp_path, code, "attend", "causal_mask")] == ["passed", "passed"]


def test_the_watcher_leaves_profilers_as_they_were():
    before = sys.getprofile(), threading.getprofile()
    with CallWatcher(find("softmax")):
        assert sys.getprofile() is not before[0]
    assert (sys.getprofile(), threading.getprofile()) == before


def test_every_dotted_twin_still_exists():
    """A name that has gone would be watched in vain."""
    ours = ("torch.", "course_lib.", "course_kit.")
    dotted = {twin for e in all_exercises().values() for twin in e.forbidden if twin.startswith(ours)}
    assert len(dotted) > 10
    for module, _, name in (twin.rpartition(".") for twin in dotted):
        importlib.import_module(module)
        inside = [m for n, m in sys.modules.items() if n == module or n.startswith(f"{module}.")]
        classes = [thing for m in inside for thing in vars(m).values() if isinstance(thing, type)]
        assert any(hasattr(place, name) for place in [*inside, *classes]), (module, name)


def test_the_names_that_may_be_in_use_are_the_exercises_own():
    assert "torch's softmax" in names_of(find("softmax"))
    assert "course_lib.softmax" in names_of(find("softmax"))
    assert "torch.masked.softmax" in names_of(find("masked_softmax"))
