"""Exercise `fix_loss`: metadata, stub and cases."""

import torch
from torch import nn

from course_kit.exercises._draw import Draw
from course_kit.exercises._exercise import Case, Exercise
from course_kit.exercises._files import texts_next_to

__all__ = ["exercise", "fix_loss"]


def fix_loss(logits, targets, pad_id):
    by_class = logits.transpose(1, 2)  # (B, V, L)
    losses = nn.functional.cross_entropy(by_class, targets, reduction="none")  # (B, L)
    return losses[targets != pad_id].mean()


exercise = Exercise(
    **texts_next_to(__file__),
    repair=True,
    difficulty=1,
    minutes=5,
    stub='''\
import torch.nn.functional as F


def fix_loss(logits, targets, pad_id):
    """Cross-entropy in nats, mean over the targets that are not pad_id."""
    raise NotImplementedError  # delete this line once you have decided
    real = (targets != pad_id).to(logits.dtype)  # (B, L)
    by_class = logits.transpose(1, 2)  # (B, V, L)
    losses = F.cross_entropy(by_class, targets, reduction="none")  # (B, L)
    return (losses * real).mean()
''',
    reference=fix_loss,
    shapes={"logits": "batch length vocab", "targets": "batch length"},
    read_next="debugging: The loss at the start",
    forbidden=(
        "course_lib.label_smoothing_loss",
        "course_kit.translator.fast_loss.chunked_label_smoothing_loss",
        "course_kit.translator.fast_loss.masked_label_smoothing_loss",
    ),
    returns=("loss",),
)


def _batch(draw: Draw, pad_id=0, real: tuple[int, ...] = (), length=6, dtype=torch.float32):
    """Logits, targets and pad_id; sequence b starts with real[b] real targets, and the rest of it is padding."""
    if not real:
        batch, length = draw.sizes(2, 3, 6)
        real = (length,) * batch
    (vocab,) = draw.sizes(1, 5, 9, but=(len(real), length))
    targets = draw.integers(len(real), length, low=0, high=vocab - 2)
    targets += targets >= pad_id  # none of them is pad_id
    for row, count in zip(targets, real, strict=True):
        row[count:] = pad_id
    logits = draw.normal(len(real), length, vocab, dtype=dtype, scale=2.0)
    return logits, targets, pad_id


@exercise.holds(
    "Padding leaves the loss as it is: a batch with half of it padded costs no less per real target", weight=3
)
def _(draw):
    yield Case(
        args=(torch.zeros(1, 4, 2), torch.tensor([[1, 1, 0, 0]]), 0),
        note="logits that know nothing, half of the targets padded",
        degenerate_because="the smallest case, to be read by eye",
    )
    for dtype in (torch.float32, torch.float64):
        yield Case(args=_batch(draw, real=(2, 2, 2), dtype=dtype), note="all sequences end in padding")
    yield Case(args=_batch(draw, real=(0, 1, 0)), note="a single real target in the whole batch")
    logits, targets, pad_id = _batch(draw, real=(4, 4))
    targets[:, 4], targets[:, 1] = targets[:, 1].clone(), pad_id
    yield Case(args=(logits, targets, pad_id), note="padding between real targets")


@exercise.holds("Each real target counts the same, in a long sequence and in a short one", weight=2)
def _(draw):
    for real, note in (((6, 1, 3), "lengths 6, 1 and 3"), ((5, 0, 2), "a sequence of padding only")):
        yield Case(args=_batch(draw, real=real), note=note)
    yield Case(args=_batch(draw, real=(1, 2, 4, 7), length=7, dtype=torch.float64), note="lengths 1, 2, 4 and 7")


@exercise.holds("Any class can be the padding, and the other ones are real targets")
def _(draw):
    for pad_id in (1, 3):
        yield Case(args=_batch(draw, pad_id, (5, 2, 3)), note=f"pad_id {pad_id}")
    logits, targets, pad_id = _batch(draw, 2, (4, 3, 5), dtype=torch.float64)
    targets[:, 0] = torch.tensor([0, 1, 0])
    yield Case(args=(logits, targets, pad_id), note="pad_id 2, and targets 0 and 1")


@exercise.holds("Without padding it is the ordinary cross-entropy, in any layout in memory")
def _(draw):
    for dtype in (torch.float32, torch.float64):
        yield Case(args=_batch(draw, dtype=dtype), note="no padding")
    logits, targets, pad_id = _batch(draw)
    yield Case(args=(logits.mT.contiguous().mT, targets.T.contiguous().T, pad_id), note="transposed in memory")
    yield Case(args=_batch(draw, real=(4,), length=4), note="a batch of one", degenerate_because="a batch of one")
    yield Case(args=_batch(draw, real=(1, 1, 1), length=1), note="one position", degenerate_because="one position")


@exercise.holds("Logits up to ±10,000 give a finite and correct loss")
def _(draw):
    for level in (9000.0, -9000.0):
        logits = torch.full((1, 2, 2), level)
        edge = "each target costs log 2, to be read by eye"
        args = (logits, torch.ones(1, 2, dtype=torch.int64), 0)
        yield Case(args=args, note=f"all logits are {level:.0f}", degenerate_because=edge, gradients=False)
    for dtype in (torch.float32, torch.float64):
        logits, targets, pad_id = _batch(draw, dtype=dtype)
        large = draw.uniform(*logits.shape, low=-1e4, high=1e4, dtype=dtype)
        large[0, 0, :2] = torch.tensor([1e4, -1e4])
        targets[0, 0] = 1
        yield Case(args=(large, targets, pad_id), note="logits of ±1e4")
        yield Case(args=(logits - 9000, targets, pad_id), note="logits near -9000", degenerate_because="one sign")
