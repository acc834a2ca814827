"""Exercise `FeedForward`: metadata, stub and cases."""

import torch

from course_kit.exercises._draw import Draw
from course_kit.exercises._exercise import Case, Exercise
from course_kit.exercises._files import texts_next_to
from course_kit.exercises.transformer.small_layers import rows
from course_lib.transformer import FeedForward

exercise = Exercise(
    **texts_next_to(__file__),
    difficulty=1,
    minutes=5,
    stub='''\
class FeedForward(nn.Module):
    """linear2 of the ReLU of linear1, at every position."""

    def __init__(self, d_model, d_ff):
        super().__init__()
        raise NotImplementedError

    def forward(self, x):
        raise NotImplementedError
''',
    reference=FeedForward,
    shapes={"x": "... d_model"},
    read_next="transformer: The feed-forward network",
)


def _hidden_case(draw: Draw, batch=(), dtype=torch.float32, **more):
    d_model, d_ff = draw.sizes(2, 2, 9, but=batch)
    state = exercise.draw_state(draw, d_model, d_ff, dtype=dtype)
    return Case(args=(draw.normal(*batch, d_model, dtype=dtype),), init=(d_model, d_ff), state=state, **more)


@exercise.holds("It is the second Linear of the ReLU of the first", weight=3)
def _(draw):
    yield Case(
        args=(rows("2 -1 / 3 4")[None],),
        init=(2, 3),
        state={
            "linear1.weight": rows("1 0 / -1 1 / 1 2"),
            "linear1.bias": rows("0 1 1"),
            "linear2.weight": rows("1 2 0 / -1 0 1"),
            "linear2.bias": rows("3 -2"),
        },
        degenerate_because="a small case, to be followed with a pencil",
        note="hidden features 2, −2, 1 and 3, 2, 12 before the ReLU",
    )
    for _ in range(3):
        yield _hidden_case(draw, draw.sizes(2, 2, 5))


@exercise.holds("It works for a single position and for any number of axes before the features, in float32 and float64")
def _(draw):
    for batch in draw.batches():
        for dtype in (torch.float64, torch.float32):
            yield _hidden_case(draw, batch, dtype, note=f"{len(batch)} axes before the features")
    yield _hidden_case(draw, (2, 3, 4), note="3 axes before the features")
