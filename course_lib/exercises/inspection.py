"""Exercises of the chapter on the inside of a trained model: entropy, rollout and the scores of a head."""

from __future__ import annotations

import math

import torch

from course_lib.exercises._draw import Draw
from course_lib.exercises._exercise import Case, Exercise
from course_lib.inspection import (
    attention_between_words,
    attention_entropy,
    attention_rollout,
    head_switched_off,
    previous_token_score,
)

__all__ = ["BETWEEN_WORDS", "ENTROPY", "PREVIOUS_TOKEN", "ROLLOUT", "SWITCHED_OFF"]


def _weights(draw: Draw, *shape: int) -> torch.Tensor:
    """Attention weights without a zero."""
    return draw.normal(*shape, scale=1.5).softmax(-1)


# attention_entropy

ENTROPY = Exercise(
    name="attention_entropy",
    title="How widely a query looks",
    statement="""\
A query that attends to one key has an entropy of 0, one that attends to all $L_k$ keys alike has $\\log L_k$:

$$H_i = -\\sum_j w_{ij} \\log w_{ij}, \\qquad 0 \\cdot \\log 0 = 0.$$

`weights` is `(..., L_q, L_k)`, what a softmax returned: each row sums to one, and a masked key has a weight of exactly
0. Return the entropy of each query in nats (natural logarithm), `(..., L_q)`. The gradient at a weight of zero is not
asked for.""",
    difficulty=1,
    minutes=10,
    stub='''\
def attention_entropy(weights):
    """Entropy of each query's attention in nats: (..., L_q, L_k) to (..., L_q)."""
    raise NotImplementedError
''',
    hints=(
        "Which axis does the sum run over: that of the queries, or that of the keys?",
        "What is `torch.tensor(0.0).log()`, and what is 0 times that? Find the weights for which it goes wrong.",
        "Give the logarithm a harmless number wherever the weight is zero: `torch.where(condition, a, b)`. The factor "
        "in front of it is zero anyway.",
    ),
    reference=attention_entropy,
    shapes={"weights": "... len_q len_k"},
    returns=("entropy",),
    look="inspection: The mathematics",
    one_sign=("weights",),
    twins=("torch.special.entr",),
)


@ENTROPY.holds("The entropy of each query is −Σ w log w over its keys, in nats", weight=2)
def _(draw):
    yield Case(args=(torch.tensor([[0.5, 0.25, 0.25]]),), edge="the smallest case, to be read by eye")
    for leading in draw.batches(but=(5, 7)):
        yield Case(args=(_weights(draw, *leading, 5, 7),))


@ENTROPY.holds("A key with a weight of zero adds nothing: 0 · log 0 = 0")
def _(draw):
    yield Case(
        args=(torch.tensor([[1.0, 0.0, 0.0], [0.5, 0.0, 0.5]]),), note="one key of three, two of three", gradients=False
    )
    scores = draw.normal(3, 5, 7).masked_fill(~draw.mask(3, 5, 7), -torch.inf)
    yield Case(args=(scores.softmax(-1),), note="masked keys", gradients=False)


@ENTROPY.holds("Equal weights on L_k keys have the entropy log L_k")
def _(draw):
    for len_k in draw.sizes(2, 3, 11):
        yield Case(args=(torch.full((2, len_k), 1 / len_k),), note=f"{len_k} keys alike")


def _entropy(log=lambda w: torch.where(w > 0, w, 1).log(), combine=lambda terms: -terms.sum(-1)):
    """The entropy with another logarithm, or other sums."""
    return lambda weights: combine(weights * log(weights))


def _safe_log(weights):
    return torch.where(weights > 0, weights, 1).log()


ENTROPY.misconception(
    "nan_for_zero",
    "A weight of zero gives NaN: log 0 is −∞, and 0 · −∞ is not a number. The convention 0 · log 0 = 0 has to be "
    "written out.",
)(_entropy(torch.log))
ENTROPY.misconception(
    "small_number_added",
    "A small number is added inside the logarithm. It removes the NaN, but it changes the entropy of every query.",
)(_entropy(lambda w: (w + 1e-3).log()))
ENTROPY.misconception(
    "sign_lost",
    "The result is negative. Logarithms of weights are at most zero, so the sum needs a minus in front.",
)(_entropy(combine=lambda terms: terms.sum(-1)))
ENTROPY.misconception(
    "in_bits",
    "The logarithm is that of base 2, so the entropy is in bits. Here it is in nats.",
)(_entropy(lambda w: torch.where(w > 0, w, 1).log2()))
ENTROPY.misconception(
    "over_the_queries",
    "The sum runs over the queries. Each query has a distribution over the keys, which are the last axis.",
)(_entropy(combine=lambda terms: -terms.sum(-2)))
ENTROPY.misconception(
    "mean_over_keys",
    "The terms are averaged over the keys, not added: the result is too small by a factor of L_k.",
)(_entropy(combine=lambda terms: -terms.mean(-1)))
ENTROPY.misconception(
    "normalised",
    "The entropy is divided by log L_k, so that it lies between 0 and 1. That is useful for comparing sentences of "
    "different lengths, but it is not in nats.",
)(lambda weights: -(weights * _safe_log(weights)).sum(-1) / math.log(max(weights.shape[-1], 2)))
ENTROPY.misconception(
    "one_number",
    "All queries are added up into one number. Each query has an entropy of its own.",
)(_entropy(combine=lambda terms: -terms.sum()))
ENTROPY.misconception(
    "softmax_again",
    "The weights go through a softmax once more. They are the result of one already, and a second one makes them "
    "nearly equal.",
)(lambda weights: -(weights.softmax(-1) * weights.log_softmax(-1)).sum(-1))
ENTROPY.misconception(
    "perplexity",
    "This is the exponential of the entropy: the number of keys that a query looks at, in effect. The entropy itself "
    "is asked for.",
)(lambda weights: (-(weights * _safe_log(weights)).sum(-1)).exp())


# attention_rollout

ROLLOUT = Exercise(
    name="attention_rollout",
    title="From the top layer back to the tokens",
    statement="""\
Follow the attention of all layers down to the input. Layer $l$ mixes positions by the mean of its heads, $A_l$, and
its residual connection keeps half of what was there:

$$R = \\hat A_N \\cdots \\hat A_2 \\hat A_1, \\qquad \\hat A_l = \\tfrac12 A_l + \\tfrac12 I.$$

`weights` is `(num_layers, B, H, L, L)`, the first layer first. Return $R$, `(B, L, L)`: row $i$ says how much of each
input token the vector at position $i$ contains. Its rows sum to one.""",
    difficulty=2,
    minutes=15,
    stub='''\
def attention_rollout(weights):
    """Attention from the last layer to the input: (num_layers, B, H, L, L) to (B, L, L)."""
    raise NotImplementedError
''',
    hints=(
        "Which axis are the heads? Their mean is `(num_layers, B, L, L)`.",
        "`torch.eye(L)` is the identity. What do the rows of ½ A + ½ I sum to?",
        "The vector after layer 2 is a mixture of vectors after layer 1, which are mixtures of tokens. So which of the "
        "two matrices stands on the left in the product?",
        "Start with the first layer, and multiply each further layer from the left: `rollout = layer @ rollout`.",
    ),
    reference=attention_rollout,
    shapes={"weights": "num_layers batch heads length length"},
    returns=("rollout",),
    look="inspection: The mathematics",
    one_sign=("weights",),
    # Off the plane of rows that sum to one, dividing by the sum and halving differ: both are right.
    differentiable=False,
)


@ROLLOUT.holds("Layers are multiplied, the last one leftmost", weight=2)
def _(draw):
    first, second = torch.tensor([[1.0, 0], [1, 0]]), torch.tensor([[0.0, 1], [1, 0]])
    yield Case(
        args=(torch.stack((first, second))[:, None, None],), note="two layers", edge="the smallest case, by hand"
    )
    for num_layers in (2, 4):
        batch, heads, length = draw.sizes(3, 3, 8, but=(num_layers,))
        yield Case(args=(_weights(draw, num_layers, batch, heads, length, length),), note=f"{num_layers} layers")


@ROLLOUT.holds("The heads of a layer are averaged, and half of each position stays where it is")
def _(draw):
    batch, heads, length = draw.sizes(3, 2, 7)
    yield Case(args=(_weights(draw, 1, batch, heads, length, length),), note="one layer", edge="one layer on purpose")


@ROLLOUT.holds("A causal model stays causal: no token reaches an earlier position")
def _(draw):
    num_layers, batch, heads, length = draw.sizes(4, 2, 7)
    future = ~torch.ones(length, length).tril().bool()
    scores = draw.normal(num_layers, batch, heads, length, length).masked_fill(future, -torch.inf)
    yield Case(args=(scores.softmax(-1),), note="a causal mask")


def _rollout(
    heads=lambda w: w.mean(2), mix=lambda a, eye: (a + eye) / 2, join=lambda layer, rollout: layer @ rollout, start=0
):
    """A rollout with heads, residual or product computed in another way."""

    def attention_rollout(weights):
        mixed = mix(heads(weights), torch.eye(weights.shape[-1], dtype=weights.dtype))
        rollout = mixed[start]
        for layer in mixed[start + 1 :]:
            rollout = join(layer, rollout)
        return rollout

    return attention_rollout


ROLLOUT.misconception(
    "first_layer_leftmost",
    "The layers are multiplied in the wrong order. The last layer mixes what the earlier ones have made, so it stands "
    "on the left.",
)(_rollout(join=lambda layer, rollout: rollout @ layer))
ROLLOUT.misconception(
    "no_residual",
    "The residual connection is missing: without ½ I each layer would forget what stood at a position.",
)(_rollout(mix=lambda a, eye: a))
ROLLOUT.misconception(
    "identity_added_whole",
    "The identity is added and the sum is not divided by two: the rows of N layers sum to $2^N$.",
)(_rollout(mix=lambda a, eye: a + eye))
ROLLOUT.misconception(
    "largest_head",
    "The heads are combined by their maximum. The rollout takes their mean.",
)(_rollout(heads=lambda w: w.amax(2), mix=lambda a, eye: (a + eye) / (a + eye).sum(-1, keepdim=True)))
ROLLOUT.misconception(
    "first_head_alone",
    "Only the first head of each layer is followed. A layer mixes positions by all its heads.",
)(_rollout(heads=lambda w: w[:, :, 0]))
ROLLOUT.misconception(
    "heads_added",
    "The heads are added, not averaged, so a row of a layer sums to H.",
)(_rollout(heads=lambda w: w.sum(2)))
ROLLOUT.misconception(
    "elementwise",
    "The layers are multiplied entry by entry. A path of two steps goes over all positions in between, which is the "
    "product of matrices.",
)(_rollout(join=lambda layer, rollout: layer * rollout))
ROLLOUT.misconception(
    "layers_averaged",
    "The layers are averaged. Attention of a later layer is to vectors that are mixtures already, so the layers have "
    "to be multiplied.",
)(lambda weights: ((weights.mean(2) + torch.eye(weights.shape[-1], dtype=weights.dtype)) / 2).mean(0))
ROLLOUT.misconception(
    "last_layer_alone",
    "This is the last layer only: what it attends to are hidden vectors, not tokens.",
)(lambda weights: (weights[-1].mean(1) + torch.eye(weights.shape[-1], dtype=weights.dtype)) / 2)
ROLLOUT.misconception(
    "transposed",
    "The result is transposed: rows are for positions of the output, columns for tokens of the input.",
)(lambda weights: attention_rollout(weights).transpose(-1, -2))


# previous_token_score

PREVIOUS_TOKEN = Exercise(
    name="previous_token_score",
    title="A head that looks one token back",
    statement="""\
One head of a trained encoder puts nearly all its weight on the token before. Measure it: the mean, over all queries
that have a token before them, of the weight that query $i$ puts on key $i - 1$.

`weights` is `(..., L, L)` with $L \\ge 2$, rows for queries. Return `(...)`: 1 for a head that always looks one token
back, about $1/L$ for one that looks everywhere alike.""",
    difficulty=1,
    minutes=10,
    stub='''\
def previous_token_score(weights):
    """Mean weight on the token before: (..., L, L) to (...)."""
    raise NotImplementedError
''',
    hints=(
        "Draw a map of 4 × 4 and mark the entries: which line through the map do they lie on?",
        "The first query has no token before it, so $L - 1$ queries are left.",
        "`torch.diagonal` has an `offset`, and `dim1` and `dim2` for tensors with more axes. Which sign is below the "
        "main diagonal?",
    ),
    reference=previous_token_score,
    shapes={"weights": "... length length"},
    returns=("score",),
    look="inspection: What heads do",
    one_sign=("weights",),
)


@PREVIOUS_TOKEN.holds("The score is the mean weight on the token before, over queries that have one", weight=2)
def _(draw):
    weights = torch.tensor([[1.0, 0.0, 0.0], [0.9, 0.1, 0.0], [0.2, 0.5, 0.3]])
    yield Case(args=(weights,), note="(0.9 + 0.5) / 2", edge="the smallest case, to be read by eye")
    for leading in draw.batches(but=(6,)):
        yield Case(args=(_weights(draw, *leading, 6, 6),))


@PREVIOUS_TOKEN.holds("A head that always looks one token back has the score 1")
def _(draw):
    length = draw.integer(4, 8)
    back = torch.eye(length).roll(-1, -1)
    back[0] = torch.eye(length)[0]
    yield Case(args=(back,), note="always the token before; the first query looks at itself")
    yield Case(args=(back.T.contiguous(),), note="always the token after")


PREVIOUS_TOKEN.misconception(
    "next_token",
    "This is the weight on the token *after*. Rows are queries: query i and key i − 1 lie below the main diagonal.",
)(lambda weights: weights.diagonal(1, -2, -1).mean(-1))
PREVIOUS_TOKEN.misconception(
    "own_token",
    "This is the weight of each query on itself, the main diagonal. One step to the side lies the token before.",
)(lambda weights: weights.diagonal(0, -2, -1).mean(-1))
PREVIOUS_TOKEN.misconception(
    "first_query_counted",
    "The sum is divided by L, but only L − 1 queries have a token before them.",
)(lambda weights: weights.diagonal(-1, -2, -1).sum(-1) / weights.shape[-1])
PREVIOUS_TOKEN.misconception(
    "wrapped_around",
    "The first query is compared with the *last* key: an index of −1 counts from the end.",
)(lambda weights: torch.stack([weights[..., i, i - 1] for i in range(weights.shape[-1])]).mean(0))
PREVIOUS_TOKEN.misconception(
    "all_before",
    "All weight on earlier tokens is added. Only the token directly before is asked for.",
)(lambda weights: weights.tril(-1).sum((-1, -2)) / (weights.shape[-1] - 1))
PREVIOUS_TOKEN.misconception(
    "summed",
    "The weights are added, not averaged, so the score grows with the length of the sentence.",
)(lambda weights: weights.diagonal(-1, -2, -1).sum(-1))
PREVIOUS_TOKEN.misconception(
    "how_often_largest",
    "This counts how often the token before has the *largest* weight. The mean of the weight itself is asked for.",
)(lambda weights: (weights[..., 1:, :].argmax(-1) == torch.arange(weights.shape[-1] - 1)).to(weights.dtype).mean(-1))


# attention_between_words

BETWEEN_WORDS = Exercise(
    name="attention_between_words",
    title="From pieces to words",
    statement="""\
A tokenizer cuts rare words into pieces, and special tokens belong to no word. Turn attention between tokens into
attention between words: *add* the weights **to** the pieces of a word, *average* the weights **from** its pieces.

`weights` is `(..., L_q, L_k)`; `query_words` `(L_q,)` and `key_words` `(L_k,)` say which word each token belongs to,
numbered from 0 without gaps, with −1 for a token that is left out. Return `(..., query words, key words)`.""",
    difficulty=2,
    minutes=20,
    stub='''\
def attention_between_words(weights, query_words, key_words):
    """Attention between words: (..., L_q, L_k) to (..., query words, key words)."""
    raise NotImplementedError
''',
    hints=(
        "A row sums to one. If no key is left out, what has to be done with the columns so that it still does? And "
        "with the rows?",
        "Compare `key_words[:, None]` with `torch.arange(number of words)`: a matrix `(L_k, words)` of True and False. "
        "What does multiplying the weights by it do?",
        "For the queries the same from the left, transposed, with each word's column divided by its number of pieces.",
    ),
    reference=attention_between_words,
    shapes={"weights": "... len_q len_k", "query_words": "len_q", "key_words": "len_k"},
    returns=("between",),
    look="inspection: What heads do",
    one_sign=("weights",),
)


@BETWEEN_WORDS.holds("Weights to the pieces of a word are added, weights from them averaged", weight=2)
def _(draw):
    weights = torch.tensor([[0.5, 0.25, 0.25], [0.25, 0.25, 0.5]])
    yield Case(args=(weights, torch.tensor([0, 0]), torch.tensor([0, 1, 1])), edge="the smallest case, by hand")
    for leading in draw.batches(but=(5, 7)):
        queries, keys = torch.tensor([0, 0, 0, 1, 2]), torch.tensor([0, 1, 1, 2, 2, 2, 3])
        yield Case(args=(_weights(draw, *leading, 5, 7), queries, keys))


@BETWEEN_WORDS.holds("Tokens with the number −1 are left out, and the weight on them is lost")
def _(draw):
    queries, keys = torch.tensor([-1, 0, 1, 1, -1]), torch.tensor([-1, 0, 0, 1, 2, 2, -1])
    yield Case(args=(_weights(draw, 3, 5, 7), queries, keys), note="special tokens at both ends")


@BETWEEN_WORDS.holds("Words of one piece each change nothing")
def _(draw):
    yield Case(args=(_weights(draw, 2, 5, 7), torch.arange(5), torch.arange(7)), note="one piece per word")


def _between(rows=lambda q: q / q.sum(0), columns=lambda k: k, after=lambda merged: merged):
    """Attention between words with other factors on the rows or the columns."""

    def member(words, like):
        return (words[:, None] == torch.arange(int(words.max()) + 1)).to(like.dtype)

    return lambda weights, query_words, key_words: after(
        rows(member(query_words, weights)).T @ weights @ columns(member(key_words, weights))
    )


BETWEEN_WORDS.misconception(
    "added_on_both_sides",
    "The weights from the pieces of a word are added as well, so the row of a word of three pieces sums to three.",
)(_between(rows=lambda q: q))
BETWEEN_WORDS.misconception(
    "averaged_on_both_sides",
    "The weights *to* the pieces are averaged too: a word would get less attention the more pieces it is cut into.",
)(_between(columns=lambda k: k / k.sum(0)))
BETWEEN_WORDS.misconception(
    "the_wrong_way_round",
    "It is the other way round: add over the keys, average over the queries.",
)(_between(rows=lambda q: q, columns=lambda k: k / k.sum(0)))
BETWEEN_WORDS.misconception(
    "normalised_again",
    "The rows are scaled to sum to one again. The weight on special tokens is lost on purpose: otherwise a head that "
    "rests on [SEP] would seem to look at words.",
)(_between(after=lambda merged: merged / merged.sum(-1, keepdim=True)))
BETWEEN_WORDS.misconception(
    "transposed",
    "The result is transposed: rows are for the words of the queries.",
)(_between(after=lambda merged: merged.transpose(-1, -2)))


def _first_piece(words):
    return torch.stack([(words == n).nonzero()[0, 0] for n in range(int(words.max()) + 1)])


BETWEEN_WORDS.misconception(
    "first_piece_for_the_word",
    "Only the first piece of each word is looked at. All pieces count.",
)(lambda weights, query_words, key_words: weights[..., _first_piece(query_words), :][..., _first_piece(key_words)])


# switched_off

SWITCHED_OFF = Exercise(
    name="head_switched_off",
    title="The output without one head",
    statement="""\
A map shows where a head looks. What the head *does* shows when it is switched off: the output of multi-head attention
in which head `off` adds nothing.

`heads` is `(B, H, L, d_head)`, what the heads computed (weights times values). `weight` `(d_out, d_model)` and
`bias` `(d_out,)` are those of the output projection, an `nn.Linear`: $y = W x + b$ for the heads' vectors side by
side, head $h$ in features $h \\cdot d_{head}$ to $(h + 1) \\cdot d_{head} - 1$. `off` is the number of the head.
Return the output, `(B, L, d_out)`. The bias stays.""",
    difficulty=2,
    minutes=15,
    stub='''\
def head_switched_off(heads, weight, bias, off):
    """Output of multi-head attention without head `off`: (B, H, L, d_head) to (B, L, d_out)."""
    raise NotImplementedError
''',
    hints=(
        "If a head's vectors are zero, what does it add to the output?",
        "The caller still needs `heads`: change a copy.",
        "To put the heads side by side, the axis H has to come next to d_head before the two become one.",
    ),
    reference=head_switched_off,
    shapes={"heads": "batch num_heads length d_head", "weight": "d_out d_model", "bias": "d_out"},
    returns=("output",),
    look="inspection: Where maps mislead",
)


def _projection(draw: Draw, num_heads: int, d_head: int, d_out: int):
    return draw.normal(d_out, num_heads * d_head), draw.normal(d_out)


@SWITCHED_OFF.holds("The output is the projection of all other heads, plus the bias", weight=2)
def _(draw):
    for off in (0, 1, 2):
        yield Case(args=(draw.normal(2, 3, 7, 5), *_projection(draw, 3, 5, 11), off), note=f"head {off} of 3 is off")


@SWITCHED_OFF.holds("Without its only head the output is the bias")
def _(draw):
    yield Case(args=(draw.normal(2, 1, 3, 5), *_projection(draw, 1, 5, 4), 0), note="one head", edge="a single head")


def _side_by_side(heads):
    return heads.transpose(1, 2).flatten(2)


def _without(heads, off):
    keep = torch.ones(heads.shape[1], dtype=heads.dtype)
    keep[off] = 0
    return heads * keep[:, None, None]


SWITCHED_OFF.misconception(
    "the_head_alone",
    "This is what head `off` adds, and all others are silent: the opposite of what is asked for.",
)(lambda heads, weight, bias, off: _side_by_side(heads - _without(heads, off)) @ weight.T + bias)
SWITCHED_OFF.misconception(
    "nothing_off",
    "The output is that of all heads: nothing has been switched off.",
)(lambda heads, weight, bias, off: _side_by_side(heads) @ weight.T + bias)
SWITCHED_OFF.misconception(
    "bias_lost",
    "The bias is missing. It belongs to the projection, not to a head, so it stays.",
)(lambda heads, weight, bias, off: _side_by_side(_without(heads, off)) @ weight.T)
SWITCHED_OFF.misconception(
    "weight_not_transposed",
    "The projection is applied as x W. An `nn.Linear` computes W x for each vector, that is x Wᵀ for rows.",
)(lambda heads, weight, bias, off: _side_by_side(_without(heads, off)) @ weight + bias)
SWITCHED_OFF.misconception(
    "output_features_off",
    "The features of the *output* are set to zero. The projection mixes the heads, so after it no feature belongs to "
    "one head.",
)(
    lambda heads, weight, bias, off: (
        (_side_by_side(heads) @ weight.T + bias) * _side_by_side(_without(torch.ones_like(heads), off))
    )
)
SWITCHED_OFF.misconception(
    "scaled_up",
    "The other heads are scaled up to make good for the missing one, as dropout does. Here they stay as they are.",
)(
    lambda heads, weight, bias, off: (
        _side_by_side(_without(heads, off)) * (heads.shape[1] / max(heads.shape[1] - 1, 1)) @ weight.T + bias
    )
)
SWITCHED_OFF.misconception(
    "counted_from_one",
    "Head `off − 1` is switched off. Heads are counted from 0, as everything here.",
)(lambda heads, weight, bias, off: _side_by_side(_without(heads, off - 1)) @ weight.T + bias)
