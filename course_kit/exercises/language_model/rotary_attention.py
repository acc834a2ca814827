"""Exercise `RotaryAttention`: metadata, stub and cases."""

import torch

from course_kit.exercises._draw import Draw
from course_kit.exercises._exercise import Case, Exercise
from course_kit.exercises._files import texts_next_to
from course_lib.language_model import RotaryAttention

exercise = Exercise(
    **texts_next_to(__file__),
    difficulty=4,
    minutes=30,
    stub='''\
from course_lib import apply_rotary, causal_mask, merge_heads
from course_lib import scaled_dot_product_attention, split_heads


class RotaryAttention(nn.Module):
    """Causal self-attention, rotary positions, shared keys and values."""

    def __init__(self, d_model, num_heads, num_kv_heads, base=10000.0):
        super().__init__()
        raise NotImplementedError

    def forward(self, x, cache=None):
        raise NotImplementedError
''',
    reference=RotaryAttention,
    shapes={
        "x": "batch length d_model",
        "output": "batch length d_model",
        "weights": "batch num_heads length length",
    },
    returns=("output", "weights"),
    read_next="language_model: Rotary attention with shared keys and values",
    forbidden=("transformers.LlamaAttention",),
)


# (num_heads, num_kv_heads, d_head): no two numbers of a row are the same, nor are heads per group and groups.
GROUPED_SIZES = ((6, 2, 4), (6, 3, 4), (8, 2, 6))


def _rotary_case(draw: Draw, sizes, dtype=torch.float32, *, length=0, scale=1.0, base=(), still=False, **more):
    """A call with drawn weights; `still` sets queries to zero, so that all keys in sight count the same."""
    num_heads, num_kv_heads, d_head = sizes
    init = (num_heads * d_head, num_heads, num_kv_heads, *base)
    batch, drawn = draw.sizes(2, 2, 7, but=(*init, length))
    state = exercise.draw_state(draw, *init, dtype=dtype)
    if still:
        state["q_proj.weight"] = torch.zeros_like(state["q_proj.weight"])
    x = draw.normal(batch, length or drawn, init[0], dtype=dtype, scale=scale)
    return Case(init=init, state=state, args=(x,), **more)


def _plain_state(d_model: int, d_kv: int) -> dict[str, torch.Tensor]:
    """Weights of 0 and 1: out_proj and q_proj are the identity, keys and values the first features."""
    one = torch.eye(d_model)
    return {"q_proj.weight": one, "k_proj.weight": one[:d_kv], "v_proj.weight": one[:d_kv], "out_proj.weight": one}


@exercise.holds("Queries and keys are rotated by their positions, values are not", weight=3)
def _(draw):
    yield Case(
        init=(2, 1, 1),
        state=_plain_state(2, 2),
        args=(torch.tensor([[[1.0, 0.0], [0.0, 2.0], [2.0, 1.0]]]),),
        note="one head of two features, three positions, all projections the identity",
        degenerate_because="a small case, to be followed with a pencil",
        gradients=False,
    )
    alike = "as many heads of keys as of queries"
    for sizes, dtype in (((3, 3, 4), torch.float32), ((2, 2, 6), torch.float64)):
        yield _rotary_case(draw, sizes, dtype, length=5, note=alike, degenerate_because=alike)
    long = _rotary_case(draw, (2, 2, 4), length=67, note="67 positions", degenerate_because=alike, gradients=False)
    yield long


@exercise.holds("A query attends to its own position and to earlier ones, with weights that sum to one", weight=2)
def _(draw):
    for dtype in (torch.float32, torch.float64):
        note = "all queries are zero, so all keys that a query may attend to get the same weight"
        yield _rotary_case(draw, (3, 3, 4), dtype, still=True, note=note, degenerate_because="queries of zero")
    note = "one position: its weight is 1"
    yield _rotary_case(draw, (3, 3, 4), length=1, note=note, degenerate_because="one position", gradients=False)


@exercise.holds("Consecutive query heads share a head of keys and values", weight=3)
def _(draw):
    yield Case(
        init=(8, 4, 2),
        state=_plain_state(8, 4),
        args=(torch.tensor([[[1.0, 2, -1, 3, 5, -4, 7, 6]]]),),
        note="four query heads and two of keys and values, one position: its weight is 1",
        degenerate_because="a small case, to be read by eye",
        gradients=False,
    )
    for sizes, dtype in zip(GROUPED_SIZES, (torch.float64, torch.float32, torch.float32), strict=True):
        note = f"{sizes[0]} query heads, {sizes[1]} of keys and values"
        yield _rotary_case(draw, sizes, dtype, note=note)
    note = "one head of keys and values for all"
    yield _rotary_case(draw, (4, 1, 6), note=note, degenerate_because=note, gradients=False)
    note = "four query heads, two of keys and values"
    yield _rotary_case(draw, (4, 2, 4), torch.float64, note=note, degenerate_because="H = G²", gradients=False)
    note = "one head"
    yield _rotary_case(draw, (1, 1, 10), note=note, degenerate_because=note, gradients=False)


@exercise.holds("The given base is used")
def _(draw):
    for base, dtype in ((50.0, torch.float32), (1e6, torch.float64)):
        note = f"base {base:,.0f}"
        yield _rotary_case(draw, (6, 2, 4), dtype, length=5, base=(base,), note=note, gradients=False)


@exercise.holds("Large scores stay finite, and right")
def _(draw):
    for sizes, dtype in (((6, 2, 4), torch.float32), ((6, 3, 4), torch.float64)):
        note = "scores of some hundreds"
        yield _rotary_case(draw, sizes, dtype, scale=15.0, note=note, tolerance=50, gradients=False)
