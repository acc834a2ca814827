"""course_kit.chunked_linear_attention against the plain form of the library."""

from __future__ import annotations

import pytest
import torch
from oracles import CLOSE, DTYPES, leaf, no_side_effects
from torch.testing import assert_close

from course_kit.chunked_linear_attention import chunked_linear_attention
from course_lib.efficiency import linear_attention


@pytest.mark.parametrize("batch", [(), (2,), (2, 3)])
@pytest.mark.parametrize("chunk_size", [1, 2, 3, 7, 50])
def test_every_chunk_size_equals_the_plain_form(batch, chunk_size):
    leaves = leaf(*batch, 7, 11), leaf(*batch, 7, 11), leaf(*batch, 7, 3)
    with no_side_effects(*leaves):
        ours = chunked_linear_attention(*leaves, chunk_size=chunk_size)
    plain = linear_attention(*leaves)
    assert_close(ours, plain, **CLOSE)
    upstream = torch.randn_like(ours)
    assert_close(*(torch.autograd.grad(x, leaves, upstream) for x in (ours, plain)), **CLOSE)


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_dtype(dtype):
    inputs = torch.randn(3, 2, 300, 5, dtype=torch.float64).to(dtype)
    ours, wanted = chunked_linear_attention(*inputs), linear_attention(*inputs.double())
    assert ours.dtype == dtype
    within = {torch.float64: 1e-10, torch.float32: 1e-5, torch.float16: 5e-3, torch.bfloat16: 5e-2}[dtype]
    assert_close(ours.double(), wanted, rtol=0, atol=within)


def test_very_negative_features_keep_their_ratio_and_large_ones_have_finite_gradients():
    key, value = torch.tensor([[-30.0], [-31.0]]), torch.tensor([[0.0], [1.0]])
    assert_close(chunked_linear_attention(key, key, value), linear_attention(key, key, value))
    leaves = tuple(torch.full((2, 1), 100.0, requires_grad=True) for _ in range(3))
    gradients = torch.autograd.grad(chunked_linear_attention(*leaves).sum(), leaves)
    assert all(gradient.isfinite().all() for gradient in gradients)


def test_one_query_per_key(unchecked):
    with pytest.raises(ValueError, match=r"query and key must agree in length, got .* one query per key"):
        chunked_linear_attention(torch.randn(5, 2), torch.randn(3, 2), torch.randn(3, 2))
