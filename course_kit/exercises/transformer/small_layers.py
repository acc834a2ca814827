"""Layers with weights small enough to be followed with a pencil, as cases have them."""

from __future__ import annotations

import torch
from torch import Tensor

__all__ = ["DECODER_OF_FOUR", "DECODER_OF_TWO", "ENCODER_OF_FOUR", "ENCODER_OF_TWO", "rows"]


def rows(text: str) -> Tensor:
    """A matrix from its rows, "1 0 / 0 1"; a single row is a vector."""
    numbers = [[float(number) for number in row.split()] for row in text.split("/")]
    return torch.tensor(numbers if len(numbers) > 1 else numbers[0])


def _state(**parts: dict[str, str]) -> dict[str, Tensor]:
    return {f"{part}.{name}": rows(text) for part, texts in parts.items() for name, text in texts.items()}


def _linear(weight: str, bias: str) -> dict[str, str]:
    return {"weight": weight, "bias": bias}


def _layers(**layers: tuple[str, str]) -> dict[str, str]:
    return {f"{layer}.{name}": text for layer, pair in layers.items() for name, text in _linear(*pair).items()}


ENCODER_OF_TWO = (
    (rows("-1 0 / -2 2 / 1 1")[None],),
    _state(
        self_attention=_layers(
            q_proj=("0 1 / -1 0", "0 0"),
            k_proj=("2 0 / 1 1", "0 0"),
            v_proj=("1 -1 / 0 -1", "0 0"),
            out_proj=("0 -1 / 2 0", "0 -1"),
        ),
        feed_forward=_layers(
            linear1=("0 1 / -1 0 / -1 1", "0 0 -1"),
            linear2=("1 0 0 / 0 1 1", "1 1"),
        ),
        norm1=_linear("0.5 0.5", "-1 -1"),
        norm2=_linear("-1 -1", "0 0"),
    ),
)


ENCODER_OF_FOUR = (
    (rows("3 -2 3 -1 / -2 2 2 -2")[None],),
    _state(
        self_attention=_layers(
            q_proj=("0 -1 0 0 / 0 0 1 0 / 1 0 0 0 / 0 -1 0 1", "0 0 -1 0"),
            k_proj=("0 0 0 1 / 0 0 2 0 / 2 0 0 0 / 0 1 0 0", "0 0 0 0"),
            v_proj=("0 1 0 0 / 0 0 0 1 / 0 0 1 -1 / 1 0 0 0", "0 0 1 0"),
            out_proj=("0 0 1 0 / 1 0 0 0 / 0 1 0 0 / 0 0 0 -1", "0 0 0 1"),
        ),
        feed_forward=_layers(
            linear1=("0 -1 0 -1 / 1 0 -1 0 / 0 1 0 0", "0 -1 0"),
            linear2=("0 0 -1 / 2 0 0 / 0 0 -1 / -1 1 0", "0 0 0 0"),
        ),
        norm1=_linear("1 0.5 2 1", "-1 0 0 0"),
        norm2=_linear("2 1 1 1", "0 0.5 0 0"),
    ),
)


DECODER_OF_TWO = (
    (
        rows("-2 3 / 2 -1")[None],
        rows("-2 -1 / 2 3 / 0 3")[None],
    ),
    _state(
        self_attention=_layers(
            q_proj=("2 -1 / 0 -1", "0 0"),
            k_proj=("0 1 / 1 0", "0 0"),
            v_proj=("0 1 / -1 0", "0 1"),
            out_proj=("0 -1 / -1 1", "1 0"),
        ),
        cross_attention=_layers(
            q_proj=("1 2 / 2 0", "1 0"),
            k_proj=("1 0 / 0 1", "-1 -1"),
            v_proj=("2 0 / 1 -1", "0 1"),
            out_proj=("1 -1 / 0 1", "-1 0"),
        ),
        feed_forward=_layers(
            linear1=("0 1 / 0 1 / -1 0", "1 1 0"),
            linear2=("-1 0 1 / 0 2 -1", "0 0"),
        ),
        norm1=_linear("1 1", "0.5 0"),
        norm2=_linear("1 0.5", "0.5 0"),
        norm3=_linear("0.5 1", "0 1"),
    ),
)


DECODER_OF_FOUR = (
    (
        rows("3 3 -2 2 / 2 2 1 3")[None],
        rows("-2 3 1 0 / 1 2 0 1 / -2 -1 -1 -2")[None],
    ),
    _state(
        self_attention=_layers(
            q_proj=("0 0 0 1 / 1 0 0 0 / 0 0 1 0 / 0 -1 0 0", "0 -1 0 -1"),
            k_proj=("-1 1 0 0 / 0 0 1 0 / 1 0 0 0 / 0 0 0 -1", "1 0 0 0"),
            v_proj=("0 0 1 0 / 1 2 0 0 / -1 0 0 0 / 0 0 0 2", "1 0 0 -1"),
            out_proj=("0 0 0 -1 / 0 0 -1 -1 / 1 0 0 0 / 0 2 0 0", "0 0 1 -1"),
        ),
        cross_attention=_layers(
            q_proj=("0 -1 0 0 / 1 0 0 0 / 0 0 1 0 / 0 0 0 1", "0 0 0 0"),
            k_proj=("0 1 0 0 / 0 0 1 0 / 0 0 0 1 / 1 0 0 0", "0 1 -1 0"),
            v_proj=("0 0 2 0 / 0 0 1 1 / 1 0 0 0 / 0 1 0 0", "1 -1 -1 0"),
            out_proj=("0 0 1 0 / 0 0 -1 2 / 0 1 0 0 / 1 0 0 0", "0 0 -1 1"),
        ),
        feed_forward=_layers(
            linear1=("1 0 0 1 / 0 0 2 0 / 0 -1 0 1", "-1 0 0"),
            linear2=("-1 0 0 / 1 0 1 / 0 1 0 / 0 -1 0", "0 0 0 0"),
        ),
        norm1=_linear("1 1 1 0.5", "-1 -1 -1 0"),
        norm2=_linear("1 -1 -1 -1", "0 0 0 0"),
        norm3=_linear("2 2 -1 2", "0.5 1 0 0"),
    ),
)
