"""A result in another kind of dtype, such as zeros and ones in place of bools: its values are judged all the same."""

from __future__ import annotations

import dataclasses
from typing import Any

import torch
from torch import Tensor

from course_kit.checker.verdict.evidence import Diagnosis, Evidence
from course_kit.checker.verdict.judge import judge
from course_kit.checker.verdict.named_mistake import named_mistake

__all__ = ["mistake_in_another_dtype"]


def mistake_in_another_dtype(evidence: Evidence) -> Diagnosis | None:
    """What the values show once they are converted to the dtype that was expected: a named mistake, or that they are
    right."""
    trials = evidence.sheet.trials
    values = [_converted(t.expected.value, evidence.seen(t).value) for t in trials]
    wrong = [t for t in evidence.failing if values[t.number] is not evidence.seen(t).value]
    if not wrong:
        return None
    seen = [dataclasses.replace(o, value=v) for o, v in zip(evidence.observations, values, strict=True)]
    verdict = judge(evidence.exercise, trials, seen, allow_twins=True)
    expected, actual = wrong[0].expected.value.dtype, evidence.seen(wrong[0]).value.dtype
    text = f"expected {expected}, got {actual}".replace("torch.", "")
    if not verdict.findings:
        return evidence.diagnosis("any/dtype", f"The values are right, but the dtype is not: {text}.", wrong)
    found = named_mistake(Evidence(evidence.sheet, verdict, seen))
    if found is None:
        return None
    return dataclasses.replace(found, message=f"{found.message} The dtype is wrong, too: {text}.")


def _converted(expected: Any, actual: Any) -> Any:
    """The value in the expected kind of dtype if this loses nothing, otherwise the value itself."""
    both = isinstance(expected, Tensor) and isinstance(actual, Tensor)
    # Of two floats, the values have been judged already, at the lower precision.
    if not both or actual.dtype == expected.dtype or (actual.is_floating_point() and expected.is_floating_point()):
        return actual
    dtype = torch.float32 if expected.is_floating_point() else expected.dtype
    converted = actual.to(dtype)
    return converted if torch.equal(converted.to(actual.dtype), actual) else actual
