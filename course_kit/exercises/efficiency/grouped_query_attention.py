"""Exercise `grouped_query_attention`: metadata, stub and cases."""

import torch

from course_kit.exercises._draw import Draw
from course_kit.exercises._exercise import Case, Exercise
from course_kit.exercises._files import texts_next_to
from course_lib.efficiency import grouped_query_attention

exercise = Exercise(
    **texts_next_to(__file__),
    difficulty=2,
    minutes=15,
    stub='''\
def grouped_query_attention(query, key, value):
    """(B, H, L_q, d) from query (B, H, L_q, d), key and value (B, G, L_k, d)."""
    raise NotImplementedError
''',
    reference=grouped_query_attention,
    shapes={
        "query": "batch heads len_q d",
        "key": "batch groups len_k d",
        "value": "batch groups len_k d",
        "output": "batch heads len_q d",
    },
    read_next="efficiency: Grouped-query attention: fewer keys and values",
    forbidden=("scaled_dot_product_attention(enable_gqa=True)",),
)


HEADS_AND_GROUPS = ((6, 2), (6, 3), (8, 2), (8, 4), (12, 3), (9, 3))


def _grouped(draw: Draw, heads, groups, sizes=None, dtype=torch.float32):
    """Query, key and value; the other axes have lengths of their own unless they are given."""
    batch, len_q, len_k, d = sizes or draw.sizes(4, 2, 7, but=(heads, groups))
    return (
        draw.normal(batch, heads, len_q, d, dtype=dtype),
        draw.normal(batch, groups, len_k, d, dtype=dtype),
        draw.normal(batch, groups, len_k, d, dtype=dtype),
    )


@exercise.holds("Consecutive query heads share a head of keys and values", weight=3)
def _(draw):
    yield Case(
        args=(
            torch.tensor([[[[2.0]], [[-1]], [[1]], [[0]]]]),
            torch.tensor([[[[1.0], [-1]], [[2], [0]]]]),
            torch.tensor([[[[4.0], [8]], [[-6], [2]]]]),
        ),
        note="four query heads in two groups, one feature",
        degenerate_because="the smallest case, to be read by eye",
    )
    for heads, groups in HEADS_AND_GROUPS:
        yield Case(args=_grouped(draw, heads, groups), note=f"{heads} query heads in {groups} groups")
    yield Case(
        args=_grouped(draw, 4, 2, (2, 2, 2, 2)),
        note="axes of one length",
        degenerate_because="mistakes give numbers here",
    )
    yield Case(
        args=_grouped(draw, 4, 2, (3, 5, 4, 2)), note="as many groups as heads in a group", degenerate_because="H = G²"
    )


@exercise.holds("One group is multi-query attention; as many groups as heads is multi-head attention")
def _(draw):
    for heads, groups in ((3, 1), (6, 1), (3, 3), (5, 5)):
        which = "one head of keys and values for all" if groups == 1 else "each head has keys and values of its own"
        sizes = draw.sizes(4, 2, 7, but=(heads,))
        yield Case(
            args=_grouped(draw, heads, groups, sizes), note=which, degenerate_because="one group, or H = G, on purpose"
        )
    yield Case(args=_grouped(draw, 1, 1, (2, 3, 4, 5)), note="a single head", degenerate_because="a single head")


@exercise.holds("It works in float32 and float64, for any batch, lengths and layout in memory")
def _(draw):
    for heads, groups in ((6, 3), (8, 2)):
        yield Case(args=_grouped(draw, heads, groups, dtype=torch.float64), note="float64")
    yield Case(args=_grouped(draw, 6, 2, (1, 3, 4, 5)), note="a batch of one", degenerate_because="a batch of one")
    yield Case(args=_grouped(draw, 6, 2, (3, 1, 4, 5)), note="one query", degenerate_because="one query")
    yield Case(args=_grouped(draw, 6, 2, (3, 4, 1, 5)), note="one key", degenerate_because="one key")
    yield Case(args=_grouped(draw, 6, 3, (2, 4, 5, 1)), note="d is one", degenerate_because="one feature")
    yield Case(args=_grouped(draw, 6, 3, (2, 5, 5, 4)), note="as many queries as keys", degenerate_because="L_q = L_k")
    turned = tuple(x.transpose(1, 2).contiguous().transpose(1, 2) for x in _grouped(draw, 6, 2))
    yield Case(args=turned, note="heads that were split off the features")
    yield Case(args=_grouped(draw, 6, 2, (3, 4, 5, 64)), note="64 features")
