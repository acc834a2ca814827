"""Try one part on tiny inputs: whether it runs, and whether shapes, dtypes and sub-modules are as they should be."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn

__all__ = ["WrongResultError", "advice", "try_part"]


class WrongResultError(Exception):
    """A part returned something of another shape or type."""


def advice(*names: str) -> str:
    """The end of a message: what to do about these parts."""
    return f"{', '.join(f'check({name})' for name in names)} says what is wrong"


def try_part(name: str, part: Any, d_model: int, num_heads: int, d_ff: int) -> None:
    """Call a part, and whatever it makes, on two tiny inputs of different sizes.

    Raises:
        WrongResultError: something of another shape, type or dtype came back.
        Exception: whatever the part itself raises, such as NotImplementedError from a stub.
    """
    for lengths in ((2, 3, 5), (1, 4, 7)):
        for what, got, wanted in _trials(name, part, *lengths, d_model, num_heads, d_ff):
            _compare(name, what, got, wanted)


def _trials(
    name: str, part: Any, batch: int, len_q: int, len_k: int, d_model: int, num_heads: int, d_ff: int
) -> Iterator[tuple[str, Any, Any]]:
    """Calls on tiny inputs: what it is, what came, and an example of the shape and dtype that should have come."""
    d_head = d_model // num_heads
    tokens = torch.arange(1, 1 + batch * len_q).view(batch, len_q)
    tokens[-1, -1] = 0
    x, memory = _leaf(batch, len_q, d_model), _leaf(batch, len_k, d_model)
    q, k = _leaf(batch, num_heads, len_q, d_head), _leaf(batch, num_heads, len_k, d_head)
    scores, heads = torch.zeros(batch, num_heads, len_q, len_k), torch.zeros(batch, num_heads, len_q, d_head)
    yes = torch.ones(batch, 1, len_q, len_k, dtype=torch.bool)
    if name == "softmax":
        yield "weights", part(scores + _leaf(1), dim=-1), scores
    elif name == "masked_softmax":
        yield "weights", part(scores + _leaf(1), yes), scores
    elif name == "attend":
        yield "(output, weights)", part(scores + _leaf(1), k), (heads, scores)
    elif name == "scaled_dot_product_attention":
        yield "(output, weights)", part(q, k, k, yes), (heads, scores)
        yield "(output, weights)", part(q, k, k), (heads, scores)
    elif name == "split_heads":
        yield "heads", part(x, num_heads), heads
    elif name == "merge_heads":
        yield "features", part(q), x
    elif name == "padding_mask":
        yield "mask", part(tokens, 0), yes[:, :, :1, :len_q]
    elif name == "causal_mask":
        yield "mask", part(len_q), yes[0, 0, :, :len_q]
    elif name == "decoder_mask":
        yield "mask", part(tokens, 0), yes[..., :len_q]
    elif name == "sinusoidal_encoding":
        yield "table", part(len_q, d_model), x[0]
    elif name == "apply_rotary":
        if d_head % 2 == 0:
            yield "turned features", part(q, torch.arange(len_q)), q
    elif name == "alibi_bias":
        if num_heads & (num_heads - 1) == 0:
            yield "bias", part(num_heads, len_q), torch.zeros(num_heads, len_q, len_q)
    elif name == "layer_norm":
        yield "normed features", part(x, _leaf(d_model), _leaf(d_model), 1e-5), x
    elif name == "LearnedPositionalEmbedding":
        yield "output", part(len_k, d_model)(x), x
    elif name == "FeedForward":
        yield "output", part(d_model, d_ff)(x), x
    elif name == "MultiHeadAttention":
        attention = part(d_model, num_heads)
        yield "(output, weights)", attention(x, memory, memory, yes), (x, scores)
        yield "(output, weights)", attention(x, x, x), (x, scores[..., :len_q])
    elif name == "EncoderLayer":
        layer = part(d_model, num_heads, d_ff)
        _find_modules(name, layer, "self_attention", "feed_forward", "norm1", "norm2")
        yield "output", layer(x, yes[..., :len_q]), x
    else:
        layer = part(d_model, num_heads, d_ff)
        _find_modules(name, layer, "self_attention", "cross_attention", "feed_forward", "norm1", "norm2", "norm3")
        yield "output", layer(x, memory, yes[..., :len_q], yes), x


def _leaf(*shape: int) -> Tensor:
    """Random, and part of a graph, so that what cannot be differentiated is found."""
    return torch.randn(*shape, requires_grad=True) * 1.0


def _find_modules(name: str, layer: nn.Module, *wanted: str) -> None:
    missing = [place for place in wanted if not isinstance(getattr(layer, place, None), nn.Module)]
    if missing:
        raise WrongResultError(
            f"your {name} must have the sub-modules {', '.join(wanted)}, but {', '.join(missing)} cannot be found; "
            f"{advice(name)}"
        )


def _compare(name: str, what: str, got: Any, wanted: Any) -> None:
    """Refuse what has not the shape and kind of `wanted`; then go backwards through it."""
    if isinstance(wanted, tuple):
        if not isinstance(got, tuple | list) or len(got) != len(wanted):
            raise WrongResultError(f"your {name} must return {what}, got {_shape_of(got)}; {advice(name)}")
        for one, model in zip(got, wanted, strict=True):
            _compare(name, f"tensors {what}", one, model)
        return
    fits = isinstance(got, Tensor) and got.shape == wanted.shape and got.dtype == wanted.dtype
    if not fits:
        raise WrongResultError(
            f"your {name} must return {what} of shape and dtype {_shape_of(wanted)} on a tiny input, got "
            f"{_shape_of(got)}; {advice(name)}"
        )
    if got.requires_grad:
        got.sum().backward(retain_graph=True)


def _shape_of(x: Any) -> str:
    if isinstance(x, Tensor):
        return f"{tuple(x.shape)} {str(x.dtype).removeprefix('torch.')}"
    return "None" if x is None else f"an object of type {type(x).__name__}"
