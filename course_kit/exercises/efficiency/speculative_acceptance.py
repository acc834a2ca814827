"""Exercise `speculative_acceptance`: metadata, stub and cases."""

import torch

from course_kit.exercises._draw import Draw
from course_kit.exercises._exercise import Case, Exercise
from course_kit.exercises._files import texts_next_to
from course_lib.efficiency import speculative_acceptance

exercise = Exercise(
    **texts_next_to(__file__),
    difficulty=2,
    minutes=15,
    stub='''\
def speculative_acceptance(target, draft):
    """(accept, residual), both (..., V), from probabilities (..., V) of two models."""
    raise NotImplementedError
''',
    reference=speculative_acceptance,
    shapes={"target": "... vocab", "draft": "... vocab"},
    returns=("accept", "residual"),
    read_next="speculative_decoding: Accept or replace: the rule of speculative sampling",
    single_sign_args=("target", "draft"),
    sum_to_one=("target", "draft"),
)


def _two_models(draw: Draw, *shape, dtype=torch.float32):
    return draw.weights(*shape, dtype=dtype), draw.weights(*shape, dtype=dtype)


def _without(probs, tokens):
    """Probabilities in which these tokens have none; the others share it."""
    left = probs.masked_fill(tokens, 0.0)
    return left / left.sum(-1, keepdim=True)


@exercise.holds("A token is kept with min(1, target / draft), and replaced from the normalised rest", weight=3)
def _(draw):
    yield Case(
        args=(torch.tensor([0.5, 0.25, 0.25]), torch.tensor([0.25, 0.25, 0.5])),
        note="three tokens",
        degenerate_because="the smallest case, to be read by eye",
        gradients=False,
    )
    for _ in range(3):
        (vocab,) = draw.sizes(1, 4, 9)
        yield Case(args=_two_models(draw, vocab))
    rows, vocab = draw.sizes(2, 3, 9)
    yield Case(args=_two_models(draw, rows, vocab), note="one pair of distributions per row")


@exercise.holds("Each row is treated separately, with any number of batch dimensions, in float32 and float64", weight=2)
def _(draw):
    for batch in draw.batches():
        for dtype in (torch.float64, torch.float32):
            (vocab,) = draw.sizes(1, 3, 9, but=batch)
            yield Case(args=_two_models(draw, *batch, vocab, dtype=dtype), note=f"batch dimensions: {len(batch)}")
    yield Case(
        args=_two_models(draw, 2, 1, 3, 5),
        note="batch dimensions: 3",
        degenerate_because="a batch dimension of length one",
    )
    yield Case(args=_two_models(draw, 1, 4), note="a batch of one", degenerate_because="a batch of one")
    yield Case(args=_two_models(draw, 4, 4), note="as many rows as tokens", degenerate_because="square")
    turned = (x.mT.contiguous().mT for x in _two_models(draw, 3, 6))
    yield Case(args=tuple(turned), note="transposed in memory")


@exercise.holds("Probabilities of exactly zero are no exception: where draft is 0, accept is 1", weight=2)
def _(draw):
    yield Case(
        args=(torch.tensor([0.5, 0, 0.5, 0]), torch.tensor([0, 0.25, 0.75, 0])),
        note="zeros in one distribution, in the other, and in both",
        degenerate_because="to be read by eye",
        gradients=False,
    )
    for dtype in (torch.float32, torch.float64):
        shape = (3, 8)
        target, draft = _two_models(draw, *shape, dtype=dtype)
        yield Case(args=(target, _without(draft, ~draw.mask(*shape))), note="draft has zeros", gradients=False)
        yield Case(args=(_without(target, ~draw.mask(*shape)), draft), note="target has zeros", gradients=False)
        both = (_without(target, ~draw.mask(*shape)), _without(draft, ~draw.mask(*shape)))
        yield Case(args=both, note="both have zeros", gradients=False)
    apart = draw.mask(2, 7)
    args = tuple(_without(x, tokens) for x, tokens in zip(_two_models(draw, 2, 7), (apart, ~apart), strict=True))
    yield Case(args=args, note="no token in common", gradients=False)


@exercise.holds("It holds for distributions that are nearly the same, and for a large vocabulary")
def _(draw):
    target, other = _two_models(draw, 3, 7, dtype=torch.float64)
    yield Case(args=(target, 0.9 * target + 0.1 * other), note="nearly the same", gradients=False)
    for dtype in (torch.float32, torch.float64):
        yield Case(args=_two_models(draw, 2, 500, dtype=dtype), note="500 tokens", gradients=False)
