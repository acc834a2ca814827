"""Exercise `LearnedPositionalEmbedding`: metadata, stub and cases."""

import torch

from course_kit.exercises._draw import Draw
from course_kit.exercises._exercise import Case, Exercise
from course_kit.exercises._files import texts_next_to
from course_lib.positional_encoding import LearnedPositionalEmbedding

exercise = Exercise(
    **texts_next_to(__file__),
    difficulty=2,
    minutes=10,
    stub='''\
class LearnedPositionalEmbedding(nn.Module):
    """x plus a trained vector for each of its positions."""

    def __init__(self, max_length, d_model):
        super().__init__()
        raise NotImplementedError

    def forward(self, x):
        raise NotImplementedError
''',
    reference=LearnedPositionalEmbedding,
    shapes={"x": "batch length d_model"},
    read_next="positional_encoding: Learned positional embeddings",
)


def _learned(draw: Draw, dtype=torch.float32, more=0, **options):
    """A call with `more` positions than there are vectors; fewer than there are where `more` is negative."""
    max_length, d_model, batch = draw.sizes(3, 4, 9)
    length = max_length + more
    while length in {d_model, batch}:
        max_length, d_model, batch = draw.sizes(3, 4, 9)
        length = max_length + more
    return Case(
        init=(max_length, d_model),
        state=exercise.draw_state(draw, max_length, d_model, dtype=dtype),
        args=(draw.normal(batch, length, d_model, dtype=dtype),),
        **options,
    )


@exercise.holds("The vector of its position is added to each token, the same in every sequence", weight=3)
def _(draw):
    yield Case(
        init=(4, 2),
        state={"embedding.weight": torch.tensor([[10.0, -10.0], [20.0, -20.0], [30.0, -30.0], [40.0, -40.0]])},
        args=(torch.tensor([[[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]]),),
        degenerate_because="a small case, to be followed with a pencil: 10 on the first position, 20 on the second",
        note="one sequence of three positions",
    )
    for more in (-1, -2):
        yield _learned(draw, more=more)
    for more in (-1, -2):
        yield _learned(draw, torch.float64, more=more)


@exercise.holds("x may have max_length positions, or far fewer")
def _(draw):
    for dtype in (torch.float32, torch.float64):
        yield _learned(
            draw, dtype, more=0, note="L = max_length", degenerate_because="two axes of one length on purpose"
        )
    max_length, d_model, batch = draw.sizes(3, 4, 9)
    yield Case(
        init=(max_length, d_model),
        state=exercise.draw_state(draw, max_length, d_model),
        args=(draw.normal(batch, 1, d_model),),
        note="one position",
        degenerate_because="a length of one on purpose",
    )
    for (max_length, d_model), shape, note in (
        ((5, 3), (7, 2, 3), "more sequences than max_length"),
        ((4, 6), (2, 3, 6), "more features than max_length"),
        ((40, 3), (2, 30, 3), "30 of 40 positions, few features"),
        ((1100, 3), (2, 1050, 3), "more than 1,000 positions"),
    ):
        state = exercise.draw_state(draw, max_length, d_model)
        yield Case(init=(max_length, d_model), state=state, args=(draw.normal(*shape),), note=note)


@exercise.holds("If x is longer than max_length, a ValueError is raised")
def _(draw):
    yield _learned(draw, more=1, raises=ValueError, note="L = max_length + 1")
    yield _learned(draw, more=3, raises=ValueError, note="L = max_length + 3")
    yield _learned(draw, torch.float64, more=1, raises=ValueError, note="L = max_length + 1")
