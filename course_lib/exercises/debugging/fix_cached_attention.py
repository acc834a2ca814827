"""Exercise `fix_cached_attention`: metadata, stub and cases."""

from __future__ import annotations

import torch
import torch.nn.functional as F

from course_lib.exercises._exercise import Case, Exercise
from course_lib.exercises._files import beside

__all__ = ["exercise", "fix_cached_attention"]


def fix_cached_attention(query, key, value):
    len_q, len_k = query.shape[-2], key.shape[-2]
    past = torch.ones(len_q, len_k, dtype=torch.bool, device=query.device).tril(len_k - len_q)  # (L_q, L_k)
    return F.scaled_dot_product_attention(query, key, value, attn_mask=past)


exercise = Exercise(
    **beside(__file__),
    name="fix_cached_attention",
    chapter="debugging",
    repair=True,
    difficulty=1,
    minutes=5,
    stub='''\
def fix_cached_attention(query, key, value):
    """Causal attention of the last L_q of L_k positions: query i sees keys up to its own."""
    raise NotImplementedError  # delete this line once you have decided
    return F.scaled_dot_product_attention(query, key, value, is_causal=True)
''',
    reference=fix_cached_attention,
    shapes={"query": "... len_q d_k", "key": "... len_k d_k", "value": "... len_k d_v"},
    look="deeper/mask_bugs: TODO",
)


@exercise.holds("The result is right")
def _(draw):
    for batch in draw.batches():
        len_k, d_k, d_v = draw.sizes(3, 4, 9, but=batch)
        for len_q in (1, 3):
            yield Case(
                args=(draw.normal(*batch, len_q, d_k), draw.normal(*batch, len_k, d_k), draw.normal(*batch, len_k, d_v))
            )
