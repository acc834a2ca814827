"""Small random Llama and Qwen2 models of `transformers`, exact in float64, and their weights under our names."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor
from transformers import LlamaConfig, LlamaForCausalLM, Qwen2Config, Qwen2ForCausalLM

# Every size is a prime, but for what one must divide.
SIZES = {
    "vocab_size": 53, "hidden_size": 60, "intermediate_size": 31, "num_hidden_layers": 2, "num_attention_heads": 6,
    "num_key_value_heads": 2, "max_position_embeddings": 43, "rms_norm_eps": 1e-3,
    "bos_token_id": 0, "eos_token_id": 0, "pad_token_id": 0,
}  # fmt: skip
OURS = {
    "vocab_size": 53, "d_model": 60, "num_layers": 2, "num_heads": 6, "num_kv_heads": 2, "d_ff": 31,
    "base": 500.0, "eps": 1e-3,
}  # fmt: skip
_NAMES = {
    "model.embed_tokens.weight": "embedding.weight", "model.norm.weight": "norm.gain", "model.": "",
    "self_attn.o_proj": "attention.out_proj", "self_attn": "attention", "mlp.gate_proj": "feed_forward.gate",
    "mlp.up_proj": "feed_forward.up", "mlp.down_proj": "feed_forward.down",
    "input_layernorm.weight": "norm1.gain", "post_attention_layernorm.weight": "norm2.gain",
}  # fmt: skip


def llama(kind: str = "llama", **changes) -> LlamaForCausalLM | Qwen2ForCausalLM:
    """A model whose every parameter is random, so that none can be ignored."""
    config, model = {"llama": (LlamaConfig, LlamaForCausalLM), "qwen2": (Qwen2Config, Qwen2ForCausalLM)}[kind]
    settings = {**SIZES, "rope_theta": 500.0, "tie_word_embeddings": True, **changes}
    made = model(config(**settings)).eval()
    with torch.no_grad():
        for parameter in made.parameters():
            parameter.normal_(std=0.3)
    return made


def exact(model: LlamaForCausalLM) -> LlamaForCausalLM:
    """The same model in float64, without the places at which `transformers` rounds to float32."""
    for module in model.double().modules():
        if type(module).__name__.endswith("RMSNorm"):
            module.forward = lambda x, m=module: F.rms_norm(x, x.shape[-1:], m.weight, m.variance_epsilon)
        if type(module).__name__.endswith("RotaryEmbedding"):
            module.forward = lambda x, position_ids: _turns(position_ids, x.dtype)
    return model


def _turns(position_ids: Tensor, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    width = SIZES["hidden_size"] // SIZES["num_attention_heads"]
    angles = position_ids[..., None] / 500.0 ** (torch.arange(0, width, 2, dtype=dtype) / width)
    angles = torch.cat((angles, angles), dim=-1)
    return angles.cos(), angles.sin()


def our_names(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """Their tensors (parameters or gradients) under our names, with the features of each head in our order."""
    renamed = {}
    for name, tensor in tensors.items():
        for theirs, ours in _NAMES.items():
            name = name.replace(theirs, ours)
        if "q_proj" in name or "k_proj" in name:  # theirs turn features i and i + d/2, ours 2i and 2i + 1
            heads = tensor.unflatten(0, (-1, SIZES["hidden_size"] // SIZES["num_attention_heads"]))
            first, second = heads.chunk(2, dim=1)
            tensor = torch.stack((first, second), dim=2).flatten(0, 2)
        renamed[name] = tensor
    return {name: tensor for name, tensor in renamed.items() if not name.startswith("lm_head")}
