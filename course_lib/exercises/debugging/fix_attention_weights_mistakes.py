"""The mistakes in `fix_attention_weights`: the code as given, and repairs that leave or bring a fault."""

from __future__ import annotations

import math

import torch

from course_lib.exercises._mistakes import Mistakes

mistake = Mistakes()


def _scaled_scores(query, key):
    return query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])


@mistake
def as_given(query, key):
    """Right for a single sequence only. In a batch the weights sum to one over the queries, and with several heads over
    the heads."""
    return _scaled_scores(query, key).softmax(1)


@mistake
def keys_transposed_by_axes_1_and_2(query, key):
    """Right with exactly one batch dimension. A single sequence ends in an error, and so do several heads, because the
    two axes of the keys that are exchanged are counted from the left."""
    return (query @ key.transpose(1, 2) / math.sqrt(query.shape[-1])).softmax(-1)


@mistake
def keys_transposed_by_axes_0_and_1(query, key):
    """Right for a single sequence only. In a batch, the sequences are exchanged with the keys, and the product ends in
    an error: the axes are counted from the left."""
    return (query @ key.transpose(0, 1) / math.sqrt(query.shape[-1])).softmax(-1)


@mistake
def over_axis_2(query, key):
    """Right with exactly one batch dimension. With two, the weights sum to one over the queries, and a single sequence
    ends in an error: the axis is still counted from the left."""
    return _scaled_scores(query, key).softmax(2)


@mistake
def over_axis_3(query, key):
    """Right with exactly two batch dimensions, and an error with fewer: the axis is still counted from the left."""
    return _scaled_scores(query, key).softmax(3)


@mistake
def axis_0(query, key):
    """The weights sum to one over the first axis: the queries of a single sequence, or the sequences of a batch. The
    keys are never the first axis."""
    return _scaled_scores(query, key).softmax(0)


@mistake
def over_queries(query, key):
    """In each matrix the columns sum to one: the weights are shared out among the queries. Each query has its own unit
    of attention for the keys."""
    return _scaled_scores(query, key).softmax(-2)


@mistake
def over_heads(query, key):
    """With several heads, the weights sum to one over the heads, and with one batch dimension over the sequences: the
    axis is counted from the right, but by one too many, or two."""
    scores = _scaled_scores(query, key)
    return scores.softmax(max(-3, -scores.dim()))


@mistake
def special_case_for_one_batch_dimension(query, key):
    """Right without a batch and with one batch dimension. With two, the weights sum to one over the queries: a case
    distinction covers two numbers of axes, and a batch may have any number."""
    scores = _scaled_scores(query, key)
    return scores.softmax(1 if scores.dim() == 2 else 2)


@mistake
def axis_left_out(query, key):
    """The softmax is called without an axis, and PyTorch chooses axis 0 or 1 by the number of axes: right for a single
    sequence only."""
    return torch.nn.functional.softmax(_scaled_scores(query, key))


@mistake
def over_all_pairs(query, key):
    """All weights of a matrix together sum to one, so that a query's weights are smaller the more queries there are.
    Each query has a softmax of its own."""
    scores = _scaled_scores(query, key)
    return scores.flatten(-2).softmax(-1).view(scores.shape)


@mistake
def normalised_afterwards(query, key):
    """The rows sum to one again, but in a batch the weights are wrong: a softmax over another axis cannot be put right
    by dividing by the sums of the rows."""
    weights = _scaled_scores(query, key).softmax(1)
    return weights / weights.sum(-1, keepdim=True)


@mistake
def second_softmax(query, key):
    """The rows sum to one, but the weights are nearly uniform: a softmax is applied to numbers that are weights
    already."""
    return _scaled_scores(query, key).softmax(1).softmax(-1)


@mistake
def columns_normalised_afterwards(query, key):
    """The rows sum to one, but each weight depends on the scores of other queries: there is still a softmax over the
    queries before the division."""
    weights = _scaled_scores(query, key).softmax(-2)
    return weights / weights.sum(-1, keepdim=True)


@mistake
def transposed(query, key):
    """The weights are right, but transposed: `(..., L_k, L_q)`, with columns that sum to one. The contract asks for one
    row per query."""
    return _scaled_scores(query, key).softmax(-1).transpose(-2, -1)


@mistake
def matrices_only(query, key):
    """With two batch dimensions the call ends in an error: the product or the shape is written for a certain number of
    axes."""
    scores = torch.bmm(query, key.mT) if query.dim() == 3 else query @ key.t()
    return (scores / math.sqrt(query.shape[-1])).softmax(-1)


@mistake
def batch_added_and_kept(query, key):
    """A single sequence comes back with a batch dimension that it did not have."""
    scores = _scaled_scores(query, key)
    return (scores if scores.dim() > 2 else scores[None]).softmax(-1)


@mistake
def scale_lost(query, key):
    """The weights sum to one over the keys, but they are too concentrated: the scores are no longer divided by √d_k."""
    return (query @ key.transpose(-2, -1)).softmax(-1)


@mistake
def scale_without_root(query, key):
    """The weights sum to one over the keys, but they are too uniform: the scores are divided by d_k instead of its
    root."""
    return (query @ key.transpose(-2, -1) / query.shape[-1]).softmax(-1)


@mistake
def scale_of_the_length(query, key):
    """The weights sum to one over the keys, but the scores are divided by the root of the number of keys. The scale
    depends on the number of features."""
    return (query @ key.transpose(-2, -1) / math.sqrt(key.shape[-2])).softmax(-1)


@mistake
def unstable(query, key):
    """Right for small scores. Large ones give `nan`: the exponential of a score overflows unless the largest score is
    subtracted first."""
    scores = _scaled_scores(query, key).exp()
    return scores / scores.sum(-1, keepdim=True)


@mistake
def logarithms(query, key):
    """The logarithms of the weights are returned instead of the weights."""
    return _scaled_scores(query, key).log_softmax(-1)
