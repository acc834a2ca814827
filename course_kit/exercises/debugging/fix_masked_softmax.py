"""Exercise `fix_masked_softmax`: metadata, stub and cases."""

import torch

from course_kit.exercises._draw import Draw
from course_kit.exercises._exercise import Case, Exercise
from course_kit.exercises._files import texts_next_to
from course_kit.exercises.masking.masked_softmax import exercise as masked_softmax
from course_kit.exercises.masking.masked_softmax import not_exactly_zero

__all__ = ["exercise", "fix_masked_softmax"]


def fix_masked_softmax(scores, mask):
    has_key = mask.any(dim=-1, keepdim=True)  # (..., L_q, 1)
    hidden = scores.masked_fill(~mask & has_key, float("-inf"))  # rows without a key stay as they are
    return torch.softmax(hidden, dim=-1).masked_fill(~has_key, 0.0)


exercise = Exercise(
    **texts_next_to(__file__),
    repair=True,
    difficulty=2,
    minutes=10,
    stub='''\
def fix_masked_softmax(scores, mask):
    """Weights 0 where mask is False; a row without any True is all zeros."""
    raise NotImplementedError  # delete this line once you have decided
    scores.masked_fill_(~mask, -1e9)
    return torch.softmax(scores, dim=-1)
''',
    reference=fix_masked_softmax,
    shapes={"scores": "... len_q len_k", "mask": "#"},
    read_next="mask_bugs: Filling with −1e9",
    forbidden=("course_lib.masked_softmax", *masked_softmax.forbidden),
    returns=("weights",),
)
exercise.remarks.extend(masked_softmax.remarks)  # the same may be said of a repair


def _scores_to_mask(draw: Draw, batch=(), dtype=torch.float32, scale=1.0):
    len_q, len_k = draw.sizes(2, 3, 8, but=batch)
    return draw.normal(*batch, len_q, len_k, dtype=dtype, scale=scale)


def _with_a_sequence_of_padding(draw: Draw, dtype):
    """Scores of two sequences and a mask `(B, 1, L_k)` that leaves the second one no key."""
    scores = _scores_to_mask(draw, (2,), dtype)
    mask = draw.mask(2, 1, scores.shape[-1])
    mask[1] = False
    return scores, mask


@exercise.holds("In float32 and float64, the allowed keys of a row share all the weight, and masked keys get none")
def _(draw):
    yield Case(
        args=(torch.tensor([[1.0, 2.0, -1.0]]), torch.tensor([[True, False, True]])),
        degenerate_because="the smallest case, to be read by eye",
    )
    for batch in draw.batches():
        for dtype in (torch.float64, torch.float32):
            scores = _scores_to_mask(draw, batch, dtype)
            yield Case(args=(scores, draw.mask(*scores.shape)), note="a mask of the scores' shape")
    scores = _scores_to_mask(draw, (2, 9))
    len_q, len_k = scores.shape[-2:]
    for shape in ((len_k,), (len_q, len_k), (2, 1, 1, len_k), (2, 1, len_q, len_k), (9, len_q, len_k)):
        yield Case(args=(scores, draw.mask(*shape)), note=f"a mask of shape {shape}")
    scores = _scores_to_mask(draw, (2,))
    yield Case(args=(scores, draw.mask(2, 1, scores.shape[-1])), note="a mask of shape (B, 1, L_k)")
    yield Case(args=(scores, torch.ones(scores.shape[-2:], dtype=torch.bool)), note="nothing is masked")
    square = draw.normal(2, 2, 3, 4), draw.mask(2, 3, 4)
    yield Case(
        args=square,
        note="a mask (H, L_q, L_k), as many sequences as heads",
        degenerate_because="equal lengths on purpose",
    )
    yield Case(
        args=(draw.normal(2, 1, 3, 4, 5), draw.mask(4, 5)),
        note="batch dimensions: 3",
        degenerate_because="one is short",
    )
    turned = draw.normal(2, 5, 3).mT, draw.mask(2, 3, 5).mT.contiguous().mT
    yield Case(args=turned, note="tensors that are transposed in memory")


@exercise.holds("The same in float16 and bfloat16", weight=2)
def _(draw):
    for dtype in (torch.float16, torch.bfloat16):
        for batch in draw.batches():
            scores = _scores_to_mask(draw, batch, dtype)
            yield Case(args=(scores, draw.mask(*scores.shape[-2:])), note="scores of ordinary size")
    scores, mask = _with_a_sequence_of_padding(draw, torch.float16)
    yield Case(args=(scores, mask), note="a sequence of padding only", gradients=False)


@exercise.holds("A fully masked row is all zeros, and the other rows are not affected", weight=2)
def _(draw):
    for batch, dtype in (((), torch.float32), ((2,), torch.float64), ((2, 9), torch.float32)):
        scores = _scores_to_mask(draw, batch, dtype)
        mask = draw.mask(*scores.shape)
        mask[..., 1, :] = False
        yield Case(args=(scores, mask), note="a fully masked row")
    for dtype in (torch.float32, torch.bfloat16):
        scores, mask = _with_a_sequence_of_padding(draw, dtype)
        yield Case(args=(scores, mask), note="a sequence of padding only", gradients=dtype.itemsize > 2)
    scores = _scores_to_mask(draw, (2,))
    mask = torch.ones(scores.shape[-2], 1, dtype=torch.bool)
    mask[1] = False
    yield Case(args=(scores, mask), note="a mask (L_q, 1) that takes all keys from one query")
    yield Case(args=(scores, torch.zeros(scores.shape, dtype=torch.bool)), note="everything is masked")


@exercise.holds(
    "In a row with an allowed key, a masked key gets exactly 0, not a tiny weight", weight=0.5, fault=not_exactly_zero
)
def _(draw):
    for dtype in (torch.float32, torch.float64):
        scores = _scores_to_mask(draw, (2,), dtype)
        yield Case(args=(scores, draw.mask(*scores.shape)), gradients=False)


@exercise.holds("Large scores make no difference to this, masked or not")
def _(draw):
    scores = _scores_to_mask(draw)
    mask = draw.mask(*scores.shape)
    high = scores.masked_fill(~mask, 1e4)
    yield Case(args=(high, mask), note="masked scores of 10000", tolerance=50, gradients=False)
    low = torch.where(mask, (scores - 9998.0).clamp(min=-1e4), scores)
    yield Case(args=(low, mask), note="allowed scores near -10000", tolerance=50, gradients=False)
    for dtype in (torch.float16, torch.bfloat16, torch.float32):
        scores = torch.tensor([[1.0, -6e4, -2.0, -6e4]], dtype=dtype)
        mask = torch.tensor([[False, True, False, True]])
        edge = "equal scores: their weights are exact"
        yield Case(args=(scores, mask), note="allowed scores of -60000", gradients=False, degenerate_because=edge)
        scores = torch.tensor([[6e4, -6e4, 5.8e4, -6e4]], dtype=dtype)
        note = "masked scores of 60000 beside allowed ones of -60000"
        yield Case(args=(scores, mask), note=note, gradients=False, degenerate_because=edge)
        scores = torch.tensor([[-100.0, -200.0, -300.0], [1.0, 1.0, -300.0]], dtype=dtype)
        mask = torch.tensor([[False, False, False], [True, True, False]])
        yield Case(
            args=(scores, mask), note="a fully masked row of scores below -99", gradients=False, degenerate_because=edge
        )
    wild = _scores_to_mask(draw, scale=3e3).clamp(-1e4, 1e4)
    yield Case(args=(wild, draw.mask(*wild.shape)), note="scores of some thousands", tolerance=50, gradients=False)
