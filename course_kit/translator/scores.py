"""Scores of a corpus: BLEU and chrF of translations, and the perplexity of references under a model."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F

from course_kit.data.vocabulary import Vocabulary
from course_kit.nn import Transformer
from course_kit.translator.slices import padded, slices

__all__ = ["Scores", "corpus_perplexity", "corpus_scores"]

SAMPLES = 1000  # of the bootstrap


@dataclass(frozen=True)
class Scores:
    """How well a set was translated; `str` gives it as people report it."""

    bleu: float  # sacreBLEU, cased
    bleu_interval: float  # bleu ± this: 95 % of 1,000 bootstrap samples of the sentences
    bleu_signature: str
    bleu_lowercase: float  # tokenised and lower-cased, as older work reports it
    bleu_lowercase_signature: str
    chrf: float
    chrf_signature: str
    perplexity: float  # of the reference translations, per token of the model's vocabulary, eos included
    perplexity_per_word: float  # the same total, shared out among sacreBLEU's words (13a), the end counted as one
    sentences: int

    def __str__(self) -> str:
        return (
            f"BLEU              {self.bleu:.2f} ± {self.bleu_interval:.2f}   {self.bleu_signature}\n"
            f"BLEU, lower case  {self.bleu_lowercase:.2f}   {self.bleu_lowercase_signature}\n"
            f"chrF              {self.chrf:.2f}   {self.chrf_signature}\n"
            f"perplexity        {self.perplexity:.3f}   per subword token, end of sentence included\n"
            f"  per word        {self.perplexity_per_word:.3f}   words as BLEU counts them, end of sentence included\n"
            f"sentences         {self.sentences:,}; ±: 95 % of {SAMPLES:,} bootstrap samples of them"
        )


def corpus_scores(
    translations: Sequence[str], references: Sequence[str], *, perplexity: float, num_tokens: int
) -> Scores:
    """Compare translations with references.

    Args:
        translations: one per sentence.
        references: one per sentence.
        perplexity: of the references, per token of the model's vocabulary.
        num_tokens: how many tokens it is the mean of, each eos included.

    Source: bootstrap of the sentences: Koehn (2004), section 3.
    """
    from sacrebleu.metrics import BLEU, CHRF

    cased, lower, chrf = BLEU(), BLEU(lowercase=True), CHRF()
    num_words = sum(len(cased.tokenizer(text).split()) + 1 for text in references)
    return Scores(
        bleu=cased.corpus_score(translations, [references]).score,
        # An object of its own: this would add the bootstrap to the signature. The interval has no public name.
        bleu_interval=BLEU().corpus_score(translations, [references], n_bootstrap=SAMPLES)._ci,
        bleu_signature=str(cased.get_signature()),
        bleu_lowercase=lower.corpus_score(translations, [references]).score,
        bleu_lowercase_signature=str(lower.get_signature()),
        chrf=chrf.corpus_score(translations, [references]).score,
        chrf_signature=str(chrf.get_signature()),
        perplexity=perplexity,
        perplexity_per_word=perplexity ** (num_tokens / num_words),
        sentences=len(references),
    )


@torch.no_grad()
def corpus_perplexity(
    model: Transformer,
    vocabulary: Vocabulary,
    source: Sequence[Sequence[int]],
    target: Sequence[Sequence[int]],
    *,
    max_tokens: int,
) -> float:
    """exp of the mean negative log-likelihood of the target tokens, eos included, over all tokens of all pairs.

    Args:
        model: in eval mode.
        vocabulary: of the model.
        source: ids of each source with eos; an empty one is read as eos alone.
        target: ids of each target without eos.
        max_tokens: of a batch, padding included.
    """
    device = next(model.parameters()).device
    total, count = 0.0, 0
    order = sorted(range(len(source)), key=lambda i: (len(target[i]), len(source[i])))
    for places in slices(order, lambda i: max(len(source[i]), len(target[i]) + 1), max_tokens):
        rows = [(source[i] or [vocabulary.eos_id], target[i]) for i in places]
        inputs = padded([[vocabulary.bos_id, *t] for _, t in rows], vocabulary.pad_id, device)
        labels = padded([[*t, vocabulary.eos_id] for _, t in rows], vocabulary.pad_id, device)
        logits = model(padded([s for s, _ in rows], vocabulary.pad_id, device), inputs).flatten(0, 1)
        nll = F.cross_entropy(logits.float(), labels.flatten(), ignore_index=vocabulary.pad_id, reduction="sum")
        total += nll.item()
        count += int((labels != vocabulary.pad_id).sum())
    return math.exp(total / count)
