"""Encoder and decoder layers that break one clause of the contract each."""

import torch
from contract_clauses import breaks
from torch import nn

from course_lib.exercises.transformer.decoder_layer import DecoderLayer
from course_lib.exercises.transformer.encoder_layer import EncoderLayer
from course_lib.multi_head import MultiHeadAttention


def layer(base, **parts):
    """A layer some of whose parts are made otherwise, by functions of the constructor's arguments."""

    class Solution(base):
        def __init__(self, d_model, num_heads, d_ff):
            super().__init__(d_model, num_heads, d_ff)
            for name, make in parts.items():
                setattr(self, name, make(d_model, num_heads, d_ff))

    return Solution


def given(base, change):
    """A layer whose forward hands the right one what `change` makes of its arguments."""

    class Solution(base):
        def forward(self, *args):
            return super().forward(*change(*args))

    return Solution


def then(base, change):
    """A layer whose right result is changed afterwards: change(self, y, x, ...)."""

    class Solution(base):
        def forward(self, *args):
            return change(self, super().forward(*args), *args)

    return Solution


def encoder(forward):
    return type("Solution", (EncoderLayer,), {"forward": forward})


def decoder(forward):
    return type("Solution", (DecoderLayer,), {"forward": forward})


for name, base in (("EncoderLayer", EncoderLayer), ("DecoderLayer", DecoderLayer)):
    breaks(name, "no dropout: train and eval are the same")(
        then(base, lambda self, y, *args: nn.functional.dropout(y, 0.1, self.training))
    )
    breaks(name, "the norms have the default eps")(layer(base, norm2=lambda d, h, f: nn.LayerNorm(d, eps=1e-6)))
    breaks(name, "the norms have the default eps: norm1 too")(
        layer(base, norm1=lambda d, h, f: nn.LayerNorm(d, eps=1e-4))
    )
    breaks(name, "the norms have gain and bias")(layer(base, norm1=lambda d, h, f: nn.LayerNorm(d, bias=False)))
    breaks(name, "the named sub-modules, and no other parameters")(layer(base, norm=lambda d, h, f: nn.LayerNorm(d)))
    breaks(name, "the named sub-modules, and no other parameters")(
        layer(base, scale=lambda d, h, f: nn.Parameter(torch.ones(d)))
    )
    breaks(name, "self_attention is the course's MultiHeadAttention")(
        layer(base, self_attention=lambda d, h, f: MultiHeadAttention(d, h, bias=False))
    )
    breaks(name, "num_heads heads")(layer(base, self_attention=lambda d, h, f: MultiHeadAttention(d, 1)))
    breaks(name, "num_heads heads, one head too")(
        layer(base, self_attention=lambda d, h, f: MultiHeadAttention(d, 2 if h == 1 and d % 2 == 0 else h))
    )
    breaks(name, "right to 1e-10 in float64")(then(base, lambda self, y, *args: y.float().to(y.dtype)))
    breaks(name, "keeps the dtype")(then(base, lambda self, y, *args: y.float()))
    breaks(name, "keeps the dtype")(then(base, lambda self, y, *args: y.double()))
    breaks(name, "leaves x unchanged")(then(base, lambda self, y, x, *args: x.copy_(y)))
    breaks(name, "lets gradients through, to x")(given(base, lambda x, *args: (x.detach(), *args)))
    breaks(name, "returns (B, L, d_model)")(then(base, lambda self, y, *args: y.squeeze(1)))
    breaks(name, "returns (B, L, d_model), for one sequence too")(then(base, lambda self, y, *args: y.squeeze(0)))
    breaks(name, "each sequence of a batch alone")(
        given(base, lambda x, *args: (x + 1e-3 * (x - x.mean(0)) * (len(x) > 1), *args))
    )


# EncoderLayer


@breaks("EncoderLayer", "post-norm")
@encoder
def _(self, x, mask=None):
    y = self.norm1(x)
    x = x + self.self_attention(y, y, y, mask)[0]
    return x + self.feed_forward(self.norm2(x))


@breaks("EncoderLayer", "norm1 after attention, norm2 after feed-forward")
@encoder
def _(self, x, mask=None):
    x = self.norm2(x + self.self_attention(x, x, x, mask)[0])
    return self.norm1(x + self.feed_forward(x))


@breaks("EncoderLayer", "lets gradients through, to its weights")
@encoder
def _(self, x, mask=None):
    x = self.norm1(x + self.self_attention(x, x, x, mask)[0].detach())
    return self.norm2(x + self.feed_forward(x))


def from_the_left(mask):
    """A mask with three axes taken as one per sequence."""
    return mask[:, None] if mask is not None and mask.dim() == 3 else mask


def per_sequence_and_key(mask):
    """A mask with two axes taken as (B, L)."""
    return mask[:, None, None] if mask is not None and mask.dim() == 2 else mask


def only_four_axes(mask):
    return mask if mask is not None and mask.dim() == 4 else None


def one_row(mask):
    """What the first query may see, for all of them."""
    return mask if mask is None else mask[..., :1, :]


def one_head(mask):
    return mask[:, :1] if mask is not None and mask.dim() == 4 else mask


def one_sequence(mask):
    return mask[:1] if mask is not None and mask.dim() == 4 else mask


def numbers(mask):
    return mask if mask is None else mask.float()


def opposite(mask):
    return mask if mask is None else ~mask


def nothing(mask):
    return None


MASKS = (
    ("a mask is used", nothing),
    ("True = may attend", opposite),
    ("a mask broadcasts from the right: three axes", from_the_left),
    ("a mask broadcasts from the right: two axes", per_sequence_and_key),
    ("a mask broadcasts: with fewer axes than four", only_four_axes),
    ("a mask broadcasts: each query has its row", one_row),
    ("a mask broadcasts: each head may have its own", one_head),
    ("a mask broadcasts: each sequence may have its own", one_sequence),
)
for says, change in MASKS:
    breaks("EncoderLayer", says)(given(EncoderLayer, lambda x, mask=None, change=change: (x, change(mask))))
    breaks("DecoderLayer", says.replace("mask", "self_mask"))(
        given(DecoderLayer, lambda x, memory, own=None, theirs=None, change=change: (x, memory, change(own), theirs))
    )
    breaks("DecoderLayer", says.replace("mask", "memory_mask"))(
        given(DecoderLayer, lambda x, memory, own=None, theirs=None, change=change: (x, memory, own, change(theirs)))
    )


def causal(x):
    return torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).tril()


@breaks("EncoderLayer", "without a mask everything may be attended to")
@lambda change: given(EncoderLayer, change)
def _(x, mask=None):
    return x, causal(x) if mask is None else mask


@breaks("EncoderLayer", "leaves mask unchanged")
@lambda change: then(EncoderLayer, change)
def _(self, y, x, mask=None):
    if mask is not None:
        mask.logical_not_()
    return y


@breaks("EncoderLayer", "leaves mask unchanged")
@lambda change: then(EncoderLayer, change)
def _(self, y, x, mask=None):
    if mask is not None and mask.dim() == 4:
        mask &= causal(x)
    return y


# DecoderLayer


@breaks("DecoderLayer", "post-norm")
@decoder
def _(self, x, memory, self_mask=None, memory_mask=None):
    y = self.norm1(x)
    x = x + self.self_attention(y, y, y, self_mask)[0]
    x = x + self.cross_attention(self.norm2(x), memory, memory, memory_mask)[0]
    return x + self.feed_forward(self.norm3(x))


@breaks("DecoderLayer", "norm1, norm2, norm3 after them in that order")
@decoder
def _(self, x, memory, self_mask=None, memory_mask=None):
    x = self.norm1(x + self.self_attention(x, x, x, self_mask)[0])
    x = self.norm3(x + self.cross_attention(x, memory, memory, memory_mask)[0])
    return self.norm2(x + self.feed_forward(x))


@breaks("DecoderLayer", "lets gradients through, to its weights")
@decoder
def _(self, x, memory, self_mask=None, memory_mask=None):
    x = self.norm1(x + self.self_attention(x, x, x, self_mask)[0])
    x = self.norm2(x + self.cross_attention(x, memory, memory, memory_mask)[0].detach())
    return self.norm3(x + self.feed_forward(x))


breaks("DecoderLayer", "lets gradients through, to memory")(
    given(DecoderLayer, lambda x, memory, *masks: (x, memory.detach(), *masks))
)


def cut(x, memory, self_mask=None, memory_mask=None):
    """Source positions past the target's last are not looked at."""
    length = x.shape[1]
    return x, memory[:, :length], self_mask, memory_mask if memory_mask is None else memory_mask[..., :length]


breaks("DecoderLayer", "memory of another length: longer")(given(DecoderLayer, cut))


@breaks("DecoderLayer", "memory of another length: shorter")
@lambda change: given(DecoderLayer, change)
def _(x, memory, self_mask=None, memory_mask=None):
    if memory.shape[1] < x.shape[1]:
        raise ValueError("memory is too short")
    return x, memory, self_mask, memory_mask


@breaks("DecoderLayer", "memory of another length: one position")
@lambda change: then(DecoderLayer, change)
def _(self, y, x, memory, *masks):
    return y if memory.shape[1] > 1 else y * 0


@breaks("DecoderLayer", "leaves memory unchanged")
@lambda change: then(DecoderLayer, change)
def _(self, y, x, memory, *masks):
    memory -= 1
    return y


@breaks("DecoderLayer", "leaves self_mask unchanged")
@lambda change: then(DecoderLayer, change)
def _(self, y, x, memory, self_mask=None, memory_mask=None):
    if self_mask is not None:
        self_mask &= causal(x)
    return y


@breaks("DecoderLayer", "leaves memory_mask unchanged")
@lambda change: then(DecoderLayer, change)
def _(self, y, x, memory, self_mask=None, memory_mask=None):
    if memory_mask is not None:
        memory_mask[..., 0] = True
    return y


@breaks("DecoderLayer", "each mask in its own attention")
@lambda change: given(DecoderLayer, change)
def _(x, memory, self_mask=None, memory_mask=None):
    both = self_mask is not None and memory_mask is not None
    return (x, memory, memory_mask, self_mask) if both else (x, memory, self_mask, memory_mask)


@breaks("DecoderLayer", "either mask may be given without the other")
@lambda change: given(DecoderLayer, change)
def _(x, memory, self_mask=None, memory_mask=None):
    return x, memory, self_mask, None if self_mask is None else memory_mask


@breaks("DecoderLayer", "either mask may be given without the other")
@lambda change: given(DecoderLayer, change)
def _(x, memory, self_mask=None, memory_mask=None):
    return x, memory, None if memory_mask is None else self_mask, memory_mask


@breaks("DecoderLayer", "without self_mask everything may be attended to")
@lambda change: given(DecoderLayer, change)
def _(x, memory, self_mask=None, memory_mask=None):
    return x, memory, causal(x) if self_mask is None else self_mask, memory_mask


@breaks("DecoderLayer", "the layer adds no mask of its own")
@lambda change: given(DecoderLayer, change)
def _(x, memory, self_mask=None, memory_mask=None):
    return x, memory, self_mask if self_mask is None else self_mask & causal(x), memory_mask


breaks("DecoderLayer", "cross_attention is a MultiHeadAttention of its own")(
    layer(DecoderLayer, cross_attention=lambda d, h, f: None)
)
