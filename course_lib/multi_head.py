"""Multi-head attention: several attentions side by side, each in its own slice of the features."""

from __future__ import annotations

from torch import Tensor, nn

from course_lib._checks import checked
from course_lib._typing import Count, Float, Mask, Shaped, Size
from course_lib.scaled_dot_product import scaled_dot_product_attention

__all__ = ["MultiHeadAttention", "merge_heads", "multi_head_parameter_count", "split_heads"]


@checked
def split_heads(
    x: Shaped[Tensor, "*batch length d_model"], num_heads: Size
) -> Shaped[Tensor, "*batch num_heads length d_head"]:
    """Give each head its contiguous slice of the features, and an axis of its own before the positions.

    Head h, counted from 0, takes features `h · d_head` to `(h + 1) · d_head − 1`, with `d_head = d_model / H`. The
    result is a view.

    Raises:
        ValueError: num_heads does not divide d_model.
    """
    d_model = x.shape[-1]
    if d_model % num_heads != 0:
        raise ValueError(f"num_heads must divide d_model, got {num_heads} for d_model = {d_model}")
    x = x.unflatten(-1, (num_heads, d_model // num_heads))  # (..., L, H, d_head)
    return x.transpose(-3, -2)  # (..., H, L, d_head)


@checked
def merge_heads(x: Shaped[Tensor, "*batch num_heads length d_head"]) -> Shaped[Tensor, "*batch length d_model"]:
    """Put the heads' features side by side again: the inverse of `split_heads`."""
    x = x.transpose(-3, -2)  # (..., L, H, d_head)
    return x.flatten(-2)  # (..., L, H * d_head)


@checked
def multi_head_parameter_count(d_model: Count, num_heads: int, bias: bool = True) -> int:
    """Parameters of `MultiHeadAttention`: four square matrices and their biases, however many heads share them.

    `4 · d_model²`, and `4 · d_model` more with biases.

    Raises:
        ValueError: num_heads does not divide d_model.
    """
    _check_divides(num_heads, d_model)
    weights = 4 * d_model * d_model  # all heads of a projection share one matrix, so their number does not matter
    return weights + 4 * d_model if bias else weights


def _check_divides(num_heads: int, d_model: int) -> None:
    if num_heads < 1 or d_model % num_heads:
        raise ValueError(f"num_heads must divide d_model, got {num_heads} for d_model = {d_model}")


@checked(
    batch="take query, key and value from the same batch",
    len_k="each key has one value",
    d_model="build the module with the width of the input",
)
class MultiHeadAttention(nn.Module):
    """Attend in `num_heads` subspaces at once, and mix the outputs of all heads.

    `MultiHead(Q, K, V) = Concat(head_1, …, head_H) W_O` with `head_h = Attention(Q W_Q^h, K W_K^h, V W_V^h)`, biases
    aside. Queries, keys and values have one Linear each, for all heads: rows 0 to `d_head − 1` of its weight belong to
    the first head, and so on. `course_kit.nn.MultiHeadAttention` also has dropout, position codes, a cache and
    PyTorch's fused kernels.

    Raises:
        ValueError: num_heads does not divide d_model.

    Source: Vaswani et al. (2017), section 3.2.2.
    """

    def __init__(self, d_model: Size, num_heads: Size):
        super().__init__()
        if d_model % num_heads != 0:
            raise ValueError(f"num_heads must divide d_model, got {num_heads} for d_model = {d_model}")
        self.num_heads = num_heads
        self.q_proj = nn.Linear(d_model, d_model)
        self.k_proj = nn.Linear(d_model, d_model)
        self.v_proj = nn.Linear(d_model, d_model)
        self.out_proj = nn.Linear(d_model, d_model)

    def forward(
        self,
        query: Float[Tensor, "batch len_q d_model"],
        key: Float[Tensor, "batch len_k d_model"],
        value: Float[Tensor, "batch len_k d_model"],
        mask: Mask["batch num_heads len_q len_k"] | None = None,
    ) -> tuple[Float[Tensor, "batch len_q d_model"], Float[Tensor, "batch num_heads len_q len_k"]]:
        """The output and the weights of all heads; self-attention is `forward(x, x, x)`.

        A mask is bool, True = may attend: `(B, 1, 1, L_k)` for padding, `(L_q, L_k)` for causality.
        """
        projected = (self.q_proj(query), self.k_proj(key), self.v_proj(value))  # (B, L, d_model) each
        q, k, v = (split_heads(x, self.num_heads) for x in projected)  # (B, H, L, d_head) each
        heads, weights = scaled_dot_product_attention(q, k, v, mask)  # (B, H, L_q, d_head)
        return self.out_proj(merge_heads(heads)), weights  # (B, L_q, d_model)
