"""Change a reference in one place: the exercise has to notice, or the change has to be harmless, with a reason."""

import pytest
from equivalent_mutants import EQUIVALENT

from course_lib.exercises import all_exercises, find
from course_lib.grader.verdict.sheet import sheet_of
from tools.mutants import mutants_of, survives
from tools.publisher import ROOT

pytestmark = pytest.mark.thorough

TEACHING = (ROOT / "book/teaching.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("exercise", all_exercises().values(), ids=lambda e: e.name)
def test_the_cases_notice_changes_of_the_reference(exercise, capsys):
    mutants = list(mutants_of(exercise))
    alive = [mutant.change for mutant in mutants if survives(exercise, mutant)]
    equivalent = EQUIVALENT.get(exercise.name, {})
    holes = [change for change in alive if change not in equivalent]
    counted = len(mutants) - len([change for change in alive if change in equivalent])
    with capsys.disabled():
        print(
            f"\n{exercise.name}: {counted - len(holes)} of {counted} mutants killed, {len(equivalent)} equivalent",
            end="",
        )
    assert counted - len(holes) >= 0.95 * counted, holes
    row = f"| `{exercise.name}` | {len(sheet_of(exercise, 0).trials)} | {len(exercise.misconceptions)} | "
    row += f"{counted - len(holes)} of {counted} | {len(equivalent)} |"
    assert row in TEACHING, "the table of the page is old: python -m tools.exercise_figures"
    assert set(equivalent) <= set(alive), "listed as equivalent, and noticed"


def test_every_reason_is_about_an_exercise():
    for name, changes in EQUIVALENT.items():
        assert find(name)
        assert all(len(reason) > 15 for reason in changes.values())


def test_mutants_are_of_every_kind():
    changes = "\n".join(mutant.change for mutant in mutants_of(find("MultiHeadAttention")))
    for part in ("without: ", "transpose(1, 3)", "num_heads != 0 → ", "* math.sqrt", "self.q_proj"):
        assert part in changes or part.replace(" → ", "") in changes, part
