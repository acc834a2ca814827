"""Exercises of the chapter on the inside of a trained model: what a head attends to, and what it contributes."""

from __future__ import annotations

import torch

from course_lib.exercises import _inspection_heads, _inspection_words
from course_lib.exercises._exercise import Case, Exercise
from course_lib.exercises._inspection_entropy_slips import add_slips as add_entropy_slips
from course_lib.exercises._inspection_previous_slips import add_slips as add_previous_slips
from course_lib.exercises._inspection_rarer_slips import (
    add_rarer_entropy_slips,
    add_rarer_previous_slips,
    add_rarer_rollout_slips,
)
from course_lib.exercises._inspection_rollout_slips import add_slips as add_rollout_slips

__all__ = ["BETWEEN_WORDS", "ENTROPY", "PREVIOUS_TOKEN", "ROLLOUT", "SWITCHED_OFF"]


# attention_entropy


def attention_entropy(weights):
    logarithms = torch.where(weights > 0, weights, 1).log()  # 0 where the weight is 0
    return -(weights * logarithms).sum(-1)  # (..., L_q)


ENTROPY = Exercise(
    name="attention_entropy",
    title="How widely a query attends",
    statement="""\
Some heads put all the weight of a query on one key; others spread it over the whole sentence. The entropy of the
weights measures how widely they are spread:

$$H_i = -\\sum_j w_{ij} \\log w_{ij}, \\qquad 0 \\cdot \\log 0 = 0.$$

It is 0 for a query with all its weight on one key, and $\\log L_k$, the largest possible value, for equal weights on
all $L_k$ keys.

- `weights` is `(..., L_q, L_k)`, the output of a softmax: each row sums to one, and a masked key has a weight of
  exactly 0. The dots stand for any number of batch dimensions, none included.
- Return the entropy of each query, `(..., L_q)`, in nats: with the natural logarithm.

`weights` is float32 or float64, and the result has the same dtype. Gradients flow: that of $H_i$ with respect to a
positive weight is $-\\log w_{ij} - 1$. At a weight of 0 it is not checked.""",
    difficulty=1,
    minutes=10,
    stub='''\
def attention_entropy(weights):
    """Entropy of each query's attention in nats: (..., L_q, L_k) to (..., L_q)."""
    raise NotImplementedError
''',
    hints=(
        "Each query has a distribution over the keys. Which axis does the sum run over, and which axes remain?",
        "What is `torch.tensor(0.0).log()`, and what is 0 times that? A masked key has such a weight.",
        "Where the weight is zero, take the logarithm of some harmless number instead: the factor in front of it is "
        "zero anyway. `torch.where(condition, a, b)` chooses entry by entry.",
    ),
    reference=attention_entropy,
    shapes={"weights": "... len_q len_k"},
    returns=("entropy",),
    look="inspection: How broad is a head?",
    one_sign=("weights",),
    twins=("torch.special.entr", "torch.distributions.Categorical"),
)


@ENTROPY.holds("The entropy of each query is −Σ w log w over its keys, in nats", weight=2)
def _(draw):
    yield Case(args=(torch.tensor([[0.5, 0.25, 0.25]]),), edge="the smallest case, to be read by eye")
    for dtype in (torch.float32, torch.float64, torch.float32):
        yield Case(args=(draw.weights(*draw.sizes(2, 2, 9), dtype=dtype),))


@ENTROPY.holds("It works with zero, one or two batch dimensions, in float32 and float64")
def _(draw):
    for batch in draw.batches(but=(5, 7)):
        for dtype in (torch.float32, torch.float64):
            yield Case(args=(draw.weights(*batch, 5, 7, dtype=dtype),), note=f"batch dimensions: {len(batch)}")
    yield Case(args=(draw.weights(2, 1, 3, 4, 6),), note="batch dimensions: 3", edge="some are short")
    turned = draw.weights(2, 6, 4).mT
    yield Case(args=(turned / turned.sum(-1, keepdim=True),), note="transposed in memory")
    yield Case(args=(draw.weights(1, 4, 6),), note="a batch of one", edge="a batch of one")
    yield Case(args=(draw.weights(3, 5, 5),), note="as many queries as keys", edge="square maps")
    yield Case(args=(draw.weights(2, 1, 6),), note="one query", edge="one query")


@ENTROPY.holds("A key with a weight of zero adds nothing: 0 · log 0 = 0", weight=2)
def _(draw):
    yield Case(
        args=(torch.tensor([[1.0, 0.0, 0.0], [0.5, 0.0, 0.5]]),),
        note="all weight on one key, and on two",
        edge="to be read by eye",
        gradients=False,
    )
    for dtype in (torch.float32, torch.float64):
        scores = draw.normal(3, 5, 7, dtype=dtype).masked_fill(~draw.mask(3, 5, 7), -torch.inf)
        yield Case(args=(scores.softmax(-1),), note="masked keys", gradients=False)
    future = ~torch.ones(6, 6).tril().bool()
    causal = draw.normal(2, 6, 6).masked_fill(future, -torch.inf).softmax(-1)
    yield Case(args=(causal,), note="a causal mask", edge="square maps", gradients=False)


@ENTROPY.holds("Equal weights on L_k keys have the entropy log L_k, and a sharp distribution one close to 0")
def _(draw):
    for len_k in draw.sizes(2, 3, 11):
        yield Case(args=(torch.full((2, len_k), 1 / len_k),), note=f"equal weights on {len_k} keys")
    yield Case(args=(torch.full((2, 300), 1 / 300, dtype=torch.float64),), note="equal weights on 300 keys")
    sharp = draw.normal(5, 7, dtype=torch.float64, scale=15).softmax(-1)
    yield Case(args=(sharp,), note="weights from nearly 1 to below 1e-9", gradients=False)


add_entropy_slips(ENTROPY)
add_rarer_entropy_slips(ENTROPY)


# attention_rollout


def attention_rollout(weights):
    identity = torch.eye(weights.shape[-1], dtype=weights.dtype, device=weights.device)
    mixed = (weights.mean(2) + identity) / 2  # (num_layers, B, L, L)
    rollout = mixed[0]  # (B, L, L)
    for layer in mixed[1:]:
        rollout = layer @ rollout
    return rollout


ROLLOUT = Exercise(
    name="attention_rollout",
    title="From the last layer back to the tokens",
    statement="""\
The weights of a later layer do not point at tokens. They point at vectors in which earlier layers have already mixed
several tokens. *Attention rollout* (Abnar & Zuidema, 2020) follows the weights through all layers, down to the tokens.
Layer $l$ mixes the positions with the mean of its heads, $A_l$. The residual connection is counted as half of the
result, so each layer keeps half of what was at a position:

$$R = \\hat A_N \\cdots \\hat A_2 \\hat A_1, \\qquad \\hat A_l = \\tfrac12 A_l + \\tfrac12 I.$$

- `weights` is `(num_layers, B, H, L, L)`, the first layer first. In each map, rows are queries, columns are keys, and
  each row sums to one. Every axis may have length 1.
- Return $R$, `(B, L, L)`: row $i$ says what share of the vector at position $i$ after the last layer comes from each
  input token. Its rows sum to one as well.

`weights` is float32 or float64, and the result has the same dtype.""",
    difficulty=2,
    minutes=15,
    stub='''\
def attention_rollout(weights):
    """Rollout over all layers: (num_layers, B, H, L, L) to (B, L, L)."""
    raise NotImplementedError
''',
    hints=(
        "Which axis is that of the heads? Their mean has the shape `(num_layers, B, L, L)`.",
        "`torch.eye(L)` is the identity. What do the rows of ½ A + ½ I sum to?",
        "A vector after layer 2 is a mixture of vectors after layer 1, and each of these is a mixture of tokens. "
        "So which of the two matrices comes first, from the left, in the product?",
        "Start with the first layer, and go up: each further layer multiplies what you have from the left.",
    ),
    reference=attention_rollout,
    shapes={"weights": "num_layers batch heads length length"},
    returns=("rollout",),
    look="inspection: Attention rollout",
    one_sign=("weights",),
    sum_to_one=("weights",),
)


@ROLLOUT.holds("The layers are multiplied as matrices, with the last layer leftmost", weight=2)
def _(draw):
    first, second = torch.tensor([[1.0, 0.0], [1.0, 0.0]]), torch.tensor([[0.0, 1.0], [1.0, 0.0]])
    yield Case(args=(torch.stack((first, second))[:, None, None],), note="two layers", edge="to be worked out by hand")
    for num_layers, dtype in ((2, torch.float32), (3, torch.float64), (4, torch.float32)):
        batch, heads, length = draw.sizes(3, 2, 8, but=(num_layers,))
        weights = draw.weights(num_layers, batch, heads, length, length, dtype=dtype)
        yield Case(args=(weights,), note=f"{num_layers} layers")


@ROLLOUT.holds("In each layer the heads are averaged, and the mean is mixed half and half with the identity", weight=2)
def _(draw):
    for dtype in (torch.float32, torch.float64):
        batch, heads, length = draw.sizes(3, 2, 7)
        yield Case(
            args=(draw.weights(1, batch, heads, length, length, dtype=dtype),), note="one layer", edge="one layer"
        )


@ROLLOUT.holds("It works for one head, one sentence, one token, a deep model, and any layout in memory")
def _(draw):
    num_layers, batch, heads, length = draw.sizes(4, 2, 7)
    yield Case(args=(draw.weights(num_layers, batch, 1, length, length),), note="one head", edge="one head")
    yield Case(args=(draw.weights(num_layers, 1, heads, length, length),), note="one sentence", edge="one sentence")
    yield Case(args=(torch.ones(3, 2, 4, 1, 1),), note="one token", edge="one token")
    yield Case(args=(draw.weights(12, batch, heads, length, length, dtype=torch.float64),), note="12 layers")
    turned = draw.weights(length, heads, num_layers, batch, length).permute(2, 3, 1, 0, 4)
    yield Case(args=(turned,), note="axes in another order in memory")


@ROLLOUT.holds("With causal masks, no token reaches an earlier position")
def _(draw):
    for dtype in (torch.float32, torch.float64):
        num_layers, batch, heads, length = draw.sizes(4, 2, 7)
        future = ~torch.ones(length, length).tril().bool()
        scores = draw.normal(num_layers, batch, heads, length, length, dtype=dtype).masked_fill(future, -torch.inf)
        yield Case(args=(scores.softmax(-1),), note="a causal mask")


add_rollout_slips(ROLLOUT)
add_rarer_rollout_slips(ROLLOUT)


# previous_token_score


def previous_token_score(weights):
    return weights.diagonal(offset=-1, dim1=-2, dim2=-1).mean(-1)  # (...)


PREVIOUS_TOKEN = Exercise(
    name="previous_token_score",
    title="Finding a head that attends to the previous token",
    statement="""\
In many trained transformers, some head puts nearly all of its weight on the previous token. To find such heads, give
each head a score: the mean weight that a query puts on the token before it, over all queries that have one. With
positions counted from 0,

$$s = \\frac{1}{L - 1} \\sum_{i=1}^{L-1} w_{i,\\,i-1}.$$

- `weights` is `(..., L, L)` with $L \\ge 2$: rows are queries, columns are keys, and each row sums to one. The dots
  stand for any number of batch dimensions, such as layers and heads, none included.
- Return one score per map, `(...)`. The score of a single map is a tensor without axes.

A head that always attends to the previous token has a score of 1, and equal weights have a score of $1/L$. `weights`
is float32 or float64, and the result has the same dtype.""",
    difficulty=1,
    minutes=10,
    stub='''\
def previous_token_score(weights):
    """Mean weight on the previous token: (..., L, L) to (...)."""
    raise NotImplementedError
''',
    hints=(
        "Draw a map of four queries and four keys, and mark the weights on the previous token. What line do they form?",
        "The first query has no token before it. How many weights are left?",
        "`torch.diagonal` takes an `offset`, and `dim1` and `dim2` for tensors with more than two axes. Which sign "
        "of the offset is below the main diagonal?",
    ),
    reference=previous_token_score,
    shapes={"weights": "... length length"},
    returns=("score",),
    look="inspection: What heads do",
    one_sign=("weights",),
)


@PREVIOUS_TOKEN.holds("The score is the mean weight on the previous token, over the queries that have one", weight=2)
def _(draw):
    weights = torch.tensor([[1.0, 0.0, 0.0], [0.9, 0.1, 0.0], [0.2, 0.5, 0.3]])
    yield Case(args=(weights,), note="(0.9 + 0.5) / 2", edge="to be read by eye")
    for length, dtype in zip(draw.sizes(3, 4, 9), (torch.float32, torch.float64, torch.float32), strict=True):
        yield Case(args=(draw.weights(length, length, dtype=dtype),), note=f"{length} tokens")


@PREVIOUS_TOKEN.holds("It works with zero, one or two batch dimensions, in float32 and float64")
def _(draw):
    for batch in draw.batches(but=(6,)):
        for dtype in (torch.float32, torch.float64):
            yield Case(args=(draw.weights(*batch, 6, 6, dtype=dtype),), note=f"batch dimensions: {len(batch)}")
    yield Case(args=(draw.weights(2, 1, 3, 5, 5),), note="batch dimensions: 3", edge="some are short")
    turned = draw.weights(3, 5, 5).mT
    yield Case(args=(turned / turned.sum(-1, keepdim=True),), note="transposed in memory")


@PREVIOUS_TOKEN.holds("A head that always attends to the previous token scores 1, and one that never does scores 0")
def _(draw):
    length = draw.integer(4, 8)
    back = torch.eye(length).roll(-1, -1)
    back[0] = torch.eye(length)[0]
    yield Case(args=(back,), note="always the previous token; the first query attends to itself")
    yield Case(args=(back.T.contiguous(),), note="always the next token; the last query attends to itself")
    yield Case(args=(torch.tensor([[0.25, 0.75], [0.5, 0.5]]),), note="two tokens", edge="to be read by eye")


add_previous_slips(PREVIOUS_TOKEN)
add_rarer_previous_slips(PREVIOUS_TOKEN)


# Exercises in files of their own

BETWEEN_WORDS = _inspection_words.BETWEEN_WORDS
SWITCHED_OFF = _inspection_heads.SWITCHED_OFF
