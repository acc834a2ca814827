"""What decoding takes: a model in eval mode, sources of tokens, and a limit for each; wrong ones are refused here."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from numbers import Integral

import torch
from torch import Tensor, nn

from course_kit._checks import check_finite, check_instance, check_whole
from course_kit.nn import Transformer, TransformerConfig

__all__ = ["NOT_A_NUMBER", "check_length_penalty", "checked_source", "evaluating"]

MOST_TOKENS = 1_000_000  # of a hypothesis; room for all of them is made at once
NOT_A_NUMBER = (
    "expected logits that are numbers, got NaN from the model; look for NaN or infinity in its weights, or run it in a "
    "dtype of more range"
)


def check_length_penalty(length_penalty: float) -> None:
    """Refuse an exponent for which tokens^length_penalty is NaN or beyond the range of a float.

    Raises:
        TypeError: it is not a number.
        ValueError: it is not between −10 and 10.
    """
    check_finite("length_penalty", length_penalty, -10, 10)


@contextmanager
def evaluating(model: nn.Module) -> Iterator[None]:
    """Eval mode and no gradients inside; afterwards each module is in its own mode again."""
    if not isinstance(model, Transformer):
        raise TypeError(
            f"model must be a course_kit.nn.Transformer, which reads a source and generates a target, got "
            f"{type(model).__name__}"
        )
    training = [(module, module.training) for module in model.modules()]
    model.eval()
    try:
        with torch.no_grad():
            yield
    finally:
        for module, mode in training:
            module.training = mode


def checked_source(
    model: Transformer, source: Tensor, bos_id: int, eos_id: int, max_length: int | Sequence[int] | Tensor
) -> tuple[Tensor, list[int]]:
    """The source on the model's device, and a limit for each row."""
    config = model.config
    check_instance(Tensor, source=source)
    check_whole(bos_id=bos_id, eos_id=eos_id, least=-math.inf)
    if source.dim() != 2 or source.is_floating_point() or source.is_complex():
        raise ValueError(
            f"source must be integer ids (batch, length), got {source.dtype} {tuple(source.shape)}; for one sentence "
            f"add a batch axis with source[None]"
        )
    special = {"bos_id": bos_id, "eos_id": eos_id, "model.config.pad_id": config.pad_id}
    vocab_size = config.target_vocab_size or config.vocab_size
    for name, token in special.items():
        if not 0 <= token < vocab_size:
            raise ValueError(f"{name} must be a token of the vocabulary, 0 … {vocab_size - 1}, got {token}")
    if len(set(special.values())) < len(special):
        given = ", ".join(f"{name} = {token}" for name, token in special.items())
        raise ValueError(f"beginning, end and padding must be three different tokens, got {given}")
    source = source.to(model.output.weight.device, torch.int64)
    empty = (source == config.pad_id).all(1).nonzero()[:, 0].tolist()
    if empty:
        raise ValueError(
            f"each source must have at least one token that is not padding ({config.pad_id}), got none in row "
            f"{', '.join(map(str, empty[:5]))}{' …' if len(empty) > 5 else ''}; leave empty sentences out"
        )
    return source, _limits(max_length, len(source), config)


def _limits(max_length: int | Sequence[int] | Tensor, batch: int, config: TransformerConfig) -> list[int]:
    given = max_length.tolist() if isinstance(max_length, Tensor) else max_length
    limits = list(given) if isinstance(given, Sequence) else [given] * batch
    if len(limits) != batch:
        raise ValueError(f"max_length must be one number, or one for each of the {batch} sources, got {len(limits)}")
    wrong = [limit for limit in limits if not isinstance(limit, Integral) or not 1 <= limit <= MOST_TOKENS]
    if wrong:
        raise ValueError(
            f"max_length must be a whole number of at least 1 and at most {MOST_TOKENS}, got {wrong[0]}; the end "
            f"counts as a token"
        )
    if config.positions == "learned" and max(limits, default=0) > config.max_length:
        raise ValueError(
            f"max_length must be at most {config.max_length}, the positions that this model has learned, got "
            f"{max(limits)}; generate fewer tokens, or build the model with a larger config.max_length"
        )
    return limits
