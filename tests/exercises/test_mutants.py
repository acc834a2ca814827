"""Change a reference in one place: the exercise has to notice, or the change has to be harmless, with a reason."""

import pytest
from equivalent_mutants import EQUIVALENT

from course_kit.exercises import STEMS, all_exercises, find
from tools.exercise_figures import row_of, survivors
from tools.mutants import mutants_of
from tools.publisher import ROOT

TEACHING = (ROOT / "book/teaching.md").read_text(encoding="utf-8")


@pytest.mark.thorough
@pytest.mark.parametrize("stem", STEMS)
def test_the_cases_notice_changes_of_the_references(stem, capsys):
    all_noticed = all_counted = 0
    for exercise in (exercise for exercise in all_exercises().values() if exercise.stem == stem):
        alive, equivalent = survivors(exercise), EQUIVALENT.get(exercise.name, {})
        holes = [change for change in alive if change not in equivalent]
        counted = len(list(mutants_of(exercise))) - (len(alive) - len(holes))
        with capsys.disabled():
            print(f"\n{exercise.name}: {counted - len(holes)} of {counted} mutants killed", end="")
        assert counted - len(holes) >= 0.95 * counted, holes
        assert set(equivalent) <= set(alive), "listed as equivalent, and noticed"
        all_noticed, all_counted = all_noticed + counted - len(holes), all_counted + counted
    row = row_of(stem, noticed=all_noticed, counted=all_counted)
    assert row in TEACHING, "the table of the page is old: python -m tools.exercise_figures"


def test_every_reason_is_about_an_exercise():
    for name, changes in EQUIVALENT.items():
        assert find(name)
        assert all(len(reason) > 15 for reason in changes.values())


def test_mutants_are_of_every_kind():
    changes = "\n".join(mutant.change for mutant in mutants_of(find("MultiHeadAttention")))
    for part in ("without: ", "transpose(1, 3)", "num_heads != 0 → ", "* math.sqrt", "self.q_proj"):
        assert part in changes or part.replace(" → ", "") in changes, part
