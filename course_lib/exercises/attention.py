"""Exercises of the chapter on attention as a weighted average."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F

from course_lib.exercises._draw import Draw
from course_lib.exercises._exercise import Case, Exercise

__all__ = ["ADDITIVE", "ATTEND", "KERNEL", "SOFTMAX"]

# Softmax


def softmax(scores, dim=-1):
    shifted = scores - scores.amax(dim, keepdim=True)  # the largest is 0 now, so that no exponential overflows
    exponentials = shifted.exp()
    return exponentials / exponentials.sum(dim, keepdim=True)


SOFTMAX = Exercise(
    name="softmax",
    title="Scores become weights",
    statement="""\
A query shares out one unit of attention among the keys. The softmax turns its scores, which may be any real numbers,
into positive weights that sum to one:

$$\\operatorname{softmax}(s)_j = \\frac{\\exp(s_j)}{\\sum_l \\exp(s_l)}.$$

- `scores` is a tensor of one or more axes, float32 or float64.
- `dim` is the axis that sums to one, counted from the left (0, 1, …) or from the right (−1, −2, …). It is the last
  one unless told otherwise. Along every other axis, each position is on its own.
- Return the weights, of the same shape and dtype.

Scores up to ±10,000 must give finite and right weights; in float32, $\\exp(89)$ is already infinite. `torch.softmax`
does all this; here you write your own.""",
    difficulty=2,
    minutes=10,
    stub='''\
def softmax(scores, dim=-1):
    """Positive weights that sum to one along `dim`; same shape as the scores."""
    raise NotImplementedError
''',
    hints=(
        "First write the formula as it stands: exponentials, and their sum along `dim`. Which shape does the sum have, "
        "and does it line up with the exponentials? `sum` has an option that keeps the axis.",
        "Then make it safe. Add the same number to all scores of a row, and work out on paper what happens to the "
        "fraction.",
        "The number may be different for each row, and you choose it. Choose it so that the largest exponent becomes "
        "0: then no exponential is above 1, and the sum is at least 1.",
        "`scores.max(dim)` gives two things, the largest values and where they are. `amax` gives the values alone, and "
        "has the same option as `sum`.",
    ),
    reference=softmax,
    shapes={"scores": "... length"},
    returns=("weights",),
    look="attention: The mathematics",
    twins=(
        "softmax",
        "special_softmax",
        "_softmax",
        "_safe_softmax",
        "softmin",
        "log_softmax",
        "_log_softmax",
        "gumbel_softmax",
        "scaled_dot_product_attention",
        "_sparse_softmax",
        "_sparse_log_softmax",
        "torch.masked.softmax",
        "torch.masked.log_softmax",
        "torch.masked.softmin",
        "scipy.softmax",
        "scipy.log_softmax",
    ),
)


def _shifted_rows(draw: Draw, length: int, dtype=torch.float32):
    """Three rows of common scores, raised by 1e4, lowered by 1e4, and as they are."""
    return draw.normal(3, length, dtype=dtype) + torch.tensor([[1e4], [-1e4], [0.0]], dtype=dtype)


@SOFTMAX.holds("Each weight is the score's exponential, divided by the sum along the last axis", weight=2)
def _(draw):
    yield Case(args=(torch.tensor([0.0, math.log(3.0)]),), edge="the smallest case, to be read by eye")
    for batch in draw.batches():
        (length,) = draw.sizes(1, but=batch)
        for dtype in (torch.float32, torch.float64):
            yield Case(args=(draw.normal(*batch, length, dtype=dtype, scale=2.0),), note=f"{len(batch) + 1} axes")


@SOFTMAX.holds("`dim` names the axis that sums to one, from either end", weight=2)
def _(draw):
    for axes, dim in ((2, 0), (3, 1), (3, 0), (3, -2), (4, 1), (4, -3), (2, 1), (1, 0), (3, -1)):
        dtype = torch.float64 if dim < 0 else torch.float32
        yield Case(args=(draw.normal(*draw.sizes(axes), dtype=dtype, scale=2.0), dim), note=f"{axes} axes, dim={dim}")
    x = draw.normal(2, 1, 3, 4, 2, scale=2.0)
    yield Case(args=(x, 2), note="5 axes, dim=2", edge="an axis of length one")
    yield Case(args=(draw.normal(3, 1), 1), note="an axis of one score, which gets all the weight", edge="length one")
    yield Case(args=(draw.normal(2, 5, 3).mT,), note="a tensor that is transposed in memory")


@SOFTMAX.holds("Scores up to ±10,000 give finite and right weights", weight=2)
def _(draw):
    note = "scores around ±1e4"
    for dtype in (torch.float32, torch.float64):
        (length,) = draw.sizes(1, but=(3,))
        yield Case(args=(_shifted_rows(draw, length, dtype),), note=note, tolerance=50)
    yield Case(args=(_shifted_rows(draw, length).T.contiguous(), 0), note=note, tolerance=50)
    rows, length = draw.sizes(2)
    spread = draw.uniform(rows, length, low=-1e4, high=1e4)
    spread[0, :2] = torch.tensor([-1e4, 1e4])
    yield Case(args=(spread,), note="scores between -1e4 and 1e4", tolerance=50)
    yield Case(args=(draw.normal(rows, length, scale=100.0),), note="scores of some hundreds", tolerance=50)
    yield Case(args=(torch.tensor([1000.0, 1001.0, 1003.0]),), edge="to be read by eye", note="scores near 1000")
    yield Case(args=(torch.tensor([-997.0, -1000.0, -999.0]),), edge="to be read by eye", note="scores near -1000")


def _largest(scores, dim):
    return scores.amax(dim, keepdim=True)


def _total(exponentials, dim):
    return exponentials.sum(dim, keepdim=True)


def _softmax(shift=_largest, power=torch.exp, total=_total):
    """Softmax with one step exchanged."""

    def softmax(scores, dim=-1):
        exponentials = power(scores - shift(scores, dim))
        return exponentials / total(exponentials, dim)

    return softmax


def _nothing(scores, dim):
    return 0.0


UNSTABLE = _softmax(shift=_nothing)

SOFTMAX.misconception(
    "unstable",
    "Right for small scores, but large ones overflow to inf, and far negative ones vanish, so that 0 is divided by 0. "
    "A constant added to all scores of a row cancels in the fraction: which one keeps the exponents in range?",
)(UNSTABLE)
SOFTMAX.misconception(
    "largest_of_all",
    "The largest score of the whole tensor is taken off every row. A row that lies far below it vanishes altogether. "
    "Each row may have its own constant.",
)(_softmax(shift=lambda s, dim: s.max()))
SOFTMAX.misconception(
    "largest_of_all_and_sum_of_all",
    "The whole tensor sums to one, as if it were one long row. Along `dim` every row has to sum to one by itself.",
)(_softmax(shift=lambda s, dim: s.max(), total=lambda e, dim: e.sum()))
SOFTMAX.misconception(
    "sum_of_all",
    "The exponentials are divided by the sum of all of them, so that the whole tensor sums to one. Along `dim` every "
    "row has to.",
)(_softmax(total=lambda e, dim: e.sum()))
SOFTMAX.misconception(
    "unstable_and_sum_of_all",
    "All exponentials of the tensor are added up; only those along `dim` belong together. (And large scores overflow.)",
)(_softmax(shift=_nothing, total=lambda e, dim: e.sum()))
SOFTMAX.misconception(
    "dim_ignored",
    "It always runs along the last axis, whatever `dim` says. What the argument is for: the axis that sums to one.",
)(lambda scores, dim=-1: softmax(scores, -1))
SOFTMAX.misconception(
    "dim_ignored_unstable",
    "`dim` is not used: the sum always runs along the last axis. (And large scores overflow.)",
)(lambda scores, dim=-1: UNSTABLE(scores, -1))
SOFTMAX.misconception(
    "first_axis",
    "It always runs along the first axis. The contract's axis is `dim`, and that is the last one unless told "
    "otherwise.",
)(lambda scores, dim=-1: softmax(scores, 0))
SOFTMAX.misconception(
    "first_axis_by_default",
    "When no axis is named, it runs along the first one. The default of `dim` should be the last axis, the axis of the "
    "keys.",
)(lambda scores, dim=0: softmax(scores, dim))
SOFTMAX.misconception(
    "axis_1",
    "It always runs along axis 1. That is the last axis of a matrix, and of nothing else; the axis to use is `dim`.",
)(lambda scores, dim=-1: softmax(scores, 1))
SOFTMAX.misconception(
    "axis_1_by_default",
    "When no axis is named, it runs along axis 1, counted from the left. A vector has no such axis; the last one has a "
    "number that is the same for all tensors.",
)(lambda scores, dim=1: softmax(scores, dim))
SOFTMAX.misconception(
    "torch_softmax_without_dim",
    "PyTorch's softmax without `dim` picks an axis by the number of axes: the first of three, the second of two or "
    "four. It is deprecated for that reason; here `dim` says which.",
)(lambda scores, dim=-1: F.softmax(scores))
SOFTMAX.misconception(
    "slice_by_slice",
    "A loop over the first axis makes each slice sum to one. A slice is a row in a matrix only; `dim` says which axis "
    "it "
    "is, whatever the number of axes, and no loop is needed.",
)(lambda scores, dim=-1: torch.stack([(s - s.max()).exp() / (s - s.max()).exp().sum() for s in scores]))
SOFTMAX.misconception(
    "axis_dropped",
    "The maximum or the sum along `dim` has lost that axis. Axes are lined up from the right, so what is left meets "
    "the wrong ones. There is an option that keeps the axis, with length 1.",
)(_softmax(total=lambda e, dim: e.sum(dim)))
SOFTMAX.misconception(
    "max_gives_a_pair",
    "`max` along an axis returns two things, the largest values and their positions. Only the values are wanted here.",
)(_softmax(shift=lambda s, dim: s.max(dim, keepdim=True)))
SOFTMAX.misconception(
    "sum_over_last_axis",
    "The largest score is sought along `dim`, but the sum runs along the last axis. Both belong to the same row.",
)(_softmax(total=lambda e, dim: e.sum(-1, keepdim=True)))
SOFTMAX.misconception(
    "shift_over_last_axis",
    "The sum runs along `dim`, but the largest score is sought along the last axis. What is taken off cancels only if "
    "it is the same for all scores that are summed together.",
)(_softmax(shift=lambda s, dim: s.amax(-1, keepdim=True)))
SOFTMAX.misconception(
    "divided_by_largest",
    "The scores are divided by the largest one. Only a constant that is added or taken off cancels in the fraction; a "
    "factor changes the weights.",
)(lambda scores, dim=-1: UNSTABLE(scores / _largest(scores, dim), dim))
SOFTMAX.misconception(
    "divided_by_largest_size",
    "The scores are divided by the largest absolute value. A factor on the scores changes how sharp the weights are; a "
    "constant taken off does not.",
)(lambda scores, dim=-1: UNSTABLE(scores / scores.abs().amax(dim, keepdim=True), dim))
SOFTMAX.misconception(
    "standardised",
    "The scores are brought to mean 0 and spread 1 first. Taking off the mean is harmless, but dividing by the spread "
    "changes the weights.",
)(lambda scores, dim=-1: softmax(scores / scores.std(dim, keepdim=True), dim))
SOFTMAX.misconception(
    "smallest_taken_off",
    "The smallest score is taken off. It cancels too, but leaves large positive exponents: which constant leaves none "
    "above 0?",
)(_softmax(shift=lambda s, dim: s.amin(dim, keepdim=True)))
SOFTMAX.misconception(
    "mean_taken_off",
    "The mean score is taken off. It cancels too, but where scores differ by thousands the largest still overflows: "
    "which constant leaves no exponent above 0?",
)(_softmax(shift=lambda s, dim: s.mean(dim, keepdim=True)))
SOFTMAX.misconception(
    "largest_size_taken_off",
    "The largest *absolute* value is taken off. Where all scores are far below zero, every exponent is then further "
    "down still, and the sum is 0.",
)(_softmax(shift=lambda s, dim: s.abs().amax(dim, keepdim=True)))
SOFTMAX.misconception(
    "largest_added",
    "The largest score is added. It cancels in the fraction, but makes large exponents larger still.",
)(_softmax(shift=lambda s, dim: -_largest(s, dim)))
SOFTMAX.misconception(
    "clamped",
    "Large scores are cut off at a bound. That is finite, but not right: scores beyond the bound become equal, though "
    "their difference decides the weights.",
)(lambda scores, dim=-1: UNSTABLE(scores.clamp(-50.0, 50.0), dim))
SOFTMAX.misconception(
    "clamped_at_the_edge",
    "Large scores are cut off where a single exponential still fits. The sum of several does not fit, and scores "
    "beyond "
    "the bound become equal, though their difference decides the weights.",
)(lambda scores, dim=-1: UNSTABLE(scores.clamp(-88.0, 88.0), dim))
SOFTMAX.misconception(
    "clamped_above",
    "Scores above a bound are cut off, so that their differences are lost, and far negative ones still vanish. A "
    "constant taken from the whole row loses nothing.",
)(lambda scores, dim=-1: UNSTABLE(scores.clamp(max=80.0), dim))
SOFTMAX.misconception(
    "small_number_in_the_sum",
    "A small number added to the sum hides the division of 0 by 0, but then the row sums to 0 and not to 1; and large "
    "scores overflow all the same. Keep the exponents in range instead.",
)(_softmax(shift=_nothing, total=lambda e, dim: e.sum(dim, keepdim=True) + 1e-12))
SOFTMAX.misconception(
    "small_number_in_a_safe_sum",
    "A small number is added to the sum. After the largest score was taken off, the sum is at least 1 and needs no "
    "protection; the weights no longer sum to one, which shows in float64.",
)(_softmax(total=lambda e, dim: e.sum(dim, keepdim=True) + 1e-8))
SOFTMAX.misconception(
    "larger_number_in_a_safe_sum",
    "A number such as 1e-6 is added to the sum, which is at least 1 already and needs no protection. The weights no "
    "longer sum to one, which shows in float64.",
)(_softmax(total=lambda e, dim: e.sum(dim, keepdim=True) + 1e-6))
SOFTMAX.misconception(
    "one_in_the_sum",
    "The sum has a 1 that the formula does not have, so the weights sum to less than one.",
)(_softmax(shift=_nothing, total=lambda e, dim: e.sum(dim, keepdim=True) + 1.0))
SOFTMAX.misconception(
    "one_in_a_safe_sum",
    "The sum has a 1 too many: the largest exponential is counted in it already.",
)(_softmax(total=lambda e, dim: e.sum(dim, keepdim=True) + 1.0))
SOFTMAX.misconception(
    "shift_above_only",
    "The constant is taken off above the fraction's line, but not below. It cancels only if it stands in both.",
)(lambda scores, dim=-1: (scores - _largest(scores, dim)).exp() / scores.exp().sum(dim, keepdim=True))
SOFTMAX.misconception(
    "shift_below_only",
    "The constant is taken off below the fraction's line, but not above. It cancels only if it stands in both.",
)(lambda scores, dim=-1: scores.exp() / (scores - _largest(scores, dim)).exp().sum(dim, keepdim=True))
SOFTMAX.misconception(
    "sum_without_own",
    "Each exponential is divided by the sum of the *others*. That gives odds; for weights the score's own exponential "
    "belongs to the sum.",
)(_softmax(total=lambda e, dim: e.sum(dim, keepdim=True) - e))
SOFTMAX.misconception(
    "axis_put_back_last",
    "The axis that the sum has lost is put back at the end. That is its place for the last axis only; for other values "
    "of `dim` it belongs where it was.",
)(_softmax(total=lambda e, dim: e.sum(dim).unsqueeze(-1)))
SOFTMAX.misconception(
    "moved_and_left",
    "The axis `dim` is brought to the end, and stays there. The result needs the axes in their old order.",
)(lambda scores, dim=-1: softmax(scores.transpose(dim, -1), -1))
SOFTMAX.misconception(
    "nan_replaced",
    "Where the exponentials overflow, `nan` is replaced afterwards. The numbers that follow are made up; keep the "
    "exponents in range, and no `nan` appears.",
)(lambda scores, dim=-1: UNSTABLE(scores, dim).nan_to_num())
SOFTMAX.misconception(
    "not_normalised",
    "These are the exponentials. To become weights they have to sum to one.",
)(_softmax(total=lambda e, dim: 1.0))
SOFTMAX.misconception(
    "plain_exponentials",
    "The exponentials come back as they are, not divided by their sum. (And large scores overflow.)",
)(lambda scores, dim=-1: scores.exp())
SOFTMAX.misconception(
    "no_exponential",
    "The scores themselves are divided by their sum. Scores may be negative, and the sum may be 0; what makes every "
    "score positive, and keeps their order?",
)(lambda scores, dim=-1: scores / scores.sum(dim, keepdim=True))
SOFTMAX.misconception(
    "shifted_without_exponential",
    "The largest score is taken off, and the differences are divided by their sum. The exponential is missing, so the "
    "best score gets weight 0.",
)(_softmax(power=lambda x: x))
SOFTMAX.misconception(
    "sizes",
    "The absolute scores are divided by their sum. A strongly negative score then gets much attention; it should get "
    "next to none.",
)(lambda scores, dim=-1: scores.abs() / scores.abs().sum(dim, keepdim=True))
SOFTMAX.misconception(
    "min_max",
    "The scores are stretched to the range from 0 to 1. That depends on the smallest and the largest score only; the "
    "weights should be ratios of exponentials, and sum to one.",
)(
    lambda scores, dim=-1: (
        (scores - scores.amin(dim, keepdim=True)) / (_largest(scores, dim) - scores.amin(dim, keepdim=True))
    )
)
SOFTMAX.misconception(
    "sigmoid",
    "Each score goes through a sigmoid of its own. Such numbers lie between 0 and 1 too, but do not sum to one: keys "
    "compete for one unit of attention.",
)(lambda scores, dim=-1: torch.sigmoid(scores))
SOFTMAX.misconception(
    "base_2",
    "The powers are of 2, not of e. A score larger by 1 should make its weight larger by the factor 2.718…",
)(_softmax(power=torch.exp2))
SOFTMAX.misconception(
    "base_10",
    "The powers are of 10, not of e. A score larger by 1 should make its weight larger by the factor 2.718…",
)(_softmax(power=lambda x: 10.0**x))
SOFTMAX.misconception(
    "logarithms",
    "These are the logarithms of the weights. One more step, and they are positive and sum to one.",
)(lambda scores, dim=-1: torch.log_softmax(scores, dim))
SOFTMAX.misconception(
    "signs_turned",
    "The smallest score gets the largest weight. Look at the sign in the exponent, or at what is taken from what.",
)(lambda scores, dim=-1: softmax(-scores, dim))
SOFTMAX.misconception(
    "signs_turned_unstable",
    "The differences are largest score minus score, so they count the wrong way round, and their exponentials "
    "overflow.",
)(_softmax(power=lambda x: (-x).exp()))
SOFTMAX.misconception(
    "hard",
    "The best score gets everything. That is the limit of very sharp attention; a softmax leaves something to every "
    "key, and lets gradients through.",
)(lambda scores, dim=-1: (scores == _largest(scores, dim)).to(scores.dtype))
SOFTMAX.misconception(
    "scaled_by_root",
    "The scores are divided by the root of their number first. That root belongs to dot products and is not part of "
    "the softmax.",
)(lambda scores, dim=-1: softmax(scores / scores.shape[dim] ** 0.5, dim))
SOFTMAX.misconception(
    "twice",
    "The softmax is applied twice. Weights are not scores: the second time evens them out.",
)(lambda scores, dim=-1: softmax(softmax(scores, dim), dim))
SOFTMAX.misconception(
    "mean_for_sum",
    "The exponentials are divided by their mean. The weights then sum to their number instead of to one.",
)(_softmax(total=lambda e, dim: e.mean(dim, keepdim=True)))
SOFTMAX.misconception(
    "root_of_squares",
    "The exponentials are divided by their length as a vector, so that the *squares* sum to one. It is the weights "
    "that "
    "should.",
)(_softmax(total=lambda e, dim: e.norm(dim=dim, keepdim=True)))
SOFTMAX.misconception(
    "float32_inside",
    "Somewhere inside the scores become float32, and float64 input loses half of its digits.",
)(lambda scores, dim=-1: softmax(scores.float(), dim).to(scores.dtype))


@SOFTMAX.misconception(
    "caller_changed",
    "The weights are right, but the caller's scores are changed: `-=`, or a method whose name ends in `_`, works in "
    "place.",
)
def _(scores, dim=-1):
    scores -= scores.amax(dim, keepdim=True)
    return scores.exp() / scores.exp().sum(dim, keepdim=True)


@SOFTMAX.misconception(
    "caller_changed_unstable",
    "The exponentials are written over the caller's scores: a method whose name ends in `_` works in place. (And large "
    "scores overflow.)",
)
def _(scores, dim=-1):
    scores.exp_()
    return scores / scores.sum(dim, keepdim=True)


@SOFTMAX.misconception(
    "sum_detached",
    "The weights are right, but the sum is cut off from the gradient. A score moves the other weights through the sum, "
    "so it has to stay in the graph.",
)
def _(scores, dim=-1):
    exponentials = (scores - scores.amax(dim, keepdim=True).detach()).exp()
    return exponentials / exponentials.sum(dim, keepdim=True).detach()


# Additive score


def additive_score(query, key, w_query, w_key, v):
    hidden_query = (query @ w_query.T).unsqueeze(-2)  # (..., L_q, 1, d_attn)
    hidden_key = (key @ w_key.T).unsqueeze(-3)  # (..., 1, L_k, d_attn)
    return torch.tanh(hidden_query + hidden_key) @ v  # (..., L_q, L_k)


ADDITIVE = Exercise(
    name="additive_score",
    title="The additive score",
    statement="""\
The first attention scored a query against a key with a small network of one hidden layer. Queries and keys may differ
in width: each has a matrix of its own that brings it to the width of the hidden layer, $d_\\text{attn}$. Score every
query against every key:

$$s_{ij} = v \\cdot \\tanh(W_q\\, q_i + W_k\\, k_j).$$

- `query` is `(..., L_q, d_q)`, `key` is `(..., L_k, d_k)`. The dots stand for any number of batch dimensions, none
  included; they are the same for both.
- `w_query` is `(d_attn, d_q)`, `w_key` is `(d_attn, d_k)`, `v` is `(d_attn,)`: one set of weights for the whole
  batch.
- Return the scores $s_{ij}$, `(..., L_q, L_k)`, before any softmax.

No loops are needed. All arguments have the same dtype, float32 or float64, and so has the result. Where the tanh
saturates, the scores stay finite.""",
    difficulty=3,
    minutes=15,
    stub='''\
def additive_score(query, key, w_query, w_key, v):
    """Scores (..., L_q, L_k): entry ij is v . tanh(w_query q_i + w_key k_j)."""
    raise NotImplementedError
''',
    hints=(
        "Begin with one query and one key: which shapes have the two vectors that are added, and what does the product "
        "with `v` leave of them?",
        "Vectors are rows in code. So a matrix that stands left of a vector in the formula stands right of it in code, "
        "and turned round.",
        "Every query meets every key: the sum needs an axis for queries *and* one for keys, before the features. Give "
        "the projected queries an axis of length 1 where the keys go, and the projected keys one where the queries go.",
        "Add the two, `(..., L_q, 1, d_attn)` and `(..., 1, L_k, d_attn)`; broadcasting makes all pairs. Count the new "
        "axes from the right, so that batch dimensions do not disturb. The last step is a product with a vector.",
    ),
    reference=additive_score,
    shapes={
        "query": "... len_q d_q",
        "key": "... len_k d_k",
        "w_query": "d_attn d_q",
        "w_key": "d_attn d_k",
        "v": "d_attn",
    },
    returns=("scores",),
    look="attention: Three ways to score",
)


def _additive_inputs(draw: Draw, batch=(), dtype=torch.float32, scale=1.0, sizes=None):
    len_q, len_k, d_q, d_k, d_attn = sizes or draw.sizes(5, 2, 9, but=batch)
    return (
        draw.normal(*batch, len_q, d_q, dtype=dtype, scale=scale),
        draw.normal(*batch, len_k, d_k, dtype=dtype, scale=scale),
        draw.normal(d_attn, d_q, dtype=dtype, scale=d_q**-0.5),
        draw.normal(d_attn, d_k, dtype=dtype, scale=d_k**-0.5),
        draw.normal(d_attn, dtype=dtype),
    )


@ADDITIVE.holds("Entry ij is v · tanh(W_query q_i + W_key k_j)", weight=3)
def _(draw):
    query, key = torch.tensor([[1.0]]), torch.tensor([[-1.0], [2.0]])
    weights = torch.tensor([[1.0]]), torch.tensor([[0.5]]), torch.tensor([2.0])
    yield Case(args=(query, key, *weights), edge="the smallest case, to be read by eye")
    for _ in range(3):
        yield Case(args=_additive_inputs(draw))
    yield Case(args=_additive_inputs(draw, dtype=torch.float64))


@ADDITIVE.holds("It works with zero, one or two batch dimensions, in float32 and float64")
def _(draw):
    for batch in draw.batches():
        for dtype in (torch.float64, torch.float32):
            yield Case(args=_additive_inputs(draw, batch, dtype), note=f"batch dimensions: {len(batch)}")
    deep = _additive_inputs(draw, (2, 1, 3), sizes=(4, 2, 3, 5, 6))
    yield Case(args=deep, note="batch dimensions: 3", edge="short axes")
    turned = tuple(x.mT.contiguous().mT for x in _additive_inputs(draw, (3,))[:4])
    yield Case(args=(*turned, draw.normal(turned[2].shape[0])), note="tensors that are transposed in memory")


@ADDITIVE.holds("Queries and keys may be equal in width and number, and are still told apart")
def _(draw):
    len_q, len_k, width, d_attn = draw.sizes(4)
    wide = _additive_inputs(draw, sizes=(len_q, len_k, width, width, d_attn))
    yield Case(args=wide, edge="equal widths", note="d_q = d_k")
    same = _additive_inputs(draw, sizes=(len_q, len_k, width, width, width))
    yield Case(args=same, edge="equal widths", note="d_q = d_k = d_attn")
    d_q, d_k = draw.sizes(2, but=(len_q, d_attn))
    many = _additive_inputs(draw, (), torch.float64, sizes=(len_q, len_q, d_q, d_k, d_attn))
    yield Case(args=many, edge="equal lengths", note="L_q = L_k")
    alike = _additive_inputs(draw, (width,), sizes=(width,) * 5)
    yield Case(args=alike, edge="equal lengths and widths", note="all axes of one length")


@ADDITIVE.holds("Where the hidden layer saturates, the scores stay finite")
def _(draw):
    query, key, one = torch.tensor([[1000.0], [-1000.0]]), torch.tensor([[2.0]]), torch.tensor([[1.0]])
    small = query, key, one, one.clone(), torch.tensor([3.0])
    yield Case(args=small, edge="to be read by eye", note="hidden values near 1000", gradients=False)
    for dtype in (torch.float32, torch.float64):
        inputs = _additive_inputs(draw, dtype=dtype, scale=2000.0)
        yield Case(args=inputs, note="hidden values of some thousands", tolerance=50, gradients=False)


def _additive(activation=torch.tanh, join=torch.add, reduce=torch.matmul, after=lambda scores: scores):
    """The additive score with one step exchanged."""

    def additive_score(query, key, w_query, w_key, v):
        hidden_query = (query @ w_query.T).unsqueeze(-2)
        hidden_key = (key @ w_key.T).unsqueeze(-3)
        return after(reduce(activation(join(hidden_query, hidden_key)), v))

    return additive_score


def _unpaired(place):
    """The additive score with new axes put in by `place(hidden_query, hidden_key)`."""

    def additive_score(query, key, w_query, w_key, v):
        hidden_query, hidden_key = place(query @ w_query.T, key @ w_key.T)
        return torch.tanh(hidden_query + hidden_key) @ v

    return additive_score


def _repeated(repeat_query, repeat_key):
    """The additive score over a long list of pairs, without batch dimensions."""

    def additive_score(query, key, w_query, w_key, v):
        len_q, len_k = query.shape[0], key.shape[0]
        hidden = repeat_query(query @ w_query.T, len_k) + repeat_key(key @ w_key.T, len_q)
        return (torch.tanh(hidden) @ v).view(len_q, len_k)

    return additive_score


def _swap(x):
    return x.transpose(-2, -1)


ADDITIVE.misconception(
    "no_tanh",
    "The hidden layer has no nonlinearity. Without one the score is a sum of something from the query and something "
    "from the key, and in the softmax the query's share cancels.",
)(_additive(activation=lambda h: h))
ADDITIVE.misconception(
    "tanh_at_the_end",
    "The tanh is applied to the finished score. It belongs to the hidden layer, before the product with v.",
)(_additive(activation=lambda h: h, after=torch.tanh))
ADDITIVE.misconception(
    "tanh_of_each",
    "Queries and keys go through the tanh apart from each other and are added then. Added *inside* the tanh, they can "
    "act on each other.",
)(
    lambda query, key, w_query, w_key, v: (
        (torch.tanh(query @ w_query.T).unsqueeze(-2) + torch.tanh(key @ w_key.T).unsqueeze(-3)) @ v
    )
)
ADDITIVE.misconception(
    "tanh_twice",
    "There is one tanh too many: the formula has one, between the sum and the product with v.",
)(_additive(after=torch.tanh))
ADDITIVE.misconception(
    "sigmoid_for_tanh",
    "The hidden layer uses a sigmoid. It lies between 0 and 1, the tanh of the formula between −1 and 1.",
)(_additive(activation=torch.sigmoid))
ADDITIVE.misconception(
    "relu_for_tanh",
    "The hidden layer uses a ReLU. The formula has a tanh, which bounds every hidden number.",
)(_additive(activation=torch.relu))
ADDITIVE.misconception(
    "tan_for_tanh",
    "That is the tangent of an angle. The formula has the hyperbolic tangent, which runs from −1 to 1 without a pole.",
)(_additive(activation=torch.tan))
ADDITIVE.misconception(
    "tanh_by_exponentials",
    "The tanh is written with exponentials that overflow for large hidden values. PyTorch has one that does not.",
)(_additive(activation=lambda h: (h.exp() - (-h).exp()) / (h.exp() + (-h).exp())))
ADDITIVE.misconception(
    "tanh_by_one_exponential",
    "The tanh is written as a fraction with an exponential above and below; for large hidden values that is inf over "
    "inf. PyTorch has a tanh that stays in range.",
)(_additive(activation=lambda h: ((2 * h).exp() - 1) / ((2 * h).exp() + 1)))
ADDITIVE.misconception(
    "v_forgotten",
    "The hidden numbers are simply added up. `v` says how much each of them counts.",
)(_additive(reduce=lambda h, v: h.sum(-1)))
ADDITIVE.misconception(
    "mean_for_v",
    "The hidden numbers are averaged. `v` says how much each of them counts.",
)(_additive(reduce=lambda h, v: h.mean(-1)))
ADDITIVE.misconception(
    "v_averaged",
    "The products with `v` are averaged over the hidden layer. A dot product is their sum.",
)(_additive(reduce=lambda h, v: (h * v).mean(-1)))
ADDITIVE.misconception(
    "v_inside",
    "`v` is multiplied in before the tanh. In the formula it weighs what comes out of the tanh.",
)(
    lambda query, key, w_query, w_key, v: torch.tanh(
        ((query @ w_query.T).unsqueeze(-2) + (key @ w_key.T).unsqueeze(-3)) * v
    ).sum(-1)
)
ADDITIVE.misconception(
    "not_summed",
    "Each hidden number is multiplied with its entry of `v`, and there it ends: a score is one number a pair, so the "
    "last axis has to be summed away.",
)(_additive(reduce=torch.mul))
ADDITIVE.misconception(
    "v_from_the_left",
    "`v` stands left of the hidden layer in the product, and so meets the wrong axis. In code a vector on the right of "
    "`@` meets the last axis.",
)(_additive(reduce=lambda h, v: v @ h))
ADDITIVE.misconception(
    "matrix_from_the_left",
    "The matrices stand left of the rows, as in the formula, which is written for columns. For vectors that are rows "
    "the "
    "matrix comes second, and turned round.",
)(lambda query, key, w_query, w_key, v: torch.tanh((w_query @ query).unsqueeze(-2) + (w_key @ key).unsqueeze(-3)) @ v)
ADDITIVE.misconception(
    "features_not_last",
    "The hidden layer has its features before the queries and keys, and the product with `v` sums over the last axis, "
    "which is that of the keys. Keep the features last.",
)(
    lambda query, key, w_query, w_key, v: (
        torch.tanh((w_query @ _swap(query)).unsqueeze(-1) + (w_key @ _swap(key)).unsqueeze(-2)) @ v
    )
)
ADDITIVE.misconception(
    "summed_over_keys",
    "The product with `v` is summed over the keys instead of the features of the hidden layer.",
)(_additive(reduce=lambda h, v: (h * v).sum(-2)))
ADDITIVE.misconception(
    "signs_turned",
    "Right but for the sign.",
)(_additive(after=lambda s: -s))
ADDITIVE.misconception(
    "concatenated",
    "Queries and keys are joined end to end, which takes as many of the one as of the other and makes no pairs. Every "
    "query has to meet every key.",
)(lambda query, key, w_query, w_key, v: torch.tanh(torch.cat([query, key], -1) @ torch.cat([w_query, w_key], -1).T) @ v)
ADDITIVE.misconception(
    "axis_of_one_left",
    "The numbers are right, but a last axis of length 1 is left over. A score is one number a pair.",
)(_additive(reduce=lambda h, v: h @ v.unsqueeze(-1)))
ADDITIVE.misconception(
    "hidden_layer_returned",
    "The hidden layer comes back. The product with `v`, which makes one number of it, is missing.",
)(_additive(reduce=lambda h, v: h))
ADDITIVE.misconception(
    "squeezed",
    "`squeeze()` without an axis takes away *every* axis of length 1: that of a single query, too.",
)(_additive(reduce=lambda h, v: (h @ v.unsqueeze(-1)).squeeze()))
ADDITIVE.misconception(
    "keys_by_queries",
    "Rows belong to keys here, columns to queries. It should be the other way round: a row holds the scores of one "
    "query.",
)(_unpaired(lambda q, k: (q.unsqueeze(-3), k.unsqueeze(-2))))
ADDITIVE.misconception(
    "pairs_missing",
    "The i-th query is added to the i-th key. Every query has to meet every key, so both need an axis that the other "
    "one fills.",
)(_unpaired(lambda q, k: (q, k)))
ADDITIVE.misconception(
    "pairs_missing_as_a_row",
    "It works for a single query, as in a decoder that makes one step at a time. With several queries each of them "
    "has to "
    "meet every key, so both need an axis that the other one fills.",
)(lambda query, key, w_query, w_key, v: (torch.tanh(query @ w_query.T + key @ w_key.T) @ v).unsqueeze(-2))
ADDITIVE.misconception(
    "pairs_mixed",
    "Queries and keys are both repeated in the same order, so that the rows do not run through all pairs. One of the "
    "two "
    "has to change slowly while the other runs through.",
)(_repeated(lambda q, len_k: q.repeat(len_k, 1), lambda k, len_q: k.repeat(len_q, 1)))
ADDITIVE.misconception(
    "pairs_in_the_keys_order",
    "All pairs are there, but in the wrong order: the table is filled row by row, and a row belongs to a query.",
)(_repeated(lambda q, len_k: q.repeat(len_k, 1), lambda k, len_q: k.repeat_interleave(len_q, 0)))
ADDITIVE.misconception(
    "reshaped_keys_by_queries",
    "A table of keys by queries is brought into shape with `view` or `reshape`, which only counts the numbers off "
    "anew. "
    "To exchange two axes is something else.",
)(
    lambda query, key, w_query, w_key, v: _swap(additive_score(query, key, w_query, w_key, v)).reshape(
        *query.shape[:-1], key.shape[-2]
    )
)
ADDITIVE.misconception(
    "new_axes_from_the_left",
    "The new axes are counted from the left, which fits no batch dimensions only. Counted from the right they are at "
    "home everywhere.",
)(_unpaired(lambda q, k: (q.unsqueeze(1), k.unsqueeze(0))))
ADDITIVE.misconception(
    "new_axes_after_one_batch_dimension",
    "The new axes are counted from the left, which fits exactly one batch dimension. Counted from the right they fit "
    "any number.",
)(_unpaired(lambda q, k: (q.unsqueeze(2), k.unsqueeze(1))))
ADDITIVE.misconception(
    "multiplied",
    "The projected query and key are multiplied. In the additive score they are added; hence the name.",
)(_additive(join=torch.mul))
ADDITIVE.misconception(
    "subtracted",
    "The projected key is taken from the projected query. The formula has a sum.",
)(_additive(join=torch.sub))
ADDITIVE.misconception(
    "dot_product",
    "The projected queries and keys are multiplied as in the dot-product score. The additive score sends their sum "
    "through a hidden layer.",
)(lambda query, key, w_query, w_key, v: (query @ w_query.T) @ (key @ w_key.T).transpose(-2, -1))
ADDITIVE.misconception(
    "dot_product_weighted",
    "That is a dot product of the projections with `v` as factors. The additive score adds them, and has a tanh.",
)(lambda query, key, w_query, w_key, v: (query @ w_query.T * v) @ (key @ w_key.T).transpose(-2, -1))
ADDITIVE.misconception(
    "queries_forgotten",
    "The score does not depend on the query, so every query would attend to the same keys.",
)(_additive(join=lambda q, k: 0 * q + k))
ADDITIVE.misconception(
    "keys_forgotten",
    "The score does not depend on the key, so all keys would get the same weight.",
)(_additive(join=lambda q, k: q + 0 * k))
ADDITIVE.misconception(
    "softmaxed",
    "These are weights: a softmax over the keys has been applied. The exercise asks for the scores that go into it.",
)(_additive(after=lambda s: s.softmax(-1)))
ADDITIVE.misconception(
    "softmaxed_over_queries",
    "A softmax has been applied, and over the queries. The exercise asks for the scores before any softmax.",
)(_additive(after=lambda s: s.softmax(-2)))
ADDITIVE.misconception(
    "scaled_by_hidden_width",
    "The scores are divided by the root of the hidden width. That division belongs to the scaled dot product; here `v` "
    "is learned and takes care of the size.",
)(_additive(reduce=lambda h, v: h @ v / h.shape[-1] ** 0.5))
ADDITIVE.misconception(
    "scaled_by_key_width",
    "The scores are divided by the root of the keys' width. That division belongs to the scaled dot product.",
)(lambda query, key, w_query, w_key, v: additive_score(query, key, w_query, w_key, v) / key.shape[-1] ** 0.5)
ADDITIVE.misconception(
    "scaled_by_query_width",
    "The scores are divided by the root of the queries' width. That division belongs to the scaled dot product.",
)(lambda query, key, w_query, w_key, v: additive_score(query, key, w_query, w_key, v) / query.shape[-1] ** 0.5)
ADDITIVE.misconception(
    "weights_not_turned",
    "Rows are multiplied with the weights as they are stored. `w_query` is (d_attn, d_q): its *last* axis has to meet "
    "the features of a query. Write both shapes side by side.",
)(lambda query, key, w_query, w_key, v: torch.tanh((query @ w_query).unsqueeze(-2) + (key @ w_key).unsqueeze(-3)) @ v)
ADDITIVE.misconception(
    "weights_exchanged",
    "Queries are multiplied with the matrix of the keys, and keys with that of the queries. The names say which "
    "belongs "
    "to which.",
)(lambda query, key, w_query, w_key, v: additive_score(query, key, w_key, w_query, v))
ADDITIVE.misconception(
    "queries_and_keys_exchanged",
    "Keys stand where queries belong, and the other way round, before the projection: each meets the matrix of the "
    "other.",
)(lambda query, key, w_query, w_key, v: additive_score(key, query, w_query, w_key, v))
ADDITIVE.misconception(
    "one_matrix_for_both",
    "The same matrix is used for queries and keys. Each has its own; they may even differ in width.",
)(lambda query, key, w_query, w_key, v: additive_score(query, key, w_query, w_query, v))
ADDITIVE.misconception(
    "keys_matrix_for_both",
    "The matrix of the keys is used for the queries as well. Each has its own; they may even differ in width.",
)(lambda query, key, w_query, w_key, v: additive_score(query, key, w_key, w_key, v))
ADDITIVE.misconception(
    "before_the_projection",
    "Queries and keys are added before they are projected. They may differ in width; only the hidden layer has one "
    "width for both.",
)(lambda query, key, w_query, w_key, v: torch.tanh((query.unsqueeze(-2) + key.unsqueeze(-3)) @ w_query.T) @ v)
ADDITIVE.misconception(
    "all_axes_turned",
    "`.T` on queries or keys turns all axes round, the batch too. Each row is a vector already; only the weights have "
    "to be turned.",
)(
    lambda query, key, w_query, w_key, v: (
        torch.tanh((w_query @ query.T).T.unsqueeze(-2) + (w_key @ key.T).T.unsqueeze(-3)) @ v
    )
)
ADDITIVE.misconception(
    "float32_inside",
    "Somewhere inside the numbers become float32, and float64 input loses half of its digits.",
)(
    lambda query, key, w_query, w_key, v: additive_score(
        query.float(), key.float(), w_query.float(), w_key.float(), v.float()
    ).to(query.dtype)
)


@ADDITIVE.misconception(
    "loops_without_batch",
    "The loops run over the first axis of queries and keys, which is the batch as soon as there is one. Broadcasting "
    "needs no loops and fits any number of batch dimensions.",
)
def _(query, key, w_query, w_key, v):
    scores = query.new_zeros(query.shape[0], key.shape[0])
    for i in range(query.shape[0]):
        for j in range(key.shape[0]):
            scores[i, j] = v @ torch.tanh(w_query @ query[i] + w_key @ key[j])
    return scores


# Attend


def attend(scores, value):
    weights = torch.softmax(scores, dim=-1)  # (..., L_q, L_k)
    return weights @ value, weights  # (..., L_q, d_v)


ATTEND = Exercise(
    name="attend",
    title="An average that chooses its weights",
    statement="""\
Whatever the score function, the rest of attention is the same: the scores of a query become weights, and the weights
average the values,

$$a_{ij} = \\operatorname{softmax}_j(s_{ij}), \\qquad o_i = \\sum_j a_{ij}\\, v_j.$$

- `scores` is `(..., L_q, L_k)`: row $i$ holds the scores of query $i$ against all keys.
- `value` is `(..., L_k, d_v)`: one value, a row, for each key. The dots stand for any number of batch dimensions,
  none included; they are the same for both.
- Return `(output, weights)`: `(..., L_q, d_v)` and `(..., L_q, L_k)`. Every row of the weights sums to one.

Both arguments are float32 or float64, and so are the results. Scores up to ±10,000 must stay finite. You may use
`torch.softmax`, or your own.""",
    difficulty=1,
    minutes=5,
    stub='''\
def attend(scores, value):
    """(output, weights): the softmax over the keys, and the values averaged with it."""
    raise NotImplementedError
''',
    hints=(
        "Two steps, a line each. Write the shape that you expect beside each line.",
        "Which axis of the scores counts keys? Along that one the weights sum to one. Count it from the right, so that "
        "a batch in front does not disturb.",
        "A sum over j of entries ij times rows j: which operation on two matrices is that? It works on the last two "
        "axes and leaves batch dimensions alone.",
    ),
    reference=attend,
    shapes={"scores": "... len_q len_k", "value": "... len_k d_v"},
    returns=("output", "weights"),
    look="attention: The mathematics",
)


def _scores_and_value(draw: Draw, batch=(), dtype=torch.float32, scale=2.0):
    len_q, len_k, d_v = draw.sizes(3, but=batch)
    return (
        draw.normal(*batch, len_q, len_k, dtype=dtype, scale=scale),
        draw.normal(*batch, len_k, d_v, dtype=dtype),
    )


@ATTEND.holds(
    "The weights are the softmax of the scores over the keys; the output is their average of the values", weight=3
)
def _(draw):
    scores = torch.tensor([[0.0, math.log(3.0)]])
    yield Case(args=(scores, torch.tensor([[4.0], [8.0]])), edge="the smallest case, to be read by eye")
    for batch in draw.batches():
        yield Case(args=_scores_and_value(draw, batch))
    size = draw.integer(3, 5)
    square = draw.normal(size, size, scale=2.0), draw.normal(size, size)
    yield Case(args=square, edge="equal lengths", note="L_q = L_k = d_v")


@ATTEND.holds("It works with zero, one or two batch dimensions, in float32 and float64")
def _(draw):
    for batch in draw.batches():
        for dtype in (torch.float64, torch.float32):
            yield Case(args=_scores_and_value(draw, batch, dtype), note=f"batch dimensions: {len(batch)}")
    yield Case(args=_scores_and_value(draw, (2, 1, 3)), note="batch dimensions: 3", edge="short axes")
    turned = tuple(x.mT.contiguous().mT for x in _scores_and_value(draw, (3,)))
    yield Case(args=turned, note="tensors that are transposed in memory")
    size = draw.integer(2, 4)
    cube = draw.normal(size, size, size, scale=2.0), draw.normal(size, size, size)
    yield Case(args=cube, edge="equal lengths", note="B = L_q = L_k = d_v")


@ATTEND.holds("Equal scores give the plain mean of the values; a score far above the others gives its value only")
def _(draw):
    len_k, d_v = draw.sizes(2)
    value = draw.normal(len_k, d_v)
    yield Case(args=(torch.zeros(2, len_k), value), edge="scores of 0", note="all scores 0")
    ahead = draw.normal(2, len_k)
    ahead[0, 1] = ahead[1, 0] = 60.0
    yield Case(args=(ahead, value), edge="one length may be 2 twice", note="one score far ahead")


@ATTEND.holds("Scores up to ±10,000 stay finite", weight=2)
def _(draw):
    for dtype in (torch.float32, torch.float64):
        len_k, d_v = draw.sizes(2, but=(3,))
        value = draw.normal(len_k, d_v, dtype=dtype)
        yield Case(args=(_shifted_rows(draw, len_k, dtype), value), note="scores around ±1e4", tolerance=50)
    scores, value = _scores_and_value(draw, (8,))
    scores = draw.uniform(*scores.shape, low=-1e4, high=1e4)
    yield Case(args=(scores, value), note="scores between -1e4 and 1e4", tolerance=50)


def _attend(weigh=lambda s: softmax(s, -1), average=torch.matmul):
    """Attention with one step exchanged."""

    def attend(scores, value):
        weights = weigh(scores)
        return average(weights, value), weights

    return attend


ATTEND.misconception(
    "softmax_over_queries",
    "Each column of the weights sums to one, each row should. Every query shares out one unit of attention: over which "
    "axis?",
)(_attend(lambda s: softmax(s, -2)))
ATTEND.misconception(
    "softmax_first_axis",
    "The softmax runs over the first axis: the queries without a batch, the batch with one. Keys are on the last axis.",
)(_attend(lambda s: softmax(s, 0)))
ATTEND.misconception(
    "softmax_axis_1",
    "The softmax runs over axis 1, counted from the left. That is the axis of the keys without a batch only; count "
    "from the right.",
)(_attend(lambda s: softmax(s, 1)))
ATTEND.misconception(
    "softmax_axis_2",
    "The softmax runs over axis 2, counted from the left. That is the axis of the keys with exactly one batch "
    "dimension; count from the right.",
)(_attend(lambda s: softmax(s, 2)))
ATTEND.misconception(
    "softmax_without_dim",
    "The softmax is not told its axis, and PyTorch guesses one by the number of axes: right for two, wrong for three "
    "and four. Say which axis holds the keys.",
)(_attend(F.softmax))
ATTEND.misconception(
    "softmax_over_everything",
    "All weights together sum to one. Each query has one unit of attention of its own, so each row has to.",
)(_attend(lambda s: (s - s.max()).exp() / (s - s.max()).exp().sum()))
ATTEND.misconception(
    "softmax_over_everything_unstable",
    "The exponentials are divided by the sum of all of them, so that all weights together sum to one; each row should. "
    "(And large scores overflow.)",
)(_attend(lambda s: s.exp() / s.exp().sum()))
ATTEND.misconception(
    "softmax_over_both_axes",
    "The softmax runs over queries and keys together, so a whole matrix sums to one. Each row should.",
)(_attend(lambda s: softmax(s.flatten(-2)).view(s.shape)))
ATTEND.misconception(
    "no_softmax",
    "The scores are used as weights. Weights have to be positive and sum to one in every row.",
)(_attend(lambda s: s))
ATTEND.misconception(
    "scores_divided_by_sum",
    "The scores are divided by their sum. Scores may be negative, and so would the weights be: an exponential makes "
    "them positive first.",
)(_attend(lambda s: s / s.sum(-1, keepdim=True)))
ATTEND.misconception(
    "not_normalised",
    "The exponentials are used as weights. They are positive, but do not sum to one yet.",
)(_attend(torch.exp))
ATTEND.misconception(
    "shifted_not_normalised",
    "The largest weight of each row is 1. The *sum* of the row should be.",
)(_attend(lambda s: (s - _largest(s, -1)).exp()))
ATTEND.misconception(
    "sigmoid",
    "Each score goes through a sigmoid of its own, so that weights do not sum to one. Keys compete for a query's "
    "attention.",
)(_attend(torch.sigmoid))
ATTEND.misconception(
    "logarithms",
    "The weights are logarithms, all negative. Weights are positive and sum to one.",
)(_attend(lambda s: s.log_softmax(-1)))
ATTEND.misconception(
    "unstable_softmax",
    "Large scores overflow, far negative ones all vanish. A constant taken from all scores of a row leaves the weights "
    "alone: which one?",
)(_attend(UNSTABLE))
ATTEND.misconception(
    "largest_of_all",
    "The largest score of the whole tensor is taken off every row. A row that lies far below it vanishes altogether. "
    "Each row may have its own constant.",
)(_attend(lambda s: (s - s.max()).exp() / (s - s.max()).exp().sum(-1, keepdim=True)))
ATTEND.misconception(
    "mean_taken_off",
    "The mean of each row is taken off its scores. Where they differ by thousands, the largest overflows all the same: "
    "which constant leaves no exponent above 0?",
)(_attend(_softmax(shift=lambda s, dim: s.mean(dim, keepdim=True))))
ATTEND.misconception(
    "clamped",
    "Large scores are cut off at a bound. That is finite, but scores beyond the bound become equal, though their "
    "difference decides the weights.",
)(_attend(lambda s: softmax(s.clamp(-50.0, 50.0))))
ATTEND.misconception(
    "small_number_in_the_sum",
    "A small number added to the sum hides a division of 0 by 0, but then the row does not sum to one; and large "
    "scores overflow all the same.",
)(_attend(_softmax(shift=_nothing, total=lambda e, dim: e.sum(dim, keepdim=True) + 1e-12)))
ATTEND.misconception(
    "small_number_in_a_safe_sum",
    "A small number is added to the sum of the exponentials. After the largest score was taken off, the sum is at "
    "least "
    "1 and needs no protection; the weights no longer sum to one, which shows in float64.",
)(_attend(_softmax(total=lambda e, dim: e.sum(dim, keepdim=True) + 1e-8)))
ATTEND.misconception(
    "nan_replaced",
    "Where the exponentials overflow, `nan` is replaced afterwards. The numbers that follow are made up; keep the "
    "exponents in range, and no `nan` appears.",
)(_attend(lambda s: UNSTABLE(s).nan_to_num()))
ATTEND.misconception(
    "axis_dropped",
    "The sum or the maximum over the keys has lost that axis, so what is left meets the wrong one. There is an option "
    "that keeps the axis, with length 1.",
)(_attend(lambda s: s.exp() / s.exp().sum(-1)))
ATTEND.misconception(
    "max_gives_a_pair",
    "`max` along an axis returns two things, the largest values and their positions. Only the values are wanted here.",
)(_attend(_softmax(shift=lambda s, dim: s.max(dim, keepdim=True))))
ATTEND.misconception(
    "hard",
    "The best key gets everything. That is the limit of very sharp attention; a softmax leaves something to every key, "
    "and lets gradients through.",
)(_attend(lambda s: F.one_hot(s.argmax(-1), s.shape[-1]).to(s.dtype)))
ATTEND.misconception(
    "signs_turned",
    "The smallest score gets the largest weight. A high score means that the key fits.",
)(_attend(lambda s: softmax(-s)))
ATTEND.misconception(
    "softmax_twice",
    "The softmax is applied twice. Weights are not scores: the second time evens them out.",
)(_attend(lambda s: softmax(softmax(s))))
ATTEND.misconception(
    "scaled_by_keys",
    "The scores are divided by the root of the number of keys. Scaling belongs to the score function, and comes as it "
    "is here.",
)(_attend(lambda s: softmax(s / s.shape[-1] ** 0.5)))
ATTEND.misconception(
    "scaled_by_features",
    "The scores are divided by the root of the number of features. Scaling belongs to the score function; here the "
    "scores are used as they come.",
)(lambda scores, value: attend(scores / value.shape[-1] ** 0.5, value))
ATTEND.misconception(
    "uniform",
    "All keys get the same weight, whatever their scores.",
)(_attend(lambda s: softmax(0 * s)))
ATTEND.misconception(
    "mean_of_weighted",
    "The weighted values are averaged once more, over the number of keys. The weights sum to one already, so their sum "
    "*is* the average.",
)(_attend(average=lambda w, v: w @ v / v.shape[-2]))
ATTEND.misconception(
    "weights_turned",
    "The weights are transposed before they meet the values. A row of the weights belongs to a query, and its entries "
    "to "
    "the values: no axis has to move.",
)(_attend(average=lambda w, v: w.transpose(-2, -1) @ v))
ATTEND.misconception(
    "values_turned",
    "The values are transposed. They have one row per key already, and it is the keys that are summed over; the "
    "transpose belongs to query times key.",
)(_attend(average=lambda w, v: w @ v.transpose(-2, -1)))
ATTEND.misconception(
    "values_first",
    "The product stands the wrong way round: values times weights. Weights come first, so that the sum runs over the "
    "keys.",
)(_attend(average=lambda w, v: v @ w))
ATTEND.misconception(
    "entry_by_entry",
    "Weights and values are multiplied entry by entry. The average sums over the keys, which is what a matrix product "
    "does.",
)(_attend(average=torch.mul))
ATTEND.misconception(
    "not_summed",
    "Every value is multiplied with its weight, but the products are not summed over the keys.",
)(_attend(average=lambda w, v: w.unsqueeze(-1) * v.unsqueeze(-3)))
ATTEND.misconception(
    "summed_without_room_for_queries",
    "Weights and values are multiplied and summed with broadcasting that fits no batch only: the values have no axis "
    "where the queries are, so that with a batch the wrong axes meet.",
)(_attend(average=lambda w, v: (w.unsqueeze(-1) * v).sum(-2)))
ATTEND.misconception(
    "summed_over_queries",
    "The products of weights and values are summed over the queries. What is averaged are the values of the *keys*, "
    "for "
    "each query.",
)(_attend(average=lambda w, v: (w.unsqueeze(-1) * v.unsqueeze(-3)).sum(-3)))
ATTEND.misconception(
    "bmm",
    "`torch.bmm` takes exactly one batch dimension. Another product takes any number, none included.",
)(_attend(average=torch.bmm))
ATTEND.misconception(
    "mm",
    "`torch.mm` takes two matrices and no batch. Another product takes any number of batch dimensions.",
)(_attend(average=torch.mm))
ATTEND.misconception(
    "einsum_without_batch",
    "The letters of `einsum` leave no room for batch dimensions; `...` would.",
)(_attend(average=lambda w, v: torch.einsum("qk,kd->qd", w, v)))
ATTEND.misconception(
    "einsum_one_batch_dimension",
    "The letters of `einsum` fit exactly one batch dimension; `...` fits any number.",
)(_attend(average=lambda w, v: torch.einsum("bqk,bkd->bqd", w, v)))
ATTEND.misconception(
    "outputs_swapped",
    "Weights and output come back in the wrong order: the contract says `(output, weights)`.",
)(lambda scores, value: attend(scores, value)[::-1])
ATTEND.misconception(
    "only_output",
    "Only the output comes back. The contract asks for `(output, weights)`.",
)(lambda scores, value: attend(scores, value)[0])
ATTEND.misconception(
    "only_weights",
    "Only the weights come back. The contract asks for `(output, weights)`.",
)(lambda scores, value: attend(scores, value)[1])
ATTEND.misconception(
    "scores_returned",
    "The second result holds the scores, as they came in; it should hold the weights.",
)(lambda scores, value: (attend(scores, value)[0], scores))
ATTEND.misconception(
    "scores_average",
    "The weights are right, but it is the scores that are multiplied with the values.",
)(lambda scores, value: (scores @ value, softmax(scores)))
ATTEND.misconception(
    "softmax_after_the_average",
    "The softmax is applied to the output. It belongs before the average: its task is to make weights of scores.",
)(lambda scores, value: (softmax(scores @ value), softmax(scores)))
ATTEND.misconception(
    "softmax_at_the_end",
    "The scores are multiplied with the values, and the softmax comes last. It belongs before the average: its task "
    "is to "
    "make weights of scores.",
)(lambda scores, value: (softmax(scores @ value), scores))
ATTEND.misconception(
    "output_softmaxed",
    "The finished output goes through a softmax once more. An average of values needs none.",
)(_attend(average=lambda w, v: softmax(w @ v)))
ATTEND.misconception(
    "values_softmaxed",
    "The values go through a softmax as well. Only scores do; values are averaged as they are.",
)(_attend(average=lambda w, v: w @ softmax(v)))
ATTEND.misconception(
    "squeezed",
    "`squeeze()` takes away *every* axis of length 1: with a single query, or values of one feature, the output loses "
    "an "
    "axis that it should have.",
)(_attend(average=lambda w, v: (w @ v).squeeze()))
ATTEND.misconception(
    "weights_returned_turned",
    "The output is right, but the weights come back with their axes exchanged. Rows belong to queries, columns to "
    "keys.",
)(lambda scores, value: (attend(scores, value)[0], attend(scores, value)[1].transpose(-2, -1)))
ATTEND.misconception(
    "sum_returned",
    "The values are summed with the exponentials as weights, which do not sum to one; only the weights that come back "
    "are divided by their sum.",
)(lambda scores, value: ((scores - _largest(scores, -1)).exp() @ value, softmax(scores)))
ATTEND.misconception(
    "weights_detached",
    "Output and weights are right, but no gradient reaches the scores through the weights: nothing could learn where "
    "to "
    "look.",
)(lambda scores, value: attend(scores.detach(), value))
ATTEND.misconception(
    "returned_weights_detached",
    "The weights that come back are cut off from the gradient. A loss may depend on them as well as on the output.",
)(lambda scores, value: (attend(scores, value)[0], attend(scores, value)[1].detach()))
ATTEND.misconception(
    "float32_inside",
    "Somewhere inside the numbers become float32, and float64 input loses half of its digits.",
)(lambda scores, value: tuple(x.to(value.dtype) for x in attend(scores.float(), value.float())))
ATTEND.misconception(
    "float32_weights",
    "The weights are float32 whatever the input, so that in float64 they do not fit the values.",
)(_attend(lambda s: softmax(s.float())))


@ATTEND.misconception(
    "caller_changed",
    "The results are right, but the caller's scores are changed: `-=`, or a method whose name ends in `_`, works in "
    "place.",
)
def _(scores, value):
    scores -= scores.amax(-1, keepdim=True)
    return attend(scores, value)


# Kernel regression


def kernel_regression(x_query, x_key, y_key, bandwidth):
    distance = x_query.unsqueeze(-1) - x_key  # (n, m)
    scores = -(distance**2) / (2 * bandwidth**2)  # logarithms of the kernel
    return torch.softmax(scores, dim=-1) @ y_key  # (n,)


KERNEL = Exercise(
    name="kernel_regression",
    title="Attention of 1964",
    statement="""\
Nadaraya and Watson estimated a curve from scattered points $(x_j, y_j)$ by an average in which near points count
most:

$$f(x) = \\frac{\\sum_j K(x - x_j)\\, y_j}{\\sum_j K(x - x_j)}, \\qquad
K(u) = \\exp\\!\\left(-\\frac{u^2}{2 b^2}\\right).$$

It is attention with keys $x_j$ and values $y_j$.

- `x_query` is `(n,)`: where to estimate. `x_key` and `y_key` are `(m,)`: where the curve is known, and its values
  there. There is at least one of each; neither is sorted.
- `bandwidth` is the width $b$, a positive number.
- Return the estimates $f(x)$ at all queries, `(n,)`.

All tensors are float32 or float64, and so is the result. Far from every key each $K$ is so small that a computer
takes it for 0. The quotient still has a value, in which the nearest keys decide: return that, not `nan` and not 0.""",
    difficulty=2,
    minutes=15,
    stub='''\
def kernel_regression(x_query, x_key, y_key, bandwidth):
    """Estimates (n,): the average of y_key, weighted by a Gaussian kernel."""
    raise NotImplementedError
''',
    hints=(
        "You need the difference of every query and every key, `(n, m)`. What must happen to `x_query` so that "
        "broadcasting makes that table?",
        "Compare the formula with the softmax. Which scores have these exponentials, and over which axis do they sum "
        "to one?",
        "Never compute a kernel: give its *logarithm* as a score to a softmax. It takes off the largest score by "
        "itself, so it does not matter how small the kernels are.",
        "The weights are `(n, m)`, the known values `(m,)`. A product of a matrix and a vector is all that is left.",
    ),
    reference=kernel_regression,
    shapes={"x_query": "n", "x_key": "m", "y_key": "m"},
    returns=("estimates",),
    look="attention: Attention before neural networks",
)


def _points(draw: Draw, n=None, m=None, dtype=torch.float32):
    """Queries, keys that keep a distance, and values; none of them sorted."""
    a, b = draw.sizes(2, 3, 8)
    n, m = n or a, m or b
    grid = torch.arange(m, dtype=torch.float64) - (m - 1) / 2
    order = torch.randperm(m, generator=draw.generator)
    x_key = (0.7 * grid[order] + draw.uniform(m, low=-0.2, high=0.2, dtype=torch.float64)).to(dtype)
    return draw.normal(n, dtype=dtype, scale=1.3), x_key, draw.normal(m, dtype=dtype, scale=2.0)


def _width(draw: Draw, low, high):
    """A bandwidth that no float32 has."""
    return draw.uniform(1, low=low, high=high, dtype=torch.float64).item()


@KERNEL.holds("The estimate is the average of the known values, weighted by the Gaussian kernel", weight=3)
def _(draw):
    small = torch.tensor([0.0]), torch.tensor([-1.0, 1.0]), torch.tensor([2.0, -4.0]), 1.0
    yield Case(args=small, edge="the smallest case, to be read by eye", note="midway between two keys")
    for dtype in (torch.float32, torch.float64, torch.float32, torch.float64):
        yield Case(args=(*_points(draw, dtype=dtype), _width(draw, 0.4, 1.6)))


@KERNEL.holds("The bandwidth sets how fast the weights fall with distance")
def _(draw):
    for dtype in (torch.float32, torch.float64):
        yield Case(args=(*_points(draw, dtype=dtype), _width(draw, 2.0, 4.0)), note="a wide kernel")
    yield Case(args=(*_points(draw), 40.0), note="so wide that all keys count alike")
    yield Case(args=(*_points(draw, dtype=torch.float64), 2), note="a bandwidth that is an int")
    yield Case(args=(*_points(draw, dtype=torch.float64), _width(draw, 0.15, 0.25)), note="a narrow kernel")


@KERNEL.holds("A single query, a single key, and as many queries as keys work too")
def _(draw):
    yield Case(args=(*_points(draw, n=1), 0.9), edge="a length of one on purpose", note="n = 1")
    yield Case(args=(*_points(draw, m=1), 0.9), edge="a length of one on purpose", note="m = 1")
    yield Case(args=(*_points(draw, n=4, m=4), 0.6), edge="equal lengths on purpose", note="n = m")


@KERNEL.holds("Far from every key the estimate is finite and right", weight=2)
def _(draw):
    note = "queries far from every key"
    for dtype in (torch.float32, torch.float64):
        x_query, x_key, y_key = _points(draw, n=3, m=5, dtype=dtype)
        x_query = x_query + torch.tensor([60.0, 40.0, -80.0], dtype=dtype)
        yield Case(args=(x_query, x_key, y_key, 0.5), note=note, tolerance=50)
        x_query, x_key, y_key = _points(draw, n=4, m=6, dtype=dtype)
        x_query = x_query + torch.tensor([300.0, -250.0, 280.0, 0.0], dtype=dtype)
        yield Case(args=(x_query, x_key, y_key, 5.2), note=f"{note}, of which several count", tolerance=50)
    x_query, x_key, y_key = _points(draw, n=3, m=5, dtype=torch.float64)
    x_query = x_query.clamp(-1.0, 1.0) + torch.tensor([7.0, -10.0, 14.0], dtype=torch.float64)
    yield Case(args=(x_query, x_key, y_key, 1.1), note="queries some way from every key")


def _kernel(score=lambda d, b: -(d**2) / (2 * b**2), average=lambda s, y: softmax(s) @ y):
    """Kernel regression with one step exchanged."""

    def kernel_regression(x_query, x_key, y_key, bandwidth):
        return average(score(x_query.unsqueeze(-1) - x_key, bandwidth), y_key)

    return kernel_regression


def _ratio(scores, y_key):
    return scores.exp() @ y_key / scores.exp().sum(-1)


KERNEL.misconception(
    "zero_by_zero",
    "Right near the keys. Far away every kernel is 0 in the computer's numbers, and 0 is divided by 0. What the "
    "softmax "
    "does with large scores helps here, too.",
)(_kernel(average=_ratio))
KERNEL.misconception(
    "zero_by_zero_in_float32",
    "Far from all keys every kernel is 0 in the computer's numbers, and 0 is divided by 0. Besides, the result is "
    "float32 "
    "whatever the input: a tensor that you make yourself has to be told its dtype.",
)(_kernel(average=lambda s, y: _ratio(s, y).float()))
KERNEL.misconception(
    "zero_far_away",
    "Far from all keys 0 comes out: something hides the division of 0 by 0, a small number in the divisor or a "
    "replaced `nan`. The quotient does have a value there; the nearest keys decide it.",
)(_kernel(average=lambda s, y: _ratio(s, y).nan_to_num()))
KERNEL.misconception(
    "tiny_number_in_the_divisor",
    "A tiny number is added to the divisor. Near the keys it costs digits that float64 has, and far from them 0 comes "
    "out, where the nearest keys should decide.",
)(_kernel(average=lambda s, y: s.exp() @ y / (s.exp().sum(-1) + 1e-8)))
KERNEL.misconception(
    "small_number_in_the_divisor",
    "A small number is added to the divisor. It pulls estimates towards 0, a little near the keys and all the way far "
    "from them.",
)(_kernel(average=lambda s, y: s.exp() @ y / (s.exp().sum(-1) + 1e-6)))
KERNEL.misconception(
    "mean_far_away",
    "Far from all keys the plain mean of the known values comes out, as if all kernels were equal there. They are all "
    "small, but their ratios are not 1: the nearest keys decide.",
)(_kernel(average=lambda s, y: torch.where(s.exp().sum(-1) > 0, _ratio(s, y), y.mean())))
KERNEL.misconception(
    "bounded_scores",
    "The exponents are cut off at a bound, so that keys further away than that all count alike. Their kernels are "
    "small, "
    "but the ratios are not 1: the nearest keys decide.",
)(_kernel(average=lambda s, y: softmax(s.clamp(min=-50.0)) @ y))
KERNEL.misconception(
    "larger_number_in_the_kernel",
    "A number such as 1e-8 is added to every kernel. Near the keys it costs digits that float64 has, and far from "
    "them it "
    "is all that is left, so that all keys count alike.",
)(_kernel(average=lambda s, y: (s.exp() + 1e-8) @ y / (s.exp() + 1e-8).sum(-1)))
KERNEL.misconception(
    "small_number_in_the_kernel",
    "A small number is added to every kernel, so that far from all keys they look equal. Their ratios are what counts, "
    "however small they are.",
)(_kernel(average=lambda s, y: (s.exp() + 1e-12) @ y / (s.exp() + 1e-12).sum(-1)))
KERNEL.misconception(
    "largest_of_all",
    "The largest score of all queries is taken off. A query that is further away than the others still has no kernel "
    "above 0: each may have its own constant.",
)(_kernel(average=lambda s, y: (s - s.max()).exp() @ y / (s - s.max()).exp().sum(-1)))
KERNEL.misconception(
    "mean_taken_off",
    "The mean score of each query is taken off. Where the distances differ much, the exponentials overflow then.",
)(_kernel(average=lambda s, y: (s - s.mean(-1, keepdim=True)).exp() @ y / (s - s.mean(-1, keepdim=True)).exp().sum(-1)))
KERNEL.misconception(
    "shift_over_queries",
    "The largest score is sought over the queries. What is taken off cancels only if it is the same for all keys of "
    "one "
    "query.",
)(_kernel(average=lambda s, y: (s - s.amax(0)).exp() @ y / (s - s.amax(0)).exp().sum(-1)))
KERNEL.misconception(
    "two_forgotten",
    "The 2 in the exponent's divisor is missing, so the kernel is narrower than the bandwidth says.",
)(_kernel(lambda d, b: -((d / b) ** 2)))
KERNEL.misconception(
    "two_squared",
    "The 2 in the exponent's divisor is squared along with the bandwidth: only the bandwidth is.",
)(_kernel(lambda d, b: -((d / (2 * b)) ** 2)))
KERNEL.misconception(
    "two_multiplied",
    "The 2 stands above the fraction's line instead of below: a slip in the order of `/` and `*`. Brackets help.",
)(_kernel(lambda d, b: -2 * (d / b) ** 2))
KERNEL.misconception(
    "divided_by_two_times_square",
    "Without brackets, `d**2 / 2 * bandwidth**2` divides by 2 and *multiplies* by the square. A larger bandwidth has "
    "to "
    "make the kernel wider.",
)(_kernel(lambda d, b: -(d**2) / 2 * b**2))
KERNEL.misconception(
    "multiplied_by_bandwidth",
    "Distances are multiplied by the bandwidth. Measured in bandwidths, a distance gets *smaller* when the bandwidth "
    "grows.",
)(_kernel(lambda d, b: -((d * b) ** 2)))
KERNEL.misconception(
    "multiplied_by_plain_bandwidth",
    "The squared distance is multiplied by the bandwidth. A larger bandwidth has to make the kernel wider, not "
    "narrower.",
)(_kernel(lambda d, b: -(d**2) * b))
KERNEL.misconception(
    "half_and_plain_bandwidth",
    "Half the squared distance is multiplied by the bandwidth. A larger bandwidth has to make the kernel wider, and it "
    "enters squared.",
)(_kernel(lambda d, b: -(d**2) * b / 2))
KERNEL.misconception(
    "bandwidth_not_squared",
    "The bandwidth in the exponent is not squared. The squared distance is measured in squared bandwidths.",
)(_kernel(lambda d, b: -(d**2) / (2 * b)))
KERNEL.misconception(
    "two_forgotten_and_not_squared",
    "The squared distance is divided by the bandwidth alone. In the exponent's divisor the bandwidth is squared, and "
    "there is a 2.",
)(_kernel(lambda d, b: -(d**2) / b))
KERNEL.misconception(
    "half_bandwidth_outside",
    "The distance is divided by the bandwidth after squaring it, and halved: the bandwidth has to be squared with it. "
    "Is a root or a square in the wrong place?",
)(_kernel(lambda d, b: -(d**2) / (2 * b) ** 0.5))
KERNEL.misconception(
    "bandwidth_ignored",
    "The estimates do not depend on the bandwidth.",
)(_kernel(lambda d, b: -(d**2) / 2))
KERNEL.misconception(
    "bandwidth_and_two_ignored",
    "The estimates do not depend on the bandwidth: the score is the squared distance alone.",
)(_kernel(lambda d, b: -(d**2)))
KERNEL.misconception(
    "not_squared",
    "The distance enters as it is, not squared: a kernel with a spike at the key instead of a Gaussian.",
)(_kernel(lambda d, b: -d.abs() / b))
KERNEL.misconception(
    "not_squared_over_two_bandwidths",
    "Neither the distance nor the bandwidth is squared: a kernel with a spike at the key instead of a Gaussian.",
)(_kernel(lambda d, b: -d.abs() / (2 * b)))
KERNEL.misconception(
    "not_squared_over_two",
    "The distance enters as it is, not squared; the divisor is right.",
)(_kernel(lambda d, b: -d.abs() / (2 * b**2)))
KERNEL.misconception(
    "signed_distance",
    "The difference enters with its sign, neither squared nor absolute. A key on one side of the query then seems the "
    "nearer the further it is away.",
)(_kernel(lambda d, b: -d / (2 * b**2)))
KERNEL.misconception(
    "minus_forgotten",
    "Far keys count most. The minus in the exponent is missing; and in Python `-d**2` and `(-d)**2` are not the same.",
)(_kernel(lambda d, b: d**2 / (2 * b**2)))
KERNEL.misconception(
    "minus_forgotten_unstable",
    "Far keys count most, and soon their kernels overflow: the minus in the exponent is missing.",
)(_kernel(lambda d, b: d**2 / (2 * b**2), _ratio))
KERNEL.misconception(
    "not_normalised",
    "The kernel-weighted values are added up, but not divided by the sum of the kernels. An average needs weights that "
    "sum to one.",
)(_kernel(average=lambda s, y: s.exp() @ y))
KERNEL.misconception(
    "divided_by_number_of_keys",
    "The sum is divided by the number of keys. The weights are not 1 each: divide by the sum of the kernels.",
)(_kernel(average=lambda s, y: s.exp() @ y / s.shape[-1]))
KERNEL.misconception(
    "density",
    "The kernel has the factor of the normal density and is taken as a weight. That makes its *integral* one; the "
    "weights of one query have to sum to one.",
)(
    lambda x_query, x_key, y_key, bandwidth: (
        _kernel(average=lambda s, y: s.exp() @ y)(x_query, x_key, y_key, bandwidth)
        / (bandwidth * math.sqrt(2 * math.pi))
    )
)
KERNEL.misconception(
    "density_and_mean",
    "Each kernel is a normal density and the mean over the keys is taken. That estimates how dense the keys are, "
    "times y; "
    "the weights of one query have to sum to one.",
)(
    lambda x_query, x_key, y_key, bandwidth: (
        _kernel(average=lambda s, y: (s.exp() * y).mean(-1))(x_query, x_key, y_key, bandwidth)
        / (bandwidth * math.sqrt(2 * math.pi))
    )
)
KERNEL.misconception(
    "softmax_over_queries",
    "The weights sum to one over the queries. Every query is an average of its own, over the keys.",
)(_kernel(average=lambda s, y: softmax(s, 0) @ y))
KERNEL.misconception(
    "ratio_over_queries",
    "The kernels are divided by their sum over the queries. Every query is an average of its own, over the keys. (And "
    "far from all keys the kernels vanish.)",
)(_kernel(average=lambda s, y: (s.exp() / s.exp().sum(0)) @ y))
KERNEL.misconception(
    "divided_by_sum_of_all",
    "The kernels are divided by the sum over all queries *and* keys. Every query is an average of its own.",
)(_kernel(average=lambda s, y: s.exp() @ y / s.exp().sum()))
KERNEL.misconception(
    "divided_by_sum_of_all_softmax",
    "One softmax runs over the whole table of queries and keys. Every query is an average of its own.",
)(_kernel(average=lambda s, y: softmax(s.flatten(), 0).view(s.shape) @ y))
KERNEL.misconception(
    "sum_axis_dropped",
    "The sum over the keys has lost its axis before the kernels are divided, so it lines up with the wrong one. There "
    "is an option that keeps the axis.",
)(_kernel(average=lambda s, y: (s.exp() / s.exp().sum(-1)) @ y))
KERNEL.misconception(
    "no_exponential",
    "The scores are divided by their sum: the exponential of the kernel is missing, and the furthest key counts most.",
)(_kernel(average=lambda s, y: s @ y / s.sum(-1)))
KERNEL.misconception(
    "inverse_distance",
    "The weights fall with the inverse of the distance. The kernel is a Gaussian: it falls faster, and has no pole at "
    "the key.",
)(_kernel(lambda d, b: d, lambda d, y: (1 / d.abs()) @ y / (1 / d.abs()).sum(-1)))
KERNEL.misconception(
    "box",
    "All keys within one bandwidth count alike, the others not at all. The kernel is a Gaussian, which falls smoothly "
    "and "
    "nowhere to 0.",
)(_kernel(lambda d, b: (d.abs() <= b).to(d.dtype), lambda k, y: k @ y / k.sum(-1)))
KERNEL.misconception(
    "parabola",
    "The kernel is a parabola that ends at one bandwidth. The kernel here is a Gaussian, which falls smoothly and "
    "nowhere "
    "to 0.",
)(_kernel(lambda d, b: (1 - (d / b) ** 2).clamp(min=0), lambda k, y: k @ y / k.sum(-1)))
KERNEL.misconception(
    "nearest_key",
    "The nearest key decides alone. That is the limit of a very narrow kernel; here the others count as well.",
)(_kernel(average=lambda s, y: y[s.argmax(-1)]))
KERNEL.misconception(
    "nearest_key_far_away",
    "Far from all keys the nearest one is taken alone. That holds only where the others are much further away, "
    "measured "
    "by distance *and* bandwidth; the softmax knows how much each counts.",
)(_kernel(average=lambda s, y: torch.where(s.exp().sum(-1) > 0, _ratio(s, y), y[s.argmax(-1)])))
KERNEL.misconception(
    "keys_averaged",
    "The keys themselves are averaged. The weights come from the x's, but what they average are the y's.",
)(lambda x_query, x_key, y_key, bandwidth: kernel_regression(x_query, x_key, x_key, bandwidth))
KERNEL.misconception(
    "sorted_without_values",
    "The keys are sorted, and their values left in the old order. Nothing here needs an order; each key has to stay "
    "with "
    "its value.",
)(lambda x_query, x_key, y_key, bandwidth: kernel_regression(x_query, x_key.sort().values, y_key, bandwidth))
KERNEL.misconception(
    "distance_to_values",
    "Distances are taken between queries and *values*. The x's of the known points say how near they are.",
)(lambda x_query, x_key, y_key, bandwidth: kernel_regression(x_query, y_key, y_key, bandwidth))
KERNEL.misconception(
    "pairs_missing",
    "The i-th query is compared with the i-th key only. Every query has to meet every key: a table (n, m).",
)(lambda x_query, x_key, y_key, bandwidth: softmax(-((x_query - x_key) ** 2) / (2 * bandwidth**2)) @ y_key)
KERNEL.misconception(
    "pairs_missing_entry_by_entry",
    "The i-th query meets the i-th key and the i-th value only, all multiplied entry by entry. Every query has to meet "
    "every key: a table (n, m).",
)(lambda x_query, x_key, y_key, bandwidth: softmax(-((x_query - x_key) ** 2) / (2 * bandwidth**2)) * y_key)
KERNEL.misconception(
    "keys_by_queries",
    "The table has a row for each key and a column for each query, as if the two had changed places. Estimates are "
    "wanted at the queries, one a row.",
)(
    lambda x_query, x_key, y_key, bandwidth: (
        softmax(-((x_query - x_key.unsqueeze(-1)) ** 2) / (2 * bandwidth**2)) @ y_key
    )
)
KERNEL.misconception(
    "column",
    "The numbers are right, but come as a column (n, 1). A vector of m values became a matrix on the way; in the end "
    "it "
    "is a vector again.",
)(_kernel(average=lambda s, y: softmax(s) @ y.unsqueeze(-1)))
KERNEL.misconception(
    "squeezed",
    "`squeeze()` without an axis takes away *every* axis of length 1: with a single query nothing is left. Say which "
    "axis is meant.",
)(_kernel(average=lambda s, y: (softmax(s) @ y.unsqueeze(-1)).squeeze()))
KERNEL.misconception(
    "not_summed",
    "The values are multiplied with their weights, but the products are not summed over the keys.",
)(_kernel(average=lambda s, y: softmax(s) * y))
KERNEL.misconception(
    "mean_of_weighted",
    "The weighted values are averaged once more, over the number of keys. The weights sum to one already.",
)(_kernel(average=lambda s, y: (softmax(s) * y).mean(-1)))
KERNEL.misconception(
    "weights_returned",
    "The weights come back. The last step is missing: what do they average?",
)(_kernel(average=lambda s, y: softmax(s)))
KERNEL.misconception(
    "pair_returned",
    "The estimates come with the weights, as from `attend`. The contract asks for the estimates alone.",
)(_kernel(average=lambda s, y: (softmax(s) @ y, softmax(s))))
KERNEL.misconception(
    "bandwidth_in_float32",
    "The bandwidth becomes a float32 tensor on the way, and float64 input loses half of its digits. A Python number "
    "takes the dtype of what it meets.",
)(
    lambda x_query, x_key, y_key, bandwidth: kernel_regression(
        x_query, x_key, y_key, torch.tensor(bandwidth, dtype=torch.float32)
    )
)
KERNEL.misconception(
    "float32_inside",
    "Somewhere inside the numbers become float32, and float64 input loses half of its digits.",
)(
    lambda x_query, x_key, y_key, bandwidth: kernel_regression(
        x_query.float(), x_key.float(), y_key.float(), bandwidth
    ).to(x_query.dtype)
)


@KERNEL.misconception(
    "caller_changed",
    "The estimates are right, but the caller's tensors are changed: a method whose name ends in `_` works in place.",
)
def _(x_query, x_key, y_key, bandwidth):
    return softmax(-((x_query.unsqueeze_(-1) - x_key) ** 2) / (2 * bandwidth**2)) @ y_key
