"""Exercise `fix_scaled_attention`: metadata, stub and cases."""

import math

import torch

from course_kit.exercises._exercise import Case, Exercise
from course_kit.exercises._files import texts_next_to
from course_kit.exercises.debugging.attention_inputs import queries_keys_values
from course_kit.exercises.scaled_dot_product.scaled_dot_product_attention import exercise as whole

__all__ = ["exercise", "fix_scaled_attention"]


def fix_scaled_attention(query, key, value):
    scores = query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])  # (..., L_q, L_k)
    weights = torch.softmax(scores, dim=-1)
    return weights @ value, weights  # (..., L_q, d_v)


exercise = Exercise(
    **texts_next_to(__file__),
    repair=True,
    difficulty=1,
    minutes=5,
    stub='''\
def fix_scaled_attention(query, key, value):
    """softmax(Q K^T / sqrt(d_k)) V and the weights."""
    raise NotImplementedError  # delete this line once you have decided
    d_k = query.shape[-1]
    scores = query @ key.transpose(-2, -1)  # (..., L_q, L_k)
    scaled_scores = scores / math.sqrt(d_k)
    weights = torch.softmax(scores, dim=-1)
    return weights @ value, weights  # (..., L_q, d_v)
''',
    reference=fix_scaled_attention,
    shapes={"query": "... len_q d_k", "key": "... len_k d_k", "value": "... len_k d_v"},
    read_next="attention_bugs: The scale that is computed and not used",
    forbidden=("course_lib.scaled_dot_product_attention", *whole.forbidden),
    returns=("output", "weights"),
)


@exercise.holds(
    "The weights are as spread out as those of softmax(QKᵀ/√d_k), and the output is their average", weight=3
)
def _(draw):
    yield Case(
        args=(
            torch.tensor([[2.0, 0, 1, -1]]),
            torch.tensor([[1.0, 2, -1, 0], [1, 0, 2, 0]]),
            torch.tensor([[4.0], [8]]),
        ),
        note="one query, two keys of four features, so that the root is 2",
        degenerate_because="the smallest case, to be read by eye",
    )
    for batch in draw.batches():
        yield Case(args=queries_keys_values(draw, batch))
    for sizes in ((1, 5, 4, 3), (4, 1, 3, 2), (3, 5, 1, 2), (3, 5, 4, 1), (3, 3, 3, 3)):
        args = queries_keys_values(draw, sizes=sizes)
        yield Case(
            args=args,
            note="L_q, L_k, d_k, d_v = {}, {}, {}, {}".format(*sizes),
            degenerate_because="short or equal axes",
        )


@exercise.holds("With more features per head, the weights do not become more concentrated")
def _(draw):
    for d_k in (16, 64, 100):
        args = queries_keys_values(draw, (2,), sizes=(3, 5, d_k, 4))
        yield Case(args=args, note=f"{d_k} features", gradients=d_k == 16)


@exercise.holds("It works with any number of batch dimensions, including none, in float32 and float64")
def _(draw):
    for batch in draw.batches():
        for dtype in (torch.float64, torch.float32):
            yield Case(args=queries_keys_values(draw, batch, dtype), note=f"batch dimensions: {len(batch)}")
    yield Case(
        args=queries_keys_values(draw, (2, 1, 3)), note="batch dimensions: 3", degenerate_because="one of them is short"
    )
    turned = tuple(x.mT.contiguous().mT for x in queries_keys_values(draw, (3,)))
    yield Case(args=turned, note="tensors that are transposed in memory")


@exercise.holds(
    "With scores of some thousands, the weights are finite, and the largest score gets nearly all the weight"
)
def _(draw):
    for dtype in (torch.float64, torch.float32):
        args = queries_keys_values(draw, dtype=dtype, scale=50.0)
        yield Case(args=args, note="scores of some thousands", tolerance=50, gradients=False)
