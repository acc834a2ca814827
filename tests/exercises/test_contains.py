"""An exercise that contains another one inherits its mistakes."""

import pytest
import torch
from toy_exercise import toy

from course_kit.checker.verdict.diagnose import diagnose
from course_kit.checker.verdict.judge import judge
from course_kit.checker.verdict.sheet import sheet_of
from course_kit.exercises import Case, Misconception
from tools.exercise_lint import problems_of


def halve(x):
    return x / 2


def total(x, y):
    return halve(x).sum() + y.max()


def total_with(wrong):
    return lambda x, y: wrong(x).sum() + y.max()


X, Y = torch.tensor([1.0, -2, 5]), torch.tensor([3.0, -1])
SHAPES = {"x": "rows", "y": "columns"}


def pair(**options):
    """`halve` with three mistakes, one of which changes no sum, and `total`, which contains it."""
    mistakes = [
        Misconception("doubled", "It is doubled.", lambda x: x * 2),
        Misconception("reversed", "It is backwards.", lambda x: x.flip(0) / 2),
        Misconception("negated", "It has the wrong sign.", lambda x: -x / 2),
    ]
    part = toy(halve, {"x": "rows"}, Case(args=(X,)), name="halve", mistakes=mistakes)
    # As wrong as an inherited one, and not the same.
    own = [lambda x, y, n=number: total(x, y) * (n + 2) for number in range(5)]
    whole = toy(total, SHAPES, Case(args=(X, Y)), Case(args=(2 * X, 3 * Y)), name="total", mistakes=own)
    whole.misconceptions += part.inherited(total_with, **options)
    return part, whole


def named(whole, solution):
    sheet = sheet_of(whole, 0)
    seen = sheet.run(solution)
    return diagnose(sheet, judge(whole, sheet.trials, seen, allow_twins=True), seen)


def test_a_mistake_of_the_part_is_named_in_the_whole_and_by_a_part_of_a_part():
    _, whole = pair(called="first step")
    found = named(whole, total_with(lambda x: 2 * x))
    assert (found.key, found.message) == ("halve/doubled", "In your first step: It is doubled.")
    assert found.read_next == "attention: halve"
    nested = {m.key: m.message for m in whole.inherited(lambda wrong: wrong, called="sum")}
    assert nested["total/halve/doubled"] == "In the first step of your sum: It is doubled."


def test_a_part_without_a_name_goes_by_its_own():
    assert pair()[1].misconceptions[-1].message == "In your `halve`: It has the wrong sign."


def test_an_inherited_mistake_that_does_not_show_is_no_fault_and_is_not_named():
    _, whole = pair()
    assert list(problems_of(whole)) == []
    for wrong in (lambda x, y: x.flip(0).sum() / 2 + y.max() + 1, lambda x, y: x.sum() + y.max()):
        found = named(whole, wrong)
        assert found is None or found.key != "halve/reversed"


def test_the_exercises_own_mistake_is_the_nearer_name():
    _, whole = pair()
    whole.misconceptions.append(Misconception("own", "The own name.", total_with(lambda x: 2 * x)))
    assert named(whole, total_with(lambda x: 2 * x)).key == "own"
    assert list(problems_of(whole)) == []


def test_a_part_contained_twice_has_keys_of_its_own_and_mistakes_can_be_left_out():
    part, whole = pair(prefix="first", without=("reversed",))
    second = part.inherited(lambda wrong: lambda x, y: halve(x).sum() + wrong(y).max() * 2, prefix="second")
    keys = [m.key for m in [*whole.misconceptions, *second] if m.inherited_from]
    assert keys == ["first/doubled", "first/negated", "second/doubled", "second/reversed", "second/negated"]


def test_a_part_without_mistakes_or_without_one_that_is_left_out_is_refused():
    part = toy(halve, {"x": "rows"}, name="halve")
    with pytest.raises(ValueError, match="expected halve to have its mistakes before this call; it lacks any"):
        part.inherited(total_with)
    with pytest.raises(ValueError, match="it lacks dubled"):
        pair(without=("dubled",))
