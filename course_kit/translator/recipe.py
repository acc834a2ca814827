"""A recipe: all that decides how a model is trained, in one small file that can be read, changed and kept."""

from __future__ import annotations

import dataclasses
import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Real
from pathlib import Path
from typing import Any, Literal

from course_kit._checks import check_number, check_seed, check_whole
from course_kit._files import read_whole
from course_kit.nn import TransformerConfig
from course_lib.training import warmup_rate

__all__ = ["Recipe", "check_shares"]


def check_shares(**shares: float) -> None:
    """Refuse what is not a share below 1, as label smoothing and BPE-dropout are.

    Raises:
        TypeError: one is not a number.
        ValueError: one is not in [0, 1).
    """
    for name, share in shares.items():
        check_number(name, share)
        if not 0 <= share < 1:
            raise ValueError(f"{name} must lie in [0, 1), got {share}")


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """Model, loss, schedule and length of a training run. The defaults are those of the translator in the package.

    Raises:
        TypeError: a number is of another type, such as 2.5 epochs.
        ValueError: a number is out of its range, or a choice is not among those that exist.
    """

    # the model
    vocab_size: int = 6000  # subwords of both languages together
    d_model: int = 128  # features of a token between layers
    num_heads: int = 4  # of 32 features each
    num_layers: int = 4  # in the encoder, and as many in the decoder
    d_ff: int = 512  # four times d_model
    dropout: float = 0.3  # high, because there is little data
    norm: Literal["post", "pre"] = "pre"  # "pre" is stable at a high learning rate
    positions: Literal["sinusoidal", "learned", "rotary", "alibi", "none"] = "rotary"  # the position code
    tie_embeddings: bool = True  # one matrix for source, target and output

    # the loss
    label_smoothing: float = 0.1  # as in the paper
    bpe_dropout: float = 0.0  # share of merges that are skipped at random, so that words split differently

    # the schedule
    epochs: int = 42  # passes over the training set
    max_tokens: int = 1024  # in a batch, padding included
    learning_rate: float = 3e-3  # the highest one
    embedding_rate: float = 3.0  # of the embeddings, if there are any, as a multiple of all else's
    warmup_steps: int = 600  # over which the rate rises
    schedule: Literal["cosine", "inverse_sqrt", "constant"] = "cosine"  # inverse_sqrt is the paper's
    betas: tuple[float, float] = (0.9, 0.98)  # of Adam, after the paper
    eps: float = 1e-9  # of Adam, after the paper
    weight_decay: float = 0.0  # 0 for none
    clip_norm: float = 1.0  # of all gradients together; 0 for no clipping

    # the run
    seed: int = 0  # of the initial weights, the order of the batches, and dropout
    precision: str = "auto"  # 16 bits where this machine computes faster with them, else 32; or a name of Lightning's

    def __post_init__(self):
        for name in ("vocab_size", "epochs", "max_tokens", "warmup_steps"):
            check_whole(**{name: getattr(self, name)})
        check_seed(self.seed)
        check_shares(label_smoothing=self.label_smoothing, bpe_dropout=self.bpe_dropout)
        for name in ("learning_rate", "embedding_rate", "eps", "clip_norm", "weight_decay"):
            value, may_be_zero = getattr(self, name), name in ("clip_norm", "weight_decay")
            if not isinstance(value, Real):
                raise TypeError(f"{name} must be a number, got {value!r}")
            if not 0 <= value < math.inf or (value == 0 and not may_be_zero):
                wanted = "finite and not negative" if may_be_zero else "positive and finite"
                raise ValueError(f"{name} must be {wanted}, got {value}")
        if not isinstance(self.betas, tuple | list) or not all(isinstance(beta, Real) for beta in self.betas):
            raise TypeError(f"betas must be two numbers, got {self.betas!r}")
        if len(self.betas) != 2 or not all(0 <= beta < 1 for beta in self.betas):
            raise ValueError(f"betas must be two numbers in [0, 1), got {self.betas}")
        choices = ("cosine", "inverse_sqrt", "constant")
        if self.schedule not in choices:
            raise ValueError(f"schedule must be one of {', '.join(choices)}, got {self.schedule!r}")
        self.model_config()  # checks the rest

    def model_config(self) -> TransformerConfig:
        """Sizes and choices of the model."""
        names = ("vocab_size", "d_model", "num_heads", "num_layers", "d_ff", "dropout", "norm", "positions")
        return TransformerConfig(tie_embeddings=self.tie_embeddings, **{name: getattr(self, name) for name in names})

    def rate(self, step: int, total_steps: int) -> float:
        """Learning rate at a step, counted from 1.

        A linear rise to `learning_rate` over the warm-up. Then the rate falls along a cosine to a hundredth at the last
        step (`cosine`), falls in proportion to `1 / √step` (`inverse_sqrt`, the paper's schedule scaled to this peak),
        or stays as it is (`constant`).
        """
        check_whole(step=step, total_steps=total_steps, least=0)
        if self.schedule == "inverse_sqrt":
            peak = warmup_rate(self.warmup_steps, self.d_model, self.warmup_steps)
            return self.learning_rate * warmup_rate(step, self.d_model, self.warmup_steps) / peak
        if step < self.warmup_steps:
            return self.learning_rate * step / self.warmup_steps
        if self.schedule == "constant":
            return self.learning_rate
        done = min(1.0, (step - self.warmup_steps) / max(1, total_steps - self.warmup_steps))
        return self.learning_rate * (0.01 + 0.99 * (1 + math.cos(math.pi * done)) / 2)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for YAML and JSON."""
        return {k: list(v) if isinstance(v, tuple) else v for k, v in dataclasses.asdict(self).items()}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Recipe:
        """A recipe from plain values; settings that are not given have their defaults.

        Raises:
            ValueError: a name is not known or a value is of another type.
        """
        fields = {f.name: f for f in dataclasses.fields(cls)}
        if unknown := [str(name) for name in values if name not in fields]:
            raise ValueError(f"a recipe has the settings {', '.join(fields)}; got {', '.join(unknown)}")
        clean: dict[str, Any] = {}
        for name, value in values.items():
            default = fields[name].default
            if isinstance(default, float):
                value = _number(value)
            if isinstance(default, tuple) and isinstance(value, list):
                value = tuple(_number(each) for each in value)
                if not all(isinstance(each, float) for each in value):
                    raise ValueError(f"{name} must be numbers, like {list(default)}, got {values[name]!r}")
            if type(value) is not type(default):
                raise ValueError(f"{name} must be of type {type(default).__name__}, like {default!r}, got {value!r}")
            clean[name] = value
        return cls(**clean)

    @classmethod
    def read(cls, path: str | Path) -> Recipe:
        """A recipe from a YAML file.

        Raises:
            OSError: there is no such file, or it cannot be read.
            ValueError: it is not YAML, gives a name twice, or contains a setting that a recipe does not have.
        """
        import yaml

        try:
            text = read_whole(path).decode("utf-8")
            values, lines = yaml.safe_load(text) or {}, yaml.compose(text, Loader=yaml.SafeLoader)
        except UnicodeDecodeError as error:
            raise ValueError(f"{path} must be UTF-8, got {error}") from None
        except (yaml.YAMLError, ValueError, RecursionError) as error:  # also an impossible date, or too deep a nesting
            raise ValueError(f"{path} is not YAML: {' '.join(str(error).split())}") from None
        if not isinstance(values, Mapping):
            raise ValueError(f"{path} must hold lines of the form `name: value`, got {type(values).__name__}")
        times = Counter(key.value for key, _ in lines.value) if lines else {}
        if twice := [name for name in times if times[name] > 1]:
            raise ValueError(
                f"{path} must give each name once, got {', '.join(twice)} more than once; keep one line each"
            )
        try:
            return cls.from_dict(values)
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from None


def _number(value: Any) -> Any:
    """As a float where it is meant as one: YAML takes 1 for a whole number, and 1e-3 for text."""
    try:
        return value if isinstance(value, bool) else float(value)
    except (TypeError, ValueError):
        return value
