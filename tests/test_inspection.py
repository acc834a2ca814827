"""course_lib.inspection: what attention maps say, by hand, against other implementations, and as properties."""

from __future__ import annotations

import math

import pytest
import torch
from oracles import CLOSE, DTYPES, assert_same, leaf, no_side_effects, randomise
from torch.testing import assert_close

from course_kit.interpret.interventions import heads_off, record_heads
from course_kit.nn import MultiHeadAttention
from course_lib.inspection import (
    attention_between_words,
    attention_entropy,
    attention_rollout,
    head_scores,
    head_switched_off,
    previous_token_score,
)
from course_lib.masking import decoder_mask, padding_mask

LAYERS, BATCH, HEADS, LENGTH = 3, 2, 5, 7


def random_weights(*shape, dtype=torch.float64):
    return torch.randn(*shape, dtype=dtype).softmax(-1)


# --- entropy ----------------------------------------------------------------------------------------------------------


def test_entropy_by_hand():
    # One key of three: 0. Three keys alike: ln 3. Halves: ln 2. A half and two quarters: ½ ln 2 + 2 · ¼ ln 4 = 1½ ln 2.
    weights = torch.tensor([[1, 0, 0], [1 / 3, 1 / 3, 1 / 3], [0.5, 0, 0.5], [0.5, 0.25, 0.25]])
    expected = torch.tensor([0, math.log(3), math.log(2), 1.5 * math.log(2)])
    assert_close(attention_entropy(weights), expected)


@pytest.mark.parametrize("leading", [(), (3,), (3, 2, 5)])
def test_entropy_and_its_gradient_are_those_of_torch(leading):
    weights = random_weights(*leading, 11, 13).requires_grad_()
    with no_side_effects(weights):
        entropy = attention_entropy(weights)
    assert_same(entropy, torch.special.entr(weights).sum(-1), weights)


@pytest.mark.parametrize("dtype", DTYPES)
def test_no_gradient_is_nan_where_a_weight_is_zero(dtype):
    scores = torch.tensor([[0.5, -torch.inf, 1.0], [-torch.inf, 2.0, -torch.inf]], dtype=dtype, requires_grad=True)
    entropy = attention_entropy(scores.softmax(-1))
    entropy.sum().backward()
    assert entropy.dtype == dtype
    assert entropy[1] == 0
    assert scores.grad.isfinite().all()
    assert scores.grad[0, 0] != 0
    assert scores.grad[0, 1] == 0


# --- rollout ----------------------------------------------------------------------------------------------------------


def test_rollout_by_hand():
    # Two layers of one head. Layer 1 sends token 0 to both positions, layer 2 swaps the two.
    # Â1 = ½ [[1, 0], [1, 0]] + ½ I = [[1, 0], [½, ½]], Â2 = ½ [[0, 1], [1, 0]] + ½ I = [[½, ½], [½, ½]].
    # Â2 Â1 = [[¾, ¼], [¾, ¼]]; the other order, Â1 Â2, would be [[½, ½], [½, ½]].
    first, second = torch.tensor([[1.0, 0], [1, 0]]), torch.tensor([[0.0, 1], [1, 0]])
    weights = torch.stack((first, second))[:, None, None]
    assert_close(attention_rollout(weights), torch.tensor([[[0.75, 0.25], [0.75, 0.25]]]))
    # Heads that attend to token 0 and to token 1: their mean is ½, and with the identity ¾ and ¼.
    heads = torch.tensor([[[1.0, 0], [1, 0]], [[0, 1.0], [0, 1]]])
    assert_close(attention_rollout(heads[None, None]), torch.tensor([[[0.75, 0.25], [0.25, 0.75]]]))


def test_rollout_and_its_gradient_are_those_of_a_plain_loop():
    scores, eye = leaf(LAYERS, BATCH, HEADS, LENGTH, LENGTH), torch.eye(LENGTH, dtype=torch.float64)
    weights, expected = scores.softmax(-1), []
    for sentence in range(BATCH):
        product = eye
        for layer in range(LAYERS):
            mean = sum(weights[layer, sentence, head] for head in range(HEADS)) / HEADS
            product = torch.einsum("ij,jk->ik", 0.5 * mean + 0.5 * eye, product)
        expected.append(product)
    with no_side_effects(weights):
        rollout = attention_rollout(weights)
    assert_same(rollout, torch.stack(expected), scores)


def test_a_query_that_attends_to_nothing_keeps_what_it_has():
    weights = random_weights(LAYERS, BATCH, HEADS, LENGTH, LENGTH)
    weights[:, :, :, 4] = 0
    rollout = attention_rollout(weights)
    assert_close(rollout[:, 4], torch.eye(LENGTH, dtype=torch.float64)[4].expand(BATCH, -1), **CLOSE)


def test_an_error_says_what_to_do(unchecked):
    weights, tokens = random_weights(BATCH, HEADS, LENGTH, LENGTH), torch.zeros(2, 7, dtype=torch.long)
    heads, two = torch.ones(3, 2, 5, 7), torch.tensor([0, 1])
    for call, words in (
        (
            lambda: attention_entropy(torch.tensor([[1.0, -2.0]])),
            r"not be negative, got -2; pass what the softmax returns",
        ),
        (lambda: attention_rollout(-weights[None]), "not be negative"),
        (lambda: attention_rollout(weights), r"\(num_layers, batch, heads, length, length\), got .*; stack the layers"),
        (
            lambda: attention_rollout(weights[None][:0]),
            r"those of at least one layer, got \(0, 2, 5, 7, 7\); stack the",
        ),
        (lambda: head_scores(weights, tokens[:, :5]), r"tokens must agree in length, .*; one token for each"),
        (
            lambda: head_scores(weights, tokens, mask=torch.ones(7, 7)),
            r"mask must be a bool tensor, .*True where a query",
        ),
        (
            lambda: head_scores(weights, tokens, mask=torch.ones(5, 7, 7) > 0),
            r"to \(batch, 1, length, length\) = \(2, 1, 7, 7\), got \(5, 7, 7\); a padding mask",
        ),
        (
            lambda: head_scores(weights, tokens, delimiters=[1.5]),
            r"delimiters must be .*, got 1\.5; .*; these are token ids",
        ),
        (lambda: previous_token_score(weights[..., :1, :1]), r"at least two tokens, got \(2, 5, 1, 1\); pass more"),
        (
            lambda: previous_token_score(weights[..., :5, :]),
            r"\(..., length, length\), got .*; weights of self-attention",
        ),
        (lambda: head_switched_off(heads, torch.ones(11, 14), torch.ones(11), -1), r"one of the heads 0 … 1, got -1"),
        (lambda: head_switched_off(heads, torch.ones(11, 14), torch.ones(11), 2), r"one of the heads 0 … 1, got 2"),
        (
            lambda: head_switched_off(heads, torch.ones(14, 11), torch.ones(14), 0),
            r"weight must be \(d_out, 14\) for heads \(3, 2, 5, 7\), got \(14, 11\)",
        ),
        (lambda: attention_between_words(random_weights(3, 2), two, two), r"must agree in len_q, .*; number the"),
        (
            lambda: attention_between_words(random_weights(2, 2), two, two * 0 + 1),
            r"key_words must number .* got \[1\]",
        ),
        (lambda: attention_between_words(random_weights(2, 2), -two - 1, two), r"query_words must number .* got \[\]"),
    ):
        with pytest.raises((TypeError, ValueError), match=words):
            call()


# --- scores of heads --------------------------------------------------------------------------------------------------


def test_head_scores_by_hand():
    # [CLS] a b a [SEP], ids 8 1 2 1 9. The queries that count are a, b, a.
    tokens = torch.tensor([[8, 1, 2, 1, 9]])
    weights = torch.zeros(1, 1, 5, 5)
    weights[0, 0, 0] = torch.tensor([0.0, 0.0, 0.0, 0.0, 1.0])  # of [CLS]: never counted
    weights[0, 0, 1] = torch.tensor([0.1, 0.2, 0.3, 0.4, 0.0])  # previous .1 next .3 same .2 + .4 delimiter .1
    weights[0, 0, 2] = torch.tensor([0.0, 1.0, 0.0, 0.0, 0.0])  # previous 1  next 0  same 0       delimiter 0
    weights[0, 0, 3] = torch.tensor([0.2, 0.2, 0.2, 0.2, 0.2])  # previous .2 next .2 same .2 + .2 delimiter .2 + .2
    weights[0, 0, 4] = torch.tensor([1.0, 0.0, 0.0, 0.0, 0.0])
    scores = head_scores(weights, tokens, delimiters=(8, 9))
    uneven = -sum(w * math.log(w) for w in (0.1, 0.2, 0.3, 0.4)) / math.log(5)
    expected = {
        "previous": 1.3 / 3,
        "next": 0.5 / 3,
        "same": 1 / 3,
        "delimiter": 0.5 / 3,
        "broad": (uneven + 0 + 1) / 3,
    }
    assert {name: score.item() for name, score in scores.items()} == pytest.approx(expected)


def test_a_head_that_does_one_thing_has_that_score_of_one():
    tokens = torch.tensor([[8, 1, 2, 3, 4, 5, 9], [8, 5, 4, 3, 2, 1, 9]])
    eye = torch.eye(7).expand(2, 7, 7)
    last = eye[:, 6:].expand(-1, 7, -1)
    heads = torch.stack((eye.roll(-1, -1), eye.roll(1, -1), eye, last, torch.full_like(eye, 1 / 7)), dim=1)
    scores = head_scores(heads, tokens, delimiters=(8, 9))
    for number, name in enumerate(("previous", "next", "same", "delimiter", "broad")):
        assert_close(scores[name][:, number], torch.ones(2), msg=name)
    assert_close(scores["broad"][:, :4], torch.zeros(2, 4))


@pytest.mark.parametrize("delimiters", [(), [8, 9]])
def test_padding_changes_no_score(delimiters):
    """Without delimiters the last word has no token after it, though it has padding there."""
    tokens = torch.tensor([[8, 1, 2, 3, 1, 9]])
    padded = torch.tensor([[8, 1, 2, 3, 1, 9, 0, 0]])
    scores = torch.randn(LAYERS, 1, HEADS, 8, 8, dtype=torch.float64)
    weights = scores.masked_fill(~padding_mask(padded, 0), -torch.inf).softmax(-1)
    found = head_scores(weights, padded, delimiters=delimiters, mask=padding_mask(padded, 0))
    alone = head_scores(weights[..., :6, :6], tokens, delimiters=delimiters)
    for name in alone:
        assert found[name].shape == (LAYERS, 1, HEADS)
        assert_close(found[name], alone[name], **CLOSE)


def test_in_a_decoder_nothing_comes_after_and_the_first_token_counts_neither_for_before_nor_for_broad():
    tokens = torch.tensor([[1, 2, 3, 4, 0], [1, 2, 3, 4, 5]])
    mask = decoder_mask(tokens, 0)
    weights = torch.zeros(2, 1, 5, 5).masked_fill(~mask, -torch.inf).softmax(-1)  # equal weights on all that is allowed
    scores = head_scores(weights, tokens, mask=mask)
    assert_close(scores["next"], torch.zeros(2, 1))
    assert_close(scores["delimiter"], torch.zeros(2, 1))
    assert_close(scores["broad"], torch.ones(2, 1))
    expected = [[(1 / 2 + 1 / 3 + 1 / 4) / 3], [(1 / 2 + 1 / 3 + 1 / 4 + 1 / 5) / 4]]
    assert_close(scores["previous"], torch.tensor(expected))


def test_previous_token_score_by_hand():
    # Query 1 puts 0.9 on key 0, query 2 puts 0.5 on key 1: 0.7. Query 0 has no token before it.
    weights = torch.tensor([[1.0, 0.0, 0.0], [0.9, 0.1, 0.0], [0.2, 0.5, 0.3]])
    assert_close(previous_token_score(weights.expand(3, 2, 3, 3)), torch.full((3, 2), 0.7))


def test_without_delimiters_it_is_the_score_of_head_scores():
    weights = random_weights(LAYERS, BATCH, HEADS, LENGTH, LENGTH)
    scores = head_scores(weights, torch.zeros(BATCH, LENGTH, dtype=torch.long))
    assert_close(previous_token_score(weights), scores["previous"], **CLOSE)


@pytest.mark.parametrize("off", [0, 1])
def test_a_head_switched_off_adds_nothing(off):
    module = randomise(MultiHeadAttention(22, 2)).double()
    x = torch.randn(3, 7, 22, dtype=torch.float64)
    with record_heads(module) as heads, heads_off(module, {"": [off]}):
        expected, _ = module(x, x, x)
    with no_side_effects(heads[""]):
        found = head_switched_off(heads[""], module.out_proj.weight, module.out_proj.bias, off)
    assert_close(found, expected, **CLOSE)


# --- from pieces to words ---------------------------------------------------------------------------------------------


def test_attention_between_words_by_hand():
    # Queries: word 0 is one piece, word 1 two. Keys: [CLS] is left out, word 0 has two pieces, word 1 one.
    weights = torch.tensor([[0.4, 0.1, 0.2, 0.3], [0.0, 0.5, 0.5, 0.0], [0.2, 0.0, 0.2, 0.6]])
    merged = attention_between_words(weights, torch.tensor([0, 1, 1]), torch.tensor([-1, 0, 0, 1]))
    assert_close(merged, torch.tensor([[0.3, 0.3], [0.6, 0.3]]))


def test_words_of_one_piece_change_nothing_and_rows_still_sum_to_one():
    weights = random_weights(LAYERS, HEADS, 5, 7)
    assert_close(attention_between_words(weights, torch.arange(5), torch.arange(7)), weights, **CLOSE)
    merged = attention_between_words(weights, torch.tensor([0, 0, 1, 2, 2]), torch.tensor([0, 1, 1, 1, 2, 3, 3]))
    assert_close(merged.sum(-1), torch.ones(LAYERS, HEADS, 3, dtype=torch.float64), **CLOSE)
