"""A vocabulary of subwords, learned from text with byte-pair encoding.

Sennrich, Haddow & Birch (2016). The work is done by the library `tokenizers`; what is added here are the four special
tokens, and segmentations drawn at random for training (Provilkov, Emelianenko & Voita, 2020) that come from a seed.
"""

from __future__ import annotations

import json
import math
import random
from collections.abc import Iterable, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from course_kit._checks import check_instance, check_probability, check_texts, check_whole
from course_kit._files import read_whole, write_whole

if TYPE_CHECKING:
    from tokenizers import Tokenizer

__all__ = ["Vocabulary"]

SPECIAL = ("<pad>", "<bos>", "<eos>", "<unk>")


class Vocabulary:
    """Text to token ids and back.

    Token 0 is padding, 1 begins a sentence, 2 ends it, 3 represents a character that is not in the vocabulary.
    Spaces are part of the tokens: "▁dog" begins a word, "s" continues one.

    Args:
        tokenizer: of the library `tokenizers`, with those four tokens; `Vocabulary.learn` and `Vocabulary.load` make
            one.
    """

    pad_id, bos_id, eos_id, unk_id = range(4)

    def __init__(self, tokenizer: Tokenizer):
        found = [tokenizer.token_to_id(token) for token in SPECIAL]
        if found != [0, 1, 2, 3]:
            raise ValueError(f"the vocabulary must begin with {', '.join(SPECIAL)}, got their ids {found}")
        tokenizer.encode_special_tokens = True  # "<eos>" in a text is text
        self._tokenizer = tokenizer

    @classmethod
    def learn(cls, sentences: Iterable[str], size: int) -> Vocabulary:
        """Merge the most frequent pair of neighbouring tokens, again and again, until there are `size` tokens.

        Args:
            sentences: of the training set, never of a test set: what is there would no longer be unknown.
            size: number of tokens, special ones included.

        Raises:
            ValueError: the text has fewer tokens to offer.
        """
        check_whole(size=size, most=2**31)
        sentences = check_texts(sentences=sentences)
        from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

        tokenizer = Tokenizer(models.BPE(unk_token=SPECIAL[3]))
        tokenizer.normalizer = normalizers.NFC()
        tokenizer.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Metaspace(), pre_tokenizers.Punctuation()])
        tokenizer.decoder = decoders.Metaspace()
        # A pair that occurs once only would be learned by heart.
        trainer = trainers.BpeTrainer(
            vocab_size=size, special_tokens=list(SPECIAL), min_frequency=2, show_progress=False
        )
        tokenizer.train_from_iterator(sentences, trainer)
        if tokenizer.get_vocab_size() != size:
            found = tokenizer.get_vocab_size()
            why = "single characters alone are as many" if found > size else "it has no more pairs that occur twice"
            raise ValueError(
                f"size must not exceed what the sentences can provide, got {size} with text for {found} tokens: "
                f"{why}; ask for {found}"
            )
        return cls(tokenizer)

    def __len__(self) -> int:
        """Number of tokens."""
        return self._tokenizer.get_vocab_size()

    def __repr__(self) -> str:
        return f"Vocabulary({len(self)} tokens)"

    def encode(self, sentence: str) -> list[int]:
        """Token ids of a sentence, without those that begin and end it."""
        check_texts(sentence=[sentence])
        return self._tokenizer.encode(sentence).ids

    def encode_all(self, sentences: Sequence[str]) -> list[list[int]]:
        """`encode` for many sentences, side by side."""
        return [encoded.ids for encoded in self._tokenizer.encode_batch(check_texts(sentences=sentences))]

    def encode_all_at_random(self, sentences: Sequence[str], dropout: float, rng: random.Random) -> list[list[int]]:
        """Like `encode_all`, but each merge is left out with probability `dropout` where it could be made.

        A word then comes in many spellings, and the model learns what its parts mean (BPE-dropout). Each word has at
        most `_VARIANTS` spellings, drawn once per call; each occurrence of a word takes one of them.

        Args:
            sentences: to encode.
            dropout: probability in [0, 1).
            rng: decides everything.
        """
        check_probability("dropout", dropout)
        sentences = check_texts(sentences=sentences)
        spellings: dict[str, list[list[int]]] = {}
        encoded = []
        for sentence in sentences:
            ids: list[int] = []
            for word in self._words(sentence):
                if word not in spellings:
                    spellings[word] = [self._merge_at_random(word, dropout, rng) for _ in range(_VARIANTS)]
                ids += spellings[word][rng.randrange(_VARIANTS)]
            encoded.append(ids)
        return encoded

    def decode(self, ids: Sequence[int]) -> str:
        """The text of token ids; special tokens are left out, but for the unknown, which reads "<unk>"."""
        kept = [i for i in self._checked(ids) if i not in (self.pad_id, self.bos_id, self.eos_id)]
        return self._tokenizer.decode(kept, skip_special_tokens=False)

    def tokens(self, ids: Sequence[int]) -> list[str]:
        """The tokens as they are written, "▁" for a space: one for each id, to label a picture with.

        Raises:
            ValueError: an id is none of the vocabulary.
        """
        return [self._tokenizer.id_to_token(i) for i in self._checked(ids)]

    def _checked(self, ids: Sequence[int]) -> Sequence[int]:
        check_instance(Iterable, ids=ids)
        ids = list(ids)
        for i in ids:
            check_whole(ids=i, least=-math.inf, most=math.inf)
            if not 0 <= i < len(self):
                raise ValueError(f"token ids must lie in 0 … {len(self) - 1}, got {i}")
        return ids

    def to_json(self) -> str:
        """All of it as text; `from_json` reads it."""
        return self._tokenizer.to_str()

    @classmethod
    def from_json(cls, text: str) -> Vocabulary:
        """A vocabulary from what `to_json` gave.

        Raises:
            ValueError: the text is something else.
        """
        from tokenizers import Tokenizer

        check_instance(str, text=text)
        try:
            tokenizer = Tokenizer.from_str(text)
        except Exception as error:  # the library raises nothing more specific
            raise ValueError(
                f"text must be a vocabulary as Vocabulary.save writes it, got {text[:40]!r}… ({error})"
            ) from None
        return cls(tokenizer)

    def save(self, path: str | Path) -> None:
        """Write it to a file, all or nothing."""
        write_whole(Path(path), self.to_json())

    @classmethod
    def load(cls, path: str | Path) -> Vocabulary:
        """Read a file that `save` wrote.

        Raises:
            FileNotFoundError: there is no such file.
            ValueError: it is something else.
        """
        return cls.from_json(read_whole(path).decode("utf-8"))

    def _words(self, sentence: str) -> list[str]:
        normal = self._tokenizer.normalizer.normalize_str(sentence)
        return [word for word, _ in self._tokenizer.pre_tokenizer.pre_tokenize_str(normal)]

    @cached_property
    def _ranks(self) -> dict[tuple[str, str], int]:
        merges = json.loads(self.to_json())["model"]["merges"]
        return {tuple(pair): rank for rank, pair in enumerate(merges)}

    @cached_property
    def _ids(self) -> dict[str, int]:
        return self._tokenizer.get_vocab()

    def _merge_at_random(self, word: str, dropout: float, rng: random.Random) -> list[int]:
        parts = list(word)
        while len(parts) > 1:
            # Of the merges that are not dropped this time, the one learned first.
            possible = [
                (rank, i)
                for i in range(len(parts) - 1)
                if (rank := self._ranks.get((parts[i], parts[i + 1]))) is not None and rng.random() >= dropout
            ]
            if not possible:
                break
            _, i = min(possible)
            parts[i : i + 2] = [parts[i] + parts[i + 1]]
        return [self._ids.get(part, self.unk_id) for part in parts]


_VARIANTS = 8  # spellings of a word in an epoch; the next epoch draws others
