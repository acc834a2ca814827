"""Exercise `fix_loss`: metadata, stub and cases."""

from __future__ import annotations

import torch
import torch.nn.functional as F

from course_lib.exercises._exercise import Case, Exercise
from course_lib.exercises._files import beside

__all__ = ["exercise", "fix_loss"]


def fix_loss(logits, targets, pad_id):
    real = targets != pad_id  # (B, L)
    loss = F.cross_entropy(logits.flatten(0, 1), targets.flatten(), reduction="none")  # (B · L,)
    return loss[real.flatten()].mean()


exercise = Exercise(
    **beside(__file__),
    name="fix_loss",
    chapter="debugging",
    repair=True,
    difficulty=1,
    minutes=5,
    stub='''\
def fix_loss(logits, targets, pad_id):
    """Cross-entropy in nats, mean over the targets that are not pad_id."""
    raise NotImplementedError  # delete this line once you have decided
    real = (targets != pad_id).to(logits.dtype)  # (B, L)
    losses = F.cross_entropy(logits.transpose(1, 2), targets, reduction="none")  # (B, L)
    return (losses * real).mean()
''',
    reference=fix_loss,
    shapes={"logits": "batch length vocab", "targets": "batch length"},
    look="debugging: The loss at the start",
    returns=("loss",),
)


@exercise.holds("The result is right")
def _(draw):
    for _ in range(3):
        batch, length, vocab = draw.sizes(3, 4, 9)
        targets = torch.tensor([[draw.integer(1, vocab - 1) for _ in range(length)] for _ in range(batch)])
        targets[0, -2:] = 0
        yield Case(args=(draw.normal(batch, length, vocab), targets, 0))
