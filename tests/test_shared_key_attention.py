"""Grouped-query and latent attention: against PyTorch, against multi-head attention, and token by token."""

import pytest
import torch
import torch.nn.functional as F
from oracles import CLOSE, gradients, leaf, randomise, torch_names
from torch import nn
from torch.testing import assert_close

from course_kit.nn import KeyValueCache, MultiHeadAttention, RotaryPosition
from course_kit.shared_key_attention import GroupedQueryAttention, LatentAttention
from course_lib.masking import causal_mask, padding_mask
from course_lib.multi_head import split_heads

BATCH, LENGTH, HEADS, D_HEAD, D_LATENT = 2, 7, 6, 5, 11
D_MODEL = HEADS * D_HEAD


def grouped(num_kv_heads, **options):
    return randomise(GroupedQueryAttention(D_MODEL, HEADS, num_kv_heads, **options).double())


def latent():
    return randomise(LatentAttention(D_MODEL, HEADS, D_LATENT).double())


# --- grouped queries --------------------------------------------------------------------------------------------------


def test_two_heads_that_share_a_key_by_hand():
    module = GroupedQueryAttention(2, 2, 1, bias=False)
    module.q_proj.weight.data = torch.tensor([[torch.tensor(3.0).log(), 0.0], [0.0, 0.0]])
    module.k_proj.weight.data = torch.tensor([[1.0, 0.0]])
    module.v_proj.weight.data = torch.tensor([[0.0, 4.0]])
    module.out_proj.weight.data = torch.eye(2)
    # Keys are 1 and 0, values 0 and 4. The first token's queries are ln 3 and 0: weights (3/4, 1/4) and (1/2, 1/2).
    # Those of the second token are 0.
    output = module(torch.tensor([[[1.0, 0.0], [0.0, 1.0]]]))
    assert_close(output, torch.tensor([[[1.0, 2.0], [2.0, 2.0]]]))


def results(attend, x, module):
    """Output, and the gradients of x and of all parameters."""
    x.grad = None
    module.zero_grad()
    output = attend(x)
    output.square().sum().backward()
    return {"output": output, "x": x.grad, **gradients(module)}


@pytest.mark.parametrize("num_kv_heads", [1, 2, 3, 6])
@pytest.mark.parametrize("causal", [False, True])
def test_values_and_gradients_are_those_of_pytorchs_grouped_queries(num_kv_heads, causal):
    ours, x = grouped(num_kv_heads), leaf(BATCH, LENGTH, D_MODEL)

    def theirs(x):
        query, key, value = (
            split_heads(projection(x), heads)
            for projection, heads in ((ours.q_proj, HEADS), (ours.k_proj, num_kv_heads), (ours.v_proj, num_kv_heads))
        )
        heads = F.scaled_dot_product_attention(query, key, value, is_causal=causal, enable_gqa=True)
        return ours.out_proj(heads.transpose(1, 2).flatten(2))

    found = results(lambda x: ours(x, causal_mask(LENGTH) if causal else None), x, ours)
    assert_close(found, results(theirs, x, ours), rtol=1e-10, atol=1e-9)


@pytest.mark.parametrize("bias", [True, False])
def test_a_converted_module_with_all_groups_computes_what_pytorchs_does_and_leaves_the_original_alone(bias):
    attention = randomise(MultiHeadAttention(D_MODEL, HEADS, bias=bias).double()).eval()
    theirs = nn.MultiheadAttention(D_MODEL, HEADS, bias=bias, batch_first=True).double()
    theirs.load_state_dict(torch_names(attention.state_dict()))
    module = GroupedQueryAttention.from_multi_head(attention, HEADS)
    x = leaf(BATCH, LENGTH, D_MODEL)
    expected = theirs(x, x, x, attn_mask=~causal_mask(LENGTH))[0]
    assert_close(module(x, causal_mask(LENGTH)), expected, **CLOSE)
    assert not module.training
    for parameter in module.parameters():
        parameter.data.fill_(7.0)
    assert not any((parameter == 7).any() for parameter in attention.parameters())


@pytest.mark.parametrize("num_kv_heads", [1, 2, 3])
def test_a_converted_group_has_the_mean_of_its_heads_keys_and_values(num_kv_heads):
    attention = randomise(MultiHeadAttention(D_MODEL, HEADS).double())
    module = GroupedQueryAttention.from_multi_head(attention, num_kv_heads)
    x = leaf(BATCH, LENGTH, D_MODEL)
    for name in ("k_proj", "v_proj"):
        theirs = split_heads(getattr(attention, name)(x), HEADS)
        ours = split_heads(getattr(module, name)(x), num_kv_heads)
        assert_close(ours, theirs.unflatten(1, (num_kv_heads, -1)).mean(2), **CLOSE)


@pytest.mark.parametrize("num_kv_heads", [1, 3, 6])
@pytest.mark.parametrize("at_once", [1, 3])
def test_with_a_cache_the_output_is_that_of_the_whole_sequence(num_kv_heads, at_once):
    module, x, cache = grouped(num_kv_heads), torch.randn(BATCH, LENGTH, D_MODEL).double(), KeyValueCache()
    causal, outputs = causal_mask(LENGTH), []
    with torch.no_grad():
        for new in x.split(at_once, dim=1):
            end = len(cache) + new.shape[1]
            outputs.append(module(new, causal[len(cache) : end, :end], cache=cache))
        assert_close(torch.cat(outputs, dim=1), module(x, causal), **CLOSE)
    assert cache.keys.shape == (BATCH, num_kv_heads, LENGTH, D_HEAD)


@pytest.mark.parametrize("num_kv_heads", [1, 3])
def test_padding_is_not_attended_to(num_kv_heads):
    module, x = grouped(num_kv_heads), torch.randn(BATCH, LENGTH, D_MODEL).double()
    mask = padding_mask(torch.tensor([[5] * 4 + [0] * 3, [5] * 7]), 0)  # (B, 1, 1, L)
    changed = x.clone()
    changed[0, 4:] = torch.randn(3, D_MODEL).double()
    output = module(x, mask)
    assert_close(output[0, :4], module(changed, mask)[0, :4], **CLOSE)
    assert_close(output[0, :4], module(x[:1, :4])[0], **CLOSE)
    assert_close(output[1], module(x[1:])[0], **CLOSE)


# --- latents ----------------------------------------------------------------------------------------------------------


def test_a_latent_of_one_number_by_hand():
    module = LatentAttention(2, 1, 1)
    module.q_proj.weight.data = torch.eye(2)
    module.down.weight.data = torch.tensor([[1.0, 1.0]])
    module.k_up.weight.data = torch.tensor([[2.0**0.5 * torch.tensor(3.0).log()], [0.0]])
    module.v_up.weight.data = torch.tensor([[1.0], [10.0]])
    module.out_proj.weight.data = torch.eye(2)
    # Latents are 2 and 1. The query (1, 1) has the scores 2 ln 3 and ln 3, so weights 3/4 and 1/4, and the mean latent
    # 7/4; the query (0, 1) has two scores of 0 and the mean latent 3/2.
    x = torch.tensor([[[1.0, 1.0], [0.0, 1.0]]])
    for attend in (module, module.absorbed):
        output, latents = attend(x)
        assert_close(output, torch.tensor([[[1.75, 17.5], [1.5, 15.0]]]))
        assert_close(latents, torch.tensor([[[2.0], [1.0]]]))


@pytest.mark.parametrize("causal", [False, True])
def test_latent_attention_is_pytorchs_with_keys_and_values_of_low_rank(causal):
    ours, x = latent(), leaf(BATCH, LENGTH, D_MODEL)
    theirs = nn.MultiheadAttention(D_MODEL, HEADS, bias=False, batch_first=True).double()
    stacked = (ours.q_proj.weight, ours.k_up.weight @ ours.down.weight, ours.v_up.weight @ ours.down.weight)
    theirs.in_proj_weight.data = torch.cat(stacked).detach()
    theirs.out_proj.weight.data = ours.out_proj.weight.detach()
    mask = causal_mask(LENGTH) if causal else None
    expected = theirs(x, x, x, attn_mask=None if mask is None else ~mask)[0]
    output, _ = ours(x, mask)
    grads = [torch.autograd.grad(each.square().sum(), x)[0] for each in (output, expected)]
    for (one, other), digits in zip(((output, expected), grads), (1e-12, 1e-10), strict=True):
        assert_close(
            one, other, rtol=0, atol=digits * other.abs().max().item()
        )  # random up-projections make large ones


@pytest.mark.parametrize("d_latent", [1, 11, 40])
def test_absorbed_and_expanded_give_the_same_values_and_gradients(d_latent):
    module = LatentAttention(D_MODEL, HEADS, d_latent).double()
    x, mask = leaf(BATCH, LENGTH, D_MODEL), causal_mask(LENGTH)
    assert_close(module(x, mask)[1], module.absorbed(x, mask)[1], **CLOSE)
    found = (results(lambda x, attend=attend: attend(x, mask)[0], x, module) for attend in (module.absorbed, module))
    assert_close(*found, **CLOSE)


@pytest.mark.parametrize("which", ["forward", "absorbed"])
@pytest.mark.parametrize("at_once", [1, 3])
def test_with_earlier_latents_the_output_is_that_of_the_whole_sequence(which, at_once):
    module = LatentAttention(D_MODEL, HEADS, D_LATENT).double()
    attend, x = getattr(module, which), torch.randn(BATCH, LENGTH, D_MODEL).double()
    causal, outputs, latents, end = causal_mask(LENGTH), [], None, 0
    with torch.no_grad():
        for new in x.split(at_once, dim=1):
            start, end = end, end + new.shape[1]
            output, latents = attend(new, causal[start:end, :end], latents=latents)
            outputs.append(output)
        assert_close(torch.cat(outputs, dim=1), module(x, causal)[0], **CLOSE)
    assert latents.shape == (BATCH, LENGTH, D_LATENT)


# --- wrong arguments --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: GroupedQueryAttention(12, 6, 4), ValueError, "num_kv_heads must divide num_heads.*num_kv_heads = 4"),
        (lambda: LatentAttention(10, 4, 2), ValueError, "num_heads must divide d_model"),
        (lambda: grouped(3)(torch.zeros(7, D_MODEL).double()), ValueError, r"x must be \(batch, length, d_model = 30"),
        (lambda: latent()(torch.zeros(2, 7, 29).double()), ValueError, r"x must be .*got \(2, 7, 29\)"),
        (
            lambda: grouped(3)(torch.zeros(2, 7, 30).double(), torch.ones(2, 6, 7, 7, dtype=torch.bool)),
            *(ValueError, "mask must broadcast"),
        ),
        (lambda: grouped(3)(torch.zeros(2, 7, 30).double(), torch.ones(7, 7)), TypeError, "got"),
        (
            lambda: latent()(torch.zeros(2, 1, 30).double(), latents=torch.zeros(3, 4, 11).double()),
            *(ValueError, r"latents must be \(2, L, 11\).*got \(3, 4, 11\)"),
        ),
        (
            lambda: GroupedQueryAttention.from_multi_head(MultiHeadAttention(12, 6, position=RotaryPosition()), 3),
            *(ValueError, "without a position code"),
        ),
        (lambda: GroupedQueryAttention.from_multi_head(nn.MultiheadAttention(12, 6), 3), TypeError, "got"),
    ],
)
def test_a_wrong_argument_is_named(unchecked, make, error, message):
    with pytest.raises(error, match=message):
        make()
