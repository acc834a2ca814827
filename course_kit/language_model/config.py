"""Sizes and choices of a language model, from a `config.json` or from the metadata of a GGUF file."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

__all__ = ["LanguageModelConfig", "config_of_folder", "config_of_gguf"]

FAMILIES = ("llama", "qwen2")
_LARGEST = {"num_layers": 1_000}  # more than any model has: what a damaged file asks for is refused before it is built
_SIZES = {
    "vocab_size": ("vocab_size", ""),
    "d_model": ("hidden_size", "embedding_length"),
    "num_layers": ("num_hidden_layers", "block_count"),
    "num_heads": ("num_attention_heads", "attention.head_count"),
    "num_kv_heads": ("num_key_value_heads", "attention.head_count_kv"),
    "d_ff": ("intermediate_size", "feed_forward_length"),
    "max_length": ("max_position_embeddings", "context_length"),
}
# Options that change the computation, and the values of each that the course's blocks compute; None: it may be missing.
_REQUIRED = {
    "hidden_act": ("silu", None),
    "mlp_bias": (False, None),
    "use_sliding_window": (False, None),
    "quantization_config": (None,),
    "partial_rotary_factor": (1.0, None),
    "rope_interleaved": (False, None),
}


@dataclass(frozen=True, kw_only=True)
class LanguageModelConfig:
    """Sizes and choices of a language model of the families llama (Llama, SmolLM2) and qwen2.

    Raises:
        ValueError: the family is unknown, a size is less than 1 or beyond all models, heads do not fit, or base or eps
            is not positive and finite.
    """

    family: Literal["llama", "qwen2"]
    vocab_size: int
    d_model: int
    num_layers: int
    num_heads: int
    num_kv_heads: int
    d_ff: int
    max_length: int
    base: float = 10000.0
    eps: float = 1e-6
    tied: bool = False  # whether input and output share one table

    def __post_init__(self):
        if self.family not in FAMILIES:
            raise ValueError(f"family must be {' or '.join(FAMILIES)}, got {self.family!r}; only these are loaded here")
        for name in _SIZES:
            value, most = getattr(self, name), _LARGEST.get(name, 10_000_000)
            if type(value) is not int or not 1 <= value <= most:
                raise ValueError(f"{name} must be a whole number from 1 to {most}, got {value!r:.60}; fetch it again")
        for name in ("base", "eps"):
            value = getattr(self, name)
            if type(value) not in (int, float) or not 0 < value < math.inf:
                raise ValueError(f"{name} must be positive and finite, got {value!r:.60}; fetch the file again")
        if self.d_model % (2 * self.num_heads) or self.num_heads % self.num_kv_heads:
            raise ValueError(
                f"num_heads must divide d_model into even widths and be a multiple of num_kv_heads, got "
                f"{self.num_heads} for d_model = {self.d_model} and num_kv_heads = {self.num_kv_heads}"
            )
        if type(self.tied) is not bool:
            raise ValueError(f"tied must be True or False, got {self.tied!r:.60}")

    @property
    def d_head(self) -> int:
        """Features of a query, a key or a value."""
        return self.d_model // self.num_heads


def config_of_folder(content: Mapping[str, Any], name: str) -> LanguageModelConfig:
    """The configuration that a `config.json` describes.

    Args:
        content: of the file.
        name: what errors call it.

    Raises:
        ValueError: it is incomplete, of another architecture, or has an option that the course's blocks do not compute.
    """
    family = content.get("model_type")
    _check_family(family, name)
    rope, layers = _rope(content, name), content.get("layer_types") or []
    required = {**_REQUIRED, "attention_bias": (False, None) if family == "llama" else (True, False, None)}
    options = {option: (content.get(option), allowed) for option, allowed in required.items()}
    options["layer_types"] = (next((each for each in layers if each != "full_attention"), None), (None,))
    options["rope_type"] = (rope.get("rope_type", rope.get("type")), ("default", None))
    _check_options(options, name)
    chosen = {ours: content.get(theirs) for ours, (theirs, _) in _SIZES.items()}
    chosen["num_kv_heads"] = chosen["num_heads"] if chosen["num_kv_heads"] is None else chosen["num_kv_heads"]
    chosen["base"] = rope.get("rope_theta", content.get("rope_theta", 10000.0))
    chosen |= {"eps": content.get("rms_norm_eps", 1e-6), "tied": content.get("tie_word_embeddings", False)}
    config = _made(family, chosen, {ours: theirs for ours, (theirs, _) in _SIZES.items()}, name)
    _check_options({"head_dim": (content.get("head_dim"), (config.d_head, None))}, name)
    return config


def config_of_gguf(metadata: Mapping[str, Any], tensors: Mapping[str, Any], name: str) -> LanguageModelConfig:
    """The configuration that the metadata of a GGUF file describe; their names begin with the architecture.

    Raises:
        ValueError: they are incomplete, of another architecture, or have an option that the course's blocks do not
            compute.
    """
    family = metadata.get("general.architecture")
    _check_family(family, name)
    own = {key.removeprefix(f"{family}."): value for key, value in metadata.items() if key.startswith(f"{family}.")}
    names = {ours: f"{family}.{theirs}" for ours, (_, theirs) in _SIZES.items()}
    chosen = {ours: own.get(theirs) for ours, (_, theirs) in _SIZES.items()}
    chosen["num_kv_heads"] = own.get("attention.head_count_kv", chosen["num_heads"])
    chosen["vocab_size"] = len(tokens) if isinstance(tokens := metadata.get("tokenizer.ggml.tokens"), list) else None
    chosen |= {"base": own.get("rope.freq_base", 10000.0), "eps": own.get("attention.layer_norm_rms_epsilon")}
    chosen["tied"] = "output.weight" not in tensors
    config = _made(family, chosen, names, name)
    widths = ("rope.dimension_count", "attention.key_length", "attention.value_length")
    options = {f"{family}.{width}": (own.get(width), (config.d_head, None)) for width in widths}
    options[f"{family}.rope.scaling.type"] = (own.get("rope.scaling.type"), ("none", None))
    options[f"{family}.expert_count"] = (own.get("expert_count"), (0, None))
    _check_options(options, name)
    return config


def _check_family(family: object, name: str) -> None:
    if not isinstance(family, str) or family not in FAMILIES:
        raise ValueError(
            f"{name}: expected the architecture llama or qwen2, got {family!r:.60}; others do not load here"
        )


def _rope(content: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """The settings of rotary positions, where transformers 5 and where earlier versions have them."""
    rope = content.get("rope_parameters") or content.get("rope_scaling") or {}
    if not isinstance(rope, Mapping) or not isinstance(content.get("layer_types") or [], list):
        raise ValueError(f"{name} is damaged: expected an object as rope_parameters and a list as layer_types")
    return rope


def _check_options(options: Mapping[str, tuple[Any, tuple]], name: str) -> None:
    for option, (value, allowed) in options.items():
        if value not in allowed:
            expected = " or ".join("nothing" if each is None else repr(each) for each in allowed)
            raise ValueError(
                f"{name}: {option} must be {expected}, got {value!r:.60}; the course's blocks do not compute it"
            )


def _made(family: str, chosen: dict[str, Any], names: Mapping[str, str], name: str) -> LanguageModelConfig:
    if missing := [names.get(ours, ours) for ours, value in chosen.items() if value is None]:
        raise ValueError(f"{name} is incomplete: expected {', '.join(missing)}; fetch the file again")
    try:
        return LanguageModelConfig(family=family, **chosen)
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from None
