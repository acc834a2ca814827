"""Multi-head attention: several attentions side by side, each in its own slice of the features."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol, runtime_checkable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from course_kit._checks import check_floats, check_probability, check_whole, got
from course_lib._typing import Bool, Float
from course_lib.cache import KeyValueCache
from course_lib.scaled_dot_product import fused_attention, scaled_dot_product_attention

__all__ = [
    "AttentionPosition",
    "MultiHeadAttention",
    "merge_heads",
    "multi_head_parameter_count",
    "named_attentions",
    "record_attention",
    "split_heads",
]


def split_heads(
    x: Float[Tensor, "*batch length d_model"], num_heads: int
) -> Float[Tensor, "*batch num_heads length d_head"]:
    """Give each head its contiguous slice of the features, and an axis of its own before the positions.

    Args:
        x: `(..., L, d_model)`.
        num_heads: H; head h takes features `h · d_head` to `(h + 1) · d_head − 1`, with `d_head = d_model / H`.

    Returns:
        `(..., H, L, d_head)`, a view.

    Raises:
        TypeError: x is not a tensor, or num_heads is not a whole number.
        ValueError: num_heads does not divide d_model, or x has fewer than two axes.
    """
    _check_rank(x, "(..., L, d_model)")
    _check_divides(num_heads, x.shape[-1])
    # First (..., L, H, d_head), then the transpose: a view straight to (..., H, L, d_head) mixes positions and heads.
    return x.unflatten(-1, (num_heads, -1)).transpose(-3, -2)  # (..., H, L, d_head)


def merge_heads(
    x: Float[Tensor, "*batch num_heads length d_head"],
) -> Float[Tensor, "*batch length d_model"]:
    """Put the heads' features side by side again: the inverse of `split_heads`.

    Args:
        x: `(..., H, L, d_head)`.

    Returns:
        `(..., L, H · d_head)`.

    Raises:
        TypeError: x is not a tensor.
        ValueError: x has fewer than three axes.
    """
    _check_rank(x, "(..., H, L, d_head)")
    x = x.transpose(-3, -2)  # (..., L, H, d_head)
    return x.flatten(-2)  # (..., L, H * d_head)


def multi_head_parameter_count(d_model: int, num_heads: int, bias: bool = True) -> int:
    """Parameters of `MultiHeadAttention`: four square matrices and their biases, however many heads share them.

    `4 · d_model²`, and `4 · d_model` more with biases.

    Raises:
        ValueError: num_heads does not divide d_model.
    """
    _check_divides(num_heads, d_model)
    weights = 4 * d_model * d_model  # all heads of a projection share one matrix, so their number does not matter
    return weights + 4 * d_model if bias else weights


@runtime_checkable
class AttentionPosition(Protocol):
    """A position code that acts inside attention: `RotaryPosition` turns queries and keys, `AlibiPosition` adds a bias.

    Query i is at position `L_k − L_q + i`, so that the last query and the last key have the same position.

    A code that also works with a `KeyValueCache` takes one more keyword argument in both methods, `positions`: int
    `(L_k,)`, the positions of the keys. The queries have the positions of the last L_q keys.
    """

    def rotate(self, query: Tensor, key: Tensor) -> tuple[Tensor, Tensor]:
        """Queries `(..., L_q, d_head)` and keys `(..., L_k, d_head)`, each turned to its position."""
        ...

    def bias(self, query: Tensor, key: Tensor) -> Tensor | None:
        """What to add to the scores, broadcastable to `(..., H, L_q, L_k)`, or None."""
        ...


class MultiHeadAttention(nn.Module):
    """Attend in `num_heads` subspaces at once, and mix the outputs of all heads.

    `MultiHead(Q, K, V) = Concat(head_1, …, head_H) W_O` with `head_h = Attention(Q W_Q^h, K W_K^h, V W_V^h)`. The
    projections of all heads are stacked in one Linear: head h has rows `h · d_head` to `(h + 1) · d_head − 1`.

    Args:
        d_model: features of queries, keys, values and output.
        num_heads: H, divides d_model.
        bias: whether the four projections add a bias.
        dropout: probability of dropping an attention weight while training.
        position: a position code that acts on queries, keys and scores, such as `RotaryPosition()`.

    Raises:
        TypeError: a size is not a whole number, or dropout is not a number.
        ValueError: num_heads does not divide d_model, or dropout is not in [0, 1).

    Source: Vaswani et al. (2017), section 3.2.2.
    """

    def __init__(
        self,
        d_model: int,
        num_heads: int,
        *,
        bias: bool = True,
        dropout: float = 0.0,
        position: AttentionPosition | None = None,
    ):
        super().__init__()
        check_whole(d_model=d_model)
        _check_divides(num_heads, d_model)
        check_probability("dropout", dropout)
        self.d_model = d_model
        self.num_heads = num_heads
        self.dropout = dropout
        self.position = position
        self.q_proj = nn.Linear(d_model, d_model, bias=bias)
        self.k_proj = nn.Linear(d_model, d_model, bias=bias)
        self.v_proj = nn.Linear(d_model, d_model, bias=bias)
        self.out_proj = nn.Linear(d_model, d_model, bias=bias)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Xavier-uniform matrices, which keep the variance of signal and gradient, and zero biases."""
        for projection in (self.q_proj, self.k_proj, self.v_proj, self.out_proj):
            nn.init.xavier_uniform_(projection.weight)
            if projection.bias is not None:
                nn.init.zeros_(projection.bias)

    def forward(
        self,
        query: Float[Tensor, "batch len_q d_model"],
        key: Float[Tensor, "batch len_k d_model"],
        value: Float[Tensor, "batch len_k d_model"],
        mask: Bool[Tensor, "..."] | None = None,
        *,
        need_weights: bool = True,
        cache: KeyValueCache | None = None,
    ) -> tuple[Float[Tensor, "batch len_q d_model"], Float[Tensor, "batch heads len_q len_all"] | None]:
        """Attend from every query to every key; self-attention is `forward(x, x, x)`.

        Args:
            query: `(B, L_q, d_model)`.
            key: `(B, L_k, d_model)`.
            value: `(B, L_k, d_model)`.
            mask: bool, True = may attend, broadcasts to `(B, H, L_q, L_k)`: `(B, 1, 1, L_k)` for padding, `(L_q, L_k)`
                for causality.
            need_weights: False leaves attention to PyTorch, fused where possible, and returns None for the weights.
            cache: keys and values of earlier calls, to which these queries attend too; L_k then counts all of them.

        Returns:
            `(output, weights)`: `(B, L_q, d_model)`, and `(B, H, L_q, L_k)` or None.

        Raises:
            TypeError: query, key or value is not a floating-point tensor, or the mask is not bool.
            ValueError: a shape does not fit; the message says which.
        """
        self._check_inputs(query=query, key=key, value=value)
        q, k, v, bias = self._heads(query, key, value) if cache is None else self._cached(query, key, value, cache)
        dropout = self.dropout if self.training else 0.0
        if need_weights:
            heads, weights = scaled_dot_product_attention(q, k, v, mask, bias=bias, dropout=dropout)
        else:
            heads, weights = fused_attention(q, k, v, mask, bias=bias, dropout=dropout), None
        return self.out_proj(merge_heads(heads)), weights  # (B, L_q, d_model)

    def _heads(self, query: Tensor, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor | None]:
        """Queries, keys and values of all heads, `(B, H, L, d_head)`, and the bias of their scores."""
        q, k, v = (split_heads(x, self.num_heads) for x in self._project(query, key, value))  # (B, H, L, d_head)
        if self.position is None:
            return q, k, v, None
        q, k = self.position.rotate(q, k)
        return q, k, v, self.position.bias(q, k)  # the bias broadcasts to (B, H, L_q, L_k)

    def _cached(
        self, query: Tensor, key: Tensor, value: Tensor, cache: KeyValueCache
    ) -> tuple[Tensor, Tensor, Tensor, Tensor | None]:
        """The same, with keys and values of earlier calls from the cache."""
        if cache.complete:
            return split_heads(self.q_proj(query), self.num_heads), cache.keys, cache.values, None
        # For the few queries of a step, stacking the weights takes longer than one product instead of three saves.
        each = (self.q_proj(query), self.k_proj(key), self.v_proj(value))
        q, k, v = (split_heads(x, self.num_heads) for x in each)  # (B, H, L, d_head)
        if self.position is None:
            return q, *cache.append(k, v), None
        q, k = self.position.rotate(q, k, positions=cache.next_positions(k.shape[-2], k.device))  # kept as turned
        k, v = cache.append(k, v)  # (B, H, L so far, d_head)
        return q, k, v, self.position.bias(q, k, positions=cache.positions)

    def _project(self, query: Tensor, key: Tensor, value: Tensor) -> tuple[Tensor, ...]:
        """The three projections. In training, those that share their input are one product with stacked weights.

        That makes the step faster; without gradients, three smaller products need less fresh memory and are faster.
        Stacked, the Linears give their weights and are not called: a hook on `q_proj` is not triggered then.
        """
        if query is key is value and torch.is_grad_enabled():
            return _stacked_linear(query, self.q_proj, self.k_proj, self.v_proj)
        if key is value and torch.is_grad_enabled():
            return self.q_proj(query), *_stacked_linear(key, self.k_proj, self.v_proj)
        return self.q_proj(query), self.k_proj(key), self.v_proj(value)

    def _check_inputs(self, **inputs: Tensor) -> None:
        check_floats(**inputs)
        for name, x in inputs.items():
            if x.dim() != 3 or x.shape[-1] != self.d_model:
                raise ValueError(
                    f"{name} must be (batch, length, d_model = {self.d_model}), got {tuple(x.shape)}; "
                    f"add a batch axis with x[None], or build the module with the width of the input"
                )
        if inputs["query"].shape[0] != inputs["key"].shape[0]:
            raise ValueError(
                f"query and key must have the same batch size, got {tuple(inputs['query'].shape)} and "
                f"{tuple(inputs['key'].shape)}; take both from the same batch"
            )
        if inputs["key"].shape[:2] != inputs["value"].shape[:2]:
            raise ValueError(
                f"key and value must have the same batch size and length, got {tuple(inputs['key'].shape)} and "
                f"{tuple(inputs['value'].shape)}; each key has one value"
            )

    @classmethod
    def from_torch(cls, theirs: nn.MultiheadAttention) -> MultiHeadAttention:
        """A copy of PyTorch's module, with its weights, dtype, device, dropout and train/eval mode.

        A bool mask has to be inverted: for `nn.MultiheadAttention`, True = may *not* attend.

        Raises:
            ValueError: theirs uses an option without a counterpart here (kdim, vdim, add_bias_kv, add_zero_attn).
        """
        if theirs.in_proj_weight is None or theirs.bias_k is not None or theirs.add_zero_attn:
            raise ValueError(
                "only an nn.MultiheadAttention with kdim = vdim = embed_dim, without add_bias_kv and add_zero_attn, "
                "has a counterpart here"
            )
        has_bias = theirs.in_proj_bias is not None
        ours = cls(theirs.embed_dim, theirs.num_heads, bias=has_bias, dropout=theirs.dropout)
        ours = ours.to(theirs.in_proj_weight)  # dtype and device
        with torch.no_grad():
            for i, projection in enumerate((ours.q_proj, ours.k_proj, ours.v_proj)):
                projection.weight.copy_(theirs.in_proj_weight.chunk(3)[i])
                if has_bias:
                    projection.bias.copy_(theirs.in_proj_bias.chunk(3)[i])
        ours.out_proj.load_state_dict(theirs.out_proj.state_dict())
        return ours.train(theirs.training)

    def to_torch(self) -> nn.MultiheadAttention:
        """A copy as PyTorch's module with `batch_first=True`, the same weights, dtype, device, dropout and mode.

        Raises:
            ValueError: this module has a position code, which PyTorch's module cannot have.
        """
        if self.position is not None:
            raise ValueError(f"nn.MultiheadAttention has no position code, got position={self.position!r}")
        projections = (self.q_proj, self.k_proj, self.v_proj)
        has_bias = self.q_proj.bias is not None
        theirs = nn.MultiheadAttention(
            self.d_model, self.num_heads, dropout=self.dropout, bias=has_bias, batch_first=True
        ).to(self.q_proj.weight)
        with torch.no_grad():
            theirs.in_proj_weight.copy_(torch.cat([p.weight for p in projections]))
            if has_bias:
                theirs.in_proj_bias.copy_(torch.cat([p.bias for p in projections]))
        theirs.out_proj.load_state_dict(self.out_proj.state_dict())
        return theirs.train(self.training)

    def extra_repr(self) -> str:
        """The arguments that the sub-modules do not show."""
        return f"num_heads={self.num_heads}, dropout={self.dropout}, position={self.position!r}"


def named_attentions(model: nn.Module) -> dict[str, MultiHeadAttention]:
    """Every `MultiHeadAttention` in a model by its name, in the order of the modules; "" is the model itself.

    Raises:
        TypeError: model is not an `nn.Module`.
        ValueError: there is none.
    """
    if not isinstance(model, nn.Module):
        raise TypeError(f"model must be an nn.Module, got {got(model)}; pass the module itself")
    attentions = {name: m for name, m in model.named_modules() if isinstance(m, MultiHeadAttention)}
    if not attentions:
        raise ValueError(
            f"model must contain at least one course_lib MultiHeadAttention, got {type(model).__name__} with none; "
            f"an nn.MultiheadAttention can be converted with MultiHeadAttention.from_torch"
        )
    return attentions


@contextmanager
def record_attention(model: nn.Module) -> Iterator[dict[str, Tensor]]:
    """Collect the attention weights of every `MultiHeadAttention` in a model while the block runs.

    Layers do not request the weights, so that they can run on the fused kernel; inside the block the weights are
    computed all the same.

        with record_attention(model) as maps:
            model(source, target)
        maps["encoder.layers.0.self_attention"]  # (B, H, L_q, L_k)

    Args:
        model: any module with `MultiHeadAttention` somewhere inside.

    Yields:
        A dictionary from the module's name to its latest weights, detached; "" is the name of the model itself.

    Raises:
        ValueError: there is no `MultiHeadAttention` in the model, so nothing could ever be recorded.
    """
    attentions = named_attentions(model)
    maps: dict[str, Tensor] = {}

    def ask_for_weights(_module, args, kwargs):
        return args, {**kwargs, "need_weights": True}

    def keep(name):
        def hook(_module, _args, result):
            maps[name] = result[1].detach()

        return hook

    handles = []
    try:
        for name, attention in attentions.items():
            handles.append(attention.register_forward_pre_hook(ask_for_weights, with_kwargs=True))
            handles.append(attention.register_forward_hook(keep(name)))
        yield maps
    finally:
        for handle in handles:
            handle.remove()


def _stacked_linear(x: Tensor, *linears: nn.Linear) -> tuple[Tensor, ...]:
    weight = torch.cat([linear.weight for linear in linears])
    bias = None if linears[0].bias is None else torch.cat([linear.bias for linear in linears])
    return F.linear(x, weight, bias).chunk(len(linears), dim=-1)


def _check_rank(x: Tensor, shape: str) -> None:
    axes = shape.count(",")
    if not isinstance(x, Tensor):
        raise TypeError(f"x must be a tensor {shape}, got {got(x)}; pass torch.as_tensor(x)")
    if x.dim() < axes:
        raise ValueError(
            f"x must be {shape}, with at least {axes} axes, got {tuple(x.shape)}; add the axis that is missing"
        )


def _check_divides(num_heads: int, d_model: int) -> None:
    check_whole(d_model=d_model, least=0)
    check_whole(num_heads=num_heads, least=-math.inf)
    if num_heads < 1 or d_model % num_heads != 0:
        raise ValueError(
            f"num_heads must divide d_model, got num_heads = {num_heads} for d_model = {d_model}; "
            f"each head takes d_model / num_heads features"
        )
