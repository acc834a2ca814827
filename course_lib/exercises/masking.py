"""Exercises of the chapter on masks."""

from __future__ import annotations

import math
import operator

import numpy as np
import torch

from course_lib.exercises._draw import Draw
from course_lib.exercises._exercise import Case, Exercise
from course_lib.masking import padding_mask

__all__ = ["CAUSAL", "DECODER", "PADDING", "SOFTMAX", "WINDOW"]

INF = float("inf")


def _tokens(draw: Draw, pad_id: int, where: str = "end"):
    """Token ids `(B, L)` on both sides of pad_id, 0 among them; all but the first sequence padded."""
    rows, length = draw.sizes(2, 3, 7)
    tokens = draw.integers(rows, length, low=0, high=9)
    tokens += tokens >= pad_id  # none of them is pad_id
    real = torch.tensor([n for n in (0, pad_id + 3, 1) if n != pad_id])
    tokens[0, : len(real)] = real
    for row in tokens[1:]:
        pads = draw.integer(1, length - 2)
        start = {"end": length - pads, "start": 0, "middle": 1}[where]
        row[start : start + pads] = pad_id
    return tokens


# padding_mask

PADDING = Exercise(
    name="padding_mask",
    title="A mask for padding",
    statement="""\
Sequences of different lengths share a batch when the short ones are filled up with a padding token. Nobody should
attend to it.

`tokens` is an int tensor `(B, L)` of token ids, `pad_id` the id of padding. Return a **bool** tensor `(B, 1, 1, L)`:
True where the key may be attended to, False where it is padding. The two axes of length one stand for the heads and
the queries, so the mask broadcasts against scores `(B, H, L_q, L)`.

Any id can be `pad_id`, and padding can stand anywhere in a sequence: at its end, at its start, in all of it.""",
    difficulty=1,
    minutes=5,
    stub='''\
def padding_mask(tokens, pad_id):
    """Bool (B, 1, 1, L): True where the key is not padding."""
    raise NotImplementedError
''',
    hints=(
        "Compare every token with `pad_id` at once: what are shape and dtype of a comparison of a tensor with a "
        "number?",
        "True means *may attend*. For which tokens does your comparison say True?",
        "`(B, L)` becomes `(B, 1, 1, L)` by indexing with None, or with `unsqueeze`: at which two places?",
    ),
    reference=padding_mask,
    shapes={"tokens": "batch length"},
    returns=("mask",),
    look="masking: Padding",
    differentiable=False,
)


@PADDING.holds("A key may be attended to if it is not padding; the shape is (B, 1, 1, L)", weight=2)
def _(draw):
    yield Case(args=(torch.tensor([[5, 8, 0]]), 0), edge="the smallest case, to be read by eye")
    for _ in range(2):
        yield Case(args=(_tokens(draw, 0), 0), note="padding at the end, pad_id 0")


@PADDING.holds("pad_id decides which tokens are padding, whatever its value")
def _(draw):
    for pad_id in (1, 4, -1):
        yield Case(args=(_tokens(draw, pad_id), pad_id), note=f"pad_id {pad_id}")


@PADDING.holds("Padding is found anywhere in the sequence")
def _(draw):
    for where in ("start", "middle"):
        yield Case(args=(_tokens(draw, 2, where), 2), note=f"padding at the {where}, pad_id 2")
    tokens = _tokens(draw, 0)
    tokens[1] = 0
    yield Case(args=(tokens, 0), note="a sequence of padding only")
    yield Case(args=(torch.tensor([[0], [4], [7]], dtype=torch.int32), 0), note="one token, int32", edge="length one")
    yield Case(args=(_tokens(draw, 0).T.contiguous().T, 0), note="tokens that are transposed in memory")


def _padding(real=lambda tokens, pad_id: tokens != pad_id, place=lambda real: real[:, None, None, :]):
    """The padding mask with another test or other axes."""
    return lambda tokens, pad_id: place(real(tokens, pad_id))


def _first_tokens(tokens, pad_id):
    return torch.arange(tokens.shape[1]) < (tokens != pad_id).sum(1, keepdim=True)


def _first_tokens_and_one(tokens, pad_id):
    return torch.arange(tokens.shape[1]) <= (tokens != pad_id).sum(1, keepdim=True)


def _until_the_first_pad(tokens, pad_id):
    return (tokens != pad_id).int().cumprod(1).bool()


def _until_the_last_real(tokens, pad_id):
    return (tokens != pad_id).int().flip(1).cumsum(1).flip(1) > 0


PADDING.misconception(
    "turned_round",
    "True stands where the padding is. In this course True means *may attend*, and padding is what nobody may attend "
    "to. (`nn.MultiheadAttention` has it the other way round.)",
    look="notation: Conventions",
)(_padding(operator.eq))
PADDING.misconception(
    "no_axes_added",
    "The mask is `(B, L)`. Against scores `(B, H, L_q, L)` its batch axis would be lined up with the queries: two "
    "axes are missing.",
)(_padding(place=lambda real: real))
PADDING.misconception(
    "key_padding_mask",
    "This is the `key_padding_mask` of `nn.MultiheadAttention`: `(B, L)`, with True at the padding. Here True means "
    "*may attend*, and the mask has axes for heads and queries.",
    look="notation: Conventions",
)(_padding(operator.eq, lambda padded: padded))
PADDING.misconception(
    "no_axis_for_heads",
    "The mask is `(B, 1, L)`. It has an axis for the queries and none for the heads, so its batch would be lined up "
    "with the heads.",
)(_padding(place=lambda real: real[:, None, :]))
PADDING.misconception(
    "queries_masked",
    "The tokens lie along the axis of the queries. What is padded is a key: its column has to go, in every row.",
)(_padding(place=lambda real: real[:, None, :, None]))
PADDING.misconception(
    "axes_at_the_end",
    "The new axes stand at the end, `(B, L, 1, 1)`, where the tokens take the place of the heads. The keys are the "
    "last axis.",
)(_padding(place=lambda real: real[:, :, None, None]))
PADDING.misconception(
    "one_axis_at_the_end",
    "The mask is `(B, L, 1)`: its tokens are lined up with the queries. The keys are the last axis, and the heads "
    "need one too.",
)(_padding(place=lambda real: real[:, :, None]))
PADDING.misconception(
    "axes_in_front",
    "The new axes stand in front, `(1, 1, B, L)`, so the sequences of the batch are lined up with the queries.",
)(_padding(place=lambda real: real[None, None]))
PADDING.misconception(
    "one_axis_in_front",
    "One new axis stands before the batch, `(1, B, 1, L)`: there the sequences are lined up with the heads.",
)(_padding(place=lambda real: real[None, :, None, :]))
PADDING.misconception(
    "expanded_to_a_square",
    "The mask is spread out to `(B, 1, L, L)`. It is the same for every query, so an axis of length one is enough, "
    "and fits cross-attention too.",
)(_padding(place=lambda real: real[:, None, None, :].expand(-1, 1, real.shape[1], -1)))
PADDING.misconception(
    "pairs_of_real_tokens",
    "The mask is `(B, 1, L, L)`, True where query *and* key are real. Only the keys are asked for: a padded query may "
    "do what it likes.",
)(_padding(place=lambda real: real[:, None, None, :] & real[:, None, :, None]))
PADDING.misconception(
    "future_masked_too",
    "Later tokens are masked as well. This mask is for padding alone; the future comes with the next one.",
)(_padding(place=lambda real: real[:, None, None, :] & torch.ones(real.shape[1], real.shape[1]).tril().bool()))
PADDING.misconception(
    "pad_id_taken_as_zero",
    "Token 0 counts as padding, whatever `pad_id` says.",
)(_padding(lambda tokens, pad_id: tokens != 0))
PADDING.misconception(
    "greater_than_pad_id",
    "Only ids *above* `pad_id` count as tokens. That works as long as padding has the lowest id of all.",
)(_padding(operator.gt))
PADDING.misconception(
    "position_compared",
    "The positions are compared with `pad_id`; it is the tokens at these positions that are padding or not.",
)(_padding(lambda tokens, pad_id: (torch.arange(tokens.shape[1]) != pad_id).expand_as(tokens)))
PADDING.misconception(
    "tokens_counted",
    "The mask is made from the *number* of real tokens, as if they always came first. Padding can stand before them.",
)(_padding(_first_tokens))
PADDING.misconception(
    "all_after_the_first_pad",
    "Everything after the first padding is masked, real tokens too. Look at each token for itself.",
)(_padding(_until_the_first_pad))
PADDING.misconception(
    "only_padding_at_the_end",
    "Padding is found at the end of a sequence only. It can stand before real tokens as well.",
)(_padding(_until_the_last_real))
PADDING.misconception(
    "first_pad_visible",
    "One padding token a sequence stays visible: an off-by-one in the count of real tokens.",
)(_padding(_first_tokens_and_one))
PADDING.misconception(
    "first_sequence_for_all",
    "The padding of the first sequence is used for the whole batch. Every sequence has its own.",
)(_padding(lambda tokens, pad_id: (tokens[:1] != pad_id).expand_as(tokens)))
PADDING.misconception(
    "whole_sequence_masked",
    "One padding token masks its whole sequence: the answer is wanted for each token, not for each sequence.",
)(_padding(lambda tokens, pad_id: (tokens != pad_id).all(1, keepdim=True).expand_as(tokens)))
PADDING.misconception(
    "one_answer_a_sequence",
    "There is one True or False for a sequence, not one for each of its tokens: a reduction has eaten the axis of the "
    "keys.",
)(_padding(lambda tokens, pad_id: (tokens != pad_id).any(1, keepdim=True)))
PADDING.misconception(
    "ones_and_zeros",
    "The mask holds the numbers 1 and 0, with the right places. The contract asks for bool: `~` of an int 1 is −2, "
    "and `masked_fill` takes no int mask.",
)(_padding(lambda tokens, pad_id: (tokens != pad_id).long()))
PADDING.misconception(
    "floats",
    "The mask holds the floats 1.0 and 0.0. Fused attention would *add* them to the scores; a mask here is bool.",
)(_padding(lambda tokens, pad_id: (tokens != pad_id).float()))
PADDING.misconception(
    "zero_and_minus_infinity",
    "The mask holds 0 and −∞, to be added to scores. The contract asks for a bool mask, True = may attend.",
)(_padding(lambda tokens, pad_id: torch.zeros(tokens.shape).masked_fill(tokens == pad_id, -INF)))
PADDING.misconception(
    "squeezed_batch",
    "An axis is squeezed away, and with a batch of one sequence that is the batch axis.",
)(_padding(place=lambda real: real.squeeze()[..., None, None, :]))


@PADDING.misconception(
    "tokens_overwritten",
    "The mask is right, but it is written into `tokens`, which the caller still needs: an operation whose name ends "
    "in `_`, or an assignment to a part of a tensor, works in place.",
)
def _(tokens, pad_id):
    return tokens.ne_(pad_id).bool()[:, None, None, :]


@PADDING.misconception(
    "is_not",
    "`is not` asks whether two Python objects are the same one, and gives a single True. The comparison that goes "
    "through a tensor entry by entry is another operator.",
)
def _(tokens, pad_id):
    different = tokens is not pad_id
    return different[:, None, None, :]


@PADDING.misconception(
    "if_tokens",
    "A Python `if` needs one truth value and gets a whole tensor of them. The comparison itself is the mask already.",
)
def _(tokens, pad_id):
    if tokens != pad_id:
        return torch.ones(tokens.shape[0], 1, 1, tokens.shape[1], dtype=torch.bool)
    return torch.zeros(tokens.shape[0], 1, 1, tokens.shape[1], dtype=torch.bool)


# causal_mask


def causal_mask(length):
    return torch.ones(length, length, dtype=torch.bool).tril()  # (L, L)


CAUSAL = Exercise(
    name="causal_mask",
    twins=("torch.nn.generate_square_subsequent_mask", "torch.nn._generate_square_subsequent_mask"),
    title="No look into the future",
    statement="""\
A model that predicts the next token must not see it. So query $i$ may attend to key $j$ where $j \\le i$: to itself
and to what stands before it.

Return a **bool** tensor `(L, L)` for `length` $= L$, rows for queries and columns for keys, with True where attention
is allowed.""",
    difficulty=1,
    minutes=5,
    stub='''\
def causal_mask(length):
    """Bool (L, L): True where key <= query."""
    raise NotImplementedError
''',
    hints=(
        "Draw it for three tokens: what may the first query see, what the last one?",
        "The allowed pairs form a triangle, diagonal included. `torch.tril` and `torch.triu` cut triangles out of a "
        "matrix.",
        "A matrix of ones can be made with `dtype=torch.bool` from the start. Which triangle has query 0 see key 0 "
        "only?",
    ),
    reference=causal_mask,
    shapes={},
    returns=("mask",),
    look="masking: No look ahead",
    differentiable=False,
)


@CAUSAL.holds("A query may attend to itself and to earlier positions, but to no later ones", weight=2)
def _(draw):
    yield Case(args=(3,), edge="a small case, to be read by eye")
    for length in draw.sizes(2, 4, 9):
        yield Case(args=(length,), note=f"length {length}")


@CAUSAL.holds("It works for every length")
def _(draw):
    yield Case(args=(1,), note="one token, which sees itself")
    yield Case(args=(2,), note="two tokens")
    yield Case(args=(37,), note="37 tokens")


def _square(length):
    return torch.ones(length, length, dtype=torch.bool)


CAUSAL.misconception(
    "turned_round",
    "True marks the future, that is, what is forbidden. Here True means *may attend*. (`nn.MultiheadAttention` has it "
    "the other way round.)",
    look="notation: Conventions",
)(lambda length: _square(length).triu(1))
CAUSAL.misconception(
    "upper_triangle",
    "Every query sees itself and the future, and not the past: rows are queries, columns are keys, and this is the "
    "other triangle.",
)(lambda length: _square(length).triu())
CAUSAL.misconception(
    "without_itself",
    "The diagonal is missing: a query may attend to itself. Without it, the first query has nothing to attend to.",
)(lambda length: _square(length).tril(-1))
CAUSAL.misconception(
    "one_step_ahead",
    "Every query sees one token of the future, the very one that it has to predict: the diagonal is off by one.",
)(lambda length: _square(length).tril(1))
CAUSAL.misconception(
    "everything_but_itself",
    "Past and future are allowed, and only the diagonal is forbidden.",
)(lambda length: ~torch.eye(length, dtype=torch.bool))
CAUSAL.misconception(
    "only_itself",
    "Every query sees itself and nothing else. It may look back too.",
)(lambda length: torch.eye(length, dtype=torch.bool))
CAUSAL.misconception(
    "everything_allowed",
    "Every query sees every key, the future included: nothing is masked.",
)(_square)
CAUSAL.misconception(
    "nothing_allowed",
    "No query may attend to anything: all entries are False.",
)(lambda length: ~_square(length))
CAUSAL.misconception(
    "anti_diagonal",
    "The triangle is mirrored: it is cut along the other diagonal, from bottom left to top right. The first query "
    "sees most here, the last one least.",
)(lambda length: _square(length).tril().flip(0))
CAUSAL.misconception(
    "columns_mirrored",
    "The triangle is mirrored: its columns run backwards, so the first query sees the last key and nothing else.",
)(lambda length: _square(length).tril().flip(1))
CAUSAL.misconception(
    "zero_and_minus_infinity",
    "The mask holds 0 and −∞, to be added to scores. The contract asks for a bool mask, True = may attend.",
)(lambda length: torch.full((length, length), -INF).triu(1))
CAUSAL.misconception(
    "floats",
    "The mask holds the floats 1.0 and 0.0: that is what `torch.ones` makes unless it is told otherwise. A mask here "
    "is bool.",
)(lambda length: torch.ones(length, length).tril())
CAUSAL.misconception(
    "ones_and_zeros",
    "The mask holds the ints 1 and 0, with the right places. The contract asks for bool: `~` of an int 1 is −2, and "
    "`masked_fill` takes no int mask.",
)(lambda length: _square(length).tril().long())
CAUSAL.misconception(
    "infinity_times_zero",
    "There is `nan` in the mask, from −∞ times 0. And numbers to be added to scores are not asked for: a mask here is "
    "bool.",
)(lambda length: torch.ones(length, length).triu(1) * -INF)
CAUSAL.misconception(
    "batch_axis_added",
    "The mask has an axis too many: `(1, L, L)`. It is the same for every sequence, and two axes broadcast against "
    "any number.",
)(lambda length: _square(length).tril()[None])
CAUSAL.misconception(
    "batch_and_head_axes_added",
    "The mask has two axes too many: `(1, 1, L, L)`. Two axes broadcast against scores of any number, and the "
    "contract asks for `(L, L)`.",
)(lambda length: _square(length).tril()[None, None])
CAUSAL.misconception(
    "one_row",
    "The result has one axis: a comparison of all positions with themselves. One of the two has to stand upright, so "
    "that every query meets every key.",
)(lambda length: torch.arange(length) <= torch.arange(length))
CAUSAL.misconception(
    "one_size_only",
    "`torch.ones(length)` has one axis, but a triangle is cut out of a matrix. Give the size of both axes.",
)(lambda length: torch.ones(length, dtype=torch.bool).tril())
CAUSAL.misconception(
    "column_compared_with_itself",
    "The mask is `(L, 1)`: queries and keys both stand upright, so each meets only itself. One of the two has to lie.",
)(lambda length: torch.arange(length)[:, None] <= torch.arange(length)[:, None])
CAUSAL.misconception(
    "one_too_short",
    "The mask is a row and a column too small.",
)(lambda length: _square(length - 1).tril())
CAUSAL.misconception(
    "one_too_long",
    "The mask is a row and a column too large.",
)(lambda length: _square(length + 1).tril())
CAUSAL.misconception(
    "numpy_array",
    "The mask is a NumPy array; the contract asks for a tensor. torch has the same function.",
)(lambda length: np.tril(np.ones((length, length), dtype=bool)))
CAUSAL.misconception(
    "nested_lists",
    "The mask is a list of lists; the contract asks for a tensor, which needs no loop.",
)(lambda length: [[key <= query for key in range(length)] for query in range(length)])


# decoder_mask


def decoder_mask(tokens, pad_id):
    length = tokens.shape[1]
    real = (tokens != pad_id)[:, None, None, :]  # (B, 1, 1, L)
    past = torch.ones(length, length, dtype=torch.bool, device=tokens.device).tril()  # (L, L)
    return real & past  # (B, 1, L, L)


DECODER = Exercise(
    name="decoder_mask",
    title="Padding and future in one mask",
    statement="""\
A decoder that learns from a padded batch has two things to hide from its self-attention: the future, and the padding.

`tokens` is an int tensor `(B, L)` of token ids, `pad_id` the id of padding. Return a **bool** tensor `(B, 1, L, L)`,
rows for queries and columns for keys, the axis of length one for the heads. It is True where query $i$ of a sequence
may attend to key $j$: where $j \\le i$ **and** key $j$ is not padding.

Only keys are tested for padding. The rows of padded queries are left as this rule makes them: what they compute is
not used. Padding can stand at the start of a sequence as well; then the first rows allow nothing at all, and stay
so.""",
    difficulty=2,
    minutes=10,
    stub='''\
def decoder_mask(tokens, pad_id):
    """Bool (B, 1, L, L): True where key <= query and the key is not padding."""
    raise NotImplementedError
''',
    hints=(
        "You have both parts already, from the two exercises before. Write down the shape of each.",
        "A pair must be allowed by both masks. Which operation on two bools is that, and what does it do with axes of "
        "length one?",
        "`(B, 1, 1, L)` and `(L, L)` broadcast to `(B, 1, L, L)`: the first says the same for every query, the second "
        "for every sequence.",
    ),
    reference=decoder_mask,
    shapes={"tokens": "batch length"},
    returns=("mask",),
    look="masking: Both together",
    differentiable=False,
)


@DECODER.holds(
    "A key is allowed if it is not later than the query and not padding; the shape is (B, 1, L, L)", weight=3
)
def _(draw):
    yield Case(args=(torch.tensor([[5, 8, 0]]), 0), edge="the smallest case, to be read by eye")
    for _ in range(3):
        yield Case(args=(_tokens(draw, 0), 0), note="padding at the end, pad_id 0")


@DECODER.holds("pad_id decides which tokens are padding, whatever its value")
def _(draw):
    for pad_id in (1, 4, -1):
        yield Case(args=(_tokens(draw, pad_id), pad_id), note=f"pad_id {pad_id}")


@DECODER.holds("Only keys are masked: rows of padded queries stay as they are, even those without any key", weight=2)
def _(draw):
    for where in ("start", "middle"):
        yield Case(args=(_tokens(draw, 2, where), 2), note=f"padding at the {where}, pad_id 2")
    tokens = _tokens(draw, 0)
    tokens[1] = 0
    yield Case(args=(tokens, 0), note="a sequence of padding only")
    yield Case(args=(_tokens(draw, 0).T.contiguous().T, 0), note="tokens that are transposed in memory")


@DECODER.holds("Without padding, it is the causal mask for every sequence")
def _(draw):
    for _ in range(2):
        tokens = _tokens(draw, 0)
        yield Case(args=(tokens, 11), note="no padding")


def _keys(real):
    return lambda tokens, pad_id: real(tokens, pad_id)[:, None, None, :]


def _past(length):
    return _square(length).tril()


def _decoder(real=None, past=_past, join=operator.and_):
    """The decoder mask with one part, or what joins them, exchanged."""
    real = real or _keys(operator.ne)
    return lambda tokens, pad_id: join(real(tokens, pad_id), past(tokens.shape[1]))


def _queries(tokens, pad_id):
    return (tokens != pad_id)[:, None, :, None]


def _pairs(tokens, pad_id):
    return _queries(tokens, pad_id) & _keys(operator.ne)(tokens, pad_id)


DECODER.misconception(
    "turned_round",
    "True and False are exchanged throughout: True marks what is forbidden. Here True means *may attend*.",
    look="notation: Conventions",
)(_decoder(join=lambda real, past: ~(real & past)))
DECODER.misconception(
    "future_allowed",
    "Padding is hidden, but every query sees the future instead of the past. One of the two masks has the opposite "
    "meaning of the other; a model trained like this has a wonderful loss and writes rubbish.",
    look="masking: No look ahead",
)(_decoder(past=lambda length: _square(length).triu(1)))
DECODER.misconception(
    "upper_triangle",
    "Padding is hidden, but every query sees itself and what comes after it, not what came before. Rows are queries.",
    look="masking: No look ahead",
)(_decoder(past=lambda length: _square(length).triu()))
DECODER.misconception(
    "padding_allowed",
    "The future is hidden, but of the past only the *padding* can be seen. One of the two masks has the opposite "
    "meaning of the other.",
    look="masking: Padding",
)(_decoder(real=_keys(operator.eq)))
DECODER.misconception(
    "both_turned_round",
    "Each of the two parts marks what is forbidden, and what is left are pairs that are forbidden twice: padding in "
    "the future. True means *may attend*, in both parts.",
    look="notation: Conventions",
)(_decoder(real=_keys(operator.eq), past=lambda length: _square(length).triu(1)))
DECODER.misconception(
    "or_instead_of_and",
    "A pair is allowed as soon as one of the two masks allows it. It must pass both. (Adding two bool masks is an "
    "*or*, too.)",
)(_decoder(join=operator.or_))
DECODER.misconception(
    "or_with_the_future",
    "A pair is allowed where the key is not padding *or* lies in the future. It must pass both masks, and the causal "
    "one has the opposite meaning.",
)(_decoder(past=lambda length: _square(length).triu(1), join=operator.or_))
DECODER.misconception(
    "exactly_one",
    "A pair is allowed where exactly one of the two masks allows it. It must pass both.",
)(_decoder(join=operator.xor))
DECODER.misconception(
    "both_agree",
    "A pair is allowed where the two masks agree, also where both forbid it. It must be allowed by both.",
)(_decoder(join=operator.eq))
DECODER.misconception(
    "padding_only",
    "Padding is hidden, the future is not, and the mask has no axis of length L for the queries: it is `(B, 1, 1, L)`.",
    look="masking: No look ahead",
)(_decoder(join=lambda real, past: real))
DECODER.misconception(
    "padding_only_square",
    "Padding is hidden, the future is not: every row of a sequence is the same.",
    look="masking: No look ahead",
)(_decoder(join=lambda real, past: real & _square(len(past))))
DECODER.misconception(
    "causal_only",
    "The future is hidden, padding is not, and the batch does not appear in the shape: the mask is `(L, L)`.",
    look="masking: Padding",
)(_decoder(join=lambda real, past: past))
DECODER.misconception(
    "causal_only_batched",
    "The future is hidden, padding is not: every sequence has the same mask.",
    look="masking: Padding",
)(_decoder(join=lambda real, past: past.expand(real.shape[0], 1, -1, -1)))
DECODER.misconception(
    "causal_only_one_for_all",
    "The future is hidden, padding is not, and one mask `(1, 1, L, L)` is given for the whole batch.",
    look="masking: Padding",
)(_decoder(join=lambda real, past: past[None, None]))
DECODER.misconception(
    "queries_masked",
    "The rows of padded queries are emptied, and the padded keys stay visible: the tokens lie along the axis of the "
    "queries.",
    look="masking: Padding",
)(_decoder(real=_queries))
DECODER.misconception(
    "queries_masked_too",
    "Besides the padded keys, the rows of padded queries are masked. The contract leaves those rows as they are: "
    "they are never read, and rows without any key only make trouble in a softmax.",
)(_decoder(real=_pairs))
DECODER.misconception(
    "padded_queries_see_everything",
    "The rows of padded queries are opened, for all keys. The contract leaves them as the rule makes them: no future "
    "and no padding.",
)(_decoder(join=lambda real, past: (real & past) | ~real.transpose(-2, -1)))
DECODER.misconception(
    "padded_queries_see_the_past",
    "The rows of padded queries may see padded keys before them. A key that is padding is hidden from every query.",
)(_decoder(join=lambda real, past: (real | ~real.transpose(-2, -1)) & past))
DECODER.misconception(
    "diagonal_always_allowed",
    "Every query may see itself, padding or not. That avoids empty rows, but here a padded key is masked for its own "
    "query as well.",
)(_decoder(join=lambda real, past: (real & past) | torch.eye(len(past), dtype=torch.bool)))
DECODER.misconception(
    "empty_rows_see_everything",
    "Rows that come out empty have been opened. The contract leaves them empty; a softmax can deal with them later.",
)(_decoder(join=lambda real, past: (real & past) | ~(real & past).any(-1, keepdim=True)))
DECODER.misconception(
    "empty_rows_see_themselves",
    "In rows that come out empty the query has been allowed to see itself. The contract leaves them empty; a softmax "
    "can deal with them later.",
)(
    _decoder(
        join=lambda real, past: (
            (real & past) | (~(real & past).any(-1, keepdim=True) & torch.eye(len(past), dtype=torch.bool))
        )
    )
)
DECODER.misconception(
    "first_key_always_allowed",
    "The first key is always allowed, padding or not. The contract leaves rows that come out empty as they are.",
)(_decoder(join=lambda real, past: (real & past) | (torch.arange(len(past)) == 0)))
DECODER.misconception(
    "without_itself",
    "The diagonal is missing: a query may attend to itself if it is not padding.",
    look="masking: No look ahead",
)(_decoder(past=lambda length: _square(length).tril(-1)))
DECODER.misconception(
    "one_step_ahead",
    "Every query sees one token of the future, the very one that it has to predict: the diagonal is off by one.",
    look="masking: No look ahead",
)(_decoder(past=lambda length: _square(length).tril(1)))
DECODER.misconception(
    "no_axis_for_heads",
    "The mask is `(B, L, L)`, without an axis for the heads; against scores `(B, H, L, L)` its batch would be lined "
    "up with the heads.",
)(_decoder(join=lambda real, past: (real & past)[:, 0]))
DECODER.misconception(
    "axis_in_front_of_the_batch",
    "The axis of length one stands before the batch, `(1, B, L, L)`, so the sequences are lined up with the heads.",
)(_decoder(join=lambda real, past: (real & past).transpose(0, 1)))
DECODER.misconception(
    "queries_and_keys_exchanged",
    "The mask is right but for its last two axes, which are exchanged: rows are queries, columns are keys.",
)(_decoder(join=lambda real, past: (real & past).transpose(-2, -1)))
DECODER.misconception(
    "padding_without_axes",
    "The tokens `(B, L)` meet the causal mask `(L, L)` as they are, so the batch is lined up with the queries. The "
    "padding part needs axes for heads and queries.",
)(_decoder(real=operator.ne))
DECODER.misconception(
    "padding_without_axes_unsqueezed",
    "The tokens `(B, L)` get one axis only, in the wrong place: against the causal mask, the batch is lined up with "
    "the queries.",
)(_decoder(real=lambda tokens, pad_id: (tokens != pad_id)[None], join=lambda real, past: real & past))
DECODER.misconception(
    "pad_id_taken_as_zero",
    "Token 0 counts as padding, whatever `pad_id` says.",
)(_decoder(real=_keys(lambda tokens, pad_id: tokens != 0)))
DECODER.misconception(
    "greater_than_pad_id",
    "Only ids *above* `pad_id` count as tokens. That works as long as padding has the lowest id of all.",
)(_decoder(real=_keys(operator.gt)))
DECODER.misconception(
    "tokens_counted",
    "The mask is made from the *number* of real tokens, as if they always came first. Padding can stand before them.",
)(_decoder(real=_keys(_first_tokens)))
DECODER.misconception(
    "first_pad_visible",
    "One padding token a sequence stays visible: an off-by-one in the count of real tokens.",
)(_decoder(real=_keys(_first_tokens_and_one)))
DECODER.misconception(
    "all_after_the_first_pad",
    "Everything after the first padding is masked, real tokens too. Look at each key for itself.",
)(_decoder(real=_keys(_until_the_first_pad)))
DECODER.misconception(
    "only_padding_at_the_end",
    "Padding is found at the end of a sequence only. It can stand before real tokens as well.",
)(_decoder(real=_keys(_until_the_last_real)))
DECODER.misconception(
    "first_sequence_for_all",
    "The padding of the first sequence is used for the whole batch. Every sequence has its own.",
)(_decoder(real=_keys(lambda tokens, pad_id: (tokens[:1] != pad_id).expand_as(tokens))))
DECODER.misconception(
    "whole_sequence_masked",
    "One padding token masks its whole sequence: padding is a matter of each key, not of each sequence.",
)(_decoder(real=_keys(lambda tokens, pad_id: (tokens != pad_id).all(1, keepdim=True).expand_as(tokens))))
DECODER.misconception(
    "ones_and_zeros",
    "The mask holds the ints 1 and 0, with the right places. The contract asks for bool: `~` of an int 1 is −2, and "
    "`masked_fill` takes no int mask.",
)(_decoder(join=lambda real, past: real.long() * past.long()))
DECODER.misconception(
    "sum_of_ints",
    "The two masks are added as numbers, which gives 0, 1 and 2. A pair must pass both: that is a bool, and another "
    "operation.",
)(_decoder(join=lambda real, past: real.long() + past.long()))
DECODER.misconception(
    "floats",
    "The mask holds the floats 1.0 and 0.0, with the right places. Fused attention would *add* them to the scores; a "
    "mask here is bool.",
)(_decoder(past=lambda length: torch.ones(length, length).tril(), join=operator.mul))
DECODER.misconception(
    "sum_of_floats",
    "The two masks are added as floats, which gives 0, 1 and 2. A pair must pass both: that is a bool, and another "
    "operation.",
)(_decoder(past=lambda length: torch.ones(length, length).tril(), join=operator.add))
DECODER.misconception(
    "zero_and_minus_infinity",
    "The mask holds 0 and −∞, to be added to scores. The contract asks for a bool mask, True = may attend.",
)(_decoder(join=lambda real, past: torch.zeros((real & past).shape).masked_fill(~(real & past), -INF)))
DECODER.misconception(
    "batch_for_length",
    "The causal part has the size of the batch. Its sides are the length of the sequences: which axis of `tokens` is "
    "that?",
)(lambda tokens, pad_id: (tokens != pad_id)[:, None, None, :] & _past(len(tokens)))
DECODER.misconception(
    "one_too_short",
    "The causal part is a row and a column too small for the tokens.",
)(_decoder(past=lambda length: _past(length - 1)))
DECODER.misconception(
    "squeezed_batch",
    "An axis is squeezed away, and with a batch of one sequence that is the batch axis.",
)(_decoder(real=lambda tokens, pad_id: (tokens != pad_id).squeeze()[..., None, None, :]))


@DECODER.misconception(
    "python_and",
    "`and` asks each mask as a whole for one truth value, which it does not have. There is another operator for two "
    "tensors entry by entry.",
)
def _(tokens, pad_id):
    return (tokens != pad_id)[:, None, None, :] and _past(tokens.shape[1])


@DECODER.misconception(
    "precedence",
    "`&` binds more strongly than `!=`: what is compared with the tokens is `pad_id & …`. Parentheses around the "
    "comparison say what you mean.",
)
def _(tokens, pad_id):
    past = _past(tokens.shape[1])
    return tokens[:, None, None, :] != pad_id & past


@DECODER.misconception(
    "precedence_without_axes",
    "`&` binds more strongly than `!=`, and the tokens meet the causal mask without axes for heads and queries. Put "
    "parentheses around the comparison, and then look at the shapes.",
)
def _(tokens, pad_id):
    return tokens != pad_id & _past(tokens.shape[1])


@DECODER.misconception(
    "tokens_overwritten",
    "The mask is right, but on the way to it `tokens` is overwritten, which the caller still needs: an operation "
    "whose name ends in `_`, or an assignment to a part of a tensor, works in place.",
)
def _(tokens, pad_id):
    return tokens.ne_(pad_id).bool()[:, None, None, :] & _past(tokens.shape[1])


# masked_softmax


def masked_softmax(scores, mask):
    has_key = mask.any(-1, keepdim=True)  # (..., L_q, 1), False where the whole row is masked
    opened = mask | ~has_key  # such a row is opened, so that its softmax is finite in value and gradient
    weights = scores.masked_fill(~opened, float("-inf")).softmax(dim=-1)
    return weights.masked_fill(~has_key, 0.0)  # and closed again


SOFTMAX = Exercise(
    name="masked_softmax",
    title="A softmax that leaves keys out",
    statement="""\
A mask has to act inside the softmax: a masked key gets no weight, and the others share all of it. With padding there
are also queries that may attend to nothing at all, and a softmax over nothing is $0/0$. Write one that deals with
both.

- `scores` is `(..., L_q, L_k)` in float16, bfloat16, float32 or float64. The dots stand for any number of batch
  dimensions, none included.
- `mask` is a bool tensor that broadcasts against the scores, `(L_k,)` or `(B, 1, L_k)` for instance. True means *may
  attend*.
- Return the weights, of the shape and dtype of the scores: softmax over the keys that the mask allows, exactly 0 for
  the others. Each row sums to 1; a **fully masked row is all zeros**.

Scores can be as large as $\\pm 10^4$ and must not give `nan`, whether they are masked or not. Gradients must be
finite everywhere, in fully masked rows too. `torch.softmax` may be used.""",
    difficulty=3,
    minutes=20,
    stub='''\
def masked_softmax(scores, mask):
    """Softmax over the keys that the mask allows; all others get 0."""
    raise NotImplementedError
''',
    hints=(
        "First forget the fully masked rows. Before the softmax, which score becomes a weight of exactly 0, in every "
        "dtype and beside any other score?",
        "The mask says True where attention is allowed; `masked_fill` fills where its condition is True, and gives a "
        "copy.",
        "Now the rows without any key. Find them from the mask, with one reduction along the keys that keeps its axis.",
        "A `nan` in a softmax can come back in the gradient although the result was repaired. It cannot where it "
        "never arises: give those rows something harmless to compute, and set their weights to zero afterwards.",
    ),
    reference=masked_softmax,
    shapes={"scores": "... len_q len_k", "mask": "#"},
    returns=("weights",),
    look="masking: Rows without a key",
    twins=("_masked_softmax", "torch.masked.softmax", "torch.masked.log_softmax"),
)


@SOFTMAX.remark(
    "It passes, but a fully masked row still divides zero by zero in the softmax, and the `nan` is replaced only "
    "afterwards. The gradient is finite by luck: `masked_fill` and `torch.where` pass nothing back to the entries that "
    "they fill. With an added mask of -inf it would be `nan`. The safe way is to give such rows something harmless to "
    "compute before the softmax."
)
def _(called):
    fills, mends = {"masked_fill", "where"} & called, {"nan_to_num", "isnan"} & called
    # A solution that looks for the rows without a key asks with one of these.
    finds_the_rows = {"any", "all", "amax", "max", "sum", "isneginf", "isinf"} & called
    return "softmax" in called and fills and mends and not finds_the_rows


def _scores(draw: Draw, batch=(), dtype=torch.float32, scale=1.0):
    len_q, len_k = draw.sizes(2, 3, 7, but=batch)
    return draw.normal(*batch, len_q, len_k, dtype=dtype, scale=scale)


@SOFTMAX.holds("Masked keys get weight zero; the weights of the others are the softmax of their scores", weight=3)
def _(draw):
    yield Case(
        args=(torch.tensor([[1.0, 2.0, -1.0]]), torch.tensor([[True, False, True]])),
        edge="the smallest case, to be read by eye",
    )
    for batch in draw.batches():
        scores = _scores(draw, batch)
        yield Case(args=(scores, draw.mask(*scores.shape)), note="a mask of the scores' shape")
    scores = _scores(draw)
    mask = draw.mask(*scores.shape)
    mask[0] = True
    yield Case(args=(scores, mask), note="a row that is not masked at all")


@SOFTMAX.holds("The mask broadcasts against the scores")
def _(draw):
    (one,), two = draw.batches()[1:]
    scores = _scores(draw, (one,))
    len_q, len_k = scores.shape[-2:]
    yield Case(args=(scores, draw.mask(len_q, len_k)), note="a mask (L_q, L_k)")
    yield Case(args=(scores, draw.mask(len_k)), note="a mask (L_k,)")
    yield Case(args=(scores, draw.mask(one, 1, len_k)), note="a mask (B, 1, L_k)")
    scores = _scores(draw, two)
    yield Case(args=(scores, draw.mask(two[0], 1, 1, scores.shape[-1])), note="a mask (B, 1, 1, L_k)")
    yield Case(args=(scores, draw.mask(two[0], 1, *scores.shape[-2:])), note="a mask (B, 1, L_q, L_k)")
    # Lengths that agree, so that only the rule of broadcasting, from the right, says which axis is which.
    yield Case(
        args=(draw.normal(2, 2, 3, 4), draw.mask(2, 3, 4)),
        note="a mask (H, L_q, L_k) for scores (B, H, L_q, L_k), as many sequences as heads",
        edge="equal lengths on purpose",
    )
    yield Case(
        args=(draw.normal(3, 3, 4), draw.mask(3, 4)),
        note="a mask (L_q, L_k), as many sequences as queries",
        edge="equal lengths on purpose",
    )
    yield Case(args=(draw.normal(2, 1, 3, 4, 5), draw.mask(4, 5)), note="batch dimensions: 3", edge="one is short")
    turned = draw.normal(2, 5, 3).mT, draw.mask(2, 3, 5).mT.contiguous().mT
    yield Case(args=turned, note="tensors that are transposed in memory")


def _not_exactly_zero(args, weights):
    """What is wrong with the zeros of some weights; the comparison with a tolerance does not see a tiny number."""
    scores, mask = args
    if not isinstance(weights, torch.Tensor) or weights.shape != scores.shape or not weights.is_floating_point():
        return "the weights are not a floating tensor of the shape of the scores"
    masked = ~mask.expand(scores.shape)
    if (weights[masked] != 0).any():
        return f"a masked key has the weight {float(weights[masked & (weights != 0)][0]):.3g}, expected exactly 0"
    if not ((weights.double().sum(-1) - 1).abs() < 1e-4).all():
        return "a row does not sum to 1"
    return ""


@SOFTMAX.holds("A masked key gets exactly 0, not a tiny weight", weight=0.5, fault=_not_exactly_zero)
def _(draw):
    scores = torch.tensor([[1.0, 2.0, -1.0]])
    yield Case(args=(scores, torch.tensor([[True, False, True]])), edge="to be read by eye", gradients=False)
    scores = _scores(draw, (2,), torch.float64)
    yield Case(args=(scores, draw.mask(*scores.shape)), note="in float64", gradients=False)


@SOFTMAX.holds("A fully masked row is all zeros, and the other rows are not affected", weight=2)
def _(draw):
    for batch, dtype in (((), torch.float32), ((2,), torch.float64), ((2,), torch.float16), ((), torch.bfloat16)):
        scores = _scores(draw, batch, dtype)
        mask = draw.mask(*scores.shape)
        mask[..., 1, :] = False
        yield Case(args=(scores, mask), note="a fully masked row", gradients=dtype.itemsize > 2)
    scores = _scores(draw, (2,))
    mask = draw.mask(2, 1, scores.shape[-1])
    mask[1] = False
    yield Case(args=(scores, mask), note="a mask (B, 1, L_k) that is False for a whole sequence")
    mask = torch.ones(scores.shape[-2], 1, dtype=torch.bool)
    mask[0] = False
    yield Case(args=(scores, mask), note="a mask (L_q, 1) that takes all keys from one query")
    yield Case(args=(scores, torch.zeros(scores.shape, dtype=torch.bool)), note="everything is masked")


@SOFTMAX.holds("It works in float16, bfloat16, float32 and float64")
def _(draw):
    for dtype in (torch.float64, torch.float32, torch.float16, torch.bfloat16):
        scores = _scores(draw, (2,), dtype)
        yield Case(args=(scores, draw.mask(*scores.shape[-2:])), note=str(dtype).removeprefix("torch."))


@SOFTMAX.holds("Scores up to ±10000 stay finite, and masked ones do not count however large they are")
def _(draw):
    scores = _scores(draw)
    mask = draw.mask(*scores.shape)
    high = scores.masked_fill(~mask, 1e4)
    yield Case(args=(high, mask), note="masked scores of 10000", tolerance=50, gradients=False)
    low = torch.where(mask, (scores - 9998.0).clamp(min=-1e4), scores)
    yield Case(args=(low, mask), note="allowed scores near -10000", tolerance=50, gradients=False)
    apart = scores.double() + torch.linspace(9e3, -9e3, len(scores), dtype=torch.float64)[:, None]
    yield Case(args=(apart, mask), note="rows between -9000 and 9000", tolerance=50, gradients=False)
    wild = _scores(draw, scale=3e3).clamp(-1e4, 1e4)
    yield Case(args=(wild, draw.mask(*wild.shape)), note="scores of some thousands", tolerance=50, gradients=False)


def _zeroed(weights, mask):
    """Zeros for rows without a key, whatever the weights hold there."""
    return weights.masked_fill(~mask.any(-1, keepdim=True), 0.0)


def _repaired(weights, mask):
    return weights.nan_to_num(0.0)


def _times(weights, mask):
    return weights * mask


def _itself(mask):
    return mask


def _as_it_is(weights, mask):
    return weights


def _fill(number=-INF, then=_as_it_is, dim=-1, hide=operator.inv):
    """Fill, softmax, and what is done with the weights."""

    def masked_softmax(scores, mask):
        filled = scores.masked_fill(hide(mask), number(scores) if callable(number) else number)
        return then(filled.softmax(dim), mask)

    return masked_softmax


def _add(bias, then=_as_it_is):
    """A bias made from the mask, added to the scores."""
    return lambda scores, mask: then((scores + bias(scores, mask)).softmax(-1), mask)


def _divided(top, bottom=None):
    """What the mask leaves of some positive numbers, divided by its sum."""
    bottom = bottom or (lambda total: total)

    def masked_softmax(scores, mask):
        kept = top(scores, mask) * mask
        return kept / bottom(kept.sum(-1, keepdim=True))

    return masked_softmax


def _exp_of_all(scores, mask):
    return scores.exp()


def _exp_filled(scores, mask):
    kept = scores.exp().masked_fill(~mask, 0.0)
    total = kept.sum(-1, keepdim=True)
    return torch.where(total > 0, kept / total, 0.0)


def _shifted(scores, mask):
    return (scores - scores.amax(-1, keepdim=True)).exp()


def _shifted_by_one_number(scores, mask):
    return (scores - scores.max()).exp()


def _shifted_by_the_allowed(scores, mask):
    opened = mask | ~mask.any(-1, keepdim=True)
    return (scores - scores.masked_fill(~opened, -INF).amax(-1, keepdim=True)).masked_fill(~opened, -INF).exp()


def _softmax_of_all(scores, mask):
    return scores.softmax(-1)


EMPTY = "masking: Rows without a key"
BEFORE = "masking: The mathematics"
EXP = "attention: The mathematics"
FILL = "masking: Which number to fill in"

SOFTMAX.misconception(
    "empty_rows_nan",
    "A fully masked row gives `nan`: with all its scores at −∞, the softmax divides 0 by 0. What should such a query "
    "get, and how can you recognise it?",
    look=EMPTY,
)(_fill())
SOFTMAX.misconception(
    "empty_rows_uniform",
    "A fully masked row comes out uniform: its scores are all equally low, and the softmax knows only differences. A "
    "query that may attend to nothing gets zeros.",
    look=EMPTY,
)(_fill(lambda scores: torch.finfo(scores.dtype).min))
SOFTMAX.misconception(
    "empty_rows_unmasked",
    "In a fully masked row the weights are those without any mask: the row has been opened for the softmax and never "
    "closed again.",
    look=EMPTY,
)(lambda scores, mask: scores.masked_fill(~(mask | ~mask.any(-1, keepdim=True)), -INF).softmax(-1))
SOFTMAX.misconception(
    "empty_rows_ones",
    "A fully masked row is filled with ones. A query that may attend to nothing gives no weight away: zeros.",
    look=EMPTY,
)(lambda scores, mask: _fill()(scores, mask).nan_to_num(1.0))
SOFTMAX.misconception(
    "only_if_everything_is_masked",
    "Zeros come out when *everything* is masked, but a single fully masked row among others is still `nan`. Ask each "
    "row, not the whole mask.",
    look=EMPTY,
)(lambda scores, mask: _fill()(scores, mask) if mask.any() else torch.zeros_like(scores))
SOFTMAX.misconception(
    "zeroed_where_one_key_is_masked",
    "Rows are set to zero as soon as *one* of their keys is masked. Empty is a row in which no key is allowed.",
    look=EMPTY,
)(_fill(then=lambda weights, mask: weights.masked_fill(~mask.all(-1, keepdim=True), 0.0)))
SOFTMAX.misconception(
    "all_zeros_if_one_row_is_empty",
    "One fully masked row makes the whole result zero. The other rows have keys, and want their weights.",
    look=EMPTY,
)(lambda scores, mask: _fill()(scores, mask) if mask.any(-1).all() else torch.zeros_like(scores))
SOFTMAX.misconception(
    "row_axis_dropped",
    "The reduction over the keys has lost its axis, so that one value a *query* is lined up with the *keys*.",
    look=EMPTY,
)(_fill(then=lambda weights, mask: weights.masked_fill(~mask.any(-1), 0.0)))
SOFTMAX.misconception(
    "nan_in_the_gradient",
    "The result is right, its gradient is `nan` in fully masked rows: a `nan` arose on the way and was replaced at "
    "the end, but the backward pass still goes through the step where it arose.",
    look=EMPTY,
)(_add(lambda scores, mask: torch.zeros_like(scores).masked_fill(~mask, -INF), _repaired))
SOFTMAX.misconception(
    "weights_changed_in_place",
    "The weights are changed in place after the softmax, and its gradient is computed from them: autograd refuses. "
    "Make a new tensor instead.",
    look=EMPTY,
)(_fill(then=lambda weights, mask: weights.masked_fill_(~mask.any(-1, keepdim=True), 0.0)))
SOFTMAX.misconception(
    "minus_a_billion",
    "Masked scores become a large negative number. That shows in two ways. Where the dtype can hold it, a fully masked "
    "row comes out uniform: all its scores are equally low. And float16, which ends at 65504, cannot hold it at all. "
    "What is below every number, in every dtype? And which weights does a row without any key want?",
    look=FILL,
)(_fill(-1e9))
SOFTMAX.misconception(
    "minus_a_billion_then_zeroed",
    "Right but for float16: the large negative number that is filled in does not fit, float16 ends at 65504. What is "
    "below every number, in every dtype?",
    look=FILL,
)(_fill(-1e9, _zeroed))
SOFTMAX.misconception(
    "lowest_float32",
    "Masked scores become the lowest float32 number. That shows in two ways. In float32 and float64 a fully masked row "
    "comes out uniform: all its scores are equally low. And neither float16 nor bfloat16 can hold the number.",
    look=FILL,
)(_fill(torch.finfo(torch.float32).min))
SOFTMAX.misconception(
    "lowest_float32_then_zeroed",
    "Right but for float16 and bfloat16: the lowest float32 number does not fit there. What is below every number, in "
    "every dtype?",
    look=FILL,
)(_fill(torch.finfo(torch.float32).min, _zeroed))
SOFTMAX.misconception(
    "minus_ten_thousand",
    "Masked scores become a number such as −10000. That fits float16, but a score that is allowed can be as low, and "
    "a fully masked row becomes uniform.",
    look=FILL,
)(_fill(-1e4))
SOFTMAX.misconception(
    "minus_ten_thousand_then_zeroed",
    "Masked scores become −10000. A score that is allowed can be as low, and then the masked keys take a share of the "
    "weights.",
    look=FILL,
)(_fill(-1e4, _zeroed))
SOFTMAX.misconception(
    "minus_ten_thousand_times_mask",
    "Masked scores become −10000, and the weights are multiplied with the mask. Where an allowed score is as low, "
    "what is left in a row sums to less than one.",
    look=FILL,
)(_fill(-1e4, _times))
SOFTMAX.misconception(
    "filled_with_zero",
    "Masked scores become 0, filled or multiplied. A score of 0 is not a small score: its weight is e⁰ over the sum.",
    look=FILL,
)(_fill(0.0))
SOFTMAX.misconception(
    "filled_with_zero_then_zeroed",
    "Masked scores become 0, and only fully masked rows are cleared. A score of 0 is not a small score: in all other "
    "rows its key still gets e⁰ over the sum.",
    look=FILL,
)(_fill(0.0, _zeroed))
SOFTMAX.misconception(
    "filled_with_zero_times_mask",
    "Masked scores become 0, take part in the sum with e⁰ each, and are then removed: what is left in a row sums to "
    "less than one.",
    look=FILL,
)(_fill(0.0, _times))
SOFTMAX.misconception(
    "filled_with_the_lowest_score",
    "Masked scores become the lowest of the scores. They still get a weight, as large as that of the worst key.",
    look=FILL,
)(_fill(lambda scores: scores.min().item()))
SOFTMAX.misconception(
    "plus_infinity",
    "Masked scores become +∞, the largest score of all. The wanted weight is zero: on which side is that?",
    look=FILL,
)(_fill(INF))
SOFTMAX.misconception(
    "mask_ignored",
    "The weights do not depend on the mask.",
)(lambda scores, mask: scores.softmax(-1))
SOFTMAX.misconception(
    "mask_added",
    "The mask is added as it is: True adds 1 to a score. A bool mask chooses; it is not a number to add.",
)(_add(lambda scores, mask: mask))
SOFTMAX.misconception(
    "mask_added_then_zeroed",
    "The mask is added as it is, True as 1, and only fully masked rows are cleared. A bool mask chooses; it is no "
    "number to add.",
)(_add(lambda scores, mask: mask, _zeroed))
SOFTMAX.misconception(
    "turned_round",
    "Attention goes exactly where the mask forbids it. True means *may attend*; look at the condition with which you "
    "fill.",
    look="notation: Conventions",
)(_fill(hide=_itself))
SOFTMAX.misconception(
    "turned_round_then_repaired",
    "Attention goes exactly where the mask forbids it, and rows that are wholly allowed come out as zeros. True means "
    "*may attend*; look at the condition with which you fill.",
    look="notation: Conventions",
)(_fill(then=_repaired, hide=_itself))
SOFTMAX.misconception(
    "turned_round_then_zeroed",
    "The fully masked rows are right; in all others attention goes exactly where the mask forbids it. Look at the "
    "condition with which you fill.",
    look="notation: Conventions",
)(_fill(then=_zeroed, hide=_itself))
SOFTMAX.misconception(
    "over_queries",
    "Each column of the weights sums to one, each row should. Every query shares out one unit of attention: over "
    "which axis?",
)(_fill(dim=-2))
SOFTMAX.misconception(
    "over_queries_repaired",
    "Each column of the weights sums to one, or to zero where it was `nan`; each row should. Over which axis does a "
    "query share out its attention?",
)(_fill(then=_repaired, dim=-2))
SOFTMAX.misconception(
    "over_first_axis",
    "The softmax runs over the first axis. That is the right one for no number of batch dimensions; count axes from "
    "the right.",
)(_fill(dim=0))
SOFTMAX.misconception(
    "over_first_axis_repaired",
    "The softmax runs over the first axis, and what was `nan` is zero. Count axes from the right: the keys are the "
    "last one, whatever stands before.",
)(_fill(then=_repaired, dim=0))
SOFTMAX.misconception(
    "over_axis_1",
    "The softmax runs over axis 1, counted from the left. That is the axis of the keys without a batch only; count "
    "from the right.",
)(_fill(dim=1))
SOFTMAX.misconception(
    "over_axis_1_repaired",
    "Right without a batch, wrong with one: the softmax runs over axis 1, counted from the left. Count from the right.",
)(_fill(then=_repaired, dim=1))
SOFTMAX.misconception(
    "axis_left_out",
    "The softmax is not told its axis, and takes axis 0 or 1 depending on how many there are. It should run over the "
    "keys, always.",
)(lambda scores, mask: torch.nn.functional.softmax(scores.masked_fill(~mask, -INF)))
SOFTMAX.misconception(
    "axis_left_out_repaired",
    "The softmax is not told its axis, and takes axis 0 or 1 depending on how many there are; what was `nan` is zero. "
    "It should run over the keys, always.",
)(lambda scores, mask: torch.nn.functional.softmax(scores.masked_fill(~mask, -INF)).nan_to_num(0.0))
SOFTMAX.misconception(
    "over_all_pairs",
    "One softmax runs over all queries and keys together: all weights of a matrix sum to one. Each row has its own.",
)(lambda scores, mask: scores.masked_fill(~mask, -INF).flatten(-2).softmax(-1).view(scores.shape).nan_to_num(0.0))
SOFTMAX.misconception(
    "mask_after_softmax",
    "The mask is applied to the finished weights, so what is left in a row sums to less than one. At which step must "
    "a key be out?",
    look=BEFORE,
)(lambda scores, mask: scores.softmax(-1) * mask)
SOFTMAX.misconception(
    "renormalised",
    "Masked keys still take part before the mask comes: in the softmax, or in the largest score that is taken off. "
    "What the mask leaves is divided by its sum, and that is 0 / 0 in a fully masked row, and in a row whose masked "
    "score is far above the others.",
    look=BEFORE,
)(_divided(_softmax_of_all))
SOFTMAX.misconception(
    "renormalised_repaired",
    "Masked keys still take part before the mask comes: in the softmax, or in the largest score that is taken off. "
    "Where one is far above the others, nothing is left of them. Hiding the `nan` loses that row, and leaves `nan` in "
    "the gradient of fully masked rows.",
    look=BEFORE,
)(lambda scores, mask: _divided(_softmax_of_all)(scores, mask).nan_to_num(0.0))
SOFTMAX.misconception(
    "renormalised_or_one",
    "Masked keys still take part before the mask comes: in the softmax, or in the largest score that is taken off. "
    "Where one is far above the others, nothing is left of them to be divided by a sum.",
    look=BEFORE,
)(_divided(_softmax_of_all, lambda total: total + (total == 0)))
for _eps in (1e-12, 1e-9, 1e-8, 1e-6, 1e-5):
    SOFTMAX.misconception(
        f"renormalised_with_eps_{_eps:g}",
        f"Masked keys still take part before the mask comes, and what it leaves is divided by its sum plus about "
        f"{_eps:g}. "
        "So rows do not sum to 1, in float16 the small number is 0, and a masked score far above the others leaves "
        "nothing.",
        look=BEFORE,
    )(_divided(_softmax_of_all, lambda total, eps=_eps: total + eps))
for _eps in (1e-9, 1e-8, 1e-6, 1e-5):
    SOFTMAX.misconception(
        f"exp_with_eps_{_eps:g}",
        f"e to the scores, masked, is divided by its sum plus about {_eps:g}. Large scores overflow, low ones vanish "
        f"beside "
        "the small number, and in float16 it is 0 itself.",
        look=EXP,
    )(_divided(_exp_of_all, lambda total, eps=_eps: total + eps))
    SOFTMAX.misconception(
        f"eps_in_the_sum_{_eps:g}",
        f"The sum that the weights are divided by gets about {_eps:g} more, against a division by 0. So rows do not "
        f"sum to "
        "1, and in float16 such a number is 0. Which rows need help, and which do not?",
        look=EMPTY,
    )(_divided(_shifted_by_the_allowed, lambda total, eps=_eps: total + eps))
SOFTMAX.misconception(
    "shifted_exp_with_eps",
    "The largest score of *all* keys is taken off, and the sum gets about 1e-6 more. A masked key far above the "
    "others leaves nothing of them, rows do not sum to 1, and in float16 such a number is nearly lost. Which keys are "
    "in the sum, and should one of them not be sure to count e⁰ there?",
    look=BEFORE,
)(_divided(_shifted, lambda total: total + 1e-6))
SOFTMAX.misconception(
    "unstable",
    "Large scores overflow: e¹⁰⁰ is more than a float32 can hold. And a fully masked row is 0 / 0. One number may be "
    "taken from all scores of a row, and the weights stay. Only open keys stand in the sum: which number makes its "
    "largest term e⁰, whatever a masked key says?",
    look=EXP,
)(_divided(_exp_of_all))
SOFTMAX.misconception(
    "unstable_repaired",
    "Large scores overflow, low ones all become 0, and the `nan` that this gives is hidden. One number may be taken "
    "from all scores of a row, and the weights stay. Only open keys stand in the sum: which number makes its largest "
    "term e⁰, whatever a masked key says?",
    look=EXP,
)(lambda scores, mask: _divided(_exp_of_all)(scores, mask).nan_to_num(0.0))
SOFTMAX.misconception(
    "unstable_or_one",
    "Large scores overflow: e¹⁰⁰ is more than a float32 can hold; low ones all become 0. Fully masked rows are well, "
    "but a number has to be taken from the scores of a row first. Only open keys stand in the sum: which number makes "
    "its largest term e⁰, whatever a masked key says?",
    look=EXP,
)(_divided(_exp_of_all, lambda total: total + (total == 0)))
SOFTMAX.misconception(
    "unstable_filled_or_one",
    "Fully masked rows are well, and e to a masked score is replaced by 0. But e to an open one overflows where it is "
    "high, and where all are low nothing is left. One number may be taken from all scores of a row, and the weights "
    "stay: which one makes the largest term of the sum e⁰, whatever a masked key says?",
    look=EXP,
)(_exp_filled)
SOFTMAX.misconception(
    "one_largest_for_all_rows",
    "The largest score of *all rows* is taken off before the exponential. Rows far below it have nothing left: 0 / 0.",
    look=EXP,
)(_divided(_shifted_by_one_number))
SOFTMAX.misconception(
    "one_largest_for_all_rows_or_one",
    "The largest score of *all rows* is taken off before the exponential. Rows far below it have nothing left, and "
    "come out as zeros.",
    look=EXP,
)(_divided(_shifted_by_one_number, lambda total: total + (total == 0)))
SOFTMAX.misconception(
    "no_exponential",
    "The scores themselves are divided by their sum. A softmax makes positive numbers of them first.",
    look=EXP,
)(_divided(lambda scores, mask: scores))
SOFTMAX.misconception(
    "infinity_times_zero",
    "The mask is multiplied with −∞, and 0 · ∞ is `nan`: every allowed score is spoilt. A condition chooses; a "
    "product cannot.",
    look=FILL,
)(_add(lambda scores, mask: ~mask * -INF))
SOFTMAX.misconception(
    "bias_in_float32",
    "The values are right, but the numbers that are added to the scores are float32, and so half-precision scores "
    "come out as float32. Fully masked rows have a `nan` in the gradient, too.",
    look=FILL,
)(_add(lambda scores, mask: torch.zeros(mask.shape).masked_fill(~mask, -INF), _repaired))
SOFTMAX.misconception(
    "bias_in_float32_nan",
    "Fully masked rows are `nan`, and half-precision scores come out as float32: the numbers that are added to them "
    "have a dtype of their own.",
    look=EMPTY,
)(_add(lambda scores, mask: torch.zeros(mask.shape).masked_fill(~mask, -INF)))
SOFTMAX.misconception(
    "billion_subtracted_in_float32",
    "A large number is *subtracted* from masked scores, as float32. So half-precision scores come out as float32, and "
    "a fully masked row is a softmax of what rounding has left of its scores.",
    look=FILL,
)(_add(lambda scores, mask: (1.0 - mask.float()) * -1e9))
SOFTMAX.misconception(
    "half_precision_lost",
    "The values are right, but half-precision scores come out as float32: on the way they are turned into float32, or "
    "meet a float32 tensor made from the mask. The dtype of the scores should be kept.",
)(_add(lambda scores, mask: (1.0 - mask.float()) * -1e9, _zeroed))
SOFTMAX.misconception(
    "billion_subtracted",
    "A large number is *subtracted* from masked scores. A fully masked row is still a softmax: of what rounding has "
    "left of its scores, or of −∞, where the number does not fit the dtype.",
    look=FILL,
)(_add(lambda scores, mask: (1.0 - mask.to(scores.dtype)) * -1e9))
SOFTMAX.misconception(
    "ten_thousand_subtracted",
    "10000 is subtracted from masked scores. Against scores of that size it is not enough, and in a fully masked row "
    "it takes the same from all.",
    look=FILL,
)(_add(lambda scores, mask: (1.0 - mask.to(scores.dtype)) * -1e4))
SOFTMAX.misconception(
    "ten_thousand_subtracted_zeroed",
    "10000 is subtracted from masked scores. Against scores of that size it is not enough: masked keys keep a weight.",
    look=FILL,
)(_add(lambda scores, mask: (1.0 - mask.to(scores.dtype)) * -1e4, _zeroed))
SOFTMAX.misconception(
    "float32_comes_back",
    "The values are right, the dtype is not: the scores are turned into float32, and the weights stay float32.",
)(lambda scores, mask: masked_softmax(scores.float(), mask))
SOFTMAX.misconception(
    "float32_inside",
    "Right to the accuracy of float32 only: float64 scores go through float32 on the way.",
)(lambda scores, mask: masked_softmax(scores.float(), mask).to(scores.dtype))
SOFTMAX.misconception(
    "scores_returned",
    "The masked scores come back, with −∞ in them. The weights are what the softmax makes of them.",
)(lambda scores, mask: scores.masked_fill(~mask, -INF))
SOFTMAX.misconception(
    "logarithm_returned",
    "The logarithms of the weights come back: `log_softmax` is not asked for.",
)(lambda scores, mask: scores.masked_fill(~mask, -INF).log_softmax(-1))
SOFTMAX.misconception(
    "sigmoid",
    "Every weight depends on its own score only, and rows do not sum to one: that is a sigmoid, not a softmax.",
    look=EXP,
)(lambda scores, mask: scores.sigmoid() * mask)
SOFTMAX.misconception(
    "scaled_again",
    "The scores are divided by the root of the number of keys. They come scaled already, and by another number.",
)(lambda scores, mask: masked_softmax(scores / math.sqrt(scores.shape[-1]), mask))
SOFTMAX.misconception(
    "one_minus_a_bool",
    "`1 - mask` is not defined for a bool tensor. Its opposite is written with another sign, or the mask can be made "
    "a number first; but then, what would you add?",
    look=FILL,
)(_add(lambda scores, mask: (1 - mask) * -1e9))
SOFTMAX.misconception(
    "minus_a_bool",
    "`-mask` is not defined for a bool tensor. The opposite of a bool is written with another sign.",
)(_fill(hide=operator.neg))
SOFTMAX.misconception(
    "largest_with_its_place",
    "`max` along an axis gives two things, the largest values and where they stand; a subtraction wants one of them.",
    look=EXP,
)(_divided(lambda scores, mask: (scores - scores.max(-1, keepdim=True)).exp()))
SOFTMAX.misconception(
    "numpy",
    "NumPy knows no gradients and no bfloat16. What you do here with arrays can be done with tensors.",
)(lambda scores, mask: torch.from_numpy(scores.numpy() * 1.0).masked_fill(~mask, -INF).softmax(-1).nan_to_num(0.0))
SOFTMAX.misconception(
    "allowed_scores_cut_out",
    "Indexing with a mask gives a list of the allowed scores, without rows, so one softmax runs over all of them. The "
    "shape of the scores must stay.",
)(lambda scores, mask: scores[mask.expand_as(scores)].softmax(-1))
SOFTMAX.misconception(
    "allowed_scores_indexed",
    "`scores[mask]` gives a list of the allowed scores, without rows, and needs a mask of the very shape of the "
    "scores. The shape must stay; which operation fills where a condition holds?",
)(lambda scores, mask: scores[mask].softmax(-1))


def _indexed(copy, then=_as_it_is, number=-INF):
    def masked_softmax(scores, mask):
        scores = scores.clone() if copy else scores
        scores[~mask] = number
        return then(scores.softmax(-1), mask)

    return masked_softmax


def _filled_in_place(number=-INF, then=_as_it_is):
    return lambda scores, mask: then(scores.masked_fill_(~mask, number).softmax(-1), mask)


SOFTMAX.misconception(
    "indexing",
    "`scores[~mask] = …` needs a mask of the very shape of the scores, and this one broadcasts. Fully masked rows are "
    "a second problem.",
)(_indexed(copy=True))
SOFTMAX.misconception(
    "indexing_repaired",
    "`scores[~mask] = …` needs a mask of the very shape of the scores. A mask may have fewer axes, or axes of length "
    "one.",
)(_indexed(copy=True, then=_repaired))
SOFTMAX.misconception(
    "indexing_in_place",
    "`scores[~mask] = …` changes the caller's scores, and it needs a mask of their very shape, while this one may "
    "broadcast. Fully masked rows are a third problem.",
)(_indexed(copy=False))
SOFTMAX.misconception(
    "indexing_in_place_repaired",
    "`scores[~mask] = …` changes the caller's scores, and it needs a mask of their very shape, while this one may "
    "broadcast.",
)(_indexed(copy=False, then=_repaired))
SOFTMAX.misconception(
    "scores_overwritten",
    "The weights are right, but the scores are changed in place, and they belong to the caller: a name that ends in "
    "`_` says so.",
)(_filled_in_place(then=_zeroed))
SOFTMAX.misconception(
    "scores_overwritten_nan",
    "The scores are changed in place, and they belong to the caller: a name that ends in `_` says so. And fully "
    "masked rows are `nan`.",
)(_filled_in_place())
SOFTMAX.misconception(
    "scores_overwritten_with_minus_a_billion",
    "A large negative number is filled in, and in place. The scores belong to the caller. And the number shows in two "
    "ways: float16 cannot hold it, and where it can be held, a fully masked row comes out uniform.",
    look=FILL,
)(_filled_in_place(-1e9))


# sliding_window_mask


def sliding_window_mask(length, window):
    position = torch.arange(length)
    distance = position[:, None] - position  # (L, L): query minus key, how far back the key lies
    return (distance >= 0) & (distance < window)


WINDOW = Exercise(
    name="sliding_window_mask",
    title="A window that looks back",
    statement="""\
Attention to the whole past costs more with every token. In a sliding window each token sees only itself and the
`window` − 1 tokens before it, so at most `window` keys; several layers together still look further back.

Return a **bool** tensor `(L, L)` for `length` $= L$, rows for queries $i$ and columns for keys $j$, with True where
$0 \\le i - j < \\text{window}$. `window` is at least 1, and can be longer than the sequence.""",
    difficulty=2,
    minutes=10,
    stub='''\
def sliding_window_mask(length, window):
    """Bool (L, L): True where 0 <= query - key < window."""
    raise NotImplementedError
''',
    hints=(
        "Draw it for five tokens and a window of two: how many True are in each row, and where?",
        "Either two triangles have to overlap, or you compare the distances of all pairs with two bounds.",
        "`torch.arange(length)` upright minus the same lying down gives the matrix of all i − j.",
        "Two conditions on that matrix, joined entry by entry: which of the bounds belongs to the window, which does "
        "not?",
    ),
    reference=sliding_window_mask,
    shapes={},
    returns=("mask",),
    look="masking: A sliding window",
    differentiable=False,
)


@WINDOW.holds("A query sees itself and the window − 1 keys before it", weight=2)
def _(draw):
    yield Case(args=(3, 2), edge="a small case, to be read by eye")
    for window in (2, 3, 4):
        yield Case(args=(draw.integer(window + 3, 9), window), note=f"window {window}")


@WINDOW.holds("With a window of one, every query sees only itself")
def _(draw):
    for length in draw.sizes(2, 3, 8):
        yield Case(args=(length, 1), note="window 1")


@WINDOW.holds("With a window as long as the sequence or longer, it is the causal mask")
def _(draw):
    length, more = draw.sizes(2, 3, 7)
    yield Case(args=(length, length), note="window = length", edge="equal on purpose")
    yield Case(args=(more, more + 1), note="window = length + 1")
    yield Case(args=(more, 3 * more), note="window longer than the sequence")
    yield Case(args=(1, 2), note="one token")
    yield Case(args=(29, 12), note="29 tokens, window 12")


def _by_distance(test):
    """True where a test of distance i − j, window, i, j and length holds."""

    def mask(length, window):
        position = torch.arange(length)
        i, j = position[:, None], position[None, :]
        return test(i - j, window, i, j, length)

    return mask


WINDOW.misconception(
    "one_key_too_many",
    "A query sees `window` keys *besides* itself. Itself counts: the bound of the distance is off by one.",
)(_by_distance(lambda d, w, i, j, n: (d >= 0) & (d <= w)))
WINDOW.misconception(
    "one_key_too_few",
    "A query sees one key less than the window has: the bound of the distance is off by one.",
)(_by_distance(lambda d, w, i, j, n: (d >= 0) & (d < w - 1)))
WINDOW.misconception(
    "without_itself",
    "A query does not see itself. The distance 0 belongs to the window.",
)(_by_distance(lambda d, w, i, j, n: (d > 0) & (d < w)))
WINDOW.misconception(
    "window_before_itself",
    "A query sees `window` keys before it and not itself: the whole window is shifted by one.",
)(_by_distance(lambda d, w, i, j, n: (d > 0) & (d <= w)))
WINDOW.misconception(
    "both_sides",
    "The window reaches as far ahead as it reaches back. Here it only looks back: future keys stay hidden.",
)(_by_distance(lambda d, w, i, j, n: d.abs() < w))
WINDOW.misconception(
    "both_sides_one_too_many",
    "The window reaches ahead as well as back, and one key too far. Here it only looks back, and a query itself "
    "counts.",
)(_by_distance(lambda d, w, i, j, n: d.abs() <= w))
WINDOW.misconception(
    "centred",
    "The window is centred on the query, half of it ahead. Here all of it lies in the past.",
)(_by_distance(lambda d, w, i, j, n: d.abs() <= w // 2))
WINDOW.misconception(
    "looks_ahead",
    "The window lies in the future: each query sees itself and what comes *after* it. Rows are queries, columns are "
    "keys.",
)(_by_distance(lambda d, w, i, j, n: (d <= 0) & (-d < w)))
WINDOW.misconception(
    "future_open",
    "The past is limited to the window, the future is not limited at all: the second condition is missing.",
)(_by_distance(lambda d, w, i, j, n: d < w))
WINDOW.misconception(
    "future_open_one_too_many",
    "The past is limited, one key too far back, and the future is not limited at all.",
)(_by_distance(lambda d, w, i, j, n: d <= w))
WINDOW.misconception(
    "window_ignored",
    "The whole past can be seen: `window` has no effect.",
)(_by_distance(lambda d, w, i, j, n: d >= 0))
WINDOW.misconception(
    "everything_allowed",
    "Everything can be seen. A pair must meet both conditions, not one of them.",
)(_by_distance(lambda d, w, i, j, n: (d >= 0) | (d < w)))
WINDOW.misconception(
    "outside_the_window",
    "Of the past, exactly the keys *outside* the window can be seen. A key must be near, not far.",
)(_by_distance(lambda d, w, i, j, n: d >= w))
WINDOW.misconception(
    "outside_the_window_one_nearer",
    "Of the past, the far keys can be seen and the near ones cannot: the inequality of the window points the wrong "
    "way.",
)(_by_distance(lambda d, w, i, j, n: d >= w - 1))
WINDOW.misconception(
    "outside_the_window_one_farther",
    "Of the past, keys *more* than a window away can be seen, and those inside it cannot: the inequality of the "
    "window points the wrong way.",
)(_by_distance(lambda d, w, i, j, n: d > w))
WINDOW.misconception(
    "turned_round",
    "True and False are exchanged: True marks what is forbidden. Here True means *may attend*.",
    look="notation: Conventions",
)(_by_distance(lambda d, w, i, j, n: ~((d >= 0) & (d < w))))
WINDOW.misconception(
    "blocks",
    "The sequence is cut into blocks of the window's length, and no query sees across a border. A window moves with "
    "the query.",
)(_by_distance(lambda d, w, i, j, n: (d >= 0) & (i // w == j // w)))
WINDOW.misconception(
    "blocks_both_sides",
    "The sequence is cut into blocks in which everybody sees everybody. A window moves with the query, and looks back "
    "only.",
)(_by_distance(lambda d, w, i, j, n: i // w == j // w))
WINDOW.misconception(
    "first_keys",
    "Every query sees the first `window` keys of the sequence, as far as they are past. The window should move with "
    "the query.",
)(_by_distance(lambda d, w, i, j, n: (d >= 0) & (j < w)))
WINDOW.misconception(
    "last_keys",
    "Only the last `window` keys of the sequence can be seen. The window should move with the query.",
)(_by_distance(lambda d, w, i, j, n: (d >= 0) & (j >= n - w)))
WINDOW.misconception(
    "wraps_around",
    "The window of the first queries continues at the end of the sequence: diagonals that are rolled come in again on "
    "the other side. That is the future.",
)(_by_distance(lambda d, w, i, j, n: d % n < w))
WINDOW.misconception(
    "only_the_farthest",
    "Only the key at the far end of the window can be seen; those between it and the query belong to the window too.",
)(_by_distance(lambda d, w, i, j, n: d == w - 1))
WINDOW.misconception(
    "triangles_apart",
    "The two triangles overlap in a corner only, or not at all: the second one has the wrong side of the diagonal. In "
    "`tril` and `triu` a negative number goes down.",
)(_by_distance(lambda d, w, i, j, n: (d >= 0) & (d <= -w)))
WINDOW.misconception(
    "triangles_apart_by_one_less",
    "The two triangles overlap for a window of one at most: the second one lies above the diagonal. In `tril` and "
    "`triu` a negative number goes down.",
)(_by_distance(lambda d, w, i, j, n: (d >= 0) & (d <= 1 - w)))
WINDOW.misconception(
    "floats",
    "The mask holds the floats 1.0 and 0.0, with the right places. A mask here is bool.",
)(lambda length, window: sliding_window_mask(length, window).float())
WINDOW.misconception(
    "ones_and_zeros",
    "The mask holds the ints 1 and 0, with the right places. The contract asks for bool: `~` of an int 1 is −2, and "
    "`masked_fill` takes no int mask.",
)(lambda length, window: sliding_window_mask(length, window).long())
WINDOW.misconception(
    "zero_and_minus_infinity",
    "The mask holds 0 and −∞, to be added to scores. The contract asks for a bool mask, True = may attend.",
)(lambda length, window: torch.zeros(length, length).masked_fill(~sliding_window_mask(length, window), -INF))
WINDOW.misconception(
    "batch_and_head_axes_added",
    "The mask has two axes too many: `(1, 1, L, L)`. Two axes broadcast against scores of any number, and the "
    "contract asks for `(L, L)`.",
)(lambda length, window: sliding_window_mask(length, window)[None, None])
WINDOW.misconception(
    "batch_axis_added",
    "The mask has an axis too many: `(1, L, L)`. The contract asks for `(L, L)`.",
)(lambda length, window: sliding_window_mask(length, window)[None])
WINDOW.misconception(
    "band_only",
    "The mask is as wide as the window, `(L, window)`. The keys are all positions of the sequence: `(L, L)`.",
)(lambda length, window: torch.ones(length, window, dtype=torch.bool))
WINDOW.misconception(
    "bools_subtracted",
    "A bool mask cannot be subtracted from another. In words: in the large triangle, and *not* in the small one.",
)(lambda length, window: _square(length).tril() - _square(length).tril(-window))
WINDOW.misconception(
    "one_row",
    "The result has one axis: all positions minus themselves. One of the two has to stand upright, so that every "
    "query meets every key.",
)(lambda length, window: torch.zeros(length) < window)


@WINDOW.misconception(
    "negative_start",
    "The first queries see too little: their window starts before the sequence, and a negative index in a slice "
    "counts from the end.",
)
def _(length, window):
    mask = torch.zeros(length, length, dtype=torch.bool)
    for query in range(length):
        mask[query, query - window + 1 : query + 1] = True
    return mask


@WINDOW.misconception(
    "chained_comparison",
    "Two comparisons in a chain, `a <= b < c`, are joined with `and`, which asks a whole tensor for one truth value. "
    "(`&` without parentheses makes such a chain, too.) Write two comparisons, and join them entry by entry.",
)
def _(length, window):
    position = torch.arange(length)
    return 0 <= position[:, None] - position < window


@WINDOW.misconception(
    "loop_with_a_border",
    "Rows whose window would start before the sequence are left empty. The first queries see what there is.",
)
def _(length, window):
    mask = torch.zeros(length, length, dtype=torch.bool)
    for query in range(window - 1, length):
        mask[query, query - window + 1 : query + 1] = True
    return mask


PADDING.misconception(
    "zero_and_minus_a_billion",
    "The mask holds 0 and a large negative number, to be added to scores. The contract asks for a bool mask, True = "
    "may "
    "attend.",
)(_padding(lambda tokens, pad_id: (tokens == pad_id) * -1e9))
CAUSAL.misconception(
    "zero_and_minus_a_billion",
    "The mask holds 0 and a large negative number, to be added to scores. The contract asks for a bool mask, True = "
    "may "
    "attend.",
)(lambda length: torch.ones(length, length).triu(1) * -1e9)
CAUSAL.misconception(
    "floats_turned_round",
    "The mask holds floats, with 1.0 for the future. Two things to change: a mask here is bool, and True means *may "
    "attend*.",
)(lambda length: torch.ones(length, length).triu(1))
PADDING.misconception(
    "floats_turned_round",
    "The mask holds floats, with 1.0 at the padding. Two things to change: a mask here is bool, and True means *may "
    "attend*.",
)(_padding(lambda tokens, pad_id: (tokens == pad_id).float()))
DECODER.misconception(
    "zero_and_minus_a_billion",
    "The mask holds 0 and a large negative number, to be added to scores. The contract asks for a bool mask, True = "
    "may "
    "attend.",
)(_decoder(join=lambda real, past: torch.zeros((real & past).shape).masked_fill(~(real & past), -1e9)))
SOFTMAX.misconception(
    "minus_infinity_after_softmax",
    "−∞ is filled into the finished weights. It belongs in the scores, before the softmax, which makes a zero of it.",
    look=BEFORE,
)(lambda scores, mask: scores.softmax(-1).masked_fill(~mask, -INF))
