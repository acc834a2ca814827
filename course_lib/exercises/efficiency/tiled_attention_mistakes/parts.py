"""The building blocks of the mistakes in `tiled_attention`."""

from __future__ import annotations

import math

import torch

from course_lib.exercises.efficiency.online_softmax_step_mistakes.parts import step_with

__all__ = ["by_softmax_of_blocks", "cut", "started", "tiled_with"]


def cut(key, value, block_size):
    """Pairs of the keys and the values of a block."""
    return list(zip(key.split(block_size, dim=-2), value.split(block_size, dim=-2), strict=True))


def started(query, value):
    """The state before the first block."""
    maximum = query.new_full(query.shape[:-1], -math.inf)
    return maximum, torch.zeros_like(maximum), query.new_zeros(*query.shape[:-1], value.shape[-1])


def tiled_with(
    *,
    blocks=cut,
    divisor=lambda query, key, value, block_size: math.sqrt(query.shape[-1]),
    start=started,
    step=None,
    finish=lambda maximum, total, output: output / total[..., None],
):
    """Attention in tiles with parts replaced; unchanged, it is right."""
    step = step or step_with()

    def attention(query, key, value, block_size):
        state = start(query, value)
        scaled = query / divisor(query, key, value, block_size)
        for keys, values in blocks(key, value, block_size):
            state = step(*state, scaled @ keys.transpose(-2, -1), values)
        return finish(*state)

    return attention


def by_softmax_of_blocks(combine):
    """Ordinary attention within each block; `combine` is given the outputs, their numbers of keys, and L_k."""

    def attention(query, key, value, block_size):
        pairs = cut(key, value, block_size)
        scaled = query / math.sqrt(query.shape[-1])
        outputs = [(scaled @ keys.transpose(-2, -1)).softmax(-1) @ values for keys, values in pairs]
        return combine(outputs, [keys.shape[-2] for keys, _ in pairs], key.shape[-2])

    return attention
