"""How a returned value is compared with the expected one: tolerances, the worst entry, digits that differ."""

import pytest
import torch

from course_kit.checker.report.report import _part
from course_kit.checker.verdict.compare import TOLERANCE, as_shown, compare, differs, worst_of
from course_kit.checker.verdict.judge import CONDUCT, judge
from course_kit.checker.verdict.sheet import sheet_of
from course_kit.exercises import Case, find
from course_lib import softmax

INF, NAN = float("inf"), float("nan")


@pytest.mark.parametrize(
    ("expected", "actual", "right"),
    [
        (1e-6, 1e-6 * (1 + 1e-6), True), (1e-6, 2e-6, False), (1e-6, 1e-6 * (1 + 1e-4), False), (0.0, 1e-9, False),
        (0.0, 0, True), (100.0, 100.0005, True), (100.0, 100.005, False), (3, 3, True), (3, 4, False), (3, 3.0, False),
    ],
)  # fmt: skip
def test_a_number_is_compared_in_proportion(expected, actual, right):
    """A learning rate may be a millionth: what is near in absolute terms may be twice as large."""
    findings = compare(expected, actual, Case(args=()), ("rate",))
    assert (findings == []) == right
    assert all(str(expected) in finding.text and str(actual) in finding.text for finding in findings)


@pytest.mark.parametrize(
    ("expected", "actual", "shown"),
    [
        (0.5, 0.25, ("0.500", "0.250")),
        (0.12345678, 0.12345679, ("0.12345678", "0.12345679")),
        (1.0, 1.0 + 1e-12, ("1.000000000000", "1.000000000001")),
        (2e6, 2e6 + 1, ("2.000000e+06", "2.000001e+06")),
        (0.0, -0.0, ("0.000000000000", "0.000000000000")),
        (True, False, ("True", "False")),
    ],
)
def test_two_numbers_get_the_decimals_that_tell_them_apart(expected, actual, shown):
    assert as_shown(torch.tensor(expected).double() if type(expected) is float else expected, actual) == shown


def test_the_worst_entry_is_one_of_those_that_are_wrong():
    """An error of one in a million is a rounding; half of nothing is not."""
    expected, actual = torch.tensor([[1e6, 1.0], [0.0, 0.0]]), torch.tensor([[1e6 + 1, 1.0], [0.25, 0.5]])
    wrong = differs(expected, actual, 1.0, torch.float32)
    assert wrong.tolist() == [[False, False], [True, True]]
    assert worst_of(expected, actual, wrong) == (1, 1)
    assert worst_of(expected, torch.tensor([[1e6, NAN], [9.0, 0.0]]), ~expected.isnan()) == (0, 1)


@pytest.mark.parametrize(("dtype", "tolerance"), TOLERANCE.items(), ids=str)
def test_a_tensor_is_compared_as_exactly_as_a_careful_computation_in_its_dtype(dtype, tolerance):
    near, off = (torch.tensor([1 + factor * tolerance], dtype=torch.float64) for factor in (1.9, 2.1))
    one = torch.ones(1, dtype=torch.float64)
    assert [bool(differs(one, actual, 1.0, dtype)) for actual in (near, off)] == [False, True]


def test_only_infinity_is_near_infinity():
    """Whatever is far from it is within a tolerance that is infinite, too."""
    expected, actual = torch.tensor([-INF, -INF, INF, 1.0]), torch.tensor([-INF, -1e9, -INF, INF])
    assert differs(expected, actual, 1.0, torch.float32).tolist() == [False, True, True, True]


@pytest.mark.parametrize(
    ("shape", "index", "place", "worst"),
    [
        ((3, 20), (1, 15), " rows 0–2, columns 11–18", (1, 4)),
        ((3, 20), (1, 19), " rows 0–2, columns 12–19", (1, 7)),
        ((20, 3), (2, 2), " rows 0–7, columns 0–2", (2, 2)),
        ((2, 8, 9), (1, 7, 0), "[1] rows 0–7, columns 0–7", (7, 0)),
        ((8, 8), (7, 7), "", (7, 7)),
        ((20,), (10,), " rows 0–0, columns 6–13", (0, 4)),
    ],
)
def test_of_a_large_matrix_the_part_around_the_worst_entry_is_named(shape, index, place, worst):
    expected = torch.arange(float(torch.tensor(shape).prod())).view(shape)
    part, actual, at, where = _part(expected, -expected, index)
    assert (where, at) == (place, worst)
    assert part[at] == expected[index] == -actual[at]
    assert max(part.shape) <= 8


@pytest.mark.parametrize(
    ("solution", "holds"),
    [
        (softmax, True),
        (lambda scores, dim=-1: softmax(scores, dim)[None], None),
        (lambda scores, dim=-1: softmax(2 * scores, dim) + 1, None),
        (lambda scores, dim=-1: (softmax(scores, dim), 1), None),
        (lambda scores, dim=-1: scores.no_such_method(), None),
    ],
    ids=["right", "a wrong shape", "wrong values", "another kind of value", "an exception"],
)
def test_gradients_are_judged_only_where_the_values_are_right(solution, holds):
    """Otherwise they are neither right nor wrong: nothing could be observed."""
    sheet = sheet_of(find("softmax"), 0)
    verdict = judge(sheet.exercise, sheet.trials, sheet.run(solution), allow_twins=True)
    assert {line.message: line.holds for line in verdict.lines}[CONDUCT["gradient"]] is holds
