"""Solutions that break one clause of the contract each, for the exercises of this chapter."""

import math

import torch
import torch.nn.functional as F
from contract_clauses import breaks

ATTENTION = "scaled_dot_product_attention"
ROUND = "accurate to about 1e-5 in float32 and 1e-10 in float64"
UNCHANGED = "a solution leaves its arguments unchanged"
BROADCASTS = "a mask broadcasts against the scores (..., L_q, L_k)"
BATCH = "leading dimensions may be any number of batch dimensions, including none"
GRADIENTS = "lets gradients through"
DTYPE = "keeps the dtype"


def attention(query, key, value, mask=None):
    scores = query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])
    if mask is not None:
        scores = scores.masked_fill(~mask, float("-inf"))
    weights = scores.softmax(-1)
    return weights @ value, weights


# Shapes


@breaks(ATTENTION, BATCH)
def only_with_a_batch(query, key, value, mask=None):
    if query.dim() == 2:
        raise IndexError("there is no batch")
    return attention(query, key, value, mask)


@breaks(ATTENTION, BATCH)
def at_most_one_batch_dimension(query, key, value, mask=None):
    if query.dim() > 3:
        raise RuntimeError("batch2 must be a 3D tensor")
    return attention(query, key, value, mask)


@breaks(ATTENTION, BATCH)
def at_most_two_batch_dimensions(query, key, value, mask=None):
    letters = "abcd"[: query.dim() - 2] if query.dim() <= 4 else "ab"
    scores = torch.einsum(f"{letters}id,{letters}jd->{letters}ij", query, key) / math.sqrt(query.shape[-1])
    if mask is not None:
        scores = scores.masked_fill(~mask, float("-inf"))
    weights = scores.softmax(-1)
    return weights @ value, weights


@breaks(ATTENTION, "output is (..., L_q, d_v), d_v independent of d_k")
def values_as_wide_as_keys(query, key, value, mask=None):
    output, weights = attention(query, key, value, mask)
    return output.reshape(query.shape), weights


@breaks(ATTENTION, "L_q and L_k are independent")
def as_many_queries_as_keys(query, key, value, mask=None):
    output, weights = attention(query, key, value, mask)
    return output.reshape(*key.shape[:-1], value.shape[-1]), weights


@breaks(ATTENTION, "weights are (..., L_q, L_k)")
def batch_of_one_squeezed(query, key, value, mask=None):
    output, weights = attention(query, key, value, mask)
    return output, weights.squeeze()


@breaks(ATTENTION, "output is (..., L_q, d_v)")
def single_query_squeezed(query, key, value, mask=None):
    output, weights = attention(query, key, value, mask)
    return (output.squeeze(-2) if query.shape[-2] == 1 else output), weights


@breaks(ATTENTION, "a tensor is right in any layout of its memory")
def views_of_the_query(query, key, value, mask=None):
    flat = query.view(-1, query.shape[-1])
    return attention(flat.view(query.shape), key, value, mask)


@breaks(ATTENTION, "a tensor is right in any layout of its memory")
def views_of_the_value(query, key, value, mask=None):
    return attention(query, key, value.view(-1).view(value.shape), mask)


# The mask


@breaks(ATTENTION, "mask=None: without a mask every key counts")
def mask_is_needed(query, key, value, mask):
    return attention(query, key, value, mask)


@breaks(ATTENTION, BROADCASTS + ": (H, L_q, L_k) for each head, from the right")
def three_axes_are_one_per_sequence(query, key, value, mask=None):
    if mask is not None and mask.dim() == 3 and query.dim() == 4:
        mask = mask[:, None]
    return attention(query, key, value, mask)


@breaks(ATTENTION, BROADCASTS + ": (L_k,)")
def one_axis_is_refused(query, key, value, mask=None):
    if mask is not None:
        mask = mask.expand(*mask.shape[:-2], query.shape[-2], mask.shape[-1] * (mask.dim() > 1) or mask.shape[1])
    return attention(query, key, value, mask)


@breaks(ATTENTION, BROADCASTS + ": (B, 1, 1, L_k)")
def only_whole_masks(query, key, value, mask=None):
    scores = query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])
    if mask is not None:
        if mask.dim() == 2:
            mask = mask.expand(scores.shape)
        scores = scores.clone()
        scores[~mask] = float("-inf")
    weights = scores.softmax(-1)
    return weights @ value, weights


@breaks(ATTENTION, BROADCASTS + ": (B, L_q, L_k)")
def masks_of_the_first_sequence(query, key, value, mask=None):
    if mask is not None and mask.dim() == 3:
        mask = mask[:1]
    return attention(query, key, value, mask)


@breaks(ATTENTION, BROADCASTS + ": (1, H, L_q, L_k)")
def masks_of_the_first_head(query, key, value, mask=None):
    if mask is not None and mask.dim() == 4:
        mask = mask[:, :1]
    return attention(query, key, value, mask)


@breaks(ATTENTION, "True = may attend")
def true_is_masked(query, key, value, mask=None):
    return attention(query, key, value, None if mask is None else ~mask)


@breaks(ATTENTION, "masked keys get weight zero")
def masked_keys_keep_a_little(query, key, value, mask=None):
    scores = query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])
    if mask is not None:
        scores = scores.masked_fill(~mask, -20.0)
    weights = scores.softmax(-1)
    return weights @ value, weights


@breaks(ATTENTION, "masked keys get weight zero, even next to scores of -1e4")
def masked_with_a_thousand(query, key, value, mask=None):
    scores = query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])
    if mask is not None:
        scores = scores.masked_fill(~mask, -1e3)
    weights = scores.softmax(-1)
    return weights @ value, weights


# Numbers


@breaks(ATTENTION, "finite for large scores")
def overflows(query, key, value, mask=None):
    scores = query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])
    if mask is not None:
        scores = scores.masked_fill(~mask, float("-inf"))
    weights = scores.exp() / scores.exp().sum(-1, keepdim=True)
    return weights @ value, weights


@breaks(ATTENTION, "right for large scores")
def scores_clamped(query, key, value, mask=None):
    scores = (query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])).clamp(-80, 80)
    if mask is not None:
        scores = scores.masked_fill(~mask, float("-inf"))
    weights = scores.softmax(-1)
    return weights @ value, weights


@breaks(ATTENTION, ROUND)
def float32_inside(query, key, value, mask=None):
    output, weights = attention(query.float(), key.float(), value.float(), mask)
    return output.to(query.dtype), weights.to(query.dtype)


@breaks(ATTENTION, ROUND)
def half_inside(query, key, value, mask=None):
    if query.dtype == torch.float64:
        return attention(query, key, value, mask)
    output, weights = attention(query.bfloat16(), key.bfloat16(), value.bfloat16(), mask)
    return output.to(query.dtype), weights.to(query.dtype)


@breaks(ATTENTION, ROUND)
def number_in_the_sum(query, key, value, mask=None):
    _, weights = attention(query, key, value, mask)
    weights = weights / (weights.sum(-1, keepdim=True) + 1e-8)
    return weights @ value, weights


@breaks(ATTENTION, DTYPE)
def always_float64(query, key, value, mask=None):
    return attention(query.double(), key.double(), value.double(), mask)


@breaks(ATTENTION, DTYPE)
def weights_in_float32(query, key, value, mask=None):
    output, weights = attention(query, key, value, mask)
    return output, weights.float()


# Conduct


@breaks(ATTENTION, UNCHANGED + ": query")
def query_changed(query, key, value, mask=None):
    result = attention(query, key, value, mask)
    query.mul_(2)
    return result


@breaks(ATTENTION, UNCHANGED + ": key")
def key_changed(query, key, value, mask=None):
    result = attention(query, key, value, mask)
    key.div_(math.sqrt(key.shape[-1]))
    return result


@breaks(ATTENTION, UNCHANGED + ": value")
def value_changed(query, key, value, mask=None):
    result = attention(query, key, value, mask)
    value += 1
    return result


@breaks(ATTENTION, UNCHANGED + ": mask")
def mask_changed(query, key, value, mask=None):
    if mask is not None:
        mask.logical_not_()
        return attention(query, key, value, ~mask)
    return attention(query, key, value)


@breaks(ATTENTION, UNCHANGED + ": a broadcast mask")
def short_mask_changed(query, key, value, mask=None):
    result = attention(query, key, value, mask)
    if mask is not None and mask.dim() < query.dim():
        mask[...] = True
    return result


@breaks(ATTENTION, GRADIENTS + ": query")
def query_detached(query, key, value, mask=None):
    return attention(query.detach(), key, value, mask)


@breaks(ATTENTION, GRADIENTS + ": key")
def key_detached(query, key, value, mask=None):
    return attention(query, key.detach(), value, mask)


@breaks(ATTENTION, GRADIENTS + ": value")
def value_detached(query, key, value, mask=None):
    return attention(query, key, value.detach(), mask)


@breaks(ATTENTION, GRADIENTS + " of the weights that come back")
def weights_detached(query, key, value, mask=None):
    output, weights = attention(query, key, value, mask)
    return output, weights.detach()


@breaks(ATTENTION, GRADIENTS + " where a mask is given")
def detached_with_a_mask(query, key, value, mask=None):
    output, weights = attention(query, key, value, mask)
    return (output, weights) if mask is None else (output.detach(), weights)


@breaks(ATTENTION, "nothing depends on chance")
def drops_out(query, key, value, mask=None):
    _, weights = attention(query, key, value, mask)
    return F.dropout(weights, 0.5) @ value, weights


# What comes back


@breaks(ATTENTION, "returns (output, weights), in this order")
def other_order(query, key, value, mask=None):
    return attention(query, key, value, mask)[::-1]


@breaks(ATTENTION, "returns (output, weights), both")
def output_only(query, key, value, mask=None):
    return attention(query, key, value, mask)[0]


@breaks(ATTENTION, "returns (output, weights), both")
def dictionary(query, key, value, mask=None):
    output, weights = attention(query, key, value, mask)
    return {"output": output, "weights": weights}


@breaks(ATTENTION, "returns (output, weights), and nothing more")
def scores_too(query, key, value, mask=None):
    return *attention(query, key, value, mask), query @ key.transpose(-2, -1)


# softmax_backward

BACKWARD = "softmax_backward"


def backward(weights, grad_weights):
    return weights * (grad_weights - (weights * grad_weights).sum(-1, keepdim=True))


@breaks(BACKWARD, "both are (..., L): a vector, too")
def no_vector(weights, grad_weights):
    if weights.dim() == 1:
        raise IndexError("there are no rows")
    return backward(weights, grad_weights)


@breaks(BACKWARD, BATCH)
def rows_at_most(weights, grad_weights):
    return torch.einsum("...j,...j->...j", weights, grad_weights) - (
        weights * (weights * grad_weights).sum(1, keepdim=True)
        if weights.dim() == 2
        else backward_sum(weights, grad_weights)
    )


def backward_sum(weights, grad_weights):
    if weights.dim() > 3:
        raise RuntimeError("three axes at most")
    return weights * (weights * grad_weights).sum(-1, keepdim=True)


@breaks(BACKWARD, BATCH)
def at_most_four_axes(weights, grad_weights):
    if weights.dim() > 4:
        raise RuntimeError("four axes at most")
    return backward(weights, grad_weights)


@breaks(BACKWARD, "the gradient has the shape (..., L)")
def single_entry_squeezed(weights, grad_weights):
    return backward(weights, grad_weights).squeeze()


@breaks(BACKWARD, "right where a weight is exactly 0")
def divides_by_the_weights(weights, grad_weights):
    return backward(weights, grad_weights) / weights * weights


@breaks(BACKWARD, ROUND)
def backward_in_float32(weights, grad_weights):
    return backward(weights.float(), grad_weights.float()).to(weights.dtype)


@breaks(BACKWARD, ROUND)
def backward_in_half(weights, grad_weights):
    if weights.dtype == torch.float64:
        return backward(weights, grad_weights)
    return backward(weights.bfloat16(), grad_weights.bfloat16()).float()


@breaks(BACKWARD, DTYPE)
def backward_in_float64(weights, grad_weights):
    return backward(weights.double(), grad_weights.double())


@breaks(BACKWARD, UNCHANGED + ": weights")
def weights_changed(weights, grad_weights):
    result = backward(weights, grad_weights)
    weights *= grad_weights
    return result


@breaks(BACKWARD, UNCHANGED + ": grad_weights")
def gradient_changed(weights, grad_weights):
    result = backward(weights, grad_weights)
    grad_weights *= weights
    return result


@breaks(BACKWARD, "a tensor is right in any layout of its memory")
def backward_of_views(weights, grad_weights):
    rows = weights.view(-1, weights.shape[-1])
    return backward(rows, grad_weights.reshape(rows.shape)).view(weights.shape)


@breaks(BACKWARD, GRADIENTS)
def backward_detached(weights, grad_weights):
    return backward(weights, grad_weights).detach()


@breaks(BACKWARD, "no autograd")
def by_autograd(weights, grad_weights):
    with torch.enable_grad():
        scores = weights.clamp(min=1e-300 if weights.dtype == torch.float64 else 1e-38).log().detach().requires_grad_()
        (gradient,) = torch.autograd.grad(scores.softmax(-1), scores, grad_weights.detach())
    return gradient


# attention_flops

FLOPS = "attention_flops"


def flops(len_q, len_k, d_k, d_v):
    return 2 * len_q * len_k * (d_k + d_v)


@breaks(FLOPS, "int")
def flops_as_float(len_q, len_k, d_k, d_v):
    return float(flops(len_q, len_k, d_k, d_v))


@breaks(FLOPS, "int")
def flops_as_tensor(len_q, len_k, d_k, d_v):
    return torch.tensor(flops(len_q, len_k, d_k, d_v))


@breaks(FLOPS, "int, exact for long sequences")
def flops_in_float64(len_q, len_k, d_k, d_v):
    return int(2.0 * len_q * len_k * (d_k + d_v))


@breaks(FLOPS, "int, exact for long sequences")
def flops_in_int32(len_q, len_k, d_k, d_v):
    return flops(len_q, len_k, d_k, d_v) % 2**32


@breaks(FLOPS, "the two matrix products: queries times keys")
def flops_of_scores(len_q, len_k, d_k, d_v):
    return 2 * len_q * len_k * d_k


@breaks(FLOPS, "the two matrix products: weights times values")
def flops_of_output(len_q, len_k, d_k, d_v):
    return 2 * len_q * len_k * d_v


@breaks(FLOPS, "a multiply-add is counted as 2")
def flops_as_multiply_adds(len_q, len_k, d_k, d_v):
    return len_q * len_k * (d_k + d_v)


@breaks(FLOPS, "d_k and d_v are independent")
def flops_of_one_width(len_q, len_k, d_k, d_v):
    return 4 * len_q * len_k * d_v


@breaks(FLOPS, "len_q and len_k are independent")
def flops_of_one_length(len_q, len_k, d_k, d_v):
    return 2 * len_q**2 * (d_k + d_v)


@breaks(FLOPS, "the two matrix products: nothing else is counted")
def flops_with_softmax(len_q, len_k, d_k, d_v):
    return flops(len_q, len_k, d_k, d_v) + 3 * len_q * len_k


# self_attention

SELF = "self_attention"


def among(x, w_q, w_k, w_v, mask=None):
    return attention(x @ w_q, x @ w_k, x @ w_v, mask)


@breaks(SELF, BATCH)
def self_without_a_batch_refused(x, w_q, w_k, w_v, mask=None):
    if x.dim() == 2:
        raise IndexError("there is no batch")
    return among(x, w_q, w_k, w_v, mask)


@breaks(SELF, BATCH)
def self_at_most_one_batch_dimension(x, w_q, w_k, w_v, mask=None):
    if x.dim() > 3:
        raise RuntimeError("batch2 must be a 3D tensor")
    return among(x, w_q, w_k, w_v, mask)


@breaks(SELF, "queries are x · w_q")
def self_queries_by_keys_matrix(x, w_q, w_k, w_v, mask=None):
    return among(x, w_k, w_k, w_v, mask)


@breaks(SELF, "keys are x · w_k")
def self_keys_by_queries_matrix(x, w_q, w_k, w_v, mask=None):
    return among(x, w_q, w_q, w_v, mask)


@breaks(SELF, "values are x · w_v")
def self_values_doubled(x, w_q, w_k, w_v, mask=None):
    return among(x, w_q, w_k, 2 * w_v, mask)


@breaks(SELF, "d_k and d_v are independent of d_model")
def self_square_matrices_only(x, w_q, w_k, w_v, mask=None):
    output, weights = among(x, w_q, w_k, w_v, mask)
    return output.reshape(x.shape), weights


@breaks(SELF, "scaled by the width of queries and keys")
def self_scaled_by_the_width_of_x(x, w_q, w_k, w_v, mask=None):
    return among(x, w_q * math.sqrt(w_q.shape[-1] / x.shape[-1]), w_k, w_v, mask)


@breaks(SELF, "True = may attend")
def self_true_is_masked(x, w_q, w_k, w_v, mask=None):
    return among(x, w_q, w_k, w_v, None if mask is None else ~mask)


@breaks(SELF, "the mask broadcasts against (..., L, L)")
def self_first_row_of_the_mask(x, w_q, w_k, w_v, mask=None):
    return among(x, w_q, w_k, w_v, None if mask is None else mask[..., :1, :] if mask.dim() > 1 else mask)


@breaks(SELF, "masked keys get weight zero, and the others share all of it")
def self_mask_after_the_softmax(x, w_q, w_k, w_v, mask=None):
    _, weights = among(x, w_q, w_k, w_v)
    if mask is not None:
        weights = weights * mask
    return weights @ (x @ w_v), weights


@breaks(SELF, ROUND)
def self_float32_inside(x, w_q, w_k, w_v, mask=None):
    results = among(x.float(), w_q.float(), w_k.float(), w_v.float(), mask)
    return tuple(result.to(x.dtype) for result in results)


@breaks(SELF, "finite for large scores")
def self_overflows(x, w_q, w_k, w_v, mask=None):
    exponentials = ((x @ w_q) @ (x @ w_k).mT / math.sqrt(w_q.shape[-1])).exp()
    if mask is not None:
        exponentials = exponentials * mask
    weights = exponentials / exponentials.sum(-1, keepdim=True)
    return weights @ (x @ w_v), weights


@breaks(SELF, UNCHANGED + ": x")
def self_x_changed(x, w_q, w_k, w_v, mask=None):
    result = among(x, w_q, w_k, w_v, mask)
    with torch.no_grad():
        x.zero_()
    return result


@breaks(SELF, GRADIENTS + ": the matrices")
def self_matrices_detached(x, w_q, w_k, w_v, mask=None):
    return among(x, w_q.detach(), w_k.detach(), w_v.detach(), mask)
