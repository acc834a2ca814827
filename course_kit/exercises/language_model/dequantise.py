"""Exercise `dequantise`: metadata, stub and cases."""

import torch
from torch import Tensor

from course_kit.exercises._draw import Draw
from course_kit.exercises._exercise import Case, Exercise
from course_kit.exercises._files import texts_next_to
from course_lib.language_model import dequantise

exercise = Exercise(
    **texts_next_to(__file__),
    difficulty=2,
    minutes=20,
    stub='''\
def dequantise(blocks, kind):
    """Float32 (n, 32), from blocks: uint8 (n, 34) for Q8_0, (n, 18) for Q4_0."""
    raise NotImplementedError
''',
    reference=dequantise,
    shapes={"blocks": "count bytes"},
    returns=("numbers",),
    read_next="language_model: Reading quantised weights",
    differentiable=False,
    forbidden=("gguf.dequantize",),
)

_BYTES_AFTER_SCALE = {"Q8_0": 32, "Q4_0": 16}


def _blocks_of(draw: Draw, kind: str, scale: Tensor) -> Tensor:
    """A block per scale, of random bytes, the smallest and the largest among them."""
    rest = draw.integers(len(scale), _BYTES_AFTER_SCALE[kind], low=0, high=255).to(torch.uint8)
    rest[:, 3], rest[:, 7], rest[:, 11], rest[:, 15] = 0, 128, 127, 255
    return torch.cat((scale.to(torch.float16)[:, None].view(torch.uint8), rest), dim=1)


def _of_one_scale(draw: Draw, kind: str):
    """Cases in which the scale is that of all blocks: one to be read by eye, and more."""
    for scale, count in ((1.0, 1), (0.25, 3), (-0.0859375, draw.integer(4, 9))):
        edge = "one block, the smallest case" if count == 1 else ""
        note = f"scale {scale:g}" if count == 1 else f"{count} blocks of scale {scale:g}"
        blocks = _blocks_of(draw, kind, torch.full((count,), scale))
        if count == 1:
            blocks[0, 2:] = torch.arange(len(blocks[0]) - 2) * (8 if kind == "Q8_0" else 17)
        yield Case(args=(blocks, kind), note=note, degenerate_because=edge)


@exercise.holds("Q8_0: each byte after the scale is a signed integer, and a number is the scale times it", weight=2)
def _(draw):
    yield from _of_one_scale(draw, "Q8_0")


@exercise.holds("Q4_0: all lower halves come first, then all upper halves, and 8 is subtracted from each", weight=2)
def _(draw):
    yield from _of_one_scale(draw, "Q4_0")


@exercise.holds("Each block has a scale of its own, a float16 of any sign and size", weight=2)
def _(draw):
    for kind in ("Q8_0", "Q4_0"):
        count = draw.integer(3, 9)
        yield Case(args=(_blocks_of(draw, kind, draw.normal(count)), kind), note=f"{kind}, {count} scales")
        extreme = torch.tensor([65504.0, -3000.0, 0.0, -0.37, 6e-5])
        yield Case(args=(_blocks_of(draw, kind, extreme), kind), note=f"{kind}, scales from 65,504 to 6e-5")


@exercise.holds("The rows may lie anywhere in memory")
def _(draw):
    for kind, number in (("Q8_0", 3), ("Q4_0", 5)):
        blocks = _blocks_of(draw, kind, draw.uniform(number, low=0.1))
        turned = blocks.T.contiguous().T
        yield Case(args=(turned, kind), note=f"{kind}, transposed in memory")
        wide = torch.cat((blocks, blocks[:, :3]), dim=1)
        yield Case(args=(wide[:, : blocks.shape[1]], kind), note=f"{kind}, rows with a gap between them")
