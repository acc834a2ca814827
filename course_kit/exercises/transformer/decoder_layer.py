"""Exercise `DecoderLayer`: metadata, stub and cases."""

import torch

from course_kit.exercises._draw import Draw
from course_kit.exercises._exercise import Case, Exercise
from course_kit.exercises._files import texts_next_to
from course_kit.exercises._headings import DECODER_LAYER
from course_kit.exercises.transformer.cases_of_layers import causal, layer_sizes
from course_kit.exercises.transformer.small_layers import DECODER_OF_FOUR, DECODER_OF_TWO
from course_lib.transformer import DecoderLayer

exercise = Exercise(
    **texts_next_to(__file__),
    forbidden=("torch.nn.TransformerDecoderLayer",),
    difficulty=3,
    minutes=20,
    stub='''\
from course_lib import MultiHeadAttention
from course_lib.transformer import FeedForward


class DecoderLayer(nn.Module):
    """Self-attention, cross-attention, feed-forward; residual and post-norm."""

    def __init__(self, d_model, num_heads, d_ff):
        super().__init__()
        raise NotImplementedError

    def forward(self, x, memory, self_mask=None, memory_mask=None):
        raise NotImplementedError
''',
    reference=DecoderLayer,
    shapes={"x": "batch length d_model", "memory": "batch len_memory d_model", "self_mask": "#", "memory_mask": "#"},
    read_next=DECODER_LAYER,
)


def _decoder_case(draw: Draw, dtype=torch.float32, self_mask=None, memory_mask=None, longer=None, **more):
    """A case; masks are made from batch, num_heads and both lengths; `longer`: whether the source is the longer one."""
    d_model, num_heads, d_ff, batch, *lengths = layer_sizes(draw, 4)
    length, len_memory = lengths if longer is None else sorted(lengths, reverse=not longer)
    init = (d_model, num_heads, d_ff)
    x = draw.normal(batch, length, d_model, dtype=dtype)
    memory = draw.normal(batch, len_memory, d_model, dtype=dtype)
    masks = [make and make(batch, num_heads, length, len_memory) for make in (self_mask, memory_mask)]
    args = (x, memory, *masks) if self_mask or memory_mask else (x, memory)
    return Case(args=args, init=init, state=exercise.draw_state(draw, *init, dtype=dtype), **more)


@exercise.holds("Self-attention, cross-attention and feed-forward network, each added to x, then normed", weight=3)
def _(draw):
    for heads, (args, state) in ((1, DECODER_OF_TWO), (2, DECODER_OF_FOUR)):
        yield Case(
            args=args,
            init=(args[0].shape[-1], heads, 3),
            state=state,
            degenerate_because="a small case, to be followed with a pencil",
            note=f"{args[0].shape[-1]} features, {'one head' if heads == 1 else 'two heads'}",
            gradients=False,
        )
    yield _decoder_case(draw, longer=True, note="the source is longer than the target")
    yield _decoder_case(draw, torch.float64, longer=False, note="the source is shorter than the target")
    for length, len_memory, heads, note in (
        (5, 1, 1, "one head, a source of one position"),
        (1, 5, 3, "one target position, as in generation"),
    ):
        yield Case(
            args=(draw.normal(2, length, 6), draw.normal(2, len_memory, 6)),
            init=(6, heads, 4),
            state=exercise.draw_state(draw, 6, heads, 4),
            degenerate_because=note,
            note=note,
            gradients=False,
        )


@exercise.holds("self_mask says which target positions a target position sees", weight=2)
def _(draw):
    (x, memory), state = DECODER_OF_FOUR
    yield Case(
        args=(x, memory, causal(2)),
        init=(4, 2, 3),
        state=state,
        degenerate_because="a small case, to be followed with a pencil",
        note="the first target position sees itself only",
        gradients=False,
    )
    yield _decoder_case(draw, torch.float64, lambda b, h, n, m: causal(n), note="a causal self_mask (L, L)")
    yield _decoder_case(
        draw,
        self_mask=lambda b, h, n, m: causal(n) & torch.cat([true(b, 1, 1, 1), draw.mask(b, 1, 1, n - 1)], -1),
        note="a self_mask (B, 1, L, L), causal and without padding",
    )
    yield _decoder_case(
        draw, self_mask=lambda b, h, n, m: draw.mask(h, n, n), note="a self_mask (H, L, L), not causal", gradients=False
    )
    yield _decoder_case(
        draw, self_mask=lambda b, h, n, m: draw.mask(b, h, n, n), note="a self_mask of full size", gradients=False
    )
    yield _decoder_case(draw, self_mask=lambda b, h, n, m: true(n, n), note="a self_mask that allows everything")


@exercise.holds("memory_mask says which source positions a target position sees", weight=2)
def _(draw):
    (x, memory), state = DECODER_OF_FOUR
    yield Case(
        args=(x, memory, None, torch.tensor([[[[True, False, True]]]])),
        init=(4, 2, 3),
        state=state,
        degenerate_because="a small case, to be followed with a pencil",
        note="the source position in the middle is padding",
        gradients=False,
    )
    for dtype, longer in ((torch.float64, True), (torch.float32, False)):
        yield _decoder_case(
            draw,
            dtype,
            memory_mask=lambda b, h, n, m: draw.mask(b, 1, 1, m),
            longer=longer,
            note="a memory_mask (B, 1, 1, L_memory)",
            gradients=longer,
        )
    yield _decoder_case(draw, memory_mask=lambda b, h, n, m: draw.mask(b, h, n, m), note="a memory_mask of full size")
    yield _decoder_case(draw, memory_mask=lambda b, h, n, m: draw.mask(n, m), note="a memory_mask (L, L_memory)")
    yield _decoder_case(draw, memory_mask=lambda b, h, n, m: draw.mask(h, n, m), note="a memory_mask (H, L, L_memory)")


@exercise.holds("Both masks together, each in its own attention", weight=2)
def _(draw):
    for dtype in (torch.float32, torch.float64):
        yield _decoder_case(
            draw,
            dtype,
            lambda b, h, n, m: causal(n),
            lambda b, h, n, m: draw.mask(b, 1, 1, m),
            note="causal self_mask, padded source",
            gradients=False,
        )
    x, memory = draw.normal(2, 5, 6, dtype=torch.float64), draw.normal(2, 5, 6, dtype=torch.float64)
    yield Case(
        args=(x, memory, causal(5), draw.mask(2, 1, 1, 5)),
        init=(6, 3, 4),
        state=exercise.draw_state(draw, 6, 3, 4, dtype=torch.float64),
        degenerate_because="equal lengths, so that exchanged masks raise no error",
        note="source and target of the same length",
        gradients=False,
    )


def true(*shape):
    return torch.ones(*shape, dtype=torch.bool)
