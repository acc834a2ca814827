"""Exercise `masked_softmax`: metadata, stub and cases."""

import torch

from course_kit.exercises._draw import Draw
from course_kit.exercises._exercise import Case, Exercise
from course_kit.exercises._files import texts_next_to
from course_lib.masking import masked_softmax

__all__ = ["exercise", "not_exactly_zero"]


exercise = Exercise(
    **texts_next_to(__file__),
    difficulty=3,
    minutes=20,
    stub='''\
def masked_softmax(scores, mask):
    """Softmax over the keys that the mask allows; all others get 0."""
    raise NotImplementedError
''',
    reference=masked_softmax,
    shapes={"scores": "... len_q len_k", "mask": "#"},
    returns=("weights",),
    read_next="masking: Rows without a key",
    forbidden=("_masked_softmax", "torch.masked.softmax", "torch.masked.log_softmax"),
)


@exercise.remark(
    "It passes, but a fully masked row still divides zero by zero in the softmax, and the `nan` is replaced only "
    "afterwards. The gradient is finite by luck: `masked_fill` and `torch.where` pass nothing back to the entries that "
    "they fill. With an added mask of -inf it would be `nan`. The safe way is to give such rows something harmless to "
    "compute before the softmax."
)
def _(called):
    fills, mends = {"masked_fill", "where"} & called, {"nan_to_num", "isnan"} & called
    # A solution that looks for the rows without a key asks with one of these.
    finds_the_rows = {"any", "all", "amax", "max", "sum", "isneginf", "isinf"} & called
    return "softmax" in called and fills and mends and not finds_the_rows


@exercise.remark(
    "It passes, but look at a fully masked row before the softmax: if all its scores are −∞ there, the softmax divides "
    "zero by zero, and the `nan` is only overwritten afterwards. The gradient is then finite by luck: `masked_fill` "
    "and `torch.where` pass nothing back to the entries that they fill. The safe way is to give such rows something "
    "harmless to compute before the softmax."
)
def _(called):
    finite = {"finfo", "nan_to_num", "isnan", "clamp", "cat"} & called  # another number, another way, another remark
    finds_the_rows = {"any", "all", "amax", "max", "sum", "isneginf", "isinf"} & called
    return "softmax" in called and {"masked_fill", "where"} & called and not finite and not finds_the_rows


def _scores(draw: Draw, batch=(), dtype=torch.float32, scale=1.0):
    len_q, len_k = draw.sizes(2, 3, 7, but=batch)
    return draw.normal(*batch, len_q, len_k, dtype=dtype, scale=scale)


@exercise.holds("Masked keys get weight zero; the weights of the others are the softmax of their scores", weight=3)
def _(draw):
    yield Case(
        args=(torch.tensor([[1.0, 2.0, -1.0]]), torch.tensor([[True, False, True]])),
        degenerate_because="the smallest case, to be read by eye",
    )
    for batch in draw.batches():
        scores = _scores(draw, batch)
        yield Case(args=(scores, draw.mask(*scores.shape)), note="a mask of the scores' shape")
    scores = _scores(draw)
    mask = draw.mask(*scores.shape)
    mask[0] = True
    yield Case(args=(scores, mask), note="a row that is not masked at all")


@exercise.holds("The mask broadcasts against the scores")
def _(draw):
    (one,), two = draw.batches()[1:]
    scores = _scores(draw, (one,))
    len_q, len_k = scores.shape[-2:]
    yield Case(args=(scores, draw.mask(len_q, len_k)), note="a mask (L_q, L_k)")
    yield Case(args=(scores, draw.mask(len_k)), note="a mask (L_k,)")
    yield Case(args=(scores, draw.mask(one, 1, len_k)), note="a mask (B, 1, L_k)")
    scores = _scores(draw, two)
    yield Case(args=(scores, draw.mask(two[0], 1, 1, scores.shape[-1])), note="a mask (B, 1, 1, L_k)")
    yield Case(args=(scores, draw.mask(two[0], 1, *scores.shape[-2:])), note="a mask (B, 1, L_q, L_k)")
    # Lengths that agree, so that only the rule of broadcasting, from the right, says which axis is which.
    yield Case(
        args=(draw.normal(2, 2, 3, 4), draw.mask(2, 3, 4)),
        note="a mask (H, L_q, L_k) for scores (B, H, L_q, L_k), as many sequences as heads",
        degenerate_because="equal lengths on purpose",
    )
    yield Case(
        args=(draw.normal(3, 3, 4), draw.mask(3, 4)),
        note="a mask (L_q, L_k), as many sequences as queries",
        degenerate_because="equal lengths on purpose",
    )
    yield Case(
        args=(draw.normal(2, 1, 3, 4, 5), draw.mask(4, 5)),
        note="batch dimensions: 3",
        degenerate_because="one is short",
    )
    turned = draw.normal(2, 5, 3).mT, draw.mask(2, 3, 5).mT.contiguous().mT
    yield Case(args=turned, note="tensors that are transposed in memory")


def not_exactly_zero(args, weights):
    """What is wrong with the zeros of some weights; the comparison with a tolerance does not see a tiny number."""
    scores, mask = args
    if not isinstance(weights, torch.Tensor) or weights.shape != scores.shape or not weights.is_floating_point():
        return "the weights are not a floating tensor of the shape of the scores"
    masked = ~mask.expand(scores.shape)
    if (weights[masked] != 0).any():
        return f"a masked key has the weight {float(weights[masked & (weights != 0)][0]):.3g}, expected exactly 0"
    if not ((weights.double().sum(-1) - 1).abs() < 1e-4).all():
        return "a row does not sum to 1"
    return ""


@exercise.holds("A masked key gets exactly 0, not a tiny weight", weight=0.5, fault=not_exactly_zero)
def _(draw):
    scores = torch.tensor([[1.0, 2.0, -1.0]])
    yield Case(
        args=(scores, torch.tensor([[True, False, True]])), degenerate_because="to be read by eye", gradients=False
    )
    scores = _scores(draw, (2,), torch.float64)
    yield Case(args=(scores, draw.mask(*scores.shape)), note="in float64", gradients=False)


@exercise.holds("A fully masked row is all zeros, and the other rows are not affected", weight=2)
def _(draw):
    for batch, dtype in (((), torch.float32), ((2,), torch.float64), ((2,), torch.float16), ((), torch.bfloat16)):
        scores = _scores(draw, batch, dtype)
        mask = draw.mask(*scores.shape)
        mask[..., 1, :] = False
        yield Case(args=(scores, mask), note="a fully masked row", gradients=dtype.itemsize > 2)
    scores = _scores(draw, (2,))
    mask = draw.mask(2, 1, scores.shape[-1])
    mask[1] = False
    yield Case(args=(scores, mask), note="a mask (B, 1, L_k) that is False for a whole sequence")
    mask = torch.ones(scores.shape[-2], 1, dtype=torch.bool)
    mask[0] = False
    yield Case(args=(scores, mask), note="a mask (L_q, 1) that takes all keys from one query")
    yield Case(args=(scores, torch.zeros(scores.shape, dtype=torch.bool)), note="everything is masked")


@exercise.holds("It works in float16, bfloat16, float32 and float64")
def _(draw):
    for dtype in (torch.float64, torch.float32, torch.float16, torch.bfloat16):
        scores = _scores(draw, (2,), dtype)
        yield Case(args=(scores, draw.mask(*scores.shape[-2:])), note=str(dtype).removeprefix("torch."))


@exercise.holds("Scores up to ±10000 stay finite, and masked ones do not count however large they are")
def _(draw):
    scores = _scores(draw)
    mask = draw.mask(*scores.shape)
    high = scores.masked_fill(~mask, 1e4)
    yield Case(args=(high, mask), note="masked scores of 10000", tolerance=50, gradients=False)
    low = torch.where(mask, (scores - 9998.0).clamp(min=-1e4), scores)
    yield Case(args=(low, mask), note="allowed scores near -10000", tolerance=50, gradients=False)
    apart = scores.double() + torch.linspace(9e3, -9e3, len(scores), dtype=torch.float64)[:, None]
    yield Case(args=(apart, mask), note="rows between -9000 and 9000", tolerance=50, gradients=False)
    wild = _scores(draw, scale=3e3).clamp(-1e4, 1e4)
    yield Case(args=(wild, draw.mask(*wild.shape)), note="scores of some thousands", tolerance=50, gradients=False)
