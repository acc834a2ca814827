"""Sentences to token ids and back, with the library `tokenizers` and the model's own `tokenizer.json`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from course_kit.bert.config import BertConfig
from course_lib._typing import Bool, Int

if TYPE_CHECKING:
    from tokenizers import Encoding, Tokenizer

__all__ = ["SentenceTokenizer", "TokenBatch"]


@dataclass(frozen=True)
class TokenBatch:
    """Sentences, or pairs of them, as a model of the BERT family takes them.

    The lists have one entry per row and leave padding out; special tokens belong to no word and no sentence: None.
    """

    token_ids: Int[Tensor, "batch length"]
    mask: Bool[Tensor, "batch length"]  # True = a token, False = padding
    segment_ids: Int[Tensor, "batch length"]  # as the tokenizer numbers them; RoBERTa's are all 0
    tokens: list[list[str]]  # as the vocabulary writes them, with [CLS] and [SEP]
    words: list[list[int | None]]  # which word of its sentence each token is part of
    sentences: list[list[int | None]]  # 0 for the first sentence of a pair, 1 for the second

    def __len__(self) -> int:
        return len(self.tokens)

    def to(self, device: torch.device | str) -> TokenBatch:
        """The same batch with its tensors on another device."""
        moved = (x.to(device) for x in (self.token_ids, self.mask, self.segment_ids))
        return TokenBatch(*moved, self.tokens, self.words, self.sentences)


class SentenceTokenizer:
    """The tokenizer of one model: adds its special tokens, and pads a batch at the right.

    Building the tokenizer takes longer than loading a small model, so that waits until a sentence comes; whether the
    file is whole and belongs to the model is found out at once.

    Args:
        text: content of a `tokenizer.json`; its own padding and truncation are switched off.
        config: of the model; gives the longest sequence, the padding and the size of the vocabulary.
        name: what errors call it.

    Raises:
        ValueError: the text is damaged, has more tokens than the model, or adds no special tokens.
    """

    def __init__(self, text: str, config: BertConfig, *, name: str = "the tokenizer"):
        self.name = name
        self.max_length = config.max_length
        self.pad_id = config.pad_id
        self._text = text
        size = _vocabulary_size(text, name)
        if size > config.vocab_size:
            raise ValueError(
                f"{name} must have at most the model's {config.vocab_size} tokens, got {size}; take the one that "
                f"belongs to the model"
            )

    @classmethod
    def load(cls, path: Path, config: BertConfig) -> SentenceTokenizer:
        """Read a `tokenizer.json`.

        Raises:
            FileNotFoundError: there is no such file.
            ValueError: it is damaged, or belongs to another model.
        """
        if not path.is_file():
            raise FileNotFoundError(
                f"{path} is missing; fetch it, or write it with save_pretrained of the model's fast tokenizer"
            )
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError as error:
            raise ValueError(f"{path} is damaged: expected UTF-8 ({error}); fetch it again") from None
        return cls(text, config, name=str(path))

    @cached_property
    def tokenizer(self) -> Tokenizer:
        """The library's object, built when first needed.

        Raises:
            ValueError: the library cannot read it.
        """
        from tokenizers import Tokenizer

        try:
            tokenizer = Tokenizer.from_str(self._text)
        except Exception as error:  # the library raises nothing more specific
            raise ValueError(
                f"{self.name} is not a tokenizer that can be read here ({error}); fetch it again"
            ) from None
        tokenizer.no_padding()
        tokenizer.no_truncation()
        return tokenizer

    def __call__(
        self,
        sentences: Sequence[str],
        second: Sequence[str] | None = None,
        *,
        max_length: int | None = None,
        truncate: bool = False,
    ) -> TokenBatch:
        """A batch of sentences, or of pairs of them.

        Args:
            sentences: at least one.
            second: the second sentence of each pair, as many as sentences.
            max_length: most tokens of a row, special tokens included; at most, and by default, what the model can take.
            truncate: cut what is longer (the longer sentence of a pair first) instead of refusing it.

        Raises:
            TypeError: sentences are not a list of texts.
            ValueError: there are none, their numbers differ, or a row is too long.
        """
        _check_texts("sentences", sentences)
        if second is not None:
            _check_texts("second", second)
            if len(second) != len(sentences):
                raise ValueError(f"each of the {len(sentences)} sentences needs a second one, got {len(second)}")
        limit = self.max_length if max_length is None else min(max_length, self.max_length)
        rows = list(sentences) if second is None else list(zip(sentences, second, strict=True))
        encodings = self.tokenizer.encode_batch(rows)
        longest = max(range(len(encodings)), key=lambda i: len(encodings[i]))
        if len(encodings[longest]) > limit:
            if not truncate:
                raise ValueError(
                    f"sentence {longest + 1} must have at most {limit} tokens, special ones included, got "
                    f"{len(encodings[longest])}; shorten it, or pass truncate=True"
                )
            encodings = self._cut(rows, limit)
        return self._batch(encodings)

    def _cut(self, rows: list, limit: int) -> list[Encoding]:
        special = self.tokenizer.num_special_tokens_to_add(isinstance(rows[0], tuple))
        if limit <= special:
            raise ValueError(f"max_length must be more than the {special} special tokens, got {limit}")
        self.tokenizer.enable_truncation(limit)
        try:
            return self.tokenizer.encode_batch(rows)
        finally:
            self.tokenizer.no_truncation()

    def _batch(self, encodings: list[Encoding]) -> TokenBatch:
        length = max(len(encoding) for encoding in encodings)

        def padded(rows: list[list[int]], fill: int) -> Tensor:
            return torch.tensor([[*row, *[fill] * (length - len(row))] for row in rows])  # (B, L)

        return TokenBatch(
            token_ids=padded([e.ids for e in encodings], self.pad_id),
            mask=padded([e.attention_mask for e in encodings], 0).bool(),
            segment_ids=padded([e.type_ids for e in encodings], 0),
            tokens=[e.tokens for e in encodings],
            words=[e.word_ids for e in encodings],
            sentences=[e.sequence_ids for e in encodings],
        )


def _vocabulary_size(text: str, name: str) -> int:
    """One more than the largest id in a `tokenizer.json` that is whole and adds special tokens."""
    try:
        content = json.loads(text)
        vocabulary = content["model"]["vocab"]
        ids = [*(vocabulary.values() if isinstance(vocabulary, dict) else range(len(vocabulary)))]
        ids += [token["id"] for token in content.get("added_tokens") or ()]
        size = max(ids) + 1
        processor = content.get("post_processor") or {}
        adds_tokens = processor.get("type") not in (None, "ByteLevel")
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ValueError(
            f"{name} is damaged: expected a vocabulary in JSON ({type(error).__name__}: {error}); fetch it again"
        ) from None
    if not adds_tokens:
        raise ValueError(f"{name} must add special tokens such as [CLS] and [SEP], got one that adds none")
    return size


def _check_texts(name: str, texts: Sequence[str]) -> None:
    if isinstance(texts, str):
        raise TypeError(f"{name} must be a list of texts, got one text; write [{texts[:20]!r}]")
    if not texts:
        raise ValueError(f"{name} must be at least one text, got none")
    if strange := [text for text in texts if not isinstance(text, str)]:
        raise TypeError(f"{name} must be texts, got {type(strange[0]).__name__}")
