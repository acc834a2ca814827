"""What is noted of a call: whether it drew random numbers, and how far off its gradients are."""

import random

import pytest
import torch

from course_kit.checker.observing import observe
from course_kit.checker.verdict.diagnose import diagnose
from course_kit.checker.verdict.judge import findings_of, judge
from course_kit.checker.verdict.sheet import sheet_of
from course_kit.exercises import Case, find

SOFTMAX = find("softmax")
SHEET = sheet_of(SOFTMAX, 5)
TRIALS = SHEET.trials


def noisy(scores, dim=-1):
    return torch.softmax(scores, dim) + 0.1 * torch.randn(())


def with_dropout(scores, dim=-1):
    return torch.nn.functional.dropout(torch.softmax(scores, dim), 0.5)


def shuffled_by_python(scores, dim=-1):
    random.random()  # not the generator that PyTorch's layers draw from
    return torch.softmax(scores, dim)


def drawn_from_a_generator_of_its_own(scores, dim=-1):
    torch.rand(3, generator=torch.Generator().manual_seed(1))
    return torch.softmax(scores, dim)


@pytest.mark.parametrize(
    ("solution", "draws"),
    [
        *((noisy, True), (with_dropout, True), (torch.softmax, False)),
        *((shuffled_by_python, False), (drawn_from_a_generator_of_its_own, False)),
    ],
)
def test_the_use_of_the_global_random_generator_is_noted(solution, draws):
    assert observe(solution, SOFTMAX, TRIALS[0].case).random is draws


def test_a_result_that_depends_on_chance_is_called_that():
    seen = SHEET.run(noisy)
    diagnosis = diagnose(SHEET, judge(SOFTMAX, TRIALS, seen, allow_twins=True), seen, named=False)
    assert diagnosis.key == "any/random"
    assert diagnosis.message.startswith("The call draws random numbers")


def off_by(error):
    """The right value; the gradient is off by `error` times what comes back from above."""

    def softmax(scores, dim=-1):
        return torch.softmax(scores, dim) + error * (scores - scores.detach())

    return softmax


def test_what_lies_apart_in_memory_does_so_in_every_call():
    seen = []

    def noting(scores, dim=-1):
        seen.append((scores.stride(), scores.storage_offset()))
        return scores.mul(2)

    x = torch.arange(60.0).reshape(5, 12)
    inputs = (x[:, 2:9], x.T[1:8:2], x[:, 2:5].mT, x[1:, :], x[0, 3].expand(5, 7), x.unfold(1, 4, 1)[0])
    for scores in inputs:
        observed = observe(noting, SOFTMAX, Case(args=(scores,)), (torch.full_like(scores, 3.0),))
        assert torch.equal(observed.value, 2 * scores)
        assert torch.equal(observed.gradients["scores"], torch.full_like(scores, 6.0))
    apart = [((12, 1), 2), ((2, 12), 1), ((1, 12), 2)]
    whole = [((12, 1), 0), ((7, 1), 0), ((4, 1), 0)]  # as `clone` leaves it: without gaps, or with shared numbers
    assert seen == [layout for layout in apart + whole for _ in ("values", "gradients")]


@pytest.mark.parametrize(("error", "is_found"), [(0.0, False), (1e-5, False), (0.005, True), (-0.005, True)])
def test_a_gradient_is_wrong_from_the_third_decimal_on(error, is_found):
    graded = [trial for trial in TRIALS if trial.cotangents and trial.case.dtype == torch.float32]
    found = [
        finding
        for trial in graded
        for finding in findings_of(SOFTMAX, trial, observe(off_by(error), SOFTMAX, trial.case, trial.cotangents))
    ]
    assert {finding.facet for finding in found} == ({"gradient"} if is_found else set())
