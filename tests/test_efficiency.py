"""course_lib.efficiency: tiles, groups, the size of a cache, linear attention, speculative sampling."""

from __future__ import annotations

import math

import pytest
import torch
import torch.nn.functional as F
from oracles import CLOSE, DTYPES, assert_same, leaf, no_side_effects
from torch import nn
from torch.testing import assert_close
from torch.utils._python_dispatch import TorchDispatchMode

from course_kit.nn import KeyValueCache
from course_lib.efficiency import (
    cache_bytes,
    convolution_layers,
    grouped_query_attention,
    linear_attention,
    online_softmax_step,
    speculative_acceptance,
    tiled_attention,
)

LEADING = [(), (2,), (2, 3)]


# --- path length of convolutions --------------------------------------------------------------------------------------


def test_layers_by_hand():
    assert [convolution_layers(length, 3) for length in (1, 2, 3, 4, 5, 6)] == [0, 1, 1, 2, 2, 3]
    assert [convolution_layers(length, 3, True) for length in (1, 3, 4, 9, 10, 27, 28)] == [0, 1, 2, 2, 3, 3, 4]
    assert convolution_layers(10**9, 2, True) == 30  # 2³⁰ is the first power above a milliard
    assert convolution_layers(3**20, 3, True) == 20  # where log(length) / log(kernel_size) is not exact


@pytest.mark.parametrize("dilated", [False, True])
@pytest.mark.parametrize("kernel_size", [2, 3, 5])
@pytest.mark.parametrize("length", [2, 5, 8, 17])
def test_the_last_output_depends_on_the_first_input_from_this_layer_on(length, kernel_size, dilated):
    def gradient_after(layers):
        x = torch.randn(1, 1, length, dtype=torch.float64, requires_grad=True)
        y = x
        for layer in range(layers):
            dilation = kernel_size**layer if dilated else 1
            convolution = nn.Conv1d(1, 1, kernel_size, dilation=dilation, dtype=torch.float64)
            nn.init.uniform_(convolution.weight, 0.5, 1.0)
            y = convolution(F.pad(y, ((kernel_size - 1) * dilation, 0)))
        (gradient,) = torch.autograd.grad(y[0, 0, -1], x)
        return gradient[0, 0, 0].item()

    layers = convolution_layers(length, kernel_size, dilated)
    assert gradient_after(layers) > 0
    assert gradient_after(layers - 1) == 0


# --- online softmax and tiles -----------------------------------------------------------------------------------------


def test_online_softmax_by_hand():
    # Scores 0, then ln 3, with values 4 and 8: after the first, 1 and 4; then everything is divided by 3.
    state = (torch.tensor([-math.inf]), torch.tensor([0.0]), torch.tensor([[0.0]]))
    maximum, total, output = online_softmax_step(*state, torch.tensor([[0.0]]), torch.tensor([[4.0]]))
    assert (maximum.item(), total.item(), output.item()) == (0.0, 1.0, 4.0)
    step = online_softmax_step(maximum, total, output, torch.tensor([[math.log(3)]]), torch.tensor([[8.0]]))
    maximum, total, output = (x.item() for x in step)
    assert maximum == pytest.approx(math.log(3))
    assert total == pytest.approx(1 + 1 / 3)
    assert output == pytest.approx(4 / 3 + 8)
    assert output / total == pytest.approx(0.25 * 4 + 0.75 * 8)


@pytest.mark.parametrize("batch", LEADING)
@pytest.mark.parametrize("block_size", [1, 2, 3, 7, 50])
def test_tiles_equal_pytorch(batch, block_size):
    leaves = query, key, value = leaf(*batch, 5, 11), leaf(*batch, 7, 11), leaf(*batch, 7, 3)
    with no_side_effects(*leaves):
        ours = tiled_attention(query, key, value, block_size)
    assert_same(ours, F.scaled_dot_product_attention(query, key, value), leaves)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("size", [1.0, 100.0])
def test_tiles_in_every_dtype(dtype, size):
    query, key, value = (torch.randn(3, rows, 13, dtype=torch.float64) * size for rows in (5, 7, 7))
    query, key, value = query.to(dtype), key.to(dtype), (value / size).to(dtype)
    ours = tiled_attention(query, key, value, 2)
    assert ours.dtype == dtype
    wanted = F.scaled_dot_product_attention(*(x.double() for x in (query, key, value)))
    within = {torch.float64: 1e-10, torch.float32: 1e-5, torch.float16: 5e-3, torch.bfloat16: 5e-2}[dtype]
    # Scores of up to 1e5 are rounded to about 0.01 in float32, and so are the weights, in proportion.
    assert_close(ours.double(), wanted, rtol=0, atol=within if size == 1 or dtype == torch.float64 else 0.1)
    assert ours.isfinite().all()


def test_the_query_is_not_rounded_when_it_is_scaled():
    # Both scores are 962 / √3. A query that is divided in half precision gives them a difference of almost 0.5.
    query, key = torch.tensor([[30.0, 31.0, 32.0]]).half(), torch.tensor([[31.0, 0.0, 1.0], [0.0, 30.0, 1.0]]).half()
    assert tiled_attention(query, key, torch.tensor([[0.0], [1.0]]).half(), 1).item() == 0.5


def test_many_keys_in_half_precision_do_not_overflow_and_without_keys_the_output_is_zero():
    for keys, expected in ((70_000, 1.0), (0, 0.0)):
        query, key, value = (x.half() for x in (torch.zeros(1, 2), torch.zeros(keys, 2), torch.ones(keys, 1)))
        assert tiled_attention(query, key, value, 1000).item() == pytest.approx(expected, abs=1e-3)


def test_without_keys_the_batch_of_the_keys_counts_as_well(unchecked):
    outputs = tiled_attention(torch.ones(3, 2), torch.ones(5, 0, 2), torch.ones(5, 0, 7), 1000)
    assert torch.equal(outputs, torch.zeros(5, 3, 7))


class Widest(TorchDispatchMode):
    """The largest last axis of a result that has a row per query."""

    def __init__(self, len_q):
        super().__init__()
        self.len_q, self.width = len_q, 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        result = function(*args, **(kwargs or {}))
        for tensor in result if isinstance(result, tuple | list) else (result,):
            if isinstance(tensor, torch.Tensor) and tensor.dim() > 1 and tensor.shape[-2] == self.len_q:
                self.width = max(self.width, tensor.shape[-1])
        return result


def test_no_scores_for_more_keys_than_a_block_holds():
    query, key, value = torch.randn(17, 3), torch.randn(40, 3), torch.randn(40, 5)
    with Widest(17) as tiled:
        tiled_attention(query, key, value, 6)
    with Widest(17) as explicit:
        (query @ key.T).softmax(-1) @ value
    assert (tiled.width, explicit.width) == (6, 40)


# --- groups of query heads, and the cache -----------------------------------------------------------------------------


@pytest.mark.parametrize(("heads", "groups"), [(6, 6), (6, 3), (6, 2), (6, 1), (1, 1)])
def test_groups_equal_pytorch(heads, groups):
    leaves = query, key, value = leaf(2, heads, 5, 7), leaf(2, groups, 11, 7), leaf(2, groups, 11, 7)
    with no_side_effects(*leaves):
        ours = grouped_query_attention(query, key, value)
    theirs = F.scaled_dot_product_attention(query, key, value, enable_gqa=True)
    assert_same(ours, theirs, leaves)


def test_cache_by_hand_and_by_the_bytes_of_a_cache():
    assert cache_bytes(1, 1, 1, 1) == 4  # a key and a value of two bytes
    assert cache_bytes(32, 8, 128, 4096) == 512 * 2**20
    caches = [KeyValueCache(is_static=True) for _ in range(3)]
    for cache in caches:
        cache.append(torch.randn(5, 2, 7, 11), torch.randn(5, 2, 7, 11))
    stored = sum(x.untyped_storage().nbytes() for cache in caches for x in (cache.keys, cache.values))
    assert cache_bytes(3, 2, 11, 7, batch_size=5, bytes_per_number=4) == stored
    assert cache_bytes(3, 2, 11, 0) == 0


# --- linear attention -------------------------------------------------------------------------------------------------


def quadratic_form(query, key, value):
    """The same weights, as a matrix that is masked."""
    weights = ((F.elu(query) + 1) @ (F.elu(key) + 1).mT).tril()
    return weights / weights.sum(-1, keepdim=True) @ value


@pytest.mark.parametrize("batch", LEADING)
def test_linear_attention_equals_the_masked_matrix(batch):
    leaves = query, key, value = leaf(*batch, 7, 11), leaf(*batch, 7, 11), leaf(*batch, 7, 3)
    with no_side_effects(*leaves):
        ours = linear_attention(query, key, value)
    assert_same(ours, quadratic_form(query, key, value), leaves)


def test_linear_attention_by_hand():
    # φ(0) = 1 and φ(1) = 2. The second query gives the first key 2 · 1 and the second 2 · 2: a third and two thirds.
    query, key, value = torch.tensor([[0.0], [1.0]]), torch.tensor([[0.0], [1.0]]), torch.tensor([[3.0], [6.0]])
    assert_close(linear_attention(query, key, value), torch.tensor([[3.0], [5.0]]))


@pytest.mark.parametrize("dtype", DTYPES)
def test_linear_attention_in_every_dtype(dtype):
    query, key, value = torch.randn(3, 2, 300, 5, dtype=torch.float64).to(dtype).unbind(0)
    ours = linear_attention(query, key, value)
    assert ours.dtype == dtype
    within = {torch.float64: 1e-10, torch.float32: 1e-5, torch.float16: 5e-3, torch.bfloat16: 5e-2}[dtype]
    assert_close(ours.double(), quadratic_form(query.double(), key.double(), value.double()), rtol=0, atol=within)


def test_very_negative_features_keep_their_ratio():
    # elu(x) + 1 rounds to 0 from −17 on in float32, and the weights would be 0 / 0.
    key, value = torch.tensor([[-30.0], [-31.0]]), torch.tensor([[0.0], [1.0]])
    ours = linear_attention(torch.zeros(2, 1), key, value)[1].item()
    assert ours == pytest.approx(1 / (1 + math.e), abs=1e-6)


def test_large_features_have_finite_gradients():
    # exp(100) overflows in float32, and 0 · inf in the backward pass of the branch not taken would be NaN.
    query, key, value = (torch.full((2, 1), 100.0, requires_grad=True) for _ in range(3))
    gradients = torch.autograd.grad(linear_attention(query, key, value).sum(), (query, key, value))
    assert all(gradient.isfinite().all() for gradient in gradients)


# --- speculative sampling ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("batch", LEADING)
def test_what_is_kept_and_what_is_drawn_again_make_up_the_target(batch):
    target, draft = torch.randn(2, *batch, 7, dtype=torch.float64).mul(3).softmax(-1).unbind(0)
    accept, residual = speculative_acceptance(target, draft)
    kept = draft * accept
    rejected = 1 - kept.sum(-1, keepdim=True)
    assert_close(kept + rejected * residual, target, **CLOSE)
    assert (residual * draft * accept)[accept < 1].abs().max() == 0  # never a token that the draft has too often
    # The expected acceptance is 1 minus the total variation distance.
    assert_close(kept.sum(-1), 1 - (target - draft).abs().sum(-1) / 2, **CLOSE)


def test_speculative_acceptance_by_hand():
    target, draft = torch.tensor([0.6, 0.3, 0.1, 0.0]), torch.tensor([0.2, 0.3, 0.5, 0.0])
    accept, residual = speculative_acceptance(target, draft)
    assert_close(accept, torch.tensor([1.0, 1.0, 0.2, 1.0]))
    assert_close(residual, torch.tensor([1.0, 0.0, 0.0, 0.0]))


def test_the_same_distribution_keeps_every_token():
    target = torch.tensor([[0.25, 0.75], [0.5, 0.5]], requires_grad=True)
    accept, residual = speculative_acceptance(target, target.detach())
    assert torch.equal(accept, torch.ones(2, 2))
    assert torch.equal(residual, target)
    (accept.sum() + residual.sum()).backward()
    assert target.grad.isfinite().all()


def test_gradients_are_finite_where_the_draft_model_never_draws_a_token():
    target = torch.tensor([0.5, 0.5, 0.0, 0.0], requires_grad=True)
    draft = torch.tensor([0.3, 0.0, 0.7, 0.0], requires_grad=True)
    accept, residual = speculative_acceptance(target, draft)
    assert_close(accept, torch.tensor([1.0, 1.0, 0.0, 1.0]))
    gradients = torch.autograd.grad(accept.sum() + residual.square().sum(), (target, draft))
    assert all(gradient.isfinite().all() for gradient in gradients)


# --- wrong arguments that a table cannot say --------------------------------------------------------------------------


def test_an_error_says_what_to_do(unchecked):
    q, k, state = torch.randn(1, 6, 5, 7), torch.randn(1, 4, 3, 7), (torch.zeros(3), torch.zeros(3), torch.zeros(3, 2))

    def t(*shape):
        return torch.zeros(shape)

    for call, words in (
        (lambda: grouped_query_attention(q, k, k), "heads of query must be a multiple of .*, got 6 and 4; each head"),
        (
            lambda: grouped_query_attention(q, k[..., :5], k[..., :5]),
            r"query and key must agree in d, .*; queries, keys",
        ),
        (lambda: grouped_query_attention(q, k, k[:, :2]), r"must agree in groups, .*; keys and values have the same"),
        (
            lambda: linear_attention(t(5, 2), t(3, 2), t(3, 2)),
            r"query and key must agree in length, .* one query per key",
        ),
        (
            lambda: linear_attention(*3 * [t(0, 2)]),
            r"query must have at least one position, got \(0, 2\); pass a longer",
        ),
        (lambda: convolution_layers(5, 1), "kernel_size must be at least 2, got 1"),
        (
            lambda: speculative_acceptance(torch.tensor([0.5, 0.5]), torch.tensor([0.5, 0.6])),
            "draft must be prob.*softmax",
        ),
        (lambda: speculative_acceptance(torch.tensor([1.5, -0.5]), torch.tensor([0.5, 0.5])), "target must be prob"),
        (lambda: speculative_acceptance(t(2, 0), t(2, 0)), r"target must have at least one token, got \(2, 0\); pass"),
        (lambda: online_softmax_step(*state, t(3, 0), t(0, 2)), r"at least one key, got \(3, 0\); leave out empty"),
        (lambda: online_softmax_step(*state, t(3, 4), t(4, 5)), r"agree in d_v, .*begin with an output"),
        (lambda: online_softmax_step(*state, t(3, 4), t(5, 2)), r"agree in block, .*; cut both at the same keys"),
        (
            lambda: online_softmax_step(t(2, 3), *state[1:], t(3, 4), t(4, 2)),
            r"got \(2, 3\) and \(3,\); pass what the step",
        ),
    ):
        with pytest.raises(ValueError, match=words):
            call()
