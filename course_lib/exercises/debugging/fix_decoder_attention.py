"""Exercise `fix_decoder_attention`: metadata, stub and cases."""

from __future__ import annotations

import torch.nn.functional as F

from course_lib.exercises._exercise import Case, Exercise
from course_lib.exercises._files import beside

__all__ = ["exercise", "fix_decoder_attention"]


def fix_decoder_attention(x, memory, self_mask, memory_mask):
    x = x + F.scaled_dot_product_attention(x, x, x, attn_mask=self_mask)  # (B, L_t, d)
    return x + F.scaled_dot_product_attention(x, memory, memory, attn_mask=memory_mask)


exercise = Exercise(
    **beside(__file__),
    name="fix_decoder_attention",
    chapter="debugging",
    repair=True,
    difficulty=1,
    minutes=5,
    stub='''\
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
    look="debugging: Adding padding",
)


@exercise.holds("The result is right")
def _(draw):
    for _ in range(3):
        batch, len_target, len_source, d_model = draw.sizes(4, 3, 9)
        yield Case(
            args=(
                draw.normal(batch, len_target, d_model),
                draw.normal(batch, len_source, d_model),
                draw.mask(batch, len_target, len_target),
                draw.mask(batch, 1, len_source),
            )
        )
