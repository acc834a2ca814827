"""Exercise `merge_heads`: metadata, stub and cases."""

import torch

from course_kit.exercises._draw import Draw
from course_kit.exercises._exercise import Case, Exercise
from course_kit.exercises._files import texts_next_to
from course_kit.exercises.multi_head.sizes import merged_by_chance
from course_lib.multi_head import merge_heads

__all__ = ["exercise", "merge_heads"]


exercise = Exercise(
    **texts_next_to(__file__),
    difficulty=2,
    minutes=8,
    stub='''\
def merge_heads(x):
    """(..., H, L, d_head) -> (..., L, H * d_head), the inverse of split_heads."""
    raise NotImplementedError
''',
    reference=merge_heads,
    shapes={"x": "... num_heads length d_head"},
    returns=("features",),
    read_next="multi_head: Merging the heads",
)


def _heads(draw: Draw, batch=(), dtype=torch.float32):
    shape = (*batch, *draw.sizes(3, 2, 7, but=batch))
    while merged_by_chance(*shape):
        shape = (*batch, *draw.sizes(3, 2, 7, but=batch))
    return (draw.normal(*shape, dtype=dtype),)


@exercise.holds("Each position holds the features of head 0, then those of head 1, and so on", weight=2)
def _(draw):
    x = torch.tensor([[[1.0, 2.0], [5.0, 6.0]], [[3.0, 4.0], [7.0, 8.0]]])
    yield Case(
        args=(x,),
        note="two heads, two positions, two features",
        degenerate_because="the smallest case, to be read by eye",
    )
    for _ in range(3):
        yield Case(args=_heads(draw))


@exercise.holds("It works with zero, one or two batch dimensions, in float32 and float64", weight=2)
def _(draw):
    for batch in draw.batches():
        for dtype in (torch.float64, torch.float32):
            yield Case(args=_heads(draw, batch, dtype), note=f"batch dimensions: {len(batch)}")
    yield Case(
        args=_heads(draw, (2, 1, 3)), note="batch dimensions: 3", degenerate_because="a batch dimension of length one"
    )
    turned = draw.normal(2, 5, 3, 4).transpose(-3, -2)
    yield Case(args=(turned,), note="a tensor that lies in memory as split_heads leaves it")


@exercise.holds("It works for one head, heads of one feature, a single position and a batch of one")
def _(draw):
    batch, num_heads, length, d_head = draw.sizes(4)
    for note, shape in (
        ("one head", (batch, 1, length, d_head)),
        ("heads of one feature", (batch, num_heads, length, 1)),
        ("a single position", (batch, num_heads, 1, d_head)),
        ("a batch of one", (1, num_heads, length, d_head)),
    ):
        yield Case(args=(draw.normal(*shape),), note=note, degenerate_because="a length of one on purpose")
