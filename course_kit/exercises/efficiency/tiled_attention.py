"""Exercise `tiled_attention`: metadata, stub and cases."""

import math

import torch

from course_kit.exercises._draw import Draw
from course_kit.exercises._exercise import Case, Exercise
from course_kit.exercises._files import texts_next_to
from course_lib.efficiency import tiled_attention

exercise = Exercise(
    **texts_next_to(__file__),
    difficulty=2,
    minutes=15,
    stub='''\
def tiled_attention(query, key, value, block_size):
    """softmax(Q K^T / sqrt(d_k)) V, with scores for block_size keys at a time."""
    raise NotImplementedError
''',
    reference=tiled_attention,
    shapes={"query": "... len_q d_k", "key": "... len_k d_k", "value": "... len_k d_v"},
    read_next="efficiency: Attention in tiles: the algorithm behind FlashAttention",
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
        "course_kit.flash_attention.flash_attention",
    ),
)


def _inputs_of_tiles(draw: Draw, batch=(), sizes=None, dtype=torch.float32, scale=1.0):
    len_q, len_k, d_k, d_v = sizes or draw.sizes(4, 2, 8, but=batch)
    return (
        draw.normal(*batch, len_q, d_k, dtype=dtype, scale=scale),
        draw.normal(*batch, len_k, d_k, dtype=dtype, scale=scale),
        draw.normal(*batch, len_k, d_v, dtype=dtype),
    )


@exercise.holds("The output is that of scaled dot-product attention, whatever the blocks", weight=3)
def _(draw):
    query, key = torch.tensor([[2.0, 0, 1, -1]]), torch.tensor([[0.0, 1, 0, 2], [1, 2, -1, 0], [1, 0, 2, 0]])
    yield Case(
        args=(query, key, torch.tensor([[4.0], [-8], [2]]), 2),
        note="one query, three keys of four features, two keys per block",
        degenerate_because="the smallest case, to be read by eye",
    )
    for batch in draw.batches():
        for dtype in (torch.float32, torch.float64):
            len_k = 3 * draw.integer(3, 4)
            len_q, d_k, d_v = draw.sizes(3, 2, 8, but=batch)
            yield Case(
                args=(*_inputs_of_tiles(draw, batch, (len_q, len_k, d_k, d_v), dtype), 3), note="blocks of three keys"
            )
    square = _inputs_of_tiles(draw, (), (4, 4, 4, 4), torch.float64)
    yield Case(
        args=(*square, 2),
        note="L_q = L_k = d_k = d_v",
        degenerate_because="axes of one length: mistakes give numbers here",
    )


@exercise.holds("`block_size` need not divide the number of keys; it may be 1, or larger than that number", weight=2)
def _(draw):
    for block_size, note in (
        (3, "ten keys in blocks of three, the last has one"),
        (4, "ten keys in blocks of four, the last has two"),
        (9, "nine keys in the first block and one in the last"),
        (1, "one key per block"),
        (10, "one block of all keys"),
        (11, "one block that is larger than all keys"),
        (64, "one block that is much larger than all keys"),
    ):
        len_q, d_k, d_v = draw.sizes(3)
        dtype = draw.choice((torch.float32, torch.float64))
        yield Case(args=(*_inputs_of_tiles(draw, (), (len_q, 10, d_k, d_v), dtype), block_size), note=note)
    len_q, d_k, d_v = draw.sizes(3)
    yield Case(
        args=(*_inputs_of_tiles(draw, (), (len_q, 1, d_k, d_v)), 2),
        note="a single key",
        degenerate_because="an axis of length one on purpose",
    )


@exercise.holds("It works with any number of batch dimensions, including none, and any layout in memory")
def _(draw):
    for batch in draw.batches():
        yield Case(args=(*_inputs_of_tiles(draw, batch), 2), note=f"batch dimensions: {len(batch)}")
    yield Case(
        args=(*_inputs_of_tiles(draw, (2, 1, 3), (5, 7, 4, 6)), 3),
        note="batch dimensions: 3",
        degenerate_because="a batch dimension of length one",
    )
    yield Case(
        args=(*_inputs_of_tiles(draw, (3,), (1, 7, 4, 6)), 3),
        note="a single query",
        degenerate_because="an axis of length one",
    )
    turned = tuple(x.mT.contiguous().mT for x in _inputs_of_tiles(draw, (3,)))
    yield Case(args=(*turned, 2), note="tensors that are transposed in memory")


@exercise.holds("Scores up to ±10,000 give a finite and right output", weight=2)
def _(draw):
    for dtype in (torch.float32, torch.float64):
        len_q, d_k, d_v = draw.sizes(3)
        yield Case(
            args=(*_inputs_of_tiles(draw, (), (len_q, 9, d_k, d_v), dtype, scale=60.0), 2),
            note="scores of some thousands",
            tolerance=50,
            gradients=False,
        )
    for dtype, size in ((torch.float64, 1e4), (torch.float64, -1e4), (torch.float32, -150.0)):
        # Keys nearly parallel to every query, so that the scores lie between 99.9 % and 100 % of the size.
        direction = torch.nn.functional.normalize(draw.normal(4, dtype=dtype), dim=-1)
        length = (abs(size) * 4**0.5) ** 0.5
        query = direction * draw.uniform(3, 1, low=0.9996, high=1.0, dtype=dtype) * length
        key = math.copysign(1, size) * direction * draw.uniform(8, 1, low=0.9996, high=1.0, dtype=dtype) * length
        yield Case(
            args=(query, key, draw.normal(8, 5, dtype=dtype), 3),
            note=f"all scores near {size:.0f}",
            tolerance=50,
            gradients=False,
            degenerate_because="parallel vectors",
        )


@exercise.holds("No tensor holds the scores of more than `block_size` keys", weight=2)
def _(draw):
    # More blocks than numbers that a block may have, and no more than that: each takes time, because it is watched.
    for dtype in (torch.float32, torch.float64):
        # Room for products of single features before they are summed, and for the results of all blocks side by side.
        len_q, len_k, d_k, d_v, block_size = 2, draw.integer(43, 47), 3, 4, 3
        inputs = _inputs_of_tiles(draw, (), (len_q, len_k, d_k, d_v), dtype)
        yield Case(
            args=(*inputs, block_size),
            note=f"{len_k} keys in blocks of three",
            gradients=False,
            max_numel=len_q * block_size * (d_k + 1),
        )
