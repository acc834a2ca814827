"""Mistakes in `tiled_attention`: how keys and values are cut into blocks."""

from __future__ import annotations

import math

import torch

from course_lib.exercises._mistakes import Mistakes
from course_lib.exercises.efficiency.tiled_attention_mistakes.parts import cut, tiled_with

mistake = Mistakes()


def _from_starts(starts, size=lambda block_size: block_size):
    """Blocks that begin at these keys."""

    def blocks(key, value, block_size):
        width = size(block_size)
        return [(key[..., i : i + width, :], value[..., i : i + width, :]) for i in starts(key.shape[-2], block_size)]

    return blocks


@mistake
def whole_matrix(query, key, value, block_size):
    """A tensor holds the scores of more keys than `block_size`. The output is right, but the point of the exercise is
    never to hold so many scores: work through the keys block by block."""
    return (query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])).softmax(-1) @ value


@mistake
def last_block_dropped(*args):
    """The keys of the last block are left out where `block_size` does not divide the number of keys. The last block may
    be smaller than the others."""
    return tiled_with(blocks=_from_starts(lambda n, b: range(0, n - b + 1, b)))(*args)


@mistake
def last_block_always_dropped(*args):
    """The last block is always left out. Where does the last block start if its keys are the last `block_size` ones?"""
    return tiled_with(blocks=_from_starts(lambda n, b: range(0, n - b, b)))(*args)


@mistake
def last_key_dropped(*args):
    """The last key is left out. A range and a slice in Python leave out their end, so the end is the number of keys."""
    return tiled_with(blocks=lambda key, value, b: cut(key[..., :-1, :], value[..., :-1, :], b))(*args)


@mistake
def single_last_key_dropped(*args):
    """The last block is left out where it has only one key. The loop ends one key too early."""
    return tiled_with(blocks=_from_starts(lambda n, b: range(0, n - 1, b)))(*args)


@mistake
def first_block_dropped(*args):
    """The first block is left out: the loop starts with the second."""
    return tiled_with(blocks=lambda *given: cut(*given)[1:])(*args)


@mistake
def only_the_first_block(*args):
    """Only the first block is used. Does `return` stand inside the loop?"""
    return tiled_with(blocks=lambda *given: cut(*given)[:1])(*args)


@mistake
def blocks_overlap_by_one(*args):
    """Neighbouring blocks share a key, so it is counted twice. The end of a slice is left out in Python, so a block
    needs no extra key."""
    return tiled_with(blocks=_from_starts(lambda n, b: range(0, n, b), lambda b: b + 1))(*args)


@mistake
def blocks_slide(*args):
    """The blocks move on by one key at a time, so most keys are counted several times. The next block starts where the
    last one ended."""
    return tiled_with(blocks=_from_starts(lambda n, b: range(n)))(*args)


@mistake
def one_key_per_block(*args):
    """Only the first key of each block is used. A block has the keys from its start to the start of the next one."""
    return tiled_with(blocks=_from_starts(lambda n, b: range(0, n, b), lambda b: 1))(*args)


@mistake
def last_block_padded(query, key, value, block_size):
    """The last block is filled up with zeros, and these extra keys get weights too: their scores are 0, which is not
    −∞."""
    missing = -key.shape[-2] % block_size
    padded = (torch.nn.functional.pad(x, (0, 0, 0, missing)) for x in (key, value))
    return tiled_with()(query, *padded, block_size)


@mistake
def number_of_blocks(query, key, value, block_size):
    """`block_size` is taken as the number of blocks. It is the number of keys in a block, so there are more scores at a
    time than allowed wherever the keys are many."""
    return tiled_with(blocks=lambda key, value, b: zip(key.chunk(b, -2), value.chunk(b, -2), strict=True))(
        query, key, value, block_size
    )


@mistake
def values_not_advanced(*args):
    """Every block of keys meets the values of the first block. Keys and values have to be cut at the same places."""

    def blocks(key, value, block_size):
        return [(keys, value[..., : keys.shape[-2], :]) for keys, _ in cut(key, value, block_size)]

    return tiled_with(blocks=blocks)(*args)


@mistake
def values_in_reverse(*args):
    """The blocks of values come in another order than the blocks of keys. Each key has to meet its own value."""
    return tiled_with(blocks=lambda key, value, b: cut(key, value.flip(-2), b))(*args)


@mistake
def values_whole(query, key, value, block_size):
    """The weights of a block are multiplied by all values, whose number does not fit. The values have to be cut into
    blocks as well."""
    return tiled_with(blocks=lambda key, value, b: [(keys, value) for keys in key.split(b, -2)])(
        query, key, value, block_size
    )


@mistake
def blocks_of_both(query, key, value, block_size):
    """The queries are cut into blocks too, and each block of queries meets only the block of keys at the same place.
    Every query attends to every key."""
    parts = []
    for queries, (keys, values) in zip(query.split(block_size, -2), cut(key, value, block_size), strict=False):
        parts.append(tiled_with()(queries, keys, values, block_size))
    return torch.cat(parts, -2)


@mistake
def along_the_first_axis(query, key, value, block_size):
    """The blocks are cut along the first axis. With batch dimensions, that is not the axis of the keys; counted from
    the right, the keys have the same axis in every case."""
    return tiled_with(blocks=lambda key, value, b: zip(key.split(b), value.split(b), strict=True))(
        query, key, value, block_size
    )


@mistake
def along_the_features(query, key, value, block_size):
    """The blocks are cut along the features, the last axis. The keys are along the axis before it."""
    return tiled_with(blocks=lambda key, value, b: zip(key.split(b, -1), value.split(b, -1), strict=False))(
        query, key, value, block_size
    )
