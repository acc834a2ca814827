"""Mistakes in `speculative_acceptance`: what is returned, dtypes, and both parts at once."""

from __future__ import annotations

import torch

from course_lib.exercises._mistakes import Mistakes
from course_lib.exercises.efficiency.speculative_acceptance import speculative_acceptance
from course_lib.exercises.efficiency.speculative_acceptance_mistakes.parts import excess, kept, rule

mistake = Mistakes()


@mistake
def results_exchanged(target, draft):
    """The residual comes first, then accept. The contract asks for `(accept, residual)`."""
    return speculative_acceptance(target, draft)[::-1]


@mistake
def only_accept(target, draft):
    """Only accept is returned. Without the residual there is no token in place of a rejected one."""
    return speculative_acceptance(target, draft)[0]


@mistake
def only_residual(target, draft):
    """Only the residual is returned. The contract asks for `(accept, residual)`."""
    return speculative_acceptance(target, draft)[1]


@mistake
def stacked(target, draft):
    """Both results are stacked into one tensor. The contract asks for a pair, `(accept, residual)`."""
    return torch.stack(speculative_acceptance(target, draft))


@mistake
def models_exchanged(target, draft):
    """The two models are exchanged. The draft is the distribution that the token was drawn from, and the target the one
    that it should follow."""
    return rule()(draft, target)


@mistake
def only_one_row(target, draft):
    """Only the first row is treated. Every row is a pair of distributions."""
    if target.dim() == 1:
        return speculative_acceptance(target, draft)
    return speculative_acceptance(target[:1], draft[:1])


@mistake
def tokens_picked_out(target, draft):
    """The tokens that are drafted too rarely are picked out with a mask, which leaves fewer tokens than the vocabulary
    has. The others stay, with 0."""
    missing = (target - draft)[target > draft]
    return kept(target, draft), missing / missing.sum()


@mistake
def float32_inside(target, draft):
    """Somewhere inside, the numbers become float32, and float64 input loses half of its digits."""
    return tuple(x.to(target.dtype) for x in speculative_acceptance(target.float(), draft.float()))


@mistake
def accept_detached(target, draft):
    """The values are right, but no gradient flows through accept: `detach`, `.data` or `no_grad` cuts it off."""
    accept, residual = speculative_acceptance(target, draft)
    return accept.detach(), residual


@mistake
def residual_detached(target, draft):
    """The values are right, but no gradient flows through the residual: `detach`, `.data` or `no_grad` cuts it off."""
    accept, residual = speculative_acceptance(target, draft)
    return accept, residual.detach()


@mistake
def zeros_of_the_draft_overwritten(target, draft):
    """The zeros of `draft` are overwritten, and it belongs to the caller. An assignment to a part of a tensor works in
    place; `masked_fill` and `torch.where` return a new tensor."""
    result = speculative_acceptance(target, draft)
    with torch.no_grad():
        draft[draft == 0] = 1.0
    return result


@mistake
def draft_overwritten_before_the_residual(target, draft):
    """The zeros of `draft` are replaced by ones before the residual is computed, so tokens that are never drafted are
    missing in it. The replacement is for the division alone."""
    filled = draft.masked_fill(draft == 0, 1.0)
    return kept(target, draft), (lambda x: x / x.sum(-1, keepdim=True))(excess(target, filled))


mistake.two_at_once(
    {
        "turned_round": ("the ratio is turned round", {"accept": lambda t, d: kept(d, t)}),
        "not_clamped": ("the ratio is not limited to 1", {"accept": lambda t, d: t / d}),
        "nan": ("accept is 0 / 0 where both are 0", {"accept": lambda t, d: (t / d).clamp(max=1.0)}),
        "target": ("the residual is the target", {"rest": lambda t, d: t, "normalise": lambda x: x.clone()}),
        "absolute": ("the residual is made of absolute differences", {"rest": lambda t, d: (t - d).abs()}),
        "unclamped": ("negative differences are kept in the residual", {"rest": lambda t, d: t - d}),
        "not_normalised": ("the residual is not normalised", {"normalise": lambda x: x}),
    },
    rule,
    [{"absolute", "not_normalised"}, {"unclamped", "not_normalised"}],  # named above
)
