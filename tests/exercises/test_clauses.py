"""Each clause of the contract is checked: a solution that breaks just this one is refused, whatever the seed."""

from collections import Counter
from difflib import unified_diff

import pytest
from contract_clauses import Breach, breaches

from course_lib.exercises import all_exercises
from tools.clause_table import BEGIN, END, PAGE, SEEDS, Refusal, page_with, row_of, rows_in, tables, tables_of, tried

pytestmark = pytest.mark.thorough

FEWEST = 3  # clauses of an exercise that are broken by some solution


@pytest.mark.parametrize("breach", breaches(), ids=lambda b: f"{b.exercise} {b.solution.__name__} {b.clause[:60]}")
def test_a_solution_that_breaks_one_clause_is_refused(breach):
    assert tried(breach).passes_at == ()
    assert tried(breach).lines


def test_an_exercise_with_breaches_has_some_of_several_clauses():
    counts = Counter(exercise for exercise, _ in {(b.exercise, b.clause) for b in breaches()})
    assert len(counts) >= 60  # a new exercise may come without
    assert set(counts) <= set(all_exercises())
    assert {name: number for name, number in counts.items() if number < FEWEST} == {}


@pytest.mark.parametrize("exercise", all_exercises().values(), ids=lambda e: e.name)
def test_the_rows_of_the_page_are_up_to_date(exercise):
    fresh = [row_of(tried(breach)) for breach in breaches() if breach.exercise == exercise.name]
    assert rows_in(PAGE.read_text(encoding="utf-8"))[exercise.name] == fresh, "run `python -m tools.clause_table`"


def test_the_tables_of_the_page_are_these_rows():
    text = PAGE.read_text(encoding="utf-8")
    fresh = page_with(text, tables_of(rows_in(text)))
    changed = list(unified_diff(text.splitlines(), fresh.splitlines(), lineterm="", n=0))
    assert changed == [], "run `python -m tools.clause_table`"
    assert set(rows_in(text)) <= set(all_exercises())


def test_a_breach_that_passes_is_seen():
    right = Breach("softmax", "a clause", all_exercises()["softmax"].reference)
    assert tried(right).passes_at == SEEDS


def test_a_table_has_one_row_per_breach_and_escapes_bars():
    text = tables([Refusal("attention", "softmax", "a | b", "here", (), ("One", "Two", "Three"), "")])
    assert text.startswith(":::{dropdown} `attention`: 1 breach\n")
    assert "| `softmax` | a \\| b | One (and 2 more) | unknown |" in text


def test_a_page_without_a_place_for_the_tables_is_refused():
    with pytest.raises(ValueError, match="expected the lines"):
        page_with("no place", "")
    assert page_with(f"a\n{BEGIN}\nold\n{END}\nb", "new") == f"a\n{BEGIN}\nnew\n{END}\nb"
