"""Mistakes in `corpus_bleu`: the common ones."""

from __future__ import annotations

import math
from collections import Counter

from course_lib.exercises._mistakes import Mistakes
from course_lib.exercises.decoding.bleu_parts import (
    any_reference,
    bleu,
    inverted,
    joined,
    mean_of_precisions,
    mean_of_sentences,
    never_zero,
    ngrams,
    penalty_for_each_sentence,
    smoothed,
    smoothed_above_one,
    unclipped,
    zeros_left_out,
)
from course_lib.exercises.decoding.corpus_bleu import corpus_bleu

mistake = Mistakes()


@mistake(key="mean_of_sentences")
def mean_of_sentences_(hypotheses, references):
    """BLEU is computed for each sentence and averaged. The counts of all sentences are summed first and then divided
    once."""
    return mean_of_sentences(hypotheses, references)


@mistake(key="mean_of_precisions")
def mean_of_precisions_(hypotheses, references):
    """A precision is computed for each sentence and averaged. A long sentence has more n-grams and counts for more: sum
    first, then divide."""
    return mean_of_precisions(hypotheses, references)


@mistake
def not_clipped(hypotheses, references):
    """An n-gram matches every time that it is repeated. “the the the” should not match a reference with one “the” three
    times."""
    return bleu(clip=unclipped)(hypotheses, references)


@mistake
def sets(hypotheses, references):
    """Each different n-gram counts once, however often it occurs. Count all occurrences, in hypothesis and
    reference."""
    return bleu(count=lambda tokens, n: Counter(set(ngrams(tokens, n))))(hypotheses, references)


@mistake
def sentences_joined(hypotheses, references):
    """All sentences are joined into one, so there are n-grams across sentence boundaries, and a match may lie in
    another sentence's reference."""
    return joined(hypotheses, references)


@mistake(key="any_reference")
def any_reference_(hypotheses, references):
    """An n-gram may match in the reference of any sentence. Each hypothesis has its own."""
    return any_reference(hypotheses, references)


@mistake
def arithmetic_mean(hypotheses, references):
    """The arithmetic mean of the four precisions is taken. BLEU takes the geometric mean, which is zero where one of
    them is."""
    return bleu(mean=lambda precisions: sum(precisions) / len(precisions))(hypotheses, references)


@mistake
def product_without_root(hypotheses, references):
    """The precisions are multiplied, but the fourth root is missing."""
    return bleu(mean=math.prod)(hypotheses, references)


@mistake
def no_brevity_penalty(hypotheses, references):
    """The brevity penalty has no effect, so a few safe words would be a perfect translation. The lengths are numbers of
    tokens; the numbers of sentences are always equal."""
    return bleu(brevity=lambda h, r: 1.0 if h else 0.0)(hypotheses, references)


@mistake
def penalty_inverted(hypotheses, references):
    """The lengths in the penalty are exchanged: it penalises long output but not short output."""
    return bleu(brevity=inverted)(hypotheses, references)


@mistake
def bonus_for_length(hypotheses, references):
    """Output longer than the references gets a factor above one. The penalty is never above 1."""
    return bleu(brevity=lambda h, r: math.exp(1 - r / h) if h else 0.0)(hypotheses, references)


@mistake
def ratio_of_lengths(hypotheses, references):
    """The penalty is the ratio of the lengths itself. It is an exponential of one minus a ratio."""
    return bleu(brevity=lambda h, r: min(1.0, h / r))(hypotheses, references)


@mistake
def exponent_of_the_other_ratio(hypotheses, references):
    """The exponent of the penalty has hypothesis over reference, the wrong way round, with the sign reversed to
    match."""
    return bleu(brevity=lambda h, r: min(1.0, math.exp(h / r - 1)) if h else 0.0)(hypotheses, references)


@mistake(key="penalty_for_each_sentence")
def penalty_for_each_sentence_(hypotheses, references):
    """The brevity penalty is computed for each sentence, and averaged. It is computed over the whole corpus: a long
    sentence may make up for a short one."""
    return penalty_for_each_sentence(hypotheses, references)


@mistake
def recall(hypotheses, references):
    """Matches are divided by the number of n-grams of the *references*. That is recall; precision is the share of the
    output that is right."""
    return bleu(total=lambda found, wanted: sum(wanted.values()))(hypotheses, references)


@mistake
def arguments_exchanged(hypotheses, references):
    """Hypotheses and references are exchanged throughout: precisions and penalty are those of the references."""
    return bleu()(references, hypotheses)


@mistake(key="smoothed")
def smoothed_(hypotheses, references):
    """One is added to each count. There is no smoothing here: an order without a match gives 0.0."""
    return bleu(share=smoothed)(hypotheses, references)


@mistake(key="smoothed_above_one")
def smoothed_above_one_(hypotheses, references):
    """One is added to the counts of n-grams longer than one. There is no smoothing here."""
    return bleu(share=smoothed_above_one)(hypotheses, references)


@mistake
def small_number_for_zero(hypotheses, references):
    """A tiny number replaces a precision of zero, so that the logarithm exists. The contract asks for 0.0 there."""
    return bleu(mean=never_zero)(hypotheses, references)


@mistake(key="zeros_left_out")
def zeros_left_out_(hypotheses, references):
    """Orders without a match are left out of the mean. They make BLEU 0.0."""
    return bleu(mean=zeros_left_out)(hypotheses, references)


@mistake
def logarithm_of_zero(hypotheses, references):
    """The logarithm of zero does not exist: test for an order without a match first."""
    return bleu(mean=lambda precisions: math.exp(sum(map(math.log, precisions)) / 4))(hypotheses, references)


@mistake
def division_by_zero(hypotheses, references):
    """Hypotheses without n-grams of some order cause a division by zero: they may be short, or empty."""
    return bleu(share=lambda matches, total, n: matches / total)(hypotheses, references)


@mistake
def between_0_and_1(hypotheses, references):
    """The result is between 0 and 1. The contract asks for 0 to 100."""
    return bleu(times=1)(hypotheses, references)


@mistake
def rounded(hypotheses, references):
    """The result is rounded. Round only where the number is printed."""
    return round(corpus_bleu(hypotheses, references), 2)


@mistake
def words_only(hypotheses, references):
    """Only single words are compared, so their order does not matter. Where are the longer n-grams?"""
    return bleu(orders=(1,))(hypotheses, references)


@mistake
def four_grams_only(hypotheses, references):
    """Only n-grams of length four are compared. All four orders belong to the mean."""
    return bleu(orders=(4,))(hypotheses, references)
