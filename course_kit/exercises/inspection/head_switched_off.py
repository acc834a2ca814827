"""Exercise `head_switched_off`: metadata, stub and cases."""

import torch

from course_kit.exercises._draw import Draw
from course_kit.exercises._exercise import Case, Exercise
from course_kit.exercises._files import texts_next_to
from course_lib.inspection import head_switched_off

exercise = Exercise(
    **texts_next_to(__file__),
    difficulty=2,
    minutes=15,
    stub='''\
def head_switched_off(heads, weight, bias, off):
    """Output without head `off`: (B, H, L, d_head) to (B, L, d_out)."""
    raise NotImplementedError
''',
    reference=head_switched_off,
    shapes={"heads": "batch num_heads length d_head", "weight": "d_out d_model", "bias": "d_out"},
    returns=("output",),
    read_next="attention_as_explanation: Write the switch yourself",
)


def _attention_output(draw: Draw, num_heads: int, d_out: int | None = None, dtype: torch.dtype = torch.float32):
    """Heads, weight and bias; `d_out` is that of the model if it is not given."""
    (d_head,) = draw.sizes(1, 2, 7, but=(num_heads, d_out))
    d_model = num_heads * d_head
    batch, length = draw.sizes(2, 2, 7, but=(num_heads, d_out, d_head, d_model))
    weight = draw.normal(d_out or d_model, d_model, dtype=dtype, scale=d_model**-0.5)
    return draw.normal(batch, num_heads, length, d_head, dtype=dtype), weight, draw.normal(len(weight), dtype=dtype)


@exercise.holds("The output is the projection of the other heads, plus the bias", weight=2)
def _(draw):
    heads = torch.tensor([[[[1.0]], [[2.0]]]])
    yield Case(
        args=(heads, torch.tensor([[3.0, -1.0]]), torch.tensor([0.5]), 1),
        note="3 · 1 + 0.5, without −1 · 2",
        degenerate_because="to be read by eye",
    )
    for off, dtype in ((1, torch.float32), (2, torch.float64), (3, torch.float32)):
        yield Case(args=(*_attention_output(draw, 4, 11, dtype), off), note=f"head {off} of 0 to 3 is off")


@exercise.holds("Any head can be switched off, the first and the last included")
def _(draw):
    for num_heads in (2, 3):
        for off in range(num_heads):
            output = _attention_output(draw, num_heads, 11)
            yield Case(args=(*output, off), note=f"head {off} of 0 to {num_heads - 1} is off")


@exercise.holds("It works where d_out is the width of the model, as in a real layer", weight=2)
def _(draw):
    for num_heads, dtype in ((3, torch.float32), (4, torch.float64)):
        off = draw.integer(1, num_heads - 1)
        yield Case(args=(*_attention_output(draw, num_heads, None, dtype), off), degenerate_because="a square matrix")


@exercise.holds("It works for axes of length 1 and any layout in memory; without its only head, the bias is left")
def _(draw):
    one_head = draw.normal(2, 1, 3, 5), draw.normal(4, 5), draw.normal(4)
    yield Case(args=(*one_head, 0), note="one head", degenerate_because="a single head")
    one_position = draw.normal(2, 3, 1, 5), draw.normal(7, 15), draw.normal(7)
    yield Case(args=(*one_position, 1), note="one position", degenerate_because="one position")
    one_sentence = draw.normal(1, 3, 4, 5), draw.normal(7, 15), draw.normal(7)
    yield Case(args=(*one_sentence, 1), note="one sentence", degenerate_because="one sentence")
    per_position = draw.normal(2, 4, 3, 5).transpose(1, 2), draw.normal(15, 7).T, draw.normal(7)
    yield Case(args=(*per_position, 2), note="transposed in memory")
    one_feature = draw.normal(2, 3, 4, 1), draw.normal(7, 3), draw.normal(7)
    yield Case(args=(*one_feature, 2), note="d_head is 1", degenerate_because="heads of one feature")
