"""Whether a solution spares memory where its exercise asks for that: the sizes of the tensors that it computes.

A limit on the memory of the process would depend on the machine. Instead, the numbers are counted in each tensor that
is computed from two arguments together, such as the scores of attention, which come from query and key. A tensor that
comes from one of them alone, such as a scaled or padded key, may be of any size.

Two sizes are too large: more than the given number where the two arguments meet (scores of too many keys), and one
number per pair of rows (a query and a key), wherever that is (all scores, collected in parts).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils.weak import WeakIdKeyDictionary

__all__ = ["TensorSizeLimit"]

IN_PLACE = ("__setitem__", "__iadd__", "__isub__", "__imul__", "__itruediv__", "__idiv__", "__imatmul__")


class TensorSizeLimit(TorchFunctionMode):
    """Ends a call in a MemoryError as soon as a tensor that comes from both arguments is too large.

    It sees results of what Python code calls, and tensors that are changed in place. It does not see what PyTorch's
    functions do inside, nor how many small tensors are kept.

    Args:
        pair: the two arguments, whose last axis is that of the features.
        names: of the two, for the message.
        max_numel: numbers that a tensor may have in which the two meet.
    """

    def __init__(self, pair: tuple[Tensor, Tensor], names: tuple[str, ...], largest: int):
        super().__init__()
        self.names, self.max_numel = names, largest
        self.pairs = math.prod(tensor.numel() // tensor.shape[-1] for tensor in pair)
        self.known = WeakIdKeyDictionary({tensor: {number} for number, tensor in enumerate(pair)})

    def __torch_function__(self, function, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        result = function(*args, **kwargs)
        if torch.compiler.is_compiling():  # see `CallWatcher`
            return result
        given = list(_tensors((args, kwargs)))
        name = getattr(function, "__name__", "")
        theirs = [] if _only_the_form(name) else [self._origins(x) for x in given]
        origins = set().union(*theirs)
        allowed = self.max_numel if {0} in theirs and {1} in theirs else self.pairs - 1
        if name in IN_PLACE or (name.endswith("_") and not name.endswith("__")) or kwargs.get("out") is not None:
            changed = _tensors(kwargs.get("out", args[:1]))
            self._note([one for x in changed for one in (x, x._base) if one is not None], origins, allowed)
        # A view of what was given has the origins of its base, and what `to` gives back unchanged has its own.
        sources = [one for x in given for one in (x, x._base)]
        new = [x for x in _tensors(result) if all((x if x._base is None else x._base) is not y for y in sources)]
        self._note([one for x in new for one in (x, x._base) if one is not None], origins, allowed)
        return result

    def _origins(self, tensor: Tensor) -> set[int]:
        return self.known.get(tensor if tensor._base is None else tensor._base, set())

    def _note(self, tensors: list[Tensor], origins: set[int], allowed: int) -> None:
        for tensor in tensors:
            self.known[tensor] = self.known.get(tensor, set()) | origins
            if len(self.known[tensor]) > 1 and tensor.numel() > allowed:
                raise MemoryError(
                    f"expected at most {allowed} numbers in a tensor that is computed from "
                    f"{' and '.join(self.names)} in this case, got one of {tensor.numel()} numbers"
                )


def _only_the_form(name: str) -> bool:
    """Whether a function takes shape, dtype or device of a tensor, and none of its numbers."""
    return name.startswith("new_") or name.endswith("_like")


def _tensors(value: Any) -> Iterator[Tensor]:
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _tensors(item)
    elif isinstance(value, dict):
        yield from _tensors(list(value.values()))
