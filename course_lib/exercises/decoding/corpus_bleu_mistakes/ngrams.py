"""Mistakes in `corpus_bleu`: which n-grams there are, and how they are counted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from course_lib.exercises._mistakes import Mistakes
from course_lib.exercises.decoding.bleu_parts import bleu, brevity_of, clipped, lengths_of, ngrams, root
from course_lib.exercises.decoding.corpus_bleu import corpus_bleu

mistake = Mistakes()


@mistake
def up_to_three(hypotheses, references):
    """The longest n-grams have three words: `range(1, 4)` ends before 4."""
    return bleu(orders=(1, 2, 3))(hypotheses, references)


@mistake
def up_to_five(hypotheses, references):
    """n-grams of five are counted, too. BLEU-4 ends with four."""
    return bleu(orders=(1, 2, 3, 4, 5))(hypotheses, references)


@mistake
def last_ngram_missing(hypotheses, references):
    """The last n-gram of each sentence is missing: L tokens have L − n + 1 of them."""
    return bleu(count=lambda tokens, n: Counter(tuple(tokens[i : i + n]) for i in range(len(tokens) - n)))(
        hypotheses, references
    )


@mistake
def pieces_at_the_end(hypotheses, references):
    """Pieces shorter than n are counted at the end of a sentence: a slice that goes past the end is merely shorter."""
    return bleu(count=lambda tokens, n: Counter(tuple(tokens[i : i + n]) for i in range(len(tokens))))(
        hypotheses, references
    )


@mistake
def ngrams_side_by_side(hypotheses, references):
    """The sentence is cut into pieces of n words side by side. n-grams overlap: one begins at every word."""
    return bleu(count=lambda tokens, n: Counter(tuple(tokens[i : i + n]) for i in range(0, len(tokens) - n + 1, n)))(
        hypotheses, references
    )


@mistake
def order_of_words_ignored(hypotheses, references):
    """The words of an n-gram are sorted or put into a set, which loses their order."""
    return bleu(count=lambda tokens, n: Counter(tuple(sorted(tokens[i : i + n])) for i in range(len(tokens) - n + 1)))(
        hypotheses, references
    )


@mistake
def case_ignored(hypotheses, references):
    """Tokens that differ only in upper and lower case are counted as a match. Tokens match only if they are equal."""
    return bleu(count=lambda tokens, n: ngrams([token.lower() for token in tokens], n))(hypotheses, references)


@mistake
def same_place(hypotheses, references):
    """An n-gram matches only at the same place in the sentence. One extra word shifts everything after it; places
    should not count."""
    return bleu(count=lambda tokens, n: Counter((i, *tokens[i : i + n]) for i in range(len(tokens) - n + 1)))(
        hypotheses, references
    )


@mistake
def lists_cannot_be_counted(hypotheses, references):
    """A list cannot be a key of a dictionary. A tuple can."""
    return Counter([tokens[i : i + 2] for tokens in hypotheses for i in range(len(tokens))])


@mistake
def references_emptied(hypotheses, references):
    """Matched tokens are taken out of the caller's lists. The number is right, but the lists belong to the caller."""
    score = corpus_bleu(hypotheses, references)
    for reference in references:
        reference.clear()
    return score


def _sizes(length: Callable[[int, int], int]):
    """The number of n-grams comes from a formula with the sentence's length; the n-grams themselves are counted
    correctly."""

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
    """Matches of other pieces, divided by the right number of n-grams."""

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


def _pieces(start, stop, size, step=1):
    return lambda tokens, n: Counter(
        tuple(tokens[i : i + size(n)]) for i in range(start, max(0, stop(len(tokens), n)), step)
    )


# Matches of a sentence.
@mistake
def larger_count(hypotheses, references):
    """Where counts differ, the larger one is taken as the number of matches, so some matches are counted that are not
    in both. The smaller number is common to both."""
    return bleu(clip=lambda found, wanted: sum(max(count, wanted[g]) for g, count in found.items()), guarded=True)(
        hypotheses, references
    )


@mistake
def count_of_the_reference(hypotheses, references):
    """An n-gram of the hypothesis matches as often as it occurs in the reference, so a word that the hypothesis
    contains once may match twice."""
    return bleu(clip=lambda found, wanted: sum(wanted[g] for g in found))(hypotheses, references)


@mistake
def each_match_once(hypotheses, references):
    """A repeated n-gram matches only once, while the divisor counts every occurrence. It may match as often as it
    occurs in the reference."""
    return bleu(clip=lambda found, wanted: len(found.keys() & wanted.keys()))(hypotheses, references)


@mistake
def equal_counts_only(hypotheses, references):
    """An n-gram counts only if hypothesis and reference contain it equally often, and then once. With unequal counts,
    the number of matches is the smaller count."""
    return bleu(clip=lambda found, wanted: sum(wanted[g] == count for g, count in found.items()))(
        hypotheses, references
    )


# How many n-grams there are.
@mistake
def different_ngrams_counted(hypotheses, references):
    """The matches are divided by the number of *different* n-grams. Each occurrence counts."""
    return bleu(total=lambda found, wanted: len(found))(hypotheses, references)


@mistake
def words_counted_for_every_order(hypotheses, references):
    """Every order is divided by the number of words. There are fewer longer n-grams: where does the last one begin?"""
    return _sizes(lambda length, n: length)(hypotheses, references)


@mistake
def one_ngram_too_few_divides(hypotheses, references):
    """The divisor has one n-gram too few for each sentence: L tokens have L − n + 1."""
    return _sizes(lambda length, n: max(length - n, 0))(hypotheses, references)


@mistake
def negative_numbers_of_ngrams(hypotheses, references):
    """A hypothesis shorter than n has a negative number of n-grams here, which is subtracted from the others. It has
    none."""
    return _sizes(lambda length, n: length - n + 1)(hypotheses, references)


@mistake
def at_least_one_ngram(hypotheses, references):
    """A hypothesis shorter than n counts as if it had one n-gram. It has none."""
    return _sizes(lambda length, n: max(length - n + 1, 1))(hypotheses, references)


@mistake
def number_of_sentences_divides(hypotheses, references):
    """The matches are divided by the number of sentences. They are divided by the number of n-grams."""
    return _sizes(lambda length, n: 1)(hypotheses, references)


# Pieces of a sentence.
@mistake
def from_zero_to_three(hypotheses, references):
    """The orders run from 0 to 3: `range(4)` begins with 0, and “n-grams” of no words always match."""
    return bleu(orders=(0, 1, 2, 3))(hypotheses, references)


@mistake
def one_word_too_long(hypotheses, references):
    """Each piece has one word too many, so the orders are 2 to 5: where does a slice end?"""
    return bleu(count=_pieces(0, lambda length, n: length - n, lambda n: n + 1))(hypotheses, references)


@mistake
def one_word_too_long_with_pieces(hypotheses, references):
    """Each piece has one word too many, and the last one of a sentence is shorter: where does a slice end?"""
    return bleu(count=_pieces(0, lambda length, n: length - n + 1, lambda n: n + 1))(hypotheses, references)


@mistake
def slice_ends_at_n(hypotheses, references):
    """The slices end at place n of the sentence, not n places after their beginning, so nearly all are empty."""
    return bleu(
        count=lambda tokens, n: Counter(tuple(tokens[i:n]) for i in range(len(tokens) - n + 1)),
    )(hypotheses, references)


@mistake
def last_match_missing(hypotheses, references):
    """The last n-gram of each sentence never matches, although it is counted in the divisor."""
    return _with_full_totals(lambda tokens, n: [tuple(tokens[i : i + n]) for i in range(len(tokens) - n)])(
        hypotheses, references
    )


@mistake
def pieces_match(hypotheses, references):
    """Pieces shorter than n match at the end of a sentence, but are not in the divisor: a slice that goes past the end
    is merely shorter."""
    return _with_full_totals(lambda tokens, n: [tuple(tokens[i : i + n]) for i in range(len(tokens))])(
        hypotheses, references
    )


@mistake
def matches_side_by_side(hypotheses, references):
    """Matches are looked for in pieces side by side, and divided by the number of all n-grams. n-grams overlap: one
    begins at every word."""
    return _with_full_totals(lambda tokens, n: [tuple(tokens[i : i + n]) for i in range(0, len(tokens) - n + 1, n)])(
        hypotheses, references
    )


@mistake
def set_of_words(hypotheses, references):
    """An n-gram is a set of words here: neither their order nor a repetition counts."""
    return bleu(count=lambda tokens, n: Counter(frozenset(tokens[i : i + n]) for i in range(len(tokens) - n + 1)))(
        hypotheses, references
    )


@mistake
def glued_together(hypotheses, references):
    """The words of an n-gram are joined without a separator, so that “ab c” matches “a bc”."""
    return bleu(
        count=lambda tokens, n: Counter("".join(map(str, tokens[i : i + n])) for i in range(len(tokens) - n + 1))
    )(hypotheses, references)
