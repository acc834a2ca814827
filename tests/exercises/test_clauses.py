"""Each clause of the contract is asked for: a solution that breaks just this one is refused."""

import pytest
from contract_clauses import breaches

from course_lib.exercises import all_exercises, find
from course_lib.grader._judging import judge, sheet_of

SEEDS = (0, 5)


@pytest.mark.parametrize("breach", breaches(), ids=lambda b: f"{b.exercise} {b.solution.__name__} {b.clause[:60]}")
def test_a_solution_that_breaks_one_clause_is_refused(breach):
    exercise = find(breach.exercise)
    for seed in SEEDS:
        sheet = sheet_of(exercise, seed)
        assert judge(exercise, sheet.trials, sheet.run(breach.solution), allow_twins=True).status == "failed"


def test_breaches_belong_to_exercises():
    assert {breach.exercise for breach in breaches()} <= set(all_exercises())
