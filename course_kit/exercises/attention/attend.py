"""Exercise `attend`: metadata, stub and cases."""

import math

import torch

from course_kit.exercises._draw import Draw
from course_kit.exercises._exercise import Case, Exercise
from course_kit.exercises._files import texts_next_to
from course_kit.exercises.attention.shifted_rows import shifted_rows
from course_lib.attention import attend

exercise = Exercise(
    **texts_next_to(__file__),
    difficulty=1,
    minutes=5,
    stub='''\
def attend(scores, value):
    """(output, weights): the softmax over the keys, and the values averaged with it."""
    raise NotImplementedError
''',
    reference=attend,
    shapes={"scores": "... len_q len_k", "value": "... len_k d_v"},
    returns=("output", "weights"),
    read_next="attention: Attention: the weighted average of the values",
)


def _scores_and_value(draw: Draw, batch=(), dtype=torch.float32, scale=2.0):
    len_q, len_k, d_v = draw.sizes(3, but=batch)
    return (
        draw.normal(*batch, len_q, len_k, dtype=dtype, scale=scale),
        draw.normal(*batch, len_k, d_v, dtype=dtype),
    )


@exercise.holds(
    "The weights are the softmax of the scores over the keys; the output is their average of the values", weight=3
)
def _(draw):
    scores = torch.tensor([[0.0, math.log(3.0)]])
    yield Case(args=(scores, torch.tensor([[4.0], [8.0]])), degenerate_because="the smallest case, to be read by eye")
    for batch in draw.batches():
        yield Case(args=_scores_and_value(draw, batch))
    size = draw.integer(3, 5)
    square = draw.normal(size, size, scale=2.0), draw.normal(size, size)
    yield Case(args=square, degenerate_because="equal lengths", note="L_q = L_k = d_v")


@exercise.holds("It works with zero, one or two batch dimensions, in float32 and float64")
def _(draw):
    for batch in draw.batches():
        for dtype in (torch.float64, torch.float32):
            yield Case(args=_scores_and_value(draw, batch, dtype), note=f"batch dimensions: {len(batch)}")
    yield Case(args=_scores_and_value(draw, (2, 1, 3)), note="batch dimensions: 3", degenerate_because="short axes")
    turned = tuple(x.mT.contiguous().mT for x in _scores_and_value(draw, (3,)))
    yield Case(args=turned, note="tensors that are transposed in memory")
    size = draw.integer(2, 4)
    cube = draw.normal(size, size, size, scale=2.0), draw.normal(size, size, size)
    yield Case(args=cube, degenerate_because="equal lengths", note="B = L_q = L_k = d_v")


@exercise.holds("Equal scores give the plain mean of the values; a score far above the others gives its value only")
def _(draw):
    len_k, d_v = draw.sizes(2)
    value = draw.normal(len_k, d_v)
    yield Case(args=(torch.zeros(2, len_k), value), degenerate_because="scores of 0", note="all scores 0")
    ahead = draw.normal(2, len_k)
    ahead[0, 1] = ahead[1, 0] = 60.0
    yield Case(args=(ahead, value), degenerate_because="one length may be 2 twice", note="one score far ahead")


@exercise.holds("Scores up to ±10,000 stay finite", weight=2)
def _(draw):
    for dtype in (torch.float32, torch.float64):
        len_k, d_v = draw.sizes(2, but=(3,))
        value = draw.normal(len_k, d_v, dtype=dtype)
        yield Case(args=(shifted_rows(draw, len_k, dtype), value), note="scores around ±1e4", tolerance=50)
    scores, value = _scores_and_value(draw, (8,))
    scores = draw.uniform(*scores.shape, low=-1e4, high=1e4)
    yield Case(args=(scores, value), note="scores between -1e4 and 1e4", tolerance=50)
