"""Exercise `MultiHeadAttention`: metadata, stub and cases."""

import torch

from course_kit.exercises._draw import Draw
from course_kit.exercises._exercise import Case, Exercise
from course_kit.exercises._files import texts_next_to
from course_kit.exercises.multi_head.sizes import HEADS_AND_WIDTHS, merged_by_chance
from course_lib.multi_head import MultiHeadAttention

exercise = Exercise(
    **texts_next_to(__file__),
    difficulty=3,
    minutes=30,
    stub='''\
class MultiHeadAttention(nn.Module):
    """Attention in num_heads subspaces; forward gives (output, weights)."""

    def __init__(self, d_model, num_heads):
        super().__init__()
        raise NotImplementedError

    def forward(self, query, key, value, mask=None):
        raise NotImplementedError
''',
    reference=MultiHeadAttention,
    shapes={
        "query": "batch len_q d_model",
        "key": "batch len_k d_model",
        "value": "batch len_k d_model",
        "mask": "#",
        # What is returned: in the smallest case several axes have one length, so lengths alone would not name them.
        "output": "batch len_q d_model",
        "weights": "batch num_heads len_q len_k",
    },
    returns=("output", "weights"),
    read_next="multi_head: The class MultiHeadAttention",
    forbidden=("multi_head_attention_forward", "_native_multi_head_attention", "torch.nn.MultiheadAttention"),
)


def _call(draw: Draw, pair, dtype=torch.float32, scale=1.0, sizes=()) -> dict:
    """Constructor arguments, parameters, and three different inputs whose axes all have different lengths."""
    num_heads, d_head = pair
    d_model = num_heads * d_head
    batch, len_q, len_k = sizes or draw.sizes(3, but=(*pair, d_model))
    while not sizes and merged_by_chance(batch, len_q, len_k, *pair):
        batch, len_q, len_k = draw.sizes(3, but=(*pair, d_model))
    return {
        "init": (d_model, num_heads),
        "state": exercise.draw_state(draw, d_model, num_heads, dtype=dtype),
        "args": (
            draw.normal(batch, len_q, d_model, dtype=dtype, scale=scale),
            draw.normal(batch, len_k, d_model, dtype=dtype, scale=scale),
            draw.normal(batch, len_k, d_model, dtype=dtype),
        ),
    }


def _masked(draw: Draw, pair, shape, dtype=torch.float32, **options) -> dict:
    """The same with a mask, whose shape is given in the names of the axes."""
    call = _call(draw, pair, dtype, **options)
    query, key, _ = call["args"]
    lengths = {"B": len(query), "H": pair[0], "q": query.shape[1], "k": key.shape[1], "1": 1}
    return {**call, "args": (*call["args"], draw.mask(*(lengths[axis] for axis in shape)))}


@exercise.holds("Each head attends in its own slice of the projected features; out_proj mixes the results", weight=3)
def _(draw):
    # The first cases are called in train mode too, and for gradients; the small ones below are what is shown.
    for pair, dtype in zip(HEADS_AND_WIDTHS, (torch.float32, torch.float64) * 2, strict=True):
        yield Case(**_call(draw, pair, dtype))
    call = _call(draw, (2, 3))
    turned = tuple(x.mT.contiguous().mT for x in call["args"])
    yield Case(**{**call, "args": turned}, note="tensors that are transposed in memory")
    yield Case(
        init=(2, 1),
        state=_simple(2),
        args=(
            torch.tensor([[[1.0, 0.0]]]),
            torch.tensor([[[1.0, 1.0], [0.0, 2.0]]]),
            torch.tensor([[[1.0, 0.0], [2.0, -1.0]]]),
        ),
        note="one head of two features, one query, two keys",
        degenerate_because="the smallest case, to be followed with a pencil",
    )
    yield Case(
        init=(2, 2),
        state=_identities(2),
        args=(
            torch.tensor([[[1.0, 2.0]]]),
            torch.tensor([[[1.0, 0.0], [0.0, 1.0]]]),
            torch.tensor([[[1.0, -1.0], [3.0, 2.0]]]),
        ),
        note="two heads of one feature, one query, two keys, all projections the identity",
        degenerate_because="to be followed with a pencil",
    )
    yield Case(
        init=(4, 2),
        state=_simple(4),
        args=(
            torch.tensor([[[1.0, 0, -1, 2], [0, 1, 1, 0]]]),
            torch.tensor([[[1.0, 1, 0, -1], [0, 2, 1, 0], [-1, 0, 0, 1]]]),
            torch.tensor([[[1.0, 0, 2, 0], [2, -1, 0, 1], [0, 3, 1, -2]]]),
        ),
        note="two heads of two features, two queries, three keys",
        degenerate_because="to be followed with a pencil",
    )


def _identities(size, dtype=torch.float32):
    """Parameters that leave everything as it is."""
    parts = {"weight": torch.eye(size, dtype=dtype), "bias": torch.zeros(size, dtype=dtype)}
    return {f"{name}_proj.{part}": x.clone() for name in ("q", "k", "v", "out") for part, x in parts.items()}


def _simple(size):
    """Parameters of 0, 1 and -1 that differ from layer to layer, and from their transposes."""
    one, above = torch.eye(size), torch.eye(size).roll(1, 1).triu()
    matrices = {"q": one, "k": one + above, "v": one - above, "out": one + above.T}
    first, last = one[0], one[-1]
    biases = {"q": last, "k": first, "v": -first, "out": -last}
    return {
        **{f"{name}_proj.weight": matrix.clone() for name, matrix in matrices.items()},
        **{f"{name}_proj.bias": bias.clone() for name, bias in biases.items()},
    }


@exercise.holds("Self-attention is the case of three equal inputs")
def _(draw):
    for pair, dtype in (((3, 2), torch.float64), ((2, 4), torch.float32)):
        call = _call(draw, pair, dtype)
        x = call["args"][0]
        yield Case(
            **{**call, "args": (x, x, x)}, note="self-attention", degenerate_because="queries and keys are the same"
        )


@exercise.holds("A masked key gets weight zero and the others share all the weight; masks broadcast", weight=2)
def _(draw):
    yield Case(**_masked(draw, (2, 3), "qk"), note="a mask (L_q, L_k)")
    yield Case(**_masked(draw, (3, 2), "B11k", torch.float64), note="a mask (B, 1, 1, L_k)")
    yield Case(**_masked(draw, (4, 2), "B1qk"), note="a mask (B, 1, L_q, L_k)")
    x = torch.tensor([[[1.0, 2.0]]]), torch.tensor([[[1.0, 0.0], [3.0, 1.0], [0.0, 1.0]]])
    yield Case(
        init=(2, 1),
        state=_identities(2),
        args=(*x, torch.tensor([[[1.0, -1.0], [4.0, 0.0], [3.0, 2.0]]]), torch.tensor([[True, False, True]])),
        note="one head, one of three keys is masked, all projections the identity",
        degenerate_because="to be followed with a pencil",
    )
    yield Case(**_masked(draw, (2, 4), "1Hqk", torch.float64), note="a mask (1, H, L_q, L_k)")
    yield Case(**_masked(draw, (3, 2), "BHqk"), note="a mask of full size")
    call = _call(draw, (2, 4))
    everything = torch.ones(call["args"][0].shape[1], call["args"][1].shape[1], dtype=torch.bool)
    yield Case(**{**call, "args": (*call["args"], everything)}, note="a mask that allows everything")
    yield Case(**_masked(draw, (3, 2), "k"), note="a mask (L_k,)")
    yield Case(**_masked(draw, (2, 4), "1k"), note="a mask (1, L_k)")
    yield Case(**_masked(draw, (4, 2), "11qk"), note="a mask (1, 1, L_q, L_k)")
    # Lengths that agree, so that only the rule of broadcasting, from the right, says which axis is which.
    for axes, shape, alike in (
        ("(H, L_q, L_k)", (2, 4, 5), "as many sequences as heads"),
        ("(L_q, L_k)", (3, 5), "as many sequences as queries"),
    ):
        call = _call(draw, (2, 3), sizes=(shape[0], shape[-2], shape[-1]))
        call["args"] = (*call["args"], draw.mask(*shape))
        yield Case(**call, note=f"a mask {axes}, {alike}", degenerate_because="equal lengths on purpose")


@exercise.holds(
    "One head works, and so do d_model heads; if num_heads does not divide d_model, the constructor raises ValueError"
)
def _(draw):
    yield Case(
        **_call(draw, (1, 5)), note="one head, an odd number of features", degenerate_because="one head on purpose"
    )
    yield Case(
        **_call(draw, (4, 1)), note="as many heads as features", degenerate_because="heads of one feature on purpose"
    )
    # Without arguments for `forward`: it is the constructor that has to raise.
    for d_model, num_heads in ((6, 4), (7, 2), (4, 8)):
        note = f"the constructor alone, {num_heads} heads for {d_model} features"
        yield Case(init=(d_model, num_heads), raises=ValueError, note=note)


@exercise.holds("Large scores stay finite")
def _(draw):
    for pair, dtype in (((2, 3), torch.float32), ((3, 2), torch.float64)):
        note = "scores of some thousands"
        yield Case(**_call(draw, pair, dtype, scale=50.0), note=note, tolerance=50, gradients=False)
    call = _masked(draw, (2, 4), "B11k", scale=50.0)
    yield Case(**call, note="scores of some thousands, masked", tolerance=50, gradients=False)
    # Keys that nearly point away from the queries in every head: allowed scores from -9990 down to -10000.
    direction = torch.nn.functional.normalize(draw.normal(2, 3, dtype=torch.float64), dim=-1).flatten()
    length = (1e4 * 3**0.5) ** 0.5
    query, key = (
        direction * draw.uniform(1, count, 1, low=0.9996, high=1.0, dtype=torch.float64) * sign * length
        for count, sign in ((2, 1), (4, -1))
    )
    yield Case(
        init=(6, 2),
        state=_identities(6, torch.float64),
        args=(query, key, draw.normal(1, 4, 6, dtype=torch.float64), draw.mask(2, 4)),
        note="all scores near -10000, masked",
        degenerate_because="parallel vectors on purpose",
        gradients=False,
    )
