"""Exercise of the chapter on the inside of a trained model: multi-head attention without one of its heads."""

from __future__ import annotations

import torch

from course_lib.exercises._draw import Draw
from course_lib.exercises._exercise import Case, Exercise
from course_lib.exercises._inspection_indexing_slips import add_indexing_switched_off_slips
from course_lib.exercises._inspection_projection_slips import add_projection_slips
from course_lib.exercises._inspection_rarer_slips import add_rarer_switched_off_slips
from course_lib.exercises._inspection_switched_off_slips import add_slips

__all__ = ["SWITCHED_OFF"]


def head_switched_off(heads, weight, bias, off):
    remaining = heads.clone()  # the caller's heads stay as they are
    remaining[:, off] = 0
    merged = remaining.transpose(1, 2).flatten(2)  # (B, L, H · d_head)
    return merged @ weight.T + bias  # (B, L, d_out)


SWITCHED_OFF = Exercise(
    name="head_switched_off",
    chapter="inspection",
    title="Multi-head attention without one head",
    statement="""\
An attention map shows where a head attends, but not how much the head matters. To find out, switch the head off:
compute the output of multi-head attention without the contribution of head `off`, which can then be compared with the
full output.

- `heads` is `(B, H, L, d_head)`: what each head has computed, its weights times its values.
- `weight` `(d_out, H · d_head)` and `bias` `(d_out,)` are the parameters of the output projection, an `nn.Linear`. At
  each position it computes $y = W x + b$, where $x$ holds the vectors of all heads side by side: head $h$ fills the
  features from $h \\cdot d_\\text{head}$ up to, but not including, $(h + 1) \\cdot d_\\text{head}$.
- `off` is the number of the head, an int from 0 to $H - 1$.
- Return the output, `(B, L, d_out)`. The other heads and the bias contribute what they did before, so if the only head
  is switched off, the bias is left.

`heads` stays unchanged. All tensors have the same dtype, float32 or float64, and so has the result.""",
    difficulty=2,
    minutes=15,
    stub='''\
def head_switched_off(heads, weight, bias, off):
    """Output without head `off`: (B, H, L, d_head) to (B, L, d_out)."""
    raise NotImplementedError
''',
    hints=(
        "If the vectors of a head are zero, what does the head contribute to the output?",
        "The caller still needs `heads`, so set the vectors to zero in a copy.",
        "Before the heads can be laid side by side, the axis H has to be next to d_head. Which two axes have to be "
        "exchanged first?",
    ),
    reference=head_switched_off,
    shapes={"heads": "batch num_heads length d_head", "weight": "d_out d_model", "bias": "d_out"},
    returns=("output",),
    look="inspection: Where attention maps mislead",
)


def _attention_output(draw: Draw, num_heads: int, d_out: int | None = None, dtype: torch.dtype = torch.float32):
    """Heads, weight and bias; `d_out` is that of the model if it is not given."""
    (d_head,) = draw.sizes(1, 2, 7, but=(num_heads, d_out))
    d_model = num_heads * d_head
    batch, length = draw.sizes(2, 2, 7, but=(num_heads, d_out, d_head, d_model))
    weight = draw.normal(d_out or d_model, d_model, dtype=dtype, scale=d_model**-0.5)
    return draw.normal(batch, num_heads, length, d_head, dtype=dtype), weight, draw.normal(len(weight), dtype=dtype)


@SWITCHED_OFF.holds("The output is the projection of the other heads, plus the bias", weight=2)
def _(draw):
    heads = torch.tensor([[[[1.0]], [[2.0]]]])
    yield Case(
        args=(heads, torch.tensor([[3.0, -1.0]]), torch.tensor([0.5]), 1),
        note="3 · 1 + 0.5, without −1 · 2",
        edge="to be read by eye",
    )
    for off, dtype in ((1, torch.float32), (2, torch.float64), (3, torch.float32)):
        yield Case(args=(*_attention_output(draw, 4, 11, dtype), off), note=f"head {off} of 0 to 3 is off")


@SWITCHED_OFF.holds("Any head can be switched off, the first and the last included")
def _(draw):
    for num_heads in (2, 3):
        for off in range(num_heads):
            output = _attention_output(draw, num_heads, 11)
            yield Case(args=(*output, off), note=f"head {off} of 0 to {num_heads - 1} is off")


@SWITCHED_OFF.holds("It works where d_out is the width of the model, as in a real layer", weight=2)
def _(draw):
    for num_heads, dtype in ((3, torch.float32), (4, torch.float64)):
        off = draw.integer(1, num_heads - 1)
        yield Case(args=(*_attention_output(draw, num_heads, None, dtype), off), edge="a square matrix")


@SWITCHED_OFF.holds("It works for axes of length 1 and any layout in memory; without its only head, the bias is left")
def _(draw):
    one_head = draw.normal(2, 1, 3, 5), draw.normal(4, 5), draw.normal(4)
    yield Case(args=(*one_head, 0), note="one head", edge="a single head")
    one_position = draw.normal(2, 3, 1, 5), draw.normal(7, 15), draw.normal(7)
    yield Case(args=(*one_position, 1), note="one position", edge="one position")
    one_sentence = draw.normal(1, 3, 4, 5), draw.normal(7, 15), draw.normal(7)
    yield Case(args=(*one_sentence, 1), note="one sentence", edge="one sentence")
    per_position = draw.normal(2, 4, 3, 5).transpose(1, 2), draw.normal(15, 7).T, draw.normal(7)
    yield Case(args=(*per_position, 2), note="transposed in memory")
    one_feature = draw.normal(2, 3, 4, 1), draw.normal(7, 3), draw.normal(7)
    yield Case(args=(*one_feature, 2), note="d_head is 1", edge="heads of one feature")


add_slips(SWITCHED_OFF)
add_projection_slips(SWITCHED_OFF)
add_rarer_switched_off_slips(SWITCHED_OFF)
add_indexing_switched_off_slips(SWITCHED_OFF)
