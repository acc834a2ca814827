"""Exercise `teacher_forcing_pair`: metadata, stub and cases."""

import torch

from course_kit.exercises._draw import Draw
from course_kit.exercises._exercise import Case, Exercise
from course_kit.exercises._files import texts_next_to
from course_lib.training import teacher_forcing_pair

__all__ = ["EOS", "PAD", "exercise"]


exercise = Exercise(
    **texts_next_to(__file__),
    difficulty=1,
    minutes=5,
    stub='''\
def teacher_forcing_pair(tokens):
    """(inputs, targets), both (B, L - 1): the target is always the next token."""
    raise NotImplementedError
''',
    reference=teacher_forcing_pair,
    shapes={"tokens": "batch length"},
    returns=("inputs", "targets"),
    read_next="training: Teacher forcing",
    differentiable=False,
)


BOS, EOS, PAD = 1, 2, 0


def _sentences(draw: Draw, rows: int, length: int, padded: bool = False, ids=(BOS, EOS, PAD)):
    """Token ids `(rows, length)`: start, words, end; where padded, all but the first row end in padding."""
    bos_id, eos_id, pad_id = ids
    tokens = draw.integers(rows, length, low=3, high=40)
    tokens[:, 0] = bos_id
    tokens[:, -1] = eos_id
    for row in tokens[1:] if padded else ():
        end = draw.integer(2, length - 2)
        row[end], row[end + 1 :] = eos_id, pad_id
    return tokens


@exercise.holds("The target of each position is the token that comes next", weight=2)
def _(draw):
    yield Case(args=(torch.tensor([[1, 7, 5, 9, 2]]),), degenerate_because="one sentence, to be read by eye")
    for _ in range(3):
        rows, length = draw.sizes(2, 4, 9)
        yield Case(args=(_sentences(draw, rows, length),))


@exercise.holds("End tokens and padding are tokens like any other here")
def _(draw):
    yield Case(
        args=(torch.tensor([[1, 7, 5, 2], [1, 9, 2, 0]]),),
        note="the second sentence is padded",
        degenerate_because="small",
    )
    for _ in range(2):
        rows, length = draw.sizes(2, 5, 9)
        yield Case(args=(_sentences(draw, rows, length, padded=True),), note="padded with 0")
    rows, length = draw.sizes(2, 5, 9)
    tokens = _sentences(draw, rows, length, padded=True, ids=(41, 42, 43))
    yield Case(args=(tokens,), note="start 41, end 42, padding 43")


@exercise.holds("It works for the shortest sentences and for a single sentence")
def _(draw):
    yield Case(args=(_sentences(draw, 3, 2),), note="a start token and one more: one target each")
    yield Case(
        args=(_sentences(draw, 1, 6),), note="a batch of one sentence", degenerate_because="one sentence on purpose"
    )
