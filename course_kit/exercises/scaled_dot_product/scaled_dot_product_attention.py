"""Exercise `scaled_dot_product_attention`: metadata, stub and cases."""

import torch

from course_kit.exercises._draw import Draw
from course_kit.exercises._exercise import Case, Exercise
from course_kit.exercises._files import texts_next_to
from course_lib.scaled_dot_product import scaled_dot_product_attention

exercise = Exercise(
    **texts_next_to(__file__),
    difficulty=2,
    minutes=15,
    stub='''\
def scaled_dot_product_attention(query, key, value, mask=None):
    """(output, weights) of softmax(Q K^T / sqrt(d_k)) V; mask: True = may attend."""
    raise NotImplementedError
''',
    reference=scaled_dot_product_attention,
    shapes={"query": "... len_q d_k", "key": "... len_k d_k", "value": "... len_k d_v", "mask": "#"},
    returns=("output", "weights"),
    read_next="scaled_dot_product: Scaled dot-product attention by hand",
    forbidden=(
        "scaled_dot_product_attention",
        "_scaled_dot_product_attention_math",
        "_scaled_dot_product_flash_attention_for_cpu",
        "_scaled_dot_product_flash_attention",
        "_scaled_dot_product_efficient_attention",
        "_scaled_dot_product_fused_attention_overrideable",
        "multi_head_attention_forward",
        "_native_multi_head_attention",
        "torch.nn.attention.flex_attention.flex_attention",
        "course_kit.nn.attention.fused_attention",
        "course_kit.nn.attention.attention_with_bias",
    ),
)


def _inputs(draw: Draw, batch=(), dtype=torch.float32, scale=1.0):
    len_q, len_k, d_k, d_v = draw.sizes(4, but=batch)
    return (
        draw.normal(*batch, len_q, d_k, dtype=dtype, scale=scale),
        draw.normal(*batch, len_k, d_k, dtype=dtype, scale=scale),
        draw.normal(*batch, len_k, d_v, dtype=dtype),
    )


@exercise.holds(
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
        degenerate_because="the smallest case, to be read by eye",
    )
    for batch in draw.batches():
        yield Case(args=_inputs(draw, batch))
    square = draw.normal(3, 3), draw.normal(3, 3), draw.normal(3, 3)
    yield Case(
        args=square, note="L_q = L_k = d_k = d_v", degenerate_because="axes of one length: mistakes give numbers here"
    )


@exercise.holds("It works with any number of batch dimensions, including none, in float32 and float64")
def _(draw):
    for batch in draw.batches():
        for dtype in (torch.float64, torch.float32):
            yield Case(args=_inputs(draw, batch, dtype), note=f"batch dimensions: {len(batch)}")
    query, key, value = _inputs(draw, (2, 1, 3))
    yield Case(
        args=(query, key, value), note="batch dimensions: 3", degenerate_because="a batch dimension of length one"
    )
    turned = tuple(x.mT.contiguous().mT for x in _inputs(draw, (3,)))
    yield Case(args=turned, note="tensors that are transposed in memory")


@exercise.holds("A masked key gets weight zero and the others share all the weight; masks broadcast", weight=2)
def _(draw):
    query, key = torch.tensor([[2.0, 0, 1, -1]]), torch.tensor([[1.0, 2, -1, 0], [2, 1, 0, 2], [1, 0, 2, 0]])
    mask = torch.tensor([[True, False, True]])
    yield Case(
        args=(query, key, torch.tensor([[4.0], [2], [8]]), mask),
        note="one query, one of three keys is masked",
        degenerate_because="to be read by eye",
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
        degenerate_because="as many sequences as heads, so that only the rule of broadcasting says whose mask it is",
    )


@exercise.holds("Large scores stay finite, and right")
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
        args=(query, key, value, mask),
        note="all scores near -10000, masked",
        gradients=False,
        degenerate_because="parallel vectors",
    )
