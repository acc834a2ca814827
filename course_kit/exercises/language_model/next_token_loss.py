"""Exercise `next_token_loss`: metadata, stub and cases."""

import math

import torch

from course_kit.exercises._draw import Draw
from course_kit.exercises._exercise import Case, Exercise
from course_kit.exercises._files import texts_next_to
from course_lib.language_model import next_token_loss

exercise = Exercise(
    **texts_next_to(__file__),
    difficulty=2,
    minutes=12,
    stub='''\
def next_token_loss(logits, tokens, counted=None):
    """Mean loss of the tokens that count, each predicted from those before it."""
    raise NotImplementedError
''',
    reference=next_token_loss,
    shapes={"logits": "batch length vocab", "tokens": "batch length", "counted": "batch length"},
    returns=("loss",),
    read_next="language_model: The next-token loss on packed text",
    forbidden=("transformers.ForCausalLMLoss",),
)


def _packed(draw: Draw, dtype=torch.float32, scale=2.0, sizes=()):
    batch, length, vocab = sizes or draw.sizes(3, 3, 11)
    logits = draw.normal(batch, length, vocab, dtype=dtype, scale=scale)
    return logits, draw.integers(batch, length, low=0, high=vocab - 1)


def _counted(rows: str) -> torch.Tensor:
    """A mask from its rows, "01101 00100"."""
    return torch.tensor([[mark == "1" for mark in row] for row in rows.split()])


@exercise.holds("The logits at a position predict the next token, and the loss is the mean over all of them", weight=3)
def _(draw):
    likely = torch.tensor([[[2.0, 3.0, 5.0], [7.0, 1.0, 2.0], [3.0, 3.0, 4.0]]])
    yield Case(
        args=((likely / 10).log(), torch.tensor([[0, 2, 1]])),
        degenerate_because="one row of three tokens, to be read by eye",
        note="the probabilities of the logits are 0.2 0.3 0.5, then 0.7 0.1 0.2, then 0.3 0.3 0.4",
    )
    for dtype in (torch.float64, torch.float32, torch.float32):
        yield Case(args=_packed(draw, dtype))
    yield Case(args=(*_packed(draw), None), note="counted is None")
    for sizes in ((1, 7, 5), (5, 2, 3)):
        note = "one row" if sizes[0] == 1 else "two tokens per row"
        yield Case(args=_packed(draw, sizes=sizes), note=note, degenerate_because=note)
    yield Case(args=_packed(draw, sizes=(3, 7, 7)), note="as many classes as tokens", degenerate_because="L = V")


@exercise.holds("A token that does not count is left out of the sum and of the number that divides it", weight=2)
def _(draw):
    logits = torch.tensor([[[0.0, 0.0], [0.0, math.log(3)], [math.log(7), 0.0], [0.0, 2.0]]])
    yield Case(
        args=(logits, torch.tensor([[0, 1, 0, 1]]), _counted("0101")),
        degenerate_because="one row of four tokens, to be read by eye",
        note="the second and the fourth token count",
    )
    for dtype in (torch.float64, torch.float32):
        for rows in ("0110101 0011110 0111011", "0101100 0110110 0000101"):
            args = _packed(draw, dtype, sizes=(3, 7, 5))
            yield Case(args=(*args, _counted(rows)), note="the first token of a row does not count, nor do others")
    args = _packed(draw, sizes=(2, 5, 3))
    yield Case(args=(*args, _counted("11111 11111")), note="all tokens count")
    yield Case(args=(*args, _counted("10111 11010")), note="counted is True for the first token of a row")
    yield Case(args=(*args, _counted("00000 00010")), note="a single token counts")
    yield Case(args=(*args, _counted("10000 00001")), note="a single token after the first counts, the last")


@exercise.holds("Every token that counts has the same weight, whichever row it belongs to")
def _(draw):
    for dtype, rows in (
        (torch.float32, "0111111 0100000 0011000"),
        (torch.float64, "0000010 0111111 0111011"),
        (torch.float32, "0111110 0000000 0000100"),
        (torch.float64, "1000000 0101011 0110111"),
    ):
        args = _packed(draw, dtype, sizes=(3, 7, 11))
        numbers = ", ".join(str(row[1:].count("1")) for row in rows.split())
        yield Case(args=(*args, _counted(rows)), note=f"rows with {numbers} tokens that count")


@exercise.holds("Large logits stay finite, and right")
def _(draw):
    for dtype in (torch.float32, torch.float64):
        logits, tokens = _packed(draw, dtype, sizes=(3, 7, 5))
        logits = draw.uniform(*logits.shape, low=-1e4, high=1e4, dtype=dtype)
        yield Case(args=(logits, tokens), note="logits of ±10,000")
        counted = _counted("0110101 0011110 0111011")
        yield Case(args=(logits.flip(0), tokens, counted), note="logits of ±10,000, some tokens do not count")
