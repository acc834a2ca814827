"""Simple relations between expected and actual values, which can be stated with certainty."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from course_kit.checker.observing import Sequence
from course_kit.checker.verdict.compare import differs

__all__ = ["RELATIONS", "relations"]

# The first one that holds in every failing case is said.
RELATIONS = {
    "swapped": "Each returned value is right, but their order differs from the contract.",
    "extra_values": "The expected value is returned, but so are other values.",
    "negated": "Every entry has the wrong sign but is right otherwise.",
    "transposed": "The result is right except that its last two axes are exchanged.",
    "inverted": "True and False are exchanged. Here True means *may attend*.",
    "shape_only": "The numbers are right and in the right order, but not in the shape that the contract asks for.",
    "factor": "In each case, all entries are wrong by the same factor.",
    "offset": "In each case, all entries are too large or too small by the same amount.",
}


def relations(wanted: Any, got: Any) -> set[str]:
    """Keys of `RELATIONS` that hold between an expected and an actual value."""
    found = set()
    if isinstance(wanted, Sequence):
        if isinstance(got, Sequence) and len(got.items) == len(wanted.items) > 1:
            if all(map(_close, wanted.items, reversed(got.items))):
                found.add("swapped")
            return found
        return found
    if isinstance(got, Sequence) and any(_close(wanted, item) for item in got.items):
        return {"extra_values"}
    if not isinstance(got, Tensor) or not isinstance(wanted, Tensor):
        return found
    if wanted.dim() >= 2 and _close(wanted.transpose(-2, -1), got):
        found.add("transposed")
    if got.shape != wanted.shape:
        if got.numel() == wanted.numel() and _close(wanted.reshape(-1), got.reshape(-1)):
            found.add("shape_only")
        return found
    if wanted.dtype == torch.bool:
        inverted = not got.is_floating_point() and torch.equal(wanted, ~got.bool())
        return found | ({"inverted"} if inverted else set())
    if not wanted.is_floating_point() or not got.is_floating_point():
        return found
    wanted, got = wanted.double(), got.double()
    if _close(wanted, -got):
        found.add("negated")
    big = wanted.abs() > 1e-3
    if big.sum() >= 2:
        ratio = (got / wanted)[big]
        constant = bool(((ratio - ratio[0]).abs() < 1e-4 * ratio[0].abs()).all())
        if constant and bool((ratio[0] - 1).abs() > 1e-3) and _close(wanted * ratio[0], got):
            found.add("factor")
    difference = got - wanted
    constant = (difference - difference.flatten()[0]).abs() < 1e-5
    if wanted.numel() >= 2 and bool(constant.all()) and bool(difference.flatten()[0].abs() > 1e-3):
        found.add("offset")
    return found


def _close(a: Any, b: Any) -> bool:
    if not isinstance(a, Tensor) or not isinstance(b, Tensor) or a.shape != b.shape:
        return False
    if not a.is_floating_point():
        return torch.equal(a, b.to(a.dtype))
    return bool(b.is_floating_point()) and not differs(a, b, 5.0, b.dtype).any()
