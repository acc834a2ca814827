"""course_kit.nn.positions: position codes as modules, added to embeddings or inside attention."""

from __future__ import annotations

import copy

import pytest
import torch
from oracles import DTYPES, assert_same_function, leaf, no_side_effects
from torch.testing import assert_close

import course_lib as cl
from course_kit.nn import AlibiPosition, LearnedPositionalEmbedding, RotaryPosition, SinusoidalPositionalEncoding
from course_lib.positional_encoding import alibi_bias, apply_rotary, sinusoidal_encoding

ADDED = pytest.mark.parametrize(
    "module", [SinusoidalPositionalEncoding(7), LearnedPositionalEmbedding(13, 7)], ids=["sinusoidal", "learned"]
)


# --- sine and cosine --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("d_model", [7, 10])
def test_the_sinusoidal_module_adds_the_encoding_of_any_length(d_model):
    module = SinusoidalPositionalEncoding(d_model)
    for length in (3, 2, 13, 5, 0):  # growing, shrinking, growing again
        x = torch.randn(2, length, d_model)
        with no_side_effects(x):
            assert_close(module(x), x + sinusoidal_encoding(length, d_model))


@pytest.mark.parametrize("dtype", DTYPES)
def test_the_sinusoidal_module_keeps_the_dtype(dtype):
    x = torch.zeros(2, 5, 7, dtype=dtype)
    assert_close(SinusoidalPositionalEncoding(7)(x)[0], sinusoidal_encoding(5, 7).to(dtype))


def test_the_sinusoidal_module_has_neither_parameters_nor_state():
    module = SinusoidalPositionalEncoding(7)
    module(torch.randn(2, 5, 7))
    assert not list(module.parameters())
    assert not module.state_dict()
    SinusoidalPositionalEncoding(7).load_state_dict(module.state_dict())


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


@pytest.mark.parametrize("length", [0, 1, 5, 13])
def test_from_position_zero_on_it_is_the_plain_one(length):
    module, plain, x = (
        LearnedPositionalEmbedding(13, 7).double(),
        cl.LearnedPositionalEmbedding(13, 7),
        leaf(2, length, 7),
    )
    plain = plain.double()
    plain.load_state_dict(module.state_dict())
    assert_same_function(module(x), plain(x), module, plain, (x,))


@ADDED
@pytest.mark.parametrize("offset", [1, 8])
def test_from_another_position_on_it_adds_what_a_longer_sequence_gets_there(module, offset):
    whole = module(torch.zeros(2, offset + 5, 7))
    assert_close(module(torch.zeros(2, 5, 7), offset=offset), whole[:, offset:], rtol=0, atol=0)


# --- rotary -----------------------------------------------------------------------------------------------------------


def test_the_base_of_the_module_is_ten_thousand_by_default():
    x = torch.randn(5, 14)
    rotated, _ = RotaryPosition().rotate(x, x)
    assert torch.equal(rotated, apply_rotary(x, torch.arange(5), 10_000.0))


@pytest.mark.parametrize("len_q", [1, 5, 7])
def test_the_last_query_stands_where_the_last_key_stands(len_q):
    position, query, key = RotaryPosition(base=100.0), torch.randn(3, 2, len_q, 14), torch.randn(3, 2, 7, 14)
    turned_query, turned_key = position.rotate(query, key)
    assert_close(turned_query, apply_rotary(query, torch.arange(7 - len_q, 7), 100.0))
    assert_close(turned_key, apply_rotary(key, torch.arange(7), 100.0))
    assert position.bias(query, key) is None


# --- ALiBi ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("len_q", [1, 5, 7])
@pytest.mark.parametrize("dtype", DTYPES)
def test_the_module_gives_the_last_queries_their_rows_in_their_dtype(len_q, dtype):
    query, key = torch.randn(3, 2, len_q, 11).to(dtype), torch.randn(3, 2, 7, 11).to(dtype)
    with no_side_effects(query, key):
        bias = AlibiPosition().bias(query, key)
    assert_close(bias, alibi_bias(2, 7)[:, 7 - len_q :].to(dtype))
    rotated = AlibiPosition().rotate(query, key)
    assert rotated[0] is query
    assert rotated[1] is key


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
    rotated = RotaryPosition().rotate(x, x)
    bias = AlibiPosition().bias(x, x)
    assert {tensor.device.type for tensor in (*rotated, bias)} == {"meta"}
    module = SinusoidalPositionalEncoding(14).to("meta")
    assert module(x[0]).device.type == "meta"


def test_the_table_follows_its_input_from_device_to_device():
    module = SinusoidalPositionalEncoding(7)
    for device in ("cpu", "meta", "cpu"):
        assert module(torch.zeros(1, 5, 7, device=device)).device.type == device


def test_the_sinusoidal_module_needs_no_random_numbers():
    with no_side_effects():
        SinusoidalPositionalEncoding(7)


@ADDED
def test_a_deep_copy_adds_the_same(module):
    x = torch.randn(2, 5, 7)
    assert torch.equal(copy.deepcopy(module)(x), module(x))


# --- errors -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("offset", [9, 20])
def test_an_end_beyond_the_learned_positions_is_refused(offset):
    with pytest.raises(
        ValueError, match=rf"at most max_length = 13 positions long, got {5 + offset}; .*build it longer"
    ):
        LearnedPositionalEmbedding(13, 7)(torch.randn(2, 5, 7), offset=offset)


def test_a_width_other_than_that_of_the_table_is_refused():
    with pytest.raises(ValueError, match=r"x must be .* with d_model = 7, got \(2, 5, 11\); build the position code"):
        SinusoidalPositionalEncoding(7)(torch.randn(2, 5, 11))


@pytest.mark.parametrize("act", [RotaryPosition().rotate, AlibiPosition().bias])
def test_more_queries_than_keys_have_no_positions(act):
    with pytest.raises(
        ValueError, match=r"a key for every query, got 7 queries and 5 keys; use them in self-attention"
    ):
        act(torch.randn(3, 2, 7, 14), torch.randn(3, 2, 5, 14))
