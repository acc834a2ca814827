"""Exercise `EncoderLayer`: metadata, stub and cases."""

import torch

from course_kit.exercises._draw import Draw
from course_kit.exercises._exercise import Case, Exercise
from course_kit.exercises._files import texts_next_to
from course_kit.exercises._headings import ENCODER_LAYER
from course_kit.exercises.transformer.cases_of_layers import causal, layer_sizes
from course_kit.exercises.transformer.small_layers import ENCODER_OF_FOUR, ENCODER_OF_TWO
from course_lib.transformer import EncoderLayer

exercise = Exercise(
    **texts_next_to(__file__),
    forbidden=("_transformer_encoder_layer_fwd", "torch.nn.TransformerEncoderLayer"),
    difficulty=2,
    minutes=15,
    stub='''\
from course_lib import MultiHeadAttention
from course_lib.transformer import FeedForward


class EncoderLayer(nn.Module):
    """Self-attention, then feed-forward; each with residual and post-norm."""

    def __init__(self, d_model, num_heads, d_ff):
        super().__init__()
        raise NotImplementedError

    def forward(self, x, mask=None):
        raise NotImplementedError
''',
    reference=EncoderLayer,
    shapes={"x": "batch length d_model", "mask": "#"},
    read_next=ENCODER_LAYER,
)


def _encoder_case(draw: Draw, dtype=torch.float32, make_mask=None, **more):
    d_model, num_heads, d_ff, batch, length = layer_sizes(draw, 3)
    init = (d_model, num_heads, d_ff)
    x = draw.normal(batch, length, d_model, dtype=dtype)
    masks = () if make_mask is None else (make_mask(batch, num_heads, length),)
    return Case(args=(x, *masks), init=init, state=exercise.draw_state(draw, *init, dtype=dtype), **more)


@exercise.holds("norm1 of x plus its attention, then norm2 of that plus its feed-forward network", weight=3)
def _(draw):
    for heads, (args, state) in ((1, ENCODER_OF_TWO), (2, ENCODER_OF_FOUR)):
        yield Case(
            args=args,
            init=(args[0].shape[-1], heads, 3),
            state=state,
            degenerate_because="a small case, to be followed with a pencil",
            note=f"{args[0].shape[-1]} features, {'one head' if heads == 1 else 'two heads'}",
            gradients=False,
        )
    for dtype in (torch.float32, torch.float64):
        yield _encoder_case(draw, dtype)


@exercise.holds("A position that the mask forbids is not attended to", weight=2)
def _(draw):
    (x,), state = ENCODER_OF_FOUR
    yield Case(
        args=(x, causal(2)),
        init=(4, 2, 3),
        state=state,
        degenerate_because="a small case, to be followed with a pencil",
        note="two positions, the first sees itself only",
        gradients=False,
    )
    yield _encoder_case(draw, make_mask=lambda b, h, n: draw.mask(b, 1, 1, n), note="a padding mask (B, 1, 1, L)")
    yield _encoder_case(draw, torch.float64, lambda b, h, n: causal(n), note="a causal mask (L, L)")
    yield _encoder_case(draw, make_mask=lambda b, h, n: draw.mask(n, n), note="a mask (L, L)")
    yield _encoder_case(
        draw, make_mask=lambda b, h, n: draw.mask(h, n, n), note="a mask (H, L, L): axes line up from the right"
    )
    yield _encoder_case(draw, make_mask=lambda b, h, n: draw.mask(b, 1, n, n), note="a mask (B, 1, L, L)")
    yield _encoder_case(
        draw, torch.float64, lambda b, h, n: draw.mask(b, h, n, n), note="a mask of full size (B, H, L, L)"
    )
    yield _encoder_case(
        draw,
        make_mask=lambda b, h, n: torch.ones(n, n, dtype=torch.bool),
        note="a mask that allows everything",
    )


@exercise.holds("It attends with num_heads heads, to any number of positions")
def _(draw):
    for init, length, note in (
        ((6, 1, 4), 5, "one head"),
        ((4, 4, 7), 3, "as many heads as features"),
        ((8, 2, 5), 1, "one position"),
    ):
        x = draw.normal(2, length, init[0], dtype=torch.float64)
        state = exercise.draw_state(draw, *init, dtype=torch.float64)
        yield Case(args=(x,), init=init, state=state, note=note, degenerate_because=note, gradients=False)
