"""course_kit.nn.positions: position codes as modules, added to embeddings or inside attention."""

from __future__ import annotations

import copy

import pytest
import torch
from oracles import DTYPES, no_side_effects
from torch.testing import assert_close

from course_kit.nn import AlibiPosition, LearnedPositionalEmbedding, RotaryPosition, SinusoidalPositionalEncoding
from course_lib.positional_encoding import alibi_bias, apply_rotary, sinusoidal_encoding

ADDED = pytest.mark.parametrize(
    "module", [SinusoidalPositionalEncoding(7), LearnedPositionalEmbedding(13, 7)], ids=["sinusoidal", "learned"]
)


# --- sine and cosine --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("d_model", [7, 10])
@pytest.mark.parametrize("dtype", DTYPES)
def test_the_sinusoidal_module_adds_the_encoding_of_any_length_in_any_dtype(d_model, dtype):
    with no_side_effects():
        module = SinusoidalPositionalEncoding(d_model)
    for length in (3, 2, 13, 5, 0):  # growing, shrinking, growing again
        x = torch.randn(2, length, d_model).to(dtype)
        with no_side_effects(x):
            assert_close(module(x), x + sinusoidal_encoding(length, d_model).to(dtype))
    assert not module.state_dict()


def test_the_table_is_not_rebuilt_at_every_step_of_decoding(monkeypatch):
    module, made = SinusoidalPositionalEncoding(7), []

    def counted(*args, **kwargs):
        made.append(args)
        return sinusoidal_encoding(*args, **kwargs)

    monkeypatch.setattr("course_kit.nn.positions.sinusoidal_encoding", counted)
    for length in range(1, 65):
        module(torch.zeros(1, length, 7))
    assert 1 <= len(made) < 10


def test_a_table_made_in_inference_mode_serves_training():
    module = SinusoidalPositionalEncoding(7)
    with torch.inference_mode():
        module(torch.zeros(1, 5, 7))
    x = torch.zeros(1, 5, 7, requires_grad=True)
    module(x).sum().backward()
    assert_close(x.grad, torch.ones(1, 5, 7))


def test_going_to_half_precision_and_back_leaves_positions_exact():
    module, x = SinusoidalPositionalEncoding(7), torch.zeros(1, 5, 7)
    module(x)
    assert_close(module.half().float()(x)[0], sinusoidal_encoding(5, 7))


# --- learned ----------------------------------------------------------------------------------------------------------


@ADDED
@pytest.mark.parametrize("offset", [1, 8])
def test_from_another_position_on_it_adds_what_a_longer_sequence_gets_there(module, offset):
    whole = module(torch.zeros(2, offset + 5, 7))
    assert_close(module(torch.zeros(2, 5, 7), offset=offset), whole[:, offset:], rtol=0, atol=0)


# --- rotary -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("len_q", [1, 5, 7])
@pytest.mark.parametrize("options", [{}, {"base": 100.0}])
def test_the_last_query_stands_where_the_last_key_stands(len_q, options):
    position, query, key = RotaryPosition(**options), torch.randn(3, 2, len_q, 14), torch.randn(3, 2, 7, 14)
    turned_query, turned_key = position.rotate(query, key)
    assert_close(turned_query, apply_rotary(query, torch.arange(7 - len_q, 7), **options))
    assert_close(turned_key, apply_rotary(key, torch.arange(7), **options))
    assert position.bias(query, key) is None


# --- ALiBi ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("len_q", [1, 5, 7])
@pytest.mark.parametrize("dtype", DTYPES)
def test_the_module_gives_the_last_queries_their_rows_in_their_dtype(len_q, dtype):
    query, key = torch.randn(3, 2, len_q, 11).to(dtype), torch.randn(3, 2, 7, 11).to(dtype)
    with no_side_effects(query, key):
        bias = AlibiPosition().bias(query, key)
    assert_close(bias, alibi_bias(2, 7)[:, 7 - len_q :].to(dtype))
    assert all(a is b for a, b in zip(AlibiPosition().rotate(query, key), (query, key), strict=True))


def test_alibi_grows_with_the_sequence_that_is_decoded():
    """Its table of penalties is made for twice the first length, and anew for longer ones."""
    position = AlibiPosition()
    for len_k in (2, 11):
        query, key = torch.zeros(1, 4, 1, 3), torch.zeros(1, 4, len_k, 3)
        bias = position.bias(query, key, positions=torch.arange(len_k))
        assert torch.equal(bias, alibi_bias(4, len_k)[:, -1:])


# --- all of them ------------------------------------------------------------------------------------------------------


def test_tables_are_made_where_they_are_wanted():
    x = torch.empty(3, 2, 5, 14, device="meta")
    tables = *RotaryPosition().rotate(x, x), AlibiPosition().bias(x, x)
    assert {tensor.device.type for tensor in tables} == {"meta"}
    module = SinusoidalPositionalEncoding(7)
    for device in ("cpu", "meta", "cpu"):
        assert module(torch.zeros(1, 5, 7, device=device)).device.type == device


@ADDED
def test_a_deep_copy_adds_the_same(module):
    x = torch.randn(2, 5, 7)
    assert torch.equal(copy.deepcopy(module)(x), module(x))


# --- errors -----------------------------------------------------------------------------------------------------------


def test_what_has_no_position_is_refused():
    with pytest.raises(ValueError, match=r"at most max_length = 13 positions long, got 14; .*build it longer"):
        LearnedPositionalEmbedding(13, 7)(torch.randn(2, 5, 7), offset=9)
    for act in (RotaryPosition().rotate, AlibiPosition().bias):
        with pytest.raises(ValueError, match=r"a key for every query, got 7 queries and 5 keys; use them in self-att"):
            act(torch.randn(3, 2, 7, 14), torch.randn(3, 2, 5, 14))
    with pytest.raises(ValueError, match=r"x must be .* with d_model = 7, got \(2, 5, 11\); build the position code"):
        SinusoidalPositionalEncoding(7)(torch.randn(2, 5, 11))
