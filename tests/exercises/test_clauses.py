"""Each clause of the contract is checked: a solution that breaks just this one is refused, whatever the seed."""

import pytest

from course_grade.command import main
from course_kit.checker.verdict.judge import judge
from course_kit.checker.verdict.sheet import sheet_of
from course_kit.exercises import all_exercises, find
from course_kit.exercises._clauses import breaches_in

SEEDS = (0, 5)
FEWEST = 3  # clauses of an exercise that are broken by some solution
WITH_BREACHES = [exercise for exercise in all_exercises().values() if exercise.clauses.exists()]
TEXT = "# Clauses of `f`\n\n## never negative\n= a b\n\n## an integer\n- 1\n+ 1.0\n"


@pytest.mark.thorough
@pytest.mark.parametrize("exercise", WITH_BREACHES, ids=lambda e: e.name)
def test_a_solution_that_breaks_one_clause_is_refused(exercise):
    for sheet in (sheet_of(exercise, seed) for seed in SEEDS):
        for breach in exercise.breaches:
            verdict = judge(exercise, sheet.trials, sheet.run(breach.solution), allow_twins=True)
            assert verdict.status == "failed", (breach.clause, sheet.seed)


def test_an_exercise_with_breaches_has_some_of_several_clauses():
    assert len(WITH_BREACHES) >= 60  # a new exercise may come without
    assert min(len({breach.clause for breach in exercise.breaches}) for exercise in WITH_BREACHES) >= FEWEST


def test_a_clause_is_broken_by_mistakes_or_by_a_change():
    found = breaches_in(TEXT, "f.md", "f = 1")
    assert found == [("never negative", "a", ""), ("never negative", "b", ""), ("an integer", "", "f = 1.0")]
    for old, new in (("- 1\n+ 1.0\n", ""), ("- 1", "- 2"), ("- 1", "* 1")):
        with pytest.raises(ValueError, match=r"f\.md: an integer"):
            breaches_in(TEXT.replace(old, new), "f.md", "f = 1")
    with pytest.raises(ValueError, match="expected a title"):
        breaches_in(TEXT.removeprefix("# "), "f.md", "f = 1")


def test_the_command_shows_what_refuses_each_breach(capsys):
    assert main(["clauses", "causal_mask"]) == 0
    text = capsys.readouterr().out
    for breach in find("causal_mask").breaches:
        assert f"{breach.clause}\n    refused by: " in text
    assert "NOT REFUSED" not in text
    assert f"{len(find('causal_mask').breaches)} solutions, each written to break" in text
    assert main(["clauses", "casual_mask"]) == 2
