"""Further mistakes in BLEU: slips of arithmetic, of bookkeeping, and two of the common ones at once."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable

import torch

from course_lib.exercises._bleu_parts import (
    bleu,
    brevity_of,
    clipped,
    lengths_of,
    ngrams,
    root,
    smoothed,
    smoothed_above_one,
    unclipped,
)
from course_lib.exercises._exercise import Exercise

__all__ = ["add_slips"]


def _sizes(length: Callable[[int, int], int]):
    """The number of n-grams by a formula of a sentence's length, its n-grams being counted as they should."""

    def solution(hypotheses, references):
        precisions = []
        for n in (1, 2, 3, 4):
            pairs = [(ngrams(h, n), ngrams(r, n)) for h, r in zip(hypotheses, references, strict=True)]
            matches = sum(clipped(found, wanted) for found, wanted in pairs)
            if not matches:
                return 0.0
            precisions.append(matches / sum(length(len(h), n) for h in hypotheses))
        return 100 * brevity_of(*lengths_of(hypotheses, references)) * root(precisions)

    return solution


def _with_full_totals(count):
    """Matches of other pieces, over the right number of n-grams."""

    def matches(hypotheses, references, n):
        pairs = zip(hypotheses, references, strict=True)
        return sum(clipped(Counter(count(h, n)), Counter(count(r, n))) for h, r in pairs)

    def solution(hypotheses, references):
        precisions = []
        for n in (1, 2, 3, 4):
            total = sum(max(len(h) - n + 1, 0) for h in hypotheses)
            common = matches(hypotheses, references, n)
            precisions.append(common / total if common else 0.0)
        return 100 * brevity_of(*lengths_of(hypotheses, references)) * root(precisions)

    return solution


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


def _zero_at_once(hypotheses, references):
    """The question for a match stands inside the loop over the sentences."""
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
    """Only some pairs are looked at; the lengths are those of all, or of the same ones."""

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


def _last_lengths(hypotheses, references):
    return len(hypotheses[-1]), len(references[-1])


def _each_with_each(hypotheses, references):
    pairs = [(h, r) for h in hypotheses for r in references]
    return bleu()([h for h, _ in pairs], [r for _, r in pairs])


def _shorter_only(penalty):
    """1.0 for output that is long enough, and this for shorter output."""
    return lambda h, r: (1.0 if h >= r else penalty(h, r)) if h else 0.0


def _lengths_first(h, r):
    return 1.0 if h > r else math.exp(1 - r / h)


def _no_penalty(h, r):
    return 1.0 if h else 0.0


def _arithmetic(precisions):
    return sum(precisions) / len(precisions)


def _of_references(found, wanted):
    return wanted.total()


def _pieces(start, stop, size, step=1):
    return lambda tokens, n: Counter(
        tuple(tokens[i : i + size(n)]) for i in range(start, max(0, stop(len(tokens), n)), step)
    )


_SLIPS: list[tuple[str, str, Callable]] = [
    # Matches of a sentence.
    (
        "larger_count",
        "Where counts differ, the larger one is taken as the number of matches, so a match is counted that is not in "
        "both. What is common to both is the smaller number.",
        bleu(clip=lambda found, wanted: sum(max(count, wanted[g]) for g, count in found.items()), guarded=True),
    ),
    (
        "count_of_the_reference",
        "An n-gram of the hypothesis matches as often as it stands in the reference, however often it was written: "
        "a word that is written once may match twice.",
        bleu(clip=lambda found, wanted: sum(wanted[g] for g in found)),
    ),
    (
        "each_match_once",
        "A repeated n-gram matches once only, while the number that divides counts every occurrence. It may match as "
        "often as it stands in the reference.",
        bleu(clip=lambda found, wanted: len(found.keys() & wanted.keys())),
    ),
    (
        "equal_counts_only",
        "An n-gram counts only where hypothesis and reference have it equally often, and then once. Unequal counts "
        "match as often as both have it.",
        bleu(clip=lambda found, wanted: sum(wanted[g] == count for g, count in found.items())),
    ),
    # How many n-grams there are.
    (
        "different_ngrams_counted",
        "The matches are divided by the number of *different* n-grams. Each occurrence counts.",
        bleu(total=lambda found, wanted: len(found)),
    ),
    (
        "words_counted_for_every_order",
        "Every order is divided by the number of words. There are fewer longer n-grams: where does the last one begin?",
        _sizes(lambda length, n: length),
    ),
    (
        "one_ngram_too_few_divides",
        "The matches are divided by one n-gram too few for each sentence: L tokens have L − n + 1.",
        _sizes(lambda length, n: max(length - n, 0)),
    ),
    (
        "negative_numbers_of_ngrams",
        "A hypothesis shorter than n has a negative number of n-grams here, which is taken off the others. It has "
        "none.",
        _sizes(lambda length, n: length - n + 1),
    ),
    (
        "at_least_one_ngram",
        "A hypothesis shorter than n counts as if it had one n-gram. It has none.",
        _sizes(lambda length, n: max(length - n + 1, 1)),
    ),
    (
        "number_of_sentences_divides",
        "The matches are divided by the number of sentences. They are divided by the number of n-grams.",
        _sizes(lambda length, n: 1),
    ),
    # Pieces of a sentence.
    (
        "from_zero_to_three",
        "The orders run from 0 to 3: `range(4)` begins with 0, and “n-grams” of no words always match.",
        bleu(orders=(0, 1, 2, 3)),
    ),
    (
        "one_word_too_long",
        "Each piece has one word too many, so the orders are 2 to 5: where does a slice end?",
        bleu(count=_pieces(0, lambda length, n: length - n, lambda n: n + 1)),
    ),
    (
        "one_word_too_long_with_pieces",
        "Each piece has one word too many, and the last one of a sentence is shorter: where does a slice end?",
        bleu(count=_pieces(0, lambda length, n: length - n + 1, lambda n: n + 1)),
    ),
    (
        "slice_ends_at_n",
        "The slices end at place n of the sentence, not n places after their beginning, so nearly all are empty.",
        bleu(
            count=lambda tokens, n: Counter(tuple(tokens[i:n]) for i in range(len(tokens) - n + 1)),
        ),
    ),
    (
        "last_match_missing",
        "The last n-gram of each sentence never matches, though it is counted in the number that divides.",
        _with_full_totals(lambda tokens, n: [tuple(tokens[i : i + n]) for i in range(len(tokens) - n)]),
    ),
    (
        "pieces_match",
        "Pieces shorter than n match at the end of a sentence, and are not in the number that divides: a slice that "
        "goes past the end is only shorter.",
        _with_full_totals(lambda tokens, n: [tuple(tokens[i : i + n]) for i in range(len(tokens))]),
    ),
    (
        "matches_side_by_side",
        "Matches are looked for in pieces side by side, and divided by the number of all n-grams. n-grams overlap: one "
        "begins at every word.",
        _with_full_totals(lambda tokens, n: [tuple(tokens[i : i + n]) for i in range(0, len(tokens) - n + 1, n)]),
    ),
    (
        "set_of_words",
        "An n-gram is a set of words here: neither their order nor a repetition counts.",
        bleu(count=lambda tokens, n: Counter(frozenset(tokens[i : i + n]) for i in range(len(tokens) - n + 1))),
    ),
    (
        "glued_together",
        "The words of an n-gram are glued together without anything between, so that “ab c” matches “a bc”.",
        bleu(count=lambda tokens, n: Counter("".join(map(str, tokens[i : i + n])) for i in range(len(tokens) - n + 1))),
    ),
    # One number from four.
    (
        "arithmetic_mean_guarded",
        "The four precisions are averaged by their sum. BLEU takes the geometric mean, which one low precision pulls "
        "down.",
        bleu(mean=_arithmetic, guarded=True),
    ),
    (
        "harmonic_mean",
        "The precisions are averaged harmonically: the mean of their inverses. BLEU takes the geometric mean.",
        bleu(mean=lambda precisions: len(precisions) / sum(1 / p for p in precisions), guarded=True),
    ),
    (
        "pooled",
        "Matches of all four orders are added up and divided once, by all n-grams together. Each order has a precision "
        "of its own.",
        _pooled,
    ),
    (
        "sum_of_precisions",
        "The four precisions are added up. BLEU takes their geometric mean.",
        bleu(mean=sum, guarded=True),
    ),
    (
        "square_root",
        "The product of four precisions has the square root taken of it. How many factors are there?",
        bleu(mean=lambda precisions: math.prod(precisions) ** 0.5),
    ),
    (
        "quarter_of_the_product",
        "The product is divided by 4, and no root is taken of it: a power binds more tightly than a division.",
        bleu(mean=lambda precisions: math.prod(precisions) / 4),
    ),
    (
        "power_of_zero",
        "The precisions have no effect: `1 // 4` is 0, and anything to the power of 0 is 1.",
        bleu(mean=lambda precisions: 1.0, guarded=True),
    ),
    (
        "binary_logarithm",
        "The logarithm has base 2, and what undoes it has base e. Both have to be of one kind.",
        bleu(mean=_logs(math.log2)),
    ),
    (
        "decimal_logarithm",
        "The logarithm has base 10, and what undoes it has base e. Both have to be of one kind.",
        bleu(mean=_logs(math.log10)),
    ),
    (
        "logarithms_never_undone",
        "The mean of the logarithms is used as it is, a negative number. What undoes a logarithm?",
        bleu(mean=lambda precisions: sum(map(math.log, precisions)) / 4, guarded=True),
    ),
    (
        "divided_by_n",
        "The logarithm of order n is divided by n. All four orders have the same weight, one quarter.",
        bleu(mean=_logs(math.log, lambda n: 1 / n)),
    ),
    (
        "three_orders_and_a_fourth_root",
        "Three orders are multiplied, and the fourth root is taken: `range(1, 4)` ends before 4.",
        bleu(orders=(1, 2, 3), mean=_logs(math.log)),
    ),
    (
        "always_zero",
        "The result is always 0.0. Is there an order that is never counted (`range(1, 4)` ends before 4), or a "
        "fraction that `//` rounds down to 0?",
        lambda hypotheses, references: 0.0,
    ),
    # The brevity penalty.
    (
        "reward_for_short_output",
        "Short output gets a factor above one: the ratio in the exponent is upside down. A penalty is below one.",
        bleu(brevity=_shorter_only(lambda h, r: math.exp(1 - h / r))),
    ),
    (
        "sign_of_the_exponent",
        "Short output gets a factor above one: the exponent has the wrong sign. A penalty is below one.",
        bleu(brevity=_shorter_only(lambda h, r: math.exp(r / h - 1))),
    ),
    (
        "one_missing_in_the_exponent",
        "The 1 in the exponent of the penalty is missing, so that it jumps to e⁻¹ where the output is one word too "
        "short.",
        bleu(brevity=_shorter_only(lambda h, r: math.exp(-r / h))),
    ),
    (
        "exponent_outside",
        "The exponential is taken of the ratio alone, and the 1 stands outside: 1 − e^(r/h) is not a factor between 0 "
        "and 1.",
        bleu(brevity=_shorter_only(lambda h, r: 1 - math.exp(r / h))),
    ),
    (
        "exponential_missing",
        "The penalty is 1 − r/h itself, without the exponential, and negative where the output is short.",
        bleu(brevity=_shorter_only(lambda h, r: 1 - r / h)),
    ),
    (
        "condition_of_the_penalty_inverted",
        "The penalty has the right formula, and the wrong side gets it: output that is long enough is changed, and "
        "short output goes free.",
        bleu(brevity=lambda h, r: (1.0 if h <= r else math.exp(1 - r / h)) if h else 0.0),
    ),
    (
        "penalty_of_whole_numbers",
        "The ratio of the lengths is rounded down: `//` gives 1 where the output is a little too short, and the "
        "penalty has no effect there.",
        bleu(brevity=_shorter_only(lambda h, r: math.exp(1 - r // h))),
    ),
    (
        "penalty_subtracted",
        "The penalty is added to the logarithms as it is. It is a factor: its own logarithm could be added.",
        bleu(together=lambda penalty, mean: math.exp(penalty) * mean),
    ),
    (
        "lengths_of_the_last_sentence",
        "The penalty looks at the last sentence alone: the lengths are overwritten in the loop, and not summed up.",
        bleu(lengths=_last_lengths),
    ),
    (
        "empty_output_divides_by_zero",
        "The penalty divides by the length of the output, which may be 0.",
        lambda hypotheses, references: (
            _lengths_first(*lengths_of(hypotheses, references)) * bleu(brevity=lambda h, r: 1.0)(hypotheses, references)
        ),
    ),
    # Which sentences, and when the counts come together.
    (
        "matches_of_the_last_sentence",
        "The matches are those of the last sentence alone: `=` stands where `+=` belongs.",
        bleu(add=(_last, sum)),
    ),
    (
        "matches_overwritten",
        "The number of matches is that of the last n-gram alone: `=` stands where `+=` belongs.",
        bleu(clip=lambda found, wanted: [min(c, wanted[g]) for g, c in found.items()] or [0], add=(_last_of_all, sum)),
    ),
    (
        "only_the_last_sentence_counts",
        "Matches and n-grams are those of the last sentence alone: both are overwritten in the loop, and not summed "
        "up.",
        bleu(add=(_last, _last)),
    ),
    (
        "totals_of_the_last_sentence",
        "The matches of all sentences are divided by the n-grams of the last one: `=` stands where `+=` belongs.",
        bleu(add=(sum, _last)),
    ),
    (
        "only_the_first_sentence",
        "Only the first pair of sentences counts: a `return` or `break` stands inside the loop.",
        _first,
    ),
    (
        "each_with_each",
        "Every hypothesis is compared with every reference. Two lists side by side are gone through together.",
        _each_with_each,
    ),
    (
        "empty_ones_left_out",
        "Pairs with an empty hypothesis are left out altogether. Nothing was written, and what should have been "
        "counts in the brevity penalty.",
        _some(lambda h, r: bool(h), lengths=True),
    ),
    (
        "short_ones_left_out",
        "Hypotheses of fewer than four tokens are left out altogether. Their words count in the lower orders, and "
        "their lengths in the penalty.",
        _some(lambda h, r: len(h) >= 4, lengths=True),
    ),
    (
        "ngrams_of_short_ones_left_out",
        "The n-grams of hypotheses with fewer than four tokens are left out. They have words, and count in the orders "
        "that they have.",
        _some(lambda h, r: len(h) >= 4, lengths=False),
    ),
    (
        "zero_after_the_first_sentences",
        "0.0 comes back as soon as the sentences so far have no match of some order. Whether there is one is known "
        "when all sentences are through: what stands inside the loop?",
        _zero_at_once,
    ),
    (
        "zero_for_one_sentence",
        "0.0 comes back where one sentence has no match of some order. What counts is the whole corpus.",
        _none_where_a_sentence_has_none,
    ),
    # Zeros.
    (
        "smoothed_guarded",
        "One is added to each count. There is no smoothing here: a precision is matches over n-grams, nothing more.",
        bleu(share=smoothed, guarded=True),
    ),
    (
        "smoothed_above_one_guarded",
        "One is added to the counts of n-grams above one, also where there are matches. There is no smoothing here.",
        bleu(share=smoothed_above_one, guarded=True),
    ),
    (
        "zeros_left_out_of_the_sum",
        "The logarithm of an order without a match is left out of the sum, as if its precision were 1. It makes BLEU "
        "0.0.",
        bleu(mean=lambda precisions: math.exp(sum(math.log(p) for p in precisions if p) / 4)),
    ),
    (
        "nothing_guarded",
        "An order without a match has no logarithm, and one without n-grams divides by zero. Both have to be looked at "
        "before.",
        bleu(
            share=lambda matches, total, n: matches / total,
            mean=lambda precisions: math.exp(sum(map(math.log, precisions)) / 4),
        ),
    ),
    (
        "logarithm_of_zero_where_there_are_ngrams",
        "An order that has n-grams and no match among them has the precision 0, and 0 has no logarithm: what does the "
        "contract say there?",
        bleu(
            share=lambda matches, total, n: matches / total if total else None,
            mean=lambda precisions: (
                0.0 if None in precisions else math.exp(sum(map(math.log, precisions)) / len(precisions))
            ),
        ),
    ),
    (
        "only_words_guarded",
        "It is asked whether any word matches, and not whether there are matches of the longer orders, which may be "
        "without n-grams too.",
        _only_words_guarded,
    ),
    # What comes back.
    ("a_tensor", "The result is a tensor. The contract asks for a float.", bleu(form=torch.tensor, guarded=True)),
    (
        "whole_number",
        "The result is cut down to a whole number. Round only where the number is printed.",
        bleu(form=int),
    ),
    (
        "rounded_to_whole",
        "The result is rounded to a whole number. Round only where the number is printed.",
        bleu(form=lambda x: float(round(x))),
    ),
    (
        "rounded_to_one",
        "The result is rounded to one decimal. Round only where the number is printed.",
        bleu(form=lambda x: round(x, 1)),
    ),
]

_COMMON: dict[str, tuple[str, dict]] = {
    "not_clipped": ("matches are not limited by the reference", {"clip": unclipped}),
    "no_brevity_penalty": ("the brevity penalty is missing", {"brevity": _no_penalty}),
    "product_without_root": ("the fourth root is missing", {"mean": math.prod}),
    "arithmetic_mean": ("the mean is arithmetic", {"mean": _arithmetic, "guarded": True}),
    "recall": ("the n-grams of the references divide", {"total": _of_references}),
    "between_0_and_1": ("the result is not in percent", {"times": 1}),
    "smoothed": ("one is added to each count", {"share": smoothed, "guarded": True}),
    "reward_for_short_output": (
        "the ratio of the lengths is upside down",
        {"brevity": _shorter_only(lambda h, r: math.exp(1 - h / r))},
    ),
}


def add_slips(exercise: Exercise) -> None:
    """Add the mistakes of this module to those of the exercise."""
    for key, says, solution in _SLIPS:
        exercise.misconception(key, says)(solution)
    for a, (first, one) in _COMMON.items():
        for b, (second, other) in _COMMON.items():
            if a < b and not one.keys() & other.keys():
                says = f"Two mistakes meet here: {first}, and {second}. Mend them one at a time."
                exercise.misconception(f"{a}+{b}", says)(bleu(**one, **other))
