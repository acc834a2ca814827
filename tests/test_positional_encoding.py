"""course_lib.positional_encoding: sine and cosine, rotary and ALiBi positions, and learned ones, also of course_kit."""

from __future__ import annotations

import copy
import math

import pytest
import torch
import torch.nn.functional as F
from oracles import CLOSE, DTYPES, assert_same, leaf, no_side_effects
from torch.testing import assert_close
from transformers.models.bloom.modeling_bloom import build_alibi_tensor
from transformers.models.gptj.modeling_gptj import apply_rotary_pos_emb, create_sinusoidal_positions

import course_lib as cl
from course_kit import nn as full
from course_lib.masking import causal_mask, masked_softmax
from course_lib.positional_encoding import alibi_bias, apply_rotary, shift_matrix, sinusoidal_encoding

LEADING = [(), (3,), (3, 2)]
KINDS = [
    pytest.param(cl.LearnedPositionalEmbedding, id="plain"),
    pytest.param(full.LearnedPositionalEmbedding, id="full"),
]


# --- by hand ----------------------------------------------------------------------------------------------------------


def test_sinusoidal_encoding_by_hand():
    # d_model = 4: the first pair turns by 1 a position, the second by 1 / √10000 = 0.01.
    expected = [
        [0.0, 1.0, 0.0, 1.0],
        [math.sin(1.0), math.cos(1.0), math.sin(0.01), math.cos(0.01)],
        [math.sin(2.0), math.cos(2.0), math.sin(0.02), math.cos(0.02)],
    ]
    assert_close(sinusoidal_encoding(3, 4), torch.tensor(expected))


def test_apply_rotary_by_hand():
    # base 100, d = 4: the first pair turns by the position, the second by a tenth of it.
    # (1, 0) becomes (cos, sin), and (0, 1) becomes (-sin, cos).
    x = torch.tensor([[1.0, 0.0, 0.0, 1.0]]).expand(2, 4)
    expected = [
        [math.cos(3.0), math.sin(3.0), -math.sin(0.3), math.cos(0.3)],
        [math.cos(5.0), math.sin(5.0), -math.sin(0.5), math.cos(0.5)],
    ]
    assert_close(apply_rotary(x, torch.tensor([3, 5]), base=100.0), torch.tensor(expected))


def test_alibi_bias_by_hand():
    # Two heads: slopes 2^-4 = 1/16 and 2^-8 = 1/256, times the distance.
    distance = torch.tensor([[0.0, 1.0, 2.0], [1.0, 0.0, 1.0], [2.0, 1.0, 0.0]])
    assert torch.equal(alibi_bias(2, 3), torch.stack((-distance / 16, -distance / 256)))


# --- sine and cosine --------------------------------------------------------------------------------------------------


def test_the_published_values_come_out_again():
    # COVERAGE.md, notebook D: five positions in ten dimensions.
    encoding = sinusoidal_encoding(5, 10)
    assert_close(encoding[1, :5], torch.tensor([0.84147, 0.54030, 0.15783, 0.98747, 0.025116]), rtol=0, atol=5e-6)
    similarity = torch.cosine_similarity(encoding[0], encoding, dim=-1)
    assert similarity[1].item() == pytest.approx(0.9054891, abs=2e-7)
    assert similarity[4].item() == pytest.approx(0.6293746, abs=2e-7)


@pytest.mark.parametrize("d_model", [1, 2, 7, 10, 11])
def test_every_entry_is_the_formula_for_even_and_odd_widths_even_far_out(d_model):
    encoding = sinusoidal_encoding(5000, d_model)
    assert encoding.shape == (5000, d_model)
    assert encoding.dtype == torch.float32
    for position in (*range(5), 4999):  # in float32 the angle 4999 itself would be off by up to 2e-4
        for column in range(d_model):
            angle = position / 10_000 ** ((column - column % 2) / d_model)
            value = math.cos(angle) if column % 2 else math.sin(angle)
            assert encoding[position, column].item() == pytest.approx(value, abs=1e-7)
    assert sinusoidal_encoding(0, d_model).shape == (0, d_model)


@pytest.mark.parametrize("offset", [0, 1, 2, 7, 100, -1, -5])
@pytest.mark.parametrize("d_model", [2, 10])
def test_the_shift_matrix_moves_every_encoding(offset, d_model):
    encoding = sinusoidal_encoding(120, d_model)
    matrix = shift_matrix(offset, d_model)
    assert matrix.dtype == torch.float32
    for position in (5, 11, 19):
        assert_close(matrix @ encoding[position], encoding[position + offset], rtol=0, atol=1e-6)


# --- learned ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("length", [0, 1, 5, 13])
@pytest.mark.parametrize("kind", KINDS)
def test_learned_positions_are_added_from_zero_on(kind, length):
    module, x = kind(13, 7).double(), leaf(2, length, 7)
    (weight,) = module.parameters()
    with no_side_effects(x):
        output = module(x)
    assert_same(output, x + F.embedding(torch.arange(length), weight), (x, weight))
    assert torch.equal(copy.deepcopy(module)(x), output)
    assert list(module.state_dict()) == ["embedding.weight"]


# --- rotary -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("leading", LEADING)
@pytest.mark.parametrize("base", [10_000.0, 500.0])
def test_rotary_is_multiplication_by_a_complex_number_of_length_one(leading, base):
    x, positions = leaf(*leading, 5, 14), torch.tensor([0, 1, 7, 3, 1000])
    frequency = torch.tensor([base ** (-2 * i / 14) for i in range(7)], dtype=torch.float64)
    turn = torch.polar(torch.ones(5, 7, dtype=torch.float64), positions[:, None] * frequency)
    expected = torch.view_as_real(torch.view_as_complex(x.unflatten(-1, (7, 2))) * turn).flatten(-2)
    options = {} if base == 10_000 else {"base": base}  # the paper's is the default
    assert_same(apply_rotary(x, positions, **options), expected, x)


def test_rotary_equals_that_of_gpt_j():
    """GPT-J turns neighbouring features, as the paper does; Llama turns the two halves, which is another convention."""
    sin, cos = (half.expand(2, -1, -1) for half in create_sinusoidal_positions(7, 10).chunk(2, dim=-1))
    x = torch.randn(2, 3, 7, 10, requires_grad=True)
    ours, theirs = apply_rotary(x, torch.arange(7)), apply_rotary_pos_emb(x.transpose(1, 2), sin, cos).transpose(1, 2)
    grad = torch.randn_like(x)
    assert_close(ours, theirs, rtol=0, atol=1e-5)  # their angles are float32
    assert_close(*(torch.autograd.grad(each, x, grad) for each in (ours, theirs)), rtol=0, atol=1e-5)


def test_rotary_scores_depend_on_distance_only():
    query, key = torch.randn(1, 14, dtype=torch.float64), torch.randn(1, 14, dtype=torch.float64)

    def score(query_position, key_position):
        turned = apply_rotary(query, torch.tensor([query_position])), apply_rotary(key, torch.tensor([key_position]))
        return (turned[0] * turned[1]).sum()

    assert_close(score(3, 1), score(103, 101), **CLOSE)
    assert_close(score(0, 5), score(-5, 0), **CLOSE)
    assert abs(score(3, 1) - score(3, 2)) > 1e-3


@pytest.mark.parametrize("dtype", DTYPES)
def test_rotary_angles_are_exact_far_out_in_each_dtype_and_for_each_pair(dtype):
    """Of a position beyond 2,048 and of most frequencies float16 has no exact number, nor float32 of their product."""
    x, positions = torch.randn(4, 8).to(dtype), torch.tensor([0, 4_099, 100_003, 1_000_003])
    with no_side_effects(x, positions):
        turned = apply_rotary(x, positions)
    exact = apply_rotary(x.double(), positions)
    assert turned.dtype == dtype
    # Cosine, sine, two products and a sum, each rounded, of numbers up to about 4: at most 4 · 4 · eps / 2.
    assert_close(turned.double(), exact, rtol=0, atol=8 * torch.finfo(dtype).eps)
    for place, position in enumerate(positions.tolist()):
        for pair in range(4):
            angle = position * 10_000 ** (-pair / 4)
            a, b = x[place, 2 * pair : 2 * pair + 2].double()
            turned = torch.stack((a * math.cos(angle) - b * math.sin(angle), a * math.sin(angle) + b * math.cos(angle)))
            assert_close(exact[place, 2 * pair : 2 * pair + 2], turned, rtol=0, atol=1e-8)


# --- ALiBi ------------------------------------------------------------------------------------------------------------


def test_slopes_of_eight_heads_are_those_of_the_paper():
    # Press, Smith & Lewis (2022), section 3: 1/2, 1/4, …, 1/256.
    assert alibi_bias(8, 2)[:, 0, 1].tolist() == [-(2.0**-k) for k in range(1, 9)]


@pytest.mark.parametrize("num_heads", [2, 4, 16])
def test_alibi_gives_the_weights_of_bloom(num_heads):
    """Theirs adds slope · key position, ours −slope · distance: under a causal mask a constant apart in each row."""
    scores = torch.randn(num_heads, 7, 7, dtype=torch.float64)
    theirs = build_alibi_tensor(torch.ones(1, 7), num_heads, torch.float64)  # (H, 1, L)
    ours = (masked_softmax(scores + bias, causal_mask(7)) for bias in (alibi_bias(num_heads, 7).double(), theirs))
    assert_close(*ours, rtol=0, atol=1e-6)


@pytest.mark.parametrize("num_heads", [1, 2, 4, 16])
def test_the_bias_is_the_formula(num_heads):
    bias = alibi_bias(num_heads, 5)
    assert bias.shape == (num_heads, 5, 5)
    assert bias.dtype == torch.float32
    for h in range(num_heads):
        for i in range(5):
            for j in range(5):
                assert bias[h, i, j].item() == pytest.approx(-abs(i - j) * 2 ** (-8 * (h + 1) / num_heads), rel=1e-6)


# --- all of them ------------------------------------------------------------------------------------------------------


def test_tables_need_no_random_numbers_and_are_made_where_x_is():
    with no_side_effects():
        sinusoidal_encoding(5, 7), shift_matrix(3, 10), alibi_bias(2, 5)
    assert apply_rotary(torch.empty(5, 14, device="meta"), torch.arange(5, device="meta")).device.type == "meta"


# --- errors -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_what_learned_positions_do_not_fit_is_refused(kind):
    with pytest.raises(ValueError, match=r"x must be at most .*13 positions long, got 14; .*build"):
        kind(13, 7)(torch.randn(2, 14, 7))
    with pytest.raises(ValueError, match=r"x must be .* with d_model = 7, got \(2, 5, 11\); build"):
        kind(13, 7)(torch.randn(2, 5, 11))


def test_an_error_says_what_has_no_position_code(unchecked):
    x = torch.randn(3, 5, 14)
    for call, words in (
        (lambda: shift_matrix(1, 7), "d_model must be even, since features are rotated in pairs, got 7"),
        (lambda: shift_matrix(math.nan, 4), "offset must be a finite number, got nan"),
        (lambda: apply_rotary(x[..., :7], torch.arange(5)), "the last axis of x must be even, .* got 7"),
        (lambda: apply_rotary(x, torch.arange(7)), r"agree in length, .*pass torch.arange\(x.shape\[-2\]\)"),
        (lambda: apply_rotary(x, torch.tensor(3)), r"positions must be \(length,\), got \(\); add the axis"),
        (lambda: alibi_bias(6, 5), r"num_heads must be a power of two for ALiBi's slopes, got 6; take 1, 2, 4"),
    ):
        with pytest.raises(ValueError, match=words):
            call()
