"""Exercise `linear_attention`: metadata, stub and cases."""

import torch

from course_kit.exercises._draw import Draw
from course_kit.exercises._exercise import Case, Exercise
from course_kit.exercises._files import texts_next_to
from course_lib.efficiency import linear_attention

exercise = Exercise(
    **texts_next_to(__file__),
    difficulty=3,
    minutes=20,
    stub='''\
def linear_attention(query, key, value):
    """Causal linear attention with elu(x) + 1: (..., L, d_k) and (..., L, d_v)."""
    raise NotImplementedError
''',
    reference=linear_attention,
    shapes={"query": "... length d_k", "key": "... length d_k", "value": "... length d_v"},
    read_next="linear_attention: Causal linear attention: a running state",
)


def _sequence(draw: Draw, batch=(), dtype=torch.float32, sizes=None):
    length, d_k, d_v = sizes or draw.sizes(3, but=batch)
    return tuple(draw.normal(*batch, length, d, dtype=dtype) for d in (d_k, d_k, d_v))


@exercise.holds("Each position averages the values up to its own, with weights φ(q) · φ(k) that sum to one", weight=3)
def _(draw):
    query, key = torch.tensor([[1.0, -1], [0, 1]]), torch.tensor([[2.0, 0], [-1, 1]])
    yield Case(
        args=(query, key, torch.tensor([[4.0], [-8]])),
        note="two positions, two features",
        degenerate_because="the smallest case, to be read by eye",
    )
    for batch in draw.batches():
        yield Case(args=_sequence(draw, batch))
    yield Case(args=_sequence(draw, sizes=(9, 4, 3)), note="nine positions")
    yield Case(
        args=_sequence(draw, sizes=(4, 4, 4)), note="L = d_k = d_v", degenerate_because="mistakes give numbers here"
    )


@exercise.holds("It works with any number of batch dimensions, including none, in float32 and float64", weight=2)
def _(draw):
    for batch in draw.batches():
        for dtype in (torch.float64, torch.float32):
            yield Case(args=_sequence(draw, batch, dtype), note=f"batch dimensions: {len(batch)}")
    yield Case(
        args=_sequence(draw, (2, 1, 3)),
        note="batch dimensions: 3",
        degenerate_because="a batch dimension of length one",
    )
    turned = tuple(x.mT.contiguous().mT for x in _sequence(draw, (3,)))
    yield Case(args=turned, note="tensors that are transposed in memory")


@exercise.holds("Short sequences, long ones and single features are no exception")
def _(draw):
    yield Case(args=_sequence(draw, (2,), sizes=(1, 3, 4)), note="one position", degenerate_because="one position")
    yield Case(args=_sequence(draw, (3,), sizes=(5, 1, 2)), note="d_k is one", degenerate_because="one feature")
    yield Case(
        args=_sequence(draw, (3,), sizes=(5, 4, 1)), note="d_v is one", degenerate_because="one feature of a value"
    )
    yield Case(args=_sequence(draw, (1,), sizes=(5, 4, 3)), note="a batch of one", degenerate_because="a batch of one")
    for dtype in (torch.float32, torch.float64):
        yield Case(args=_sequence(draw, dtype=dtype, sizes=(200, 5, 3)), note="200 positions", gradients=False)
    yield Case(args=_sequence(draw, (2,), sizes=(6, 64, 32)), note="64 features", gradients=False)
