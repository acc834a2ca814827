"""Solutions that break one clause of the contract each, for the exercises of this chapter."""

import math

import torch
import torch.nn.functional as F
from contract_clauses import breaks
from torch import nn

ROUND = "accurate to about 1e-5 in float32 and 1e-10 in float64"
UNCHANGED = "a solution leaves its arguments unchanged"
BATCH = "leading dimensions may be any number of batch dimensions, including none"
GRADIENTS = "lets gradients through"
DTYPE = "keeps the dtype"
LAYOUT = "a tensor is handled correctly in any memory layout"
CHANCE = "nothing depends on chance"

# split_heads

SPLIT = "split_heads"


def split(x, num_heads):
    if x.shape[-1] % num_heads:
        raise ValueError("num_heads must divide d_model")
    return x.unflatten(-1, (num_heads, -1)).transpose(-3, -2)


@breaks(SPLIT, BATCH)
def split_only_batches(x, num_heads):
    if x.dim() == 2:
        raise IndexError("there is no batch")
    return split(x, num_heads)


@breaks(SPLIT, BATCH)
def split_one_batch_at_most(x, num_heads):
    if x.dim() > 3:
        raise RuntimeError("three axes at most")
    return split(x, num_heads)


@breaks(SPLIT, BATCH)
def split_two_batches_at_most(x, num_heads):
    return split(x, num_heads) if x.dim() <= 4 else split(x.flatten(0, -4), num_heads)


@breaks(SPLIT, "(..., num_heads, L, d_model // num_heads): axes of length one stay")
def split_squeezed(x, num_heads):
    return split(x, num_heads).squeeze(0)


@breaks(SPLIT, "(..., num_heads, L, d_model // num_heads): one head keeps its axis")
def split_one_head_squeezed(x, num_heads):
    return split(x, num_heads) if num_heads > 1 else x


@breaks(SPLIT, "head h takes the h-th contiguous slice of the features")
def split_dealt(x, num_heads):
    split(x, num_heads)
    return x.unflatten(-1, (-1, num_heads)).movedim(-1, -3)


@breaks(SPLIT, "head h takes the h-th slice, in the order of the heads")
def split_backwards(x, num_heads):
    return split(x, num_heads).flip(-3)


@breaks(SPLIT, "ValueError where it does not divide")
def split_without_check(x, num_heads):
    return x.unflatten(-1, (num_heads, -1)).transpose(-3, -2)


@breaks(SPLIT, "ValueError where it does not divide")
def split_with_type_error(x, num_heads):
    if x.shape[-1] % num_heads:
        raise TypeError("num_heads must divide d_model")
    return split(x, num_heads)


@breaks(SPLIT, "ValueError where it does not divide, more heads than features included")
def split_fewer_features_than_heads(x, num_heads):
    if x.shape[-1] % num_heads and num_heads < x.shape[-1]:
        raise ValueError("num_heads must divide d_model")
    return x.unflatten(-1, (num_heads, x.shape[-1] // num_heads)).transpose(-3, -2)


@breaks(SPLIT, "where it divides there is no ValueError: one head")
def split_refuses_one_head(x, num_heads):
    if num_heads == 1:
        raise ValueError("more than one head")
    return split(x, num_heads)


@breaks(SPLIT, "where it divides there is no ValueError: heads of one feature")
def split_refuses_narrow_heads(x, num_heads):
    if num_heads == x.shape[-1]:
        raise ValueError("less heads than features")
    return split(x, num_heads)


@breaks(SPLIT, LAYOUT)
def split_views(x, num_heads):
    split(x, num_heads)
    flat = x.view(-1)
    return split(flat.view(x.shape), num_heads)


@breaks(SPLIT, DTYPE)
def split_in_float32(x, num_heads):
    return split(x, num_heads).float()


@breaks(SPLIT, ROUND)
def split_through_float32(x, num_heads):
    return split(x.float(), num_heads).to(x.dtype)


@breaks(SPLIT, UNCHANGED)
def split_in_place(x, num_heads):
    heads = split(x, num_heads).clone()
    x.zero_()
    return heads


@breaks(SPLIT, UNCHANGED + ": its shape, too")
def split_unsqueezes(x, num_heads):
    heads = split(x, num_heads)
    x.unsqueeze_(0)
    return heads


@breaks(SPLIT, GRADIENTS)
def split_detached(x, num_heads):
    return split(x.detach(), num_heads)


# merge_heads

MERGE = "merge_heads"


def merge(x):
    return x.transpose(-3, -2).flatten(-2)


@breaks(MERGE, BATCH)
def merge_only_batches(x):
    if x.dim() == 3:
        raise IndexError("there is no batch")
    return merge(x)


@breaks(MERGE, BATCH)
def merge_one_batch_at_most(x):
    return merge(x if x.dim() <= 4 else x.flatten(0, -4))


@breaks(MERGE, BATCH)
def merge_two_batches_at_most(x):
    return merge(x if x.dim() <= 5 else x.flatten(0, -4))


@breaks(MERGE, "(..., L, H · d_head): axes of length one stay")
def merge_squeezed(x):
    return merge(x).squeeze(-2)


@breaks(MERGE, "(..., L, H · d_head): a batch of one keeps its axis")
def merge_batch_squeezed(x):
    return merge(x).squeeze(0)


@breaks(MERGE, "the inverse of split_heads: head after head")
def merge_interleaved(x):
    return x.movedim(-3, -1).flatten(-2)


@breaks(MERGE, "the inverse of split_heads: in the order of the heads")
def merge_backwards(x):
    return merge(x.flip(-3))


@breaks(MERGE, "the inverse of split_heads, for one head as well")
def merge_leaves_one_head(x):
    return merge(x) if x.shape[-3] > 1 else x


@breaks(MERGE, "the inverse of split_heads: any number of positions")
def merge_one_position(x):
    return merge(x) if x.shape[-2] > 1 else x.flatten(-2)


@breaks(MERGE, LAYOUT)
def merge_views(x):
    return merge(x.view(-1).view(x.shape))


@breaks(MERGE, LAYOUT + ": what split_heads gives back")
def merge_views_of_transposed(x):
    return merge(x) if x.is_contiguous() else merge(x.as_strided(x.shape, x.contiguous().stride()))


@breaks(MERGE, DTYPE)
def merge_in_float32(x):
    return merge(x).float()


@breaks(MERGE, ROUND)
def merge_through_float32(x):
    return merge(x.float()).to(x.dtype)


@breaks(MERGE, UNCHANGED)
def merge_in_place(x):
    merged = merge(x)
    x.zero_()
    return merged


@breaks(MERGE, UNCHANGED + ": its shape, too")
def merge_transposes(x):
    merged = merge(x)
    x.transpose_(-3, -2)
    return merged


@breaks(MERGE, GRADIENTS)
def merge_detached(x):
    return merge(x).detach()


# MultiHeadAttention

ATTENTION = "MultiHeadAttention"
LAYERS = "q_proj, k_proj, v_proj, out_proj are nn.Linear(d_model, d_model)"
BROADCASTS = "mask broadcasts to (B, H, L_q, L_k)"
ONLY = "a class has the named sub-modules and no other parameters"
RAISES = "the constructor raises ValueError where num_heads does not divide d_model"


class Reference(nn.Module):
    def __init__(self, d_model, num_heads):
        super().__init__()
        if d_model % num_heads:
            raise ValueError("num_heads must divide d_model")
        self.num_heads = num_heads
        self.q_proj = nn.Linear(d_model, d_model)
        self.k_proj = nn.Linear(d_model, d_model)
        self.v_proj = nn.Linear(d_model, d_model)
        self.out_proj = nn.Linear(d_model, d_model)

    def attend(self, q, k, v, mask):
        scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
        if mask is not None:
            scores = scores.masked_fill(~mask, float("-inf"))
        weights = scores.softmax(-1)
        return weights @ v, weights

    def forward(self, query, key, value, mask=None):
        q, k, v = (
            split(layer(x), self.num_heads)
            for layer, x in ((self.q_proj, query), (self.k_proj, key), (self.v_proj, value))
        )
        heads, weights = self.attend(q, k, v, mask)
        return self.out_proj(merge(heads)), weights


def changed(clause, **methods):
    """A module that differs from the right one in some methods."""
    return breaks(ATTENTION, clause)(type("Changed", (Reference,), methods))


def after(clause, change):
    """Something done around a right call: `change(module, call, query, key, value, mask)`."""

    def forward(self, query, key, value, mask=None):
        return change(self, lambda *args: Reference.forward(self, *args), query, key, value, mask)

    return changed(clause, forward=forward)


def made(clause, change, **methods):
    """Something done after the constructor."""

    def init(self, d_model, num_heads):
        Reference.__init__(self, d_model, num_heads)
        change(self, d_model, num_heads)

    return changed(clause, __init__=init, **methods)


def _renamed(self, d_model, num_heads):
    self.o_proj = self.out_proj
    del self.out_proj


def _no_bias(name):
    return lambda self, d, h: setattr(self, name, nn.Linear(d, d, bias=False))


made(LAYERS + ", by these names", _renamed, forward=lambda self, *args: None)
for _name in ("q_proj", "k_proj", "v_proj", "out_proj"):
    made(f"{LAYERS}: {_name} has its bias", _no_bias(_name))
made(
    LAYERS + ": weights of any values",
    lambda self, d, h: None,
    forward=lambda self, query, key, value, mask=None: (
        Reference.forward(self, query, key, value, mask)[0] * (self.out_proj.bias.abs().sum() > 0),
        Reference.forward(self, query, key, value, mask)[1],
    ),
)
made(ONLY, lambda self, d, h: setattr(self, "scale", nn.Parameter(torch.ones(()))))
made(ONLY, lambda self, d, h: setattr(self, "norm", nn.LayerNorm(d)))
made(LAYERS + ": four layers", lambda self, d, h: setattr(self, "k_proj", self.q_proj))


@breaks(ATTENTION, LAYERS + ": found by name")
class InAList(Reference):
    def __init__(self, d_model, num_heads):
        super().__init__(d_model, num_heads)
        self.layers = [self.q_proj, self.k_proj, self.v_proj]
        del self.q_proj, self.k_proj, self.v_proj


def constructor(clause, check):
    def init(self, d_model, num_heads):
        check(d_model, num_heads)
        Reference.__init__(self, d_model, num_heads if d_model % num_heads == 0 else 1)
        self.num_heads = num_heads

    return changed(clause, __init__=init)


def _raise(error, when):
    def check(d_model, num_heads):
        if when(d_model, num_heads):
            raise error("num_heads must divide d_model")

    return check


constructor(RAISES, lambda d, h: None)
constructor(RAISES + ", no other error", _raise(AssertionError, lambda d, h: d % h))
constructor(RAISES + ", more heads than features included", _raise(ValueError, lambda d, h: d % h and h < d))
constructor(RAISES + ", one feature over included", _raise(ValueError, lambda d, h: d % h > 1))
constructor("the constructor raises only there: one head is right", _raise(ValueError, lambda d, h: d % h or h == 1))
constructor(
    "the constructor raises only there: d_model heads are right", _raise(ValueError, lambda d, h: d % h or h == d)
)
constructor("the constructor raises only there: odd widths are right", _raise(ValueError, lambda d, h: d % h or d % 2))


@breaks(ATTENTION, RAISES + ", not only the call")
class RaisesInTheCall(Reference):
    def __init__(self, d_model, num_heads):
        super().__init__(d_model, 1)
        self.num_heads = num_heads


@breaks(ATTENTION, "__init__(self, d_model, num_heads)")
class OtherOrder(Reference):
    def __init__(self, num_heads, d_model):
        super().__init__(d_model, num_heads)


# forward: shapes

after(
    "weights are (B, H, L_q, L_k): one head keeps its axis",
    lambda self, call, *args: (call(*args)[0], call(*args)[1].squeeze(1)),
)
after("weights are (B, H, L_q, L_k), of every head", lambda self, call, *args: (call(*args)[0], call(*args)[1].mean(1)))
after(
    "output is (B, L_q, d_model): a batch of one keeps its axis",
    lambda self, call, *args: (call(*args)[0].squeeze(0), call(*args)[1]),
)
after(
    "output is (B, L_q, d_model): a single query keeps its axis",
    lambda self, call, *args: (call(*args)[0].squeeze(1), call(*args)[1]),
)
after(
    "L_q and L_k are independent: fewer queries than keys",
    lambda self, call, q, k, v, mask: (
        call(q, k, v, mask)
        if q.shape[1] >= k.shape[1]
        else call(torch.cat([q, q])[: len(q)], k[:, : q.shape[1]], v[:, : q.shape[1]])
    ),
)
after(
    "L_q and L_k are independent: more queries than keys",
    lambda self, call, q, k, v, mask: (
        call(q, k, v, mask) if q.shape[1] <= k.shape[1] else call(q[:, : k.shape[1]], k, v)
    ),
)
after("key and value are two arguments", lambda self, call, q, k, v, mask: call(q, k, k, mask))
after("query, key, value, in this order", lambda self, call, q, k, v, mask: call(q, v, k, mask))
after(LAYOUT, lambda self, call, q, k, v, mask: call(q.view(-1).view(q.shape), k, v, mask))
after(LAYOUT, lambda self, call, q, k, v, mask: call(q, k, v.view(-1).view(v.shape), mask))

# the mask

after(
    "mask=None: without a mask every key counts",
    lambda self, call, q, k, v, mask: call(
        q, k, v, torch.ones(q.shape[1], k.shape[1], dtype=torch.bool).tril() if mask is None else mask
    ),
)
after("True = may attend", lambda self, call, q, k, v, mask: call(q, k, v, None if mask is None else ~mask))
after(
    BROADCASTS + ": (H, L_q, L_k), from the right",
    lambda self, call, q, k, v, mask: call(q, k, v, mask[:, None] if mask is not None and mask.dim() == 3 else mask),
)
after(
    BROADCASTS + ": (L_k,)",
    lambda self, call, q, k, v, mask: (
        call(q, k, v, mask if mask is None else mask.expand(q.shape[1], -1) if mask.dim() > 1 else mask[:, None][:0])
        if mask is None or mask.dim() < 3
        else call(q, k, v, mask)
    ),
)
after(
    BROADCASTS + ": (B, 1, 1, L_k)",
    lambda self, call, q, k, v, mask: call(
        q, k, v, mask[:1] if mask is not None and mask.dim() == 4 and mask.shape[2] == 1 else mask
    ),
)
after(
    BROADCASTS + ": (B, 1, L_q, L_k)",
    lambda self, call, q, k, v, mask: call(
        q, k, v, mask[:1] if mask is not None and mask.dim() == 4 and mask.shape[1] == 1 < mask.shape[2] else mask
    ),
)
after(
    BROADCASTS + ": (B, H, L_q, L_k)",
    lambda self, call, q, k, v, mask: call(q, k, v, mask[:, :1] if mask is not None and mask.dim() == 4 else mask),
)
after(
    BROADCASTS + ": (1, H, L_q, L_k)",
    lambda self, call, q, k, v, mask: call(
        q, k, v, mask[:, :1] if mask is not None and mask.dim() == 4 and len(mask) == 1 else mask
    ),
)
after(
    BROADCASTS + ": (1, 1, L_q, L_k)",
    lambda self, call, q, k, v, mask: call(
        q, k, v, None if mask is not None and mask.dim() == 4 and mask.shape[:2] == (1, 1) else mask
    ),
)
after(
    BROADCASTS + ": (1, L_k)",
    lambda self, call, q, k, v, mask: call(
        q, k, v, None if mask is not None and mask.dim() == 2 and len(mask) == 1 else mask
    ),
)


@breaks(ATTENTION, BROADCASTS + ": (L_q, L_k)")
class SameLengths(Reference):
    def forward(self, query, key, value, mask=None):
        if mask is not None and mask.dim() == 2:
            mask = mask[:, None, None] if len(mask) == len(query) else mask
        return super().forward(query, key, value, mask)


@breaks(ATTENTION, "masked keys get weight zero, even next to scores of -1e4")
class MaskedWithAThousand(Reference):
    def attend(self, q, k, v, mask):
        scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
        weights = (scores if mask is None else scores.masked_fill(~mask, -1e3)).softmax(-1)
        return weights @ v, weights


# Numbers


def attending(clause, attend):
    return changed(clause, attend=attend)


@breaks(ATTENTION, "finite for large scores")
class Overflows(Reference):
    def attend(self, q, k, v, mask):
        e = (q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])).exp()
        e = e if mask is None else e * mask
        weights = e / e.sum(-1, keepdim=True)
        return weights @ v, weights


@breaks(ATTENTION, ROUND)
class RootInFloat32(Reference):
    def attend(self, q, k, v, mask):
        heads, weights = super().attend(
            q * (math.sqrt(q.shape[-1]) / torch.tensor(q.shape[-1] + 0.0).sqrt()), k, v, mask
        )
        return heads, weights


@breaks(ATTENTION, ROUND)
class NumberInTheSum(Reference):
    def attend(self, q, k, v, mask):
        _, weights = super().attend(q, k, v, mask)
        weights = weights / (1 + 1e-8)
        return weights @ v, weights


@breaks(ATTENTION, ROUND)
class HalfInside(Reference):
    def attend(self, q, k, v, mask):
        if q.dtype == torch.float64:
            return super().attend(q, k, v, mask)
        return tuple(x.to(q.dtype) for x in super().attend(q.bfloat16(), k.bfloat16(), v.bfloat16(), mask))


after(DTYPE, lambda self, call, *args: (call(*args)[0], call(*args)[1].float()))
after(DTYPE, lambda self, call, *args: tuple(x.double() for x in call(*args)))

# Conduct


def _then(change):
    def around(self, call, q, k, v, mask):
        result = call(q, k, v, mask)
        change(q, k, v, mask)
        return result

    return around


after(UNCHANGED + ": query", _then(lambda q, k, v, mask: q.mul_(2)))
after(UNCHANGED + ": key", _then(lambda q, k, v, mask: k.mul_(2)))
after(UNCHANGED + ": value", _then(lambda q, k, v, mask: v.mul_(2)))
after(UNCHANGED + ": mask", _then(lambda q, k, v, mask: mask if mask is None else mask.logical_not_()))
after(
    UNCHANGED + ": a mask of two axes",
    _then(lambda q, k, v, mask: mask.logical_not_() if mask is not None and mask.dim() == 2 else None),
)
after(
    UNCHANGED + ": the shape of a mask",
    _then(lambda q, k, v, mask: mask.unsqueeze_(0) if mask is not None and mask.dim() < 4 else None),
)
after(GRADIENTS + ": query", lambda self, call, q, k, v, mask: call(q.detach(), k, v, mask))
after(GRADIENTS + ": key", lambda self, call, q, k, v, mask: call(q, k.detach(), v, mask))
after(GRADIENTS + ": value", lambda self, call, q, k, v, mask: call(q, k, v.detach(), mask))
after(GRADIENTS + " of the weights that come back", lambda self, call, *args: (call(*args)[0], call(*args)[1].detach()))
after(
    GRADIENTS + " where a mask is given",
    lambda self, call, q, k, v, mask: call(q, k, v) if mask is None else tuple(x.detach() for x in call(q, k, v, mask)),
)


class Frozen(Reference):
    def __init__(self, d_model, num_heads):
        super().__init__(d_model, num_heads)
        self.requires_grad_(False)


breaks(ATTENTION, GRADIENTS + " to the parameters")(Frozen)


@breaks(ATTENTION, GRADIENTS + " to each parameter")
class BiasDetached(Reference):
    def forward(self, query, key, value, mask=None):
        q, k, v = self.q_proj(query), F.linear(key, self.k_proj.weight, self.k_proj.bias.detach()), value
        v = F.linear(v, self.v_proj.weight, self.v_proj.bias.detach())
        heads, weights = self.attend(*(split(x, self.num_heads) for x in (q, k, v)), mask)
        return self.out_proj(merge(heads)), weights


@breaks(ATTENTION, CHANCE + ": no dropout in train mode")
class DropsOut(Reference):
    def attend(self, q, k, v, mask):
        _, weights = super().attend(q, k, v, mask)
        weights = F.dropout(weights, 0.5, training=self.training)
        return weights @ v, weights


@breaks(ATTENTION, CHANCE + ": no dropout in eval mode either")
class AlwaysDropsOut(Reference):
    def attend(self, q, k, v, mask):
        _, weights = super().attend(q, k, v, mask)
        return F.dropout(weights, 0.5) @ v, weights


@breaks(ATTENTION, "the same in train and eval mode")
class SharpInTraining(Reference):
    def attend(self, q, k, v, mask):
        return super().attend(2 * q if self.training else q, k, v, mask)


@breaks(ATTENTION, "a second call gives the same as the first")
class Remembers(Reference):
    def attend(self, q, k, v, mask):
        if getattr(self, "mask", None) is not None and mask is None:
            mask = self.mask
        elif mask is None and not hasattr(self, "mask"):
            self.mask = torch.ones(q.shape[-2], k.shape[-2], dtype=torch.bool).tril()
            return super().attend(q, k, v, None)
        return super().attend(q, k, v, mask)


after("returns (output, weights), in this order", lambda self, call, *args: call(*args)[::-1])
after("returns (output, weights), both", lambda self, call, *args: call(*args)[0])
after("returns (output, weights), and nothing more", lambda self, call, *args: (*call(*args), None))

# multi_head_parameter_count

COUNT = "multi_head_parameter_count"


def count(d_model, num_heads, bias=True):
    return 4 * d_model * d_model + (4 * d_model if bias else 0)


@breaks(COUNT, "int")
def count_as_float(d_model, num_heads, bias=True):
    return float(count(d_model, num_heads, bias))


@breaks(COUNT, "int")
def count_as_tensor(d_model, num_heads, bias=True):
    return torch.tensor(count(d_model, num_heads, bias))


@breaks(COUNT, "int, exact for wide models")
def count_through_floats(d_model, num_heads, bias=True):
    return int(4.0 * d_model * d_model) + (4 * d_model if bias else 0)


@breaks(COUNT, "int, exact for wide models")
def count_in_int64(d_model, num_heads, bias=True):
    return count(d_model, num_heads, bias) % 2**32


@breaks(COUNT, "bias=True: with biases unless told otherwise")
def count_without_by_default(d_model, num_heads, bias=False):
    return count(d_model, num_heads, bias)


@breaks(COUNT, "bias=False: without biases")
def count_biases_always(d_model, num_heads, bias=True):
    return count(d_model, num_heads)


@breaks(COUNT, "bias=True: with biases")
def count_biases_never(d_model, num_heads, bias=True):
    return count(d_model, num_heads, False)


@breaks(COUNT, "of the class: out_proj, too")
def count_three(d_model, num_heads, bias=True):
    return count(d_model, num_heads, bias) * 3 // 4


@breaks(COUNT, "of the class: num_heads does not matter")
def count_heads(d_model, num_heads, bias=True):
    return count(d_model, num_heads, bias) + num_heads


@breaks(COUNT, "of the class: one head is not an exception")
def count_one_head(d_model, num_heads, bias=True):
    return count(d_model, num_heads, bias) - (d_model if num_heads == 1 else 0)


@breaks(COUNT, "of the class: d_model heads are no exception")
def count_narrow_heads(d_model, num_heads, bias=True):
    return count(d_model, num_heads, bias) - (d_model if num_heads == d_model else 0)


@breaks(COUNT, "all three arguments: bias may be given")
def count_without_bias_argument(d_model, num_heads):
    return count(d_model, num_heads)
