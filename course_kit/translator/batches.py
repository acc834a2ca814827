"""Batches for training, different in each epoch, and how several processes share them."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import torch

from course_kit.workshop.tasks import Task, TaskWithEpochs

__all__ = ["batches_of_epoch", "draw_seed", "training_share", "validation_share"]

FRESH_BATCHES, FRESH_SIZE = 100, 64  # an epoch of a task without a training set
HELD_OUT = 500  # examples to validate on, of a task without splits


def draw_seed(*what: object) -> int:
    """A seed of 63 bits for one purpose, such as dropout in step 7: other purposes have unrelated ones."""
    return random.Random(", ".join(map(str, what))).getrandbits(63)


def batches_of_epoch(task: Task, epoch: int, seed: int) -> Sequence[Any]:
    """Those of an epoch, counted from 0, for all processes together. They follow from seed and epoch alone."""
    if isinstance(task, TaskWithEpochs):
        return task.epoch(epoch, seed=seed)
    return _Fresh(task, seed, epoch)


def training_share(batches: Sequence[Any], rank: int, world: int) -> list[int]:
    """Which of an epoch's batches one of `world` processes takes; all processes take the same number.

    Raises:
        ValueError: there are fewer batches than processes.
    """
    if len(batches) < world:
        raise ValueError(
            f"{world} processes need a batch each, got {len(batches)} in an epoch; take fewer devices, or smaller "
            f"batches (max_tokens)"
        )
    return list(range(rank, len(batches) - len(batches) % world, world))


def validation_share(task: Task, rank: int, world: int) -> list[Any]:
    """The batches of "val" that one of `world` processes takes; of a task without splits, one that stays the same.

    Where there are fewer batches than processes, each process has all of them: the shares and means are the same.
    """
    batches = task.split("val") if isinstance(task, TaskWithEpochs) else [task.held_out(HELD_OUT)]
    mine = range(rank, len(batches), world) if len(batches) >= world else range(len(batches))
    return [batches[i] for i in mine]


class _Fresh(Sequence):
    """Batches of a task without a training set: drawn when they are needed, from the seed and their place."""

    def __init__(self, task: Task, seed: int, epoch: int):
        self._task, self._seed, self._epoch = task, seed, epoch

    def __len__(self) -> int:
        return FRESH_BATCHES

    def __getitem__(self, place: int) -> Any:
        draw = torch.Generator().manual_seed(draw_seed(self._seed, self._epoch, place))
        return self._task.batch(FRESH_SIZE, draw)
