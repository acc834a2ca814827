"""Exercises whose result is not unique, and arguments that are lists: judged by what must hold, and shown whole."""

import numpy as np
import pytest
import torch

from course_kit.checker.observing import Foreign, Sequence, plain, unwrapped
from course_kit.checker.report.plain_report import text_of
from course_kit.checker.report.report import report_on
from course_kit.checker.verdict.diagnose import diagnose
from course_kit.checker.verdict.judge import judge
from course_kit.checker.verdict.sheet import sheet_of
from course_kit.exercises import Case, Exercise, Misconception, find


def halves(numbers):
    middle = sum(numbers) // 2
    return [middle, sum(numbers) - middle]


def an_exercise() -> Exercise:
    """Two ints that sum to what the numbers sum to: any two, in any order."""
    exercise = Exercise(
        name="halves",
        title="Halves",
        statement="Two ints with the sum of `numbers`.",
        difficulty=1,
        minutes=1,
        stub="def halves(numbers):\n    raise NotImplementedError\n",
        hints=("One.", "Two."),
        reference=halves,
        shapes={},
        returns=("parts",),
        read_next="attention: The softmax turns scores into weights",
        differentiable=False,
        canonical_form=lambda value: sorted(value) if type(value) is list and {*map(type, value)} == {int} else None,
    )

    def fault(args, value):
        if not isinstance(value, list) or [type(part) for part in value] != [int, int]:
            return f"expected two ints, got {value!r}"
        return "" if sum(value) == sum(args[0]) else f"expected a sum of {sum(args[0])}, got {value}"

    @exercise.holds("The two sum to the whole", fault=fault)
    def _(draw):
        for count in (3, 4, 200):
            yield Case(args=(draw.sizes(count, 1, 300),))

    exercise.misconceptions += [
        Misconception("one_too_many", "The sum is one too large.", lambda numbers: [sum(numbers), 1]),
        Misconception("two_too_many", "The sum is two too large.", lambda numbers: [sum(numbers), 2]),
    ]
    return exercise


def of_their_own(numbers):
    return [sum(numbers) - 3, 3]


def outcome(solution):
    exercise = an_exercise()
    sheet = sheet_of(exercise, 0)
    seen = sheet.run(solution)
    verdict = judge(exercise, sheet.trials, seen, allow_twins=False)
    named = diagnose(sheet, verdict, seen)
    return verdict, named.key if named else None


def test_whatever_keeps_the_contract_is_right():
    for right in (of_their_own, lambda n: of_their_own(n)[::-1], lambda n: [0, sum(n)], lambda n: [sum(n) + 5, -5]):
        verdict, named = outcome(right)
        assert (verdict.status, verdict.score, named) == ("passed", 1.0, None)


def test_whatever_else_comes_is_wrong_and_breaks_nothing():
    lists = [], [1], [1, 2, 3], [1.0, 2.0], [True, True], [[1], [2]]
    for value in (*lists, None, 7, "text", {"a": 1}, torch.ones(2), object(), 10**400):
        verdict, _ = outcome(lambda numbers, value=value: value)
        assert (verdict.status, verdict.score) == ("failed", 0.0)


def test_a_mistake_is_known_by_what_is_not_left_open():
    assert outcome(lambda numbers: [sum(numbers), 1])[1] == "one_too_many"
    assert outcome(lambda numbers: [1, sum(numbers)])[1] == "one_too_many"
    assert outcome(lambda numbers: [2, sum(numbers)])[1] == "two_too_many"
    assert outcome(lambda numbers: [3, sum(numbers)])[1] is None


CHANGES = {
    "sort": list.sort,
    "clear": list.clear,
    "append": lambda numbers: numbers.append(0),
    "another type": lambda numbers: numbers.__setitem__(0, float(numbers[0])),
    "an object": lambda numbers: numbers.__setitem__(0, object()),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_list_that_the_call_changes_is_noticed(change):
    def changing(numbers):
        result = of_their_own(numbers)
        CHANGES[change](numbers)
        return result

    verdict, named = outcome(changing)
    assert (verdict.status, named) == ("failed", "any/in_place")
    assert {finding.facet for found in verdict.findings.values() for finding in found} == {"manners"}


def test_each_call_gets_lists_of_its_own():
    given = []
    exercise = find("token_batches")
    sheet = sheet_of(exercise, 0)
    before = [[*trial.case.args[0]] for trial in sheet.trials]

    def solution(lengths, max_tokens):
        given.append(lengths)
        lengths.clear()
        return []

    sheet.run(solution)
    assert len({id(lengths) for lengths in given}) == len(sheet.trials)
    assert [trial.case.args[0] for trial in sheet.trials] == before


def test_a_long_list_is_cut_where_it_is_shown():
    exercise = an_exercise()
    sheet = sheet_of(exercise, 0)

    def wrong_for_many(numbers):
        return of_their_own(numbers) if len(numbers) < 100 else [0, 0]

    text = text_of(report_on(sheet, sheet.run(wrong_for_many)), "")
    (line,) = (line for line in text.split("\n") if "numbers = " in line)
    assert line.endswith("…   (200 items)")
    assert len(line) < 300


def test_what_was_observed_is_handed_over_as_lists_and_tuples():
    value = [(1, 2), [], 3.5, None, object()]
    assert unwrapped(plain(value)) == [(1, 2), [], 3.5, None, Foreign("object")]
    assert unwrapped(Sequence("tuple", (Sequence("list", (1,)),))) == ([1],)


def test_numpys_float_is_a_float_and_nothing_of_a_subclass_runs():
    class Sly(float):
        def __float__(self):
            raise AssertionError

        __pos__ = __float__

    for value in (np.float64(2.5), Sly(2.5)):
        assert plain(value) == 2.5
        assert type(plain(value)) is float
    assert plain(np.float32(2.5)) == Foreign("float32")


# The judge of `token_batches`: it reads whatever came out of a submission.

BATCHES = find("token_batches")
LENGTHS, ROOM = [5, 2, 4, 2], 8  # greedy: [1, 3], [2], [0], no padding


def fault(value, line=2) -> str:
    return BATCHES.properties[line].fault((LENGTHS, ROOM), value)


def test_batches_in_any_order_are_right():
    for value in ([[1, 3], [2], [0]], [[0], [2], [3, 1]], ([0], (2,), [1, 3]), ((0,), (2,), (1, 3))):
        assert fault(value) == ""


@pytest.mark.parametrize(
    ("value", "line", "message"),
    [
        (None, 0, "list of lists of indices, got None (is there a return?)"),
        ([0, 1, 2, 3], 0, "list of lists of indices, got a list of an int"),
        (Foreign("dict"), 0, "list of lists of indices, got dict"),
        ([[0], Foreign("set")], 0, "got a list of a list of an int and set"),
        ([[0.0]], 0, "expected ints as indices, got the float 0.0"),
        ([[True]], 0, "expected ints as indices, got the bool True"),
        ([[Foreign("Thing")]], 0, "expected ints as indices, got Thing"),
        ([[torch.zeros(2)]], 0, "expected ints as indices, got a Tensor"),
        ([[0, -1]], 0, "indices from 0 to 3, got -1"),
        ([[4]], 0, "indices from 0 to 3, got 4"),
        ([[10**299]], 0, "indices from 0 to 3, got 1000"),
        ([], 0, "index 0 stands in none"),
        ([[0], [1, 3]], 0, "index 2 stands in none"),
        ([[0], [2], [1, 3, 1]], 0, "index 1 stands 2 times"),
        ([[0, 1], [2], [3]], 0, "[0, 1] has 2 sentences, the longest 5: 10"),
        ([[0], [1], [2], [3]], 1, "at most 3 batches, as the greedy way gives, got 4"),
        ([[0], [1, 2], [3]], 2, "at most 0 cells of padding, as the greedy way gives, got 2"),
    ],
)
def test_what_is_wrong_with_batches_is_said_on_the_lines_that_it_breaks(value, line, message):
    assert all(message in fault(value, later) for later in range(line, 3))
    assert all(fault(value, earlier) == "" for earlier in range(line))


def test_less_padding_than_the_greedy_way_is_right_too():
    lengths, room = [1, 9, 10], 20
    property_of_padding = BATCHES.properties[2].fault
    assert BATCHES.reference(lengths, room) == [[0, 1], [2]]
    assert property_of_padding((lengths, room), [[0], [1, 2]]) == ""
    assert "got 9" in property_of_padding((lengths, room), [[0, 2], [1]])
