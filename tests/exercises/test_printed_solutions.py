"""What `solution()` and the pages print: the library's own function, or one that is plainer and says why."""

import math
from collections import Counter

import pytest
import torch
from torch import nn

from course_kit.checker.verdict.judge import judge
from course_kit.checker.verdict.sheet import sheet_of
from course_kit.exercises import all_exercises
from course_kit.exercises._solution import learners_code

LIBRARY = '''\
class Scaled(nn.Module):
    """Scales.

    Args:
        factor: by which.
    """

    def __init__(
        self,
        factor: float = 1_000.0,
        *,
        names: dict[str, int] | None = None,
        **others: int,
    ) -> None:
        """Keeps it."""
        check_finite("factor", factor)
        self.factor = factor  # of every feature

    def forward(self, x: Float[Tensor, "*batch d"], *more: Tensor) -> Float[Tensor, "*batch d"]:
        """`x`, scaled."""
        _check_input(
            x,
            self.factor,
        )
        parts: list[Tensor] = []
        # Checked above.
        if x.dim() == 0:
            check_scalar(x)
        return self.checked(x) * self.factor
'''
PRINTED = """\
class Scaled(nn.Module):
    def __init__(self, factor=1_000.0, *, names=None, **others):
        self.factor = factor  # of every feature

    def forward(self, x, *more):
        parts = []
        # Checked above.
        if x.dim() == 0:
            check_scalar(x)
        return self.checked(x) * self.factor
"""


def test_docstrings_annotations_and_checks_are_left_out_and_nothing_else():
    assert learners_code(LIBRARY) == learners_code(PRINTED) == PRINTED


@pytest.mark.parametrize("exercise", all_exercises().values(), ids=lambda e: e.name)
def test_a_printed_solution_runs_on_its_own_and_passes(exercise):
    """With the usual imports, and those that it begins with."""
    names = {"math": math, "torch": torch, "nn": nn, "Counter": Counter, "__name__": "printed"}
    exec(exercise.solution, names)
    sheet = sheet_of(exercise, 3)
    verdict = judge(exercise, sheet.trials, sheet.run(names[exercise.name]), allow_twins=True)
    assert verdict.status == "passed", {line.message for line in verdict.lines if not line.holds}
