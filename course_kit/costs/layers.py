"""Five causal layers that mix positions, with 4 · d_model² parameters each: attention, recurrence and convolution."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from course_kit._checks import check_axes, check_whole, check_width
from course_kit.nn.attention import attention_with_bias
from course_lib._checks import checked
from course_lib._typing import Count, Float, Size

__all__ = [
    "KERNEL",
    "KINDS",
    "CausalAttention",
    "CausalConvolution",
    "GatedRecurrence",
    "check_kind",
    "mixing_layer",
    "window_attention",
]

KINDS = ("self-attention", "restricted", "recurrent", "convolution", "dilated")
KERNEL = 4  # positions: with it, a convolution has as many parameters as the four projections of attention


def window_attention(
    query: Float[Tensor, "*batch length d"],
    key: Float[Tensor, "*batch length d"],
    value: Float[Tensor, "*batch length d"],
    window: int,
) -> Float[Tensor, "*batch length d"]:
    """Causal attention to the newest `window` positions, which computes no score outside the window.

    `output_i = Σ_j w_ij v_j` over `i − window < j ≤ i`, with the softmax of `q_i · k_j / √d` as weights. Each query has
    a view of its own window of the keys, so L · window scores are computed instead of L².

    Args:
        query: `(..., L, d)`.
        key: `(..., L, d)`.
        value: `(..., L, d)`.
        window: positions that a query may attend to, its own included; a window longer than the sequence is cut.

    Returns:
        `(..., L, d)`, equal to attention with `sliding_window_mask`.

    Raises:
        TypeError: query, key and value are not of one floating-point dtype, or window is not a whole number.
        ValueError: their shapes differ, or window is less than 1.

    Source: Vaswani et al. (2017), section 4, restricted self-attention; Beltagy et al. (2020), section 3.1.
    """
    check_axes(query=query, key=key, value=value)
    check_whole(window=window)
    if not query.shape == key.shape == value.shape:
        raise ValueError(
            f"query, key and value must have the same shape, got {tuple(query.shape)}, {tuple(key.shape)} and "
            f"{tuple(value.shape)}; a window needs one key and one value per query"
        )
    length, d = query.shape[-2:]
    window = min(window, max(length, 1))
    keys, values = (F.pad(x, (0, 0, window - 1, 0)).unfold(-2, window, 1) for x in (key, value))  # (..., L, d, window)
    scores = (query / math.sqrt(d))[..., None, :] @ keys  # (..., L, 1, window)
    places = torch.arange(length, device=query.device)[:, None] + torch.arange(window, device=query.device)
    scores = scores + _closed(scores, places < window - 1)[:, None, :]  # the first windows begin with padding
    weights = torch.softmax(scores, dim=-1)
    return (weights @ values.transpose(-2, -1)).squeeze(-2)  # (..., L, d)


class CausalAttention(nn.Module):
    """Self-attention with one head, four projections without biases, and optionally a window.

    Args:
        d_model: features of inputs and outputs.
        window: positions that each query may attend to, its own included; all earlier ones if not given.

    Raises:
        TypeError: an argument is not a whole number.
        ValueError: one is less than 1.
    """

    def __init__(self, d_model: int, window: int | None = None):
        super().__init__()
        check_whole(d_model=d_model, **({} if window is None else {"window": window}))
        self.d_model, self.window = d_model, window
        self.q_proj, self.k_proj, self.v_proj, self.out_proj = (
            nn.Linear(d_model, d_model, bias=False) for _ in range(4)
        )

    def forward(self, x: Float[Tensor, "batch length d_model"]) -> Float[Tensor, "batch length d_model"]:
        """`(B, L, d_model)` to the same shape."""
        _check_input(x, self.d_model)
        query, key, value = self.q_proj(x), self.k_proj(x), self.v_proj(x)
        if self.window is not None:
            return self.out_proj(window_attention(query, key, value, self.window))
        length = x.shape[1]
        future = torch.ones(length, length, dtype=torch.bool, device=x.device).triu(1)  # (L, L)
        output, _ = attention_with_bias(query, key, value, bias=_closed(x, future))
        return self.out_proj(output)


class GatedRecurrence(nn.Module):
    """A recurrent layer with an update gate: a GRU without its reset gate and without biases.

    `h_t = h_{t−1} + z_t (tanh(W x_t + U h_{t−1}) − h_{t−1})` with `z_t = σ(W_z x_t + U_z h_{t−1})` and `h_0 = 0`.

    Args:
        d_model: features of inputs and of the state, which is also the output.

    Raises:
        TypeError: d_model is not a whole number.
        ValueError: it is less than 1.

    Source: Cho et al. (2014), equations 5 to 8, with a reset gate of 1.
    """

    def __init__(self, d_model: int):
        super().__init__()
        check_whole(d_model=d_model)
        self.d_model = d_model
        self.of_input = nn.Linear(d_model, 2 * d_model, bias=False)  # W_z and W
        self.of_state = nn.Linear(d_model, 2 * d_model, bias=False)  # U_z and U

    def forward(self, x: Float[Tensor, "batch length d_model"]) -> Float[Tensor, "batch length d_model"]:
        """`(B, L, d_model)` to the states of all positions, one after the other."""
        _check_input(x, self.d_model)
        state, states = x.new_zeros(len(x), self.d_model), []
        for inputs in self.of_input(x).unbind(1):  # (B, 2 · d_model) each
            state = self.step(inputs, state)
            states.append(state)
        return torch.stack(states, dim=1)  # (B, L, d_model)

    def step(self, inputs: Float[Tensor, "*batch twice"], state: Float[Tensor, "*batch d_model"]) -> Tensor:
        """The next state, `(..., d_model)`, from the projected input `(..., 2 · d_model)` and the state before it."""
        gate, candidate = (inputs + self.of_state(state)).chunk(2, dim=-1)  # (..., d_model) each
        return torch.lerp(state, torch.tanh(candidate), torch.sigmoid(gate))


class CausalConvolution(nn.Module):
    """A convolution whose output at i depends on the positions i, i − dilation, …, i − (kernel_size − 1) · dilation.

    Args:
        d_model: features of inputs and outputs.
        kernel_size: positions that an output depends on.
        dilation: their distance from each other.

    Raises:
        TypeError: an argument is not a whole number.
        ValueError: one is less than 1.

    Source: van den Oord et al. (2016), section 2.1.
    """

    def __init__(self, d_model: int, kernel_size: int = KERNEL, dilation: int = 1):
        super().__init__()
        check_whole(d_model=d_model, kernel_size=kernel_size, dilation=dilation)
        self.d_model = d_model
        self.conv = nn.Conv1d(d_model, d_model, kernel_size, dilation=dilation, bias=False)

    def forward(self, x: Float[Tensor, "batch length d_model"]) -> Float[Tensor, "batch length d_model"]:
        """`(B, L, d_model)` to the same shape."""
        _check_input(x, self.d_model)
        past = (self.conv.kernel_size[0] - 1) * self.conv.dilation[0]
        return self.conv(F.pad(x.transpose(1, 2), (past, 0))).transpose(1, 2)  # (B, L, d_model)


@checked
def mixing_layer(
    kind: str, d_model: Size, number: Count = 0, *, window: Size = 16, kernel_size: Size = KERNEL
) -> CausalAttention | GatedRecurrence | CausalConvolution:
    """A layer of one kind, from `(B, L, d_model)` to the same shape.

    It has 4 · d_model² parameters, whatever its kind; a convolution has as many with a kernel of 4 positions.

    Args:
        kind: one of `KINDS`.
        d_model: features of inputs and outputs.
        number: of the layer in its stack, from 0; a dilated convolution has the dilation kernel_size^number.
        window: positions that restricted attention may attend to.
        kernel_size: positions that an output of a convolution depends on.

    Raises:
        ValueError: there is no such kind.
    """
    check_kind(kind)
    if kind == "recurrent":
        return GatedRecurrence(d_model)
    if kind in ("convolution", "dilated"):
        return CausalConvolution(d_model, kernel_size, kernel_size**number if kind == "dilated" else 1)
    return CausalAttention(d_model, window if kind == "restricted" else None)


def check_kind(kind: str) -> None:
    """Refuse what is not one of `KINDS`.

    Raises:
        ValueError: there is no such kind of layer.
    """
    if kind not in KINDS:
        raise ValueError(f"kind must be one of {', '.join(KINDS)}, got {kind!r:.40}; choose one of them")


def _closed(scores: Tensor, places: Tensor) -> Tensor:
    """What to add to scores to close these places. Added, a mask need not be kept for the backward pass."""
    return scores.new_zeros(places.shape).masked_fill(places, -math.inf)


def _check_input(x: Tensor, d_model: int) -> None:
    check_width(d_model, x=x)
    if x.dim() != 3 or not x.shape[1]:
        raise ValueError(
            f"x must be (batch, length, d_model) with at least one position, got {tuple(x.shape)}; add a batch axis "
            f"with x[None]"
        )
