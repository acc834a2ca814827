"""A weight says how much of a value is added, not how large the value is: weights and values together."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import torch
from torch import Tensor, nn

from course_kit._checks import check_axes, check_floats, got
from course_kit.nn import MultiHeadAttention, named_attentions
from course_lib._typing import Float
from course_lib.multi_head import split_heads

__all__ = ["distant_twin_weights", "record_value_norms", "twin_weights", "value_norms"]


def value_norms(
    attention: MultiHeadAttention, value: Float[Tensor, "batch len_k d_model"]
) -> Float[Tensor, "batch heads len_k"]:
    """How long the vector is that a head adds to the output for a key with weight one.

    n_hj = ‖W_O^h (W_V^h x_j + b_V^h)‖. The output of the module is Σ_h Σ_j w_hij · (that vector) + b_O, so
    `weights * value_norms(attention, x)[:, :, None]`, `(B, H, L_q, L_k)`, shows what a map of the weights hides: a
    large weight on a short vector adds almost nothing.

    Args:
        attention: whose projections are taken.
        value: what the module attends to, `(B, L_k, d_model)`.

    Returns:
        `(B, H, L_k)`.

    Raises:
        TypeError: attention is not a `MultiHeadAttention`, or value is not a floating-point tensor.
        ValueError: value is not `(B, L_k, d_model)`.

    Source: Kobayashi, Kuribayashi, Yokoi & Inui (2020), section 3.
    """
    _check_attention(attention, value)
    heads = split_heads(attention.v_proj(value), attention.num_heads)  # (B, H, L_k, d_head)
    # Head h owns the columns h · d_head to (h + 1) · d_head − 1 of the output projection.
    output = attention.out_proj.weight.unflatten(1, (attention.num_heads, -1))  # (d_model, H, d_head)
    return torch.einsum("bhkd,ohd->bhko", heads, output).norm(dim=-1)


@contextmanager
def record_value_norms(model: nn.Module) -> Iterator[dict[str, Tensor]]:
    """Collect `value_norms` of every `MultiHeadAttention` in a model while the block runs.

        with record_attention(model) as maps, record_value_norms(model) as norms:
            model(tokens)
        name = "encoder.layers.0.self_attention"
        maps[name] * norms[name][:, :, None]  # (B, H, L_q, L_k)

    Yields:
        A dictionary from the module's name to its latest norms `(B, H, L_k)`, detached.

    Raises:
        ValueError: there is no `MultiHeadAttention` in the model.
    """
    norms: dict[str, Tensor] = {}

    def keep(name):
        def hook(module, args, kwargs, _result):
            value = kwargs["value"] if "value" in kwargs else args[2]
            with torch.no_grad():
                norms[name] = value_norms(module, value)

        return hook

    with ExitStack() as hooks:
        for name, module in named_attentions(model).items():
            hooks.enter_context(module.register_forward_hook(keep(name), with_kwargs=True))
        yield norms


def twin_weights(
    weights: Float[Tensor, "len_q len_k"], values: Float[Tensor, "len_k d_v"]
) -> Float[Tensor, "len_q len_k"]:
    """Other attention weights with the same output, as far from the given ones as one direction leads.

    Where L_k > d_v + 1, some directions n have n V = 0 and Σ_j n_j = 0: adding them changes neither the output nor the
    sum of a row. Of these directions, each row takes the one nearest to what would make its weights equal (or, if they
    are equal, any), and goes along it, that way or the other, until the first weight becomes zero.

    Args:
        weights: of one head, `(L_q, L_k)`; a weight of exactly zero can only grow, so take a map without a mask.
        values: of the same head, `(L_k, d_v)`.

    Returns:
        `(L_q, L_k)`: not negative, rows sum to one, `twin_weights(w, v) @ v` equals `w @ v`.

    Raises:
        TypeError: weights and values are not floating-point tensors of one dtype.
        ValueError: weights and values do not fit together, or the output determines the weights, because L_k ≤ d_v + 1
            or so many values are independent.

    Source: Brunner et al. (2020), section 3.
    """
    _check_twins(weights, values, of_one_head=True)
    len_k, d_v = values.shape
    constraints = torch.cat((values, values.new_ones(len_k, 1)), dim=1).double()  # (L_k, d_v + 1)
    left, sizes, _ = torch.linalg.svd(constraints)
    rank = int((sizes > sizes[0] * len_k * torch.finfo(values.dtype).eps).sum())
    free = left[:, rank:]  # (L_k, L_k − rank), orthonormal, each column orthogonal to values and ones
    if free.shape[1] == 0:
        raise ValueError(
            f"weights must be to more than d_v + 1 = {d_v + 1} keys, got {len_k} and values of {d_v} features (rank "
            f"{rank} together with the sum): the output determines the weights; take more keys"
        )
    given = weights.double()
    towards_equal = (1 / len_k - given) @ free @ free.T  # (L_q, L_k)
    some = free[:, 0].expand_as(given)
    direction = torch.where(towards_equal.norm(dim=-1, keepdim=True) > 1e-9, towards_equal, some)
    both = torch.stack((direction, -direction))  # (2, L_q, L_k)
    limits = torch.where(both < 0, given / -both, torch.inf)
    steps = limits.amin(-1, keepdim=True)  # (2, L_q, 1), until the first weight is zero
    moved = (given + steps * both).clamp(min=0)
    farther = (steps * both).abs().sum(-1).argmax(0)  # (L_q,)
    return moved[farther, torch.arange(len(given))].to(weights.dtype)


def distant_twin_weights(
    weights: Float[Tensor, "*batch len_q len_k"], values: Float[Tensor, "*batch len_k d_v"]
) -> Float[Tensor, "*batch len_q len_k"]:
    """Other attention weights with the same output, from as few keys as possible: at most d_v + 1.

    Walks away from the given weights w, always in the direction that lowers their overlap Σ_j w_j w'_j most without
    changing the output or the sum of the row. A weight that becomes zero stays zero; the walk ends when the output
    determines the weights that are left. It need not find the twin that overlaps least.

    Args:
        weights: of one head or several, `(..., L_q, L_k)`; a weight of zero stays zero.
        values: of the same heads, `(..., L_k, d_v)`.

    Returns:
        `(..., L_q, L_k)`: not negative, rows sum to one, `distant_twin_weights(w, v) @ v` equals `w @ v`. A row that
        the output determines is as given.

    Raises:
        TypeError: weights and values are not floating-point tensors of one dtype.
        ValueError: weights and values do not fit together.

    Source: at most d_v + 1 keys are needed by Carathéodory's theorem (Rockafellar, 1970, section 17); the walk is the
    gradient projection of Rosen (1960).
    """
    _check_twins(weights, values)
    # One row per query, each with its own constraints: the keys in use differ from row to row.
    rows = weights.double().flatten(0, -2).clone()  # (N, L_k)
    constraints = torch.cat((values, torch.ones_like(values[..., :1])), dim=-1).double()  # (..., L_k, d_v + 1)
    constraints = constraints[..., None, :, :].expand(*weights.shape[:-1], -1, -1).flatten(0, -3)  # (N, L_k, d_v + 1)
    # Of equal weights every twin has the same overlap; the small term chooses one.
    downhill = -rows - 1e-6 * rows.amax(-1, keepdim=True) * torch.arange(rows.shape[-1]).cos()
    walking = torch.arange(len(rows))
    while len(walking):
        kept = rows[walking] > 0  # (n, L_k)
        here = constraints[walking] * kept[..., None]
        direction = _without_components(downhill[walking] * kept, here)
        limits = torch.where(direction < 0, rows[walking] / -direction, torch.inf)
        step, key = limits.min(-1)
        goes_on = (direction.norm(dim=-1) > 1e-9 * downhill[walking].norm(dim=-1)) & step.isfinite()
        walking, key = walking[goes_on], key[goes_on]
        rows[walking] = (rows[walking] + step[goes_on, None] * direction[goes_on]).clamp(min=0)
        rows[walking, key] = 0
    return rows.view(weights.shape).to(weights.dtype)


def _check_attention(attention: MultiHeadAttention, value: Tensor) -> None:
    if not isinstance(attention, MultiHeadAttention):
        raise TypeError(
            f"attention must be a MultiHeadAttention, got {got(attention)}; pass one sub-module of the model"
        )
    check_floats(value=value)
    if value.dim() != 3 or value.shape[-1] != attention.d_model:
        raise ValueError(
            f"value must be (batch, length, d_model = {attention.d_model}), got {tuple(value.shape)}; pass what the "
            f"module attends to"
        )


def _check_twins(weights: Tensor, values: Tensor, of_one_head: bool = False) -> None:
    check_axes(weights=weights, values=values)
    if of_one_head and not weights.dim() == values.dim() == 2:
        raise ValueError(
            f"weights must be (L_q, L_k) and values (L_k, d_v), got {tuple(weights.shape)} and {tuple(values.shape)}; "
            f"choose one head of one sentence"
        )
    if weights.shape[-1] != values.shape[-2] or weights.shape[:-2] != values.shape[:-2] or not weights.numel():
        raise ValueError(
            f"weights must have one column per row of values, of the same heads, and not be empty, got weights "
            f"{tuple(weights.shape)} and values {tuple(values.shape)}; take both from the same heads"
        )
    if not (weights.isfinite().all() and values.isfinite().all()) or (weights < 0).any():
        raise ValueError(
            "weights must not be negative, and weights and values must be finite, got others; look for NaN"
        )


def _without_components(vectors: Tensor, basis: Tensor) -> Tensor:
    """The part of each vector `(n, L)` that is orthogonal to the columns of its `(n, L, d)`, independent or not."""

    def removed(x: Tensor, columns: Tensor, solve) -> Tensor:
        return x - (columns @ solve(columns.mT @ columns, columns.mT @ x[..., None]))[..., 0]

    rest = removed(vectors, basis, lambda gram, y: torch.linalg.solve_ex(gram, y)[0])
    off = (basis.mT @ rest[..., None])[..., 0].norm(dim=-1)
    wrong = ~(off <= 1e-11 * basis.flatten(1).norm(dim=-1) * rest.norm(dim=-1))  # NaN is wrong too: dependent columns
    if wrong.any():
        rest[wrong] = vectors[wrong]
        for _ in range(2):  # what rounding leaves the first time is small beside the vector, not beside the rest
            rest[wrong] = removed(
                rest[wrong], basis[wrong], lambda gram, y: torch.linalg.pinv(gram, rtol=1e-11, hermitian=True) @ y
            )
    return rest
