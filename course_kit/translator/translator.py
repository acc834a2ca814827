"""A trained model with its vocabulary: text in, text out, saved and loaded as one folder."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from course_kit._checks import check_instance, check_seed, check_sequence, check_whole
from course_kit.data.vocabulary import Vocabulary
from course_kit.nn import Transformer, record_attention
from course_kit.translator.folder import CONFIG, read_folder, write_folder
from course_kit.translator.scores import Scores, corpus_perplexity, corpus_scores
from course_kit.translator.search import Hypotheses, beam, sample
from course_kit.translator.search_arguments import check_length_penalty
from course_kit.translator.slices import padded, slices

__all__ = ["Scores", "Translation", "Translator", "pretrained"]

MAX_SOURCE_TOKENS = 256  # five times the longest caption in training; beyond it nothing was ever learned
MAX_BEAM = 100  # more hypotheses find nothing better, and their number multiplies the memory
PRETRAINED = Path(__file__).parents[1] / "pretrained"


@dataclass(frozen=True)
class Translation:
    """One translation of a sentence."""

    text: str  # the translation
    tokens: list[int]  # its ids, without bos and eos
    log_prob: float  # sum over the tokens, eos included
    score: float  # what hypotheses are ranked by
    finished: bool  # False if it was cut at the largest length allowed


class Translator:
    """Translate sentences.

    Args:
        model: a trained encoder–decoder, which is put into eval mode.
        vocabulary: the one that it was trained with.
        max_source_tokens: longer sentences are refused.

    Raises:
        ValueError: model and vocabulary differ in size.
    """

    def __init__(self, model: Transformer, vocabulary: Vocabulary, *, max_source_tokens: int = MAX_SOURCE_TOKENS):
        check_instance(Transformer, model=model)
        check_instance(Vocabulary, vocabulary=vocabulary)
        check_whole(max_source_tokens=max_source_tokens)
        sizes = {model.config.vocab_size, model.config.target_vocab_size or model.config.vocab_size}
        if sizes != {len(vocabulary)}:
            raise ValueError(
                f"the model must be made for a vocabulary of {len(vocabulary)} tokens, got {model.config.vocab_size}; "
                f"take the vocabulary that it was trained with"
            )
        self.model = model.eval()
        self.vocabulary = vocabulary
        self.max_source_tokens = max_source_tokens

    # Translate

    def translate(
        self, sentences: Sequence[str], *, beam_size: int = 5, length_penalty: float = 1.0, max_tokens: int = 4096
    ) -> list[str]:
        """The best translation of each sentence; an empty sentence gives an empty one.

        Args:
            sentences: in the source language.
            beam_size: hypotheses kept at each step; 1 is greedy.
            length_penalty: α in `score = log-probability / tokens^α`; 0 favours short translations.
            max_tokens: source tokens decoded side by side, padding included.

        Returns:
            One text per sentence.

        Raises:
            TypeError: sentences is a single string, or holds something that is not a string.
            ValueError: a sentence has more tokens than `max_source_tokens` (the message says which), beam_size is not
                between 1 and 100, length_penalty not between −10 and 10, or max_tokens less than 1.
        """
        best = self.hypotheses(
            sentences, beam_size=beam_size, num_best=1, length_penalty=length_penalty, max_tokens=max_tokens
        )
        return [translations[0].text for translations in best]

    def hypotheses(
        self,
        sentences: Sequence[str],
        *,
        beam_size: int = 5,
        num_best: int = 1,
        length_penalty: float = 1.0,
        max_tokens: int = 4096,
    ) -> list[list[Translation]]:
        """The `num_best` best translations of each sentence that beam search finds, best first; as in `translate`."""
        check_whole(beam_size=beam_size, num_best=num_best)
        check_length_penalty(length_penalty)
        if beam_size > MAX_BEAM:
            raise ValueError(
                f"beam_size must be at most {MAX_BEAM}, got {beam_size}; widths above 5 to 10 hardly improve the result"
            )

        search = partial(beam, beam_size=beam_size, length_penalty=length_penalty, num_best=num_best)
        return self._in_batches(sentences, search, max_tokens)

    def samples(
        self,
        sentences: Sequence[str],
        *,
        temperature: float = 1.0,
        top_k: int | None = None,
        top_p: float | None = None,
        seed: int = 0,
        max_tokens: int = 4096,
    ) -> list[str]:
        """One translation of each sentence, drawn from the model; for the arguments see `translator.search.sample`."""
        check_seed(seed)
        generator = torch.Generator().manual_seed(seed)
        draw = partial(sample, temperature=temperature, top_k=top_k, top_p=top_p, generator=generator)
        return [drawn[0].text for drawn in self._in_batches(sentences, draw, max_tokens)]

    def encode(self, sentences: Sequence[str]) -> list[list[int]]:
        """Source ids of each sentence, eos included; an empty one has none.

        Raises:
            TypeError: sentences is a single string, or holds something that is not a string.
            ValueError: a sentence is too long.
        """
        encoded = self.vocabulary.encode_all([sentence.strip() for sentence in _texts(sentences)])
        for number, ids in enumerate(encoded, 1):
            if len(ids) >= self.max_source_tokens:
                raise ValueError(
                    f"sentence {number} must have fewer than {self.max_source_tokens} tokens, got {len(ids)}: the "
                    f"model was trained on captions, which are much shorter; split it into sentences"
                )
        return [[*ids, self.vocabulary.eos_id] if ids else [] for ids in encoded]

    def unknown_share(self, sentence: str) -> float:
        """Share of a sentence's tokens that the vocabulary does not know; 0 for an empty one."""
        ids = self.vocabulary.encode(_texts([sentence])[0].strip())
        return ids.count(self.vocabulary.unk_id) / len(ids) if ids else 0.0

    # Look at it

    @torch.no_grad()
    def attention(
        self, sentence: str, translation: str | Sequence[int] | None = None, *, layer: int = -1
    ) -> tuple[list[str], list[str], Tensor]:
        """Cross-attention of a translation: where the decoder looked when it wrote each token.

        Args:
            sentence: in the source language.
            translation: a text, or token ids; None for the model's own.
            layer: of the decoder.

        Returns:
            `(source tokens, written tokens, weights (H, L_target, L_source))`; row t holds the weights from which
            written token t was predicted. Both sequences end with eos.

        Raises:
            TypeError: sentence is not a string, or layer not a whole number.
            ValueError: the sentence is empty or too long, or the decoder has no such layer.
        """
        num_layers = self.model.config.num_layers
        check_whole(layer=layer, least=-math.inf)
        if not -num_layers <= layer < num_layers:
            raise ValueError(
                f"layer must be one of the decoder's {num_layers}, 0 … {num_layers - 1}, or negative to count from the "
                f"end, got {layer}"
            )
        (source,) = self.encode([sentence])
        if not source:
            raise ValueError("expected a sentence, got an empty one; it has nothing to attend to")
        if translation is None:
            target = self.hypotheses([sentence])[0][0].tokens
        elif isinstance(translation, str):
            target = self.vocabulary.encode(translation.strip())
        else:
            check_sequence(translation=translation)
            target = list(translation)
            for number in target:
                check_whole(translation=number, least=0, most=len(self.vocabulary) - 1, hint="; these are token ids")
        device = next(self.model.parameters()).device
        written = [*target, self.vocabulary.eos_id]
        with record_attention(self.model) as maps:
            self.model(
                torch.tensor([source], device=device), torch.tensor([[self.vocabulary.bos_id, *target]], device=device)
            )
        names = [name for name in maps if name.endswith("cross_attention")]
        return self.vocabulary.tokens(source), self.vocabulary.tokens(written), maps[names[layer]][0].cpu()

    def perplexity(self, pairs: Sequence[tuple[str, str]], *, max_tokens: int = 4096) -> float:
        """exp of the mean negative log-likelihood of the target tokens, eos included, over all tokens of all pairs.

        Raises:
            TypeError: pairs holds something that is not two strings.
            ValueError: there is no pair, or a sentence is too long.
        """
        pairs = _pairs(pairs)
        check_whole(max_tokens=max_tokens)
        source = self.encode([s for s, _ in pairs])
        target = self.vocabulary.encode_all([t.strip() for _, t in pairs])
        return corpus_perplexity(self.model, self.vocabulary, source, target, max_tokens=max_tokens)

    def evaluate(self, pairs: Sequence[tuple[str, str]], **options: Any) -> tuple[Scores, list[str]]:
        """Translate a set of sentences and compare the translations with the references.

        Args:
            pairs: sentences and their translations.
            options: keyword arguments of `translate`.

        Returns:
            `(scores, translations)`.

        Raises:
            TypeError: pairs holds something that is not two strings.
            ValueError: there is no pair, a sentence is too long, or an option is out of range.

        Source: bootstrap of the sentences: Koehn (2004), section 3.
        """
        pairs = _pairs(pairs)
        translations = self.translate([source for source, _ in pairs], **options)
        references = [target for _, target in pairs]
        perplexity = self.perplexity(pairs)
        num_tokens = sum(len(ids) + 1 for ids in self.vocabulary.encode_all([text.strip() for text in references]))
        scores = corpus_scores(translations, references, perplexity=perplexity, num_tokens=num_tokens)
        return scores, translations

    # Keep it

    def save(self, folder: str | Path, *, card: str = "", about: dict[str, Any] | None = None) -> None:
        """Write weights (half precision), vocabulary, sizes and a model card into a folder.

        All files are on the disk before any of them replaces an old one; config.json, which holds the checksums of the
        others, comes last.

        Args:
            folder: created if it does not exist.
            card: text of README.md.
            about: further entries for config.json, such as the recipe and its scores.

        Raises:
            TypeError: an argument is of another type.
            OSError: the folder cannot be written.
        """
        write_folder(folder, self.model, self.vocabulary, card=card, about={} if about is None else about)

    @classmethod
    def load(cls, folder: str | Path) -> Translator:
        """Read a folder that `save` wrote.

        Raises:
            FileNotFoundError: a file is missing.
            NotADirectoryError: it is not a folder.
            ValueError: a file is not the one that config.json names (its SHA-256 differs), or the weights are of
                another shape.
        """
        return cls(*read_folder(folder))

    def limit(self, source_tokens: int) -> int:
        """How many tokens a translation may have, eos included; no pair of the training set comes near this limit."""
        limit = 2 * source_tokens + 10
        config = self.model.config
        return min(limit, config.max_length) if config.positions == "learned" else limit

    def _in_batches(
        self, sentences: Sequence[str], decode: Callable[..., Hypotheses], max_tokens: int
    ) -> list[list[Translation]]:
        check_whole(max_tokens=max_tokens)
        encoded = self.encode(sentences)
        device = next(self.model.parameters()).device
        results: list[list[Translation]] = [
            [Translation(text="", tokens=[], log_prob=0.0, score=0.0, finished=True)] for _ in encoded
        ]
        order = sorted((i for i, ids in enumerate(encoded) if ids), key=lambda i: len(encoded[i]))
        for places in slices(order, lambda i: len(encoded[i]), max_tokens):
            source = padded([encoded[i] for i in places], self.vocabulary.pad_id, device)
            limits = [self.limit(len(encoded[i])) for i in places]
            ends = {"bos_id": self.vocabulary.bos_id, "eos_id": self.vocabulary.eos_id}
            found = decode(self.model, source, max_length=limits, **ends)
            for i, *of_one in zip(places, found.tokens, found.log_probs, found.scores, found.finished, strict=True):
                results[i] = [
                    Translation(self.vocabulary.decode(tokens), tokens, *figures)
                    for tokens, *figures in zip(*of_one, strict=True)
                ]
        return results


def pretrained(name: str = "multi30k-de-en") -> Translator:
    """The trained translator that comes with the package, with the recipe and the model card beside its weights.

    Raises:
        ValueError: there is none of that name.
    """
    check_instance(str, name=name)
    folder = PRETRAINED / name
    if not (folder / CONFIG).is_file():
        names = ", ".join(sorted(p.parent.name for p in PRETRAINED.glob(f"*/{CONFIG}")))
        raise ValueError(f"name must be one of {names or '(none is installed)'}, got {name!r}")
    return Translator.load(folder)


def _texts(sentences: Sequence[str]) -> list[str]:
    """A list of strings and nothing else: the letters of a string would be sentences, too."""
    if isinstance(sentences, str):
        raise TypeError(f"sentences must be a list of strings, got the string {sentences[:30]!r}; pass [sentence]")
    check_instance(Iterable, sentences=sentences)
    sentences = list(sentences)
    for number, sentence in enumerate(sentences, 1):
        if not isinstance(sentence, str):
            raise TypeError(
                f"sentence {number} must be a string, got {type(sentence).__name__}; leave it out, or pass ''"
            )
    return sentences


def _pairs(pairs: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    check_instance(Iterable, pairs=pairs)
    pairs = list(pairs)
    for number, pair in enumerate(pairs, 1):
        if not isinstance(pair, tuple | list) or [isinstance(side, str) for side in pair] != [True, True]:
            raise TypeError(f"pair {number} must be (sentence, translation), two strings, got {str(pair)[:60]}")
    if not pairs:
        raise ValueError("expected at least one pair of a sentence and its translation, got none; look at the split")
    return pairs
