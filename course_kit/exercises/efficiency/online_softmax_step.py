"""Exercise `online_softmax_step`: metadata, stub and cases."""

import math

import torch
from torch import Tensor

from course_kit.exercises._draw import Draw
from course_kit.exercises._exercise import Case, Exercise
from course_kit.exercises._files import texts_next_to
from course_lib.efficiency import online_softmax_step

exercise = Exercise(
    **texts_next_to(__file__),
    difficulty=2,
    minutes=15,
    stub='''\
def online_softmax_step(maximum, total, output, scores, value):
    """(maximum, total, output) with one more block of scores and values included."""
    raise NotImplementedError
''',
    reference=online_softmax_step,
    shapes={
        "maximum": "... len_q",
        "total": "... len_q",
        "output": "... len_q d_v",
        "scores": "... len_q block",
        "value": "... block d_v",
    },
    returns=("maximum", "total", "output"),
    read_next="efficiency: Online softmax: one block of keys at a time",
    single_sign_args=("total",),
)


def _state_after(scores: Tensor, value: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The state after these keys, computed at once in float64."""
    wide = scores.double()
    maximum = wide.amax(-1)
    weights = (wide - maximum[..., None]).exp()
    return tuple(x.to(scores.dtype) for x in (maximum, weights.sum(-1), weights @ value.double()))


def _start(scores: Tensor, value: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The state before the first block."""
    maximum = scores.new_full(scores.shape[:-1], -math.inf)
    return maximum, torch.zeros_like(maximum), scores.new_zeros(*scores.shape[:-1], value.shape[-1])


def _block(draw: Draw, batch=(), sizes=None, dtype=torch.float32, scale=2.0) -> tuple[Tensor, Tensor]:
    """Scores and values of a block."""
    len_q, block, d_v = sizes or draw.sizes(3, but=batch)
    return (
        draw.normal(*batch, len_q, block, dtype=dtype, scale=scale),
        draw.normal(*batch, block, d_v, dtype=dtype),
    )


def _two_blocks(draw: Draw, batch=(), dtype=torch.float32, scale=2.0):
    """The state after some keys, and another block. The scores of each query have a level of their own, above or below
    zero, so that the maxima have both signs."""
    len_q, block, d_v, before = draw.sizes(4, but=batch)
    old = _block(draw, batch, (len_q, before, d_v), dtype, scale)
    new = _block(draw, batch, (len_q, block, d_v), dtype, scale)
    level = draw.uniform(len_q, 1, low=6.0, high=9.0, dtype=dtype)
    level[::2] *= -1
    return (*_state_after(old[0] + level, old[1]), new[0] + level, new[1])


def _moved(args, by: Tensor | float):
    """The same step with the new scores shifted."""
    *state, scores, value = args
    return (*state, scores + by, value)


@exercise.holds("Maximum, total and output include the keys of the block and all keys before", weight=3)
def _(draw):
    state = torch.tensor([2.0]), torch.tensor([3.0]), torch.tensor([[6.0, -2.0]])
    yield Case(
        args=(*state, torch.tensor([[1.0, 0, -1]]), torch.tensor([[2.0, -4], [1, 0], [-3, 5]])),
        note="one query, the maximum does not change",
        degenerate_because="the smallest case, to be read by eye",
    )
    for batch in draw.batches():
        for dtype in (torch.float32, torch.float64):
            yield Case(args=_two_blocks(draw, batch, dtype))


@exercise.holds("Before the first block, the maximum is −∞ and both sums are 0", weight=2)
def _(draw):
    for batch in draw.batches():
        for dtype in (torch.float64, torch.float32):
            new = _block(draw, batch, dtype=dtype)
            yield Case(
                args=(*_start(*new), *new),
                note="the first block",
                degenerate_because="the state at the start is constant",
            )


@exercise.holds("Where the maximum grows, the sums so far are rescaled; elsewhere they are not", weight=2)
def _(draw):
    yield Case(
        args=_moved(_two_blocks(draw, scale=1.0), 9.0),
        note="all new scores are above the old ones",
        degenerate_because="scores of one sign",
    )
    yield Case(
        args=_moved(_two_blocks(draw, (3,), torch.float64, scale=1.0), -9.0),
        note="all new scores are below the old ones",
        degenerate_because="scores of one sign",
    )
    args = _two_blocks(draw, (2,), torch.float64)
    shift = draw.normal(*args[0].shape, dtype=torch.float64, scale=6.0)
    yield Case(args=_moved(args, shift[..., None]), note="the maximum grows for some queries, and not for others")


@exercise.holds("Blocks may have any number of keys, and tensors any layout in memory")
def _(draw):
    len_q, before, d_v = draw.sizes(3, 3, 8)
    for block in (1, before, 13):
        old = _block(draw, (), (len_q, before, d_v))
        new = _block(draw, (), (len_q, block, d_v))
        yield Case(
            args=(*_state_after(*old), *new),
            note=f"{block} keys in the block",
            degenerate_because="a length chosen on purpose",
        )
    old, new = (_block(draw, (3,), (4, 4, 4), torch.float64) for _ in range(2))
    yield Case(
        args=(*_state_after(*old), *new),
        note="L_q = block = d_v",
        degenerate_because="axes of one length: mistakes give numbers",
    )
    old, new = (_block(draw, (2, 1, 3), (5, n, 4)) for n in (7, 6))
    yield Case(
        args=(*_state_after(*old), *new),
        note="batch dimensions: 3",
        degenerate_because="a batch dimension of length one",
    )
    args = _two_blocks(draw, (3,))
    turned = tuple(x.mT.contiguous().mT for x in args)
    yield Case(args=turned, note="tensors that are transposed in memory")


@exercise.holds("Scores up to ±10,000 give finite and right results", weight=2)
def _(draw):
    for dtype in (torch.float32, torch.float64):
        low, high = (_moved(_two_blocks(draw, dtype=dtype), by) for by in (-9990.0, 9990.0))
        yield Case(args=high, note="new scores near 1e4", degenerate_because="scores of one sign", tolerance=50)
        yield Case(args=low, note="new scores near -1e4", degenerate_because="scores of one sign", tolerance=50)
        new = _block(draw, dtype=dtype)
        new = new[0] - 9990.0, new[1]
        yield Case(
            args=(*_start(*new), *new),
            note="first scores near -1e4",
            degenerate_because="scores of one sign",
            tolerance=50,
        )
    len_q, block, d_v = draw.sizes(3)
    old, new = (_block(draw, (), (len_q, block, d_v)) for _ in range(2))
    old = old[0] - 9990.0, old[1]
    yield Case(
        args=(*_state_after(*old), *new),
        note="old scores near -1e4",
        degenerate_because="the old maxima have one sign",
        tolerance=50,
    )
    spread = [
        (draw.uniform(len_q, block, low=-1e4, high=1e4, dtype=torch.float64), draw.normal(block, d_v).double())
        for _ in range(2)
    ]
    yield Case(
        args=(*_state_after(*spread[0]), *spread[1]),
        note="scores between -1e4 and 1e4",
        degenerate_because="large maxima",
        tolerance=50,
    )
