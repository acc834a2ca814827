"""Exercise `self_attention`: metadata, stub and cases."""

import torch

from course_kit.exercises._draw import Draw
from course_kit.exercises._exercise import Case, Exercise
from course_kit.exercises._files import texts_next_to
from course_lib.scaled_dot_product import self_attention

exercise = Exercise(
    **texts_next_to(__file__),
    difficulty=2,
    minutes=10,
    stub='''\
def self_attention(x, w_q, w_k, w_v, mask=None):
    """(output, weights) of attention among the tokens of x; mask: True = may attend."""
    raise NotImplementedError
''',
    reference=self_attention,
    shapes={
        "x": "... length d_model",
        "w_q": "d_model d_k",
        "w_k": "d_model d_k",
        "w_v": "d_model d_v",
        "mask": "#",
    },
    returns=("output", "weights"),
    read_next="scaled_dot_product: Where queries, keys and values come from",
)


def _features_and_weights(draw: Draw, batch=(), dtype=torch.float32, scale=1.0, sizes=None):
    length, d_model, d_k, d_v = sizes or draw.sizes(4, 2, 9, but=batch)
    width = d_model**-0.5
    return (
        draw.normal(*batch, length, d_model, dtype=dtype, scale=scale),
        draw.normal(d_model, d_k, dtype=dtype, scale=2 * width),
        draw.normal(d_model, d_k, dtype=dtype, scale=2 * width),
        draw.normal(d_model, d_v, dtype=dtype, scale=width),
    )


@exercise.holds(
    "Queries are x · w_q, keys x · w_k, values x · w_v, with scaled dot-product attention among them", weight=3
)
def _(draw):
    x = torch.tensor([[1.0, 0, 0], [0, 1, 2]])
    w_q = torch.tensor([[2.0, 0, 1, -1], [0, 1, -1, 0], [1, 0, 0, 0]])
    w_k = torch.tensor([[1.0, 2, -1, 0], [1, 0, 2, 0], [0, 0, 0, 1]])
    w_v = torch.tensor([[4.0], [8], [-1]])
    yield Case(
        args=(x, w_q, w_k, w_v),
        note="two tokens of three features, four features for query and key, so that the root is 2",
        degenerate_because="the smallest case, to be read by eye",
    )
    for batch in draw.batches():
        yield Case(args=_features_and_weights(draw, batch))


@exercise.holds("The three widths are independent, and the projections stay distinct where they are equal")
def _(draw):
    length, d_model, d_k, d_v = draw.sizes(4, 2, 9)
    square = (length, d_model, d_model, d_model)
    yield Case(
        args=_features_and_weights(draw, sizes=square),
        note="d_model = d_k = d_v",
        degenerate_because="square matrices: mistakes give numbers",
    )
    same = _features_and_weights(draw, sizes=(d_model,) * 4)
    yield Case(
        args=same, note="L = d_model = d_k = d_v", degenerate_because="axes of one length: mistakes give numbers here"
    )
    wide = _features_and_weights(draw, (), torch.float64, sizes=(length, d_model, d_model, d_v))
    yield Case(args=wide, note="d_k = d_model", degenerate_because="equal widths on purpose")
    back = _features_and_weights(draw, (), torch.float64, sizes=(length, d_model, d_k, d_model))
    yield Case(args=back, note="d_v = d_model", degenerate_because="equal widths on purpose")
    equal = _features_and_weights(draw, (), torch.float64, sizes=(length, d_model, d_k, d_k))
    yield Case(args=equal, note="d_v = d_k", degenerate_because="equal widths on purpose")


@exercise.holds("It works with any number of batch dimensions, including none, in float32 and float64")
def _(draw):
    for batch in draw.batches():
        for dtype in (torch.float64, torch.float32):
            yield Case(args=_features_and_weights(draw, batch, dtype), note=f"batch dimensions: {len(batch)}")
    deep = _features_and_weights(draw, (2, 1, 3), sizes=(4, 5, 6, 7))
    yield Case(args=deep, note="batch dimensions: 3", degenerate_because="a batch dimension of length one")
    turned = tuple(x.mT.contiguous().mT for x in _features_and_weights(draw, (3,)))
    yield Case(args=turned, note="tensors that are transposed in memory")
    alone = _features_and_weights(draw, (2,), sizes=(1, 5, 3, 4))
    yield Case(args=alone, note="a single token", degenerate_because="one token on purpose")


@exercise.holds("A masked key gets weight zero and the others share all the weight; masks broadcast", weight=2)
def _(draw):
    x = torch.tensor([[1.0, 0], [0, 1], [2, -1]])
    eye = torch.eye(2)
    mask = torch.tensor([[True, False, True], [True, True, False], [False, True, True]])
    yield Case(
        args=(x, eye, eye.flip(0).contiguous(), torch.tensor([[4.0], [8]]), mask),
        note="three tokens, each with one masked key",
        degenerate_because="to be read by eye",
    )
    for batch in draw.batches():
        inputs = _features_and_weights(draw, batch)
        length = inputs[0].shape[-2]
        yield Case(args=(*inputs, draw.mask(length, length)), note="a mask (L, L)")
    inputs = _features_and_weights(draw, (3,))
    length = inputs[0].shape[-2]
    yield Case(args=(*inputs, draw.mask(length)), note="a mask (L,)")
    yield Case(args=(*inputs, draw.mask(3, length, length)), note="a mask (B, L, L)")
    yield Case(args=(*inputs, draw.mask(3, 1, length)), note="a mask (B, 1, L)")
    inputs = _features_and_weights(draw, (3, 2), torch.float64)
    length = inputs[0].shape[-2]
    yield Case(args=(*inputs, draw.mask(3, 1, 1, length)), note="a mask (B, 1, 1, L)")
    yield Case(args=(*inputs, draw.mask(3, 2, length, length)), note="a mask of full size")
    yield Case(args=(*inputs, torch.ones(length, length, dtype=torch.bool)), note="a mask that allows everything")
    inputs = tuple(x.clone() for x in _features_and_weights(draw, (2, 2)))
    length = inputs[0].shape[-2]
    yield Case(
        args=(*inputs, draw.mask(2, length, length)),
        note="a mask (H, L, L) for scores (B, H, L, L)",
        degenerate_because="equal leading lengths, so that only the rule of broadcasting says whose mask it is",
    )


@exercise.holds("Large scores stay finite, and right")
def _(draw):
    for dtype in (torch.float32, torch.float64):
        inputs = _features_and_weights(draw, dtype=dtype, scale=30.0)
        yield Case(args=inputs, note="scores of some thousands", tolerance=50, gradients=False)
    length = inputs[0].shape[-2]
    yield Case(
        args=(*inputs, draw.mask(length, length)),
        note="scores of some thousands, masked",
        tolerance=50,
        gradients=False,
    )
