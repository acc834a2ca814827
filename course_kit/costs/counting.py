"""Count what a layer costs in a real computation: operations, steps that wait for each other, and the longest path."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode

from course_kit._checks import check_floats, check_instance, check_seed, check_whole
from course_kit.costs.layers import GatedRecurrence, mixing_layer
from course_lib._typing import Float

__all__ = ["counted_operations", "counted_steps", "measured_path"]

_PRODUCTS = ("MmBackward", "AddmmBackward", "BmmBackward", "BaddbmmBackward", "LinearBackward", "ConvolutionBackward")
_LONGEST = 200  # positions


def counted_operations(module: nn.Module, x: Tensor) -> int:
    """Floating-point operations of all matrix products and convolutions in one call, counted by PyTorch.

    The counter sees every product that PyTorch performs by itself. On a CPU it does not see inside fused attention or
    `nn.LSTM`; the layers of `costs.layers` use neither.

    Args:
        module: called once, without gradients.
        x: its input.

    Raises:
        TypeError: module is not an `nn.Module`, or x is not a floating-point tensor.
    """
    check_instance(nn.Module, module=module)
    check_floats(x=x)
    with torch.no_grad(), FlopCounterMode(display=False) as counter:
        module(x)
    return counter.get_total_flops()


def counted_steps(output: Tensor) -> int:
    """The largest number of matrix products in a row, each of which waits for the one before, on the way to an output.

    It is the length of the longest chain in the graph that autograd records; elementwise operations do not count. More
    processors shorten each product, but not the chain.

    Args:
        output: what was computed, with gradients.

    Raises:
        TypeError: output is not a floating-point tensor.
        ValueError: output was computed without gradients, so there is no graph.
    """
    check_floats(output=output)
    if output.grad_fn is None:
        raise ValueError("output must have been computed with gradients, got none; call the module outside no_grad()")
    longest: dict[object, int] = {}
    waiting = [output.grad_fn]
    while waiting:  # not by recursion: a recurrent layer has a deep graph
        node = waiting[-1]
        earlier = [before for before, _ in node.next_functions if before is not None]
        if missing := [before for before in earlier if before not in longest]:
            waiting += missing
            continue
        own = node.name().startswith(_PRODUCTS)
        longest[node] = own + max((longest[before] for before in earlier), default=0)
        waiting.pop()
    return longest[output.grad_fn]


def measured_path(
    kind: str, length: int, d_model: int = 5, *, window: int = 16, kernel_size: int = 4, seed: int = 0
) -> int:
    """How often information is handed on until the last position has a gradient with respect to the first one.

    Layers of one kind with random weights are applied one after the other, and after each of them the gradient of the
    last output with respect to the first input is computed in float64: it is exactly zero as long as there is no path.
    A recurrent layer is taken apart: all positions update their states at once, each from the state of the position
    before it. After n such updates, a state depends on n earlier positions; after L of them, it is the layer's output.

    Args:
        kind: one of `layers.KINDS`.
        length: L, positions, at most 200.
        d_model: features of the layers.
        window: positions that restricted attention may attend to, 2 or more.
        kernel_size: positions that an output of a convolution depends on, 2 or more.
        seed: of weights and inputs.

    Returns:
        The number of layers, or of updates, after which the gradient is not exactly zero.

    Raises:
        TypeError: a size is not a whole number.
        ValueError: there is no such kind, a size is less than 1, window or kernel_size is less than 2, or length is
            more than 200, where gradients may become too small for float64.
    """
    check_seed(seed)
    check_whole(length=length, most=_LONGEST, hint="; on longer paths the gradient may underflow to zero")
    check_whole(d_model=d_model)
    check_whole(window=window, kernel_size=kernel_size, least=2)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        first = torch.randn(1, length, d_model, dtype=torch.float64, requires_grad=True)
        recurrence = mixing_layer(kind, d_model).double() if kind == "recurrent" else None
        state = first
        for handed_on in range(length):  # no path is longer than the sequence
            if _depends(state[:, -1], first):
                return handed_on
            if recurrence is not None:
                state = _updated(recurrence, first, state)
            else:
                layer = mixing_layer(kind, d_model, handed_on, window=window, kernel_size=kernel_size)
                state = layer.double()(state)
    raise RuntimeError(f"{length} layers of {kind} do not connect the first of {length} positions with the last")


def _depends(last: Tensor, first: Tensor) -> bool:
    """Whether the gradient with respect to the first position is not exactly zero."""
    (gradient,) = torch.autograd.grad(last.sum(), first, retain_graph=True)
    return bool((gradient[:, 0] != 0).any())


def _updated(
    layer: GatedRecurrence, x: Float[Tensor, "1 length d_model"], state: Float[Tensor, "1 length d_model"]
) -> Float[Tensor, "1 length d_model"]:
    """All states at once, each computed from its input and the state of the position before."""
    before = F.pad(state, (0, 0, 1, 0))[:, :-1]  # (1, L, d_model), zeros before the first
    return layer.step(layer.of_input(x), before)
