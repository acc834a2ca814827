"""An exercise that contains another one inherits its mistakes."""

import pytest
import torch

from course_kit.checker.verdict.diagnose import diagnose
from course_kit.checker.verdict.judge import judge
from course_kit.checker.verdict.sheet import sheet_of
from course_kit.exercises import Case, Exercise, Misconception
from tools.exercise_lint import problems_of


def halve(x):
    return x / 2


def total(x, y):
    return halve(x).sum() + y.max()


def exercise(name, reference, arguments) -> Exercise:
    return Exercise(
        name=name,
        title=name,
        statement="",
        difficulty=1,
        minutes=1,
        stub=f"def {name}({arguments}):\n    raise NotImplementedError\n",
        hints=("One.", "Two."),
        reference=reference,
        shapes={"x": "rows", "y": "columns"},
        read_next=f"attention: {name}",
    )


def add(exercise, key, message, solution) -> None:
    exercise.misconceptions.append(Misconception(key, message, solution))


def pair(**options) -> tuple[Exercise, Exercise]:
    """`halve` with three mistakes, one of which changes no sum, and `total`, which contains it."""
    part, whole = exercise("halve", halve, "x"), exercise("total", total, "x, y")
    x, y = torch.tensor([1.0, -2, 5]), torch.tensor([3.0, -1])
    part.holds("Half.")(lambda draw: iter([Case(args=(x,))]))
    whole.holds("The sum.", fault=None)(lambda draw: iter([Case(args=(x, y)), Case(args=(2 * x, 3 * y))]))
    add(part, "doubled", "It is doubled.", lambda x: x * 2)
    add(part, "reversed", "It is backwards.", lambda x: x.flip(0) / 2)
    add(part, "negated", "It has the wrong sign.", lambda x: -x / 2)
    for number in range(5):
        add(
            whole,
            f"own_{number}",
            f"Off by {number}.",
            lambda x, y, n=number: total(x, y) * (n + 2),  # as wrong as an inherited one, and not the same
        )
    whole.misconceptions += part.inherited(lambda wrong: lambda x, y: wrong(x).sum() + y.max(), **options)
    return part, whole


def named(whole, solution):
    sheet = sheet_of(whole, 0)
    seen = sheet.run(solution)
    return diagnose(sheet, judge(whole, sheet.trials, seen, allow_twins=True), seen)


def test_a_mistake_of_the_part_is_named_in_the_whole():
    _, whole = pair(called="first step")
    found = named(whole, lambda x, y: (2 * x).sum() + y.max())
    assert (found.key, found.message) == ("halve/doubled", "In your first step: It is doubled.")
    assert found.read_next == "attention: halve"


def test_a_part_of_a_part_is_said_in_one_phrase():
    _, whole = pair(called="first step")
    outer = exercise("outer", total, "x, y")
    outer.misconceptions += whole.inherited(lambda wrong: wrong, called="sum")
    (nested,) = (m for m in outer.misconceptions if m.key == "total/halve/doubled")
    assert nested.message == "In the first step of your sum: It is doubled."


def test_a_part_without_a_name_goes_by_its_own():
    _, whole = pair()
    assert whole.misconceptions[-1].message == "In your `halve`: It has the wrong sign."


def test_an_inherited_mistake_that_does_not_show_is_no_fault_and_is_not_named():
    _, whole = pair()
    assert list(problems_of(whole)) == []
    for wrong in (lambda x, y: x.flip(0).sum() / 2 + y.max() + 1, lambda x, y: x.sum() + y.max()):
        found = named(whole, wrong)
        assert found is None or found.key != "halve/reversed"


def test_the_exercises_own_mistake_is_the_nearer_name():
    _, whole = pair()
    add(whole, "twice_the_half", "The own name.", lambda x, y: 2 * x.sum() + y.max())
    assert named(whole, lambda x, y: (2 * x).sum() + y.max()).key == "twice_the_half"
    assert list(problems_of(whole)) == []


def test_a_part_contained_twice_has_keys_of_its_own_and_mistakes_can_be_left_out():
    part, whole = pair(prefix="first", without=("reversed",))
    whole.misconceptions += part.inherited(
        lambda wrong: lambda x, y: halve(x).sum() + wrong(y).max() * 2, prefix="second"
    )
    keys = [m.key for m in whole.misconceptions if m.inherited_from]
    assert keys == ["first/doubled", "first/negated", "second/doubled", "second/reversed", "second/negated"]


def test_a_part_without_mistakes_is_refused():
    part = exercise("halve", halve, "x")
    with pytest.raises(ValueError, match="expected halve to have its mistakes before this call; it lacks any"):
        part.inherited(lambda wrong: wrong)
    add(part, "doubled", "It is doubled.", lambda x: x * 2)
    with pytest.raises(ValueError, match="it lacks dubled"):
        part.inherited(lambda wrong: wrong, without=("dubled",))
