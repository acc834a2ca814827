"""Exercise `additive_score`: metadata, stub and cases."""

import torch

from course_kit.exercises._draw import Draw
from course_kit.exercises._exercise import Case, Exercise
from course_kit.exercises._files import texts_next_to
from course_lib.attention import additive_score

__all__ = ["additive_score", "exercise"]


exercise = Exercise(
    **texts_next_to(__file__),
    difficulty=3,
    minutes=15,
    stub='''\
def additive_score(query, key, w_query, w_key, v):
    """Scores (..., L_q, L_k): entry ij is v . tanh(w_query q_i + w_key k_j)."""
    raise NotImplementedError
''',
    reference=additive_score,
    shapes={
        "query": "... len_q d_q",
        "key": "... len_k d_k",
        "w_query": "d_attn d_q",
        "w_key": "d_attn d_k",
        "v": "d_attn",
    },
    returns=("scores",),
    read_next="attention_scores: The additive score",
)


def _additive_inputs(draw: Draw, batch=(), dtype=torch.float32, scale=1.0, sizes=None):
    len_q, len_k, d_q, d_k, d_attn = sizes or draw.sizes(5, 2, 9, but=batch)
    return (
        draw.normal(*batch, len_q, d_q, dtype=dtype, scale=scale),
        draw.normal(*batch, len_k, d_k, dtype=dtype, scale=scale),
        draw.normal(d_attn, d_q, dtype=dtype, scale=d_q**-0.5),
        draw.normal(d_attn, d_k, dtype=dtype, scale=d_k**-0.5),
        draw.normal(d_attn, dtype=dtype),
    )


@exercise.holds("Entry ij is v · tanh(W_query q_i + W_key k_j)", weight=3)
def _(draw):
    query, key = torch.tensor([[1.0]]), torch.tensor([[-1.0], [2.0]])
    weights = torch.tensor([[1.0]]), torch.tensor([[0.5]]), torch.tensor([2.0])
    yield Case(args=(query, key, *weights), degenerate_because="the smallest case, to be read by eye")
    for _ in range(3):
        yield Case(args=_additive_inputs(draw))
    yield Case(args=_additive_inputs(draw, dtype=torch.float64))


@exercise.holds("It works with zero, one or two batch dimensions, in float32 and float64")
def _(draw):
    for batch in draw.batches():
        for dtype in (torch.float64, torch.float32):
            yield Case(args=_additive_inputs(draw, batch, dtype), note=f"batch dimensions: {len(batch)}")
    deep = _additive_inputs(draw, (2, 1, 3), sizes=(4, 2, 3, 5, 6))
    yield Case(args=deep, note="batch dimensions: 3", degenerate_because="short axes")
    turned = tuple(x.mT.contiguous().mT for x in _additive_inputs(draw, (3,))[:4])
    yield Case(args=(*turned, draw.normal(turned[2].shape[0])), note="tensors that are transposed in memory")


@exercise.holds("Queries and keys may be equal in width and number, and are still told apart")
def _(draw):
    len_q, len_k, width, d_attn = draw.sizes(4)
    wide = _additive_inputs(draw, sizes=(len_q, len_k, width, width, d_attn))
    yield Case(args=wide, degenerate_because="equal widths", note="d_q = d_k")
    same = _additive_inputs(draw, sizes=(len_q, len_k, width, width, width))
    yield Case(args=same, degenerate_because="equal widths", note="d_q = d_k = d_attn")
    d_q, d_k = draw.sizes(2, but=(len_q, d_attn))
    many = _additive_inputs(draw, (), torch.float64, sizes=(len_q, len_q, d_q, d_k, d_attn))
    yield Case(args=many, degenerate_because="equal lengths", note="L_q = L_k")
    alike = _additive_inputs(draw, (width,), sizes=(width,) * 5)
    yield Case(args=alike, degenerate_because="equal lengths and widths", note="all axes of one length")


@exercise.holds("Where the hidden layer saturates, the scores stay finite")
def _(draw):
    query, key, one = torch.tensor([[1000.0], [-1000.0]]), torch.tensor([[2.0]]), torch.tensor([[1.0]])
    small = query, key, one, one.clone(), torch.tensor([3.0])
    yield Case(args=small, degenerate_because="to be read by eye", note="hidden values near 1000", gradients=False)
    for dtype in (torch.float32, torch.float64):
        inputs = _additive_inputs(draw, dtype=dtype, scale=2000.0)
        yield Case(args=inputs, note="hidden values of some thousands", tolerance=50, gradients=False)
