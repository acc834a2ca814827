"""The course's `LanguageModel` step by step with PyTorch's fused kernels, for writing.

`fused_logits` reads the parameters of a `LanguageModel` and computes the same logits, but those of the last token only.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from course_kit.language_model.config import LanguageModelConfig
from course_lib._typing import Float, Int
from course_lib.language_model import LanguageModel

__all__ = ["PastKeys", "UntiedLanguageModel", "empty_model", "fused_logits"]


class UntiedLanguageModel(LanguageModel):
    """A `LanguageModel` whose output has a table of its own."""

    def __init__(self, vocab_size: int, d_model: int, **sizes: float):
        super().__init__(vocab_size, d_model, **sizes)
        self.output = nn.Linear(d_model, vocab_size, bias=False)

    def forward(
        self, tokens: Int[Tensor, "batch length"], cache: dict | None = None
    ) -> Float[Tensor, "batch length vocab_size"]:
        """Logits of the token after each token, as in `LanguageModel.forward`."""
        x = self.embedding(tokens)  # (B, L, d_model)
        for layer in self.layers:
            x = layer(x, cache)
        return self.output(self.norm(x))


def empty_model(config: LanguageModelConfig) -> LanguageModel:
    """A model of this configuration on the device "meta", without memory for its parameters."""
    kind = LanguageModel if config.tied else UntiedLanguageModel
    sizes = {"num_layers": config.num_layers, "num_heads": config.num_heads, "num_kv_heads": config.num_kv_heads}
    with torch.device("meta"):
        model = kind(config.vocab_size, config.d_model, d_ff=config.d_ff, base=config.base, eps=config.eps, **sizes)
        for layer in model.layers if config.family == "qwen2" else ():  # its queries, keys and values have biases
            for name in ("q_proj", "k_proj", "v_proj"):
                plain = getattr(layer.attention, name)
                setattr(layer.attention, name, nn.Linear(plain.in_features, plain.out_features))
    return model


class PastKeys:
    """Keys and values of all layers with memory for `capacity` positions from the start.

    Args:
        model: whose keys they will be.
        capacity: most positions.
    """

    def __init__(self, model: LanguageModel, capacity: int):
        attention = model.layers[0].attention
        weight = attention.k_proj.weight
        d_head = len(weight) // attention.num_kv_heads
        shape = len(model.layers), 1, attention.num_kv_heads, capacity, d_head
        self.length = 0
        self.keys, self.values = weight.new_zeros(shape), weight.new_zeros(shape)
        frequency = attention.base ** (-torch.arange(0, d_head, 2, dtype=torch.float64) / d_head)  # (d_head / 2,)
        angle = torch.arange(capacity, dtype=torch.float64)[:, None] * frequency  # (capacity, d_head / 2)
        # To turn the pair (x_2i, x_2i+1) is to multiply x_2i + x_2i+1 · i by a number of length 1.
        self.turns = torch.polar(torch.ones_like(angle), angle).to(torch.promote_types(weight.dtype, torch.complex32))


@torch.inference_mode()
def fused_logits(model: LanguageModel, tokens: Int[Tensor, "1 length"], past: PastKeys) -> Float[Tensor, " vocab_size"]:
    """Logits of the token after the last one; the tokens continue the past, which remembers them.

    Args:
        model: in float32 or float64, on the CPU.
        tokens: of one text, those since the last call.
        past: of this text.
    """
    start, length = past.length, tokens.shape[1]
    past.length = end = start + length
    turns = past.turns[start:end]  # (L, d_head / 2)
    mask = torch.ones(length, end, dtype=torch.bool).tril(start) if start and length > 1 else None
    x = F.embedding(tokens, model.embedding.weight)  # (1, L, d_model)
    for layer, keys, values in zip(model.layers, past.keys, past.values, strict=True):
        attention, network = layer.attention, layer.feed_forward
        h = F.rms_norm(x, x.shape[-1:], layer.norm1.gain, layer.norm1.eps)
        q, k, v = (
            F.linear(h, project.weight, project.bias).view(1, length, heads, -1).transpose(1, 2)
            for project, heads in (
                (attention.q_proj, attention.num_heads),
                (attention.k_proj, attention.num_kv_heads),
                (attention.v_proj, attention.num_kv_heads),
            )
        )  # (1, H or G, L, d_head)
        keys[:, :, start:end], values[:, :, start:end] = _turned(k, turns), v
        q, k, v = _turned(q, turns), keys[:, :, :end], values[:, :, :end]
        if length == 1:  # the query heads that share keys are queries of one head
            heads = F.scaled_dot_product_attention(q.view(1, attention.num_kv_heads, -1, q.shape[-1]), k, v)
        else:
            heads = F.scaled_dot_product_attention(q, k, v, mask, is_causal=mask is None, enable_gqa=True)
            heads = heads.transpose(1, 2)
        x = x + F.linear(heads.reshape(1, length, -1), attention.out_proj.weight)
        h = F.rms_norm(x, x.shape[-1:], layer.norm2.gain, layer.norm2.eps)
        passed = F.silu(F.linear(h, network.gate.weight), inplace=True).mul_(F.linear(h, network.up.weight))
        x = x + F.linear(passed, network.down.weight)
    x = F.rms_norm(x[:, -1:], x.shape[-1:], model.norm.gain, model.norm.eps)
    table = model.output.weight if isinstance(model, UntiedLanguageModel) else model.embedding.weight
    return F.linear(x, table)[0, 0]


def _turned(x: Tensor, turns: Tensor) -> Tensor:
    pairs = torch.view_as_complex(x.unflatten(-1, (-1, 2)))  # (1, H, L, d_head / 2)
    return torch.view_as_real(pairs * turns).flatten(-2)
