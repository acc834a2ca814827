"""Solutions to `online_softmax_step` that break one clause of the contract each."""

import torch
from contract_clauses import breaks

STEP = "online_softmax_step"
ROUND = "accurate to about 1e-5 in float32 and 1e-10 in float64"
FINITE = "finite for scores up to ±1e4"


def step(maximum, total, output, scores, value):
    larger = torch.maximum(maximum, scores.amax(-1))
    factor, weights = (maximum - larger).exp(), (scores - larger[..., None]).exp()
    return larger, total * factor + weights.sum(-1), output * factor[..., None] + weights @ value


@breaks(STEP, "maximum over all keys so far")
def maximum_of_the_new_keys(maximum, total, output, scores, value):
    _, grown, added = step(maximum, total, output, scores, value)
    return scores.amax(-1), grown, added


@breaks(STEP, "total is the sum of exp(s − maximum) over all keys so far")
def old_total_keeps_its_size(maximum, total, output, scores, value):
    larger, _, added = step(maximum, total, output, scores, value)
    return larger, total + (scores - larger[..., None]).exp().sum(-1), added


@breaks(STEP, "output is the sum of exp(s − maximum) v over all keys so far")
def old_output_keeps_its_size(maximum, total, output, scores, value):
    larger, grown, _ = step(maximum, total, output, scores, value)
    return larger, grown, output + (scores - larger[..., None]).exp() @ value


@breaks(STEP, "output is a sum, not divided by total")
def output_is_an_average(maximum, total, output, scores, value):
    larger, grown, added = step(maximum, total, output, scores, value)
    return larger, grown, added / grown[..., None]


@breaks(STEP, "maximum is one number per query")
def maximum_of_all_queries(maximum, total, output, scores, value):
    larger = torch.maximum(maximum, scores.amax((-2, -1), keepdim=True)[..., 0]).clone()
    factor, weights = (maximum - larger).exp(), (scores - larger[..., None]).exp()
    return larger, total * factor + weights.sum(-1), output * factor[..., None] + weights @ value


@breaks(STEP, "before the first block: −inf, 0 and 0")
def first_block_gives_nan(maximum, total, output, scores, value):
    larger, grown, added = step(maximum, total, output, scores, value)
    return larger, grown + 0 * maximum, added


@breaks(STEP, "before the first block: −inf, 0 and 0")
def first_block_is_known_by_its_zeros(maximum, total, output, scores, value):
    if not total.any():
        maximum = torch.zeros_like(maximum)
    return step(maximum, total, output, scores, value)


@breaks(STEP, FINITE)
def only_the_old_maximum(maximum, total, output, scores, value):
    start = torch.where(maximum.isinf(), scores.amax(-1), maximum)
    weights = (scores - start[..., None]).exp()
    grown, added = total + weights.sum(-1), output + weights @ value
    larger = torch.maximum(start, scores.amax(-1))
    return larger, grown * (start - larger).exp(), added * (start - larger).exp()[..., None]


@breaks(STEP, FINITE)
def differences_clamped(maximum, total, output, scores, value):
    larger = torch.maximum(maximum, scores.amax(-1))
    factor, weights = (maximum - larger).clamp(min=-8).exp(), (scores - larger[..., None]).clamp(min=-8).exp()
    factor = factor * maximum.isfinite()
    return larger, total * factor + weights.sum(-1), output * factor[..., None] + weights @ value


@breaks(STEP, FINITE + ": all scores far below zero")
def maximum_never_below_a_hundred(maximum, total, output, scores, value):
    return step(maximum.clamp(min=-100), total, output, scores, value)


@breaks(STEP, "the order of the blocks does not matter to total and output: the maximum may stay")
def maximum_must_grow(maximum, total, output, scores, value):
    larger = torch.maximum(maximum, scores.amax(-1))
    factor = (maximum - scores.amax(-1)).exp()
    weights = (scores - larger[..., None]).exp()
    return larger, total * factor + weights.sum(-1), output * factor[..., None] + weights @ value


@breaks(STEP, "leading dimensions may be any number of batch dimensions, including none")
def only_with_a_batch(maximum, total, output, scores, value):
    if scores.dim() == 2:
        raise IndexError("there is no batch")
    return step(maximum, total, output, scores, value)


@breaks(STEP, "leading dimensions may be any number of batch dimensions, including none")
def at_most_one_batch_dimension(maximum, total, output, scores, value):
    if scores.dim() > 3:
        raise RuntimeError("batch2 must be a 3D tensor")
    return step(maximum, total, output, scores, value)


@breaks(STEP, "d_v is independent of the length of the block")
def as_many_features_as_keys(maximum, total, output, scores, value):
    larger, grown, added = step(maximum, total, output, scores, value)
    return larger, grown, added.reshape(scores.shape)


@breaks(STEP, "a block may have a single key")
def blocks_of_one_key_are_squeezed(maximum, total, output, scores, value):
    if scores.shape[-1] == 1:
        value = value.squeeze(-2)
    return step(maximum, total, output, scores, value)


@breaks(STEP, "a tensor is right in any layout of its memory")
def views_of_the_scores(maximum, total, output, scores, value):
    return step(maximum, total, output, scores.view(-1).view(scores.shape), value)


@breaks(STEP, "returns (maximum, total, output), in this order")
def output_comes_first(*state):
    maximum, total, output = step(*state)
    return output, maximum, total


@breaks(STEP, "maximum and total are (..., L_q)")
def sums_keep_an_axis(*state):
    maximum, total, output = step(*state)
    return maximum[..., None], total[..., None], output


@breaks(STEP, "a solution leaves its arguments unchanged: total")
def total_changed(maximum, total, output, scores, value):
    results = step(maximum, total, output, scores, value)
    total.add_(1)
    return results


@breaks(STEP, "a solution leaves its arguments unchanged: output")
def output_changed(maximum, total, output, scores, value):
    results = step(maximum, total, output, scores, value)
    output.copy_(results[2].detach())
    return results


@breaks(STEP, "a solution leaves its arguments unchanged: scores")
def scores_changed(maximum, total, output, scores, value):
    results = step(maximum, total, output, scores, value)
    scores.sub_(1)
    return results


@breaks(STEP, "lets gradients through")
def maximum_without_gradient(maximum, total, output, scores, value):
    _, grown, added = step(maximum, total, output, scores, value)
    return torch.maximum(maximum, scores.amax(-1)).detach(), grown, added


@breaks(STEP, "lets gradients through to the state")
def state_detached(maximum, total, output, scores, value):
    return step(maximum.detach(), total.detach(), output.detach(), scores, value)


@breaks(STEP, "keeps the dtype")
def always_float64(*state):
    return step(*(x.double() for x in state))


@breaks(STEP, ROUND)
def float32_inside(*state):
    return tuple(x.to(state[0].dtype) for x in step(*(x.float() for x in state)))


@breaks(STEP, ROUND)
def number_in_the_total(*state):
    maximum, total, output = step(*state)
    return maximum, total + 1e-6, output
