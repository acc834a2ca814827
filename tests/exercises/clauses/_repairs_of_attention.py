"""Solutions to the repairs of attention, masks and layer norm that break one clause of the contract each."""

import math

import torch
import torch.nn.functional as F
from contract_clauses import breaks

BATCH = "any number of batch dimensions, none included"
UNCHANGED = "arguments are left unchanged"
DTYPE = "dtype is kept"
GRADIENTS = "gradients get through"
ACCURATE = "accurate to about 1e-10 in float64"
LARGE = "finite for scores of up to ±1e4"
LAYOUT = "a tensor is handled correctly in any memory layout"


def around(exercise, right):
    """Register what `change` makes of the arguments of a right call, under a name of its own."""

    def of(name, clause, change):
        def solution(*args):
            return change(right, *args)

        solution.__name__ = name
        breaks(exercise, clause)(solution)

    return of


def in_float32(right, *args):
    result = right(*(x.float() if isinstance(x, torch.Tensor) and x.is_floating_point() else x for x in args))
    dtype = args[0].dtype
    return tuple(x.to(dtype) for x in result) if isinstance(result, tuple) else result.to(dtype)


def always_float64(right, *args):
    result = right(*(x.double() if isinstance(x, torch.Tensor) and x.is_floating_point() else x for x in args))
    return tuple(result) if isinstance(result, tuple) else result


def no_single_sequence(right, query, *args):
    if query.dim() == 2:
        raise IndexError("there is no batch")
    return right(query, *args)


def one_batch_dimension_at_most(right, query, *args):
    if query.dim() > 3:
        raise RuntimeError("batch2 must be a 3D tensor")
    return right(query, *args)


def two_batch_dimensions_at_most(right, query, *args):
    if query.dim() > 4:
        raise RuntimeError("four axes at most")
    return right(query, *args)


def views(right, query, *args):
    return right(query.view(-1).view(query.shape), *args)


# fix_scaled_attention


def attention(query, key, value):
    weights = (query @ key.mT / math.sqrt(query.shape[-1])).softmax(-1)
    return weights @ value, weights


of = around("fix_scaled_attention", attention)
SCALED = "scores divided by √d_k"

of("not_scaled", SCALED, lambda right, q, k, v: right(q * math.sqrt(q.shape[-1]), k, v))
of("by_d_k", SCALED + ", not by d_k", lambda right, q, k, v: right(q / math.sqrt(q.shape[-1]), k, v))
of(
    "wide_heads_not_scaled",
    SCALED + ", in wide heads, too",
    lambda right, q, k, v: right(q * math.sqrt(q.shape[-1]) if q.shape[-1] > 32 else q, k, v),
)
of(
    "never_below_two",
    SCALED + ", where d_k is 1, too",
    lambda right, q, k, v: right(q / (1 + (q.shape[-1] == 1)), k, v),
)
of("output_of_unscaled", SCALED + ", for the output", lambda right, q, k, v: (right(q * 2, k, v)[0], right(q, k, v)[1]))
of("weights_unscaled", SCALED + ", for the weights", lambda right, q, k, v: (right(q, k, v)[0], right(q * 2, k, v)[1]))
of("output_only", "(output, weights): both", lambda right, *args: right(*args)[0])
of("weights_first", "(output, weights): in this order", lambda right, *args: right(*args)[::-1])
of(
    "single_query_squeezed",
    "output (..., L_q, d_v)",
    lambda right, *args: (right(*args)[0].squeeze(-2), right(*args)[1]),
)
of("weights_turned", "weights (..., L_q, L_k)", lambda right, *args: (right(*args)[0], right(*args)[1].mT))
of("weights_detached", GRADIENTS, lambda right, q, k, v: right(q, k.detach(), v))
of("returned_weights_detached", GRADIENTS, lambda right, *args: (right(*args)[0], right(*args)[1].detach()))
of("no_single_sequence", BATCH, no_single_sequence)
of("one_batch_dimension_at_most", BATCH, one_batch_dimension_at_most)
of("two_batch_dimensions_at_most", BATCH, two_batch_dimensions_at_most)
of("in_float32", ACCURATE, in_float32)
of("always_float64", DTYPE, always_float64)
of("views_of_the_query", LAYOUT, views)


@breaks("fix_scaled_attention", LARGE)
def exponentials_of_scores(query, key, value):
    powers = (query @ key.mT / math.sqrt(query.shape[-1])).exp()
    weights = powers / powers.sum(-1, keepdim=True)
    return weights @ value, weights


@breaks("fix_scaled_attention", UNCHANGED)
def query_scaled_in_place(query, key, value):
    result = attention(query, key, value)
    with torch.no_grad():
        query.div_(2.0)
    return result


# fix_attention_weights


def weights_of(query, key):
    return (query @ key.mT / math.sqrt(query.shape[-1])).softmax(-1)


of = around("fix_attention_weights", weights_of)
ROWS = "rows sum to one over the keys"


@breaks("fix_attention_weights", ROWS + ", with one batch dimension")
def over_queries_in_a_batch(query, key):
    scores = query @ key.mT / math.sqrt(query.shape[-1])
    return scores.softmax(1 if scores.dim() == 3 else -1)


@breaks("fix_attention_weights", ROWS + ", with two batch dimensions")
def over_heads(query, key):
    scores = query @ key.mT / math.sqrt(query.shape[-1])
    return scores.softmax(1 if scores.dim() == 4 else -1)


@breaks("fix_attention_weights", ROWS + ", with three batch dimensions")
def over_axis_3_at_most(query, key):
    scores = query @ key.mT / math.sqrt(query.shape[-1])
    return scores.softmax(min(3, scores.dim() - 1))


@breaks("fix_attention_weights", ROWS + ", without a batch")
def over_queries_without_a_batch(query, key):
    scores = query @ key.mT / math.sqrt(query.shape[-1])
    return scores.softmax(0 if scores.dim() == 2 else -1)


@breaks("fix_attention_weights", BATCH)
def keys_transposed_from_the_left(query, key):
    return (query @ key.transpose(1, 2) / math.sqrt(query.shape[-1])).softmax(-1)


@breaks("fix_attention_weights", LARGE)
def weights_by_exponentials(query, key):
    powers = (query @ key.mT / math.sqrt(query.shape[-1])).exp()
    return powers / powers.sum(-1, keepdim=True)


@breaks("fix_attention_weights", UNCHANGED)
def key_scaled_in_place(query, key):
    result = weights_of(query, key)
    with torch.no_grad():
        key.div_(2.0)
    return result


of("not_scaled", "QKᵀ/√d_k: the scale", lambda right, q, k: right(q * math.sqrt(q.shape[-1]), k))
of("turned", "(..., L_q, L_k)", lambda right, q, k: right(q, k).mT)
of("squeezed", "(..., L_q, L_k): axes of length one stay", lambda right, q, k: right(q, k).squeeze())
of("keys_detached", GRADIENTS, lambda right, q, k: right(q, k.detach()))
of("no_single_sequence", BATCH, no_single_sequence)
of("one_batch_dimension_at_most", BATCH, one_batch_dimension_at_most)
of("two_batch_dimensions_at_most", BATCH, two_batch_dimensions_at_most)
of("in_float32", ACCURATE, in_float32)
of("always_float64", DTYPE, always_float64)
of("views_of_the_query", LAYOUT, views)


# fix_masked_softmax


def masked(scores, mask):
    has_key = mask.any(-1, keepdim=True)
    return scores.masked_fill(~mask & has_key, -math.inf).softmax(-1).masked_fill(~has_key, 0.0)


of = around("fix_masked_softmax", masked)
EMPTY = "a fully masked row is all zeros"
ZERO = "weights exactly 0 where masked"
SPREADS = "a mask broadcasts to the scores"


def refused(dtype):
    def change(right, scores, mask):
        if scores.dtype == dtype:
            raise RuntimeError("value cannot be converted without overflow")
        return right(scores, mask)

    return change


for _dtype in (torch.float16, torch.bfloat16, torch.float32, torch.float64):
    _name = str(_dtype).removeprefix("torch.")
    of(f"no_{_name}", f"works in {_name}", refused(_dtype))


def without_zeros(fill):
    return lambda right, scores, mask: scores.masked_fill(~mask, fill(scores.dtype)).softmax(-1)


def lowest(dtype):
    return torch.finfo(dtype).min


of("turned_round", "True = may attend", lambda right, scores, mask: right(scores, ~mask))
of("tiny_weights", ZERO, lambda right, scores, mask: right(scores, mask).clamp(min=1e-12) * mask.any(-1, keepdim=True))
of(
    "ten_thousand",
    ZERO + ", next to scores of -1e4",
    lambda right, scores, mask: scores.masked_fill(~mask, -1e4).softmax(-1) * mask.any(-1, keepdim=True),
)
of("weights_masked", "rows sum to 1", lambda right, scores, mask: scores.softmax(-1) * mask)
of("nan_rows", EMPTY + ", not nan", without_zeros(lambda dtype: -math.inf))
of("uniform_rows", EMPTY + ", not uniform", without_zeros(lowest))
of(
    "zeros_only_if_all_are_masked",
    EMPTY + ", next to others",
    lambda right, scores, mask: right(scores, mask) if not mask.any() else without_zeros(lowest)(right, scores, mask),
)
of(
    "all_zeros_for_one_empty_row",
    EMPTY + ", and no other row",
    lambda right, scores, mask: right(scores, mask) * mask.any(-1).all(),
)
of(
    "uniform_in_half_precision",
    EMPTY + ", in float16 and bfloat16",
    lambda right, scores, mask: (right if scores.dtype.itemsize > 2 else lambda *a: without_zeros(lowest)(right, *a))(
        scores, mask
    ),
)
of(
    "nan_in_the_gradient",
    "gradients finite",
    lambda right, scores, mask: (
        (scores + torch.zeros_like(scores).masked_fill(~mask, -math.inf)).softmax(-1).nan_to_num(0.0)
    ),
)
of("detached", GRADIENTS, lambda right, scores, mask: right(scores.detach(), mask))
of("float32_comes_back", DTYPE, lambda right, scores, mask: right(scores.float(), mask))
of("in_float32", ACCURATE, in_float32)
of("no_single_sequence", BATCH, no_single_sequence)
of("two_batch_dimensions_at_most", BATCH, two_batch_dimensions_at_most)
of("views_of_the_scores", LAYOUT, views)
of(
    "full_masks_only",
    SPREADS + ": (L_q, L_k)",
    lambda right, scores, mask: right(scores, mask if mask.dim() != 2 or scores.dim() == 2 else mask[:, None]),
)
of(
    "vectors_for_queries",
    SPREADS + ": (L_k,)",
    lambda right, scores, mask: right(scores, mask[:, None] if mask.dim() == 1 else mask),
)
of(
    "first_sequence_for_all",
    SPREADS + ": (B, 1, 1, L_k)",
    lambda right, scores, mask: right(scores, mask[:1] if mask.dim() == 4 and mask.shape[2] == 1 else mask),
)
of(
    "first_sequence_of_three_axes",
    SPREADS + ": (B, 1, L_k)",
    lambda right, scores, mask: right(scores, mask[:1] if mask.dim() == 3 and mask.shape[1] == 1 else mask),
)
of(
    "first_head_for_all",
    SPREADS + ": (H, L_q, L_k)",
    lambda right, scores, mask: right(scores, mask[:1] if mask.dim() == 3 < scores.dim() else mask),
)
of(
    "one_per_sequence",
    SPREADS + ": (H, L_q, L_k), as many sequences as heads",
    lambda right, scores, mask: right(
        scores, mask[:, None] if mask.dim() == 3 < scores.dim() and len(mask) == len(scores) else mask
    ),
)
of(
    "first_query_for_all",
    SPREADS + ": (L_q, 1)",
    lambda right, scores, mask: right(scores, mask[..., :1, :] if mask.shape[-1] == 1 else mask),
)


@breaks("fix_masked_softmax", "the caller's scores are unchanged")
def scores_filled_in_place(scores, mask):
    result = masked(scores, mask)
    with torch.no_grad():
        scores.masked_fill_(~mask, -math.inf)
    return result


@breaks("fix_masked_softmax", UNCHANGED + ": the mask")
def mask_opened_in_place(scores, mask):
    result = masked(scores, mask)
    mask |= ~mask.any(-1, keepdim=True)
    return result


# fix_padding_mask


def padded(query, key, value, real):
    return F.scaled_dot_product_attention(query, key, value, attn_mask=real.bool()[:, None, None, :])


def added(query, key, value, numbers):
    return F.scaled_dot_product_attention(query, key, value, attn_mask=numbers[:, None, None, :].to(query.dtype))


of = around("fix_padding_mask", padded)
REAL = "attention to the real keys only"

of(
    "floats_added",
    "real in the query's dtype",
    lambda right, q, k, v, real: (added if real.is_floating_point() else right)(q, k, v, real),
)
of(
    "integers_added",
    "real as integers",
    lambda right, q, k, v, real: (right if real.is_floating_point() else added)(q, k, v, real),
)
of(
    "int32_added",
    "real as integers: int32, too",
    lambda right, q, k, v, real: (added if real.dtype == torch.int32 else right)(q, k, v, real),
)
of("turned_round", "1 = real token", lambda right, q, k, v, real: right(q, k, v, real == 0))
of("ten_thousand", REAL + ", however large the others' scores", lambda right, q, k, v, real: added(q, k, v, real * 1e4))
of("billion_wrong_way", REAL, lambda right, q, k, v, real: added(q, k, v, (1 - real) * 1e9))
of("real_ignored", REAL, lambda right, q, k, v, real: right(q, k, v, torch.ones_like(real)))
of("nearly_masked", REAL + ": no weight for padding", lambda right, q, k, v, real: added(q, k, v, real * 12.0))
of("first_for_all", "real (B, L_k): each sequence its own", lambda right, q, k, v, real: right(q, k, v, real[:1]))
of(
    "counted",
    REAL + ", wherever the padding is",
    lambda right, q, k, v, real: right(q, k, v, torch.arange(real.shape[-1]) < real.sum(-1, keepdim=True)),
)
of(
    "from_the_first_to_the_last",
    REAL + ", padding between real tokens, too",
    lambda right, q, k, v, real: right(
        q, k, v, real.bool().cummax(-1).values & real.bool().flip(-1).cummax(-1).values.flip(-1)
    ),
)
of(
    "nothing_masked_for_one_query",
    "L_q = 1",
    lambda right, q, k, v, real: right(q, k, v, real if q.shape[-2] > 1 else torch.ones_like(real)),
)
of("batch_squeezed", "(B, H, L_q, d_v): a batch of one keeps its axis", lambda right, *args: right(*args).squeeze(0))
of("heads_squeezed", "(B, H, L_q, d_v): one head keeps its axis", lambda right, *args: right(*args).squeeze(1))
of("heads_merged", "(B, H, L_q, d_v)", lambda right, *args: right(*args).transpose(1, 2).flatten(2))
of("not_scaled", "scaled dot-product attention", lambda right, q, k, v, real: right(q * q.shape[-1] ** 0.5, k, v, real))
of("values_detached", GRADIENTS, lambda right, q, k, v, real: right(q, k, v.detach(), real))
of("in_float32", ACCURATE, in_float32)
of("always_float64", DTYPE, always_float64)


@breaks("fix_padding_mask", UNCHANGED)
def real_changed(query, key, value, real):
    result = padded(query, key, value, real)
    real.sub_(1)
    return result


@breaks("fix_padding_mask", UNCHANGED)
def padding_emptied(query, key, value, real):
    result = padded(query, key, value, real)
    with torch.no_grad():
        value.mul_(real[:, None, :, None])
    return result


# fix_cached_attention


def cached(query, key, value, more=0):
    len_q, len_k = query.shape[-2], key.shape[-2]
    past = torch.ones(len_q, len_k, dtype=torch.bool).tril(len_k - len_q + more)
    return F.scaled_dot_product_attention(query, key, value, attn_mask=past)


of = around("fix_cached_attention", cached)
ALIGNED = "the queries are the last L_q of the L_k positions"


def lengths(query, key):
    return query.shape[-2], key.shape[-2]


def where(condition, other):
    """Another computation where a condition on the two lengths holds."""
    return lambda right, q, k, v: (other if condition(*lengths(q, k)) else right)(q, k, v)


def top_left(query, key, value):
    return F.scaled_dot_product_attention(query, key, value, is_causal=True)


of("top_left_for_one", ALIGNED + ": L_q = 1", where(lambda m, n: m == 1, top_left))
of("top_left_for_several", ALIGNED + ": 1 < L_q < L_k", where(lambda m, n: m > 1, top_left))
of("top_left_after_one_token", ALIGNED + ": L_q = L_k - 1", where(lambda m, n: m == n - 1, top_left))
of("top_left_behind_a_long_cache", ALIGNED + ": L_q ≤ L_k / 2", where(lambda m, n: 1 < m <= n / 2, top_left))
of(
    "last_keys_only",
    ALIGNED + ": all keys before them",
    lambda right, q, k, v: top_left(q, *(x[..., -q.shape[-2] :, :] for x in (k, v))),
)
of("open_for_several", "causal: 1 < L_q < L_k", where(lambda m, n: 1 < m < n, F.scaled_dot_product_attention))
of("open_without_a_cache", "causal: L_q = L_k", where(lambda m, n: m == n, F.scaled_dot_product_attention))
of("one_ahead", "causal: not the next position", lambda right, q, k, v: right(q, k, v, 1))
of("without_itself", "causal: its own position", where(lambda m, n: n > m, lambda q, k, v: cached(q, k, v, -1)))
of("all_rows", "(..., L_q, d_v)", lambda right, q, k, v: top_left(F.pad(q, (0, 0, k.shape[-2] - q.shape[-2], 0)), k, v))
of("one_row_squeezed", "(..., L_q, d_v): L_q = 1", lambda right, *args: right(*args).squeeze(-2))
of("as_wide_as_keys", "d_v independent of d", lambda right, q, k, v: right(q, k, v).reshape(q.shape))
of("not_scaled", "scaled dot-product attention", lambda right, q, k, v: right(q * q.shape[-1] ** 0.5, k, v))
of("keys_detached", GRADIENTS, lambda right, q, k, v: right(q, k.detach(), v))
of("no_single_sequence", BATCH, no_single_sequence)
of("one_batch_dimension_at_most", BATCH, one_batch_dimension_at_most)
of("two_batch_dimensions_at_most", BATCH, two_batch_dimensions_at_most)
of("in_float32", ACCURATE, in_float32)
of("always_float64", DTYPE, always_float64)
of("views_of_the_query", LAYOUT, views)


@breaks("fix_cached_attention", UNCHANGED)
def newest_value_overwritten(query, key, value):
    result = cached(query, key, value)
    with torch.no_grad():
        value[..., -1, :] = 0
    return result


# fix_layer_norm


def normed(x, gain, bias, eps=1e-5, *, correction=0, outside=False, axes=-1):
    variance = x.var(axes, keepdim=True, correction=correction)
    root = variance.sqrt() + eps if outside else (variance + eps).sqrt()
    return gain * (x - x.mean(axes, keepdim=True)) / root + bias


NORM = "fix_layer_norm"


def of_norm(name, clause, **changes):
    def solution(x, gain, bias, eps=1e-5):
        return normed(x, gain, bias, eps, **{key: change(x, eps) for key, change in changes.items()})

    solution.__name__ = name
    breaks(NORM, clause)(solution)


of_norm("unbiased", "biased variance", correction=lambda x, eps: 1)
of_norm("unbiased_where_narrow", "biased variance, of two features, too", correction=lambda x, eps: x.shape[-1] < 3)
of_norm("unbiased_where_wide", "biased variance, of wide vectors, too", correction=lambda x, eps: x.shape[-1] > 32)
of_norm("unbiased_without_eps", "biased variance, with eps = 0", correction=lambda x, eps: not eps)
of_norm("eps_outside", "eps under the root", outside=lambda x, eps: True)
of_norm("eps_outside_by_default", "eps under the root, the default, too", outside=lambda x, eps: eps == 1e-5)
of_norm("eps_outside_if_large", "eps under the root, where it is large, too", outside=lambda x, eps: eps > 0.1)
of_norm("over_two_axes", "over the last axis", axes=lambda x, eps: (-2, -1) if x.dim() == 2 else -1)
of_norm("over_axis_1", "over the last axis, whatever their number", axes=lambda x, eps: 1 if x.dim() == 3 else -1)
of_norm("over_axis_2", "over the last axis, whatever their number", axes=lambda x, eps: min(2, x.dim() - 1))


@breaks(NORM, "eps=1e-5 unless it is given")
def eps_has_no_default(x, gain, bias, eps):
    return normed(x, gain, bias, eps)


@breaks(NORM, "eps=1e-5 unless it is given")
def another_default(x, gain, bias, eps=1e-6):
    return normed(x, gain, bias, eps)


@breaks(NORM, "eps may be 0")
def zero_taken_for_not_given(x, gain, bias, eps=1e-5):
    return normed(x, gain, bias, eps or 1e-5)


@breaks(NORM, "eps as it is given")
def eps_not_used(x, gain, bias, eps=1e-5):
    return normed(x, gain, bias)


@breaks(NORM, "eps is a number, used in a vector of equal features")
def eps_left_out(x, gain, bias, eps=1e-5):
    return normed(x, gain, bias, 0.0 if eps == 1e-5 and x.std() > 0.1 else eps)


@breaks(NORM, "gain")
def gain_as_an_addend(x, gain, bias, eps=1e-5):
    return normed(x, 1 + gain, bias, eps)


@breaks(NORM, "bias")
def bias_before_the_gain(x, gain, bias, eps=1e-5):
    return normed(x, gain, gain * bias, eps)


@breaks(NORM, GRADIENTS)
def variance_detached(x, gain, bias, eps=1e-5):
    variance = x.var(-1, keepdim=True, correction=0).detach()
    return gain * (x - x.mean(-1, keepdim=True)) / (variance + eps).sqrt() + bias


@breaks(NORM, GRADIENTS + ": finite ones, in a vector of equal features too")
def root_before_eps(x, gain, bias, eps=1e-5):
    centred = x - x.mean(-1, keepdim=True)
    deviation = centred.square().mean(-1, keepdim=True).sqrt()
    return gain * centred / (deviation**2 + eps).sqrt() + bias


@breaks(NORM, GRADIENTS + ": to gain and bias")
def gain_detached(x, gain, bias, eps=1e-5):
    return normed(x, gain.detach(), bias, eps)


@breaks(NORM, UNCHANGED)
def centred_in_place(x, gain, bias, eps=1e-5):
    result = normed(x, gain, bias, eps)
    with torch.no_grad():
        x -= x.mean(-1, keepdim=True)
    return result


@breaks(NORM, DTYPE)
def norm_in_float64(x, gain, bias, eps=1e-5):
    return normed(x.double(), gain.double(), bias.double(), eps)


@breaks(NORM, ACCURATE)
def norm_in_float32(x, gain, bias, eps=1e-5):
    return normed(x.float(), gain.float(), bias.float(), eps).to(x.dtype)


@breaks(NORM, BATCH)
def no_single_vector(x, gain, bias, eps=1e-5):
    if x.dim() == 1:
        raise IndexError("there is no batch")
    return normed(x, gain, bias, eps)


@breaks(NORM, BATCH)
def three_axes_at_most(x, gain, bias, eps=1e-5):
    if x.dim() > 3:
        raise IndexError("three axes at most")
    return normed(x, gain, bias, eps)
