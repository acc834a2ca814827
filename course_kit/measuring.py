"""Measure a computation in units that are the same on every machine."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from course_kit._checks import check_callable, check_floats, check_instance, got

__all__ = ["numbers_kept", "peak_numbers"]


def numbers_kept(function: Callable[..., object], *inputs: Tensor, without: Iterable[Tensor] = ()) -> int:
    """How many different numbers PyTorch keeps, from the forward to the backward pass, to compute a gradient.

    Args:
        function: what is computed; called once, with copies of the inputs that require gradients.
        inputs: tensors.
        without: tensors that are not counted, such as `model.parameters()`, which are in memory in any case.

    Returns:
        The sizes of all storages that autograd holds on to, inputs included, each counted once. Token ids and masks
        count as numbers too.

    Raises:
        TypeError: function cannot be called, an input is not a floating-point tensor, or `without` holds something
            that is not a tensor.
    """
    check_callable(function=function)
    check_floats(**{f"inputs[{number}]": x for number, x in enumerate(inputs)})
    left_out = {tensor.untyped_storage().data_ptr() for tensor in _check_tensors(without)}
    kept: dict[int, int] = {}

    def note(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in left_out:
            kept[storage.data_ptr()] = storage.nbytes() // tensor.element_size()
        return tensor

    leaves = [tensor.detach().clone().requires_grad_() for tensor in inputs]
    with torch.autograd.graph.saved_tensors_hooks(note, lambda tensor: tensor):
        result = function(*leaves)  # bound to a name: the storages must not be freed and used again while counting
    del result
    return sum(kept.values())


def peak_numbers(function: Callable[[], object]) -> int:
    """The largest number of numbers that are in memory at one time, of all that are made while a function runs.

    With a forward and a backward pass inside, what the backward pass computes is included. Memory that a kernel uses
    inside and frees before it returns is not seen.

    Args:
        function: called once, without arguments.

    Returns:
        The largest sum of the sizes of all storages that were made by then and not freed. Tensors that existed before
        are not counted.

    Raises:
        TypeError: function cannot be called.
    """
    check_callable(function=function)
    with _Alive() as alive:
        function()
    return alive.peak


class _Alive(TorchDispatchMode):
    """Follow the storage of every result of an operation until it is freed."""

    def __init__(self):
        super().__init__()
        self.now = self.peak = 0

    def __torch_dispatch__(self, operation, types, args=(), kwargs=None):
        before = _numbers_of((args, kwargs))
        result = operation(*args, **(kwargs or {}))
        for storage, size in _numbers_of(result).items():
            if storage not in before:  # else a view, or an operation in place
                self.now += size
                weakref.finalize(storage, self._free, size)
        self.peak = max(self.peak, self.now)
        return result

    def _free(self, size: int) -> None:
        self.now -= size


def _numbers_of(tree: object) -> dict[torch.UntypedStorage, int]:
    """The storages of all tensors in a nest of lists and tuples, and their sizes."""
    tensors = (leaf for leaf in tree_leaves(tree) if isinstance(leaf, Tensor))
    return {t.untyped_storage(): t.untyped_storage().nbytes() // t.element_size() for t in tensors}


def _check_tensors(without: Iterable[Tensor]) -> list[Tensor]:
    if not isinstance(without, Iterable):
        raise TypeError(f"without must be tensors, such as model.parameters(), got {got(without)}; pass a list")
    tensors = list(without)
    for tensor in tensors:
        check_instance(Tensor, without=tensor)
    return tensors
