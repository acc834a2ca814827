"""Checks of arguments for what is not decorated with `checked`. Errors say what was expected, what came, what to do."""

from __future__ import annotations

import math
from collections.abc import Iterable
from itertools import zip_longest

import torch
from torch import Tensor

from course_lib._checks import check_finite, check_number, check_sequence, check_whole, got

__all__ = [
    "check_axes",
    "check_callable",
    "check_finite",
    "check_floats",
    "check_ids",
    "check_instance",
    "check_number",
    "check_probability",
    "check_seed",
    "check_sequence",
    "check_texts",
    "check_tokens",
    "check_whole",
    "check_width",
    "got",
]


def check_texts(**texts: Iterable[str]) -> list[str]:
    """A list of the texts, if it holds nothing else; the letters of a single text would be texts, too.

    Raises:
        TypeError: it is a single text, is not iterable, or holds something that is not a text.
    """
    ((name, given),) = texts.items()
    if isinstance(given, str | bytes) or not isinstance(given, Iterable):
        raise TypeError(f"{name} must be a list of texts, got {given!r:.40}; pass [text] for a single one")
    found = list(given)
    for place, text in enumerate(found):
        if not isinstance(text, str):
            raise TypeError(f"{name}[{place}] must be a text, got {text!r:.40}; leave it out, or pass ''")
    return found


def check_probability(name: str, number: float) -> None:
    """Refuse what is not a probability of dropping something: 1 would drop everything.

    Raises:
        TypeError: it is not a number.
        ValueError: it is not in [0, 1).
    """
    check_number(name, number)
    if not 0 <= number < 1:
        raise ValueError(f"{name} must be a probability in [0, 1), got {number}; 0 switches it off")


def check_floats(*, axes: int = 0, **tensors: Tensor) -> None:
    """Refuse what is not a floating-point tensor with at least so many axes.

    Raises:
        TypeError: it is not a tensor, or of another dtype.
        ValueError: it has fewer axes.
    """
    for name, tensor in tensors.items():
        if not (isinstance(tensor, Tensor) and tensor.is_floating_point()):
            raise TypeError(
                f"{name} must be a floating-point tensor, got {got(tensor)}; {_remedy(name, tensor)}.float()"
            )
        if tensor.dim() < axes:
            raise ValueError(
                f"{name} must have at least {axes} axes, got {tuple(tensor.shape)}; add the one that is missing"
            )


def check_width(width: int, **tensors: Tensor) -> None:
    """Refuse what is not a floating-point tensor with so many features.

    Raises:
        TypeError: it is not a floating-point tensor.
        ValueError: it has another size in its last axis.
    """
    check_floats(axes=1, **tensors)
    for name, tensor in tensors.items():
        if tensor.shape[-1] != width:
            raise ValueError(
                f"{name} must be (..., {width}), got {tuple(tensor.shape)}; build the module with the input's width"
            )


def check_instance(kind: type | tuple[type, ...], **values: object) -> None:
    """Refuse what is not of this kind.

    Raises:
        TypeError: it is of another type.
    """
    for name, value in values.items():
        if not isinstance(value, kind):
            wanted = " or ".join(each.__name__ for each in (kind if isinstance(kind, tuple) else (kind,)))
            raise TypeError(f"{name} must be of type {wanted}, got {value!r:.60} of type {type(value).__name__}")


def check_callable(**functions: object) -> None:
    """Refuse what cannot be called.

    Raises:
        TypeError: it is not a function, a class or a module.
    """
    for name, function in functions.items():
        if not callable(function):
            raise TypeError(f"{name} must be a function, got {function!r:.60}; pass the function itself")


def check_ids(*, axes: int | None = None, **tensors: Tensor) -> None:
    """Refuse what is not a tensor of whole numbers with just so many axes.

    Raises:
        TypeError: it is not a tensor, or of another dtype, such as uint8, which wraps round and is a mask as an index.
        ValueError: it has another number of axes.
    """
    for name, tensor in tensors.items():
        if not isinstance(tensor, Tensor) or tensor.is_floating_point() or tensor.dtype in _NO_IDS:
            raise TypeError(f"{name} must be a tensor of integers, got {got(tensor)}; {_remedy(name, tensor)}.long()")
        if axes is not None and tensor.dim() != axes:
            raise ValueError(f"{name} must have {axes} axes, got {tuple(tensor.shape)}; add or remove an axis")


def check_tokens(tokens: Tensor, pad_id: int = 0) -> None:
    """Refuse tokens that are not a batch of ids, and a pad_id that is not an id.

    Raises:
        TypeError: tokens is not a tensor, or pad_id is not a whole number.
        ValueError: tokens is not `(B, L)`, or not of integers; or pad_id does not fit into 64 bits.
    """
    if not isinstance(tokens, Tensor):
        raise TypeError(f"tokens must be a tensor of ids (batch, length), got {got(tokens)}; pass torch.tensor(tokens)")
    if tokens.dim() != 2 or tokens.is_floating_point() or tokens.is_complex():
        raise ValueError(
            f"tokens must be integer ids (batch, length), got {got(tokens)}; for one sentence add a batch axis with "
            f"tokens[None]"
        )
    check_whole(pad_id=pad_id, least=-(2**63))


_NO_IDS = (torch.bool, torch.uint8, torch.complex32, torch.complex64, torch.complex128)


def _remedy(name: str, value: object) -> str:
    return f"pass {name}" if isinstance(value, Tensor) else f"pass torch.as_tensor({name})"


def check_seed(seed: int) -> None:
    """Refuse a seed that PyTorch's random generators do not take.

    Raises:
        TypeError: it is not a whole number.
        ValueError: it does not fit into 64 bits.
    """
    check_whole(seed=seed, least=-(2**63), most=math.inf)
    if seed > 2**64 - 2:  # a task draws with seed + 1 too
        raise ValueError(f"seed must be below 2**64 - 1, got {seed}; take a smaller one")


def check_axes(**tensors: Tensor) -> None:
    """Refuse tensors that are not `(..., rows, features)`, or that no batched matrix product takes together.

    Raises:
        TypeError: one is not a floating-point tensor, or they differ in their dtype (autocast takes care of that where
            it is on).
        ValueError: one has fewer than two axes, or the axes before the last two do not broadcast together.
    """
    check_floats(**tensors)
    for name, tensor in tensors.items():
        if tensor.dim() < 2:
            raise ValueError(
                f"{name} must have at least two axes, (..., length, features), got {tuple(tensor.shape)}; for a single "
                f"vector pass {name}[None]"
            )
    batches = zip_longest(*(tuple(tensor.shape)[-3::-1] for tensor in tensors.values()), fillvalue=1)
    if any(len({*sizes} - {1}) > 1 for sizes in batches):
        shapes = ", ".join(f"{name} {tuple(tensor.shape)}" for name, tensor in tensors.items())
        raise ValueError(
            f"{_together(tensors)} must have the same axes before the last two (batch, heads), got {shapes}; take all "
            f"of them from the same batch"
        )
    dtypes = {tensor.dtype for tensor in tensors.values()}
    if len(dtypes) > 1 and not torch.is_autocast_enabled(next(iter(tensors.values())).device.type):
        each = ", ".join(f"{name} {tensor.dtype}" for name, tensor in tensors.items())
        raise TypeError(
            f"{_together(tensors)} must have the same dtype, got {each}; convert them, for example with .float()"
        )


def _together(names: Iterable[str]) -> str:
    *others, last = names
    return f"{', '.join(others)} and {last}"
