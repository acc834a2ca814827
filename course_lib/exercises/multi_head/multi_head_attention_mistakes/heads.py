"""Mistakes in `MultiHeadAttention`: how heads are split and merged."""

from __future__ import annotations

from course_lib.exercises._headings import VIEW_BUG
from course_lib.exercises._mistakes import Mistakes
from course_lib.exercises.multi_head.merge_heads import merge_heads
from course_lib.exercises.multi_head.multi_head_attention_mistakes.parts import attend_with, each_by_its_own, variant
from course_lib.exercises.multi_head.wrong_splits import cut_straight, every_hth, exchanged, overlapping, unchecked

mistake = Mistakes()


VIEWS = "view_transpose_contiguous: What view and transpose do to memory"


@mistake.built(look=VIEW_BUG)
def view_straight():
    """The heads are split by a `view` straight to (B, H, L, d_head). It only regroups the numbers in memory, so a head
    gets some positions instead of some features. The model trains, but less well. In which order are the numbers of one
    position stored?"""
    return variant(split=cut_straight)


@mistake.built(look=VIEWS)
def merged_without_transpose():
    """The heads are split correctly, but merged without moving their axis: a position of the output gets features of
    one head at several positions. Merging undoes the steps of splitting in reverse order."""
    return variant(merge=lambda x: x.reshape(len(x), x.shape[2], -1))


@mistake.built(look=VIEW_BUG)
def view_straight_both_ways():
    """Splitting and merging go straight from shape to shape, without exchanging any axes. The two steps undo each
    other, but between them a head holds some positions instead of some features."""
    return variant(split=cut_straight, merge=lambda x: x.reshape(len(x), x.shape[2], -1))


@mistake.built(look="multi_head: Splitting features")
def every_hth_feature():
    """Head h takes every num_heads-th feature. The contract asks for slices: neighbouring features stay together."""
    return variant(split=every_hth, merge=lambda x: x.movedim(1, -1).flatten(-2))


@mistake.built(look="multi_head: Splitting features")
def every_hth_feature_split():
    """Splitting gives head h every num_heads-th feature, merging puts slices side by side. Neighbouring features
    should stay together in both."""
    return variant(split=every_hth)


@mistake.built(look="multi_head: Splitting features")
def heads_interleaved():
    """Merging interleaves the heads: the first feature of every head, then the second. Each head's features stay
    together, as they were before the split."""
    return variant(merge=lambda x: x.movedim(1, -1).flatten(-2))


@mistake.built(look="multi_head: Splitting features")
def heads_and_width_exchanged():
    """There are d_head heads of num_heads features: the two numbers are exchanged where the features are cut."""
    return variant(split=exchanged)


@mistake.built(look="multi_head: Splitting features")
def slices_overlap():
    """The slice of head h starts at feature h, so neighbouring heads share features. How many features belong to the
    heads before it?"""
    return variant(split=overlapping)


@mistake.built
def heads_not_split():
    """There is a single attention over all features, whatever num_heads is. Each head needs its own scores, from its
    own slice."""
    return variant(
        split=lambda x, num_heads: x, merge=lambda x: x, mask_as=lambda mask: mask[:, 0] if mask.dim() == 4 else mask
    )


@mistake.built
def heads_not_split_but_named():
    """The weights have an axis for the heads, but of length one: there is a single attention over all features. Each
    head needs its own scores, from its own slice."""
    return variant(split=lambda x, num_heads: x[:, None], merge=lambda x: x[:, 0])


@mistake.built(look="multi_head: Splitting features")
def attends_across_heads():
    """The axis of heads is where that of the positions should be, so the heads of one position attend to each other,
    and no position attends to another. Which axes does the matrix product sum over?"""
    return variant(split=lambda x, n: x.unflatten(-1, (n, -1)), merge=lambda x: x.flatten(-2))


@mistake.built
def attends_across_the_batch():
    """The first axis is treated as the positions, as PyTorch's module does by default. Here the batch comes first, so
    sequences of the batch attend to each other."""
    return variant(
        split=lambda x, n: unchecked(x.transpose(0, 1), n),
        merge=lambda x: merge_heads(x).transpose(0, 1),
    )


def _of_one_length(width):
    def project(self, query, key, value):
        shape = (*query.shape[:2], self.num_heads, width(self, query))
        return tuple(x.reshape(shape) for x in each_by_its_own(self, query, key, value))

    return project


def _swap(x, num_heads):
    return x.transpose(1, 2)


@mistake.built
def one_length_for_all():
    """The length of the queries is used to reshape keys and values too. There may be more or fewer keys than queries:
    which tensor's length do you need?"""
    return variant(project=_of_one_length(lambda self, query: query.shape[2] // self.num_heads), split=_swap)


@mistake.built
def one_length_for_all_and_minus_one():
    """Keys and values are reshaped with the length of the queries, and the width of a head is inferred with −1. There
    may be more or fewer keys than queries: which tensor's length do you need?"""
    return variant(project=_of_one_length(lambda self, query: -1), split=_swap)


@mistake.built(look=VIEW_BUG)
def one_length_for_all_view_straight():
    """Two things: the length of the queries is used to reshape keys and values too; and the `view` straight to (B,
    H, L, d_head) gives a head some positions instead of some features."""
    return variant(
        project=_of_one_length(lambda self, query: query.shape[2] // self.num_heads),
        split=lambda x, num_heads: x.reshape(len(x), num_heads, x.shape[1], -1),
    )


@mistake.built(look="multi_head: Splitting features")
def heads_of_full_width():
    """Each head is given d_model features, so the reshape needs num_heads times as many numbers as there are. How many
    features does a head have?"""
    return variant(split=lambda x, n: x.reshape(*x.shape[:2], n, x.shape[2]).transpose(1, 2))


@mistake.built
def keys_not_transposed():
    """Queries are multiplied by keys as they are, (L_q, d_head) by (L_k, d_head). Which two axes of the keys have to be
    exchanged?"""
    return variant(attend=lambda q, k, v, mask: attend_with()(q, k.transpose(-2, -1), v, mask))


@mistake.built
def heads_and_keys_transposed():
    """For the scores, axes 1 and 2 of the keys are exchanged: with heads, those are heads and positions. Count from the
    right."""
    return variant(attend=lambda q, k, v, mask: attend_with()(q, k.transpose(1, 2).transpose(-2, -1), v, mask))


@mistake.built
def all_axes_transposed():
    """For the scores, the keys are transposed by `.T`, which reverses all axes, including batch and heads. Only the
    last two are the matrix."""
    return variant(attend=lambda q, k, v, mask: attend_with()(q, k.permute(3, 2, 1, 0).transpose(-2, -1), v, mask))


@mistake.built(look=VIEWS)
def view_of_transposed():
    """`view` never copies, so it cannot merge axes that a transpose has separated in memory. Which
    relatives of `view` copy where they have to?"""
    return variant(merge=lambda x: x.transpose(1, 2).view(len(x), x.shape[2], -1))


@mistake.built
def heads_after_positions():
    """The features are cut into heads, but the heads stay behind the positions, (B, L, H, d_head), where the matrix
    products take them for the positions. Which two axes have to be exchanged after the cut?"""
    return variant(
        split=lambda x, n: x.unflatten(-1, (n, -1)),
        merge=lambda x: x,
        out=lambda self, x, query: self.out_proj(x.transpose(1, 2).reshape(len(query), query.shape[1], -1)),
    )
