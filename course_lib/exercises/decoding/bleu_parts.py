"""BLEU with parts exchanged, and what the mistakes exchange."""

from __future__ import annotations

import itertools
import math
from collections import Counter

__all__ = [
    "any_reference",
    "bleu",
    "brevity_of",
    "clipped",
    "inverted",
    "joined",
    "lengths_of",
    "mean_of_precisions",
    "mean_of_sentences",
    "never_zero",
    "ngrams",
    "penalty_for_each_sentence",
    "root",
    "smoothed",
    "smoothed_above_one",
    "unclipped",
    "zeros_left_out",
]


def lengths_of(hypotheses, references) -> tuple[int, int]:
    return sum(map(len, hypotheses)), sum(map(len, references))


def ngrams(tokens, n):
    return Counter(tuple(tokens[i : i + n]) for i in range(len(tokens) - n + 1))


def clipped(found, wanted):
    return sum((found & wanted).values())


def unclipped(found, wanted):
    return sum(count for ngram, count in found.items() if ngram in wanted)


def root(precisions):
    return math.exp(sum(map(math.log, precisions)) / len(precisions)) if all(precisions) else 0.0


def share_of(matches, total, n):
    return matches / total if total else 0.0


def brevity_of(h, r):
    return min(1.0, math.exp(1 - r / h)) if h else 0.0


def bleu(
    *,
    clip=clipped,
    total=lambda found, wanted: sum(found.values()),
    share=share_of,
    mean=root,
    brevity=brevity_of,
    orders=(1, 2, 3, 4),
    count=ngrams,
    times=100,
    pairs=lambda hypotheses, references: zip(hypotheses, references, strict=True),
    lengths=lengths_of,
    add=(sum, sum),
    guarded=False,
    together=lambda penalty, mean: penalty * mean,
    form=float,
):
    """BLEU with one part exchanged; as it stands, it is right.

    Args:
        clip: matches of one sentence, from the counts of its n-grams and of those of its reference.
        total: what the matches of a sentence are compared with, from the same two counts.
        share: precision of an order, from matches, total and n.
        mean: of the precisions.
        brevity: the penalty, from both lengths.
        count: the n-grams of a sentence.
        pairs: which sentences are compared.
        lengths: of hypotheses and references.
        add: how matches and totals of the sentences become one number each.
        guarded: whether 0.0 comes back at once where an order has no match.
        together: the result from penalty and mean.
        form: what the result is at last.
    """

    def solution(hypotheses, references):
        precisions = []
        for n in orders:
            counts = [(count(h, n), count(r, n)) for h, r in pairs(hypotheses, references)]
            matches, totals = (
                adding([part(found, wanted) for found, wanted in counts])
                for adding, part in zip(add, (clip, total), strict=True)
            )
            if guarded and not matches:
                return 0.0
            precisions.append(share(matches, totals, n))
        return form(times * together(brevity(*lengths(hypotheses, references)), mean(precisions)))

    return solution


def mean_of_sentences(hypotheses, references):
    each = [bleu()([h], [r]) for h, r in zip(hypotheses, references, strict=True)]
    return sum(each) / len(each)


def mean_of_precisions(hypotheses, references):
    precisions = []
    for n in (1, 2, 3, 4):
        each = [
            share_of(clipped(ngrams(h, n), ngrams(r, n)), sum(ngrams(h, n).values()), n)
            for h, r in zip(hypotheses, references, strict=True)
        ]
        precisions.append(sum(each) / len(each))
    return 100 * brevity_of(*lengths_of(hypotheses, references)) * root(precisions)


def joined(hypotheses, references):
    return bleu()([list(itertools.chain(*hypotheses))], [list(itertools.chain(*references))])


def any_reference(hypotheses, references):
    precisions = []
    for n in (1, 2, 3, 4):
        wanted = sum((ngrams(r, n) for r in references), Counter())
        found = [ngrams(h, n) for h in hypotheses]
        precisions.append(share_of(sum(clipped(f, wanted) for f in found), sum(sum(f.values()) for f in found), n))
    return 100 * brevity_of(*lengths_of(hypotheses, references)) * root(precisions)


def penalty_for_each_sentence(hypotheses, references):
    each = [brevity_of(len(h), len(r)) for h, r in zip(hypotheses, references, strict=True)]
    return sum(each) / len(each) * bleu(brevity=lambda h, r: 1.0)(hypotheses, references)


def inverted(h, r):
    return min(1.0, math.exp(1 - h / r))


def smoothed(matches, total, n):
    return (matches + 1) / (total + 1)


def smoothed_above_one(matches, total, n):
    return share_of(matches, total, n) if n == 1 else (matches + 1) / (total + 1)


def never_zero(precisions):
    return math.exp(sum(math.log(max(p, 1e-9)) for p in precisions) / len(precisions))


def zeros_left_out(precisions):
    above = [p for p in precisions if p > 0]
    return root(above) if above else 0.0
