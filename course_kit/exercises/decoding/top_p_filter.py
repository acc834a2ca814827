"""Exercise `top_p_filter`: metadata, stub and cases."""

import torch

from course_kit.exercises._draw import Draw
from course_kit.exercises._exercise import Case, Exercise
from course_kit.exercises._files import texts_next_to
from course_lib.decoding import top_p_filter

TEMPERATURE_AND_TOP_P = "decoding: Temperature and top-p"


exercise = Exercise(
    **texts_next_to(__file__),
    forbidden=("transformers.TopPLogitsWarper", "transformers.top_k_top_p_filtering"),
    difficulty=3,
    minutes=20,
    stub='''\
def top_p_filter(logits, p):
    """Logits with -inf outside the smallest set of probable tokens that reaches p."""
    raise NotImplementedError
''',
    reference=top_p_filter,
    shapes={"logits": "vocab"},
    returns=("logits",),
    read_next=TEMPERATURE_AND_TOP_P,
    differentiable=False,
)


def _p_for(draw: Draw, logits: torch.Tensor, kept: int) -> float:
    """A p for which this many tokens are kept, well inside the range of such p."""
    sums = [0.0, *logits.double().softmax(-1).sort(descending=True).values.cumsum(-1).tolist()]
    low, high = sums[kept - 1], sums[kept]
    return round(low + (high - low) * float(draw.uniform(1, low=0.35, high=0.65)), 4)


def _gap_around(logits: torch.Tensor, kept: int) -> float:
    """How far the last token that is kept is from the next one."""
    ranked = logits.double().sort(descending=True).values
    return float(ranked[kept - 1] - ranked[kept])


def _logits(draw: Draw, vocab: int, dtype=torch.float32, scale=1.5):
    """Logits with clear differences, the most probable token neither first nor last."""
    while True:
        logits = draw.normal(vocab, dtype=dtype, scale=scale)
        ranked = logits.sort().values
        inside = 0 < int(logits.argmax()) < vocab - 1
        order = logits.argsort(descending=True)
        if inside and float((ranked[1:] - ranked[:-1]).min()) > 0.03 and not torch.equal(order, order.argsort()):
            return logits


def _logits_and_p(draw: Draw, vocab: int, kept: int, dtype=torch.float32, scale=1.5):
    """Logits, and a p for which this many tokens are kept: the last of them is probable enough for p to be clear."""
    while True:
        logits = _logits(draw, vocab, dtype, scale)
        if float(logits.double().softmax(-1).sort(descending=True).values[kept - 1]) > 0.001:
            return logits, _p_for(draw, logits, kept)


@exercise.holds(
    "The most probable tokens are kept as they are, up to the one that reaches p; all others are −inf", weight=3
)
def _(draw):
    logits = torch.tensor([0.15, 0.5, 0.05, 0.3]).log().round(decimals=3)
    yield Case(
        args=(logits, 0.7), note="probabilities 0.15, 0.5, 0.05, 0.3", degenerate_because="logarithms of probabilities"
    )
    for vocab, kept in ((6, 2), (7, 4), (9, 5), (11, 3)):
        yield Case(args=_logits_and_p(draw, vocab, kept))


@exercise.holds("It works for few tokens and for many, in float32 and float64")
def _(draw):
    for dtype in (torch.float64, torch.float32):
        logits = _logits(draw, 8, dtype, scale=0.5)
        for kept in (3, 7, 8):
            yield Case(args=(logits, _p_for(draw, logits, kept)), note=f"{kept} of 8 tokens are needed")
        yield Case(args=_logits_and_p(draw, 60, 4, dtype, scale=6.0), note="a vocabulary of 60")
    for middle in (120, 160, 200, 240, 280, 320):
        logits = draw.normal(400, scale=0.3)
        while _gap_around(logits, kept := draw.integer(middle - 10, middle + 10)) < 0.002:
            logits = draw.normal(400, scale=0.3)
        note = "a vocabulary of 400, nearly all tokens alike"
        yield Case(args=(logits, _p_for(draw, logits, kept)), note=note)


@exercise.holds("The set is never empty")
def _(draw):
    logits = _logits(draw, 6)
    for p in (0.001, 0.02):
        yield Case(args=(logits, p), note=f"p = {p}")
    logits = _logits(draw, 7)
    logits[3] = 9.0
    yield Case(args=(logits, 0.6), note="one token has nearly all probability")


@exercise.holds("Large logits stay finite, and right")
def _(draw):
    logits = _logits(draw, 6) + 1000.0
    yield Case(args=(logits, 0.6), note="all logits near 1,000", degenerate_because="one sign on purpose", tolerance=10)
    logits = _logits(draw, 7) - 1000.0
    yield Case(
        args=(logits, 0.6), note="all logits near −1,000", degenerate_because="one sign on purpose", tolerance=10
    )
