"""Translation as a task: the sentence pairs of a corpus as padded batches of tokens, cut to equal work.

`TranslationTask` has the methods of `course_kit.workshop.tasks.Task`, like reversal or sorting, so that `train_on`
and the trainer take it as they take those.
"""

from __future__ import annotations

import copy
import hashlib
import math
import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import torch
from torch import Tensor, nn

from course_kit._checks import check_instance, check_sequence, check_whole
from course_kit.data.corpus import Pairs, ParallelCorpus
from course_kit.data.vocabulary import Vocabulary
from course_kit.translator.fast_loss import chunked_label_smoothing_loss, masked_label_smoothing_loss
from course_kit.translator.recipe import Recipe, check_shares
from course_kit.workshop.tasks import SequencePairs, Task, TokenTask
from course_lib._typing import Float
from course_lib.training import token_batches

__all__ = ["FollowsRecipe", "SplitFigures", "TranslationTask"]

EncodedPairs = list[tuple[list[int], list[int]]]


@dataclass(frozen=True)
class SplitFigures:
    """What a split looks like in tokens."""

    sentences: int
    source_tokens: int  # without eos
    target_tokens: int
    longest_source: int
    longest_target: int
    unknown_share: float  # of all tokens, source and target
    padding_share: float  # of the entries of all batches, source and target

    def __str__(self) -> str:
        return (
            f"{self.sentences:,} pairs, {self.source_tokens / self.sentences:.1f} and "
            f"{self.target_tokens / self.sentences:.1f} tokens a sentence (longest {self.longest_source} and "
            f"{self.longest_target}), {self.unknown_share:.2%} unknown, {self.padding_share:.1%} of the batches padding"
        )


@runtime_checkable
class FollowsRecipe(Protocol):
    """A task for which the recipe decides on batches and loss, and whose data a resumed run must find unchanged."""

    def by_recipe(self, recipe: Recipe) -> Task:
        """The same task with the batches and the loss of a recipe."""
        ...

    def fingerprint(self) -> str:
        """A checksum of the training data."""
        ...


class TranslationTask(TokenTask):
    """Translate the sentences of a corpus.

    The source is its tokens and eos; the target is read from bos on and written to eos. Batches hold sentences of
    about the same length, as many as fit `max_tokens`.

    Args:
        corpus: pairs in splits "train" and "val".
        vocabulary: of both languages.
        max_tokens: of a batch, padding included: number of sentences times the length of the longest.
        label_smoothing: share of the target probability that is spread over all tokens in the training loss.
        bpe_dropout: probability of leaving out a merge in training, so that words come in several spellings.
        max_length: training pairs with more tokens per side are left out, since they would stretch a batch.
    """

    unit = "sentences"
    goal = 0.5  # there are many right translations; a half word for word would be very good

    def __init__(
        self,
        corpus: ParallelCorpus,
        vocabulary: Vocabulary,
        *,
        max_tokens: int = 2048,
        label_smoothing: float = 0.1,
        bpe_dropout: float = 0.0,
        max_length: int = 100,
    ):
        check_instance(ParallelCorpus, corpus=corpus)
        check_instance(Vocabulary, vocabulary=vocabulary)
        check_whole(max_tokens=max_tokens, max_length=max_length)
        check_shares(label_smoothing=label_smoothing, bpe_dropout=bpe_dropout)
        if max_length + 1 > max_tokens:
            raise ValueError(
                f"a batch must hold the longest sentence and its eos, max_length + 1 = {max_length + 1} tokens, got "
                f"max_tokens = {max_tokens}"
            )
        self.corpus = corpus
        self.vocabulary = vocabulary
        self.max_tokens = max_tokens
        self.label_smoothing = label_smoothing
        self.bpe_dropout = bpe_dropout
        self.max_length = max_length
        self.pad_id, self.bos_id, self.eos_id = vocabulary.pad_id, vocabulary.bos_id, vocabulary.eos_id
        self.name = f"{corpus.name} {corpus.source_language}→{corpus.target_language}"
        self._encoded: dict[str, EncodedPairs] = {}

    def __repr__(self) -> str:
        return f"TranslationTask({self.name}, {len(self.vocabulary)} tokens, batches of {self.max_tokens})"

    # What the trainer needs (`FollowsRecipe`, `TaskWithEpochs`)

    def by_recipe(self, recipe: Recipe) -> TranslationTask:
        """The same task with the batches and the loss of a recipe, which decides for both."""
        task = copy.copy(self)  # what is encoded already is shared
        task.max_tokens = recipe.max_tokens
        task.label_smoothing, task.bpe_dropout = recipe.label_smoothing, recipe.bpe_dropout
        return task

    def epoch(self, number: int, *, seed: int) -> Sequence[SequencePairs]:
        """All of the training pairs once, in batches; the order and the spellings follow from seed and number alone.

        Sentences are sorted by length within the shuffle: which of equal length share a batch differs in each epoch,
        and so does the order of the batches.
        """
        check_whole(number=number, seed=seed, least=-math.inf, most=math.inf)
        rng = random.Random(f"{seed}, epoch {number}")
        pairs = self.encoded("train")
        if self.bpe_dropout:
            sides = zip(*self.corpus["train"], strict=True)
            spelled = [self.vocabulary.encode_all_at_random(side, self.bpe_dropout, rng) for side in sides]
            pairs = list(zip(*spelled, strict=True))
        pairs = [pair for pair in pairs if max(map(len, pair)) <= self.max_length]
        rng.shuffle(pairs)
        pairs.sort(key=lambda pair: min(map(len, pair)))  # among equally long sentences, like stands beside like
        batches = self._batches(pairs)
        rng.shuffle(batches)
        return _Padded(self, pairs, batches)

    def fingerprint(self) -> str:
        """A sum over the training pairs as tokens: another corpus or another vocabulary has another."""
        return hashlib.sha256(repr(self.encoded("train")).encode()).hexdigest()

    def split(self, name: str) -> Sequence[SequencePairs]:
        """All pairs of a split in batches, the same at every call."""
        pairs = sorted(self.encoded(name), key=lambda pair: min(map(len, pair)))
        return _Padded(self, pairs, self._batches(pairs))

    def encoded(self, split: str) -> EncodedPairs:
        """Token ids of every pair of a split, without bos and eos, in the order of the corpus."""
        if split not in self._encoded:
            self._encoded[split] = self._encode(self.corpus[split])
        return self._encoded[split]

    def figures(self, split: str) -> SplitFigures:
        """Lengths, unknown tokens, and how much of the batches is padding."""
        pairs = self.encoded(split)
        tokens = [i for pair in pairs for side in pair for i in side]
        entries = [tensor for batch in self.split(split) for tensor in (batch.source, batch.inputs)]
        padding = sum(int((tensor == self.pad_id).sum()) for tensor in entries)
        return SplitFigures(
            sentences=len(pairs),
            source_tokens=sum(len(source) for source, _ in pairs),
            target_tokens=sum(len(target) for _, target in pairs),
            longest_source=max(len(source) for source, _ in pairs),
            longest_target=max(len(target) for _, target in pairs),
            unknown_share=tokens.count(self.vocabulary.unk_id) / len(tokens),
            padding_share=padding / sum(tensor.numel() for tensor in entries),
        )

    def pairs(self, pairs: Pairs) -> SequencePairs:
        """A batch of given sentences and their translations."""
        check_sequence(pairs=pairs)
        for pair in pairs:
            if not isinstance(pair, tuple | list) or [isinstance(side, str) for side in pair] != [True, True]:
                raise TypeError(f"pairs must be (sentence, translation), two texts each, got {pair!r:.60} among them")
        if not pairs:
            raise ValueError("pairs must be at least one sentence with its translation, got none")
        return self._pad(self._encode(pairs))

    # What every task has

    def check_model(self, model: nn.Module) -> None:
        """Raises: TypeError where there is no `encode` and `decode`, ValueError where vocabulary or padding differ."""
        super().check_model(model)
        config = getattr(model, "config", None)
        for side in ("vocab_size", "target_vocab_size"):
            size = getattr(config, side, None)
            if size is not None and size != len(self.vocabulary):
                raise ValueError(
                    f"the model must have a {side} of {len(self.vocabulary)}, as many as the vocabulary has tokens, "
                    f"got {size}"
                )

    def batch(self, size: int, generator: torch.Generator) -> SequencePairs:
        """`size` training pairs, drawn with replacement."""
        pairs = self.encoded("train")
        return self._pad([pairs[i] for i in torch.randint(len(pairs), (size,), generator=generator).tolist()])

    def held_out(self, size: int = 500, number: int = 0) -> SequencePairs:
        """`size` pairs of "val" (all, if it has fewer), from another place for each number."""
        check_whole(size=size)
        check_whole(number=number, least=0)
        pairs = self.encoded("val")
        size = min(size, len(pairs))
        start = number * size % len(pairs)
        return self._pad((pairs + pairs)[start : start + size])

    def loss(self, model: nn.Module, batch: SequencePairs) -> Float[Tensor, ""]:
        """Cross-entropy with label smoothing, the mean over the tokens that are not padding."""
        logits = model(batch.source, batch.inputs)  # (B, L, V)
        rows, labels = logits.flatten(0, 1), batch.labels.flatten()
        if rows.device.type == "cpu":
            return chunked_label_smoothing_loss(rows, labels, self.label_smoothing, self.pad_id)
        return masked_label_smoothing_loss(rows.float(), labels, self.label_smoothing, self.pad_id)

    def _encode(self, pairs: Pairs) -> EncodedPairs:
        sides = zip(*pairs, strict=True)
        return list(zip(*map(self.vocabulary.encode_all, sides), strict=True))

    def _batches(self, pairs: EncodedPairs) -> list[list[int]]:
        # Both sides have eos; the longer one decides.
        return token_batches([max(len(source), len(target)) + 1 for source, target in pairs], self.max_tokens)

    def _pad(self, pairs: EncodedPairs) -> SequencePairs:
        return SequencePairs(
            self._padded([torch.tensor([*source, self.eos_id]) for source, _ in pairs]),
            self._padded([torch.tensor([self.bos_id, *target]) for _, target in pairs]),
            self._padded([torch.tensor([*target, self.eos_id]) for _, target in pairs]),
        )


class _Padded(Sequence):
    """Batches that are padded on demand."""

    def __init__(self, task: TranslationTask, pairs: EncodedPairs, batches: list[list[int]]):
        self._task, self._pairs, self._batches = task, pairs, batches

    def __len__(self) -> int:
        return len(self._batches)

    def __getitem__(self, number: int) -> SequencePairs:
        return self._task._pad([self._pairs[i] for i in self._batches[number]])
