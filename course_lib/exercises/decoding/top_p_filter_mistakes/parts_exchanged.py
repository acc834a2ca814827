"""Mistakes in `top_p_filter`: one part of the computation is replaced, and two at once."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch

from course_lib.exercises._mistakes import Mistakes

mistake = Mistakes()


def _filter(
    *,
    probs=lambda logits, p: logits.softmax(-1),
    descending=True,
    remove=lambda sums, ranked, p: sums - ranked >= p,
    place=lambda logits, removed, order: torch.zeros_like(removed).scatter(0, order, removed),
    of=lambda logits: logits.clone(),
    fill=-math.inf,
    form=lambda filtered, kept, order: filtered,
):
    """The filter with parts replaced; unchanged, it is right."""

    def solution(logits, p):
        ranked, order = probs(logits, p).sort(descending=descending)
        removed = place(logits, remove(ranked.cumsum(-1), ranked, p), order)
        return form(of(logits).masked_fill(removed, fill), ~removed, order)

    return solution


def _all_but_the_first(number: Callable):
    """The first tokens in the order are kept, the given number of them."""
    return lambda sums, ranked, p: torch.arange(len(sums)) >= number(sums, ranked, p)


def _pulled(sums, ranked, p):
    removed = sums > p
    removed[:-1] = removed[1:].clone()
    removed[0] = False
    return removed


def _pushed_without_first(sums, ranked, p):
    removed = sums > p
    removed[1:] = removed[:-1].clone()
    return removed


def _logits_multiplied(logits, p):
    kept = _filter()(logits, p).isfinite()
    return torch.where(kept, logits, logits * -math.inf)


_PARTS_OF_THE_FILTER: dict[str, tuple[str, dict]] = {
    "crossing_token_dropped": ("the token that reaches `p` is dropped", {"remove": lambda sums, ranked, p: sums > p}),
    "crossing_token_dropped_but_one_kept": (
        "the token that reaches `p` is dropped unless it is the first",
        {"remove": lambda sums, ranked, p: (sums > p) & (torch.arange(len(sums)) > 0)},
    ),
    "order_not_restored": ("ranks are used as token ids", {"place": lambda logits, removed, order: removed}),
    "least_probable_kept": ("the sum begins with the least probable token", {"descending": False}),
    "filled_with_zero": ("the others get 0", {"fill": 0.0}),
    "filled_with_a_large_number": ("the others get a large negative number", {"fill": -1e9}),
    "probabilities_returned": (
        "probabilities are returned, 0 for the others",
        {"of": lambda logits: logits.softmax(-1), "fill": 0.0},
    ),
    "log_probabilities_returned": ("log-probabilities are returned", {"of": lambda logits: logits.log_softmax(-1)}),
}


@mistake
def first_still_removed(logits, p):
    """The marks for removal are shifted by one rank, but the first rank keeps its old mark: if a single token reaches
    `p`, it is removed itself. The most probable token always belongs to the set."""
    return _filter(remove=_pushed_without_first)(logits, p)


@mistake
def moved_the_wrong_way(logits, p):
    """The marks for removal are shifted by one rank in the wrong direction, so two tokens too few are kept."""
    return _filter(remove=_pulled)(logits, p)


@mistake
def head_removed(logits, p):
    """The tokens before the sum reaches `p` are removed, and the tail is kept: the comparison is reversed."""
    return _filter(remove=lambda sums, ranked, p: sums < p)(logits, p)


@mistake
def rest_of_p(logits, p):
    """The sum is compared with 1 − p. Counted from the most probable token, it has to reach `p`."""
    return _filter(remove=lambda sums, ranked, p: sums - ranked >= 1 - p)(logits, p)


@mistake
def crossing_token_dropped_at_the_rest_of_p(logits, p):
    """The sum is compared with 1 − p, and the token that reaches it is dropped. It has to reach `p`, and that token
    belongs to the set."""
    return _filter(remove=lambda sums, ranked, p: sums > 1 - p)(logits, p)


@mistake
def own_probability_first_kept(logits, p):
    """A token is kept where its own probability reaches `p`, and the first one always. The sum over a set has to reach
    it."""
    return _filter(remove=lambda sums, ranked, p: (ranked < p) & (torch.arange(len(ranked)) > 0))(logits, p)


@mistake
def own_probability_above_the_rest_first_kept(logits, p):
    """A token is kept where its own probability reaches 1 − p, and the first one always. The sum over a set counts."""
    return _filter(remove=lambda sums, ranked, p: (ranked < 1 - p) & (torch.arange(len(ranked)) > 0))(logits, p)


@mistake
def rounded_share_of_the_vocabulary(logits, p):
    """A share `p` of the vocabulary is kept, rounded down. The number of tokens depends on their probabilities."""
    return _filter(remove=_all_but_the_first(lambda sums, ranked, p: int(p * len(sums))))(logits, p)


@mistake
def rounded_share_of_the_vocabulary_one_kept(logits, p):
    """A share `p` of the vocabulary is kept, rounded down, and at least one. The number of tokens depends on their
    probabilities."""
    return _filter(remove=_all_but_the_first(lambda sums, ranked, p: max(1, int(p * len(sums)))))(logits, p)


@mistake
def sigmoid(logits, p):
    """The sums are over sigmoids, which do not sum to one. The probabilities of a choice among tokens come from a
    softmax."""
    return _filter(probs=lambda logits, p: logits.sigmoid())(logits, p)


@mistake
def p_as_a_temperature(logits, p):
    """The logits are divided by `p` before the softmax, as by a temperature. The probabilities are those of the
    logits as they are."""
    return _filter(probs=lambda logits, p: (logits / p).softmax(-1))(logits, p)


@mistake
def logits_summed_before_the_softmax(logits, p):
    """The softmax is applied to a running sum of logits. It should be the other way round: first probabilities, then
    their running sum."""
    return _filter(remove=lambda sums, ranked, p: sums > p, probs=lambda logits, p: logits)(logits, p)


@mistake
def products(logits, p):
    """Probabilities are multiplied along the ranks. Their sum has to reach `p`."""
    return _filter(remove=lambda sums, ranked, p: ranked.cumprod(-1) > p)(logits, p)


@mistake
def plus_infinity(logits, p):
    """The others get +∞, which takes all the probability. They should get −∞."""
    return _filter(fill=math.inf)(logits, p)


@mistake
def not_a_number(logits, p):
    """The others are `nan`, and a softmax of that is `nan` everywhere. It should be −∞."""
    return _filter(fill=math.nan)(logits, p)


@mistake
def multiplied_by_minus_infinity(logits, p):
    """The others are multiplied by −∞: for a negative logit that is +∞. They should *become* −∞."""
    return _logits_multiplied(logits, p)


@mistake
def probabilities_with_infinity(logits, p):
    """Probabilities are returned, with −∞ for the others. The kept *logits* should stay as they are."""
    return _filter(of=lambda logits: logits.softmax(-1))(logits, p)


@mistake
def tokens_returned(logits, p):
    """The ids of the set are returned. The contract asks for logits, with −∞ for the others."""
    return _filter(form=lambda filtered, kept, order: order[kept[order]])(logits, p)


@mistake
def order_returned_too(logits, p):
    """The indices of the sort are returned as well. The contract asks only for the logits."""
    return _filter(form=lambda filtered, kept, order: (filtered, order))(logits, p)


mistake.two_at_once(_PARTS_OF_THE_FILTER, _filter)
