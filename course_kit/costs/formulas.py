"""What a causal layer costs as a function of the length: operations, sequential steps, longest path and memory."""

from __future__ import annotations

from typing import Annotated

from course_kit.costs.layers import check_kind
from course_lib._checks import checked
from course_lib._typing import Bounds, Size
from course_lib.efficiency import convolution_layers

__all__ = ["kept_numbers", "longest_path", "operations", "sequential_steps"]


@checked
def operations(
    kind: str, length: Size, d_model: Size, *, window: Size = 16, kernel_size: Size = 4, projections: bool = True
) -> int:
    """Floating-point operations of one layer for one sequence; a multiply-add counts as two.

    With L positions, d features, a window of w ≤ L and a kernel of k:

        self-attention    8 L d² (four projections) + 4 L² d (scores and weighted sums)
        restricted        8 L d² (four projections) + 4 L w d
        recurrent         8 L d² (two matrices for the input, two for the state)
        convolution       2 k L d², dilated or not

    Counted are matrix products; masked scores and padding are computed, so they count.

    Args:
        kind: one of `layers.KINDS`.
        length: L, 1 or more.
        d_model: d, features of inputs and outputs.
        window: positions that restricted attention may attend to; a longer one is cut to the length.
        kernel_size: positions that an output of a convolution depends on.
        projections: whether the four projections of attention count; table 1 of the paper leaves them out.

    Raises:
        ValueError: there is no such kind.

    Source: Vaswani et al. (2017), table 1, which gives the orders of growth.
    """
    check_kind(kind)
    if kind == "recurrent":
        return 8 * length * d_model**2
    if kind in ("convolution", "dilated"):
        return 2 * kernel_size * length * d_model**2
    keys = length if kind == "self-attention" else min(window, length)
    return 4 * length * keys * d_model + (8 * length * d_model**2 if projections else 0)


@checked
def sequential_steps(kind: str, length: Size) -> int:
    """Matrix products of one layer that have to wait for each other: the length for a recurrent layer, else constant.

    Attention has four in a row (projection, scores, weighted sum, projection of the output), a convolution one. Each
    state of a recurrent layer waits for the state before it.

    Args:
        kind: one of `layers.KINDS`.
        length: L, 1 or more.

    Raises:
        ValueError: there is no such kind.

    Source: Vaswani et al. (2017), table 1.
    """
    check_kind(kind)
    return {"recurrent": length, "convolution": 1, "dilated": 1}.get(kind, 4)


@checked
def longest_path(
    kind: str,
    length: Size,
    *,
    window: Annotated[int, Bounds(2)] = 16,
    kernel_size: Annotated[int, Bounds(2)] = 4,
) -> int:
    """How often information has to be handed on before the last of `length` positions depends on the first.

    A layer hands it on once: to any position in self-attention, by up to w − 1 positions in a window, and by up to
    k − 1 in a convolution; dilated layer i (from 0) spans (k − 1) · kⁱ positions. A recurrent layer hands its state on
    L − 1 times, from each position to the next.

    Args:
        kind: one of `layers.KINDS`.
        length: L, 1 or more.
        window: positions that restricted attention may attend to, 2 or more.
        kernel_size: positions that an output of a convolution depends on, 2 or more.

    Returns:
        1 for self-attention, ⌈(L − 1) / (w − 1)⌉ for a window, L − 1 for a recurrent layer, ⌈(L − 1) / (k − 1)⌉ for
        convolutions, and the smallest n with kⁿ ≥ L if they are dilated; 0 for a single position.

    Raises:
        ValueError: there is no such kind.

    Source: Vaswani et al. (2017), table 1.
    """
    check_kind(kind)
    reach = {"self-attention": max(length, 2), "restricted": window, "recurrent": 2}.get(kind, kernel_size)
    return convolution_layers(length, reach, dilated=kind == "dilated")


@checked
def kept_numbers(kind: str, length: Size, d_model: Size, *, window: Size = 16, kernel_size: Size = 4) -> int:
    """Numbers that one layer keeps from the forward to the backward pass, without its parameters, for one sequence.

    With L positions, d features, a window of w ≤ L and a kernel of k:

        self-attention    L² (weights) + 5 L d (input, queries, keys, values, weighted sums)
        restricted        L w (weights) + 5 L d + 2 (w − 1) d (padding of keys and values)
        recurrent         4 L d (input, gate, candidate and state of each position)
        convolution       (L + k − 1) d (input and its padding), with a dilation of 1

    Args:
        kind: one of `layers.KINDS`.
        length: L, 1 or more.
        d_model: d, features of inputs and outputs.
        window: positions that restricted attention may attend to; a longer one is cut to the length.
        kernel_size: positions that an output of a convolution depends on.

    Raises:
        ValueError: there is no such kind.
    """
    check_kind(kind)
    if kind == "recurrent":
        return 4 * length * d_model
    if kind in ("convolution", "dilated"):
        return (length + kernel_size - 1) * d_model
    if kind == "restricted":
        window = min(window, length)
        return length * window + 5 * length * d_model + 2 * (window - 1) * d_model
    return length**2 + 5 * length * d_model
