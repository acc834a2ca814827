"""Exercise `fix_decoder_attention`: metadata, stub and cases."""

import torch
from torch import nn

from course_kit.exercises._draw import Draw
from course_kit.exercises._exercise import Case, Exercise
from course_kit.exercises._files import texts_next_to

__all__ = ["exercise", "fix_decoder_attention"]


def fix_decoder_attention(x, memory, self_mask, memory_mask):
    attention = nn.functional.scaled_dot_product_attention
    x = x + attention(x, x, x, attn_mask=self_mask)  # (B, L_t, d)
    return x + attention(x, memory, memory, attn_mask=memory_mask)


exercise = Exercise(
    **texts_next_to(__file__),
    repair=True,
    difficulty=1,
    minutes=4,
    stub='''\
import torch.nn.functional as F


def fix_decoder_attention(x, memory, self_mask, memory_mask):
    """Self-attention over x, then attention to the memory, each added to x."""
    raise NotImplementedError  # delete this line once you have decided
    x = x + F.scaled_dot_product_attention(x, x, x, attn_mask=self_mask)  # (B, L_t, d)
    return x + F.scaled_dot_product_attention(x, memory, memory)
''',
    reference=fix_decoder_attention,
    shapes={
        "x": "batch len_target d_model",
        "memory": "batch len_source d_model",
        "self_mask": "#",
        "memory_mask": "#",
    },
    read_next="debugging: Adding padding",
)


def _target_source_and_masks(draw: Draw, sizes=None, dtype=torch.float32, *, causal=True, padded=True):
    """The arguments; a causal or an arbitrary self_mask, a source with or without padding."""
    batch, len_target, len_source, d_model = sizes or draw.sizes(4, 2, 7)
    shape = (batch, len_target, len_target)
    past = torch.ones(shape, dtype=torch.bool).tril()
    return (
        draw.normal(batch, len_target, d_model, dtype=dtype),
        draw.normal(batch, len_source, d_model, dtype=dtype),
        past if causal else draw.mask(*shape),
        draw.mask(batch, 1, len_source) if padded else torch.ones(batch, 1, len_source, dtype=torch.bool),
    )


@exercise.holds("Padding appended to the source leaves the output as it is", weight=3)
def _(draw):
    yield Case(
        args=(
            torch.tensor([[[1.0, -1.0]]]),
            torch.tensor([[[2.0, 0.0], [0.0, -4.0]]]),
            torch.tensor([[[True]]]),
            torch.tensor([[[True, False]]]),
        ),
        note="one target token, a source token and a padded one",
        degenerate_because="the smallest case, to be read by eye",
    )
    for dtype in (torch.float32, torch.float64):
        yield Case(args=_target_source_and_masks(draw, dtype=dtype), note="a padded source")
    x, memory, self_mask, memory_mask = _target_source_and_masks(draw, (3, 4, 6, 5), dtype=torch.float64)
    memory_mask[:] = torch.arange(6) < torch.tensor([2, 6, 1])[:, None, None]
    memory = torch.where(memory_mask.mT, memory, 50 * memory)
    yield Case(args=(x, memory, self_mask, memory_mask), note="source lengths 2, 6 and 1, large numbers in the padding")


@exercise.holds("A target token that self_mask hides has no influence", weight=2)
def _(draw):
    for dtype in (torch.float32, torch.float64):
        yield Case(
            args=_target_source_and_masks(draw, dtype=dtype, padded=False), note="a causal self_mask, nothing padded"
        )
        yield Case(
            args=_target_source_and_masks(draw, dtype=dtype, causal=False, padded=False),
            note="a self_mask that is not causal",
        )


@exercise.holds("Where nothing is masked, the output is x plus both attentions, one after the other")
def _(draw):
    for dtype in (torch.float32, torch.float64):
        x, memory, self_mask, memory_mask = _target_source_and_masks(draw, dtype=dtype, padded=False)
        yield Case(args=(x, memory, torch.ones_like(self_mask), memory_mask), note="masks that allow everything")


@exercise.holds("Both masks together, each in its own attention, for any lengths and layout in memory", weight=2)
def _(draw):
    for dtype in (torch.float32, torch.float64):
        yield Case(args=_target_source_and_masks(draw, dtype=dtype, causal=False), note="two arbitrary masks")
    for sizes, note in (
        ((2, 4, 4, 3), "source and target of the same length"),
        ((1, 3, 5, 4), "a batch of one"),
        ((3, 1, 5, 4), "one target token, as in generation"),
        ((3, 5, 1, 4), "a source of one token"),
        ((3, 4, 5, 1), "d is one"),
    ):
        yield Case(args=_target_source_and_masks(draw, sizes), note=note, degenerate_because=note)
    x, memory, self_mask, memory_mask = _target_source_and_masks(draw)
    yield Case(
        args=(x.mT.contiguous().mT, memory.mT.contiguous().mT, self_mask, memory_mask), note="transposed in memory"
    )
