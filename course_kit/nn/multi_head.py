"""Multi-head attention with all that models need: dropout, position codes, caches, and PyTorch's fused kernels."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from course_kit.nn.attention import attention_with_bias, fused_attention
from course_kit.nn.cache import KeyValueCache
from course_kit.nn.positions import AttentionPosition
from course_lib import multi_head as plain
from course_lib._checks import checked
from course_lib._typing import Float, Mask, Probability, Size
from course_lib.multi_head import merge_heads, split_heads

__all__ = ["MultiHeadAttention"]


@checked(
    batch="take query, key and value from the same batch",
    len_k="each key has one value",
    d_model="build the module with the width of the input",
)
class MultiHeadAttention(plain.MultiHeadAttention):
    """`course_lib.MultiHeadAttention` with further features; without them it computes the same.

    Its matrices start Xavier-uniform, which keeps the variance of signal and gradient, and its biases at zero.

    Args:
        d_model: features of queries, keys, values and output.
        num_heads: H, divides d_model.
        bias: whether the four projections add a bias.
        dropout: probability of dropping an attention weight while training.
        position: a position code that acts on queries, keys and scores, such as `RotaryPosition()`.

    Raises:
        ValueError: num_heads does not divide d_model.

    Source: Vaswani et al. (2017), section 3.2.2.
    """

    def __init__(
        self,
        d_model: Size,
        num_heads: Size,
        *,
        bias: bool = True,
        dropout: Probability = 0.0,
        position: AttentionPosition | None = None,
    ):
        super().__init__(d_model, num_heads)
        self.d_model = d_model
        self.dropout = dropout
        self.position = position
        for projection in (self.q_proj, self.k_proj, self.v_proj, self.out_proj):
            nn.init.xavier_uniform_(projection.weight)
            projection.bias = projection.bias if bias else None
            if bias:
                nn.init.zeros_(projection.bias)

    def forward(
        self,
        query: Float[Tensor, "batch len_q d_model"],
        key: Float[Tensor, "batch len_k d_model"],
        value: Float[Tensor, "batch len_k d_model"],
        mask: Mask["batch num_heads len_q len_all"] | None = None,
        *,
        need_weights: bool = True,
        cache: KeyValueCache | None = None,
    ) -> tuple[Float[Tensor, "batch len_q d_model"], Float[Tensor, "batch num_heads len_q len_all"] | None]:
        """Attend from every query to every key; self-attention is `forward(x, x, x)`.

        Args:
            query: what attends.
            key: what it attends to.
            value: what it takes from there.
            mask: bool, True = may attend: `(B, 1, 1, L_k)` for padding, `(L_q, L_k)` for causality.
            need_weights: False leaves attention to PyTorch, fused where possible, and returns None for the weights.
            cache: keys and values of earlier calls, to which these queries attend too; the mask covers all of them.

        Returns:
            `(output, weights)`.
        """
        q, k, v, bias = self._heads(query, key, value) if cache is None else self._cached(query, key, value, cache)
        dropout = self.dropout if self.training else 0.0
        if need_weights:
            heads, weights = attention_with_bias(q, k, v, mask, bias=bias, dropout=dropout)
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
        """What `_heads` returns, with keys and values of earlier calls from the cache."""
        if cache.is_full:
            return split_heads(self.q_proj(query), self.num_heads), cache.keys, cache.values, None
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


def _stacked_linear(x: Tensor, *linears: nn.Linear) -> tuple[Tensor, ...]:
    weight = torch.cat([linear.weight for linear in linears])
    bias = None if linears[0].bias is None else torch.cat([linear.bias for linear in linears])
    return F.linear(x, weight, bias).chunk(len(linears), dim=-1)
