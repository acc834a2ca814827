"""Sentence pairs in splits, whatever they come from."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from course_kit._checks import check_whole
from course_kit.data.grammar import caption_pairs

__all__ = ["Pairs", "ParallelCorpus", "built_in_corpus"]

Pairs = list[tuple[str, str]]  # (source sentence, target sentence)


@dataclass(frozen=True, kw_only=True)
class ParallelCorpus:
    """Sentences and their translations, in splits that are read on demand: `corpus["train"]`.

    Args:
        name: of the corpus.
        source_language: what is translated from, as in "de".
        target_language: what is translated to.
        licence: whose the sentences are, and how they may be used; show it where you show them.
        splits: names, "train" and "val" at least.
        read: name of a split to its pairs.
    """

    name: str
    source_language: str
    target_language: str
    licence: str
    splits: tuple[str, ...]
    read: Callable[[str], Pairs] = field(repr=False)
    _loaded: dict[str, Pairs] = field(default_factory=dict, init=False, repr=False, compare=False)

    def __getitem__(self, split: str) -> Pairs:
        """The pairs of a split.

        Raises:
            KeyError: there is no such split.
        """
        if split not in self.splits:
            raise KeyError(f"{self.name} has the splits {', '.join(self.splits)}, got {split!r}")
        if split not in self._loaded:
            self._loaded[split] = self.read(split)
        return self._loaded[split]

    def sentences(self, split: str) -> Iterable[str]:
        """All sentences of a split, both languages: what a shared vocabulary is learned from."""
        for pair in self[split]:
            yield from pair


def built_in_corpus(*, num_train: int = 4000, num_held_out: int = 500) -> ParallelCorpus:
    """German captions and their English, made by the small grammar in `course_kit.data.grammar`: no network needed.

    The same sentences at every call; no German sentence is in two splits.

    Args:
        num_train: pairs in "train".
        num_held_out: pairs in "val", and as many in "test".
    """

    check_whole(num_train=num_train, num_held_out=num_held_out, most=10**12)

    def read(split: str) -> Pairs:
        # One draw of distinct sentences, cut in three: no sentence can be in two splits.
        pairs = caption_pairs(num_train + 2 * num_held_out, seed=2017)
        ends = {"val": (0, num_held_out), "test": (num_held_out, 2 * num_held_out), "train": (2 * num_held_out, None)}
        return pairs[slice(*ends[split])]

    return ParallelCorpus(
        name="built-in captions",
        source_language="de",
        target_language="en",
        licence="made by the course's own grammar; MIT, like the course",
        splits=("train", "val", "test"),
        read=read,
    )
