"""Sizes and choices of an encoder of the BERT family, read from a `config.json`."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

import torch
import torch.nn.functional as F
from torch import Tensor

__all__ = ["ACTIVATIONS", "BertConfig", "Pooling", "read_config", "read_json", "read_pooling"]

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "gelu": F.gelu,
    "gelu_new": partial(F.gelu, approximate="tanh"),
    "gelu_pytorch_tanh": partial(F.gelu, approximate="tanh"),
    "relu": torch.relu,
    "silu": F.silu,
}

# Our name of each size, and the name that `config.json` has for it.
_SIZES = {
    "vocab_size": "vocab_size",
    "d_model": "hidden_size",
    "num_heads": "num_attention_heads",
    "num_layers": "num_hidden_layers",
    "d_ff": "intermediate_size",
    "max_positions": "max_position_embeddings",
}
_DISTILBERT_SIZES = _SIZES | {"d_model": "dim", "num_heads": "n_heads", "num_layers": "n_layers", "d_ff": "hidden_dim"}
# What a file that leaves an option out means: the defaults of the library that writes these files.
_OPTIONS = {
    "num_segments": ("type_vocab_size", 2),
    "pad_id": ("pad_token_id", 0),
    "activation": ("hidden_act", "gelu"),
    "norm_eps": ("layer_norm_eps", 1e-12),
    "dropout": ("hidden_dropout_prob", 0.1),
    "attention_dropout": ("attention_probs_dropout_prob", 0.1),
}
_DISTILBERT_OPTIONS = {
    "pad_id": ("pad_token_id", 0),
    "activation": ("activation", "gelu"),
    "dropout": ("dropout", 0.1),
    "attention_dropout": ("attention_dropout", 0.1),
}
_FAMILIES = {
    "bert": (_SIZES, _OPTIONS),
    "distilbert": (_DISTILBERT_SIZES, _DISTILBERT_OPTIONS),
    "roberta": (_SIZES, _OPTIONS | {"pad_id": ("pad_token_id", 1)}),
}
# More than any encoder has: what a damaged file asks for is refused before it is built.
_MOST = {"num_layers": 1_000}
_LARGEST = 10_000_000
# Options that change the computation, and the only value of each that the course's blocks compute.
_REQUIRED = {"position_embedding_type": "absolute", "is_decoder": False, "add_cross_attention": False}


@dataclass(frozen=True, kw_only=True)
class BertConfig:
    """Sizes and choices of a BERT, DistilBERT or RoBERTa encoder; MiniLM is a small BERT.

    Raises:
        ValueError: a size is less than 1 or beyond all encoders, num_heads does not divide d_model, a probability is
            not in [0, 1), pad_id is not in the vocabulary, the family or activation is unknown, or max_positions leaves
            no room for a token.
    """

    family: Literal["bert", "distilbert", "roberta"]
    vocab_size: int
    d_model: int
    num_heads: int
    num_layers: int
    d_ff: int
    max_positions: int  # rows of the table of positions
    num_segments: int = 0  # 0: no segment embedding, as in DistilBERT
    pad_id: int = 0
    activation: str = "gelu"
    norm_eps: float = 1e-12
    dropout: float = 0.1  # of the embedding and of the output of each sub-layer
    attention_dropout: float = 0.1

    def __post_init__(self):
        if not isinstance(self.family, str) or self.family not in _FAMILIES:
            raise ValueError(f"family must be one of {', '.join(_FAMILIES)}, got {self.family!r}")
        for name, lowest in (*((name, 1) for name in _SIZES), ("num_segments", 0), ("pad_id", 0)):
            value = getattr(self, name)
            if not isinstance(value, int) or isinstance(value, bool) or value < lowest:
                raise ValueError(f"{name} must be an integer of at least {lowest}, got {value!r}")
            if value > (most := _MOST.get(name, _LARGEST)):
                raise ValueError(f"{name} must be an integer of at most {most}, got {value}; the file is damaged")
        if self.d_model % self.num_heads:
            raise ValueError(f"num_heads must divide d_model, got {self.num_heads} for d_model = {self.d_model}")
        if self.pad_id >= self.vocab_size:
            raise ValueError(f"pad_id must be a token of the vocabulary, 0 … {self.vocab_size - 1}, got {self.pad_id}")
        if not isinstance(self.activation, str) or self.activation not in ACTIVATIONS:
            raise ValueError(f"activation must be one of {', '.join(ACTIVATIONS)}, got {self.activation!r}")
        if not isinstance(self.norm_eps, (int, float)) or not 0 < self.norm_eps < math.inf:
            raise ValueError(f"norm_eps must be positive and finite, got {self.norm_eps!r}")
        for name in ("dropout", "attention_dropout"):
            value = getattr(self, name)
            if not isinstance(value, (int, float)) or not 0.0 <= value < 1.0:
                raise ValueError(f"{name} must be a probability in [0, 1), got {value!r}")
        if self.max_length < 1:
            raise ValueError(f"max_positions must leave room for a token, got {self.max_positions}")

    @property
    def first_position(self) -> int:
        """Row of the first token in the table of positions: RoBERTa's tokens follow the row of its padding."""
        return self.pad_id + 1 if self.family == "roberta" else 0

    @property
    def max_length(self) -> int:
        """Most tokens of a sequence."""
        return self.max_positions - self.first_position


@dataclass(frozen=True)
class Pooling:
    """How a sentence's vector comes from those of its tokens, as its folder says."""

    mode: str = "mean"
    max_length: int | None = None  # longer sentences are cut; None: at the model's own longest


def read_config(path: Path) -> BertConfig:
    """The configuration in a `config.json` of a Hugging Face style folder.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: it is damaged, of another architecture, or has an option that the course's blocks do not compute.
    """
    content = read_json(path)
    family = content.get("model_type")
    if not isinstance(family, str) or family not in _FAMILIES:
        raise ValueError(
            f"{path}: expected the architecture (model_type) {', '.join(_FAMILIES)}, got {family!r}; only the BERT "
            f"family is loaded here"
        )
    for name, value in _REQUIRED.items():
        if content.get(name, value) != value:
            raise ValueError(
                f"{path}: {name} must be {value!r}, got {content[name]!r}; the course's encoder has no such option"
            )
    sizes, options = _FAMILIES[family]
    missing = [theirs for theirs in sizes.values() if theirs not in content]
    if missing:
        raise ValueError(f"{path} is incomplete: expected {', '.join(missing)}; fetch the file again")
    chosen = {ours: content[theirs] for ours, theirs in sizes.items()}
    chosen |= {ours: content.get(theirs, default) for ours, (theirs, default) in options.items()}
    try:
        return BertConfig(family=family, **chosen)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None


def read_pooling(folder: Path) -> Pooling:
    """How the folder of a sentence encoder says that its tokens are pooled; the mean where it says nothing.

    Raises:
        ValueError: a file that says so is damaged.
    """
    mode, max_length = "mean", None
    if (path := folder / "1_Pooling" / "config.json").is_file():
        content = read_json(path)
        chosen = [name for name, value in content.items() if name.startswith("pooling_mode_") and value]
        if chosen != ["pooling_mode_mean_tokens"]:
            mode = " and ".join(name.removeprefix("pooling_mode_") for name in chosen) or "none"
    if (path := folder / "sentence_bert_config.json").is_file():
        max_length = read_json(path).get("max_seq_length")
        if max_length is not None and (type(max_length) is not int or max_length < 1):
            raise ValueError(f"{path}: max_seq_length must be a positive integer, got {max_length!r}")
    return Pooling(mode, max_length)


def read_json(path: Path) -> dict[str, Any]:
    """The object in a JSON file.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: it holds something else.
    """
    if not path.is_file():
        raise FileNotFoundError(f"{path} is missing; expected it beside model.safetensors and tokenizer.json; fetch it")
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:  # no JSON or UTF-8, a number of too many digits, too deep lists
        raise ValueError(f"{path} is damaged: expected JSON, got something else ({error}); fetch it again") from None
    if not isinstance(content, dict):
        raise ValueError(f"{path} is damaged: expected a JSON object, got {type(content).__name__}; fetch it again")
    return content
