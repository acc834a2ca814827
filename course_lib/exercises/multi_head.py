"""Exercises of the chapter on multi-head attention."""

from __future__ import annotations

import math

import torch
from torch import nn

from course_lib.exercises._draw import Draw
from course_lib.exercises._exercise import Case, Exercise
from course_lib.exercises._multi_head_slips import add_slips
from course_lib.exercises.scaled_dot_product.scaled_dot_product_attention import exercise as attention_exercise

__all__ = ["ATTENTION", "COUNT", "MERGE", "SPLIT"]


def split_heads(x, num_heads):
    d_model = x.shape[-1]
    if d_model % num_heads != 0:
        raise ValueError(f"num_heads must divide d_model, got {num_heads} for d_model = {d_model}")
    x = x.unflatten(-1, (num_heads, d_model // num_heads))  # (..., L, H, d_head)
    return x.transpose(-3, -2)  # (..., H, L, d_head)


def merge_heads(x):
    x = x.transpose(-3, -2)  # (..., L, H, d_head)
    return x.flatten(-2)  # (..., L, H * d_head)


class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, num_heads):
        super().__init__()
        if d_model % num_heads != 0:
            raise ValueError(f"num_heads must divide d_model, got {num_heads} for d_model = {d_model}")
        self.num_heads = num_heads
        self.q_proj = nn.Linear(d_model, d_model)
        self.k_proj = nn.Linear(d_model, d_model)
        self.v_proj = nn.Linear(d_model, d_model)
        self.out_proj = nn.Linear(d_model, d_model)

    def forward(self, query, key, value, mask=None):
        projected = (self.q_proj(query), self.k_proj(key), self.v_proj(value))  # (B, L, d_model) each
        q, k, v = (x.unflatten(-1, (self.num_heads, -1)).transpose(1, 2) for x in projected)  # (B, H, L, d_head)
        scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])  # (B, H, L_q, L_k)
        if mask is not None:
            scores = scores.masked_fill(~mask, float("-inf"))
        weights = scores.softmax(dim=-1)
        heads = weights @ v  # (B, H, L_q, d_head)
        return self.out_proj(heads.transpose(1, 2).flatten(-2)), weights  # (B, L_q, d_model)


def multi_head_parameter_count(d_model, num_heads, bias=True):
    weights = 4 * d_model * d_model  # all heads of a projection share one matrix, so their number does not matter
    return weights + 4 * d_model if bias else weights


# split_heads

SPLIT = Exercise(
    name="split_heads",
    title="Give every head its slice",
    statement="""\
A projection gives every position $d_{model}$ features; multi-head attention deals them out to $H$ heads. Write the
function that turns features into heads.

- `x` is `(..., L, d_model)`. The dots stand for any number of batch dimensions, none included.
- Return `(..., num_heads, L, d_head)` with `d_head = d_model // num_heads`.
- Head $h$ (from 0) takes the $h$-th contiguous slice of the features: at every position the features $h \\cdot
  d_{head}$ to $(h + 1) \\cdot d_{head} - 1$, in their order.
- Raise `ValueError` where `num_heads` does not divide `d_model`.""",
    difficulty=2,
    minutes=10,
    stub='''\
def split_heads(x, num_heads):
    """(..., L, d_model) -> (..., num_heads, L, d_model // num_heads)."""
    raise NotImplementedError
''',
    hints=(
        "Two steps: cut the last axis into two, then move one of the two. Write the shape beside each step.",
        "In memory the features of one position lie next to each other, head 0 first. Which of the two new axes, heads "
        "or features of a head, runs faster, and so has to stand last right after the cut?",
        "`x.unflatten(-1, (m, n))` cuts the last axis of any tensor into (m, n) and leaves the other axes alone. After "
        "that positions and heads stand in the wrong order: that is a matter for `transpose`, with axes counted from "
        "the right.",
        "Look at the remainder of the division before you cut anything.",
    ),
    reference=split_heads,
    shapes={"x": "... length d_model"},
    returns=("heads",),
    look="multi_head: Splitting and merging heads",
)

# (num_heads, d_head): both orders, so that neither of them can stand for the other.
PAIRS = ((2, 3), (3, 2), (2, 4), (4, 2))


def _features(draw: Draw, pair, batch, dtype=torch.float32):
    num_heads, d_head = pair
    (length,) = draw.sizes(1, but=(*batch, *pair, num_heads * d_head))
    return draw.normal(*batch, length, num_heads * d_head, dtype=dtype), num_heads


@SPLIT.holds("Head h holds the h-th contiguous slice of the features, position by position", weight=2)
def _(draw):
    x = torch.tensor([[1.0, 2.0, 3.0, 4.0], [5.0, 6.0, 7.0, 8.0]])
    yield Case(args=(x, 2), note="two positions of four features", edge="the smallest case, to be read by eye")
    for pair in PAIRS:
        yield Case(args=_features(draw, pair, ()))


@SPLIT.holds("It works with zero, one or two batch dimensions, in float32 and float64", weight=2)
def _(draw):
    for batch, pair in zip(draw.batches(but=(2, 3, 4, 6, 8)), PAIRS, strict=False):
        for dtype in (torch.float64, torch.float32):
            yield Case(args=_features(draw, pair, batch, dtype), note=f"batch dimensions: {len(batch)}")
    x = draw.normal(2, 1, 3, 5, 8)
    yield Case(args=(x, 4), note="batch dimensions: 3", edge="a batch dimension of length one")
    yield Case(args=(draw.normal(3, 6, 5).mT, 2), note="a tensor that is transposed in memory")


@SPLIT.holds("One head takes all features, d_model heads take one each; a number that does not divide is a ValueError")
def _(draw):
    for batch in draw.batches(but=(6,)):
        (length,) = draw.sizes(1, but=(*batch, 6))
        x = draw.normal(*batch, length, 6)
        yield Case(args=(x, 1 if batch else 6), note="one head" if batch else "as many heads as features")
        for num_heads in (4, 12):
            yield Case(args=(x, num_heads), raises=ValueError, note=f"{num_heads} heads for 6 features")
    yield Case(args=(draw.normal(1, 3, 4), 2), note="a batch of one", edge="an axis of length one on purpose")


def _unchecked(x, num_heads):
    return x.unflatten(-1, (num_heads, -1)).transpose(-3, -2)


def _checked(function):
    """The same function, which refuses a number of heads that does not divide the features."""

    def wrapped(x, num_heads):
        if x.shape[-1] % num_heads:
            raise ValueError("num_heads must divide d_model")
        return function(x, num_heads)

    return wrapped


def _view_straight(x, num_heads):
    return x.reshape(*x.shape[:-2], num_heads, x.shape[-2], x.shape[-1] // num_heads)


def _every_hth(x, num_heads):
    return x.unflatten(-1, (-1, num_heads)).movedim(-1, -3)


def _exchanged(x, num_heads):
    return x.unflatten(-1, (-1, num_heads)).transpose(-3, -2)


def _overlapping(x, num_heads):
    d_head = x.shape[-1] // num_heads
    return torch.stack([x[..., h : h + d_head] for h in range(num_heads)], -3)


def _slices(x, num_heads):
    d_head = x.shape[-1] // num_heads
    return torch.stack([x[..., h * d_head : (h + 1) * d_head] for h in range(num_heads)], -3)


BUG = "multi_head: The bug"
SPLIT.misconception(
    "view_straight",
    "The shape is right, the numbers are not: a `view` or `reshape` straight to the final shape only cuts the memory "
    "anew, so a head gets some positions instead of some features. In which order do the numbers of one position lie?",
    look=BUG,
)(_checked(_view_straight))
SPLIT.misconception(
    "not_transposed",
    "The features are cut rightly, but the heads stand after the positions: (..., L, H, d_head). Which two axes should "
    "change places?",
)(_checked(lambda x, num_heads: x.unflatten(-1, (num_heads, -1))))
SPLIT.misconception(
    "every_hth_feature",
    "Head h takes every num_heads-th feature, like cards that are dealt in turn. The contract wants slices: "
    "neighbouring features stay together.",
)(_checked(_every_hth))
SPLIT.misconception(
    "heads_and_width_exchanged",
    "The last axis is cut into d_head pieces of num_heads features; it should be num_heads pieces of d_head features.",
)(_checked(_exchanged))
SPLIT.misconception(
    "cut_exchanged_not_moved",
    "The last axis is cut the wrong way round, into (d_head, num_heads), and the heads are left at the end.",
)(_checked(lambda x, num_heads: x.unflatten(-1, (-1, num_heads))))
SPLIT.misconception(
    "view_straight_exchanged",
    "The shape starts with d_head where the number of heads should be, and comes from a `view` straight to its end. "
    "Both have to change: what is cut, and how the axes get into their order.",
)(_checked(lambda x, n: x.reshape(*x.shape[:-2], x.shape[-1] // n, x.shape[-2], n)))
SPLIT.misconception(
    "heads_before_the_batch",
    "The heads have become the very first axis. They belong between batch and positions; without a batch that is the "
    "same place.",
)(_checked(lambda x, num_heads: torch.stack(x.chunk(num_heads, -1))))
SPLIT.misconception(
    "heads_stacked_last",
    "The heads have become the last axis. They belong before the positions, third from the right.",
)(_checked(lambda x, num_heads: torch.stack(x.chunk(num_heads, -1), -1)))
SPLIT.misconception(
    "heads_stacked_on_axis_1",
    "The heads are stacked on axis 1, counted from the left. That is their place for one batch dimension only; count "
    "from the right.",
)(_checked(lambda x, num_heads: torch.stack(x.chunk(num_heads, -1), 1)))
SPLIT.misconception(
    "transposes_axes_1_and_2",
    "`transpose(1, 2)` counts axes from the left and fits exactly one batch dimension. Counted from the right it fits "
    "any number.",
)(_checked(lambda x, num_heads: x.unflatten(-1, (num_heads, -1)).transpose(1, 2)))
SPLIT.misconception(
    "permutes_four_axes",
    "`permute` with four numbers needs a tensor of four axes, so it works with one batch dimension only. Two axes have "
    "to change places, and they can be counted from the right.",
)(_checked(lambda x, num_heads: x.unflatten(-1, (num_heads, -1)).permute(0, 2, 1, 3)))
SPLIT.misconception(
    "features_before_positions",
    "Each head comes out as (d_head, L), turned round. The key is transposed later, in the scores; here positions come "
    "first.",
)(_checked(lambda x, num_heads: split_heads(x, num_heads).transpose(-2, -1)))
SPLIT.misconception(
    "batch_and_heads_in_one",
    "Batch and heads share one axis, as some code does it for `torch.bmm`. The contract keeps them apart.",
)(_checked(lambda x, num_heads: split_heads(x, num_heads).flatten(0, -3)))
SPLIT.misconception(
    "slices_overlap",
    "The slice of head h starts at feature h, so neighbouring heads share features. How many features have the heads "
    "before it used up?",
)(_checked(_overlapping))
SPLIT.misconception(
    "tuple_of_heads",
    "The heads come back as a tuple or a list of tensors. The contract asks for one tensor with an axis of heads.",
)(_checked(lambda x, num_heads: x.chunk(num_heads, -1)))
SPLIT.misconception(
    "positions_cut",
    "The positions are dealt out to the heads. Every head sees all positions, and a part of the features.",
)(_checked(lambda x, num_heads: torch.stack(x.tensor_split(num_heads, -2), -3)))
SPLIT.misconception(
    "positions_regrouped",
    "The last axis is right, but the heads are cut from the wrong one: `reshape` was given the positions in the place "
    "of the heads.",
)(_checked(lambda x, n: x.reshape(*x.shape[:-2], n, x.shape[-2], -1).transpose(-3, -2)))


SPLIT.misconception(
    "transposed_before_the_cut",
    "Positions and features change places before the axis is cut, so the cut goes through the memory in another order. "
    "First cut, then exchange.",
)(_checked(lambda x, n: x.transpose(-2, -1).reshape(*x.shape[:-2], n, x.shape[-2], -1)))
SPLIT.misconception(
    "cut_across_positions",
    "The numbers are cut into (heads, d_head, L) and then turned: that cut goes through the memory of several "
    "positions. Cut the last axis alone.",
)(_checked(lambda x, n: x.reshape(*x.shape[:-2], n, -1, x.shape[-2]).transpose(-2, -1)))
SPLIT.misconception(
    "width_is_a_float",
    "`/` gives a float even where it divides, and a size has to be an int. Which division of ints gives an int?",
)(lambda x, n: x.reshape(*x.shape[:-1], n, x.shape[-1] / n).transpose(-3, -2))
SPLIT.misconception(
    "width_is_a_float_in_view",
    "`/` gives a float even where it divides, and `view` wants ints. Which division of ints gives an int?",
)(lambda x, n: x.view(*x.shape[:-1], n, x.shape[-1] / n).transpose(-3, -2))
SPLIT.misconception(
    "squeezed",
    "`squeeze` removes every axis of length one, a batch of one or a single head among them. No axis is to be removed "
    "here.",
)(lambda x, num_heads: split_heads(x, num_heads).squeeze())


@SPLIT.misconception(
    "three_axes_unpacked",
    "The shape is unpacked into three names, so exactly one batch dimension works. The contract allows any number, "
    "none included: what can be said of the last two axes alone?",
)
def _(x, num_heads):
    batch, length, d_model = x.shape
    if d_model % num_heads:
        raise ValueError("num_heads must divide d_model")
    return x.reshape(batch, length, num_heads, -1).transpose(1, 2)


@SPLIT.misconception(
    "three_axes_unpacked_view_straight",
    "Two things: the shape is unpacked into three names, so only one batch dimension works; and the `view` straight to "
    "the final shape gives a head some positions instead of some features.",
    look=BUG,
)
def _(x, num_heads):
    batch, length, d_model = x.shape
    if d_model % num_heads:
        raise ValueError("num_heads must divide d_model")
    return x.reshape(batch, num_heads, length, -1)


@SPLIT.misconception(
    "axes_0_and_1",
    "Batch and length are read off axes 0 and 1. That fits one batch dimension only; the last two axes are the ones "
    "that are always there.",
)
@_checked
def _(x, num_heads):
    return x.reshape(x.shape[0], x.shape[1], num_heads, x.shape[-1] // num_heads).transpose(1, 2)


@SPLIT.misconception(
    "batch_flattened",
    "All batch dimensions end up in one. It is right with exactly one of them; the others have to come out as they "
    "went in.",
)
@_checked
def _(x, num_heads):
    return x.reshape(-1, x.shape[-2], num_heads, x.shape[-1] // num_heads).transpose(1, 2)


NOT_CHECKED = (
    "A number of heads that does not divide the features has to end in a ValueError. Here {}; look at the remainder "
    "first."
)
SPLIT.misconception("unflatten_complains", NOT_CHECKED.format("it is `unflatten` that fails, with a RuntimeError"))(
    _unchecked
)
SPLIT.misconception(
    "unflatten_complains_of_sizes",
    NOT_CHECKED.format("`unflatten` is told two sizes that do not multiply up, and fails with a RuntimeError"),
)(lambda x, n: x.unflatten(-1, (n, x.shape[-1] // n)).transpose(-3, -2))
SPLIT.misconception(
    "reshape_complains", NOT_CHECKED.format("it is `view` or `reshape` that fails, with a RuntimeError")
)(lambda x, n: x.reshape(*x.shape[:-1], n, x.shape[-1] // n).transpose(-3, -2))
SPLIT.misconception(
    "reshape_with_minus_one_complains",
    NOT_CHECKED.format("a `view` or `reshape` with −1 in it fails, with a RuntimeError"),
)(lambda x, n: x.reshape(*x.shape[:-1], n, -1).transpose(-3, -2))
SPLIT.misconception(
    "stack_complains", NOT_CHECKED.format("the pieces have different sizes, and `stack` fails with a RuntimeError")
)(lambda x, n: torch.stack(x.chunk(n, -1), -3))
SPLIT.misconception(
    "remainder_dropped", NOT_CHECKED.format("the features that are left over are silently dropped, or heads are empty")
)(_slices)


@SPLIT.misconception(
    "assertion",
    "A number of heads that does not divide is noticed, by an `assert`: that is an AssertionError, and it is gone "
    "under `python -O`. The contract names a ValueError.",
)
def _(x, num_heads):
    if x.shape[-1] % num_heads:
        raise AssertionError
    return split_heads(x, num_heads)


@SPLIT.misconception(
    "assertion_with_text",
    "The number of heads is checked by an `assert` with a text. An AssertionError is not the ValueError that the "
    "contract names, and disappears under `python -O`.",
)
def _(x, num_heads):
    if x.shape[-1] % num_heads:
        raise AssertionError("d_model must be divisible by num_heads")
    return split_heads(x, num_heads)


@SPLIT.misconception(
    "divides_the_other_way_round",
    "The check is turned round: it asks whether the features divide the heads. Which of the two has to be a multiple "
    "of the other?",
)
def _(x, num_heads):
    if num_heads % x.shape[-1] != 0:
        raise ValueError("num_heads must divide d_model")
    return _unchecked(x, num_heads)


@SPLIT.misconception(
    "raises_where_it_divides",
    "The check is turned round: the ValueError comes where the number of heads divides the features. What is the "
    "remainder then?",
)
def _(x, num_heads):
    if x.shape[-1] % num_heads == 0:
        raise ValueError("num_heads must divide d_model")
    return _unchecked(x, num_heads)


@SPLIT.misconception(
    "length_checked",
    "The check looks at the number of positions. What is dealt out to the heads are the features.",
)
def _(x, num_heads):
    if x.shape[-2] % num_heads != 0:
        raise ValueError("num_heads must divide d_model")
    return torch.stack(x.split(x.shape[-1] // num_heads, -1), -3)


@SPLIT.misconception(
    "error_returned",
    "The ValueError is made and handed back like a result. An exception has to be raised to stop the caller.",
)
def _(x, num_heads):
    return split_heads(x, num_heads) if x.shape[-1] % num_heads == 0 else ValueError()


# merge_heads

MERGE = Exercise(
    name="merge_heads",
    title="Put the heads side by side again",
    statement="""\
After attention every head has its own result for every position; the output projection wants one vector a position.
Write the inverse of `split_heads`.

- `x` is `(..., H, L, d_head)`. The dots stand for any number of batch dimensions, none included.
- Return `(..., L, H · d_head)`: at every position the features of head 0, then those of head 1, and so on.

`merge_heads(split_heads(x, num_heads))` is `x` again.""",
    difficulty=2,
    minutes=8,
    stub='''\
def merge_heads(x):
    """(..., H, L, d_head) -> (..., L, H * d_head), the inverse of split_heads."""
    raise NotImplementedError
''',
    hints=(
        "Take the steps of `split_heads` backwards, the last one first.",
        "Only neighbouring axes can be put together. Which axis stands between the heads and their features, and has "
        "to leave?",
        "After the exchange the tensor does not lie in memory in the order of its axes. `view` refuses that; `reshape` "
        "and `flatten` copy. `flatten(-2)` puts the last two axes together whatever stands before them.",
    ),
    reference=merge_heads,
    shapes={"x": "... num_heads length d_head"},
    returns=("features",),
    look="multi_head: Splitting and merging heads",
)


def _heads(draw: Draw, batch=(), dtype=torch.float32):
    return (draw.normal(*batch, *draw.sizes(3, 2, 7, but=batch), dtype=dtype),)


@MERGE.holds("Each position holds the features of head 0, then those of head 1, and so on", weight=2)
def _(draw):
    x = torch.tensor([[[1.0, 2.0], [5.0, 6.0]], [[3.0, 4.0], [7.0, 8.0]]])
    yield Case(args=(x,), note="two heads, two positions, two features", edge="the smallest case, to be read by eye")
    for _ in range(3):
        yield Case(args=_heads(draw))


@MERGE.holds("It works with zero, one or two batch dimensions, in float32 and float64", weight=2)
def _(draw):
    for batch in draw.batches():
        for dtype in (torch.float64, torch.float32):
            yield Case(args=_heads(draw, batch, dtype), note=f"batch dimensions: {len(batch)}")
    yield Case(args=_heads(draw, (2, 1, 3)), note="batch dimensions: 3", edge="a batch dimension of length one")
    turned = draw.normal(2, 5, 3, 4).transpose(-3, -2)
    yield Case(args=(turned,), note="a tensor that lies in memory as split_heads leaves it")


@MERGE.holds("It works for one head, heads of one feature, a single position and a batch of one")
def _(draw):
    batch, num_heads, length, d_head = draw.sizes(4)
    for note, shape in (
        ("one head", (batch, 1, length, d_head)),
        ("heads of one feature", (batch, num_heads, length, 1)),
        ("a single position", (batch, num_heads, 1, d_head)),
        ("a batch of one", (1, num_heads, length, d_head)),
    ):
        yield Case(args=(draw.normal(*shape),), note=note, edge="a length of one on purpose")


MERGE.misconception(
    "not_transposed",
    "The shape is right, the numbers are not: heads and positions are still in the order in which they came, so a "
    "position gets the features of one head at several positions. What has to stand next to what before axes are put "
    "together?",
    look="multi_head: What view and transpose do to memory",
)(lambda x: x.reshape(*x.shape[:-3], x.shape[-2], x.shape[-3] * x.shape[-1]))
MERGE.misconception(
    "heads_interleaved",
    "The features are interleaved: the first feature of every head, then the second of every head. Each head's "
    "features stay together.",
)(lambda x: x.movedim(-3, -1).flatten(-2))
MERGE.misconception(
    "wrong_axes_exchanged",
    "Positions and features of a head change places before the reshape. It is the heads that have to move next to "
    "their features.",
)(lambda x: x.transpose(-2, -1).reshape(*x.shape[:-3], x.shape[-2], -1))
MERGE.misconception(
    "features_and_positions_exchanged",
    "The outcome has one row a feature and one column a position: the last two axes are exchanged.",
)(lambda x: x.transpose(-2, -1).flatten(-3, -2))
MERGE.misconception(
    "heads_and_features_exchanged",
    "Heads and features of a head change places, which leaves the positions where they were, between them.",
)(lambda x: x.transpose(-3, -1).reshape(*x.shape[:-3], x.shape[-2], -1))
MERGE.misconception(
    "heads_averaged",
    "The heads are averaged. They found different things, so all their features are kept, side by side.",
)(lambda x: x.mean(-3))
MERGE.misconception(
    "averaged_over_axis_1",
    "There is an average over axis 1. The heads found different things, so all their features are kept, side by side; "
    "and counted from the left, axis 1 is not always theirs.",
)(lambda x: x.mean(1))
MERGE.misconception(
    "heads_summed",
    "The heads are added up. They found different things, so all their features are kept, side by side.",
)(lambda x: x.sum(-3))
MERGE.misconception(
    "heads_one_after_the_other",
    "The heads are laid one after the other along the positions. A position should get wider, not appear H times.",
)(lambda x: x.flatten(-3, -2))
MERGE.misconception(
    "positions_times_heads",
    "Positions and heads end up in one axis. The heads belong to the features: which two axes should be put together?",
)(lambda x: x.transpose(-3, -2).flatten(-3, -2))
MERGE.misconception(
    "only_transposed",
    "The heads have moved next to their features, but there are two axes still: (..., L, H, d_head).",
)(lambda x: x.transpose(-3, -2))
MERGE.misconception(
    "everything_flattened",
    "Position and feature end up in one axis together. Every position keeps a row of its own.",
)(lambda x: x.transpose(-3, -2).flatten(-3))
MERGE.misconception(
    "transposes_axes_1_and_2",
    "`transpose(1, 2)` counts axes from the left and fits exactly one batch dimension. Counted from the right it fits "
    "any number.",
)(lambda x: x.transpose(1, 2).flatten(-2))
MERGE.misconception(
    "transposes_axes_0_and_1",
    "`transpose(0, 1)` exchanges heads and positions without a batch only. Count axes from the right.",
)(lambda x: x.transpose(0, 1).flatten(-2))
MERGE.misconception(
    "flattens_from_axis_2",
    "Axes are put together from axis 2 on, counted from the left. That fits exactly one batch dimension.",
)(lambda x: x.transpose(-3, -2).flatten(2))
MERGE.misconception(
    "axes_from_the_left",
    "Both steps count axes from the left, so they fit exactly one batch dimension. Counted from the right, −3, −2 and "
    "−1 are heads, positions and features in any number of them.",
)(lambda x: x.transpose(1, 2).flatten(2))
MERGE.misconception(
    "permutes_four_axes",
    "`permute` with four numbers needs a tensor of four axes, so it works with one batch dimension only. Two axes have "
    "to change places, and they can be counted from the right.",
)(lambda x: x.permute(0, 2, 1, 3).flatten(-2))
MERGE.misconception(
    "first_axis_is_heads",
    "The slices along the first axis are taken for the heads. With a batch, that axis is the batch.",
)(lambda x: torch.cat(list(x), -1))
MERGE.misconception(
    "second_axis_is_heads",
    "The slices along axis 1 are taken for the heads. That is their place for one batch dimension only; which axis is "
    "it, counted from the right?",
)(lambda x: torch.cat(x.unbind(1), -1))
MERGE.misconception(
    "view_of_transposed",
    "`view` never copies, so it cannot put axes together that a transpose has taken apart in memory. Which relatives "
    "of `view` copy where they have to?",
    look="multi_head: What view and transpose do to memory",
)(lambda x: x.transpose(-3, -2).view(*x.shape[:-3], x.shape[-2], -1))
MERGE.misconception(
    "batch_flattened",
    "All batch dimensions end up in one. It is right with exactly one of them; the others have to come out as they "
    "went in.",
)(lambda x: x.transpose(-3, -2).reshape(-1, x.shape[-2], x.shape[-3] * x.shape[-1]))
MERGE.misconception(
    "batch_times_positions",
    "Batch and positions end up in one axis. Only the heads and their features are put together.",
)(lambda x: x.transpose(-3, -2).reshape(-1, x.shape[-3] * x.shape[-1]))


MERGE.misconception(
    "squeezed",
    "`squeeze` removes every axis of length one, a batch of one or a single position among them. Only the axis of the "
    "heads disappears here, and not by being short.",
)(lambda x: merge_heads(x).squeeze())
MERGE.misconception(
    "axes_0_and_2_not_transposed",
    "Batch and length are read off axes 0 and 2, which fits one batch dimension only; and the axes are put together in "
    "the order in which they came, with the positions between the heads and their features.",
    look="multi_head: What view and transpose do to memory",
)(lambda x: x.reshape(x.shape[0], x.shape[2], -1))
MERGE.misconception(
    "hstack",
    "`hstack` puts tensors together along axis 1, whatever their shape. With a batch the features are another axis.",
)(lambda x: torch.hstack(x.unbind(-3)))
MERGE.misconception(
    "heads_joined_on_axis_2",
    "The heads are joined along axis 2, counted from the left. There the features are for one batch dimension only.",
)(lambda x: torch.cat(x.unbind(-3), 2))
MERGE.misconception(
    "heads_stacked",
    "The heads are stacked, which makes a new axis, and are left so. Side by side means along the axis of the "
    "features.",
)(lambda x: torch.stack(x.unbind(-3), -1))


@MERGE.misconception(
    "four_axes_unpacked",
    "The shape is unpacked into four names, so exactly one batch dimension works. The contract allows any number, none "
    "included: what can be said of the last three axes alone?",
)
def _(x):
    batch, num_heads, length, d_head = x.shape
    return x.transpose(1, 2).reshape(batch, length, num_heads * d_head)


@MERGE.misconception(
    "four_axes_unpacked_interleaved",
    "Two things: the shape is unpacked into four names, so only one batch dimension works; and the features are "
    "interleaved, the first one of every head, then the second. Each head's features stay together.",
)
def _(x):
    batch, num_heads, length, d_head = x.shape
    return x.permute(0, 2, 3, 1).reshape(batch, length, num_heads * d_head)


@MERGE.misconception(
    "four_axes_unpacked_not_transposed",
    "Two things: the shape is unpacked into four names, so only one batch dimension works; and the axes are put "
    "together in the order in which they came, with the positions between the heads and their features.",
    look="multi_head: What view and transpose do to memory",
)
def _(x):
    batch, num_heads, length, d_head = x.shape
    return x.reshape(batch, length, num_heads * d_head)


# MultiHeadAttention

ATTENTION = Exercise(
    name="MultiHeadAttention",
    title="Multi-head attention",
    statement="""\
One attention can look in one way only. Write the module that looks in $H$ ways at once:
$\\operatorname{Concat}(\\mathrm{head}_1, \\dots, \\mathrm{head}_H)\\,W_O$ with $\\mathrm{head}_h =
\\operatorname{Attention}(Q W_Q^h, K W_K^h, V W_V^h)$.

- `__init__(self, d_model, num_heads)` makes four layers `nn.Linear(d_model, d_model)`, with their biases: `q_proj`,
  `k_proj`, `v_proj` and `out_proj`; no other parameters. It raises `ValueError` where `num_heads` does
  not divide `d_model`.
- `forward(self, query, key, value, mask=None)` takes `query` as `(B, L_q, d_model)`, `key` and `value` as `(B, L_k,
  d_model)`. Each is projected by its own layer; head $h$ takes the $h$-th contiguous slice of `d_head = d_model //
  num_heads` projected features, and attends with it: $\\operatorname{softmax}(QK^\\top/\\sqrt{d_{head}})\\,V$. The
  heads' results, side by side, go through `out_proj`.
- `mask` is None or a bool tensor that broadcasts to `(B, H, L_q, L_k)`; `(L_q, L_k)`, `(B, 1, 1, L_k)` and `(B, H,
  L_q, L_k)` are all possible. True means *may attend*. Every query may attend to something. Masks have a chapter of
  their own, which comes next; here it is enough to hand the mask on, as it is, to `scaled_dot_product_attention`.
- Return `(output, weights)`: `(B, L_q, d_model)`, and the weights of every head, `(B, H, L_q, L_k)`.

Large scores must not give `nan`. No dropout. You may build on `split_heads`, `merge_heads` and
`scaled_dot_product_attention`, your own or the course's.""",
    difficulty=3,
    minutes=30,
    stub='''\
class MultiHeadAttention(nn.Module):
    """Attention in num_heads subspaces; forward gives (output, weights)."""

    def __init__(self, d_model, num_heads):
        super().__init__()
        raise NotImplementedError

    def forward(self, query, key, value, mask=None):
        raise NotImplementedError
''',
    hints=(
        "Five steps: project, split, attend, merge, project. Write the shape that you expect beside each; in the "
        "middle everything has four axes, (B, H, L, d_head).",
        "Matrix products work on the last two axes and treat all axes before them alike. So the heads need no loop, if "
        "they stand beside the batch.",
        "Queries and keys may differ in number. Take each length from the tensor that you are about to reshape, or do "
        "not name it at all.",
        "Attention within a head is scaled dot-product attention: how long are the vectors there whose dot products "
        "are taken? The mask broadcasts against the scores of all heads as it is, before the softmax.",
    ),
    reference=MultiHeadAttention,
    shapes={
        "query": "batch len_q d_model",
        "key": "batch len_k d_model",
        "value": "batch len_k d_model",
        "mask": "#",
        # What is returned: in the smallest case several axes have one length, so lengths alone would not name them.
        "output": "batch len_q d_model",
        "weights": "batch num_heads len_q len_k",
    },
    returns=("output", "weights"),
    look="multi_head: The code",
    twins=("multi_head_attention_forward", "_native_multi_head_attention", "torch.nn.MultiheadAttention"),
)


def _call(draw: Draw, pair, dtype=torch.float32, scale=1.0, sizes=()) -> dict:
    """Constructor arguments, parameters, and three different inputs whose axes all have different lengths."""
    num_heads, d_head = pair
    d_model = num_heads * d_head
    batch, len_q, len_k = sizes or draw.sizes(3, but=(*pair, d_model))
    return {
        "init": (d_model, num_heads),
        "state": ATTENTION.draw_state(draw, d_model, num_heads, dtype=dtype),
        "args": (
            draw.normal(batch, len_q, d_model, dtype=dtype, scale=scale),
            draw.normal(batch, len_k, d_model, dtype=dtype, scale=scale),
            draw.normal(batch, len_k, d_model, dtype=dtype),
        ),
    }


def _masked(draw: Draw, pair, shape, dtype=torch.float32, **options) -> dict:
    """The same with a mask, whose shape is given in the names of the axes."""
    call = _call(draw, pair, dtype, **options)
    query, key, _ = call["args"]
    lengths = {"B": len(query), "H": pair[0], "q": query.shape[1], "k": key.shape[1], "1": 1}
    return {**call, "args": (*call["args"], draw.mask(*(lengths[axis] for axis in shape)))}


@ATTENTION.holds("Each head attends in its own slice of the projected features; out_proj mixes the results", weight=3)
def _(draw):
    # The first cases are called in train mode too, and for gradients; the small ones below are what is shown.
    for pair, dtype in zip(PAIRS, (torch.float32, torch.float64) * 2, strict=True):
        yield Case(**_call(draw, pair, dtype))
    call = _call(draw, (2, 3))
    turned = tuple(x.mT.contiguous().mT for x in call["args"])
    yield Case(**{**call, "args": turned}, note="tensors that are transposed in memory")
    yield Case(
        init=(2, 1),
        state=_simple(2),
        args=(
            torch.tensor([[[1.0, 0.0]]]),
            torch.tensor([[[1.0, 1.0], [0.0, 2.0]]]),
            torch.tensor([[[1.0, 0.0], [2.0, -1.0]]]),
        ),
        note="one head of two features, one query, two keys",
        edge="the smallest case, to be followed with a pencil",
    )
    yield Case(
        init=(2, 2),
        state=_identities(2),
        args=(
            torch.tensor([[[1.0, 2.0]]]),
            torch.tensor([[[1.0, 0.0], [0.0, 1.0]]]),
            torch.tensor([[[1.0, -1.0], [3.0, 2.0]]]),
        ),
        note="two heads of one feature, one query, two keys, all projections the identity",
        edge="to be followed with a pencil",
    )
    yield Case(
        init=(4, 2),
        state=_simple(4),
        args=(
            torch.tensor([[[1.0, 0, -1, 2], [0, 1, 1, 0]]]),
            torch.tensor([[[1.0, 1, 0, -1], [0, 2, 1, 0], [-1, 0, 0, 1]]]),
            torch.tensor([[[1.0, 0, 2, 0], [2, -1, 0, 1], [0, 3, 1, -2]]]),
        ),
        note="two heads of two features, two queries, three keys",
        edge="to be followed with a pencil",
    )


def _identities(size, dtype=torch.float32):
    """Parameters that leave everything as it is."""
    parts = {"weight": torch.eye(size, dtype=dtype), "bias": torch.zeros(size, dtype=dtype)}
    return {f"{name}_proj.{part}": x.clone() for name in ("q", "k", "v", "out") for part, x in parts.items()}


def _simple(size):
    """Parameters of 0, 1 and -1 that differ from layer to layer, and from their transposes."""
    one, above = torch.eye(size), torch.eye(size).roll(1, 1).triu()
    matrices = {"q": one, "k": one + above, "v": one - above, "out": one + above.T}
    first, last = one[0], one[-1]
    biases = {"q": last, "k": first, "v": -first, "out": -last}
    return {
        **{f"{name}_proj.weight": matrix.clone() for name, matrix in matrices.items()},
        **{f"{name}_proj.bias": bias.clone() for name, bias in biases.items()},
    }


@ATTENTION.holds("Self-attention is the case of three equal inputs")
def _(draw):
    for pair, dtype in (((3, 2), torch.float64), ((2, 4), torch.float32)):
        call = _call(draw, pair, dtype)
        x = call["args"][0]
        yield Case(**{**call, "args": (x, x, x)}, note="self-attention", edge="queries and keys are the same")


@ATTENTION.holds("A masked key gets weight zero and the others share all the weight; masks broadcast", weight=2)
def _(draw):
    yield Case(**_masked(draw, (2, 3), "qk"), note="a mask (L_q, L_k)")
    yield Case(**_masked(draw, (3, 2), "B11k", torch.float64), note="a mask (B, 1, 1, L_k)")
    yield Case(**_masked(draw, (4, 2), "B1qk"), note="a mask (B, 1, L_q, L_k)")
    x = torch.tensor([[[1.0, 2.0]]]), torch.tensor([[[1.0, 0.0], [3.0, 1.0], [0.0, 1.0]]])
    yield Case(
        init=(2, 1),
        state=_identities(2),
        args=(*x, torch.tensor([[[1.0, -1.0], [4.0, 0.0], [3.0, 2.0]]]), torch.tensor([[True, False, True]])),
        note="one head, one of three keys is masked, all projections the identity",
        edge="to be followed with a pencil",
    )
    yield Case(**_masked(draw, (2, 4), "1Hqk", torch.float64), note="a mask (1, H, L_q, L_k)")
    yield Case(**_masked(draw, (3, 2), "BHqk"), note="a mask of full size")
    call = _call(draw, (2, 4))
    everything = torch.ones(call["args"][0].shape[1], call["args"][1].shape[1], dtype=torch.bool)
    yield Case(**{**call, "args": (*call["args"], everything)}, note="a mask that allows everything")
    yield Case(**_masked(draw, (3, 2), "k"), note="a mask (L_k,)")
    yield Case(**_masked(draw, (2, 4), "1k"), note="a mask (1, L_k)")
    yield Case(**_masked(draw, (4, 2), "11qk"), note="a mask (1, 1, L_q, L_k)")
    # Lengths that agree, so that only the rule of broadcasting, from the right, says which axis is which.
    for axes, shape, alike in (
        ("(H, L_q, L_k)", (2, 4, 5), "as many sequences as heads"),
        ("(L_q, L_k)", (3, 5), "as many sequences as queries"),
    ):
        call = _call(draw, (2, 3), sizes=(shape[0], shape[-2], shape[-1]))
        call["args"] = (*call["args"], draw.mask(*shape))
        yield Case(**call, note=f"a mask {axes}, {alike}", edge="equal lengths on purpose")


@ATTENTION.holds(
    "One head works, and so do d_model heads; if num_heads does not divide d_model, the constructor raises ValueError"
)
def _(draw):
    yield Case(**_call(draw, (1, 5)), note="one head, an odd number of features", edge="one head on purpose")
    yield Case(**_call(draw, (4, 1)), note="as many heads as features", edge="heads of one feature on purpose")
    # Without arguments for `forward`: it is the constructor that has to raise.
    for d_model, num_heads in ((6, 4), (7, 2), (4, 8)):
        note = f"the constructor alone, {num_heads} heads for {d_model} features"
        yield Case(init=(d_model, num_heads), raises=ValueError, note=note)


@ATTENTION.holds("Large scores stay finite")
def _(draw):
    for pair, dtype in (((2, 3), torch.float32), ((3, 2), torch.float64)):
        note = "scores of some thousands"
        yield Case(**_call(draw, pair, dtype, scale=50.0), note=note, tolerance=50, gradients=False)
    call = _masked(draw, (2, 4), "B11k", scale=50.0)
    yield Case(**call, note="scores of some thousands, masked", tolerance=50, gradients=False)
    # Keys that nearly point away from the queries in every head: allowed scores from -9990 down to -10000.
    direction = torch.nn.functional.normalize(draw.normal(2, 3, dtype=torch.float64), dim=-1).flatten()
    length = (1e4 * 3**0.5) ** 0.5
    query, key = (
        direction * draw.uniform(1, count, 1, low=0.9996, high=1.0, dtype=torch.float64) * sign * length
        for count, sign in ((2, 1), (4, -1))
    )
    yield Case(
        init=(6, 2),
        state=_identities(6, torch.float64),
        args=(query, key, draw.normal(1, 4, 6, dtype=torch.float64), draw.mask(2, 4)),
        note="all scores near -10000, masked",
        edge="parallel vectors on purpose",
        gradients=False,
    )


def _attend(scale=None, dim=-1, hide=None, softmax=None):
    """Attention with one step exchanged: by what the scores are divided, the softmax, how a mask is applied."""

    def attention(q, k, v, mask=None):
        scores = q @ k.transpose(-2, -1) / (math.sqrt(q.shape[-1]) if scale is None else scale(q, k))
        if mask is not None:
            scores = _hide(scores, mask) if hide is None else hide(scores, mask)
        weights = (softmax or torch.softmax)(scores, dim)
        return weights @ v, weights

    return attention


def _hide(scores, mask):
    return scores.masked_fill(~mask, float("-inf"))


def _project(self, query, key, value):
    return self.q_proj(query), self.k_proj(key), self.v_proj(value)


class _Linear(nn.Linear):
    """A Linear without first values: a case brings its own, and drawing them is most of what a wrong variant costs."""

    def reset_parameters(self):
        pass


class _Empty(MultiHeadAttention):
    def __init__(self, d_model, num_heads):
        nn.Module.__init__(self)
        if d_model % num_heads != 0:
            raise ValueError("num_heads must divide d_model")
        self.num_heads = num_heads
        for name in ("q_proj", "k_proj", "v_proj", "out_proj"):
            setattr(self, name, _Linear(d_model, d_model))


def _variant(
    *, project=_project, split=_unchecked, attend=None, merge=merge_heads, out=None, finish=None, mask_as=None
):
    """The module with one step exchanged."""
    attend = attend or _attend()

    class Variant(_Empty):
        def forward(self, query, key, value, mask=None):
            q, k, v = (split(x, self.num_heads) for x in project(self, query, key, value))
            if mask is not None and mask_as is not None:
                mask = mask_as(mask)
            heads, weights = attend(q, k, v, mask)
            merged = merge(heads)
            output = self.out_proj(merged) if out is None else out(self, merged, query)
            return (output, weights) if finish is None else finish(output, weights)

    return Variant


def _attending(attend):
    return _variant(attend=attend)


# Heads

VIEWS = "multi_head: What view and transpose do to memory"
ATTENTION.misconception(
    "view_straight",
    "The heads are split by a `view` straight to (B, H, L, d_head). It cuts the memory anew, so a head gets some "
    "positions instead of some features. It trains, only worse. In which order do the numbers of one position lie?",
    look=BUG,
)(_variant(split=_view_straight))
ATTENTION.misconception(
    "merged_without_transpose",
    "The heads are split rightly, but merged in the order in which they lie: a position of the output gets features of "
    "one head at several positions. Merging is splitting backwards, step by step.",
    look=VIEWS,
)(_variant(merge=lambda x: x.reshape(len(x), x.shape[2], -1)))
ATTENTION.misconception(
    "view_straight_both_ways",
    "Splitting and merging go straight from shape to shape, without exchanging any axes. The two undo each other, but "
    "between them a head holds some positions instead of some features.",
    look=BUG,
)(_variant(split=_view_straight, merge=lambda x: x.reshape(len(x), x.shape[2], -1)))
ATTENTION.misconception(
    "every_hth_feature",
    "Head h takes every num_heads-th feature. The contract wants slices: neighbouring features stay together.",
    look="multi_head: Splitting and merging heads",
)(_variant(split=_every_hth, merge=lambda x: x.movedim(1, -1).flatten(-2)))
ATTENTION.misconception(
    "every_hth_feature_split",
    "Splitting gives head h every num_heads-th feature, merging puts slices side by side. Neighbouring features should "
    "stay together in both.",
    look="multi_head: Splitting and merging heads",
)(_variant(split=_every_hth))
ATTENTION.misconception(
    "heads_interleaved",
    "Merging interleaves the heads: the first feature of every head, then the second. Each head's features stay "
    "together, as they were before the split.",
    look="multi_head: Splitting and merging heads",
)(_variant(merge=lambda x: x.movedim(1, -1).flatten(-2)))
ATTENTION.misconception(
    "heads_and_width_exchanged",
    "There are d_head heads of num_heads features: the two numbers have changed places where the features are cut.",
    look="multi_head: Splitting and merging heads",
)(_variant(split=_exchanged))
ATTENTION.misconception(
    "slices_overlap",
    "The slice of head h starts at feature h, so neighbouring heads share features. How many have the heads before it "
    "used up?",
    look="multi_head: Splitting and merging heads",
)(_variant(split=_overlapping))
ATTENTION.misconception(
    "heads_not_split",
    "There is one attention over all features, whatever num_heads says. Each head needs scores of its own, from its "
    "own slice.",
)(
    _variant(
        split=lambda x, num_heads: x, merge=lambda x: x, mask_as=lambda mask: mask[:, 0] if mask.dim() == 4 else mask
    )
)
ATTENTION.misconception(
    "heads_not_split_but_named",
    "The weights have an axis of heads, but it has one entry: one attention over all features. Each head needs scores "
    "of its own, from its own slice.",
)(_variant(split=lambda x, num_heads: x[:, None], merge=lambda x: x[:, 0]))
ATTENTION.misconception(
    "attends_across_heads",
    "The axis of heads stands where the positions should, so the heads of one position attend to each other, and no "
    "position sees another. Which axes does the matrix product sum over?",
    look="multi_head: Splitting and merging heads",
)(_variant(split=lambda x, n: x.unflatten(-1, (n, -1)), merge=lambda x: x.flatten(-2)))
ATTENTION.misconception(
    "attends_across_the_batch",
    "The first axis is taken for the positions, as PyTorch's module does by default. Here the batch comes first, so "
    "sequences of the batch attend to each other.",
)(
    _variant(
        split=lambda x, n: _unchecked(x.transpose(0, 1), n),
        merge=lambda x: merge_heads(x).transpose(0, 1),
    )
)


def _of_one_length(width):
    def project(self, query, key, value):
        shape = (*query.shape[:2], self.num_heads, width(self, query))
        return tuple(x.reshape(shape) for x in _project(self, query, key, value))

    return project


def _swap(x, num_heads):
    return x.transpose(1, 2)


ATTENTION.misconception(
    "one_length_for_all",
    "The length of the queries is used to reshape keys and values too. Keys may be more or fewer than queries: whose "
    "length is it?",
)(_variant(project=_of_one_length(lambda self, query: query.shape[2] // self.num_heads), split=_swap))
ATTENTION.misconception(
    "one_length_for_all_and_minus_one",
    "Keys and values are reshaped with the length of the queries, and the width of a head is left to be found by −1. "
    "Keys may be more or fewer than queries: whose length is it?",
)(_variant(project=_of_one_length(lambda self, query: -1), split=_swap))
ATTENTION.misconception(
    "one_length_for_all_view_straight",
    "Two things: the length of the queries is used to reshape keys and values too; and the `view` straight to (B, H, "
    "L, d_head) gives a head some positions instead of some features.",
    look=BUG,
)(
    _variant(
        project=_of_one_length(lambda self, query: query.shape[2] // self.num_heads),
        split=lambda x, num_heads: x.reshape(len(x), num_heads, x.shape[1], -1),
    )
)
ATTENTION.misconception(
    "heads_of_full_width",
    "Each head is given d_model features, so the reshape asks for num_heads times as many numbers as there are. How "
    "many features has a head?",
    look="multi_head: Splitting and merging heads",
)(_variant(split=lambda x, n: x.reshape(*x.shape[:2], n, x.shape[2]).transpose(1, 2)))
ATTENTION.misconception(
    "keys_not_transposed",
    "Queries are multiplied by keys as they are, (L_q, d_head) by (L_k, d_head). Which two axes of the keys have to "
    "change places?",
)(_variant(attend=lambda q, k, v, mask: _attend()(q, k.transpose(-2, -1), v, mask)))
ATTENTION.misconception(
    "heads_and_keys_transposed",
    "For the scores the keys exchange axes 1 and 2: with heads, those are heads and positions. Count from the right.",
)(_variant(attend=lambda q, k, v, mask: _attend()(q, k.transpose(1, 2).transpose(-2, -1), v, mask)))
ATTENTION.misconception(
    "all_axes_transposed",
    "For the scores the keys are turned round by `.T`, which reverses all axes, batch and heads too. Only the last two "
    "are the matrix.",
)(_variant(attend=lambda q, k, v, mask: _attend()(q, k.permute(3, 2, 1, 0).transpose(-2, -1), v, mask)))
ATTENTION.misconception(
    "view_of_transposed",
    "`view` never copies, so it cannot put axes together that a transpose has taken apart in memory. Which relatives "
    "of `view` copy where they have to?",
    look=VIEWS,
)(_variant(merge=lambda x: x.transpose(1, 2).view(len(x), x.shape[2], -1)))

# Scale and softmax

ROOT = "scaled_dot_product: Why divide by the root of d"
ATTENTION.misconception(
    "scale_of_the_model",
    "The scores are divided by the root of d_model. The dot product of one head sums over fewer features: how many?",
    look=ROOT,
)(_variant(attend=_attend(scale=lambda q, k: math.sqrt(q.shape[1] * q.shape[-1]))))
ATTENTION.misconception(
    "no_scale",
    "The scores are used as they are. Heads are narrow, but their dot products spread too: like what?",
    look=ROOT,
)(_variant(attend=_attend(scale=lambda q, k: 1.0)))
ATTENTION.misconception(
    "scale_without_root",
    "The scores are divided by d_head, or twice by its root. The spread of a dot product grows more slowly than that.",
    look=ROOT,
)(_variant(attend=_attend(scale=lambda q, k: q.shape[-1])))
ATTENTION.misconception(
    "multiplied_by_root",
    "The scores are multiplied by the root, so they spread more with every feature instead of less.",
    look=ROOT,
)(_variant(attend=_attend(scale=lambda q, k: q.shape[-1] ** -0.5)))
ATTENTION.misconception(
    "scale_by_heads",
    "The divisor comes from the number of heads. What matters is how many features one dot product sums over.",
    look=ROOT,
)(_variant(attend=_attend(scale=lambda q, k: math.sqrt(q.shape[1]))))
ATTENTION.misconception(
    "scale_by_length",
    "The divisor grows with the number of keys. How many terms does one dot product sum up: one a key, or one a "
    "feature?",
    look=ROOT,
)(_variant(attend=_attend(scale=lambda q, k: math.sqrt(k.shape[-2]))))
ATTENTION.misconception(
    "scale_by_d_model_without_root",
    "The scores are divided by d_model. Neither is that the width of a head, nor does the spread grow that fast.",
    look=ROOT,
)(_variant(attend=_attend(scale=lambda q, k: q.shape[1] * q.shape[-1])))
ATTENTION.misconception(
    "scale_by_queries",
    "The divisor grows with the number of queries. What matters is how many features one dot product sums over: which "
    "axis has them by now?",
    look=ROOT,
)(_variant(attend=_attend(scale=lambda q, k: math.sqrt(q.shape[-2]))))
ATTENTION.misconception(
    "root_by_precedence",
    "`d ** 1 / 2` is half of d: the power is taken before the division. The root needs an exponent in brackets, or a "
    "function.",
    look=ROOT,
)(_variant(attend=_attend(scale=lambda q, k: q.shape[-1] / 2)))
ATTENTION.misconception(
    "root_by_precedence_inline",
    "`scores / d ** 1 / 2` divides by d, and then by 2: the power is taken first, then the divisions in turn. The root "
    "needs an exponent in brackets, or a function.",
    look=ROOT,
)(_variant(attend=_attend(scale=lambda q, k: q.shape[-1] * 2)))
ATTENTION.misconception(
    "root_in_float32",
    "The root is a float32 tensor, so in float64 the scores are only as exact as that. A plain Python number fits "
    "every dtype.",
)(_variant(attend=_attend(scale=lambda q, k: torch.sqrt(torch.tensor(float(q.shape[-1]), dtype=torch.float32)))))
ATTENTION.misconception(
    "softmax_in_float32",
    "The softmax is computed in float32 whatever comes in, so in float64 half of the digits are lost.",
)(_variant(attend=_attend(softmax=lambda s, dim: s.float().softmax(dim).to(s.dtype))))
ATTENTION.misconception(
    "softmax_over_queries",
    "Each column of the weights sums to one, each row should. Every query shares out one unit of attention: over which "
    "axis?",
)(_variant(attend=_attend(dim=-2)))
ATTENTION.misconception(
    "softmax_over_heads",
    "The softmax runs over the heads (that is also what a softmax without `dim` does to four axes), so the heads share "
    "one unit of attention. Each head has its own, to share out over the keys.",
)(_variant(attend=_attend(dim=1)))
ATTENTION.misconception(
    "softmax_over_the_batch",
    "The softmax runs over the first axis, the batch. Sequences that happen to share a batch know nothing of each "
    "other.",
)(_variant(attend=_attend(dim=0)))
ATTENTION.misconception(
    "softmax_over_heads_and_keys",
    "All entries of the scores of one sequence share one softmax. Each query of each head has a unit of its own.",
)(_variant(attend=_attend(softmax=lambda s, dim: s.flatten(1).softmax(-1).view_as(s))))
ATTENTION.misconception(
    "unstable_softmax",
    "Large scores overflow: e¹⁰⁰ is more than a float32 can hold. A constant taken from all scores of a row leaves the "
    "weights alone.",
    look="attention: The mathematics",
)(_variant(attend=_attend(softmax=lambda s, dim: s.exp() / s.exp().sum(dim, keepdim=True))))
ATTENTION.misconception("no_softmax", "The scores are used as weights, without a softmax: rows should sum to one.")(
    _variant(attend=_attend(softmax=lambda s, dim: s))
)


@ATTENTION.misconception(
    "scale_after_softmax",
    "The weights are divided by the root, after the softmax, so they do not sum to one. What the root should tame are "
    "the scores.",
    look=ROOT,
)
@_attending
def _(q, k, v, mask):
    weights = _attend(scale=lambda q, k: 1.0)(q, k, v, mask)[1] / math.sqrt(q.shape[-1])
    return weights @ v, weights


@ATTENTION.misconception(
    "output_scaled",
    "The root divides the heads' results, not the scores. It is there to keep the softmax from saturating, so it has "
    "to come before it.",
    look=ROOT,
)
@_attending
def _(q, k, v, mask):
    heads, weights = _attend(scale=lambda q, k: 1.0)(q, k, v, mask)
    return heads / math.sqrt(q.shape[-1]), weights


@ATTENTION.misconception(
    "divided_and_rounded_down",
    "`//` divides and rounds down, so the scores lose what is behind the point, and their gradient.",
    look=ROOT,
)
@_attending
def _(q, k, v, mask):
    scores = q @ k.transpose(-2, -1) // math.sqrt(q.shape[-1])
    weights = (scores if mask is None else _hide(scores, mask)).softmax(-1)
    return weights @ v, weights


# Projections


def _projected(first, second, third):
    """Projections as pairs of layer and argument, such as "kv" for k_proj(value); "-v" leaves the value as it is."""

    def project(self, query, key, value):
        inputs = {"q": query, "k": key, "v": value}
        layers = {"q": self.q_proj, "k": self.k_proj, "v": self.v_proj, "-": nn.Identity()}
        return tuple(layers[layer](inputs[x]) for layer, x in (first, second, third))

    return project


def _untransposed(layer, x):
    return x @ layer.weight + layer.bias


WIRING = "multi_head: From heads to one matrix"
FORMULA = "multi_head: The mathematics"
for _key, _says, _wires in (
    ("values_by_k_proj", "The values go through `k_proj`, and `v_proj` is never used.", ("qq", "kk", "kv")),
    ("keys_by_q_proj", "The keys go through `q_proj`, and `k_proj` is never used.", ("qq", "qk", "vv")),
    ("values_by_q_proj", "The values go through `q_proj`, and `v_proj` is never used.", ("qq", "kk", "qv")),
    ("keys_by_v_proj", "The keys go through `v_proj`, and `k_proj` is never used.", ("qq", "vk", "vv")),
    ("q_proj_for_all", "All three inputs go through `q_proj`. Each has a projection of its own.", ("qq", "qk", "qv")),
    ("k_proj_for_all", "All three inputs go through `k_proj`. Each has a projection of its own.", ("kq", "kk", "kv")),
    ("v_proj_for_all", "All three inputs go through `v_proj`. Each has a projection of its own.", ("vq", "vk", "vv")),
    ("queries_by_k_proj", "The queries go through `k_proj`, and `q_proj` is never used.", ("kq", "kk", "vv")),
    ("q_and_k_proj_exchanged", "`q_proj` and `k_proj` have changed places.", ("kq", "qk", "vv")),
    ("k_and_v_proj_exchanged", "`k_proj` and `v_proj` have changed places.", ("qq", "vk", "kv")),
    (
        "keys_and_values_exchanged",
        "`key` and `value` have changed places: the values are compared.",
        ("qq", "kv", "vk"),
    ),
    ("values_from_keys", "`v_proj` gets the key. In self-attention that makes no difference.", ("qq", "kk", "vk")),
    ("keys_from_values", "`k_proj` gets the value. In self-attention that makes no difference.", ("qq", "kv", "vv")),
    ("keys_from_queries", "`k_proj` gets the query. In self-attention that makes no difference.", ("qq", "kq", "vv")),
    ("values_from_queries", "`v_proj` gets the query. In self-attention that makes no difference.", ("qq", "kk", "vq")),
    (
        "queries_for_all",
        "`key` and `value` are never looked at: all three projections get the query. That is self-attention only.",
        ("qq", "kq", "vq"),
    ),
    (
        "keys_for_all",
        "`query` is never looked at, or taken for the key: all three projections get the same input. That is "
        "self-attention only.",
        ("qk", "kk", "vk"),
    ),
    (
        "query_last",
        "The arguments are taken in the order value, key, query. The contract has query, key, value; in self-attention "
        "nobody would notice.",
        ("qv", "kk", "vq"),
    ),
    ("queries_not_projected", "The queries are used as they come, without `q_proj`.", ("-q", "kk", "vv")),
    ("keys_not_projected", "The keys are used as they come, without `k_proj`.", ("qq", "-k", "vv")),
    ("values_not_projected", "The values are used as they come, without `v_proj`.", ("qq", "kk", "-v")),
    ("nothing_projected", "No input is projected, so all heads just see slices of the input.", ("-q", "-k", "-v")),
):
    ATTENTION.misconception(_key, _says, look=WIRING)(_variant(project=_projected(*_wires)))
ATTENTION.misconception(
    "no_out_proj",
    "The heads' results come back side by side, without `out_proj`: nothing mixes what they found.",
    look=FORMULA,
)(_variant(out=lambda self, merged, query: merged))
ATTENTION.misconception(
    "queries_and_keys_not_projected",
    "Queries and keys are used as they come. They need their projections most: there it is decided what a head looks "
    "for.",
    look=WIRING,
)(_variant(project=_projected("-q", "-k", "vv")))
ATTENTION.misconception(
    "weights_turned_for_values",
    "The transposed weights multiply the values: each value would collect queries. In self-attention the shapes even "
    "fit. Which axis of the weights runs over the keys?",
)(_variant(attend=lambda q, k, v, mask: (lambda w: (w.transpose(-2, -1) @ v, w))(_attend()(q, k, k, mask)[1])))
ATTENTION.misconception(
    "keys_ask_queries",
    "The scores have a row for each key: keys ask and queries are asked. In self-attention the shapes even fit.",
)(_variant(attend=lambda q, k, v, mask: _attend()(k, q, v, mask)))
ATTENTION.misconception(
    "weights_times_keys",
    "The weights average the keys. Keys decide who is listened to; what is said are the values.",
    look=WIRING,
)(_variant(attend=lambda q, k, v, mask: _attend()(q, k, k, mask)))
ATTENTION.misconception(
    "residual_inside",
    "The query is added to the output. The residual connection is the encoder layer's business, not attention's.",
)(_variant(out=lambda self, merged, query: self.out_proj(merged) + query))
ATTENTION.misconception(
    "out_proj_twice", "The output goes through `out_proj` twice, or what goes in has been through it already."
)(_variant(out=lambda self, merged, query: self.out_proj(self.out_proj(merged))))
ATTENTION.misconception(
    "matrices_not_transposed",
    "The inputs are multiplied by the layers' `weight` as it lies. A Linear stores it as (out, in), so it computes the "
    "product with the transpose; the matrix is square, and nothing complains. Calling the layer is easier.",
    look=WIRING,
)(
    _variant(
        project=lambda self, query, key, value: (
            _untransposed(self.q_proj, query),
            _untransposed(self.k_proj, key),
            _untransposed(self.v_proj, value),
        ),
        out=lambda self, merged, query: _untransposed(self.out_proj, merged),
    )
)
ATTENTION.misconception(
    "biases_forgotten",
    "The layers' matrices are used, their biases are not. Calling a layer applies both.",
    look=WIRING,
)(
    _variant(
        project=lambda self, query, key, value: (
            query @ self.q_proj.weight.T,
            key @ self.k_proj.weight.T,
            value @ self.v_proj.weight.T,
        ),
        out=lambda self, merged, query: merged @ self.out_proj.weight.T,
    )
)

# Masks

MASKS = "notation: Conventions"
ATTENTION.misconception(
    "mask_turned_round",
    "Attention goes exactly where the mask forbids it. True means *may attend* (`nn.MultiheadAttention` has it the "
    "other way round); look at the condition with which you fill.",
    look=MASKS,
)(_variant(mask_as=torch.logical_not))
ATTENTION.misconception("mask_ignored", "The weights do not depend on the mask.")(
    _variant(attend=lambda q, k, v, mask: _attend()(q, k, v))
)
ATTENTION.misconception(
    "mask_filled_with_zero",
    "Masked scores become 0 or nearly 0, filled or multiplied. A score of 0 is not a small score: its weight is e⁰ "
    "over the sum. Which score gives weight zero?",
)(_variant(attend=_attend(hide=lambda scores, mask: scores * mask)))
ATTENTION.misconception(
    "mask_added",
    "The mask is added as it is: True adds 1 to a score. A bool mask chooses; it is not a number to add.",
)(_variant(attend=_attend(hide=lambda scores, mask: scores + mask)))
ATTENTION.misconception(
    "zero_times_infinity",
    "The mask is multiplied by −inf. Where it is 0 that is 0 · ∞, which is `nan`.",
)(_variant(attend=_attend(hide=lambda scores, mask: scores + (~mask) * float("-inf"))))
ATTENTION.misconception(
    "filled_with_plus_infinity",
    "Masked scores become as large as possible, +∞ or nearly. Which score has weight zero?",
)(_variant(attend=_attend(hide=lambda scores, mask: scores.masked_fill(~mask, float("inf")))))
ATTENTION.misconception(
    "filled_with_plus_a_billion",
    "Masked scores become a large positive number, so the masked keys get all the weight. Is a sign missing?",
)(_variant(attend=_attend(hide=lambda scores, mask: scores.masked_fill(~mask, 1e9))))
ATTENTION.misconception(
    "mask_of_two_axes_only",
    "The mask is taken for (L_q, L_k), and two axes are put before it. It may have up to four axes; it broadcasts "
    "without help.",
    look=MASKS,
)(_variant(mask_as=lambda mask: mask[None, None]))
ATTENTION.misconception(
    "mask_of_two_axes_moved",
    "A mask of two axes gets more axes between its own, as if it were (B, L_k). It is (L_q, L_k), and broadcasts as it "
    "comes.",
    look=MASKS,
)(_variant(mask_as=lambda mask: mask[:, None, None] if mask.dim() == 2 else mask))
ATTENTION.misconception(
    "only_masks_of_two_axes_used",
    "Only a mask (L_q, L_k) has an effect. It may have up to four axes: `(B, 1, 1, L_k)` says which keys are padding.",
    look=MASKS,
)(_variant(attend=lambda q, k, v, mask: _attend()(q, k, v, mask if mask is not None and mask.dim() == 2 else None)))
ATTENTION.misconception(
    "only_masks_of_four_axes_used",
    "A mask (L_q, L_k) has no effect. Masks broadcast, so one of two axes holds for all sequences and heads.",
    look=MASKS,
)(_variant(attend=lambda q, k, v, mask: _attend()(q, k, v, mask if mask is not None and mask.dim() == 4 else None)))
ATTENTION.misconception(
    "mask_of_the_first_head",
    "The mask's first entry along the heads is used for all of them. A mask may differ from head to head.",
    look=MASKS,
)(_variant(mask_as=lambda mask: mask[:, :1] if mask.dim() == 4 else mask))
ATTENTION.misconception(
    "always_causal",
    "No query sees the keys after it, mask or not. Causality is not built in here: a caller who wants it passes a "
    "mask.",
    look=MASKS,
)(
    _variant(
        attend=lambda q, k, v, mask: _attend()(
            q, k, v, (True if mask is None else mask) & torch.ones(q.shape[-2], k.shape[-2], dtype=torch.bool).tril()
        )
    )
)


ATTENTION.misconception(
    "one_minus_a_bool",
    "`1 - mask` does not negate a bool tensor: PyTorch does not subtract bools. They have a logical *not*.",
    look=MASKS,
)(_variant(mask_as=lambda mask: 1 - mask))
ATTENTION.misconception(
    "if_mask",
    "`if mask:` asks a whole tensor for one truth value, which it does not have. What you want to know is whether "
    "there is a mask.",
)(_variant(mask_as=lambda mask: mask if mask else None))

# More axes than four show in another way for every way to merge.
for _key, _merge, _then in (
    ("", merge_heads, "Merging the heads then moves the wrong axes."),
    ("_from_the_left", lambda x: x.transpose(1, 2).flatten(2), "Merging the heads then puts too many axes together."),
    (
        "_by_minus_one",
        lambda x: x.transpose(1, 2).reshape(len(x), -1, x.shape[-3] * x.shape[-1]),
        "A −1 where the heads are merged hides it, until the shape of the output shows it.",
    ),
    (
        "_and_not_merged",
        lambda x: x.transpose(1, 2).reshape(len(x), x.shape[-2], x.shape[-3] * x.shape[-1]),
        "The result then does not fit the shape for merging.",
    ),
):
    ATTENTION.misconception(
        "mask_of_five_axes" + _key,
        "The mask gets an axis more, and so do the scores: they come out with five axes at least. A mask that "
        "broadcasts to (B, H, L_q, L_k) has a 1 there already, or needs none. " + _then,
        look=MASKS,
    )(_variant(mask_as=lambda mask: mask.unsqueeze(1), merge=_merge))
    if _key in ("", "_by_minus_one"):
        ATTENTION.misconception(
            "mask_of_six_axes" + _key,
            "The mask is taken for (B, L_k), a padding mask without its axes, and gets two more; with it the scores "
            "get six. A mask that broadcasts to (B, H, L_q, L_k) needs none. " + _then,
            look=MASKS,
        )(_variant(mask_as=lambda mask: mask[:, None, None], merge=_merge))


@ATTENTION.misconception(
    "mask_after_softmax",
    "The mask is applied to the finished weights, so what is left in a row sums to less than one. At which step must a "
    "key be out?",
    look="masking: The mathematics",
)
@_attending
def _(q, k, v, mask):
    weights = _attend()(q, k, v)[1]
    weights = weights if mask is None else weights * mask
    return weights @ v, weights


@ATTENTION.misconception(
    "mask_for_the_output_only",
    "The output obeys the mask, the returned weights do not: they were kept from before the mask.",
)
@_attending
def _(q, k, v, mask):
    return _attend()(q, k, v, mask)[0], _attend()(q, k, v)[1]


# What comes back

ATTENTION.misconception(
    "weights_averaged",
    "The weights are averaged over the heads, as `nn.MultiheadAttention` does by default. The contract wants those of "
    "every head.",
)(_variant(finish=lambda output, weights: (output, weights.mean(1))))
ATTENTION.misconception(
    "weights_summed",
    "The weights are added up over the heads. The contract wants those of every head.",
)(_variant(finish=lambda output, weights: (output, weights.sum(1))))
ATTENTION.misconception(
    "weights_of_the_last_head",
    "Only the last head's weights come back: does a loop over the heads overwrite them?",
)(_variant(finish=lambda output, weights: (output, weights[:, -1])))
ATTENTION.misconception(
    "weights_of_the_first_head", "Only the first head's weights come back. The contract wants those of every head."
)(_variant(finish=lambda output, weights: (output, weights[:, 0])))
ATTENTION.misconception(
    "weights_heads_first",
    "In the weights the heads come before the batch: (H, B, L_q, L_k).",
)(_variant(finish=lambda output, weights: (output, weights.transpose(0, 1))))
ATTENTION.misconception(
    "weights_heads_after_queries",
    "In the weights the heads come after the queries: (B, L_q, H, L_k).",
)(_variant(finish=lambda output, weights: (output, weights.transpose(1, 2))))
ATTENTION.misconception(
    "weights_heads_last",
    "In the weights the heads come last: (B, L_q, L_k, H).",
)(_variant(finish=lambda output, weights: (output, weights.movedim(1, -1))))
ATTENTION.misconception(
    "weights_transposed",
    "The weights have one row per key: (B, H, L_k, L_q). A row belongs to a query.",
)(_variant(finish=lambda output, weights: (output, weights.transpose(-2, -1))))
ATTENTION.misconception(
    "weights_batch_and_heads_in_one",
    "In the weights batch and heads share one axis. The contract keeps them apart.",
)(_variant(finish=lambda output, weights: (output, weights.flatten(0, 1))))
ATTENTION.misconception(
    "weights_batch_and_heads_mixed",
    "Batch and heads were put into one axis and taken apart in the other order, so weights stand under the wrong "
    "sequence. Which of the two runs faster?",
)(_variant(finish=lambda output, weights: (output, weights.transpose(0, 1).reshape(weights.shape))))
ATTENTION.misconception(
    "weights_side_by_side",
    "The heads' weights stand side by side like their features, (B, L_q, H · L_k). They need an axis of their own.",
)(_variant(finish=lambda output, weights: (output, weights.transpose(1, 2).flatten(-2))))
ATTENTION.misconception(
    "outputs_swapped",
    "Weights and output come back in the wrong order: the contract says `(output, weights)`.",
)(_variant(finish=lambda output, weights: (weights, output)))
ATTENTION.misconception("only_output", "Only the output comes back. The contract asks for `(output, weights)`.")(
    _variant(finish=lambda output, weights: output)
)
ATTENTION.misconception(
    "weights_detached",
    "The returned weights are cut off from the graph. Someone may want to train on them, so gradients have to flow.",
)(_variant(finish=lambda output, weights: (output, weights.detach())))
ATTENTION.misconception(
    "scores_returned", "The second result holds the scores before the softmax; it should hold the weights."
)(
    _variant(
        attend=lambda q, k, v, mask: (_attend()(q, k, v, mask)[0], _attend(softmax=lambda s, dim: s)(q, k, k, mask)[1])
    )
)
ATTENTION.misconception(
    "output_squeezed",
    "`squeeze` removes every axis of length one from the output, a batch of one or a single query among them.",
)(_variant(finish=lambda output, weights: (output.squeeze(), weights)))
ATTENTION.misconception(
    "weights_squeezed",
    "`squeeze` removes every axis of length one from the weights, a batch of one or a single head among them.",
)(_variant(finish=lambda output, weights: (output, weights.squeeze())))
ATTENTION.misconception(
    "heads_returned",
    "The output still has an axis of heads: (B, H, L_q, d_head), neither merged nor projected.",
)(_variant(merge=lambda x: x, out=lambda self, merged, query: merged))

# The constructor


class _Made(MultiHeadAttention):
    """With parameters of other shapes or names; `forward` is not reached."""

    def __init__(self, d_model, num_heads):
        super().__init__(d_model, num_heads)
        self.make(d_model, num_heads)

    def make(self, d_model, num_heads):
        raise NotImplementedError


def _made(make):
    return type("Made", (_Made,), {"make": make})


@ATTENTION.misconception(
    "no_biases",
    "The projections lack their biases. `nn.Linear(d_model, d_model)` has one, and the contract's weights are loaded "
    "into it.",
)
@_made
def _(self, d_model, num_heads):
    for name in ("q_proj", "k_proj", "v_proj", "out_proj"):
        setattr(self, name, nn.Linear(d_model, d_model, bias=False))


@ATTENTION.misconception(
    "no_input_biases",
    "`q_proj`, `k_proj` and `v_proj` lack their biases. `nn.Linear(d_model, d_model)` has one, and the contract's "
    "weights are loaded into it.",
)
@_made
def _(self, d_model, num_heads):
    for name in ("q_proj", "k_proj", "v_proj"):
        setattr(self, name, nn.Linear(d_model, d_model, bias=False))


@ATTENTION.misconception(
    "linears_of_one_head",
    "The projections lead to d_head features: that is one head. How many features do all heads together need?",
    look=WIRING,
)
@_made
def _(self, d_model, num_heads):
    for name in ("q_proj", "k_proj", "v_proj"):
        setattr(self, name, nn.Linear(d_model, d_model // num_heads))


@ATTENTION.misconception(
    "linears_of_one_head_everywhere",
    "All projections have the width of one head, the last one too. How many features do all heads together bring to "
    "it?",
    look=WIRING,
)
@_made
def _(self, d_model, num_heads):
    for name in ("q_proj", "k_proj", "v_proj"):
        setattr(self, name, nn.Linear(d_model, d_model // num_heads))
    self.out_proj = nn.Linear(d_model // num_heads, d_model)


@ATTENTION.misconception(
    "linears_inside_a_head",
    "The projections work on d_head features, within a slice that was cut before. A head should see all features of "
    "the input and choose from them: first project, then split.",
    look=WIRING,
)
@_made
def _(self, d_model, num_heads):
    for name in ("q_proj", "k_proj", "v_proj"):
        setattr(self, name, nn.Linear(d_model // num_heads, d_model // num_heads))


@ATTENTION.misconception(
    "linears_inside_a_head_without_bias",
    "The projections are d_head by d_head and without bias: they work within a slice that was cut before. A head "
    "should see all features of the input: first project, then split.",
    look=WIRING,
)
@_made
def _(self, d_model, num_heads):
    for name in ("q_proj", "k_proj", "v_proj"):
        setattr(self, name, nn.Linear(d_model // num_heads, d_model // num_heads, bias=False))


@ATTENTION.misconception(
    "heads_as_wide_as_the_model",
    "Each head is d_model wide, so the projections are num_heads times too large. The heads share the features of the "
    "model among them.",
    look=WIRING,
)
@_made
def _(self, d_model, num_heads):
    for name in ("q_proj", "k_proj", "v_proj"):
        setattr(self, name, nn.Linear(d_model, d_model * num_heads))
    self.out_proj = nn.Linear(d_model * num_heads, d_model)


@ATTENTION.misconception(
    "a_linear_for_each_head",
    "Every head has Linears of its own, in a ModuleList. That computes the same, but the contract stacks them: one "
    "Linear a projection, whose rows belong to the heads in turn.",
    look=WIRING,
)
@_made
def _(self, d_model, num_heads):
    for name in ("q_proj", "k_proj", "v_proj"):
        setattr(self, name, nn.ModuleList(nn.Linear(d_model, d_model // num_heads) for _ in range(num_heads)))


@ATTENTION.misconception(
    "one_layer_under_three_names",
    "`q_proj`, `k_proj` and `v_proj` are one and the same layer. Queries, keys and values each need parameters of "
    "their own.",
    look=WIRING,
)
@_made
def _(self, d_model, num_heads):
    self.k_proj = self.v_proj = self.q_proj


@ATTENTION.misconception(
    "one_layer_under_four_names",
    "The four names stand for one and the same layer (`[layer] * 4` repeats a reference, it does not copy). Each "
    "projection needs parameters of its own.",
    look=WIRING,
)
@_made
def _(self, d_model, num_heads):
    self.k_proj = self.v_proj = self.out_proj = self.q_proj


@ATTENTION.misconception(
    "no_out_proj_made",
    "There is no `out_proj`. Without it nothing mixes what the heads found.",
    look=FORMULA,
)
@_made
def _(self, d_model, num_heads):
    del self.out_proj


for _key, _names in (
    ("one_projection_for_three", "qkv_proj"),
    ("one_projection_named_in_proj", "in_proj"),
    ("one_projection_named_qkv", "qkv"),
):

    def _stack(self, d_model, num_heads, name=_names):
        del self.q_proj, self.k_proj, self.v_proj
        setattr(self, name, nn.Linear(d_model, 3 * d_model))

    ATTENTION.misconception(
        _key,
        f"Queries, keys and values share one Linear, `{_names}`, three times as wide. That is the same computation, "
        f"but "
        f"the contract names three layers, so that weights can be loaded and inputs can differ.",
        look=WIRING,
    )(_made(_stack))


class _Unchecked(nn.Module):
    """The reference without the check of the constructor."""

    def __init__(self, d_model, num_heads):
        super().__init__()
        self.num_heads = num_heads
        self.q_proj = nn.Linear(d_model, d_model)
        self.k_proj = nn.Linear(d_model, d_model)
        self.v_proj = nn.Linear(d_model, d_model)
        self.out_proj = nn.Linear(d_model, d_model)

    forward = MultiHeadAttention.forward


ATTENTION.misconception(
    "not_checked",
    "The constructor accepts a number of heads that does not divide d_model. It has to raise a ValueError there and "
    "then: a mistake found in `forward` is found far from where it was made.",
)(_Unchecked)


@ATTENTION.misconception(
    "assertion",
    "A number of heads that does not divide is noticed, by an `assert`: that is an AssertionError, and it is gone "
    "under `python -O`. The contract names a ValueError.",
)
class _Assertion(_Unchecked):
    def __init__(self, d_model, num_heads):
        if d_model % num_heads:
            raise AssertionError
        super().__init__(d_model, num_heads)


@ATTENTION.misconception(
    "assertion_with_text",
    "The number of heads is checked by an `assert` with a text. An AssertionError is not the ValueError that the "
    "contract names, and disappears under `python -O`.",
)
class _AssertionWithText(_Unchecked):
    def __init__(self, d_model, num_heads):
        if d_model % num_heads:
            raise AssertionError("d_model must be divisible by num_heads")
        super().__init__(d_model, num_heads)


@ATTENTION.misconception(
    "heads_before_width_in_the_constructor",
    "The constructor takes num_heads first. The contract has `d_model, num_heads`.",
)
class _Reordered(_Unchecked):
    def __init__(self, num_heads, d_model):
        super().__init__(d_model, num_heads)


# multi_head_parameter_count

COUNT = Exercise(
    name="multi_head_parameter_count",
    title="How many parameters the heads cost",
    statement="""\
How many trainable numbers does `MultiHeadAttention(d_model, num_heads)` have? Count the four layers `q_proj`,
`k_proj`, `v_proj` and `out_proj`, each an `nn.Linear(d_model, d_model)`: with their biases, or without if `bias` is
False. `num_heads` divides `d_model`. Return an int.""",
    difficulty=1,
    minutes=5,
    stub='''\
def multi_head_parameter_count(d_model, num_heads, bias=True):
    """Number of parameters of MultiHeadAttention(d_model, num_heads)."""
    raise NotImplementedError
''',
    hints=(
        "A Linear from m to n features has a matrix and one bias for each feature that comes out.",
        "Split a projection into H smaller ones, one a head: how large is each, and how many are there? Compare with "
        "the one large projection.",
    ),
    reference=multi_head_parameter_count,
    shapes={},
    returns=("parameters",),
    look="multi_head: Counting parameters",
    differentiable=False,
)


@COUNT.holds("Four matrices with their biases are counted, however many heads share them", weight=2)
def _(draw):
    yield Case(args=(2, 1), note="two features, one head", edge="the smallest case, to be read by eye")
    for pair in (*PAIRS, (3, 5), (8, 64)):
        yield Case(args=(pair[0] * pair[1], pair[0]))
    for num_heads in (1, 12):
        yield Case(args=(12, num_heads), note=f"{num_heads} heads for 12 features", edge="an extreme number of heads")


@COUNT.holds("Without biases only the matrices are counted")
def _(draw):
    for pair in PAIRS:
        yield Case(args=(pair[0] * pair[1], pair[0], False), note="bias=False")
    yield Case(args=(12, 3, True), note="bias=True, said aloud")


@COUNT.holds("It is an exact int, for wide models too")
def _(draw):
    yield Case(args=(300_000_009, 3), note="300 million features")
    yield Case(args=(200_000_006, 2, False), note="200 million features, no bias")


def _count(weights=lambda d, h: 4 * d * d, biases=lambda d, h: 4 * d):
    return lambda d_model, num_heads, bias=True: (
        weights(d_model, num_heads) + (biases(d_model, num_heads) if bias else 0)
    )


for _key, _says, _wrong in (
    (
        "biases_forgotten",
        "The biases are never counted. A Linear has one number for each feature that comes out, unless `bias` is "
        "False.",
        _count(biases=lambda d, h: 0),
    ),
    (
        "biases_always",
        "The biases are counted even where `bias` is False.",
        lambda d_model, num_heads, bias=True: 4 * (d_model * d_model + d_model),
    ),
    (
        "bias_turned_round",
        "The biases are counted exactly where there are none.",
        lambda d_model, num_heads, bias=True: 4 * d_model * d_model + (0 if bias else 4 * d_model),
    ),
    (
        "three_projections",
        "Three projections are counted, one is missing: what happens to the heads' results after they are merged?",
        _count(lambda d, h: 3 * d * d, lambda d, h: 3 * d),
    ),
    (
        "three_projections_with_bias_turned_off",
        "One projection is missing, and the biases with it: think of what follows after the heads are merged.",
        _count(lambda d, h: 3 * d * d, lambda d, h: 0),
    ),
    (
        "one_projection",
        "One projection is counted. Which others does the module have?",
        _count(lambda d, h: d * d, lambda d, h: d),
    ),
    (
        "times_heads",
        "The number grows with the heads. They share the features among them: how wide is one head's projection?",
        _count(lambda d, h: 4 * h * d * d, lambda d, h: 4 * h * d),
    ),
    (
        "inputs_times_heads",
        "The projections of the inputs are counted for every head at full width. More heads make narrower heads.",
        _count(lambda d, h: 3 * h * d * d + d * d, lambda d, h: 3 * h * d + d),
    ),
    (
        "matrices_times_heads",
        "The biases are right; the matrices are counted once a head, at full width. How many of the d_model features "
        "does the projection of one head give?",
        _count(lambda d, h: 4 * h * d * d),
    ),
    (
        "matrices_times_heads_biases_forgotten",
        "Two things: the matrices are counted once a head, at full width, while the heads share the features among "
        "them; and the biases are never counted.",
        _count(lambda d, h: 4 * h * d * d, lambda d, h: 0),
    ),
    (
        "input_matrices_times_heads",
        "The biases and the output projection are right; the matrices of the three other projections are counted once "
        "a head, at full width. How many of the d_model features does the projection of one head give?",
        _count(lambda d, h: 3 * h * d * d + d * d),
    ),
    (
        "input_matrices_times_heads_biases_forgotten",
        "Two things: the matrices of the inputs' projections are counted once a head, at full width, while more heads "
        "are narrower heads; and the biases are never counted.",
        _count(lambda d, h: 3 * h * d * d + d * d, lambda d, h: 0),
    ),
    (
        "input_matrices_times_heads_without_output",
        "Two things: the matrices of the inputs' projections are counted once a head, at full width, while the heads "
        "share the features among them; and one layer is missing, the one after the heads are merged.",
        _count(lambda d, h: 3 * h * d * d, lambda d, h: 3 * d),
    ),
    (
        "inputs_times_heads_without_output",
        "Two things: the projections of the inputs are counted for every head at full width, while more heads make "
        "narrower heads; and one layer is missing, the one after the heads are merged.",
        _count(lambda d, h: 3 * h * d * d, lambda d, h: 3 * h * d),
    ),
    (
        "heads_as_wide_as_the_model",
        "Each head is counted as wide as the model, and the output projection as wide as all of them together. The "
        "heads share d_model among them.",
        _count(lambda d, h: 4 * h * d * d, lambda d, h: 3 * h * d + d),
    ),
    (
        "one_head_only",
        "Only one head is counted. How many projections of that width are there?",
        _count(lambda d, h: 4 * d * (d // h), lambda d, h: 4 * (d // h)),
    ),
    (
        "inputs_of_one_head",
        "The projections of the inputs are counted for one head, the output projection for all.",
        _count(lambda d, h: 3 * d * (d // h) + d * d, lambda d, h: 3 * (d // h) + d),
    ),
    (
        "one_head_inputs_and_output",
        "Only one head is counted, and its part of the output projection. How many heads are there?",
        _count(lambda d, h: 4 * d * (d // h), lambda d, h: 3 * (d // h) + d),
    ),
    (
        "slices_projected",
        "Each head's projection is counted as d_head by d_head. It sees all d_model features of the input, and chooses "
        "d_head from them.",
        _count(lambda d, h: 3 * h * (d // h) ** 2 + d * d, lambda d, h: 4 * d),
    ),
    (
        "slices_projected_everywhere",
        "All projections are counted as d_head by d_head, once a head. A head sees all d_model features of the input, "
        "not just its slice.",
        _count(lambda d, h: 4 * h * (d // h) ** 2, lambda d, h: 4 * d),
    ),
    (
        "square_of_a_head",
        "The matrices are counted as d_head by d_head, for one head. The layers are `nn.Linear(d_model, d_model)`.",
        _count(lambda d, h: 4 * (d // h) ** 2, lambda d, h: 4 * (d // h)),
    ),
    (
        "one_bias_number_each",
        "A bias is counted as one number a layer. It is one number for each feature that comes out.",
        _count(biases=lambda d, h: 4),
    ),
    (
        "one_bias_for_all",
        "The matrices are counted four times, the bias once. Which of the four layers has one?",
        _count(biases=lambda d, h: d),
    ),
    (
        "three_biases",
        "Three biases are counted for four layers.",
        _count(biases=lambda d, h: 3 * d),
    ),
    (
        "biases_of_one_head",
        "The biases are counted for one head. They are as wide as the layer, whatever the heads do.",
        _count(biases=lambda d, h: 4 * (d // h)),
    ),
    (
        "input_biases_of_one_head",
        "The biases of the inputs are counted for one head. They are as wide as the layer, whatever the heads do.",
        _count(biases=lambda d, h: 3 * (d // h) + d),
    ),
    (
        "biases_times_heads",
        "The biases are counted once a head, at full width. All heads of a projection share one bias of d_model "
        "numbers.",
        _count(biases=lambda d, h: 4 * d * h),
    ),
    (
        "input_biases_times_heads",
        "The biases of the inputs are counted once a head, at full width. The heads share them as they share the "
        "matrix.",
        _count(biases=lambda d, h: 3 * d * h + d),
    ),
    (
        "bias_for_every_head",
        "The biases are counted as one number a head. It is one number for each feature that comes out.",
        _count(biases=lambda d, h: 4 * h),
    ),
    (
        "bias_squared",
        "The biases are counted as large as the matrices. A bias is a vector.",
        _count(biases=lambda d, h: 4 * d * d),
    ),
    (
        "width_not_squared",
        "A matrix from d_model to d_model features has d_model² entries.",
        _count(lambda d, h: 4 * d),
    ),
    (
        "float_result",
        "The number is right, its type is not: a count is an int. `/` and `**` with a fraction give floats, and for "
        "wide models those are not exact.",
        lambda d_model, num_heads, bias=True: 4.0 * d_model * d_model + (4 * d_model if bias else 0),
    ),
    (
        "through_floats",
        "The number went through a float, and wide models lost its last digits. `/`, `sqrt` and powers of floats are "
        "not exact; `//` and `*` of ints are.",
        lambda d_model, num_heads, bias=True: int(4.0 * d_model * d_model) + (4 * d_model if bias else 0),
    ),
    (
        "default_without_bias",
        "A call without `bias` counts no biases. In the contract the default is True.",
        lambda d_model, num_heads, bias=False: 4 * d_model * d_model + (4 * d_model if bias else 0),
    ),
    (
        "output_of_one_head",
        "The output projection is counted as if its input had the width of one head. It takes the features of all "
        "heads, side by side.",
        _count(lambda d, h: 3 * d * d + d // h * d),
    ),
    (
        "two_biases_a_layer",
        "Each layer is given two biases, or the four of them are counted twice.",
        _count(biases=lambda d, h: 8 * d),
    ),
):
    COUNT.misconception(_key, _says)(_wrong)

# Splitting, attending and merging are parts of the module; what is listed here already is not inherited again.
add_slips(ATTENTION, _variant, _Unchecked)
# Those left out end in errors of many causes here, which are explained as such, or are another mistake of the module.
ATTENTION.contains(
    SPLIT,
    lambda wrong: _variant(split=wrong),
    without=(
        "features_before_positions",
        "tuple_of_heads",
        "positions_cut",
        "divides_the_other_way_round",
        "raises_where_it_divides",
        "length_checked",
    ),
)
ATTENTION.contains(
    MERGE,
    lambda wrong: _variant(merge=wrong),
    without=(
        "features_and_positions_exchanged",
        "heads_averaged",
        "averaged_over_axis_1",
        "heads_summed",
        "heads_one_after_the_other",
        "positions_times_heads",
        "hstack",
    ),
)
NOT_HERE = {"features_compared", "values_first", "only_weights", "mask_in_the_indices"}
ATTENTION.contains(
    attention_exercise,
    lambda wrong: _variant(attend=wrong),
    called="attention",
    without=tuple(
        m.key for m in attention_exercise.misconceptions if m.within or "_and_" in m.key or m.key in NOT_HERE
    ),
)
