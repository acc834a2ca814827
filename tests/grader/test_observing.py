"""What is noted of a call: whether it drew random numbers, and how far off its gradients are."""

import random

import pytest
import torch

from course_kit.checker.observing import observe
from course_kit.checker.verdict.diagnose import diagnose
from course_kit.checker.verdict.judge import findings_of, judge
from course_kit.checker.verdict.sheet import sheet_of
from course_kit.exercises import find

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


@pytest.mark.parametrize(("error", "is_found"), [(0.0, False), (1e-5, False), (0.005, True), (-0.005, True)])
def test_a_gradient_is_wrong_from_the_third_decimal_on(error, is_found):
    graded = [trial for trial in TRIALS if trial.cotangents and trial.case.dtype == torch.float32]
    found = [
        finding
        for trial in graded
        for finding in findings_of(SOFTMAX, trial, observe(off_by(error), SOFTMAX, trial.case, trial.cotangents))
    ]
    assert {finding.facet for finding in found} == ({"gradient"} if is_found else set())
