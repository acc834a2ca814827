"""Mistakes in `speculative_acceptance`: the distribution from which another token is drawn."""

from __future__ import annotations

import torch

from course_lib.exercises._mistakes import Mistakes
from course_lib.exercises.efficiency.speculative_acceptance_mistakes.parts import excess, kept, rule

mistake = Mistakes()


@mistake
def residual_not_normalised(target, draft):
    """The residual is max(target − draft, 0) as it is, and does not sum to one. A token can only be drawn from a
    distribution."""
    return rule(normalise=lambda x: x)(target, draft)


@mistake
def residual_without_clamp(target, draft):
    """The negative differences are kept, so the differences of a row sum to zero, and dividing by that gives
    infinities. A token that is drafted too often has nothing to make up for."""
    return rule(rest=lambda t, d: t - d)(target, draft)


@mistake
def plain_difference(target, draft):
    """The residual is target − draft, with its negative numbers, and it is not normalised. A distribution has neither
    negative numbers nor a sum other than one."""
    return rule(rest=lambda t, d: t - d, normalise=lambda x: x)(target, draft)


@mistake
def clamped_after_normalising(target, draft):
    """The differences are normalised first, and clamped afterwards. The differences of a row sum to zero, so the order
    matters."""
    return rule(rest=lambda t, d: t - d, normalise=lambda x: (x / x.sum(-1, keepdim=True)).clamp(min=0.0))(
        target, draft
    )


@mistake
def absolute_difference(target, draft):
    """The residual is made of |target − draft|, so tokens that are drafted too often are drawn once more. Only those
    that are drafted too rarely count."""
    return rule(rest=lambda t, d: (t - d).abs())(target, draft)


@mistake
def absolute_difference_not_normalised(target, draft):
    """The residual is |target − draft|, not normalised. Only tokens that are drafted too rarely count, and the row has
    to sum to one."""
    return rule(rest=lambda t, d: (t - d).abs(), normalise=lambda x: x)(target, draft)


@mistake
def squared_difference(target, draft):
    """The differences are squared. The residual makes up for the difference itself, and only where it is positive."""
    return rule(rest=lambda t, d: (t - d).square())(target, draft)


@mistake
def residual_is_target(target, draft):
    """The residual is the target itself. Tokens that are likely in both models would then come too often, because they
    are also kept when they are drafted."""
    return rule(rest=lambda t, d: t, normalise=lambda x: x.clone())(target, draft)


@mistake
def residual_is_draft(target, draft):
    """The residual is the draft itself. It should make up for what the draft lacks."""
    return rule(rest=lambda t, d: d, normalise=lambda x: x.clone())(target, draft)


@mistake
def difference_turned_round(target, draft):
    """The residual is made of draft − target, or of min(target − draft, 0): the tokens that are drafted too often.
    Which ones are drafted too rarely?"""
    return rule(rest=lambda t, d: excess(d, t))(target, draft)


@mistake
def difference_turned_round_not_normalised(target, draft):
    """The residual is made of draft − target, the tokens that are drafted too often, and it is not normalised."""
    return rule(rest=lambda t, d: excess(d, t), normalise=lambda x: x)(target, draft)


@mistake
def target_of_the_rare_ones(target, draft):
    """The residual has the whole target of each token that is drafted too rarely. The draft gives such a token a part
    of it already; what is missing?"""
    return rule(rest=lambda t, d: torch.where(t > d, t, 0.0))(target, draft)


@mistake
def all_rare_ones_alike(target, draft):
    """All tokens that are drafted too rarely get the same residual. Each needs as much as it lacks."""
    return rule(rest=lambda t, d: (t > d).to(t.dtype))(target, draft)


@mistake
def target_times_rejection(target, draft):
    """The residual is the target times the probability of rejection. It makes up for what is missing, which is a
    difference: a token that is always kept can be drafted too rarely."""
    return rule(rest=lambda t, d: t * (1 - kept(t, d)))(target, draft)


@mistake
def target_minus_accept(target, draft):
    """accept is subtracted from the target. What has to be subtracted is how often the draft draws the token."""
    return rule(rest=lambda t, d: excess(t, kept(t, d)), normalise=lambda x: x)(target, draft)


@mistake
def softmax_of_the_difference(target, draft):
    """The residual is a softmax of the differences. A softmax is for scores; probabilities are normalised by dividing
    by their sum."""
    return rule(rest=lambda t, d: t - d, normalise=lambda x: x.softmax(-1))(target, draft)


@mistake
def softmax_of_the_positive_difference(target, draft):
    """The residual is a softmax of the positive differences, so tokens that are drafted often enough get a share as
    well. Probabilities are normalised by dividing by their sum."""
    return rule(normalise=lambda x: x.softmax(-1))(target, draft)


@mistake
def divided_by_the_largest(target, draft):
    """The residual is divided by its largest entry. It is a distribution if it is divided by its sum."""
    return rule(normalise=lambda x: x / x.amax(-1, keepdim=True))(target, draft)


@mistake
def divided_by_the_number_of_tokens(target, draft):
    """The residual is divided by the number of tokens. It is a distribution if it is divided by its sum."""
    return rule(normalise=lambda x: x / x.shape[-1])(target, draft)


@mistake
def divided_by_the_norm(target, draft):
    """The residual is divided by the root of the sum of squares. It is a distribution if it is divided by its sum."""
    return rule(normalise=lambda x: x / x.norm(dim=-1, keepdim=True))(target, draft)


@mistake
def divided_by_the_sum_of_all_rows(target, draft):
    """The residual is divided by the sum over all rows. Each row is a distribution of its own."""
    return rule(normalise=lambda x: x / x.sum())(target, draft)


@mistake
def divided_by_the_sum_of_a_column(target, draft):
    """The residual is divided by a sum over the first axis. It is normalised over the vocabulary, the last axis."""
    return rule(normalise=lambda x: x / x.sum(0, keepdim=True))(target, draft)


@mistake
def sum_over_axis_one(target, draft):
    """The residual is normalised along axis 1, counted from the left. The vocabulary is the last axis, and it is axis 1
    for exactly one batch dimension."""
    return rule(normalise=lambda x: x / x.sum(1, keepdim=True))(target, draft)


@mistake
def sum_has_lost_its_axis(target, draft):
    """The sum over the vocabulary has lost its axis, so the division lines it up with another one. A sum can keep its
    axis."""
    return rule(normalise=lambda x: x / x.sum(-1))(target, draft)


@mistake
def divided_by_the_acceptance(target, draft):
    """The residual is divided by the probability that the drafted token is kept. It sums to one if it is divided by the
    probability that it is *not*."""
    return rule(
        rest=lambda t, d: excess(t, d) / torch.minimum(t, d).sum(-1, keepdim=True).clamp(min=1e-12),
        normalise=lambda x: x,
    )(target, draft)


for small in ("1e-3", "1e-5", "1e-6", "1e-8"):
    mistake.named(
        f"small_number_in_the_sum_{small}",
        f"A number near {small} is added to the sum by which the residual is divided, so the row does not quite sum "
        f"to one. The distributions differ in every row, so the sum is positive.",
    )(rule(normalise=lambda x, small=float(small): x / (x.sum(-1, keepdim=True) + small)))
    mistake.named(
        f"clamped_at_{small}",
        f"Differences below {small} are raised to that number, so that tokens that are drafted often enough get a "
        f"share as well. They should get exactly 0.",
    )(rule(rest=lambda t, d, small=float(small): (t - d).clamp(min=small)))


@mistake
def most_missing_token(target, draft):
    """All of the residual goes to one token, the one whose difference is largest. Every token that is drafted too
    rarely needs its share."""
    return rule(normalise=lambda x: torch.nn.functional.one_hot(x.argmax(-1), x.shape[-1]).to(x.dtype))(target, draft)


@mistake
def softmax_of_both(target, draft):
    """Target and draft go through a softmax first. They are probabilities already."""
    return rule()(target.softmax(-1), draft.softmax(-1))
