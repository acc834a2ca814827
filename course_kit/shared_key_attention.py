"""Attention that keeps less per token: keys and values that several heads share, or one short vector."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from course_kit._checks import check_floats, check_instance, check_whole
from course_kit.nn import KeyValueCache, MultiHeadAttention
from course_kit.nn.attention import check_mask, fused_attention
from course_kit.window_cache import SlidingWindowCache
from course_lib._typing import Bool, Float
from course_lib.multi_head import merge_heads, split_heads

__all__ = ["GroupedQueryAttention", "LatentAttention"]


class GroupedQueryAttention(nn.Module):
    """Self-attention with fewer heads of keys and values than of queries: consecutive query heads share one.

    `output = Concat(head_1, …, head_H) W_O` with `head_h = Attention(X W_Q^h, X W_K^g, X W_V^g)` and
    `g = ⌊h / (H / G)⌋`, heads counted from 0. G = H is multi-head attention, G = 1 multi-query attention.

    Args:
        d_model: features of input and output.
        num_heads: H, heads of queries; divides d_model.
        num_kv_heads: G, heads of keys and values; divides H.
        bias: whether the four projections add a bias.

    Raises:
        TypeError: a size is not a whole number.
        ValueError: a size is less than 1, num_heads does not divide d_model, or num_kv_heads does not divide num_heads.

    Source: Ainslie et al. (2023), section 2.2; with one group, Shazeer (2019), section 3.
    """

    def __init__(self, d_model: int, num_heads: int, num_kv_heads: int, *, bias: bool = True):
        super().__init__()
        _check_sizes(d_model, num_heads, num_kv_heads)
        self.num_heads = num_heads
        self.num_kv_heads = num_kv_heads
        kv_features = d_model // num_heads * num_kv_heads
        self.q_proj = nn.Linear(d_model, d_model, bias=bias)
        self.k_proj = nn.Linear(d_model, kv_features, bias=bias)
        self.v_proj = nn.Linear(d_model, kv_features, bias=bias)
        self.out_proj = nn.Linear(d_model, d_model, bias=bias)

    def forward(
        self,
        x: Float[Tensor, "batch length d_model"],
        mask: Bool[Tensor, "..."] | None = None,
        *,
        cache: KeyValueCache | SlidingWindowCache | None = None,
    ) -> Float[Tensor, "batch length d_model"]:
        """`(B, L, d_model)` to `(B, L, d_model)`.

        Args:
            x: the tokens, `(B, L, d_model)`; with a cache, the new ones.
            mask: bool, True = may attend, broadcasts to `(B, 1, L, L_k)`: the same for all heads.
            cache: keys and values of earlier calls, to which x is added; L_k counts all of them.

        Raises:
            TypeError: x is not a floating-point tensor, or the mask is not bool.
            ValueError: a shape does not fit; the message says which.
        """
        _check_tokens(x, self.q_proj.in_features)
        query = split_heads(self.q_proj(x), self.num_heads)  # (B, H, L, d_head)
        key, value = (split_heads(p(x), self.num_kv_heads) for p in (self.k_proj, self.v_proj))  # (B, G, L, d_head)
        if cache is not None:
            key, value = cache.append(key, value)  # (B, G, L_k, d_head)
        return self.out_proj(merge_heads(_shared_attention(query, key, value, mask)))  # (B, L, d_model)

    @classmethod
    def from_multi_head(cls, attention: MultiHeadAttention, num_kv_heads: int) -> GroupedQueryAttention:
        """A copy of multi-head attention in which each group has the mean of its heads' keys and values.

        With as many groups as heads, the two modules compute the same. With fewer, the result is a start for further
        training.

        Raises:
            TypeError: attention is not a `MultiHeadAttention`, or num_kv_heads is not a whole number.
            ValueError: num_kv_heads does not divide the number of heads, or attention has a position code.

        Source: Ainslie et al. (2023), section 2.1.
        """
        check_instance(MultiHeadAttention, attention=attention)
        if attention.position is not None:
            raise ValueError(
                f"expected attention without a position code, got position={attention.position!r}; this module has none"
            )
        has_bias = attention.q_proj.bias is not None
        ours = cls(attention.d_model, attention.num_heads, num_kv_heads, bias=has_bias).to(attention.q_proj.weight)
        ours.q_proj.load_state_dict(attention.q_proj.state_dict())
        ours.out_proj.load_state_dict(attention.out_proj.state_dict())
        shape = (num_kv_heads, attention.num_heads // num_kv_heads, -1)  # (G, H / G, d_head)
        for name in ("k_proj", "v_proj"):
            theirs = getattr(attention, name).state_dict()  # the rows of weight and bias are heads
            pooled = {key: rows.unflatten(0, shape).mean(dim=1).flatten(0, 1) for key, rows in theirs.items()}
            getattr(ours, name).load_state_dict(pooled)
        return ours.train(attention.training)


class LatentAttention(nn.Module):
    """Self-attention whose keys and values are computed from one short vector per token, the latent, which is kept.

    `c_j = W_C x_j`, then head h has the key `W_K^h c_j` and the value `W_V^h c_j`. `forward` computes keys and values
    of all tokens; `absorbed` multiplies W_K^h into the query and W_V^h into the output instead, and attends to the
    latents themselves. Both return the same. There is no position code.

    Args:
        d_model: features of input and output.
        num_heads: H, divides d_model.
        d_latent: features of a latent.

    Raises:
        TypeError: a size is not a whole number.
        ValueError: a size is less than 1, or num_heads does not divide d_model.

    Source: DeepSeek-AI (2024), section 2.1.2; without the low rank of the queries and without section 2.1.3.
    """

    def __init__(self, d_model: int, num_heads: int, d_latent: int):
        super().__init__()
        _check_sizes(d_model, num_heads, num_heads)
        check_whole(d_latent=d_latent)
        self.num_heads = num_heads
        self.q_proj = nn.Linear(d_model, d_model, bias=False)
        self.down = nn.Linear(d_model, d_latent, bias=False)
        self.k_up = nn.Linear(d_latent, d_model, bias=False)
        self.v_up = nn.Linear(d_latent, d_model, bias=False)
        self.out_proj = nn.Linear(d_model, d_model, bias=False)

    def forward(
        self,
        x: Float[Tensor, "batch length d_model"],
        mask: Bool[Tensor, "..."] | None = None,
        *,
        latents: Float[Tensor, "batch past d_latent"] | None = None,
    ) -> tuple[Float[Tensor, "batch length d_model"], Float[Tensor, "batch len_k d_latent"]]:
        """Attend with the keys and values of all heads, computed from the latents.

        Args:
            x: the tokens, `(B, L, d_model)`; with earlier latents, the new ones.
            mask: bool, True = may attend, broadcasts to `(B, 1, L, L_k)`.
            latents: those of earlier tokens, `(B, L_k − L, d_latent)`.

        Returns:
            `(output, latents)`: `(B, L, d_model)`, and the latents of all tokens so far, `(B, L_k, d_latent)`.

        Raises:
            TypeError: x is not a floating-point tensor, or the mask is not bool.
            ValueError: a shape does not fit; the message says which.
        """
        query, latents = self._begin(x, latents)
        key, value = (split_heads(up(latents), self.num_heads) for up in (self.k_up, self.v_up))  # (B, H, L_k, d_head)
        heads = _shared_attention(query, key, value, mask)  # (B, H, L, d_head)
        return self.out_proj(merge_heads(heads)), latents

    def absorbed(
        self,
        x: Float[Tensor, "batch length d_model"],
        mask: Bool[Tensor, "..."] | None = None,
        *,
        latents: Float[Tensor, "batch past d_latent"] | None = None,
    ) -> tuple[Float[Tensor, "batch length d_model"], Float[Tensor, "batch len_k d_latent"]]:
        """The same output as `forward`, without computing any key or value: (W_K c) · q = c · (W_Kᵀ q)."""
        query, latents = self._begin(x, latents)
        d_head, d_latent = query.shape[-1], latents.shape[-1]
        k_up, v_up = (up.weight.unflatten(0, (self.num_heads, -1)) for up in (self.k_up, self.v_up))  # (H, d_head, r)
        # The scores are still those of keys with d_head features; attention would divide by √d_latent.
        query = query @ k_up * math.sqrt(d_latent / d_head)  # (B, H, L, d_latent)
        shared = latents[:, None]  # (B, 1, L_k, d_latent): one head of keys, which are the values too
        mixed = _shared_attention(query, shared, shared, mask)  # (B, H, L, d_latent)
        return self.out_proj(merge_heads(mixed @ v_up.mT)), latents

    def _begin(self, x: Tensor, latents: Tensor | None) -> tuple[Tensor, Tensor]:
        """The queries of x, `(B, H, L, d_head)`, and the latents of all tokens, `(B, L_k, d_latent)`."""
        _check_tokens(x, self.q_proj.in_features)
        new = self.down(x)  # (B, L, d_latent)
        if latents is not None:
            if latents.dim() != 3 or latents.shape[0] != len(x) or latents.shape[2] != new.shape[2]:
                raise ValueError(
                    f"latents must be ({len(x)}, L, {new.shape[2]}) for this x, got {tuple(latents.shape)}; pass what "
                    f"the call before returned"
                )
            new = torch.cat((latents, new), dim=1)  # (B, L_k, d_latent)
        return split_heads(self.q_proj(x), self.num_heads), new


def _shared_attention(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None) -> Tensor:
    """Queries `(B, H, L, d_k)`, keys `(B, G, L_k, d_k)` and values `(B, G, L_k, d_v)` to `(B, H, L, d_v)`."""
    shared_by, length = query.shape[1] // key.shape[1], query.shape[2]
    # The queries of all heads that share a key are rows of one matrix, so that no key has to be copied.
    rows = query.unflatten(1, (-1, shared_by)).flatten(2, 3)  # (B, G, H / G * L, d_k)
    if mask is not None:
        check_mask(mask, (len(query), 1, length, key.shape[2]))
        mask = torch.atleast_2d(mask)
        mask = mask.expand(*mask.shape[:-2], length, -1)
        mask = torch.cat([mask] * shared_by, dim=-2)  # (..., H / G * L, L_k)
    output = fused_attention(rows, key, value, mask)  # (B, G, H / G * L, d_v)
    return output.unflatten(2, (shared_by, length)).flatten(1, 2)  # (B, H, L, d_v)


def _check_sizes(d_model: int, num_heads: int, num_kv_heads: int) -> None:
    check_whole(d_model=d_model, num_heads=num_heads, num_kv_heads=num_kv_heads)
    if d_model % num_heads or num_heads % num_kv_heads:
        raise ValueError(
            f"num_heads must divide d_model and num_kv_heads must divide num_heads, got d_model = {d_model}, "
            f"num_heads = {num_heads} and num_kv_heads = {num_kv_heads}"
        )


def _check_tokens(x: Tensor, d_model: int) -> None:
    check_floats(x=x)
    if x.dim() != 3 or x.shape[-1] != d_model:
        raise ValueError(
            f"x must be (batch, length, d_model = {d_model}), got {tuple(x.shape)}; add a batch axis with x[None], or "
            f"build the module with the width of the input"
        )
