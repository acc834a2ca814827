"""Read `model.safetensors` into the names of the course's blocks; no other format of weights is ever opened."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import torch
from torch import Tensor

from course_kit.bert.config import BertConfig

__all__ = ["WEIGHTS", "absent_weights", "parameter_names", "read_checkpoint"]

WEIGHTS = "model.safetensors"

# Our module, and theirs. {n} is the number of a layer.
_EMBEDDING = {
    "embedding.token": "embeddings.word_embeddings",
    "embedding.position": "embeddings.position_embeddings",
    "embedding.segment": "embeddings.token_type_embeddings",
    "embedding.norm": "embeddings.LayerNorm",
}
_BERT_LAYER = {
    "self_attention.q_proj": "encoder.layer.{n}.attention.self.query",
    "self_attention.k_proj": "encoder.layer.{n}.attention.self.key",
    "self_attention.v_proj": "encoder.layer.{n}.attention.self.value",
    "self_attention.out_proj": "encoder.layer.{n}.attention.output.dense",
    "norm1": "encoder.layer.{n}.attention.output.LayerNorm",
    "feed_forward.linear1": "encoder.layer.{n}.intermediate.dense",
    "feed_forward.linear2": "encoder.layer.{n}.output.dense",
    "norm2": "encoder.layer.{n}.output.LayerNorm",
}
_DISTILBERT_LAYER = {
    "self_attention.q_proj": "transformer.layer.{n}.attention.q_lin",
    "self_attention.k_proj": "transformer.layer.{n}.attention.k_lin",
    "self_attention.v_proj": "transformer.layer.{n}.attention.v_lin",
    "self_attention.out_proj": "transformer.layer.{n}.attention.out_lin",
    "norm1": "transformer.layer.{n}.sa_layer_norm",
    "feed_forward.linear1": "transformer.layer.{n}.ffn.lin1",
    "feed_forward.linear2": "transformer.layer.{n}.ffn.lin2",
    "norm2": "transformer.layer.{n}.output_layer_norm",
}
# A checkpoint of a model with a head has the encoder under the family's name, and these beside it.
_HEADS = (
    *("cls.", "lm_head.", "classifier.", "qa_outputs."),
    *("pre_classifier.", "vocab_transform.", "vocab_layer_norm.", "vocab_projector."),
)
# Counters that some versions of `transformers` saved along with the weights.
_COUNTERS = ("embeddings.position_ids", "embeddings.token_type_ids")
_FLOATS = ("F16", "BF16", "F32", "F64")


def parameter_names(config: BertConfig) -> dict[str, str]:
    """Our name of each parameter, and its name in a checkpoint of that family, pooler included."""
    modules = dict(_EMBEDDING)
    if not config.num_segments:
        del modules["embedding.segment"]
    layer = _DISTILBERT_LAYER if config.family == "distilbert" else _BERT_LAYER
    for n in range(config.num_layers):
        modules |= {f"layers.{n}.{ours}": theirs.format(n=n) for ours, theirs in layer.items()}
    if config.family != "distilbert":
        modules["pooler"] = "pooler.dense"
    names = {}
    for ours, theirs in modules.items():
        names[f"{ours}.weight"] = f"{theirs}.weight"
        if not ours.startswith("embedding.") or ours == "embedding.norm":  # a table has no bias
            names[f"{ours}.bias"] = f"{theirs}.bias"
    return names


def read_checkpoint(folder: Path, config: BertConfig, shapes: Mapping[str, tuple[int, ...]]) -> dict[str, Tensor]:
    """The parameters in a folder's `model.safetensors`, under our names and in float32.

    Heads for other tasks (such as the prediction of masked words) are left out. A checkpoint may lack the pooler, then
    the result has none. Everything is compared before the first tensor is read.

    Args:
        folder: with the file.
        config: says which tensors there must be.
        shapes: what each of our parameters must be like.

    Raises:
        FileNotFoundError: the folder has no such file.
        ValueError: the file is damaged, or a tensor is missing, unexpected, or of another shape or type.
    """
    from safetensors import SafetensorError, safe_open

    path = folder / WEIGHTS
    if not path.is_file():
        raise FileNotFoundError(absent_weights(folder))
    try:
        with safe_open(path, framework="pt") as file:
            found = _encoder_names(list(file.keys()), config.family, path)
            _check_counters({name: file.get_tensor(key) for name, key in found.items() if name in _COUNTERS}, path)
            names = _matching(config, {name for name in found if name not in _COUNTERS}, path)
            for ours, theirs in names.items():
                part = file.get_slice(found[theirs])
                shape, dtype = tuple(part.get_shape()), part.get_dtype()
                if shape != shapes[ours] or dtype not in _FLOATS:
                    raise ValueError(
                        f"{path}: {found[theirs]} must be floating-point {shapes[ours]} after config.json, got {dtype} "
                        f"{shape}; take both files from one model"
                    )
            return {ours: file.get_tensor(found[theirs]).float() for ours, theirs in names.items()}
    except SafetensorError as error:
        raise ValueError(f"{path} is damaged: it is not a whole safetensors file ({error}); fetch it again") from None


def absent_weights(folder: Path) -> str:
    """What to do about a folder without `model.safetensors`."""
    others = sorted(p.name for pattern in ("*.bin", "*.pt", "*.pth", "*.ckpt", "*.h5") for p in folder.glob(pattern))
    if (folder / f"{WEIGHTS}.index.json").is_file():
        return f"{folder} has its weights in several files; expected all of them in one {WEIGHTS}"
    if others:
        return (
            f"{folder} has no {WEIGHTS}, only {', '.join(others)}, which is never opened here, because such files are "
            f"pickles or similar and can run code; convert them to safetensors with a tool that you trust"
        )
    return f"{folder} has no {WEIGHTS}; fetch it again"


def _encoder_names(keys: list[str], family: str, path: Path) -> dict[str, str]:
    """The name of each tensor inside the encoder, and its key in the file; heads are left out."""
    prefix = f"{family}."
    inside = any(key.startswith(prefix) for key in keys)
    found: dict[str, str] = {}
    for key in keys:
        if inside and key.startswith(_HEADS):
            continue
        name = key.removeprefix(prefix) if inside else key
        # The first checkpoints of BERT call gain and bias of a layer norm gamma and beta.
        for old, new in (("LayerNorm.gamma", "LayerNorm.weight"), ("LayerNorm.beta", "LayerNorm.bias")):
            if name.endswith(old):
                name = name.removesuffix(old) + new
        if name in found:
            raise ValueError(f"{path} has the same tensor twice, as {found[name]} and {key}; expected it once")
        found[name] = key
    return found


def _matching(config: BertConfig, found: set[str], path: Path) -> dict[str, str]:
    """Our name and theirs of what is to be read: all parameters, but for a pooler that is not there at all."""
    names = parameter_names(config)
    if not any(name.startswith("pooler.") for name in found):
        names = {ours: theirs for ours, theirs in names.items() if not ours.startswith("pooler.")}
    missing, unexpected = sorted(set(names.values()) - found), sorted(found - set(names.values()))
    if missing or unexpected:
        parts = [f"{which} {_some(those)}" for which, those in (("lacks", missing), ("has also", unexpected)) if those]
        raise ValueError(
            f"{path} must hold the tensors of the {config.family} encoder of {config.num_layers} layers that "
            f"config.json describes, but it {' and '.join(parts)}; take both files from one model"
        )
    return names


def _check_counters(counters: dict[str, Tensor], path: Path) -> None:
    for name, counter in counters.items():
        expected = torch.arange(counter.numel()) if name.endswith("position_ids") else torch.zeros(counter.numel())
        if not torch.equal(counter.flatten().to(expected), expected):
            raise ValueError(f"{path}: {name} must count from 0 as in every BERT, got other positions or segments")


def _some(names: list[str]) -> str:
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return ", ".join(names[:3]) + more
