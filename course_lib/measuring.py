"""Measure a computation in units that are the same on every machine."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from course_lib._checks import check_callable, check_floats

__all__ = ["numbers_kept"]


def numbers_kept(function: Callable[..., object], *inputs: Tensor) -> int:
    """How many different numbers PyTorch keeps, from the forward to the backward pass, to compute a gradient.

    Args:
        function: what is computed; called once, with copies of the inputs that require gradients.
        inputs: tensors.

    Returns:
        The sizes of all storages that autograd holds on to, inputs included, each counted once.

    Raises:
        TypeError: function cannot be called, or an input is not a floating-point tensor.
    """
    check_callable(function=function)
    check_floats(**{f"inputs[{number}]": x for number, x in enumerate(inputs)})
    kept: dict[int, int] = {}

    def note(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        kept[storage.data_ptr()] = storage.nbytes() // tensor.element_size()
        return tensor

    leaves = [tensor.detach().clone().requires_grad_() for tensor in inputs]
    with torch.autograd.graph.saved_tensors_hooks(note, lambda tensor: tensor):
        result = function(*leaves)  # bound to a name: the storages must not be freed and used again while counting
    del result
    return sum(kept.values())
