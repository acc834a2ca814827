"""Exercise `fix_padding_mask`: metadata, stub and cases."""

from __future__ import annotations

import torch
import torch.nn.functional as F

from course_lib.exercises._exercise import Case, Exercise
from course_lib.exercises._files import beside

__all__ = ["exercise", "fix_padding_mask"]


def fix_padding_mask(query, key, value, real):
    keep = real.bool()[:, None, None, :]  # (B, 1, 1, L_k), True = may attend
    return F.scaled_dot_product_attention(query, key, value, attn_mask=keep)


exercise = Exercise(
    **beside(__file__),
    name="fix_padding_mask",
    chapter="debugging",
    repair=True,
    difficulty=1,
    minutes=5,
    stub='''\
def fix_padding_mask(query, key, value, real):
    """Attention to the keys whose number in `real` is 1; those with 0 are padding."""
    raise NotImplementedError  # delete this line once you have decided
    keep = real.to(query.dtype)[:, None, None, :]  # (B, 1, 1, L_k)
    return F.scaled_dot_product_attention(query, key, value, attn_mask=keep)
''',
    reference=fix_padding_mask,
    shapes={"query": "... len_q d_k", "key": "... len_k d_k", "value": "... len_k d_v", "real": "batch len_k"},
    look="deeper/mask_bugs: TODO",
)


@exercise.holds("The result is right")
def _(draw):
    for _ in range(3):
        batch, heads, len_q, len_k, d_k, d_v = draw.sizes(6, 2, 9)
        real = torch.ones(batch, len_k, dtype=torch.int64)
        real[0, -1:] = 0
        yield Case(
            args=(
                draw.normal(batch, heads, len_q, d_k),
                draw.normal(batch, heads, len_k, d_k),
                draw.normal(batch, heads, len_k, d_v),
                real,
            )
        )
