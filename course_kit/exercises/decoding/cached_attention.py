"""Exercise `cached_attention`: metadata, stub and cases."""

import torch

from course_kit.exercises._draw import Draw
from course_kit.exercises._exercise import Case, Exercise
from course_kit.exercises._files import texts_next_to
from course_lib.decoding import cached_attention

CACHING = "key_value_cache: What has to be kept"


exercise = Exercise(
    **texts_next_to(__file__),
    difficulty=3,
    minutes=20,
    stub='''\
def cached_attention(query, key, value, cache=None):
    """(output, (keys, values)) of one step; cache: (keys, values) of those before."""
    raise NotImplementedError
''',
    reference=cached_attention,
    shapes={
        "query": "batch heads 1 d",
        "key": "batch heads 1 d",
        "value": "batch heads 1 d",
        "cache": "batch heads past d",
    },
    returns=("output", "cache"),
    read_next=CACHING,
)


def _step(draw: Draw, sizes=None, dtype=torch.float32, scale=1.0, first=False):
    batch, heads, past, d = sizes or draw.sizes(4, 2, 7)
    new = [draw.normal(batch, heads, 1, d, dtype=dtype, scale=s) for s in (scale, scale, 1.0)]
    old = tuple(draw.normal(batch, heads, past, d, dtype=dtype, scale=s) for s in (scale, 1.0))
    return (*new, *(() if first else (old,)))


@exercise.holds("The first token attends to itself and starts the cache")
def _(draw):
    edge = "one head of two features, to be read by eye"
    yield Case(args=_step(draw, (1, 1, 0, 2), first=True), note="no cache yet", degenerate_because=edge)
    yield Case(args=_step(draw, first=True, dtype=torch.float64), note="no cache yet")
    yield Case(args=(*_step(draw, first=True), None), note="the cache is None")


@exercise.holds("The newest token attends to all tokens before it, and to itself", weight=3)
def _(draw):
    yield Case(args=_step(draw, (1, 1, 2, 2)), degenerate_because="one head, two tokens before, to be read by eye")
    for dtype in (torch.float32, torch.float64, torch.float32):
        yield Case(args=_step(draw, dtype=dtype))


@exercise.holds("The cache grows by one token at its end, along the token axis", weight=2)
def _(draw):
    yield Case(
        args=_step(draw, (2, 3, 1, 4)), note="one token before", degenerate_because="a past of one token on purpose"
    )
    yield Case(args=_step(draw, (2, 4, 9, 3)), note="nine tokens before")
    yield Case(
        args=_step(draw, (1, 1, 1, 3)), note="one token before, one head", degenerate_because="axes of one on purpose"
    )
    yield Case(args=_step(draw, (1, 3, 4, 2)), note="a batch of one", degenerate_because="a batch of one on purpose")
    yield Case(args=_step(draw, (3, 1, 5, 2)), note="one head", degenerate_because="one head on purpose")
    yield Case(args=_step(draw, (3, 2, 4, 1)), note="d is one", degenerate_because="one feature on purpose")
    yield Case(
        args=_step(draw, (2, 3, 4, 4)), note="as many tokens before as features", degenerate_because="equal on purpose"
    )


@exercise.holds("Large scores stay finite, and right")
def _(draw):
    for dtype in (torch.float32, torch.float64):
        step = _step(draw, dtype=dtype, scale=60.0)
        yield Case(args=step, note="scores of some thousands", tolerance=50, gradients=False)
