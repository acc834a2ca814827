"""course_kit.flash_attention: FlashAttention in plain PyTorch against PyTorch's own, and what it keeps and computes."""

from __future__ import annotations

import math

import pytest
import torch
import torch.nn.functional as F
from oracles import CLOSE, DTYPES, leaf, no_side_effects
from torch.testing import assert_close
from torch.utils.flop_counter import FlopCounterMode

from course_kit.flash_attention import flash_attention
from course_kit.measuring import numbers_kept
from course_lib.efficiency import tiled_attention
from course_lib.masking import causal_mask
from course_lib.scaled_dot_product import attention_flops, scaled_dot_product_attention

LEADING = pytest.mark.parametrize("leading", [(), (2,), (2, 3)])
BLOCKS = pytest.mark.parametrize("block_size", [1, 2, 5, 7, 100])  # none but 1 divides 11 queries or 13 keys


def inputs(*leading, len_q=11, len_k=13, d_k=3, d_v=5, dtype=torch.float64):
    return tuple(leaf(*leading, *size, dtype=dtype) for size in ((len_q, d_k), (len_k, d_k), (len_k, d_v)))


def same_with_gradients(ours, theirs, leaves, **within):
    within = within or CLOSE
    assert_close(ours, theirs, **within)
    grad = torch.randn_like(ours)
    assert_close(*(torch.autograd.grad(x, leaves, grad) for x in (ours, theirs)), **within)


# --- by hand ----------------------------------------------------------------------------------------------------------


def test_two_tiles_by_hand():
    # Scores (ln 3, 0) after the division by √4: weights 3/4 and 1/4, output 0.75 · 4 + 0.25 · 8 = 5. With a loss of
    # the output: dV = (3/4, 1/4), and dS = (3/4 · (4 − 5), 1/4 · (8 − 5)) = (−3/4, 3/4).
    query = torch.tensor([[math.log(9.0), 0.0, 0.0, 0.0]], dtype=torch.float64, requires_grad=True)
    key = torch.tensor([[1.0, 0.0, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0]], dtype=torch.float64)
    value = torch.tensor([[4.0], [8.0]], dtype=torch.float64, requires_grad=True)
    output = flash_attention(query, key, value, block_size=1)
    assert output.item() == pytest.approx(5.0, abs=1e-12)
    output.backward()
    assert value.grad.flatten().tolist() == pytest.approx([0.75, 0.25], abs=1e-12)
    assert query.grad.flatten().tolist() == pytest.approx([-0.375, 0.375, 0.0, 0.0], abs=1e-12)  # halved by √4


def test_causal_by_hand():
    """All scores are equal, so that each query averages the keys it may attend to: the last attends to all."""
    value = torch.tensor([[3.0], [5.0], [10.0]])
    for len_q, block_size, expected in ((2, 1, [4, 6]), (4, 2, [0, 3, 4, 6])):
        output = flash_attention(torch.zeros(len_q, 1), torch.zeros(3, 1), value, block_size, causal=True)
        assert output.flatten().tolist() == expected


# --- against PyTorch --------------------------------------------------------------------------------------------------


@LEADING
@BLOCKS
def test_values_and_gradients_are_those_of_pytorch(leading, block_size):
    leaves = inputs(*leading)
    same_with_gradients(flash_attention(*leaves, block_size), F.scaled_dot_product_attention(*leaves), leaves)


@LEADING
@BLOCKS
def test_causal_attention_is_that_of_pytorch_with_the_last_rows_of_the_mask(leading, block_size):
    for len_q in (13, 11, 1, 4):
        leaves = inputs(*leading, len_q=len_q)
        theirs = F.scaled_dot_product_attention(*leaves, attn_mask=causal_mask(13)[-len_q:])
        same_with_gradients(flash_attention(*leaves, block_size, causal=True), theirs, leaves)


@BLOCKS
def test_queries_before_the_first_key_get_zeros_and_no_gradient(block_size):
    query, key, value = inputs(2, len_q=13, len_k=6)
    ours = flash_attention(query, key, value, block_size, causal=True)
    theirs = F.scaled_dot_product_attention(query[:, 7:], key, value, is_causal=True)
    same_with_gradients(ours, F.pad(theirs, (0, 0, 7, 0)), (query, key, value))


def test_the_default_block_size_and_axes_that_broadcast(unchecked):
    leaves = leaf(2, 3, 150, 3), leaf(3, 140, 3), leaf(2, 1, 140, 5)
    with no_side_effects(*leaves):
        ours = flash_attention(*leaves)
    same_with_gradients(ours, scaled_dot_product_attention(*leaves)[0], leaves)


@pytest.mark.parametrize("level", [-1e4, 0.0, 1e4])
@pytest.mark.parametrize("block_size", [2, 5])
def test_extreme_scores_are_as_exact_as_pytorchs(level, block_size):
    query, key, value = (x.detach() for x in inputs(2))
    query, key = query * 1e3, F.pad(key, (0, 1), value=1.0)  # scores of about ±2,000, all of them about this level
    leaves = [x.requires_grad_() for x in (F.pad(query, (0, 1), value=2 * level), key, value)]
    ours, theirs = flash_attention(*leaves, block_size), F.scaled_dot_product_attention(*leaves)
    assert_close(ours, theirs, rtol=0, atol=1e-9)
    same_with_gradients(ours, theirs, leaves, rtol=1e-9, atol=1e-8)  # scores of 1e4 lose four of sixteen digits


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("causal", [False, True])
def test_every_dtype_is_kept_and_sums_are_wide(dtype, causal):
    """Half precision is as good as rounding the exact result: no sum of it is in half precision."""
    leaves = inputs(2, len_q=100, len_k=100, dtype=dtype)
    ours = flash_attention(*leaves, 32, causal=causal)
    exact = [x.detach().double().requires_grad_() for x in leaves]
    theirs = F.scaled_dot_product_attention(*exact, is_causal=causal)
    gradients = torch.autograd.grad(ours.sum(), leaves), torch.autograd.grad(theirs.sum(), exact)
    unit = max(torch.finfo(dtype).eps, 1e-6)
    for one, other in ((ours, theirs), *zip(*gradients, strict=True)):
        assert one.dtype == dtype
        # two roundings of the result; the output, rounded, takes part in the gradients
        size = 1 if one is ours else 8
        assert (one.double() - other).abs().max() <= size * unit * max(1.0, other.abs().max().item())


def test_the_mean_of_a_row_is_summed_wide_in_the_backward_pass():
    """dO · O has 65,536 equal terms of 1: in half precision their sum overflows."""
    query = torch.zeros(1, 1, dtype=torch.float16, requires_grad=True)
    key = torch.tensor([[1.0], [-1.0]], dtype=torch.float16)
    value = torch.ones(2, 2**16, dtype=torch.float16)
    flash_attention(query, key, value, 1).backward(torch.ones(1, 2**16, dtype=torch.float16))
    assert query.grad.item() == 0


def test_gradients_of_some_inputs_only():
    query, key, value = inputs(2)
    leaves = query, key.detach(), value
    same_with_gradients(flash_attention(*leaves, 4), F.scaled_dot_product_attention(*leaves), (query, value))
    assert not flash_attention(*(x.detach() for x in leaves)).requires_grad


def test_autocast_changes_nothing():
    """The scores of the backward pass are those of the forward pass."""
    leaves = inputs(2, dtype=torch.float32)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        inside = flash_attention(*leaves, 4)
    same_with_gradients(inside, flash_attention(*leaves, 4), leaves, rtol=0, atol=0)


@pytest.mark.parametrize("causal", [False, True])
def test_no_keys_and_no_queries(causal):
    leaves = inputs(2, len_k=0)
    output = flash_attention(*leaves, 4, causal=causal)
    assert torch.equal(output, torch.zeros(2, 11, 5, dtype=torch.float64))
    output.sum().backward()
    assert not leaves[0].grad.any()
    assert flash_attention(*inputs(2, len_q=0), 4, causal=causal).shape == (2, 0, 5)


# --- what it keeps and computes ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("length", [16, 64])
def test_what_is_kept_grows_with_the_length_alone(length, causal):
    """Queries, keys, values, output, and one number per query; under autograd tiles keep the scores of all tiles."""
    leaves = [x.detach().float() for x in inputs(2, len_q=length, len_k=length + 7)]
    for block_size in (3, 16):
        kept = numbers_kept(lambda *x, size=block_size: flash_attention(*x, size, causal=causal), *leaves)
        assert kept == 2 * (length * 3 + (length + 7) * (3 + 5) + length * 5 + length)
    assert numbers_kept(lambda *x: tiled_attention(*x, 8), *leaves) > 2 * length**2


def counted(leaves, *, backward=False, **options):
    """Operations of the matrix products, as PyTorch counts them."""
    with FlopCounterMode(display=False) as counter:
        output = flash_attention(*leaves, **options)
        if backward:
            output.sum().backward()
    return counter.get_total_flops()


def test_operations_are_those_of_the_formula():
    """Seven products instead of two: scores and output; scores again, and one for each of dP, dV, dQ and dK."""
    leaves = inputs(2, len_q=12, len_k=20)
    forward, scores = 2 * attention_flops(12, 20, 3, 5), 2 * attention_flops(12, 20, 3, 0)
    assert counted(leaves, block_size=4) == forward
    assert counted(leaves, block_size=4, backward=True) == 3 * forward + scores


def test_tiles_above_the_diagonal_are_not_computed():
    """Of n × n tiles, n (n + 1) / 2 are; of 2 × 5 for the last queries, 4 + 5."""
    square, tile = inputs(len_q=20, len_k=20), attention_flops(4, 4, 3, 5)
    assert counted(square, block_size=4, causal=True) == 15 * tile
    both = 3 * tile + attention_flops(4, 4, 3, 0)
    assert counted(square, block_size=4, causal=True, backward=True) == 15 * both
    assert counted(inputs(len_q=8, len_k=20), block_size=4, causal=True) == 9 * tile


def test_second_derivatives_are_refused():
    leaves = inputs(2)
    loss = flash_attention(*leaves, 4).square().sum()
    with pytest.raises(RuntimeError, match=r"first derivatives only, got create_graph=True; .*scaled_dot_product"):
        torch.autograd.grad(loss, leaves, create_graph=True)
