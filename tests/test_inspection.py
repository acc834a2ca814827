"""course_lib.inspection: what attention maps say, by hand, against other implementations, and as properties."""

from __future__ import annotations

import math

import pytest
import torch
from oracles import CLOSE, leaf, no_side_effects, randomise
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
    entropy = attention_entropy(weights)
    expected = torch.special.entr(weights).sum(-1)
    assert entropy.shape == (*leading, 11)
    assert_close(entropy, expected, **CLOSE)
    (gradient,) = torch.autograd.grad(entropy.sum(), weights, retain_graph=True)
    assert_close(gradient, torch.autograd.grad(expected.sum(), weights)[0], **CLOSE)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_no_gradient_is_nan_where_a_weight_is_zero(dtype):
    scores = torch.tensor([[0.5, -torch.inf, 1.0], [-torch.inf, 2.0, -torch.inf]], dtype=dtype, requires_grad=True)
    entropy = attention_entropy(scores.softmax(-1))
    entropy.sum().backward()
    assert entropy.dtype == dtype
    assert entropy[1] == 0
    assert scores.grad.isfinite().all()
    assert scores.grad[0, 0] != 0
    assert scores.grad[0, 1] == 0


def test_entropy_does_not_depend_on_the_order_of_the_keys_and_lies_between_0_and_log_of_their_number():
    weights = random_weights(5, 7, 13)
    with no_side_effects(weights):
        entropy = attention_entropy(weights)
    assert_close(attention_entropy(weights[..., torch.randperm(13)]), entropy, **CLOSE)
    assert (entropy > 0).all()
    assert (entropy < math.log(13)).all()


def test_scores_in_place_of_weights_are_an_error():
    with pytest.raises(ValueError, match=r"not negative, got -2; pass what the softmax returns"):
        attention_entropy(torch.tensor([[1.0, -2.0]]))
    with pytest.raises(ValueError, match="not negative"):
        attention_rollout(torch.full((1, 1, 1, 2, 2), -1.0))


# --- rollout ----------------------------------------------------------------------------------------------------------


def test_rollout_by_hand():
    # Two layers of one head. Layer 1 sends token 0 to both positions, layer 2 swaps the two.
    # Â1 = ½ [[1, 0], [1, 0]] + ½ I = [[1, 0], [½, ½]], Â2 = ½ [[0, 1], [1, 0]] + ½ I = [[½, ½], [½, ½]].
    # Â2 Â1 = [[¾, ¼], [¾, ¼]]; the other order, Â1 Â2, would be [[½, ½], [½, ½]].
    first, second = torch.tensor([[1.0, 0], [1, 0]]), torch.tensor([[0.0, 1], [1, 0]])
    weights = torch.stack((first, second))[:, None, None]
    assert_close(attention_rollout(weights), torch.tensor([[[0.75, 0.25], [0.75, 0.25]]]))


def test_rollout_averages_the_heads():
    # Heads that attend to token 0 and to token 1: their mean is ½, and with the identity ¾ and ¼.
    heads = torch.tensor([[[1.0, 0], [1, 0]], [[0, 1.0], [0, 1]]])
    assert_close(attention_rollout(heads[None, None]), torch.tensor([[[0.75, 0.25], [0.25, 0.75]]]))


def test_rollout_is_what_random_walks_do():
    """Walk backwards from the top: at each layer stay with probability ½, or follow the weights of a random head."""
    weights = random_weights(LAYERS, 1, HEADS, 3)[..., None, :].expand(-1, -1, -1, 3, -1).clone()
    weights[:, :, :, 1] = random_weights(LAYERS, 1, HEADS, 3)
    walkers = 200_000
    for start in range(3):
        place = torch.full((walkers,), start)
        for layer in reversed(range(LAYERS)):
            head = torch.randint(HEADS, (walkers,))
            target = torch.multinomial(weights[layer, 0, head, place], 1)[:, 0]
            place = torch.where(torch.rand(walkers) < 0.5, place, target)
        frequency = torch.bincount(place, minlength=3) / walkers
        # The standard error of a frequency is below 0.0012.
        assert_close(attention_rollout(weights)[0, start], frequency.double(), rtol=0, atol=0.006)


def test_rollout_and_its_gradient_are_those_of_a_plain_loop():
    weights = random_weights(LAYERS, BATCH, HEADS, LENGTH, LENGTH).requires_grad_()
    rollout = attention_rollout(weights)
    expected = []
    for sentence in range(BATCH):
        product = torch.eye(LENGTH, dtype=torch.float64)
        for layer in range(LAYERS):
            mean = sum(weights[layer, sentence, head] for head in range(HEADS)) / HEADS
            product = torch.einsum("ij,jk->ik", 0.5 * mean + 0.5 * torch.eye(LENGTH, dtype=torch.float64), product)
        expected.append(product)
    expected = torch.stack(expected)
    assert rollout.shape == (BATCH, LENGTH, LENGTH)
    assert_close(rollout, expected, **CLOSE)
    grad = torch.randn_like(rollout)
    (gradient,) = torch.autograd.grad(rollout, weights, grad, retain_graph=True)
    (theirs,) = torch.autograd.grad(expected, weights, grad)
    # Rows that leave the plane of sum one are divided by their sum here and not there: compare along it.
    assert_close(gradient - gradient.mean(-1, keepdim=True), theirs - theirs.mean(-1, keepdim=True), **CLOSE)


def test_rows_of_a_rollout_sum_to_one_and_a_causal_one_stays_causal():
    allowed = torch.ones(LENGTH, LENGTH).tril().bool()
    scores = torch.randn(LAYERS, BATCH, HEADS, LENGTH, LENGTH, dtype=torch.float64).masked_fill(~allowed, -torch.inf)
    with no_side_effects(scores):
        rollout = attention_rollout(scores.softmax(-1))
    assert_close(rollout.sum(-1), torch.ones(BATCH, LENGTH, dtype=torch.float64), **CLOSE)
    assert (rollout[:, ~allowed] == 0).all()
    assert (rollout[:, allowed] > 0).all()


def test_a_query_that_attends_to_nothing_keeps_what_it_has():
    weights = random_weights(LAYERS, BATCH, HEADS, LENGTH, LENGTH)
    weights[:, :, :, 4] = 0
    rollout = attention_rollout(weights)
    assert_close(rollout[:, 4], torch.eye(LENGTH, dtype=torch.float64)[4].expand(BATCH, -1), **CLOSE)


@pytest.mark.parametrize(
    ("shape", "message"),
    [
        ((BATCH, HEADS, 7, 7), r"\(num_layers, batch, heads, length, length\), got \(2, 5, 7, 7\); stack the layers"),
        (
            (LAYERS, BATCH, HEADS, 5, 7),
            r"\(num_layers, .*length, length\), got \(3, 2, 5, 5, 7\); stack the layers",
        ),
        ((0, BATCH, HEADS, 7, 7), r"those of at least one layer, got \(0, 2, 5, 7, 7\); stack the layers"),
    ],
)
def test_rollout_of_other_shapes_is_an_error(shape, message, unchecked):
    with pytest.raises(ValueError, match=f"weights must be {message}"):
        attention_rollout(torch.ones(shape))


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


def test_head_scores_of_other_tokens_or_of_a_wrong_mask_are_errors(unchecked):
    weights = random_weights(BATCH, HEADS, LENGTH, LENGTH)
    tokens = torch.zeros(2, 7, dtype=torch.long)
    with pytest.raises(ValueError, match=r"tokens must agree in length, got .*tokens \(2, 5\) .*; one token for each"):
        head_scores(weights, tokens[:, :5])
    with pytest.raises(TypeError, match=r"mask must be a bool tensor, got torch\.int64 \(7, 7\); True where a query"):
        head_scores(weights, tokens, mask=torch.ones(7, 7, dtype=torch.long))
    with pytest.raises(
        ValueError, match=r"to \(batch, 1, length, length\) = \(2, 1, 7, 7\), got \(5, 7, 7\); a padding mask"
    ):
        head_scores(weights, tokens, mask=torch.ones(5, 7, 7, dtype=torch.bool))
    with pytest.raises(TypeError, match=r"delimiters must be a whole number, got 1\.5; pass an int, the ids of tokens"):
        head_scores(weights, tokens, delimiters=[1.5])


def test_previous_token_score_by_hand():
    # Query 1 puts 0.9 on key 0, query 2 puts 0.5 on key 1: 0.7. Query 0 has no token before it.
    weights = torch.tensor([[1.0, 0.0, 0.0], [0.9, 0.1, 0.0], [0.2, 0.5, 0.3]])
    assert_close(previous_token_score(weights), torch.tensor(0.7))
    assert_close(previous_token_score(weights.expand(3, 2, 3, 3)), torch.full((3, 2), 0.7))


def test_without_delimiters_it_is_the_score_of_head_scores():
    weights = random_weights(LAYERS, BATCH, HEADS, LENGTH, LENGTH)
    scores = head_scores(weights, torch.zeros(BATCH, LENGTH, dtype=torch.long))
    assert_close(previous_token_score(weights), scores["previous"], **CLOSE)


@pytest.mark.parametrize("shape", [(5, 7), (3, 1, 1)])
def test_a_previous_token_needs_two_tokens_and_a_square(shape, unchecked):
    with pytest.raises(ValueError, match=r"weights must be .*(length, length\)|at least two tokens), got \("):
        previous_token_score(torch.ones(shape))


@pytest.mark.parametrize("off", [0, 1])
def test_a_head_switched_off_adds_nothing(off):
    module = randomise(MultiHeadAttention(22, 2)).double()
    x = torch.randn(3, 7, 22, dtype=torch.float64)
    with record_heads(module) as heads, heads_off(module, {"": [off]}):
        expected, _ = module(x, x, x)
    with no_side_effects(heads[""]):
        found = head_switched_off(heads[""], module.out_proj.weight, module.out_proj.bias, off)
    assert_close(found, expected, **CLOSE)


def test_a_head_that_does_not_exist_cannot_be_switched_off():
    with pytest.raises(ValueError, match=r"one of the heads 0 … 1, got -1"):
        head_switched_off(torch.ones(3, 2, 5, 7), torch.ones(11, 14), torch.ones(11), -1)
    with pytest.raises(ValueError, match=r"weight must be \(d_out, 14\) for heads \(3, 2, 5, 7\), got \(14, 11\)"):
        head_switched_off(torch.ones(3, 2, 5, 7), torch.ones(14, 11), torch.ones(14), 0)


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
    assert merged.shape == (LAYERS, HEADS, 3, 4)
    assert_close(merged.sum(-1), torch.ones(LAYERS, HEADS, 3, dtype=torch.float64), **CLOSE)


def test_word_numbers_with_gaps_or_of_another_length_are_errors(unchecked):
    weights = random_weights(3, 2)
    with pytest.raises(ValueError, match=r"weights and query_words must agree in len_q, got .* \(2,\) .*; number the"):
        attention_between_words(weights, torch.tensor([0, 1]), torch.tensor([0, 1]))
    with pytest.raises(ValueError, match=r"key_words must number the words .* without gaps, got \[1\]"):
        attention_between_words(weights, torch.tensor([0, 1, 2]), torch.tensor([1, 1]))
    with pytest.raises(ValueError, match=r"query_words must number the words .* without gaps, got \[\]"):
        attention_between_words(weights, torch.tensor([-1, -1, -1]), torch.tensor([0, 1]))


def test_gradients_flow_through_the_merge():
    weights = leaf(5, 7)
    merged = attention_between_words(weights, torch.tensor([0, 1, 1, 1, -1]), torch.tensor([-1, 0, 0, 1, 1, 1, 2]))
    (gradient,) = torch.autograd.grad(merged[1, 2], weights)
    expected = torch.zeros(5, 7, dtype=torch.float64)
    expected[1:4, 6] = 1 / 3
    assert_close(gradient, expected, **CLOSE)
