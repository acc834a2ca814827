"""Numbers in views: as text, as data for the scripts, and refused where they cannot be drawn."""

from __future__ import annotations

import re
from decimal import ROUND_HALF_UP, Decimal
from typing import Any

import torch
from torch import Tensor

from course_kit._checks import check_sequence, check_whole, got

__all__ = ["MINUS", "check_drawable", "check_pair", "fixed", "numbers", "packed", "rounded"]

MINUS = "−"
_LARGEST = 1e21  # from here on, JavaScript's toFixed writes an exponent


def check_drawable(**tensors: Tensor) -> None:
    """Refuse what is not a tensor of real numbers that can be written with decimals.

    Raises:
        TypeError: it is not a tensor, or holds complex numbers or bools.
        ValueError: an entry is NaN, infinite or too large.
    """
    for name, tensor in tensors.items():
        if not isinstance(tensor, Tensor) or tensor.is_complex() or tensor.dtype == torch.bool:
            raise TypeError(f"{name} must be a tensor of real numbers, got {got(tensor)}; convert it, as with .float()")
        if not torch.isfinite(tensor).all():
            raise ValueError(
                f"{name} must be finite, got NaN or infinity; a fully masked row gives NaN through a softmax"
            )
        largest = tensor.detach().double().abs().max().item() if tensor.numel() else 0.0
        if not largest < _LARGEST:
            raise ValueError(f"{name} must be below {_LARGEST:g} in size, got {largest:g}; scale the tensor down")


def check_pair(*, most: tuple[int, int], hint: str = "", **pairs: tuple[int, int]) -> None:
    """Refuse what is not two whole numbers from 0 to `most`.

    Raises:
        TypeError: it is not a sequence, or holds something else.
        ValueError: it has another length, or a number is out of these bounds.
    """
    for name, pair in pairs.items():
        check_sequence(**{name: pair})
        if len(pair) != 2:
            raise ValueError(f"{name} must be two numbers, got {len(pair)}; pass a pair such as (0, 0)")
        for number, limit in zip(pair, most, strict=True):
            check_whole(**{name: number}, least=0, most=limit, hint=hint)


def numbers(tensor: Tensor) -> Any:
    """A tensor as nested lists for JSON, every float32 to the digits that give it back."""
    if tensor.dtype != torch.bool:
        check_drawable(numbers=tensor)
    array = tensor.detach().cpu()
    if array.dtype in (torch.float64, torch.int64, torch.int32, torch.bool):
        return array.tolist()
    return _nested(array.float(), lambda x: float(f"{x:.9g}"))


def _nested(array: Tensor, convert: Any) -> Any:
    return convert(array.item()) if array.dim() == 0 else [_nested(part, convert) for part in array]


_DIGITS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"


def packed(weights: Tensor) -> str:
    """Many weights in [0, 1] as text, two characters each; `unpack` of core.js gives them back.

    A weight is kept as one of 4,001 steps, the nearest whose third decimal is the weight's: a number shown with three
    decimals is the tensor's.
    """
    exact = weights.detach().cpu().double().flatten()
    thousandths = torch.tensor([int(Decimal(x).scaleb(3).quantize(Decimal(1), ROUND_HALF_UP)) for x in exact.tolist()])
    # the steps that certainly round to this thousandth: 4t − 1, 4t, 4t + 1
    steps = torch.minimum(torch.maximum((exact * 4000).round().long(), 4 * thousandths - 1), 4 * thousandths + 1)
    return "".join(_DIGITS[s // 64] + _DIGITS[s % 64] for s in steps.clamp(0, 4000).tolist())


def fixed(number: float, digits: int = 3) -> str:
    """A number with so many decimals as a view shows it: halves away from zero, no −0, and a minus sign that is as wide
    as a plus. `fix` of core.js writes the same. A view that computes with the result takes `rounded`."""
    if not abs(number) < _LARGEST:
        raise ValueError(
            f"a view shows finite numbers below {_LARGEST:g} in size, got {number:g}; scale the tensors down, or look "
            f"for the step that overflows"
        )
    text = str(Decimal(number).quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP))
    return text[1:] if re.fullmatch(r"-0(\.0*)?", text) else text.replace("-", MINUS)


def rounded(number: float, digits: int = 3) -> float:
    """The number that `fixed` shows."""
    return float(fixed(number, digits).replace(MINUS, "-"))
