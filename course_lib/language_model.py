"""The block of today's language models: five changes to the pre-norm block, and what such models need.

The changes are RMS norm, no biases, a gated feed-forward network, rotary positions, and keys and values that several
heads share.
`course_kit.language_model` loads published weights into these classes.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from course_lib._checks import check_that, check_whole, checked, got
from course_lib._typing import Bool, Float, Int, NotNegative, Positive, Shaped, Size
from course_lib.masking import causal_mask
from course_lib.multi_head import merge_heads, split_heads
from course_lib.positional_encoding import apply_rotary
from course_lib.scaled_dot_product import scaled_dot_product_attention
from course_lib.transformer import check_in_vocabulary

__all__ = [
    "LanguageBlock",
    "LanguageModel",
    "RMSNorm",
    "RotaryAttention",
    "SwiGLU",
    "dequantise",
    "induction_score",
    "load_balancing_loss",
    "lora",
    "next_token_loss",
    "rms_norm",
    "swiglu",
]


@checked(d="gain has one number per feature of x")
def rms_norm(
    x: Float[Tensor, "*batch d"], gain: Float[Tensor, " d"], eps: NotNegative = 1e-5
) -> Float[Tensor, "*batch d"]:
    """A layer norm without mean and bias: `y = gain · x / √(mean(x²) + eps)`.

    Source: Zhang & Sennrich (2019), equation 4.
    """
    mean_square = (x * x).mean(-1, keepdim=True)
    return x * torch.rsqrt(mean_square + eps) * gain


@checked(d_model="build the module with the width of the input")
class RMSNorm(nn.Module):
    """`rms_norm` with a learned gain, which starts at one."""

    def __init__(self, d_model: Size, eps: NotNegative = 1e-5):
        super().__init__()
        self.gain, self.eps = nn.Parameter(torch.ones(d_model)), eps

    def forward(self, x: Float[Tensor, "*batch d_model"]) -> Float[Tensor, "*batch d_model"]:
        """Normalise each vector by itself."""
        return rms_norm(x, self.gain, self.eps)


@checked(d_model="pass weights as nn.Linear has them, (out, in)", d_ff="pass weights as nn.Linear has them, (out, in)")
def swiglu(
    x: Float[Tensor, "*batch d_model"],
    w_gate: Float[Tensor, "d_ff d_model"],
    w_up: Float[Tensor, "d_ff d_model"],
    w_down: Float[Tensor, "d_model d_ff"],
) -> Float[Tensor, "*batch d_model"]:
    """A feed-forward network in which one projection of x decides how much of another passes.

    `W_down (silu(W_gate x) ⊙ W_up x)` with `silu(z) = z · sigmoid(z)`.

    Source: Shazeer (2020), equation 6.
    """
    gate = F.silu(x @ w_gate.T)  # (..., d_ff)
    return (gate * (x @ w_up.T)) @ w_down.T


@checked(d_model="build the module with the width of the input")
class SwiGLU(nn.Module):
    """`swiglu` with its matrices; with d_ff = 8/3 · d_model, as many weights as `FeedForward` with 4 · d_model."""

    def __init__(self, d_model: Size, d_ff: Size):
        super().__init__()
        self.gate = nn.Linear(d_model, d_ff, bias=False)
        self.up = nn.Linear(d_model, d_ff, bias=False)
        self.down = nn.Linear(d_ff, d_model, bias=False)

    def forward(self, x: Float[Tensor, "*batch d_model"]) -> Float[Tensor, "*batch d_model"]:
        """Apply the network to each position by itself."""
        return self.down(F.silu(self.gate(x)) * self.up(x))  # (..., d_ff) between


@checked(d_model="build the module with the width of the input")
class RotaryAttention(nn.Module):
    """Causal self-attention with rotary positions, without biases; query heads share G = num_kv_heads keys and values.

    Query head h uses the keys and values of head ⌊h / (H / G)⌋, as in `grouped_query_attention`.

    Raises:
        ValueError: num_heads does not divide d_model into even widths, num_kv_heads does not divide num_heads, or in
            `forward` the cache is no dict or of another batch.

    Source: Su et al. (2024), section 3.2.2; Ainslie et al. (2023), section 2.2.
    """

    def __init__(self, d_model: Size, num_heads: Size, num_kv_heads: Size, base: Positive = 10000.0):
        super().__init__()
        check_that(
            d_model % (2 * num_heads) == 0, f"num_heads must divide d_model = {d_model} into even widths", num_heads
        )
        check_that(num_heads % num_kv_heads == 0, f"num_kv_heads must divide num_heads = {num_heads}", num_kv_heads)
        self.num_heads, self.num_kv_heads, self.base = num_heads, num_kv_heads, base
        d_kv = d_model // num_heads * num_kv_heads
        self.q_proj = nn.Linear(d_model, d_model, bias=False)
        self.k_proj = nn.Linear(d_model, d_kv, bias=False)
        self.v_proj = nn.Linear(d_model, d_kv, bias=False)
        self.out_proj = nn.Linear(d_model, d_model, bias=False)

    def forward(
        self, x: Float[Tensor, "batch length d_model"], cache: dict | None = None
    ) -> tuple[Float[Tensor, "batch length d_model"], Float[Tensor, "batch num_heads length len_k"]]:
        """The output and the weights of all heads.

        A cache is a dict, empty at first, in which each module stores its keys and values; x continues earlier calls.
        """
        q = split_heads(self.q_proj(x), self.num_heads)  # (B, H, L, d_head)
        k, v = (split_heads(project(x), self.num_kv_heads) for project in (self.k_proj, self.v_proj))  # (B, G, L, …)
        check_that(isinstance(cache, dict | None), "cache must be a dict, empty at first", got(cache), "pass {}")
        past_k, past_v = (cache or {}).get(self, (k[:, :, :0], v[:, :, :0]))
        check_that(len(past_k) == len(x), f"cache must be of a batch of {len(x)}, as x is", len(past_k), "empty it")
        start, end = past_k.shape[2], past_k.shape[2] + x.shape[1]
        positions = torch.arange(start, end, device=x.device)  # (L,)
        q, k = apply_rotary(q, positions, self.base), apply_rotary(k, positions, self.base)
        k, v = torch.cat((past_k, k), dim=2), torch.cat((past_v, v), dim=2)  # (B, G, L_k, d_head)
        if cache is not None:
            cache[self] = k, v
        k, v = (shared.repeat_interleave(self.num_heads // self.num_kv_heads, dim=1) for shared in (k, v))
        heads, weights = scaled_dot_product_attention(q, k, v, causal_mask(end)[start:].to(x.device))
        return self.out_proj(merge_heads(heads)), weights  # (B, L, d_model), (B, H, L, L_k)


@checked(d_model="build the module with the width of the input")
class LanguageBlock(nn.Module):
    """Pre-norm: `x ← x + attention(norm1(x))`, then `x ← x + feed_forward(norm2(x))`.

    Source: Touvron et al. (2023), section 2.2.
    """

    def __init__(
        self,
        d_model: Size,
        num_heads: Size,
        num_kv_heads: Size,
        d_ff: Size,
        base: Positive = 10000.0,
        eps: NotNegative = 1e-5,
    ):
        super().__init__()
        self.attention = RotaryAttention(d_model, num_heads, num_kv_heads, base)
        self.feed_forward = SwiGLU(d_model, d_ff)
        self.norm1, self.norm2 = RMSNorm(d_model, eps), RMSNorm(d_model, eps)

    def forward(
        self, x: Float[Tensor, "batch length d_model"], cache: dict | None = None
    ) -> Float[Tensor, "batch length d_model"]:
        """Every position attends to itself, to those before it, and to those in the cache."""
        x = x + self.attention(self.norm1(x), cache)[0]  # (B, L, d_model), as everywhere
        return x + self.feed_forward(self.norm2(x))


@checked
class LanguageModel(nn.Module):
    """The decoder that writes: token ids to logits of the next token, with one table for input and output.

    Source: Touvron et al. (2023), section 2.2; the shared table is that of Press & Wolf (2017).
    """

    def __init__(
        self,
        vocab_size: Size,
        d_model: Size,
        *,
        num_layers: Size,
        num_heads: Size,
        num_kv_heads: Size,
        d_ff: Size,
        base: Positive = 10000.0,
        eps: NotNegative = 1e-5,
    ):
        super().__init__()
        self.embedding = nn.Embedding(vocab_size, d_model)
        nn.init.normal_(self.embedding.weight, std=0.02)  # logits start small
        sizes = (d_model, num_heads, num_kv_heads, d_ff, base, eps)
        self.layers = nn.ModuleList(LanguageBlock(*sizes) for _ in range(num_layers))
        self.norm = RMSNorm(d_model, eps)

    def forward(
        self, tokens: Int[Tensor, "batch length"], cache: dict | None = None
    ) -> Float[Tensor, "batch length vocab_size"]:
        """Logits of the token after each token; to continue a text, pass the same dict as cache, empty at first."""
        check_in_vocabulary(tokens, self.embedding.num_embeddings)
        x = self.embedding(tokens)  # (B, L, d_model)
        for layer in self.layers:
            x = layer(x, cache)
        return self.norm(x) @ self.embedding.weight.T  # (B, L, vocab_size)


@checked(length="logits and tokens are of one text", batch="logits and tokens are of one text")
def next_token_loss(
    logits: Float[Tensor, "batch length vocab"],
    tokens: Int[Tensor, "batch length"],
    counted: Bool[Tensor, "batch length"] | None = None,
) -> Float[Tensor, ""]:
    """The mean of `−log p(y_{t+1} | y_0 … y_t)` in nats, where `logits[:, t]` predict y_{t+1}; y_0 is not predicted.

    In packed text, documents follow each other in a row; `counted` is False for tokens that are not to be predicted,
    such as the first of each document, and for padding, which has to be an id of the vocabulary, too.

    Raises:
        ValueError: an id is not in the vocabulary, or no token after the first is counted.
    """
    check_in_vocabulary(tokens, logits.shape[-1])
    counted = torch.ones_like(tokens, dtype=torch.bool) if counted is None else counted
    check_that(counted[:, 1:].any(), "tokens must have one after the first that is counted", tokens, "leave it out")
    log_probs = logits[:, :-1].log_softmax(dim=-1)  # (B, L - 1, V)
    losses = -log_probs.gather(-1, tokens[:, 1:, None].long())[..., 0]  # (B, L - 1)
    return losses[counted[:, 1:]].mean()


@checked
def dequantise(blocks: Shaped[Tensor, "n num_bytes"], kind: str) -> Float[Tensor, "n 32"]:
    """The 32 numbers of each block of a quantised matrix, in float32, from the bytes of the blocks (uint8).

    A block begins with its scale s, a float16 of two bytes. `Q8_0`, 34 bytes: 32 int8 q follow, for numbers `s · q`.
    `Q4_0`, 18 bytes: 16 bytes follow; q_j is the lower half of byte j and q_{j+16} its upper half, both in 0 … 15, for
    numbers `s · (q − 8)`.

    Raises:
        ValueError: kind is neither of the two, or blocks are not uint8 of its size.

    Source: the library ggml, whose format GGUF is.
    """
    check_that(kind in ("Q4_0", "Q8_0"), "kind must be Q4_0 or Q8_0", repr(kind))
    _check_blocks(blocks, {"Q4_0": 18, "Q8_0": 34}[kind])
    scale = blocks[:, :2].contiguous().view(torch.float16).float()  # (n, 1)
    if kind == "Q8_0":
        return scale * blocks[:, 2:].view(torch.int8)  # (n, 32)
    halves = torch.cat((blocks[:, 2:] & 15, blocks[:, 2:] >> 4), dim=1)  # (n, 32)
    return scale * (halves.float() - 8)


def _check_blocks(blocks: Tensor, size: int) -> None:
    fits = blocks.dtype == torch.uint8 and blocks.shape[1] == size
    check_that(fits, f"blocks must be bytes, uint8 (n, {size}) with a block in each row", got(blocks), "reshape them")


@checked(length="weights of self-attention are square")
def induction_score(weights: Float[Tensor, "*batch length length"], period: Size) -> Float[Tensor, "*batch"]:
    """How much a head looks at what followed a token's last occurrence: `1 / P · Σ_{i ≥ L − P} w_{i, i − P + 1}`.

    The last 2 P tokens are P random ones, twice: query i has its own token at i − P.

    Raises:
        ValueError: 2 P is more than the length.

    Source: Olsson et al. (2022), section "Definition of induction heads".
    """
    check_whole(period=period, most=weights.shape[-1] // 2, hint="; the last 2 · period tokens are those repeated")
    return weights.diagonal(offset=1 - period, dim1=-2, dim2=-1)[..., -period:].mean(-1)  # (...)


@checked(d_in="weight and a have the width of x", d_out="b has the rows of weight", rank="a and b have one rank")
def lora(
    x: Float[Tensor, "*batch d_in"],
    weight: Float[Tensor, "d_out d_in"],
    a: Float[Tensor, "rank d_in"],
    b: Float[Tensor, "d_out rank"],
    alpha: Positive,
) -> Float[Tensor, "*batch d_out"]:
    """A linear map plus an update of low rank r, which is all that is trained: `y = W x + alpha / r · B A x`.

    It equals `(W + alpha / r · B A) x`. B begins with zeros.

    Raises:
        ValueError: the rank is 0.

    Source: Hu et al. (2022), section 4.1, equation 3.
    """
    check_that(len(a) > 0, "a must have at least one row", a, "choose a rank of 1 or more")
    return x @ weight.T + alpha / len(a) * (x @ a.T @ b.T)  # (..., d_out); (..., r) between


@checked(tokens="one expert is chosen per token")
def load_balancing_loss(
    router_probs: Float[Tensor, "tokens experts"], chosen: Int[Tensor, " tokens"]
) -> Float[Tensor, ""]:
    """How unevenly tokens are spread over N experts: `N · Σ_e f_e · P_e`, at most N.

    f_e is the share of the tokens that are sent to expert e, P_e the mean of its probability. The result is 1 if either
    is uniform, and less where tokens go to improbable experts. Gradients pass through P.

    Raises:
        ValueError: there is no token or no expert, or one that is chosen does not exist.

    Source: Fedus, Zoph & Shazeer (2022), equations 4 to 6, without the factor α.
    """
    _check_chosen(router_probs, chosen)
    num_experts = router_probs.shape[1]
    share = F.one_hot(chosen.long(), num_experts).to(router_probs).mean(0)  # (N,)
    return num_experts * (share * router_probs.mean(0)).sum()


def _check_chosen(router_probs: Tensor, chosen: Tensor) -> None:
    check_that(router_probs.numel() > 0, "router_probs must have a token and an expert", router_probs)
    first, last, most = int(chosen.min()), int(chosen.max()), router_probs.shape[1] - 1
    check_that(first >= 0 and last <= most, f"chosen must be experts 0 … {most}", f"{first} … {last}")
