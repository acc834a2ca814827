"""Mistakes in `speculative_acceptance`: the probability with which a token is kept."""

from __future__ import annotations

import torch

from course_lib.exercises._mistakes import Mistakes
from course_lib.exercises.efficiency.speculative_acceptance_mistakes.parts import acceptance, kept

mistake = Mistakes()


@mistake
def ratio_turned_round(target, draft):
    """The ratio is turned round: it is draft / target. Which token has to be rejected more often, one that is drafted
    too often or one that is drafted too rarely?"""
    return acceptance(lambda t, d: kept(d, t))(target, draft)


@mistake
def ratio_not_clamped(target, draft):
    """target / draft can be larger than 1, and infinite where draft is 0. A probability cannot: what is the largest it
    may be?"""
    return acceptance(lambda t, d: t / d)(target, draft)


@mistake
def ratio_not_clamped_without_zeros(target, draft):
    """Where draft is 0 the answer is right, but elsewhere target / draft can be larger than 1. What is the largest a
    probability may be?"""
    return acceptance(lambda t, d: (t / d.masked_fill(d == 0, 1.0)).masked_fill(d == 0, 1.0))(target, draft)


@mistake
def largest_for_smallest(target, draft):
    """The larger of 1 and the ratio is taken, so nothing is ever rejected. A probability is at most 1."""
    return acceptance(lambda t, d: (t / d.masked_fill(d == 0, 1.0)).clamp(min=1.0))(target, draft)


@mistake
def nan_where_both_are_zero(target, draft):
    """Where target and draft are both 0, the ratio is 0 / 0, which is NaN. The contract has 1 wherever draft is 0."""
    return acceptance(lambda t, d: (t / d).clamp(max=1.0))(target, draft)


@mistake
def zero_where_both_are_zero(target, draft):
    """Where target and draft are both 0, accept is 0. The contract has 1 wherever draft is 0. Is a NaN replaced by 0,
    or a small number added to the divisor?"""
    return acceptance(lambda t, d: (t / d).nan_to_num(0.0).clamp(max=1.0))(target, draft)


@mistake
def zero_where_draft_is_zero(target, draft):
    """A token that is never drafted gets accept = 0. The contract has 1 there: such a token is never drafted too
    often."""
    return acceptance(lambda t, d: kept(t, d).masked_fill(d == 0, 0.0))(target, draft)


@mistake
def target_where_draft_is_zero(target, draft):
    """Where draft is 0 the target is returned, because the divisor was replaced by 1 and the result was not. The
    contract has 1 there."""
    return acceptance(lambda t, d: (t / d.masked_fill(d == 0, 1.0)).clamp(max=1.0))(target, draft)


@mistake
def one_where_target_is_zero(target, draft):
    """A token with target = 0 is kept. The large model never draws it, so it must be rejected; the exception of the
    contract is for draft = 0."""
    return acceptance(lambda t, d: kept(t, d).masked_fill(t == 0, 1.0))(target, draft)


for small in ("1e-3", "1e-4", "1e-5", "1e-6", "1e-7", "1e-8", "1e-9", "1e-10"):
    mistake.named(
        f"small_number_in_the_divisor_{small}",
        f"A number near {small} is added to draft before the division. That avoids 0 / 0, but it changes the ratio "
        f"of every token, and gives 0 where both are 0. Treat the zeros separately, and leave the others as they are.",
    )(acceptance(lambda t, d, small=float(small): (t / (d + small)).clamp(max=1.0)))


@mistake
def kept_or_not(target, draft):
    """accept is only 0 or 1: whether target is at least draft. A token that is drafted too often is still kept
    sometimes, with the ratio as its probability."""
    return acceptance(lambda t, d: (t >= d).to(t.dtype))(target, draft)


@mistake
def kept_or_not_as_a_mask(target, draft):
    """accept is True or False: whether target is at least draft. A token that is drafted too often is still kept
    sometimes, with the ratio as its probability."""
    return acceptance(lambda t, d: t >= d)(target, draft)


@mistake
def smaller_probability(target, draft):
    """The smaller of the two probabilities is returned. That is how often a token is drafted *and* kept; accept is how
    often it is kept once it has been drafted."""
    return acceptance(torch.minimum)(target, draft)


@mistake
def rejection_probability(target, draft):
    """This is the probability of rejecting a token. accept is the probability of keeping it."""
    return acceptance(lambda t, d: 1 - kept(t, d))(target, draft)


@mistake
def one_number_per_row(target, draft):
    """This is one number per row, the probability that any drafted token is kept. accept has one number for each token
    of the vocabulary."""
    return acceptance(lambda t, d: torch.minimum(t, d).sum(-1, keepdim=True))(target, draft)


@mistake
def one_number_per_row_repeated(target, draft):
    """All tokens of a row get the same number, the probability that any drafted token is kept. Each token has its
    own."""
    return acceptance(lambda t, d: torch.minimum(t, d).sum(-1, keepdim=True).expand(t.shape))(target, draft)


@mistake
def accept_normalised(target, draft):
    """accept is normalised so that it sums to one. It is a probability for each token by itself, and not a distribution
    over the vocabulary."""
    return acceptance(lambda t, d: kept(t, d) / kept(t, d).sum(-1, keepdim=True))(target, draft)


@mistake
def share_of_the_sum(target, draft):
    """target is divided by target + draft. The divisor is draft alone, and the ratio is limited to 1."""
    return acceptance(lambda t, d: t / (t + d))(target, draft)


@mistake
def difference_for_ratio(target, draft):
    """accept is made from the difference of the two probabilities. Their ratio says which share of the drafts of a
    token should be kept."""
    return acceptance(lambda t, d: (1 + t - d).clamp(max=1.0))(target, draft)


@mistake
def ratio_of_logarithms(target, draft):
    """The logarithms of the probabilities are divided. The ratio of two probabilities belongs to the *difference* of
    their logarithms."""
    return acceptance(lambda t, d: (t.log() / d.log()).clamp(max=1.0))(target, draft)


@mistake
def clamped_draft(target, draft):
    """The ratio is limited by the draft and not by 1."""
    return acceptance(lambda t, d: torch.minimum(t / d.masked_fill(d == 0, 1.0), d))(target, draft)


@mistake
def drawn_at_random(target, draft):
    """Random numbers are drawn to decide which tokens are kept. The exercise asks for the probabilities themselves."""
    return acceptance(lambda t, d: (torch.rand_like(t) < kept(t, d)).to(t.dtype))(target, draft)
