"""The transformer: its parts, and the whole model of Vaswani et al. (2017) from token ids to logits."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from course_lib._checks import check_that, checked
from course_lib._typing import Count, Float, Int, Mask, NotNegative, Size
from course_lib.masking import decoder_mask, padding_mask
from course_lib.multi_head import MultiHeadAttention
from course_lib.positional_encoding import sinusoidal_encoding

__all__ = ["DecoderLayer", "EncoderLayer", "FeedForward", "Transformer", "layer_norm", "transformer_parameter_count"]


@checked(d="gain and bias have one number per feature of x")
def layer_norm(
    x: Float[Tensor, "*batch d"], gain: Float[Tensor, " d"], bias: Float[Tensor, " d"], eps: NotNegative = 1e-5
) -> Float[Tensor, "*batch d"]:
    """Shift and scale each vector to mean 0 and variance 1 over its features, then apply a learned gain and bias.

    `y = gain · (x − mean) / √(variance + eps) + bias`; the variance is divided by d, not by d − 1, and eps keeps the
    root away from zero.

    Source: Ba, Kiros & Hinton (2016), equation 4.
    """
    centred = x - x.mean(-1, keepdim=True)
    variance = (centred * centred).mean(-1, keepdim=True)
    return centred * torch.rsqrt(variance + eps) * gain + bias


@checked(d_model="build the module with the width of the input")
class FeedForward(nn.Module):
    """The same two-layer network at every position: `FFN(x) = W_2 relu(W_1 x + b_1) + b_2`.

    Source: Vaswani et al. (2017), section 3.3.
    """

    def __init__(self, d_model: Size, d_ff: Size):
        super().__init__()
        self.linear1 = nn.Linear(d_model, d_ff)
        self.linear2 = nn.Linear(d_ff, d_model)

    def forward(self, x: Float[Tensor, "*batch d_model"]) -> Float[Tensor, "*batch d_model"]:
        """Apply the network to each position by itself."""
        return self.linear2(self.linear1(x).relu())  # (..., d_ff) between, (..., d_model) at the end


@checked(d_model="build the module with the width of the input")
class EncoderLayer(nn.Module):
    """Self-attention, then feed-forward, each with a residual connection and a layer norm.

    Post-norm, as in the paper: `x ← norm1(x + attention(x))`, then `x ← norm2(x + feed_forward(x))`.
    `course_kit.nn.EncoderLayer` also has pre-norm, dropout, position codes and a cache.

    Source: Vaswani et al. (2017), section 3.1.
    """

    def __init__(self, d_model: Size, num_heads: Size, d_ff: Size):
        super().__init__()
        self.self_attention = MultiHeadAttention(d_model, num_heads)
        self.feed_forward = FeedForward(d_model, d_ff)
        self.norm1 = nn.LayerNorm(d_model)
        self.norm2 = nn.LayerNorm(d_model)

    def forward(
        self, x: Float[Tensor, "batch length d_model"], mask: Mask["batch num_heads length length"] | None = None
    ) -> Float[Tensor, "batch length d_model"]:
        """Every position attends to those that the mask allows."""
        attended, _ = self.self_attention(x, x, x, mask)
        x = self.norm1(x + attended)  # (B, L, d_model), as everywhere
        return self.norm2(x + self.feed_forward(x))


@checked(d_model="build the module with the width of the input", batch="memory is the encoder's output for this batch")
class DecoderLayer(nn.Module):
    """Self-attention, then cross-attention to the encoder's output, then feed-forward; each with residual and norm.

    Source: Vaswani et al. (2017), section 3.1.
    """

    def __init__(self, d_model: Size, num_heads: Size, d_ff: Size):
        super().__init__()
        self.self_attention = MultiHeadAttention(d_model, num_heads)
        self.cross_attention = MultiHeadAttention(d_model, num_heads)
        self.feed_forward = FeedForward(d_model, d_ff)
        self.norm1 = nn.LayerNorm(d_model)
        self.norm2 = nn.LayerNorm(d_model)
        self.norm3 = nn.LayerNorm(d_model)

    def forward(
        self,
        x: Float[Tensor, "batch length d_model"],
        memory: Float[Tensor, "batch len_memory d_model"],
        self_mask: Mask["batch num_heads length length"] | None = None,
        memory_mask: Mask["batch num_heads length len_memory"] | None = None,
    ) -> Float[Tensor, "batch length d_model"]:
        """The target x attends to itself and to memory, the encoder's output.

        Pass a causal self_mask: without one, every position sees those after it.
        """
        attended, _ = self.self_attention(x, x, x, self_mask)
        x = self.norm1(x + attended)  # (B, L, d_model), as everywhere
        attended, _ = self.cross_attention(x, memory, memory, memory_mask)  # weights (B, H, L, L_memory)
        x = self.norm2(x + attended)
        return self.norm3(x + self.feed_forward(x))


@checked(vocab_size="a TransformerConfig goes to course_kit.nn.Transformer", len_source="memory is encode(source)")
class Transformer(nn.Module):
    """The whole model, from token ids to logits; the defaults are the paper's base model, without dropout.

    Source, target and output share one embedding (section 3.4). Padding is masked, and so is the target's future.
    `course_kit.nn.Transformer` takes a configuration: dropout, pre-norm, other positions, two vocabularies.

    Source: Vaswani et al. (2017), section 3 and table 3.
    """

    def __init__(
        self,
        vocab_size: Size,
        d_model: Size = 512,
        *,
        num_heads: Size = 8,
        d_ff: Size = 2048,
        num_layers: Size = 6,
        pad_id: Count = 0,
    ):
        super().__init__()
        check_that(pad_id < vocab_size, f"pad_id must be a token, 0 … {vocab_size - 1}", pad_id, "take one of them")
        self.pad_id = pad_id
        self.embedding = nn.Embedding(vocab_size, d_model)
        self.encoder = nn.ModuleList(EncoderLayer(d_model, num_heads, d_ff) for _ in range(num_layers))
        self.decoder = nn.ModuleList(DecoderLayer(d_model, num_heads, d_ff) for _ in range(num_layers))
        # With the smaller weights of nn.Linear, the loss would start far above log V.
        for parameter in self.parameters():
            if parameter.dim() > 1:
                nn.init.xavier_uniform_(parameter)
        nn.init.normal_(self.embedding.weight, std=d_model**-0.5)  # rows of length 1; `embed` scales them up

    def embed(self, tokens: Int[Tensor, "batch length"]) -> Float[Tensor, "batch length d_model"]:
        """The tokens' rows, scaled to a variance of 1 at the start of training, plus their positions."""
        check_in_vocabulary(tokens, self.embedding.num_embeddings)
        length, d_model = tokens.shape[1], self.embedding.embedding_dim
        x = self.embedding(tokens) * math.sqrt(d_model)  # (B, L, d_model)
        return x + sinusoidal_encoding(length, d_model).to(x)

    def encode(self, source: Int[Tensor, "batch len_source"]) -> Float[Tensor, "batch len_source d_model"]:
        """One vector per source token; each depends on the whole sentence."""
        x, mask = self.embed(source), padding_mask(source, self.pad_id)
        for layer in self.encoder:
            x = layer(x, mask)
        return x

    def decode(
        self,
        target: Int[Tensor, "batch len_target"],
        memory: Float[Tensor, "batch len_source d_model"],
        source: Int[Tensor, "batch len_source"],
    ) -> Float[Tensor, "batch len_target vocab_size"]:
        """Logits of the token after each target token, given `memory = encode(source)`."""
        x, self_mask = self.embed(target), decoder_mask(target, self.pad_id)
        memory_mask = padding_mask(source, self.pad_id)
        for layer in self.decoder:
            x = layer(x, memory, self_mask, memory_mask)
        return x @ self.embedding.weight.T  # (B, L_target, vocab_size)

    def forward(
        self, source: Int[Tensor, "batch len_source"], target: Int[Tensor, "batch len_target"]
    ) -> Float[Tensor, "batch len_target vocab_size"]:
        """Logits of the token after each target token."""
        return self.decode(target, self.encode(source), source)


def check_in_vocabulary(tokens: Tensor, vocab_size: int) -> None:
    """Refuse ids that an embedding of this size cannot look up."""
    if tokens.dtype not in (torch.int32, torch.int64):
        raise TypeError(f"tokens must be int64 or int32, got {tokens.dtype}; pass tokens.long()")
    if tokens.device.type == "cpu" and tokens.numel():  # reading a value off a GPU would wait for it
        low, high = int(tokens.min()), int(tokens.max())
        if low < 0 or high >= vocab_size:
            raise ValueError(
                f"tokens must be ids in 0 … {vocab_size - 1} (the vocabulary), got {low} … {high}; "
                f"tokenise with the vocabulary that the model was built for"
            )


@checked
def transformer_parameter_count(vocab_size: Count, d_model: Count, num_layers: Count, d_ff: Count) -> int:
    """Parameters of an encoder–decoder with one embedding shared by source, target and output, without final norms.

    With `d = d_model`, an attention has `4d² + 4d`, a feed-forward network `2 d d_ff + d_ff + d`, a norm `2d`, and the
    embedding `vocab_size · d`. An encoder layer consists of one attention, one feed-forward network and two norms; a
    decoder layer of two, one and three. The paper's base model (37000, 512, 6, 2048) has 63,082,496.
    """
    attention = 4 * d_model * d_model + 4 * d_model
    feed_forward = 2 * d_model * d_ff + d_ff + d_model
    norm = 2 * d_model
    encoder_layer = attention + feed_forward + 2 * norm
    decoder_layer = 2 * attention + feed_forward + 3 * norm
    return vocab_size * d_model + num_layers * (encoder_layer + decoder_layer)
