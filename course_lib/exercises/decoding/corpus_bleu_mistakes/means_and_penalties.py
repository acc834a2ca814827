"""Mistakes in `corpus_bleu`: the mean of the precisions, and the brevity penalty."""

from __future__ import annotations

import math

from course_lib.exercises._mistakes import Mistakes
from course_lib.exercises.decoding.bleu_parts import bleu, brevity_of, clipped, lengths_of, ngrams
from course_lib.exercises.decoding.corpus_bleu_mistakes.parts import arithmetic, shorter_only

mistake = Mistakes()


def _logs(logarithm, weight=lambda n: 1 / 4):
    return lambda precisions: (
        math.exp(sum(weight(n) * logarithm(p) for n, p in enumerate(precisions, 1))) if all(precisions) else 0.0
    )


def _pooled(hypotheses, references):
    matches = totals = 0
    for n in (1, 2, 3, 4):
        pairs = [(ngrams(h, n), ngrams(r, n)) for h, r in zip(hypotheses, references, strict=True)]
        common = sum(clipped(found, wanted) for found, wanted in pairs)
        if not common:
            return 0.0
        matches += common
        totals += sum(found.total() for found, _ in pairs)
    return 100 * brevity_of(*lengths_of(hypotheses, references)) * matches / totals


def _last_lengths(hypotheses, references):
    return len(hypotheses[-1]), len(references[-1])


def _lengths_first(h, r):
    return 1.0 if h > r else math.exp(1 - r / h)


# Combining four precisions into one number.
@mistake
def arithmetic_mean_guarded(hypotheses, references):
    """The arithmetic mean of the four precisions is taken. BLEU takes the geometric mean, which one low precision pulls
    down."""
    return bleu(mean=arithmetic, guarded=True)(hypotheses, references)


@mistake
def harmonic_mean(hypotheses, references):
    """The precisions are averaged harmonically: the mean of their inverses. BLEU takes the geometric mean."""
    return bleu(mean=lambda precisions: len(precisions) / sum(1 / p for p in precisions), guarded=True)(
        hypotheses, references
    )


@mistake
def pooled(hypotheses, references):
    """Matches of all four orders are added up and divided once, by all n-grams together. Each order has a precision
    of its own."""
    return _pooled(hypotheses, references)


@mistake
def sum_of_precisions(hypotheses, references):
    """The four precisions are added up. BLEU takes their geometric mean."""
    return bleu(mean=sum, guarded=True)(hypotheses, references)


@mistake
def square_root(hypotheses, references):
    """The square root of the product of four precisions is taken. How many factors are there?"""
    return bleu(mean=lambda precisions: math.prod(precisions) ** 0.5)(hypotheses, references)


@mistake
def quarter_of_the_product(hypotheses, references):
    """The product is divided by 4 instead of taking its fourth root: a power binds more tightly than a division."""
    return bleu(mean=lambda precisions: math.prod(precisions) / 4)(hypotheses, references)


@mistake
def power_of_zero(hypotheses, references):
    """The precisions have no effect: `1 // 4` is 0, and anything to the power of 0 is 1."""
    return bleu(mean=lambda precisions: 1.0, guarded=True)(hypotheses, references)


@mistake
def binary_logarithm(hypotheses, references):
    """The logarithm has base 2, but its inverse has base e. Both need the same base."""
    return bleu(mean=_logs(math.log2))(hypotheses, references)


@mistake
def decimal_logarithm(hypotheses, references):
    """The logarithm has base 10, but its inverse has base e. Both need the same base."""
    return bleu(mean=_logs(math.log10))(hypotheses, references)


@mistake
def logarithms_never_undone(hypotheses, references):
    """The mean of the logarithms is used as it is, a negative number. What undoes a logarithm?"""
    return bleu(mean=lambda precisions: sum(map(math.log, precisions)) / 4, guarded=True)(hypotheses, references)


@mistake
def divided_by_n(hypotheses, references):
    """The logarithm of order n is divided by n. All four orders have the same weight, one quarter."""
    return bleu(mean=_logs(math.log, lambda n: 1 / n))(hypotheses, references)


@mistake
def three_orders_and_a_fourth_root(hypotheses, references):
    """Three precisions are multiplied, but the fourth root is taken: `range(1, 4)` ends before 4."""
    return bleu(orders=(1, 2, 3), mean=_logs(math.log))(hypotheses, references)


@mistake
def always_zero(hypotheses, references):
    """The result is always 0.0. Is there an order that is never counted (`range(1, 4)` ends before 4), or a fraction
    that `//` rounds down to 0?"""
    return 0.0


# The brevity penalty.
@mistake
def reward_for_short_output(hypotheses, references):
    """Short output gets a factor above one: the ratio in the exponent is upside down. A penalty is below one."""
    return bleu(brevity=shorter_only(lambda h, r: math.exp(1 - h / r)))(hypotheses, references)


@mistake
def sign_of_the_exponent(hypotheses, references):
    """Short output gets a factor above one: the exponent has the wrong sign. A penalty is below one."""
    return bleu(brevity=shorter_only(lambda h, r: math.exp(r / h - 1)))(hypotheses, references)


@mistake
def one_missing_in_the_exponent(hypotheses, references):
    """The 1 in the exponent of the penalty is missing, so that it jumps to e⁻¹ where the output is one word too
    short."""
    return bleu(brevity=shorter_only(lambda h, r: math.exp(-r / h)))(hypotheses, references)


@mistake
def exponent_outside(hypotheses, references):
    """The exponential is taken of the ratio alone, and the 1 stands outside: 1 − e^(r/h) is not a factor between 0
    and 1."""
    return bleu(brevity=shorter_only(lambda h, r: 1 - math.exp(r / h)))(hypotheses, references)


@mistake
def exponential_missing(hypotheses, references):
    """The penalty is 1 − r/h itself, without the exponential, and negative where the output is short."""
    return bleu(brevity=shorter_only(lambda h, r: 1 - r / h))(hypotheses, references)


@mistake
def condition_of_the_penalty_inverted(hypotheses, references):
    """The penalty has the right formula, but is applied in the wrong case: output that is long enough is penalised, and
    short output is not."""
    return bleu(brevity=lambda h, r: (1.0 if h <= r else math.exp(1 - r / h)) if h else 0.0)(hypotheses, references)


@mistake
def penalty_of_whole_numbers(hypotheses, references):
    """The ratio of the lengths is rounded down: `//` gives 1 where the output is a little too short, and the penalty
    has no effect there."""
    return bleu(brevity=shorter_only(lambda h, r: math.exp(1 - r // h)))(hypotheses, references)


@mistake
def penalty_subtracted(hypotheses, references):
    """The penalty is added to the logarithms as it is. It is a factor: its own logarithm could be added."""
    return bleu(together=lambda penalty, mean: math.exp(penalty) * mean)(hypotheses, references)


@mistake
def lengths_of_the_last_sentence(hypotheses, references):
    """The penalty uses only the last sentence: the lengths are overwritten in the loop instead of summed."""
    return bleu(lengths=_last_lengths)(hypotheses, references)


@mistake
def empty_output_divides_by_zero(hypotheses, references):
    """The penalty divides by the length of the output, which may be 0."""
    return _lengths_first(*lengths_of(hypotheses, references)) * bleu(brevity=lambda h, r: 1.0)(hypotheses, references)
