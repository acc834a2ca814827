"""Small tasks that a transformer learns in seconds.

Every task has the same few methods, so that `train_on` knows none of them by name; see `Task`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol, runtime_checkable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from course_kit._checks import check_callable, check_finite, check_instance, check_seed, check_tokens, check_whole
from course_lib._typing import Bool, Float, Int

__all__ = [
    "AnomalyTask",
    "SequencePairs",
    "SequenceTask",
    "Sets",
    "Task",
    "TaskWithEpochs",
    "TokenTask",
    "anomaly",
    "copy",
    "greedy_tokens",
    "reversal",
    "sort",
]


@runtime_checkable
class Task(Protocol):
    """What `train_on` needs of a task. A batch is a named tuple of tensors that the task's own methods understand."""

    name: str  # of the task
    unit: str  # what is right or wrong as a whole: "sequences", "sets"
    goal: float  # the share of right answers that counts as success; 1.0 where all can be right

    def check_model(self, model: nn.Module) -> None:
        """Raise a TypeError or ValueError that says why the model cannot do this task."""
        ...

    def batch(self, size: int, generator: torch.Generator) -> Any:
        """A fresh batch, drawn from the generator alone."""
        ...

    def held_out(self, size: int, number: int = 0) -> Any:
        """A batch for measuring, the same at every call; each number gives another."""
        ...

    def loss(self, model: nn.Module, batch: Any) -> Tensor:
        """A scalar to minimise."""
        ...

    def predict(self, model: nn.Module, batch: Any) -> Tensor:
        """The model's answers; a model that writes is given nothing of the right answer."""
        ...

    def correct(self, prediction: Tensor, batch: Any) -> tuple[Tensor, Tensor]:
        """`(right, counted)`, bool `(B, n)`: which parts of each answer are right, and which count at all."""
        ...


@runtime_checkable
class TaskWithEpochs(Protocol):
    """What a task has in addition if its training set is finite and is read again in each epoch."""

    def epoch(self, number: int, *, seed: int) -> Sequence[Any]:
        """The batches of an epoch, which follow from its number and the seed alone."""
        ...

    def split(self, name: str) -> Sequence[Any]:
        """The batches of "train" or "val", the same at every call."""
        ...


# Sequences


class SequencePairs(NamedTuple):
    """Source and target of a sequence task, padded on the right."""

    source: Int[Tensor, "batch len_source"]  # symbols
    inputs: Int[Tensor, "batch len_target"]  # bos, then the target's symbols
    labels: Int[Tensor, "batch len_target"]  # the target's symbols, then eos


class TokenTask:
    """What tasks from tokens to tokens have in common. Their batches are `SequencePairs`."""

    name: str
    goal = 1.0
    pad_id: int
    bos_id: int
    eos_id: int

    def check_model(self, model: nn.Module) -> None:
        """Raise a TypeError if there is no `encode` or `decode`, a ValueError if the padding differs."""
        if not (callable(getattr(model, "encode", None)) and callable(getattr(model, "decode", None))):
            raise TypeError(
                f"{self.name} needs an encoder–decoder with encode(source) and decode(target, memory, source), got "
                f"{type(model).__name__}; assemble(...) makes one"
            )
        theirs = getattr(getattr(model, "config", None), "pad_id", self.pad_id)
        if theirs != self.pad_id:
            raise ValueError(
                f"{self.name} pads with {self.pad_id}, got a model whose pad_id is {theirs}; build the model with "
                f"pad_id={self.pad_id}"
            )

    def predict(self, model: nn.Module, batch: SequencePairs) -> Int[Tensor, "batch len_target"]:
        """What the model writes by itself, greedily, as long as the longest label."""
        return greedy_tokens(
            model,
            batch.source,
            max_length=batch.labels.shape[1],
            bos_id=self.bos_id,
            eos_id=self.eos_id,
            pad_id=self.pad_id,
        )

    def correct(
        self, prediction: Int[Tensor, "batch len_target"], batch: SequencePairs
    ) -> tuple[Bool[Tensor, "batch len_target"], Bool[Tensor, "batch len_target"]]:
        """Token by token; every label that is not padding counts, including the end of the sequence."""
        return prediction == batch.labels, batch.labels != self.pad_id

    def _padded(self, sequences: list[Tensor]) -> Tensor:
        return nn.utils.rnn.pad_sequence(sequences, batch_first=True, padding_value=self.pad_id)


@dataclass(frozen=True, kw_only=True)
class SequenceTask(TokenTask):
    """Random symbols in, the same symbols rearranged out.

    Sequences have `min_length` to `length` symbols, all lengths equally often, and are padded on the right.

    Args:
        name: of the task.
        rearrange: symbols `(n,)` of one sequence to its target `(n,)`.
        length: of the longest sequence.
        vocab_size: number of tokens: three special ones and the symbols.
        min_length: of the shortest sequence.

    Raises:
        ValueError: min_length is not in 1 … length, or the vocabulary has fewer than two symbols.
    """

    name: str
    rearrange: Callable[[Tensor], Tensor] = field(repr=False)
    length: int
    vocab_size: int
    min_length: int
    unit: str = field(default="sequences", init=False, repr=False)
    pad_id: int = field(default=0, init=False, repr=False)
    bos_id: int = field(default=1, init=False, repr=False)
    eos_id: int = field(default=2, init=False, repr=False)
    first_symbol: int = field(default=3, init=False, repr=False)

    def __post_init__(self):
        check_instance(str, name=self.name)
        check_callable(rearrange=self.rearrange)
        check_whole(length=self.length, vocab_size=self.vocab_size)
        check_whole(min_length=self.min_length, least=-math.inf)
        if not 1 <= self.min_length <= self.length:
            raise ValueError(
                f"min_length must lie in 1 … length = {self.length}, got {self.min_length}; a sequence has at least "
                f"one symbol"
            )
        if self.vocab_size < self.first_symbol + 2:
            raise ValueError(
                f"vocab_size must be at least {self.first_symbol + 2}, got {self.vocab_size}; it includes the tokens "
                f"pad, bos and eos and at least two symbols"
            )

    def pairs(self, sequences: list[Tensor]) -> SequencePairs:
        """Source and target of given sequences of symbols, each `(n,)`."""
        targets = [self.rearrange(sequence) for sequence in sequences]
        bos, eos = torch.tensor([self.bos_id]), torch.tensor([self.eos_id])
        return SequencePairs(
            self._padded(sequences),
            self._padded([torch.cat((bos, target)) for target in targets]),
            self._padded([torch.cat((target, eos)) for target in targets]),
        )

    def batch(self, size: int, generator: torch.Generator) -> SequencePairs:
        """`size` fresh pairs."""
        lengths = torch.randint(self.min_length, self.length + 1, (size,), generator=generator).tolist()
        symbols = torch.randint(self.first_symbol, self.vocab_size, (size, self.length), generator=generator)
        return self.pairs([row[:n] for row, n in zip(symbols, lengths, strict=True)])

    def held_out(self, size: int = 1000, number: int = 0) -> SequencePairs:
        """The same pairs at every call; each number gives others."""
        check_whole(size=size)
        return self.batch(size, _held_out_generator(number))

    def loss(self, model: nn.Module, batch: SequencePairs) -> Float[Tensor, ""]:
        """Cross-entropy of the next token, the mean over those that are not padding."""
        logits = model(batch.source, batch.inputs)  # (B, L, V)
        return F.cross_entropy(logits.flatten(0, 1), batch.labels.flatten(), ignore_index=self.pad_id)


def reversal(*, length: int = 10, vocab_size: int = 13, min_length: int = 5) -> SequenceTask:
    """Write the sequence backwards: the first symbol wanted is the last one read."""
    return SequenceTask(
        name="reversal", rearrange=_reversed, length=length, vocab_size=vocab_size, min_length=min_length
    )


def copy(*, length: int = 10, vocab_size: int = 13, min_length: int = 5) -> SequenceTask:
    """Write the sequence as it is."""
    return SequenceTask(name="copy", rearrange=torch.clone, length=length, vocab_size=vocab_size, min_length=min_length)


def sort(*, length: int = 10, vocab_size: int = 13, min_length: int = 5) -> SequenceTask:
    """Write the symbols in rising order; their positions do not matter."""
    return SequenceTask(name="sort", rearrange=_sorted, length=length, vocab_size=vocab_size, min_length=min_length)


def _reversed(symbols: Tensor) -> Tensor:
    return symbols.flip(0)


def _sorted(symbols: Tensor) -> Tensor:
    return symbols.sort().values


@torch.no_grad()
def greedy_tokens(
    model: nn.Module,
    source: Int[Tensor, "batch len_source"],
    *,
    max_length: int,
    bos_id: int,
    eos_id: int,
    pad_id: int,
) -> Int[Tensor, "batch max_length"]:
    """Write token after token, always the most probable one, given only the source and what has been written.

    It works with any model, and without a cache. `course_lib.decoding.greedy_decode` is the loop to read, and
    `course_kit.translator.search.greedy` is the fast one.

    Args:
        model: with `encode(source)` and `decode(target, memory, source)`.
        source: ids `(B, L)`.
        max_length: number of tokens to write.
        bos_id: the token that begins a sequence.
        eos_id: the token that ends a sequence; padding follows it.
        pad_id: the token that fills up short sequences.

    Returns:
        ids `(B, max_length)`, without bos, with eos where it was written.

    Raises:
        TypeError: the model has no `encode` and `decode`, source is not a tensor, or another argument is not a whole
            number.
        ValueError: source is not ids `(B, L)`, or a number is negative.
    """
    check_tokens(source, pad_id)
    check_whole(max_length=max_length, least=0)
    check_whole(bos_id=bos_id, eos_id=eos_id, pad_id=pad_id, least=0)
    check_callable(**{f"{part} of the model": getattr(model, part, None) for part in ("encode", "decode")})
    memory = model.encode(source)
    written = torch.full((len(source), 1), bos_id, dtype=torch.long, device=source.device)
    ended = torch.zeros(len(source), dtype=torch.bool, device=source.device)
    for _ in range(max_length):
        next_token = model.decode(written, memory, source)[:, -1].argmax(-1).masked_fill(ended, pad_id)  # (B,)
        written = torch.cat((written, next_token[:, None]), dim=1)
        ended = ended | (next_token == eos_id)
    return written[:, 1:]


# Sets


class Sets(NamedTuple):
    """Sets of items, all of one class except for one item per set."""

    features: Float[Tensor, "batch set_size num_features"]  # of every item
    target: Int[Tensor, " batch"]  # which item is the odd one


class AnomalyTask:
    """Find the item that belongs to another class than the rest of its set.

    Each class has a centre, drawn once from a normal distribution; an item is its class's centre plus noise. Training
    draws its sets from one half of the classes, `held_out` from the other half: a model that is right there has
    learned to compare items, not to recognise classes.

    Args:
        set_size: items in a set, three or more, so that the odd one is defined.
        num_features: of an item.
        num_classes: four or more.
        noise: standard deviation of each feature about its class's centre.
        seed: of the centres.

    Raises:
        TypeError: a size is not a whole number, or noise is not a number.
        ValueError: too few items, features or classes, a negative noise, or a seed beyond 64 bits.
    """

    name = "anomaly"
    unit = "sets"
    goal = 0.99  # centres and noise are drawn: here and there a set is hard to tell

    def __init__(
        self,
        *,
        set_size: int = 8,
        num_features: int = 16,
        num_classes: int = 1000,
        noise: float = 0.1,
        seed: int = 0,
    ):
        check_whole(set_size=set_size, least=3)
        check_whole(num_features=num_features)
        check_whole(num_classes=num_classes, least=4)
        check_finite("noise", noise)
        check_seed(seed)
        if noise < 0:
            raise ValueError(f"noise is a standard deviation, 0 or more, got {noise}")
        self.set_size, self.num_features, self.num_classes, self.noise = set_size, num_features, num_classes, noise
        self.centres = torch.randn(num_classes, num_features, generator=torch.Generator().manual_seed(seed))

    def __repr__(self) -> str:
        return (
            f"AnomalyTask(set_size={self.set_size}, num_features={self.num_features}, "
            f"num_classes={self.num_classes}, noise={self.noise})"
        )

    def batch(self, size: int, generator: torch.Generator) -> Sets:
        """`size` fresh sets of the classes for training."""
        return self._draw(self.centres[: self.num_classes // 2], size, generator)

    def held_out(self, size: int = 1000, number: int = 0) -> Sets:
        """The same sets at every call, of classes that `batch` never draws; each number gives others."""
        check_whole(size=size)
        return self._draw(self.centres[self.num_classes // 2 :], size, _held_out_generator(number))

    def check_model(self, model: nn.Module) -> None:
        """Raise a TypeError if the model reads tokens."""
        if hasattr(model, "decode"):
            raise TypeError(
                f"{self.name} needs a model from features (B, n, num_features) to scores (B, n), got "
                f"{type(model).__name__}, which reads tokens; assemble_set_encoder(...) makes one"
            )

    def loss(self, model: nn.Module, batch: Sets) -> Float[Tensor, ""]:
        """Cross-entropy of a softmax over the items of each set."""
        return F.cross_entropy(model(batch.features), batch.target)

    @torch.no_grad()
    def predict(self, model: nn.Module, batch: Sets) -> Int[Tensor, " batch"]:
        """The item with the highest score."""
        return model(batch.features).argmax(-1)

    def correct(
        self, prediction: Int[Tensor, " batch"], batch: Sets
    ) -> tuple[Bool[Tensor, "batch 1"], Bool[Tensor, "batch 1"]]:
        """One answer per set."""
        right = (prediction == batch.target)[:, None]  # (B, 1)
        return right, torch.ones_like(right)

    def _draw(self, centres: Tensor, size: int, generator: torch.Generator) -> Sets:
        usual = torch.randint(len(centres), (size,), generator=generator)
        # A step of 1 … classes − 1 round the circle of classes: any class but the usual one.
        step = torch.randint(1, len(centres), (size,), generator=generator)
        target = torch.randint(self.set_size, (size,), generator=generator)
        classes = usual[:, None].repeat(1, self.set_size)  # (B, n)
        classes[torch.arange(size), target] = (usual + step) % len(centres)
        noise = torch.randn(size, self.set_size, self.num_features, generator=generator)
        return Sets(centres[classes] + self.noise * noise, target)


def anomaly(*, set_size: int = 8, num_features: int = 16, num_classes: int = 1000, noise: float = 0.1) -> AnomalyTask:
    """Find the item that belongs to another class than the rest of its set; arguments as in `AnomalyTask`."""
    return AnomalyTask(set_size=set_size, num_features=num_features, num_classes=num_classes, noise=noise)


def _held_out_generator(number: int) -> torch.Generator:
    check_whole(number=number, least=0, most=2**40)
    return torch.Generator().manual_seed(2**40 + number)  # beyond the seeds that people choose
