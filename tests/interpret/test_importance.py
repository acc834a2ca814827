"""course_kit.interpret.importance: leaving tokens out, and gradients."""

from __future__ import annotations

import pytest
import torch
from oracles import CLOSE, randomise
from torch import nn
from torch.testing import assert_close

from course_kit.interpret.importance import gradient_times_input, leave_one_out
from course_kit.nn import TransformerConfig, TransformerEncoder

TOKENS = torch.tensor([[3, 4, 5, 6, 7, 8, 9]])


@pytest.fixture
def encoder():
    config = TransformerConfig(vocab_size=11, d_model=22, num_heads=2, num_layers=2, d_ff=13, dropout=0.0)
    return randomise(TransformerEncoder(config)).double().eval()


# --- leave one out ----------------------------------------------------------------------------------------------------


def test_leaving_tokens_of_a_sum_out_by_hand():
    # f = the sum of the vectors (3, 4), (0, 0), (0, −2): without each it moves by its length.
    vectors = torch.tensor([[3.0, 4.0], [0.0, 0.0], [0.0, -2.0]])
    assert_close(leave_one_out(lambda present: present.float() @ vectors, 3), torch.tensor([5.0, 0.0, 2.0]))


def test_leaving_a_token_out_of_an_encoder_is_running_it_with_padding_in_its_place(encoder):
    with torch.no_grad():
        found = leave_one_out(lambda present: encoder(TOKENS * present)[:, 0], 7)
        full = encoder(TOKENS)[0, 0]
        for j in range(7):
            without = TOKENS.clone()
            without[0, j] = encoder.config.pad_id
            assert_close(found[j], (full - encoder(without)[0, 0]).norm(), **CLOSE)
    assert (found > 0).all()


def test_outputs_of_any_shape_are_compared_and_one_for_all_variants_is_an_error(unchecked, encoder):
    found = leave_one_out(lambda present: encoder(TOKENS * present), 7)
    assert found.shape == (7,)
    assert not found.requires_grad
    with pytest.raises(ValueError, match=r"one row per variant of the sentence, 4 of them, got \(3, 2\)"):
        leave_one_out(lambda present: torch.zeros(3, 2), 3)


# --- gradient times input ---------------------------------------------------------------------------------------------


def test_gradient_times_input_by_hand():
    # s = 2 x_00 − x_11² with x = [[3, 5], [7, 4]]: gradients (2, 0) and (0, −8), times x: 6 and −32.
    embedding = nn.Embedding.from_pretrained(torch.tensor([[3.0, 5.0], [7.0, 4.0]]))

    def score():
        x = embedding(torch.tensor([[0, 1]]))
        return 2 * x[0, 0, 0] - x[0, 1, 1] ** 2

    assert_close(gradient_times_input(embedding, score), torch.tensor([[6.0, 32.0]]))


def test_gradient_times_input_is_that_of_finite_differences(encoder):
    """Stretch one token's vector by 1 ± ε: the slope of the score is gradient times input."""
    direction = torch.randn(22, dtype=torch.float64)
    found = gradient_times_input(encoder.embedding, lambda: encoder(TOKENS)[0, 0] @ direction)
    embedded, mask = encoder.embedding(TOKENS).detach(), torch.ones(1, 1, 1, 7, dtype=torch.bool)
    for j in range(7):
        ends = []
        for step in (1e-6, -1e-6):
            stretched = embedded.clone()
            stretched[0, j] *= 1 + step
            ends.append((encoder.encoder(stretched, mask)[0, 0] @ direction).item())
        assert found[0, j].item() == pytest.approx(abs(ends[0] - ends[1]) / 2e-6, rel=1e-5, abs=1e-6)


def test_sentences_of_a_batch_do_not_mix_and_no_parameter_gets_a_gradient(encoder):
    tokens = torch.cat((TOKENS, TOKENS.flip(1)))
    both = gradient_times_input(encoder.embedding, lambda: encoder(tokens)[:, 0, 3].sum())
    assert all(parameter.grad is None for parameter in encoder.parameters())
    encoder.requires_grad_(False)
    with torch.no_grad():  # neither this nor frozen parameters are in the way
        alone = gradient_times_input(encoder.embedding, lambda: encoder(tokens[1:])[0, 0, 3])
    assert_close(both[1], alone[0], **CLOSE)


def test_only_what_passes_through_the_embedding_counts():
    # s = 2 · (what the module returns) + 7 · (what it is given), and both are the same tensor: 2 · 3 is asked for.
    x = torch.tensor([[[3.0, 5.0]]], requires_grad=True)
    embedding = nn.Identity()
    found = gradient_times_input(embedding, lambda: 2 * embedding(x)[0, 0, 0] + 7 * x[0, 0, 0])
    assert_close(found, torch.tensor([[6.0]]))
    assert not found.requires_grad
    assert x.grad is None


@pytest.mark.parametrize(
    ("score", "error", "message"),
    [
        (lambda encoder: encoder(TOKENS)[0, 0], ValueError, r"a single number, got a tensor \(22,\)"),
        (lambda encoder: torch.tensor(1.0), ValueError, "got 0 calls and a result without a gradient"),
        (lambda encoder: (encoder(TOKENS) + encoder(TOKENS)).sum(), ValueError, "got 2 calls and a result with a grad"),
        (
            lambda encoder: encoder.embedding(TOKENS).detach().sum() * encoder.encoder.layers[0].norm1.weight[0],
            *(ValueError, "must depend on what the embedding returns"),
        ),
        (lambda encoder: encoder(TOKENS)[0, 0, 0].detach(), ValueError, "got 1 calls and a result without a gradient"),
        (lambda encoder: encoder(TOKENS)[0, 0, 0] / (1 // 0), ZeroDivisionError, "by zero"),
    ],
)
def test_scores_that_have_no_gradient_to_take_are_errors_and_leave_no_hook_behind(score, error, message, encoder):
    with pytest.raises(error, match=message):
        gradient_times_input(encoder.embedding, lambda: score(encoder))
    assert not encoder.embedding._forward_hooks
