"""Exercise `attention_entropy`: metadata, stub and cases."""

import torch

from course_kit.exercises._exercise import Case, Exercise
from course_kit.exercises._files import texts_next_to
from course_lib.inspection import attention_entropy

__all__ = ["attention_entropy", "exercise"]


exercise = Exercise(
    **texts_next_to(__file__),
    difficulty=1,
    minutes=10,
    stub='''\
def attention_entropy(weights):
    """Entropy of each query's attention in nats: (..., L_q, L_k) to (..., L_q)."""
    raise NotImplementedError
''',
    reference=attention_entropy,
    shapes={"weights": "... len_q len_k"},
    returns=("entropy",),
    read_next="inspection: How broad is a head?",
    single_sign_args=("weights",),
    forbidden=("torch.special.entr", "torch.distributions.Categorical"),
)


@exercise.holds("The entropy of each query is −Σ w log w over its keys, in nats", weight=2)
def _(draw):
    yield Case(args=(torch.tensor([[0.5, 0.25, 0.25]]),), degenerate_because="the smallest case, to be read by eye")
    for dtype in (torch.float32, torch.float64, torch.float32):
        yield Case(args=(draw.weights(*draw.sizes(2, 2, 9), dtype=dtype),))


@exercise.holds("It works with zero, one or two batch dimensions, in float32 and float64")
def _(draw):
    for batch in draw.batches(but=(5, 7)):
        for dtype in (torch.float32, torch.float64):
            yield Case(args=(draw.weights(*batch, 5, 7, dtype=dtype),), note=f"batch dimensions: {len(batch)}")
    yield Case(args=(draw.weights(2, 1, 3, 4, 6),), note="batch dimensions: 3", degenerate_because="some are short")
    turned = draw.weights(2, 6, 4).mT
    yield Case(args=(turned / turned.sum(-1, keepdim=True),), note="transposed in memory")
    yield Case(args=(draw.weights(1, 4, 6),), note="a batch of one", degenerate_because="a batch of one")
    yield Case(args=(draw.weights(3, 5, 5),), note="as many queries as keys", degenerate_because="square maps")
    yield Case(args=(draw.weights(2, 1, 6),), note="one query", degenerate_because="one query")


@exercise.holds("A key with a weight of zero adds nothing: 0 · log 0 = 0", weight=2)
def _(draw):
    yield Case(
        args=(torch.tensor([[1.0, 0.0, 0.0], [0.5, 0.0, 0.5]]),),
        note="all weight on one key, and on two",
        degenerate_because="to be read by eye",
        gradients=False,
    )
    for dtype in (torch.float32, torch.float64):
        scores = draw.normal(3, 5, 7, dtype=dtype).masked_fill(~draw.mask(3, 5, 7), -torch.inf)
        yield Case(args=(scores.softmax(-1),), note="masked keys", gradients=False)
    future = ~torch.ones(6, 6).tril().bool()
    causal = draw.normal(2, 6, 6).masked_fill(future, -torch.inf).softmax(-1)
    yield Case(args=(causal,), note="a causal mask", degenerate_because="square maps", gradients=False)


@exercise.holds("Equal weights on L_k keys have the entropy log L_k, and a sharp distribution one close to 0")
def _(draw):
    for len_k in draw.sizes(2, 3, 11):
        yield Case(args=(torch.full((2, len_k), 1 / len_k),), note=f"equal weights on {len_k} keys")
    yield Case(args=(torch.full((2, 300), 1 / 300, dtype=torch.float64),), note="equal weights on 300 keys")
    sharp = draw.normal(5, 7, dtype=torch.float64, scale=15).softmax(-1)
    yield Case(args=(sharp,), note="weights from nearly 1 to below 1e-9", gradients=False)
