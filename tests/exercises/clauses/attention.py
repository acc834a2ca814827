"""Solutions that break one clause of the contract each, for the exercises of this chapter."""

import torch
from contract_clauses import breaks

ROUND = "accurate to about 1e-5 in float32 and 1e-10 in float64"
EXTREMES = "finite and right for entries up to ±1e4"
UNCHANGED = "a solution leaves its arguments unchanged"
BATCH = "leading dimensions may be any number of batch dimensions, including none"
GRADIENTS = "lets gradients through"
DTYPE = "keeps the dtype"
LAYOUT = "a tensor is handled correctly in any memory layout"

# softmax

SOFTMAX = "softmax"


def softmax(scores, dim=-1):
    e = (scores - scores.amax(dim, keepdim=True)).exp()
    return e / e.sum(dim, keepdim=True)


@breaks(SOFTMAX, "dim=-1: the last axis unless told otherwise")
def first_by_default(scores, dim=0):
    return softmax(scores, dim)


@breaks(SOFTMAX, "dim: an axis counted from the left")
def only_from_the_right(scores, dim=-1):
    return softmax(scores, dim if dim < 0 else -1)


@breaks(SOFTMAX, "dim: an axis counted from the right")
def only_from_the_left(scores, dim=None):
    dim = scores.dim() - 1 if dim is None else dim
    if dim < 0:
        raise IndexError("dim is negative")
    return softmax(scores, dim)


@breaks(SOFTMAX, "dim: −1 said aloud is the last axis")
def minus_one_is_the_first(scores, dim=None):
    return softmax(scores, -1 if dim is None else 0 if dim == -1 else dim)


@breaks(SOFTMAX, "dim: an axis in the middle")
def first_or_last(scores, dim=-1):
    return softmax(scores, 0 if dim in (0, -scores.dim()) else -1)


@breaks(SOFTMAX, "dim: an axis far from the right")
def dim_wraps(scores, dim=-1):
    return softmax(scores, max(dim, -2))


@breaks(SOFTMAX, "any number of axes: a vector")
def no_vector(scores, dim=-1):
    if scores.dim() == 1:
        raise IndexError("there are no rows")
    return softmax(scores, dim)


@breaks(SOFTMAX, "any number of axes: four")
def three_axes_at_most(scores, dim=-1):
    if scores.dim() > 3:
        raise IndexError("three axes at most")
    return softmax(scores, dim)


@breaks(SOFTMAX, "any number of axes: five")
def four_axes_at_most(scores, dim=-1):
    if scores.dim() > 4:
        raise IndexError("four axes at most")
    return softmax(scores, dim)


@breaks(SOFTMAX, "same shape: axes of length one stay")
def squeezed(scores, dim=-1):
    return softmax(scores, dim).squeeze()


@breaks(SOFTMAX, "a single score gets weight one")
def single_score(scores, dim=-1):
    return softmax(scores, dim) * (0.5 if scores.shape[dim] == 1 else 1)


@breaks(SOFTMAX, EXTREMES + ": large ones")
def overflows(scores, dim=-1):
    return scores.exp() / scores.exp().sum(dim, keepdim=True)


@breaks(SOFTMAX, EXTREMES + ": far negative ones")
def shifted_where_positive(scores, dim=-1):
    return softmax(scores, dim) if scores.max() > 0 else scores.exp() / scores.exp().sum(dim, keepdim=True)


@breaks(SOFTMAX, EXTREMES + ": in one row small, in the next large")
def one_shift_for_all(scores, dim=-1):
    e = (scores - scores.max()).exp()
    return e / e.sum(dim, keepdim=True)


@breaks(SOFTMAX, EXTREMES + ", not only finite")
def clamped(scores, dim=-1):
    e = scores.clamp(-80, 80).exp()
    return e / e.sum(dim, keepdim=True)


@breaks(SOFTMAX, EXTREMES + ", along any axis")
def safe_along_the_last(scores, dim=-1):
    return softmax(scores, dim) if dim in (-1, scores.dim() - 1) else overflows(scores, dim)


@breaks(SOFTMAX, ROUND)
def float32_inside(scores, dim=-1):
    return softmax(scores.float(), dim).to(scores.dtype)


@breaks(SOFTMAX, ROUND)
def half_inside(scores, dim=-1):
    return softmax(scores, dim) if scores.dtype == torch.float64 else softmax(scores.bfloat16(), dim).float()


@breaks(SOFTMAX, ROUND)
def number_in_the_sum(scores, dim=-1):
    e = (scores - scores.amax(dim, keepdim=True)).exp()
    return e / (e.sum(dim, keepdim=True) + 1e-8)


@breaks(SOFTMAX, DTYPE)
def always_float32(scores, dim=-1):
    return softmax(scores, dim).float()


@breaks(SOFTMAX, DTYPE)
def always_float64(scores, dim=-1):
    return softmax(scores.double(), dim)


@breaks(SOFTMAX, LAYOUT)
def views(scores, dim=-1):
    return softmax(scores.view(-1).view(scores.shape), dim)


@breaks(SOFTMAX, UNCHANGED)
def changed(scores, dim=-1):
    weights = softmax(scores, dim)
    scores.sub_(1)
    return weights


@breaks(SOFTMAX, GRADIENTS)
def detached(scores, dim=-1):
    return softmax(scores, dim).detach()


@breaks(SOFTMAX, GRADIENTS + ", the right ones")
def sum_detached(scores, dim=-1):
    e = (scores - scores.amax(dim, keepdim=True)).exp()
    return e / e.sum(dim, keepdim=True).detach()


@breaks(SOFTMAX, GRADIENTS + ", along any axis")
def detached_along_others(scores, dim=-1):
    return softmax(scores, dim) if dim == -1 else softmax(scores, dim).detach()


# additive_score

ADDITIVE = "additive_score"


def additive(query, key, w_query, w_key, v):
    return torch.tanh((query @ w_query.T).unsqueeze(-2) + (key @ w_key.T).unsqueeze(-3)) @ v


@breaks(ADDITIVE, BATCH)
def additive_only_batches(query, key, w_query, w_key, v):
    if query.dim() == 2:
        raise IndexError("there is no batch")
    return additive(query, key, w_query, w_key, v)


@breaks(ADDITIVE, BATCH)
def additive_one_batch_at_most(query, key, w_query, w_key, v):
    if query.dim() > 3:
        raise IndexError("one batch dimension at most")
    return additive(query, key, w_query, w_key, v)


@breaks(ADDITIVE, BATCH)
def additive_two_batches_at_most(query, key, w_query, w_key, v):
    if query.dim() > 4:
        raise IndexError("two batch dimensions at most")
    return additive(query, key, w_query, w_key, v)


@breaks(ADDITIVE, "L_q and L_k are independent")
def additive_one_length(query, key, w_query, w_key, v):
    scores = additive(query, key, w_query, w_key, v)
    return scores.reshape(*key.shape[:-1], key.shape[-2]).mT.mT


@breaks(ADDITIVE, "d_q and d_k are independent")
def additive_one_width(query, key, w_query, w_key, v):
    return additive(query, key.reshape(*key.shape[:-1], query.shape[-1]), w_query, w_key, v)


@breaks(ADDITIVE, "d_attn is independent of d_q and d_k")
def additive_square(query, key, w_query, w_key, v):
    return additive(query, key, w_query[:, : len(v)].T.reshape(w_query.shape), w_key, v)


@breaks(ADDITIVE, "(..., L_q, L_k): axes of length one stay")
def additive_squeezed(query, key, w_query, w_key, v):
    return additive(query, key, w_query, w_key, v).squeeze()


@breaks(ADDITIVE, "entry ij belongs to query i and key j, even if L_q = L_k")
def additive_turned(query, key, w_query, w_key, v):
    scores = additive(query, key, w_query, w_key, v)
    return scores.mT if scores.shape[-1] == scores.shape[-2] else scores


@breaks(ADDITIVE, "w_query times q_i, where the matrix is square too")
def additive_square_turned(query, key, w_query, w_key, v):
    if w_query.shape[0] == w_query.shape[1]:
        w_query = w_query.T
    return additive(query, key, w_query, w_key, v)


@breaks(ADDITIVE, "each its own matrix, where d_q = d_k too")
def additive_exchanged(query, key, w_query, w_key, v):
    if w_query.shape == w_key.shape:
        w_query, w_key = w_key, w_query
    return additive(query, key, w_query, w_key, v)


@breaks(ADDITIVE, "tanh, where it saturates too")
def additive_unstable(query, key, w_query, w_key, v):
    h = (query @ w_query.T).unsqueeze(-2) + (key @ w_key.T).unsqueeze(-3)
    return ((2 * h).exp() - 1) / ((2 * h).exp() + 1) @ v


@breaks(ADDITIVE, "no softmax")
def additive_softmaxed(query, key, w_query, w_key, v):
    return additive(query, key, w_query, w_key, v).softmax(-1)


@breaks(ADDITIVE, ROUND)
def additive_in_float32(query, key, w_query, w_key, v):
    return additive(*(x.float() for x in (query, key, w_query, w_key, v))).to(query.dtype)


@breaks(ADDITIVE, DTYPE)
def additive_in_float64(query, key, w_query, w_key, v):
    return additive(*(x.double() for x in (query, key, w_query, w_key, v)))


@breaks(ADDITIVE, LAYOUT)
def additive_views(query, key, w_query, w_key, v):
    return additive(query.view(-1).view(query.shape), key, w_query, w_key, v)


@breaks(ADDITIVE, LAYOUT)
def additive_views_of_weights(query, key, w_query, w_key, v):
    return additive(query, key, w_query, w_key.view(-1).view(w_key.shape), v)


for _number, _name in enumerate(("query", "key", "w_query", "w_key", "v")):

    def _changed(*args, number=_number):
        scores = additive(*args)
        args[number].mul_(2)
        return scores

    def _detached(*args, number=_number):
        return additive(*args[:number], args[number].detach(), *args[number + 1 :])

    breaks(ADDITIVE, f"{UNCHANGED}: {_name}")(_changed)
    breaks(ADDITIVE, f"{GRADIENTS}: {_name}")(_detached)


# attend

ATTEND = "attend"


def attend(scores, value):
    weights = softmax(scores)
    return weights @ value, weights


@breaks(ATTEND, BATCH)
def attend_only_batches(scores, value):
    if scores.dim() == 2:
        raise IndexError("there is no batch")
    return attend(scores, value)


@breaks(ATTEND, BATCH)
def attend_one_batch_at_most(scores, value):
    if scores.dim() > 3:
        raise IndexError("one batch dimension at most")
    return attend(scores, value)


@breaks(ATTEND, BATCH)
def attend_two_batches_at_most(scores, value):
    if scores.dim() > 4:
        raise IndexError("two batch dimensions at most")
    return attend(scores, value)


@breaks(ATTEND, "softmax over the keys, even if L_q = L_k")
def attend_square_turned(scores, value):
    square = scores.shape[-1] == scores.shape[-2]
    weights = softmax(scores, -2 if square else -1)
    return weights @ value, weights


@breaks(ATTEND, "output (..., L_q, d_v): axes of length one stay")
def attend_squeezed(scores, value):
    output, weights = attend(scores, value)
    return output.squeeze(-1), weights


@breaks(ATTEND, "weights (..., L_q, L_k): axes of length one stay")
def attend_weights_squeezed(scores, value):
    output, weights = attend(scores, value)
    return output, weights.squeeze(-2)


@breaks(ATTEND, "L_q, L_k and d_v are independent")
def attend_as_many(scores, value):
    output, weights = attend(scores, value)
    return output.reshape(value.shape), weights


@breaks(ATTEND, "finite for scores up to ±1e4")
def attend_overflows(scores, value):
    weights = overflows(scores)
    return weights @ value, weights


@breaks(ATTEND, "finite for scores up to ±1e4: far negative ones")
def attend_underflows(scores, value):
    weights = one_shift_for_all(scores)
    return weights @ value, weights


@breaks(ATTEND, "right for scores up to ±1e4")
def attend_clamped(scores, value):
    return attend(scores.clamp(-80, 80), value)


@breaks(ATTEND, ROUND)
def attend_in_float32(scores, value):
    return tuple(x.to(scores.dtype) for x in attend(scores.float(), value.float()))


@breaks(ATTEND, ROUND)
def attend_number_in_the_sum(scores, value):
    weights = number_in_the_sum(scores)
    return weights @ value, weights


@breaks(ATTEND, DTYPE + " of the weights")
def attend_weights_in_float32(scores, value):
    output, weights = attend(scores, value)
    return output, weights.float()


@breaks(ATTEND, DTYPE + " of the output")
def attend_output_in_float64(scores, value):
    output, weights = attend(scores, value)
    return output.double(), weights


@breaks(ATTEND, LAYOUT)
def attend_views(scores, value):
    return attend(scores.view(-1).view(scores.shape), value)


@breaks(ATTEND, LAYOUT)
def attend_views_of_values(scores, value):
    return attend(scores, value.view(-1).view(value.shape))


@breaks(ATTEND, UNCHANGED + ": scores")
def attend_changes_scores(scores, value):
    result = attend(scores, value)
    scores.sub_(1)
    return result


@breaks(ATTEND, UNCHANGED + ": value")
def attend_changes_value(scores, value):
    result = attend(scores, value)
    value.mul_(2)
    return result


@breaks(ATTEND, GRADIENTS + ": scores")
def attend_scores_detached(scores, value):
    return attend(scores.detach(), value)


@breaks(ATTEND, GRADIENTS + ": value")
def attend_value_detached(scores, value):
    return attend(scores, value.detach())


@breaks(ATTEND, GRADIENTS + " of the weights that come back")
def attend_weights_detached(scores, value):
    output, weights = attend(scores, value)
    return output, weights.detach()


@breaks(ATTEND, "returns (output, weights), in this order")
def attend_other_order(scores, value):
    return attend(scores, value)[::-1]


@breaks(ATTEND, "returns (output, weights), both")
def attend_output_only(scores, value):
    return attend(scores, value)[0]


@breaks(ATTEND, "returns (output, weights), and nothing more")
def attend_more(scores, value):
    return *attend(scores, value), scores


# kernel_regression

KERNEL = "kernel_regression"


def regression(x_query, x_key, y_key, bandwidth):
    scores = -((x_query[:, None] - x_key) ** 2) / (2 * bandwidth**2)
    return softmax(scores) @ y_key


@breaks(KERNEL, "(n,), (m,), (m,) → (n,): more queries than keys")
def regression_fewer_queries(x_query, x_key, y_key, bandwidth):
    return regression(x_query[: len(x_key)], x_key, y_key, bandwidth)


@breaks(KERNEL, "(n,), (m,), (m,) → (n,): more keys than queries")
def regression_fewer_keys(x_query, x_key, y_key, bandwidth):
    return regression(x_query, x_key[: len(x_query)], y_key[: len(x_query)], bandwidth)


@breaks(KERNEL, "(n,): a single query gives a vector of one")
def regression_squeezed(x_query, x_key, y_key, bandwidth):
    return regression(x_query, x_key, y_key, bandwidth).squeeze()


@breaks(KERNEL, "(m,): a single key decides alone")
def regression_two_keys(x_query, x_key, y_key, bandwidth):
    return regression(x_query, x_key, y_key, bandwidth) * (0 if len(x_key) == 1 else 1)


@breaks(KERNEL, "keys in any order")
def regression_sorted(x_query, x_key, y_key, bandwidth):
    return regression(x_query, x_key.sort().values, y_key, bandwidth)


@breaks(KERNEL, "queries in any order")
def regression_queries_sorted(x_query, x_key, y_key, bandwidth):
    return regression(x_query.sort().values, x_key, y_key, bandwidth)


@breaks(KERNEL, "finite for a query far from every key")
def regression_underflows(x_query, x_key, y_key, bandwidth):
    e = (-((x_query[:, None] - x_key) ** 2) / (2 * bandwidth**2)).exp()
    return e @ y_key / e.sum(-1)


@breaks(KERNEL, "finite for a query far from every key, and right")
def regression_zero_far_away(x_query, x_key, y_key, bandwidth):
    return regression_underflows(x_query, x_key, y_key, bandwidth).nan_to_num()


@breaks(KERNEL, "finite for a query far from every key, beside near ones")
def regression_one_shift(x_query, x_key, y_key, bandwidth):
    return one_shift_for_all(-((x_query[:, None] - x_key) ** 2) / (2 * bandwidth**2)) @ y_key


@breaks(KERNEL, "bandwidth: below 1")
def regression_wide(x_query, x_key, y_key, bandwidth):
    return regression(x_query, x_key, y_key, max(bandwidth, 1.0))


@breaks(KERNEL, "bandwidth: above 1")
def regression_narrow(x_query, x_key, y_key, bandwidth):
    return regression(x_query, x_key, y_key, min(bandwidth, 1.0))


@breaks(KERNEL, "bandwidth: a whole number")
def regression_float_bandwidth(x_query, x_key, y_key, bandwidth):
    return regression(x_query, x_key, y_key, bandwidth if isinstance(bandwidth, float) else float("nan"))


@breaks(KERNEL, ROUND)
def regression_in_float32(x_query, x_key, y_key, bandwidth):
    return regression(x_query.float(), x_key.float(), y_key.float(), bandwidth).to(x_query.dtype)


@breaks(KERNEL, ROUND)
def regression_by_products(x_query, x_key, y_key, bandwidth):
    scores = -(x_query[:, None] ** 2 - 2 * x_query[:, None] * x_key + x_key**2).half() / (2 * bandwidth**2)
    return softmax(scores.to(x_query.dtype)) @ y_key


@breaks(KERNEL, DTYPE)
def regression_in_float64(x_query, x_key, y_key, bandwidth):
    return regression(x_query.double(), x_key.double(), y_key.double(), bandwidth)


for _number, _name in enumerate(("x_query", "x_key", "y_key")):

    def _changed(*args, number=_number):
        estimates = regression(*args)
        args[number].mul_(2)
        return estimates

    def _detached(*args, number=_number):
        return regression(*args[:number], args[number].detach(), *args[number + 1 :])

    breaks(KERNEL, f"{UNCHANGED}: {_name}")(_changed)
    breaks(KERNEL, f"{GRADIENTS}: {_name}")(_detached)
