"""Mistakes in `corpus_bleu`: how sentences become a corpus, zeros, and two at once."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable

import torch

from course_lib.exercises._mistakes import Mistakes
from course_lib.exercises.decoding.bleu_parts import (
    bleu,
    clipped,
    lengths_of,
    ngrams,
    smoothed,
    smoothed_above_one,
    unclipped,
)
from course_lib.exercises.decoding.corpus_bleu_mistakes.parts import arithmetic, shorter_only

mistake = Mistakes()


def _zero_at_once(hypotheses, references):
    """The test for a match is inside the loop over the sentences."""
    seen = Counter()
    for h, r in zip(hypotheses, references, strict=True):
        for n in (1, 2, 3, 4):
            seen[n] += clipped(ngrams(h, n), ngrams(r, n))
        if min(seen.values()) == 0:
            return 0.0
    return bleu()(hypotheses, references)


def _none_where_a_sentence_has_none(hypotheses, references):
    pairs = list(zip(hypotheses, references, strict=True))
    return bleu()(hypotheses, references) if all(bleu()([h], [r]) for h, r in pairs) else 0.0


def _only_words_guarded(hypotheses, references):
    if not bleu(orders=(1,))(hypotheses, references):
        return 0.0
    return bleu(
        share=lambda matches, total, n: matches / total,
        mean=lambda precisions: math.exp(sum(map(math.log, precisions)) / 4),
    )(hypotheses, references)


def _some(keep: Callable[[list, list], bool], *, lengths: bool):
    """Only some pairs are counted; the lengths are those of all pairs, or of the same ones."""

    def kept(hypotheses, references):
        return [(h, r) for h, r in zip(hypotheses, references, strict=True) if keep(h, r)]

    def lengths_kept(hypotheses, references):
        pairs = kept(hypotheses, references)
        return lengths_of([h for h, _ in pairs], [r for _, r in pairs])

    return bleu(pairs=kept, lengths=lengths_kept if lengths else lengths_of)


def _first(hypotheses, references):
    return bleu()(hypotheses[:1], references[:1])


def _last(values):
    return values[-1]


def _last_of_all(sentences):
    return sentences[-1][-1]


def _each_with_each(hypotheses, references):
    pairs = [(h, r) for h in hypotheses for r in references]
    return bleu()([h for h, _ in pairs], [r for _, r in pairs])


def _no_penalty(h, r):
    return 1.0 if h else 0.0


def _of_references(found, wanted):
    return wanted.total()


_PARTS_OF_BLEU: dict[str, tuple[str, dict]] = {
    "not_clipped": ("matches are not limited by the reference", {"clip": unclipped}),
    "no_brevity_penalty": ("the brevity penalty is missing", {"brevity": _no_penalty}),
    "product_without_root": ("the fourth root is missing", {"mean": math.prod}),
    "arithmetic_mean": ("the mean is arithmetic", {"mean": arithmetic, "guarded": True}),
    "recall": ("the divisor is the n-grams of the references", {"total": _of_references}),
    "between_0_and_1": ("the result is not in percent", {"times": 1}),
    "smoothed": ("one is added to each count", {"share": smoothed, "guarded": True}),
    "reward_for_short_output": (
        "the ratio of the lengths is upside down",
        {"brevity": shorter_only(lambda h, r: math.exp(1 - h / r))},
    ),
}


# Which sentences are counted, and when the counts are summed.
@mistake
def matches_of_the_last_sentence(hypotheses, references):
    """Only the matches of the last sentence are counted: `=` is used instead of `+=`."""
    return bleu(add=(_last, sum))(hypotheses, references)


@mistake
def matches_overwritten(hypotheses, references):
    """Only the matches of the last n-gram are counted: `=` is used instead of `+=`."""
    return bleu(
        clip=lambda found, wanted: [min(c, wanted[g]) for g, c in found.items()] or [0], add=(_last_of_all, sum)
    )(hypotheses, references)


@mistake
def only_the_last_sentence_counts(hypotheses, references):
    """Only the matches and n-grams of the last sentence are counted: both are overwritten in the loop instead of
    summed."""
    return bleu(add=(_last, _last))(hypotheses, references)


@mistake
def totals_of_the_last_sentence(hypotheses, references):
    """The matches of all sentences are divided by the n-grams of the last one: `=` is used instead of `+=`."""
    return bleu(add=(sum, _last))(hypotheses, references)


@mistake
def only_the_first_sentence(hypotheses, references):
    """Only the first pair of sentences counts: there is a `return` or `break` inside the loop."""
    return _first(hypotheses, references)


@mistake
def each_with_each(hypotheses, references):
    """Every hypothesis is compared with every reference. Go through the two lists in parallel."""
    return _each_with_each(hypotheses, references)


@mistake
def empty_ones_left_out(hypotheses, references):
    """Pairs with an empty hypothesis are left out altogether. The length of their references still counts in the
    brevity penalty."""
    return _some(lambda h, r: bool(h), lengths=True)(hypotheses, references)


@mistake
def short_ones_left_out(hypotheses, references):
    """Hypotheses of fewer than four tokens are left out altogether. Their words count in the lower orders, and their
    lengths in the penalty."""
    return _some(lambda h, r: len(h) >= 4, lengths=True)(hypotheses, references)


@mistake
def ngrams_of_short_ones_left_out(hypotheses, references):
    """The n-grams of hypotheses with fewer than four tokens are left out. They have words, and count in the orders for
    which they have n-grams."""
    return _some(lambda h, r: len(h) >= 4, lengths=False)(hypotheses, references)


@mistake
def zero_after_the_first_sentences(hypotheses, references):
    """0.0 is returned as soon as the sentences so far have no match of some order. Whether there is one is known only
    after all sentences: what is inside the loop?"""
    return _zero_at_once(hypotheses, references)


@mistake
def zero_for_one_sentence(hypotheses, references):
    """0.0 is returned if one sentence has no match of some order. The whole corpus counts."""
    return _none_where_a_sentence_has_none(hypotheses, references)


# Zeros.
@mistake
def smoothed_guarded(hypotheses, references):
    """One is added to each count. There is no smoothing here: a precision is simply matches divided by n-grams."""
    return bleu(share=smoothed, guarded=True)(hypotheses, references)


@mistake
def smoothed_above_one_guarded(hypotheses, references):
    """One is added to the counts of n-grams above one, even where there are matches. There is no smoothing here."""
    return bleu(share=smoothed_above_one, guarded=True)(hypotheses, references)


@mistake
def zeros_left_out_of_the_sum(hypotheses, references):
    """The logarithm of an order without a match is left out of the sum, as if its precision were 1. Such an order makes
    BLEU 0.0."""
    return bleu(mean=lambda precisions: math.exp(sum(math.log(p) for p in precisions if p) / 4))(hypotheses, references)


@mistake
def nothing_guarded(hypotheses, references):
    """For an order without a match there is no logarithm, and for one without n-grams the divisor is zero. Test for
    both first."""
    return bleu(
        share=lambda matches, total, n: matches / total,
        mean=lambda precisions: math.exp(sum(map(math.log, precisions)) / 4),
    )(hypotheses, references)


@mistake
def logarithm_of_zero_where_there_are_ngrams(hypotheses, references):
    """An order that has n-grams and no match among them has the precision 0, and 0 has no logarithm: what does the
    contract say there?"""
    return bleu(
        share=lambda matches, total, n: matches / total if total else None,
        mean=lambda precisions: (
            0.0 if None in precisions else math.exp(sum(map(math.log, precisions)) / len(precisions))
        ),
    )(hypotheses, references)


@mistake
def only_words_guarded(hypotheses, references):
    """The test is whether any word matches, not whether there are matches of the longer orders, which may also have no
    n-grams."""
    return _only_words_guarded(hypotheses, references)


# What is returned.
@mistake
def a_tensor(hypotheses, references):
    """The result is a tensor. The contract asks for a float."""
    return bleu(form=torch.tensor, guarded=True)(hypotheses, references)


@mistake
def whole_number(hypotheses, references):
    """The result is truncated to a whole number. Round only where the number is printed."""
    return bleu(form=int)(hypotheses, references)


@mistake
def rounded_to_whole(hypotheses, references):
    """The result is rounded to a whole number. Round only where the number is printed."""
    return bleu(form=lambda x: float(round(x)))(hypotheses, references)


@mistake
def rounded_to_one(hypotheses, references):
    """The result is rounded to one decimal. Round only where the number is printed."""
    return bleu(form=lambda x: round(x, 1))(hypotheses, references)


for a, (first, one) in _PARTS_OF_BLEU.items():
    for b, (second, other) in _PARTS_OF_BLEU.items():
        if a < b and not one.keys() & other.keys():
            says = f"There are two mistakes here: {first}, and {second}. Correct them one at a time."
            mistake.named(f"{a}+{b}", says)(bleu(**one, **other))
