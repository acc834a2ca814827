"""course_kit.interpret.weighted_values: norms of what heads add, and other weights with the same output."""

from __future__ import annotations

import pytest
import torch
from oracles import CLOSE, no_side_effects, randomise
from torch import nn
from torch.testing import assert_close

from course_kit.interpret.weighted_values import distant_twin_weights, record_value_norms, twin_weights, value_norms
from course_kit.nn import MultiHeadAttention, Transformer, TransformerConfig, record_attention
from course_lib.multi_head import merge_heads, split_heads


def test_value_norms_by_hand():
    # Two heads of one feature. W_V = diag(2, 1), b_V = (0, 1); W_O = [[3, 0], [4, 1]].
    # Head 0 turns (1, 5) into 2 and adds 2 · (3, 4), of norm 10; head 1 into 6 and adds 6 · (0, 1), of norm 6.
    module = MultiHeadAttention(2, 2)
    module.v_proj.weight.data = torch.tensor([[2.0, 0.0], [0.0, 1.0]])
    module.v_proj.bias.data = torch.tensor([0.0, 1.0])
    module.out_proj.weight.data = torch.tensor([[3.0, 0.0], [4.0, 1.0]])
    assert_close(value_norms(module, torch.tensor([[[1.0, 5.0]]])), torch.tensor([[[10.0], [6.0]]]))


@pytest.mark.parametrize("bias", [True, False])
def test_a_norm_is_what_the_module_adds_for_that_key_alone(bias):
    """Give head h the value of key j and nothing else, and see how far the output moves: the definition, by running."""
    module = randomise(MultiHeadAttention(22, 2, bias=bias)).double()
    x = torch.randn(3, 7, 22, dtype=torch.float64)
    with no_side_effects(x):
        norms = value_norms(module, x)
    assert norms.shape == (3, 2, 7)
    nothing = module.out_proj(torch.zeros(22, dtype=torch.float64))
    for head in range(2):
        for key in range(7):
            alone = torch.zeros(3, 2, 1, 11, dtype=torch.float64)
            alone[:, head, 0] = split_heads(module.v_proj(x), 2)[:, head, key]
            added = module.out_proj(merge_heads(alone))[:, 0] - nothing
            assert_close(norms[:, head, key], added.norm(dim=-1), **CLOSE)


def test_norms_are_recorded_of_every_attention_in_a_model():
    config = TransformerConfig(vocab_size=11, d_model=6, num_heads=2, num_layers=2, d_ff=5, dropout=0.0, norm="pre")
    model = randomise(Transformer(config)).eval()
    source, target = torch.tensor([[3, 4, 5, 6, 7]]), torch.tensor([[1, 2, 3]])
    with record_attention(model) as maps, record_value_norms(model) as norms:
        model(source, target)
    assert {name: (1, 2, weights.shape[-1]) for name, weights in maps.items()} == {n: x.shape for n, x in norms.items()}
    assert not any(each.requires_grad for each in norms.values())
    cross = "decoder.layers.1.cross_attention"
    assert_close(norms[cross], value_norms(model.get_submodule(cross), model.encode(source)).detach())


def test_recorded_norms_are_those_of_the_value_in_the_latest_call_inside_the_block():
    module = randomise(MultiHeadAttention(6, 2))
    query, key, value, other = torch.randn(4, 1, 5, 6).unbind(0)
    with record_value_norms(module) as norms:
        module(query, key, value)
        assert_close(norms[""], value_norms(module, value).detach())
        module(query, key, value=other)
    module(query, key, value)
    assert_close(norms[""], value_norms(module, other).detach())
    with pytest.raises(ZeroDivisionError), record_value_norms(module):
        raise ZeroDivisionError
    assert not module._forward_hooks


def test_a_model_without_attention_is_an_error():
    with pytest.raises(ValueError, match=r"at least one course_kit\.nn\.MultiHeadAttention, got Linear with none"):
        record_value_norms(nn.Linear(2, 3)).__enter__()


# --- twins ------------------------------------------------------------------------------------------------------------


def test_twin_weights_by_hand():
    # Values 0, 1, 2: only n = (1, −2, 1) changes neither the mean nor the sum. From (½, 0, ½) it leads to (0, 1, 0) and
    # back; from equal weights to (0, 1, 0), farther than to (½, 0, ½).
    values = torch.tensor([[0.0], [1.0], [2.0]])
    weights = torch.tensor([[0.5, 0.0, 0.5], [1 / 3, 1 / 3, 1 / 3], [0.0, 1.0, 0.0]])
    expected = torch.tensor([[0.0, 1.0, 0.0], [0.0, 1.0, 0.0], [0.5, 0.0, 0.5]])
    assert_close(twin_weights(weights, values), expected, rtol=0, atol=1e-6)


def of_rank_2(num_keys):
    return torch.randn(num_keys, 2, dtype=torch.float64) @ torch.randn(2, 11, dtype=torch.float64)


def assert_twins(twins, weights, values, within=1e-10):
    """The same output from other weights, which are weights as well."""
    assert twins.dtype == weights.dtype
    assert_close(twins @ values, weights @ values, rtol=0, atol=within)
    assert_close(twins.sum(-1), torch.ones_like(twins[..., 0]), rtol=0, atol=within)
    assert (twins >= 0).all()
    assert ((twins - weights).abs().sum(-1) > 0.01).all()


def test_twins_have_the_same_output_and_other_weights():
    weights = torch.randn(5, 23, dtype=torch.float64).softmax(-1)
    values = torch.randn(23, 11, dtype=torch.float64)
    with no_side_effects(weights, values):
        twins = twin_weights(weights, values)
    assert_twins(twins, weights, values)
    assert ((twins < 1e-12).sum(-1) == 1).all()  # as far as the first weight of zero


CASES = {  # weights, values, and how many keys the distant twins use
    "equal weights": lambda: (torch.full((1, 13), 1 / 13, dtype=torch.float64), torch.randn(13, 7).double(), 8),
    "values that depend on one another": lambda: (torch.randn(3, 5).double().softmax(-1), of_rank_2(5), 3),
    "single precision": lambda: (torch.randn(5, 47).softmax(-1), 3 * torch.randn(47, 32), None),
    "single precision, dependent up to rounding": lambda: (torch.randn(3, 5).softmax(-1), of_rank_2(5).float(), None),
}


@pytest.mark.parametrize("case", CASES)
def test_twins_of_both_kinds_exist_where_there_is_room(case):
    weights, values, used = CASES[case]()
    within = 1e-10 if weights.dtype == torch.float64 else 1e-5
    assert_twins(twin_weights(weights, values), weights, values, within)
    distant = distant_twin_weights(weights, values)
    assert_twins(distant, weights, values, within)
    assert used is None or ((distant > 0).sum(-1) == used).all()


@pytest.mark.parametrize("num_keys", [12, 7])
def test_as_many_values_as_keys_determine_the_weights(num_keys):
    values = torch.randn(num_keys, 11, dtype=torch.float64)
    weights = torch.randn(3, num_keys, dtype=torch.float64).softmax(-1)
    assert_close(distant_twin_weights(weights, values), weights, **CLOSE)
    with pytest.raises(ValueError, match=r"more than d_v . 1 = 12 keys, got .* the output determines the weights"):
        twin_weights(weights, values)


# --- twins of few keys ------------------------------------------------------------------------------------------------


def test_distant_twins_by_hand():
    # Values 0, 1, 2, 3 and an output of 1.5 from keys 1 and 2 above all: the twin of least overlap uses 0 and 3 only.
    values = torch.tensor([[0.0], [1.0], [2.0], [3.0]])
    weights = torch.tensor([[0.1, 0.4, 0.4, 0.1]])
    assert_close(distant_twin_weights(weights, values), torch.tensor([[0.5, 0.0, 0.0, 0.5]]), rtol=0, atol=1e-5)


def test_distant_twins_have_the_same_output_from_few_keys():
    weights = torch.randn(2, 3, 5, 23, dtype=torch.float64).softmax(-1)
    values = torch.randn(2, 3, 23, 7, dtype=torch.float64)
    with no_side_effects(weights, values):
        twins = distant_twin_weights(weights, values)
    assert_twins(twins, weights, values)
    assert ((twins > 0).sum(-1) == 8).all()
    assert ((twins * weights).sum(-1) < (weights * weights).sum(-1)).all()
    near = twin_weights(weights[0, 0], values[0, 0])
    assert ((twins[0, 0] - weights[0, 0]).abs().sum(-1) > (near - weights[0, 0]).abs().sum(-1)).all()


def test_keys_with_one_value_are_exchanged_freely():
    values = torch.ones(5, 3, dtype=torch.float64)
    twin = distant_twin_weights(torch.tensor([[0.5, 0.2, 0.1, 0.1, 0.1]], dtype=torch.float64), values)
    assert_close(twin.sort(-1).values, torch.tensor([[0.0, 0.0, 0.0, 0.0, 1.0]], dtype=torch.float64))
    assert twin[0, 0] == 0
