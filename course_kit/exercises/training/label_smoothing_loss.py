"""Exercise `label_smoothing_loss`: metadata, stub and cases."""

import torch

from course_kit.exercises._draw import Draw
from course_kit.exercises._exercise import Case, Exercise
from course_kit.exercises._files import texts_next_to
from course_lib.training import label_smoothing_loss

exercise = Exercise(
    **texts_next_to(__file__),
    difficulty=3,
    minutes=20,
    stub='''\
def label_smoothing_loss(logits, targets, smoothing, pad_id):
    """Mean cross-entropy of logits (N, V), labels (N,) smoothed, padding left out."""
    raise NotImplementedError
''',
    reference=label_smoothing_loss,
    shapes={"logits": "count vocab", "targets": "count"},
    returns=("loss",),
    read_next="training: Label smoothing",
    forbidden=(
        "cross_entropy",
        "cross_entropy_loss",
        "linear_cross_entropy",
        "course_kit.translator.fast_loss.chunked_label_smoothing_loss",
        "course_kit.translator.fast_loss.masked_label_smoothing_loss",
        "transformers.LabelSmoother",
    ),
)


def _classified(draw: Draw, pad_id: int | None = None, pads: int = 0, dtype=torch.float32, logits=None):
    """Logits `(N, V)`, targets with `pads` times pad_id among them, pad_id (drawn where none is given)."""
    count, vocab = draw.sizes(2, 4, 9)
    logits = draw.normal(count, vocab, dtype=dtype, scale=2.0) if logits is None else logits(count, vocab).to(dtype)
    pad_id = draw.integer(0, vocab - 1) if pad_id is None else pad_id % vocab
    targets = draw.integers(count, low=0, high=vocab - 2)
    targets += targets >= pad_id  # none of them is pad_id
    places = torch.randperm(count, generator=draw.generator)[:pads]
    targets[places] = pad_id
    return logits, targets, pad_id


@exercise.holds("Without smoothing it is the cross-entropy, averaged over the targets", weight=2)
def _(draw):
    logits = torch.tensor([[2.0, 0.0, -1.0], [0.0, 1.0, 3.0]])
    yield Case(args=(logits, torch.tensor([0, 1]), 0.0, 2), degenerate_because="two positions, to be read by eye")
    for dtype in (torch.float64, torch.float32):
        logits, targets, pad_id = _classified(draw, dtype=dtype)
        yield Case(args=(logits, targets, 0.0, pad_id), note="no smoothing, no padding")


@exercise.holds("The smoothing mass is spread over all classes", weight=2)
def _(draw):
    logits = torch.tensor([[2.0, 0.0, -1.0], [0.0, 1.0, 3.0]])
    yield Case(args=(logits, torch.tensor([0, 1]), 0.3, 2), degenerate_because="two positions, to be read by eye")
    for smoothing in (0.1, 0.4, 1.0):
        for dtype in (torch.float64, torch.float32):
            logits, targets, pad_id = _classified(draw, dtype=dtype)
            yield Case(args=(logits, targets, smoothing, pad_id), note=f"smoothing {smoothing}, no padding")


@exercise.holds("Padding is ignored, both in the sum and in the number that divides it", weight=2)
def _(draw):
    for smoothing in (0.0, 0.2):
        for pad_id in (0, 2, -1):
            logits, targets, pad = _classified(draw, pad_id, pads=draw.integer(1, 2))
            note = f"{int((targets == pad).sum())} padded, pad_id {pad}, smoothing {smoothing}"
            yield Case(args=(logits, targets, smoothing, pad), note=note)
        logits, targets, pad = _classified(draw, pads=3, dtype=torch.float64)
        yield Case(args=(logits, targets, smoothing, pad), note=f"3 padded, smoothing {smoothing}")
    logits, targets, pad = _classified(draw, 1)
    targets[1:] = pad
    yield Case(args=(logits, targets, 0.2, pad), note="all but one position padded")


@exercise.holds("Large logits stay finite, and right")
def _(draw):
    logits = torch.tensor([[1e4, 0.0, -1e4], [3.0, 1e4, 2.0]])
    edge = "two positions, to be read by eye"
    yield Case(args=(logits, torch.tensor([2, 0]), 0.1, 1), note="logits of ±1e4", degenerate_because=edge)
    for dtype in (torch.float32, torch.float64):
        for smoothing in (0.0, 0.1):
            logits, targets, pad_id = _classified(
                draw, dtype=dtype, logits=lambda *shape: draw.uniform(*shape, low=-1e4, high=1e4)
            )
            logits[0, :2] = torch.tensor([1e4, -1e4])
            yield Case(args=(logits, targets, smoothing, pad_id), note=f"logits of ±1e4, smoothing {smoothing}")
        for middle in (2000.0, -2000.0):
            logits, targets, pad_id = _classified(draw, dtype=dtype)
            edge = "one sign on purpose: all logits of a row are far from zero, and near each other"
            # `logsumexp` rounds the largest logit's 2,000 to a multiple of 1e-4 in float32, and a sum of nine logits to
            # one of 2e-3. Only a formula that subtracts the largest logit first is more exact; none has to.
            yield Case(
                args=(logits + middle, targets, 0.1, pad_id),
                note=f"logits near {middle:,.0f}",
                degenerate_because=edge,
                tolerance=20 if dtype == torch.float32 else 1,
            )
