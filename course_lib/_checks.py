"""Checks of arguments that several modules share. Each error says what was expected, what came, and what to do."""

from __future__ import annotations

import math
import operator
from itertools import zip_longest

import torch
from torch import Tensor

__all__ = ["check_axes", "check_finite", "check_seed", "check_whole"]


def check_whole(*, least: float = 1, hint: str = "", **numbers: int) -> None:
    """Refuse what is not a whole number of at least `least`.

    Raises:
        TypeError: it is of another type, a float such as 2.0 included.
        ValueError: it is less than `least`.
    """
    for name, number in numbers.items():
        try:
            operator.index(number)
        except (TypeError, ValueError):
            raise TypeError(f"{name} must be a whole number, got {number!r}; pass an int{hint}") from None
        if number < least:
            raise ValueError(f"{name} must be at least {least}, got {number}{hint}")


def check_finite(name: str, number: float, low: float = -math.inf, high: float = math.inf) -> None:
    """Refuse what is not a finite number between two bounds.

    Raises:
        TypeError: it is not a number.
        ValueError: it is NaN, infinite or out of the bounds.
    """
    try:
        fits = math.isfinite(number) and low <= number <= high
    except (TypeError, ValueError):
        raise TypeError(f"{name} must be a number, got {number!r}; pass a float") from None
    if not fits:
        bounds = "" if math.isinf(low) and math.isinf(high) else f" between {low:g} and {high:g}"
        raise ValueError(f"{name} must be a finite number{bounds}, got {number}; pass a number in that range")


def check_seed(seed: int) -> None:
    """Refuse a seed that PyTorch's random generators do not take.

    Raises:
        TypeError: it is not a whole number.
        ValueError: it does not fit into 64 bits.
    """
    check_whole(seed=seed, least=-(2**63))
    if seed > 2**64 - 2:  # a task draws with seed + 1 too
        raise ValueError(f"seed must be below 2**64 - 1, got {seed}; take a smaller one")


def check_axes(**tensors: Tensor) -> None:
    """Refuse tensors that are not `(..., rows, features)`, or that no batched matrix product takes together.

    Raises:
        TypeError: they differ in their dtype (autocast takes care of that where it is on).
        ValueError: one has fewer than two axes, or the axes before the last two do not broadcast together.
    """
    for name, tensor in tensors.items():
        if tensor.dim() < 2:
            raise ValueError(
                f"{name} must have at least two axes, (..., length, features), got {tuple(tensor.shape)}; for a single "
                f"vector pass {name}[None]"
            )
    names = " and ".join((", ".join([*tensors][:-1]), [*tensors][-1]))
    batches = zip_longest(*(tuple(tensor.shape)[-3::-1] for tensor in tensors.values()), fillvalue=1)
    if any(len({*sizes} - {1}) > 1 for sizes in batches):
        got = ", ".join(f"{name} {tuple(tensor.shape)}" for name, tensor in tensors.items())
        raise ValueError(
            f"{names} must have the same axes before the last two (batch, heads), got {got}; take all of them from "
            f"the same batch"
        )
    dtypes = {tensor.dtype for tensor in tensors.values()}
    if len(dtypes) > 1 and not torch.is_autocast_enabled(next(iter(tensors.values())).device.type):
        got = ", ".join(f"{name} {tensor.dtype}" for name, tensor in tensors.items())
        raise TypeError(f"{names} must have the same dtype, got {got}; convert them, for example with .float()")
