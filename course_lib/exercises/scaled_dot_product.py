"""Exercises of the chapter on scaled dot-product attention."""

from __future__ import annotations

import math

import torch

from course_lib.exercises import attention as _attention_chapter
from course_lib.exercises import masking as _masking_chapter
from course_lib.exercises._draw import Draw
from course_lib.exercises._exercise import Case, Exercise
from course_lib.exercises._scaled_dot_product_slips import add_attention_slips, attention_with
from course_lib.exercises._softmax_backward_slips import add_backward_slips, add_flops_slips
from course_lib.masking import masked_softmax

__all__ = ["ATTENTION", "FLOPS", "SOFTMAX_BACKWARD"]


def _attention(query, key, value, mask=None):
    scores = query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])  # (..., L_q, L_k)
    weights = torch.softmax(scores, dim=-1) if mask is None else masked_softmax(scores, mask)
    return weights @ value, weights  # (..., L_q, d_v)


def scaled_dot_product_attention(query, key, value, mask=None):
    scores = query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])  # (..., L_q, L_k)
    if mask is not None:
        scores = scores.masked_fill(~mask, float("-inf"))
    weights = scores.softmax(dim=-1)
    return weights @ value, weights  # (..., L_q, d_v)


ATTENTION = Exercise(
    name="scaled_dot_product_attention",
    title="Scaled dot-product attention",
    statement="""\
Write the function that the rest of the course stands on:
$\\operatorname{softmax}(QK^\\top/\\sqrt{d_k})\\,V$.

- `query` is `(..., L_q, d_k)`, `key` is `(..., L_k, d_k)`, `value` is `(..., L_k, d_v)`. The dots stand for any
  number of batch dimensions, none included.
- `mask` is None or a bool tensor that broadcasts against the scores `(..., L_q, L_k)`. True means *may attend*. Every
  query may attend to something.
- Return `(output, weights)`: `(..., L_q, d_v)` and `(..., L_q, L_k)`.

Large scores must not give `nan`.""",
    difficulty=2,
    minutes=15,
    stub='''\
def scaled_dot_product_attention(query, key, value, mask=None):
    """(output, weights) of softmax(Q K^T / sqrt(d_k)) V; mask: True = may attend."""
    raise NotImplementedError
''',
    hints=(
        "Four steps, one line each: scores, scale, softmax, average. Write the shape that you expect beside each line.",
        "Only the last two axes are matrices. `.T` turns all axes of a tensor round; `transpose(-2, -1)` swaps two.",
        "A masked key has to get weight zero *and* the other weights have to sum to one. So the mask belongs before "
        "the softmax: "
        "which score becomes a weight of exactly zero?",
        "`scores.masked_fill(condition, number)` gives a copy in which the entries where the condition is True have "
        "the number. "
        "The mask says True where attention is allowed, so the condition is its opposite.",
    ),
    reference=scaled_dot_product_attention,
    shapes={"query": "... len_q d_k", "key": "... len_k d_k", "value": "... len_k d_v", "mask": "#"},
    returns=("output", "weights"),
    look="scaled_dot_product: The mathematics, by hand",
    twins=(
        "scaled_dot_product_attention",
        "_scaled_dot_product_attention_math",
        "_scaled_dot_product_flash_attention_for_cpu",
        "_scaled_dot_product_flash_attention",
        "_scaled_dot_product_efficient_attention",
        "_scaled_dot_product_fused_attention_overrideable",
        "multi_head_attention_forward",
        "_native_multi_head_attention",
        "torch.nn.attention.flex_attention.flex_attention",
        "course_lib.fused_attention",
    ),
)


def _inputs(draw: Draw, batch=(), dtype=torch.float32, scale=1.0):
    len_q, len_k, d_k, d_v = draw.sizes(4, but=batch)
    return (
        draw.normal(*batch, len_q, d_k, dtype=dtype, scale=scale),
        draw.normal(*batch, len_k, d_k, dtype=dtype, scale=scale),
        draw.normal(*batch, len_k, d_v, dtype=dtype),
    )


@ATTENTION.holds(
    "The weights are the softmax of the scaled scores, over the keys; the output is their average of the values",
    weight=3,
)
def _(draw):
    yield Case(
        args=(
            torch.tensor([[2.0, 0, 1, -1]]),
            torch.tensor([[1.0, 2, -1, 0], [1, 0, 2, 0]]),
            torch.tensor([[4.0], [8]]),
        ),
        note="one query, two keys of four features, so that the root is 2",
        edge="the smallest case, to be read by eye",
    )
    for batch in draw.batches():
        yield Case(args=_inputs(draw, batch))
    square = draw.normal(3, 3), draw.normal(3, 3), draw.normal(3, 3)
    yield Case(args=square, note="L_q = L_k = d_k = d_v", edge="axes of one length: mistakes give numbers here")


@ATTENTION.holds("It works with any number of batch dimensions, none included, in float32 and float64")
def _(draw):
    for batch in draw.batches():
        for dtype in (torch.float64, torch.float32):
            yield Case(args=_inputs(draw, batch, dtype), note=f"batch dimensions: {len(batch)}")
    query, key, value = _inputs(draw, (2, 1, 3))
    yield Case(args=(query, key, value), note="batch dimensions: 3", edge="a batch dimension of length one")
    turned = tuple(x.mT.contiguous().mT for x in _inputs(draw, (3,)))
    yield Case(args=turned, note="tensors that are transposed in memory")


@ATTENTION.holds("A masked key gets weight zero and the others share all the weight; masks broadcast", weight=2)
def _(draw):
    query, key = torch.tensor([[2.0, 0, 1, -1]]), torch.tensor([[1.0, 2, -1, 0], [2, 1, 0, 2], [1, 0, 2, 0]])
    mask = torch.tensor([[True, False, True]])
    yield Case(
        args=(query, key, torch.tensor([[4.0], [2], [8]]), mask),
        note="one query, one of three keys is masked",
        edge="to be read by eye",
    )
    for batch in draw.batches():
        query, key, value = _inputs(draw, batch)
        mask = draw.mask(query.shape[-2], key.shape[-2])
        yield Case(args=(query, key, value, mask), note="a mask (L_q, L_k)")
    query, key, value = _inputs(draw, (3,))
    yield Case(args=(query, key, value, draw.mask(key.shape[-2])), note="a mask (L_k,)")
    mask = draw.mask(3, query.shape[-2], key.shape[-2])
    yield Case(args=(query, key, value, mask), note="a mask (B, L_q, L_k)")
    query, key, value = _inputs(draw, (8, 9), torch.float64)
    yield Case(args=(query, key, value, draw.mask(8, 1, 1, key.shape[-2])), note="a mask (B, 1, 1, L_k)")
    yield Case(args=(query, key, value, draw.mask(8, 9, query.shape[-2], key.shape[-2])), note="a mask of full size")
    mask = torch.ones(query.shape[-2], key.shape[-2], dtype=torch.bool)
    yield Case(args=(query, key, value, mask), note="a mask that allows everything")
    query, key, value = (x.expand(2, *x.shape).clone() for x in _inputs(draw, (2,)))
    yield Case(
        args=(query, key, value, draw.mask(2, query.shape[-2], key.shape[-2])),
        note="a mask (H, L_q, L_k) for scores (B, H, L_q, L_k)",
        edge="as many sequences as heads, so that only the rule of broadcasting says whose mask it is",
    )


@ATTENTION.holds("Large scores stay finite, and right")
def _(draw):
    for dtype in (torch.float32, torch.float64):
        query, key, value = _inputs(draw, dtype=dtype, scale=60.0)
        yield Case(args=(query, key, value), note="scores of some thousands", tolerance=50, gradients=False)
    mask = draw.mask(query.shape[-2], key.shape[-2])
    yield Case(args=(query, key, value, mask), note="scores of some thousands, masked", tolerance=50, gradients=False)
    # Keys that nearly point away from every query: allowed scores from -9990 down to -10000.
    direction = torch.nn.functional.normalize(query[0], dim=-1)
    length = (1e4 * len(direction) ** 0.5) ** 0.5
    query = direction * draw.uniform(len(query), 1, low=0.9996, high=1.0, dtype=torch.float64) * length
    key = -direction * draw.uniform(len(key), 1, low=0.9996, high=1.0, dtype=torch.float64) * length
    yield Case(
        args=(query, key, value, mask), note="all scores near -10000, masked", gradients=False, edge="parallel vectors"
    )


def _variant(scale=None, transform=None, fill=float("-inf"), dim=-1):
    """Attention with one step exchanged."""

    def attention(query, key, value, mask=None):
        scores = query @ key.transpose(-2, -1)
        scores = scores / (math.sqrt(query.shape[-1]) if scale is None else scale(query, key, value))
        if mask is not None:
            scores = scores.masked_fill(~mask, fill)
        weights = (transform or torch.softmax)(scores, dim)
        return weights @ value, weights

    return attention


ATTENTION.misconception(
    "no_scale",
    "The scores are used as they are. What keeps their spread the same when the vectors get longer?",
    look="scaled_dot_product: Why divide by the root of d",
)(_variant(scale=lambda q, k, v: 1.0))
ATTENTION.misconception(
    "scale_without_root",
    "The scores are divided by d_k. The spread of a dot product grows more slowly than that: like what, and why?",
    look="scaled_dot_product: Why divide by the root of d",
)(_variant(scale=lambda q, k, v: q.shape[-1]))
ATTENTION.misconception(
    "multiplied_by_root",
    "The scores are multiplied by the root, so they spread more with every feature instead of less.",
    look="scaled_dot_product: Why divide by the root of d",
)(_variant(scale=lambda q, k, v: q.shape[-1] ** -0.5))
ATTENTION.misconception(
    "scale_by_length",
    "The divisor grows with the number of keys. How many terms does one dot product sum up: one a key, or one a "
    "feature?",
    look="scaled_dot_product: Why divide by the root of d",
)(_variant(scale=lambda q, k, v: k.shape[-2] ** 0.5))
ATTENTION.misconception(
    "scale_by_value_width",
    "The divisor comes from the width of the values. Values take no part in the scores: whose features are multiplied "
    "there?",
)(_variant(scale=lambda q, k, v: v.shape[-1] ** 0.5))
ATTENTION.misconception(
    "softmax_over_queries",
    "Each column of the weights sums to one, each row should. Every query shares out one unit of attention: over "
    "which axis?",
)(_variant(dim=-2))
ATTENTION.misconception(
    "softmax_first_axis",
    "The softmax runs over the first axis. That is the right one for no number of batch dimensions; count axes from "
    "the right.",
)(_variant(dim=0))
ATTENTION.misconception(
    "softmax_dim_1",
    "The softmax runs over axis 1, counted from the left. That is the axis of the keys without a batch only; count "
    "from the right.",
)(_variant(dim=1))
ATTENTION.misconception(
    "mask_turned_round",
    "Attention goes exactly where the mask forbids it. True means *may attend*; look at the condition with which you "
    "fill.",
    look="notation: Conventions",
)(attention_with(hide=lambda scores, mask: scores.masked_fill(mask, float("-inf"))))
ATTENTION.misconception(
    "mask_ignored",
    "The weights do not depend on the mask.",
    look="scaled_dot_product: The code",
)(lambda query, key, value, mask=None: _attention(query, key, value))
ATTENTION.misconception(
    "mask_filled_with_zero",
    "Masked scores become 0, filled or multiplied. A score of 0 is not a small score: its weight is e⁰ over the sum. "
    "Which score gives weight zero?",
)(_variant(fill=0.0))
ATTENTION.misconception(
    "unstable_softmax",
    "Large scores overflow: e¹⁰⁰ is more than a float32 can hold. A constant taken from all scores of a row leaves "
    "the weights alone.",
    look="attention: The mathematics",
)(_variant(transform=lambda s, dim: s.exp() / s.exp().sum(dim, keepdim=True)))


@ATTENTION.misconception(
    "mask_after_softmax",
    "The mask is applied to the finished weights, so what is left in a row sums to less than one. At which step must "
    "a key be out?",
)
def _(query, key, value, mask=None):
    weights = (query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])).softmax(-1)
    if mask is not None:
        weights = weights * mask
    return weights @ value, weights


@ATTENTION.misconception(
    "mask_added",
    "The mask is added as it is: True adds 1 to a score. A bool mask chooses; it is not a number to add.",
)
def _(query, key, value, mask=None):
    scores = query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])
    if mask is not None:
        scores = scores + mask
    weights = scores.softmax(-1)
    return weights @ value, weights


@ATTENTION.misconception(
    "if_mask",
    "`if mask:` asks a whole tensor for one truth value, which it does not have. What you want to know is whether "
    "there is a mask.",
)
def _(query, key, value, mask=None):
    return _attention(query, key, value, mask if mask else None)


@ATTENTION.misconception(
    "transposes_all_axes",
    "The key is transposed for a tensor of two axes: `.T` turns all axes round, and `transpose(0, 1)` the first two. "
    "With "
    "a batch the matrix is in the last two axes.",
)
def _(query, key, value, mask=None):
    scores = query @ key.T / math.sqrt(query.shape[-1])
    if mask is not None:
        scores = scores.masked_fill(~mask, float("-inf"))
    weights = scores.softmax(-1)
    return weights @ value, weights


@ATTENTION.misconception(
    "transposes_axes_1_and_2",
    "`transpose(1, 2)` counts axes from the left and fits exactly one batch dimension. Counted from the right it fits "
    "any number.",
)
def _(query, key, value, mask=None):
    scores = query @ key.transpose(1, 2) / math.sqrt(query.shape[-1])
    if mask is not None:
        scores = scores.masked_fill(~mask, float("-inf"))
    weights = scores.softmax(-1)
    return weights @ value, weights


@ATTENTION.misconception(
    "outputs_swapped",
    "Weights and output come back in the wrong order: the contract says `(output, weights)`.",
)
def _(query, key, value, mask=None):
    return _attention(query, key, value, mask)[::-1]


@ATTENTION.misconception("only_output", "Only the output comes back. The contract asks for `(output, weights)`.")
def _(query, key, value, mask=None):
    return _attention(query, key, value, mask)[0]


@ATTENTION.misconception(
    "scores_returned",
    "The second result holds the scores before the softmax; it should hold the weights.",
)
def _(query, key, value, mask=None):
    output, _ = _attention(query, key, value, mask)
    scores = query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])
    return output, scores if mask is None else scores.masked_fill(~mask, float("-inf"))


def _implicit_softmax(scores, dim):
    return torch.softmax(scores, 0 if scores.dim() in (1, 3) else 1)


def _on_scores(change):
    """Attention with something done to the scaled and masked scores instead of a softmax."""
    return _variant(transform=lambda scores, dim: change(scores))


ATTENTION.misconception(
    "softmax_without_dim",
    "A softmax without `dim` chooses an axis by the number of axes, and for three it takes the first. Name the axis "
    "of the keys.",
)(_variant(transform=_implicit_softmax))
ATTENTION.misconception(
    "softmax_over_all",
    "One softmax runs over all queries and keys together. Each query shares out its own unit of attention.",
)(_on_scores(lambda scores: scores.flatten(-2).softmax(-1).view_as(scores)))
ATTENTION.misconception(
    "sigmoid", "A sigmoid looks at each score alone; the weights of a query have to compete and sum to one."
)(_on_scores(torch.sigmoid))
ATTENTION.misconception(
    "logarithm_of_the_weights", "These are logarithms of weights: they are negative, and their exponentials sum to one."
)(_on_scores(lambda scores: scores.log_softmax(-1)))
ATTENTION.misconception(
    "key_not_transposed",
    "Queries are multiplied with the keys as they stand. A score is one query times one key, so which axes are summed "
    "over?",
)(lambda query, key, value, mask=None: _without_transpose(query, key, value, mask))
ATTENTION.misconception(
    "hard_choice", "Only the best key gets a weight. Attention shares: the softmax is the soft form of this choice."
)(_on_scores(lambda scores: torch.zeros_like(scores).scatter(-1, scores.argmax(-1, keepdim=True), 1.0)))
ATTENTION.misconception(
    "divided_by_the_sum",
    "The scores are divided by their sum as they are. Scores can be negative, and cancel: what makes them positive "
    "first?",
)(_on_scores(lambda scores: scores / scores.sum(-1, keepdim=True)))
ATTENTION.misconception(
    "scale_after_softmax",
    "The division comes after the softmax, so the weights no longer sum to one. It is the scores whose spread it "
    "controls.",
    look="scaled_dot_product: Why divide by the root of d",
)(_variant(scale=lambda q, k, v: 1.0, transform=lambda s, dim: s.softmax(dim) / s.shape[-1] ** 0.5))
ATTENTION.misconception(
    "weights_divided_by_root",
    "The weights are divided by √d_k after the softmax, so they no longer sum to one. It is the scores that spread.",
    look="scaled_dot_product: Why divide by the root of d",
)(lambda query, key, value, mask=None: _scaled_late(query, key, value, mask))
ATTENTION.misconception(
    "scale_by_number_of_queries",
    "The divisor grows with the number of queries. How many terms does one dot product sum up?",
    look="scaled_dot_product: Why divide by the root of d",
)(_variant(scale=lambda q, k, v: q.shape[-2] ** 0.5))
ATTENTION.misconception(
    "scale_by_first_axis",
    "The divisor comes from the first axis of the query. The number of features is the last axis.",
)(_variant(scale=lambda q, k, v: q.shape[0] ** 0.5))
ATTENTION.misconception(
    "scale_by_axis_1",
    "The divisor comes from axis 1 of the query. The number of features is the last axis, with any number of batch "
    "axes.",
)(_variant(scale=lambda q, k, v: q.shape[1] ** 0.5))
ATTENTION.misconception(
    "cosine",
    "The vectors are normalised first, so this is the cosine between them. Attention takes the dot product, lengths "
    "included.",
)(
    lambda query, key, value, mask=None: _attention(
        torch.nn.functional.normalize(query, dim=-1) * query.shape[-1] ** 0.5,
        torch.nn.functional.normalize(key, dim=-1),
        value,
        mask,
    )
)
ATTENTION.misconception(
    "filled_with_minus_one",
    "Masked scores are set to a moderate negative number. It still leaves a weight; which score leaves none?",
)(_variant(fill=-1.0))
ATTENTION.misconception(
    "filled_with_large_number",
    "Masked scores are set to a large *positive* number, so they get all of the weight.",
)(_variant(fill=1e9))
ATTENTION.misconception(
    "opposite_added",
    "The mask works with the opposite sign: what is allowed becomes impossible, and what is masked gets the weight. "
    "True means *may attend*.",
)(lambda query, key, value, mask=None: _with_added(query, key, value, mask, -1e9))
ATTENTION.misconception(
    "keys_averaged",
    "The average is taken over the keys. Keys say how well something fits; what a query takes home are the values.",
)(
    lambda query, key, value, mask=None: (lambda weights: (weights @ key, weights))(
        _attention(query, key, value, mask)[1]
    )
)
ATTENTION.misconception(
    "raw_scores_average",
    "The values are averaged with the raw scores; the softmax is computed, and only returned.",
)(lambda query, key, value, mask=None: _raw(query, key, value, mask))
ATTENTION.misconception(
    "weights_from_values",
    "The scores compare queries with values. Values take no part in choosing: whose job is it?",
)(
    lambda query, key, value, mask=None: (lambda weights: (weights @ value, weights))(
        _attention(query, value, value, mask)[1]
    )
)
ATTENTION.misconception(
    "mask_in_bool_arithmetic",
    "`1 - mask` or `-mask` does not work with bool tensors: they are not numbers. The opposite of a bool mask is "
    "`~mask`.",
)(lambda query, key, value, mask=None: _attention(query, key, value, None if mask is None else (1 - mask).bool()))
ATTENTION.misconception(
    "query_scaled_in_place",
    "The query is divided in place, and it belongs to the caller. `x / y` makes a new tensor, `x /= y` changes the "
    "old one.",
)(lambda query, key, value, mask=None: _in_place(query, key, value, mask))


def _without_transpose(query, key, value, mask):
    scores = query @ key / query.shape[-1] ** 0.5
    if mask is not None:
        scores = scores.masked_fill(~mask, float("-inf"))
    weights = scores.softmax(-1)
    return weights @ value, weights


def _scaled_late(query, key, value, mask):
    _, weights = _variant(scale=lambda q, k, v: 1.0)(query, key, value, mask)
    weights = weights / query.shape[-1] ** 0.5
    return weights @ value, weights


def _with_added(query, key, value, mask, number):
    scores = query @ key.transpose(-2, -1) / query.shape[-1] ** 0.5
    weights = (scores if mask is None else scores + mask * number).softmax(-1)
    return weights @ value, weights


def _raw(query, key, value, mask):
    scores = query @ key.transpose(-2, -1) / query.shape[-1] ** 0.5
    scores = scores if mask is None else scores.masked_fill(~mask, 0.0)
    return scores @ value, _attention(query, key, value, mask)[1]


def _in_place(query, key, value, mask):
    query /= query.shape[-1] ** 0.5
    return _attention(query * query.shape[-1] ** 0.5, key, value, mask)


def softmax_backward(weights, grad_weights):
    mean = (weights * grad_weights).sum(-1, keepdim=True)  # (..., 1): the average gradient under the weights
    return weights * (grad_weights - mean)


SOFTMAX_BACKWARD = Exercise(
    name="softmax_backward",
    title="A gradient through the softmax, by hand",
    statement="""\
`weights` came out of a softmax over the last axis, `grad_weights` is the gradient of a loss with respect to them.
Both are `(..., L)`. Return the gradient with respect to the scores that went into the softmax, of the same shape.

Use the derivation of the chapter, not autograd. One sum and two products are enough; the matrix of all derivatives is
not needed.""",
    difficulty=3,
    minutes=15,
    stub='''\
def softmax_backward(weights, grad_weights):
    """Gradient with respect to the scores, from that with respect to the weights."""
    raise NotImplementedError
''',
    hints=(
        "A score moves its own weight up and all other weights down. So each entry of the result needs all of "
        "`grad_weights`.",
        "Write ∂w_i/∂s_j for i = j and for i ≠ j, and sum over i with the gradients that arrive.",
        "What all terms share is one number a row: the average of the arriving gradients under the weights.",
    ),
    reference=softmax_backward,
    shapes={"weights": "... length", "grad_weights": "... length"},
    returns=("gradient",),
    look="scaled_dot_product: What large scores do",
    one_sign=("weights",),
    constant=("weights",),
    twins=(
        "_softmax_backward_data",
        "torch.autograd.grad",
        "torch.autograd.backward",
        "torch.autograd.functional.vjp",
        "torch.autograd.functional.jacobian",
        "torch.func.grad",
        "torch.func.vjp",
        "torch.func.jvp",
        "torch.func.jacrev",
        "torch.func.jacfwd",
        "torch.func.grad_and_value",
    ),
)


def _weights(draw, *shape, dtype=torch.float32, scale=1.0):
    return torch.softmax(draw.normal(*shape, dtype=dtype, scale=scale), -1)


@SOFTMAX_BACKWARD.holds("It is the gradient that autograd finds, for one row of weights", weight=2)
def _(draw):
    yield Case(
        args=(torch.tensor([0.25, 0.75]), torch.tensor([2.0, -2.0])), note="two weights", edge="to be read by eye"
    )
    for length in draw.sizes(2, 3, 9):
        yield Case(args=(_weights(draw, length), draw.normal(length)))


@SOFTMAX_BACKWARD.holds("Each row is treated separately, with any number of batch dimensions", weight=2)
def _(draw):
    yield Case(
        args=(torch.tensor([[0.25, 0.75], [0.5, 0.5]]), torch.tensor([[2.0, -2], [4, 1]])),
        note="two rows",
        edge="to be read by eye",
    )
    for batch in draw.batches():
        for dtype in (torch.float32, torch.float64):
            rows, length = draw.sizes(2, but=batch)
            shape = (*batch, rows, length)
            yield Case(args=(_weights(draw, *shape, dtype=dtype), draw.normal(*shape, dtype=dtype)))
    shape = (2, 1, 3, 2, 4)
    yield Case(args=(_weights(draw, *shape), draw.normal(*shape)), note="three batch dimensions", edge="some are short")
    turned = _weights(draw, 2, 4, 3).mT, draw.normal(2, 4, 3).mT
    yield Case(args=(turned[0] / turned[0].sum(-1, keepdim=True), turned[1]), note="transposed in memory")


@SOFTMAX_BACKWARD.holds("Saturated weights send nothing back, beside rows that do")
def _(draw):
    rows, length = draw.sizes(2, 3, 7)
    scores = draw.normal(rows, length)
    scores[0] *= 60.0
    yield Case(args=(torch.softmax(scores, -1), draw.normal(rows, length)), note="one row of weights near 0 and 1")
    weights = _weights(draw, rows, length)
    weights[-1] = torch.nn.functional.one_hot(torch.tensor(1), length)
    yield Case(args=(weights, draw.normal(rows, length)), note="one row of weights exactly 0 and 1")


@SOFTMAX_BACKWARD.misconception(
    "independent_weights",
    "The weights are treated as if each depended on its own score only, like a sigmoid: w (1 − w). They share one "
    "sum, so every score "
    "moves every weight.",
)
def _(weights, grad_weights):
    return grad_weights * weights * (1 - weights)


@SOFTMAX_BACKWARD.misconception(
    "mean_forgotten",
    "The arriving gradient is multiplied by the weights, and that is all. If all arriving gradients are equal, what "
    "should the scores do?",
)
def _(weights, grad_weights):
    return weights * grad_weights


@SOFTMAX_BACKWARD.misconception(
    "plain_mean",
    "The plain mean of the arriving gradients is taken off. The average that counts is the one under the weights.",
)
def _(weights, grad_weights):
    return weights * (grad_weights - grad_weights.mean(-1, keepdim=True))


@SOFTMAX_BACKWARD.misconception(
    "sum_over_everything",
    "The sum runs over all rows together. Each row went through a softmax of its own.",
)
def _(weights, grad_weights):
    return weights * (grad_weights - (grad_weights * weights).sum())


@SOFTMAX_BACKWARD.misconception(
    "sum_over_first_axis",
    "The sum runs over the first axis. The softmax ran over the last one.",
)
def _(weights, grad_weights):
    return weights * (grad_weights - (grad_weights * weights).sum(0, keepdim=True))


@SOFTMAX_BACKWARD.misconception(
    "outer_weight_missing",
    "The average is taken off, but the result is not multiplied by the weights: how far a score can move its own "
    "weight depends on it.",
)
def _(weights, grad_weights):
    return grad_weights - (grad_weights * weights).sum(-1, keepdim=True)


@SOFTMAX_BACKWARD.misconception(
    "sign_turned",
    "Right but for the sign: a score must gain when its key is better than the average.",
)
def _(weights, grad_weights):
    return -softmax_backward(weights, grad_weights)


@SOFTMAX_BACKWARD.misconception(
    "sum_axis_dropped",
    "The sum over the row has lost its axis, so it lines up with the wrong axis of `grad_weights`.",
)
def _(weights, grad_weights):
    return weights * (grad_weights - (grad_weights * weights).sum(-1))


SOFTMAX_BACKWARD.misconception(
    "second_term_unweighted",
    "The average is taken off each score in full. How much of it a score gets depends on its own weight.",
)(lambda weights, grad_weights: weights * grad_weights - (weights * grad_weights).sum(-1, keepdim=True))
SOFTMAX_BACKWARD.misconception(
    "sum_without_weights",
    "The sum of the arriving gradients is taken off. What counts is their average under the weights.",
)(lambda weights, grad_weights: weights * (grad_weights - grad_weights.sum(-1, keepdim=True)))
SOFTMAX_BACKWARD.misconception(
    "plus_for_minus",
    "The second term has the wrong sign: raising one score lowers the other weights.",
)(lambda weights, grad_weights: weights * (grad_weights + (grad_weights * weights).sum(-1, keepdim=True)))
SOFTMAX_BACKWARD.misconception(
    "softmax_again",
    "The weights are sent through a softmax once more. They are its output already.",
)(lambda weights, grad_weights: softmax_backward(weights.softmax(-1), grad_weights))
SOFTMAX_BACKWARD.misconception(
    "sum_over_rows",
    "The sum runs over the rows, axis −2. The softmax ran over the last axis.",
)(lambda weights, grad_weights: weights * (grad_weights - (grad_weights * weights).sum(-2, keepdim=True)))
SOFTMAX_BACKWARD.misconception(
    "one_row_jacobian",
    "The matrix of derivatives is built for one row. With a batch there is one such matrix a row; the sum needs none "
    "of them.",
)(lambda weights, grad_weights: (torch.diag(weights) - torch.outer(weights, weights)) @ grad_weights)
SOFTMAX_BACKWARD.misconception(
    "exponent_forgotten",
    "The gradient arrives as it is. A softmax stands between weights and scores, so something has to change.",
)(lambda weights, grad_weights: grad_weights.clone())


def attention_flops(len_q, len_k, d_k, d_v):
    scores = 2 * len_q * len_k * d_k  # (len_q, d_k) times (d_k, len_k)
    output = 2 * len_q * len_k * d_v  # (len_q, len_k) times (len_k, d_v)
    return scores + output


FLOPS = Exercise(
    name="attention_flops",
    title="What attention costs",
    statement="""\
How many floating-point operations do the two matrix products of attention need, $QK^\\top$ and weights times $V$? A
multiplication and the addition after it count as 2. One head, one sequence; the softmax is not counted. Return an
int.""",
    difficulty=1,
    minutes=5,
    stub='''\
def attention_flops(len_q, len_k, d_k, d_v):
    """Operations of both matrix products, a multiply-add counted as 2."""
    raise NotImplementedError
''',
    hints=(
        "An (m, n) matrix times an (n, p) matrix has m · p entries. How many multiply-adds does one entry need?",
        "Write down the shapes of both products, one below the other. Which length is summed over in the first, which "
        "in the second?",
    ),
    reference=attention_flops,
    shapes={},
    returns=("operations",),
    look="scaled_dot_product: What it costs",
    differentiable=False,
)


@FLOPS.holds("Both products are counted, with the axes that each sums over", weight=2)
def _(draw):
    for _ in range(4):
        yield Case(args=tuple(draw.sizes(4, 2, 40)))


@FLOPS.holds("It is an exact int, for long sequences too")
def _(draw):
    yield Case(args=(100_000_007, 99_999_989, 127, 61), note="a hundred million positions")
    yield Case(args=(7, 1, 3, 5), note="one key", edge="a length of one on purpose")


FLOPS.misconception("multiplications_only", "Half of what is asked: a multiply-add counts as 2.")(
    lambda len_q, len_k, d_k, d_v: len_q * len_k * (d_k + d_v)
)
FLOPS.misconception("scores_only", "Only the product of queries and keys is counted. What happens to the values?")(
    lambda len_q, len_k, d_k, d_v: 2 * len_q * len_k * d_k
)
FLOPS.misconception(
    "values_only", "Only the product of weights and values is counted. Where do the weights come from?"
)(lambda len_q, len_k, d_k, d_v: 2 * len_q * len_k * d_v)
FLOPS.misconception(
    "d_k_twice",
    "The width of the queries is used in both products. How wide is a value?",
)(lambda len_q, len_k, d_k, d_v: 4 * len_q * len_k * d_k)
FLOPS.misconception(
    "square_of_queries",
    "The number of queries is squared. Queries and keys may differ in number.",
)(lambda len_q, len_k, d_k, d_v: 2 * len_q * len_q * (d_k + d_v))
FLOPS.misconception(
    "square_of_keys",
    "The number of keys is squared. Queries and keys may differ in number.",
)(lambda len_q, len_k, d_k, d_v: 2 * len_k * len_k * (d_k + d_v))
FLOPS.misconception(
    "float_result",
    "The number is right, its type is not: a count is an int. `/` gives a float, and for long sequences it is not "
    "exact.",
)(lambda len_q, len_k, d_k, d_v: 2 * len_q * len_k * (d_k + d_v) / 1)
FLOPS.misconception(
    "widths_multiplied",
    "The two widths are multiplied with each other. The products come one after the other, so their costs add up.",
)(lambda len_q, len_k, d_k, d_v: 2 * len_q * len_k * d_k * d_v)
FLOPS.misconception(
    "exact_additions",
    "n products have n − 1 additions between them, true; the convention here counts a multiply-add as 2, so 2n.",
)(lambda len_q, len_k, d_k, d_v: len_q * len_k * (2 * d_k - 1) + len_q * d_v * (2 * len_k - 1))
for key, extra in {
    "softmax_counted_once": 1,
    "softmax_counted": 3,
    "softmax_counted_with_scale": 4,
    "softmax_counted_5": 5,
}.items():
    FLOPS.misconception(
        key,
        f"{extra} operation{'s' * (extra > 1)} for each score too many: the softmax is not counted here, only the two "
        f"products.",
    )(lambda len_q, len_k, d_k, d_v, extra=extra: 2 * len_q * len_k * (d_k + d_v) + extra * len_q * len_k)
FLOPS.misconception("twice_too_many", "Twice too many: the 2 for a multiply-add is counted twice.")(
    lambda len_q, len_k, d_k, d_v: 4 * len_q * len_k * (d_k + d_v)
)
FLOPS.misconception("d_v_twice", "The width of the values is used in both products. How wide are query and key?")(
    lambda len_q, len_k, d_k, d_v: 4 * len_q * len_k * d_v
)
FLOPS.misconception(
    "output_over_queries",
    "The second product sums over the keys: one multiply-add for each query, key and feature of a value.",
)(lambda len_q, len_k, d_k, d_v: 2 * len_q * len_k * d_k + 2 * len_q * len_q * d_v)


def _masked_by(masked):
    """Attention whose mask is applied by a masked softmax."""

    def attention(query, key, value, mask=None):
        scores = query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])
        weights = scores.softmax(-1) if mask is None else masked(scores, mask)
        return weights @ value, weights

    return attention


add_attention_slips(ATTENTION)
add_backward_slips(SOFTMAX_BACKWARD)
add_flops_slips(FLOPS)
# The softmax of one's own, and one's own masking, are parts of attention.
ATTENTION.contains(
    _attention_chapter.SOFTMAX,
    lambda wrong: attention_with(softmax=lambda scores: wrong(scores, -1)),
    called="softmax",
    without=("max_gives_a_pair",),
)
ATTENTION.contains(
    _masking_chapter.SOFTMAX,
    lambda wrong: _masked_by(wrong),
    called="masked softmax",
    # These end in errors of many causes; here they are explained as such.
    without=(
        "row_axis_dropped",
        "float32_comes_back",
        "largest_with_its_place",
        "allowed_scores_cut_out",
        "allowed_scores_indexed",
    ),
)
