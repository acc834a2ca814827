"""The building blocks of the mistakes in `sinusoidal_encoding`."""

from __future__ import annotations

import torch
from torch import Tensor

from course_lib.exercises.positional_encoding.angles import angle_of

__all__ = ["table"]


def _interleaved(first: Tensor, second: Tensor, width: int) -> Tensor:
    return torch.stack((first, second), dim=-1).flatten(-2)[:, :width].float()


def table(angle=angle_of, first=torch.sin, second=torch.cos, join=_interleaved):
    """The encoding with one step replaced."""

    def encoding(length, d_model):
        two_i = torch.arange(0, d_model, 2, dtype=torch.float64)
        angles = angle(torch.arange(length, dtype=torch.float64)[:, None], two_i, d_model)
        return join(first(angles), second(angles), d_model)

    return encoding
