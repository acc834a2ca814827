"""Exercise `fix_attention_weights`: metadata, stub and cases."""

import math

import torch

from course_kit.exercises._exercise import Case, Exercise
from course_kit.exercises._files import texts_next_to
from course_kit.exercises.debugging.attention_inputs import queries_keys_values
from course_kit.exercises.scaled_dot_product.scaled_dot_product_attention import exercise as whole

__all__ = ["exercise", "fix_attention_weights"]


def fix_attention_weights(query, key):
    scores = query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])  # (..., L_q, L_k)
    return torch.softmax(scores, dim=-1)


exercise = Exercise(
    **texts_next_to(__file__),
    repair=True,
    difficulty=1,
    minutes=4,
    stub='''\
def fix_attention_weights(query, key):
    """softmax(Q K^T / sqrt(d_k)), (..., L_q, L_k): each query's weights sum to one."""
    raise NotImplementedError  # delete this line once you have decided
    d_k = query.shape[-1]
    scores = query @ key.transpose(-2, -1) / math.sqrt(d_k)  # (..., L_q, L_k)
    return torch.softmax(scores, dim=1)
''',
    reference=fix_attention_weights,
    shapes={"query": "... len_q d_k", "key": "... len_k d_k"},
    read_next="attention_bugs: Softmax along the wrong axis",
    forbidden=("course_lib.scaled_dot_product_attention", *whole.forbidden),
    returns=("weights",),
)


def _queries_and_keys(draw, batch=(), dtype=torch.float32, **options):
    return queries_keys_values(draw, batch, dtype, **options)[:2]


@exercise.holds("For a single sequence, the weights are softmax(QKᵀ/√d_k)")
def _(draw):
    yield Case(
        args=(torch.tensor([[2.0, 0, 1, -1]]), torch.tensor([[1.0, 2, -1, 0], [1, 0, 2, 0]])),
        note="one query, two keys of four features, so that the root is 2",
        degenerate_because="the smallest case, to be read by eye",
    )
    for dtype in (torch.float64, torch.float32):
        yield Case(args=_queries_and_keys(draw, dtype=dtype))
    for sizes in ((1, 5, 4, 2), (4, 1, 3, 2), (5, 8, 1, 2), (3, 3, 3, 3)):
        args = _queries_and_keys(draw, sizes=sizes)
        yield Case(
            args=args, note="L_q, L_k, d_k = {}, {}, {}".format(*sizes), degenerate_because="short or equal axes"
        )


@exercise.holds("In a batch, each query's weights sum to one over the keys", weight=2)
def _(draw):
    key = torch.tensor([[[1.0, 2, -1, 0], [1, 0, 2, 0], [0, -1, 1, 2]]])
    args = (torch.tensor([[[2.0, 0, 1, -1], [0, 1, -1, 2]]]), key)
    yield Case(args=args, note="a batch of one: two queries, three keys", degenerate_because="to be read by eye")
    for _ in range(2):
        (batch,) = draw.batches()[1:2]
        for dtype in (torch.float64, torch.float32):
            yield Case(args=_queries_and_keys(draw, batch, dtype))
    yield Case(args=_queries_and_keys(draw, (1,)), note="a batch of one", degenerate_because="a batch of one")
    yield Case(
        args=_queries_and_keys(draw, (4,), sizes=(4, 4, 4, 4)),
        note="all axes are equal",
        degenerate_because="equal on purpose",
    )


@exercise.holds("The weights of one head do not depend on the other heads", weight=2)
def _(draw):
    batch = draw.batches()[2]
    for dtype in (torch.float64, torch.float32):
        yield Case(args=_queries_and_keys(draw, batch, dtype), note="a batch of sequences with several heads")
    turned = tuple(x.mT.contiguous().mT for x in _queries_and_keys(draw, batch))
    yield Case(args=turned, note="tensors that are transposed in memory")
    yield Case(
        args=_queries_and_keys(draw, (2, 1, 3)), note="batch dimensions: 3", degenerate_because="one of them is short"
    )
    yield Case(args=_queries_and_keys(draw, (3, 1)), note="a single head", degenerate_because="a single head")


@exercise.holds("For a single sequence, large scores and wide vectors give finite weights, and the right ones")
def _(draw):
    for dtype in (torch.float64, torch.float32):
        args = _queries_and_keys(draw, (), dtype, scale=50.0)
        yield Case(args=args, note="scores of some thousands", tolerance=50, gradients=False)
    yield Case(args=_queries_and_keys(draw, sizes=(3, 5, 64, 2)), note="64 features", gradients=False)
