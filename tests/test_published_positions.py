"""Position codes against the ones of published models, as `transformers` has them."""

import pytest
import torch
from torch.testing import assert_close
from transformers.models.bloom.modeling_bloom import build_alibi_tensor
from transformers.models.gptj.modeling_gptj import apply_rotary_pos_emb, create_sinusoidal_positions

from course_lib import alibi_bias, apply_rotary, causal_mask, masked_softmax

BATCH, HEADS, LENGTH, WIDTH = 2, 3, 7, 10


def test_rotary_equals_that_of_gpt_j():
    """GPT-J turns neighbouring features, as the paper does; Llama turns the two halves, which is another convention."""
    angles = create_sinusoidal_positions(LENGTH, WIDTH)
    sin, cos = (half.expand(BATCH, -1, -1) for half in angles.chunk(2, dim=-1))
    x = torch.randn(BATCH, HEADS, LENGTH, WIDTH, requires_grad=True)
    ours = apply_rotary(x, torch.arange(LENGTH))
    theirs = apply_rotary_pos_emb(x.transpose(1, 2), sin, cos).transpose(1, 2)
    assert_close(ours, theirs, rtol=0, atol=1e-5)  # their angles are float32
    upstream = torch.randn_like(x)
    (our_gradient,) = torch.autograd.grad(ours, x, upstream)
    (their_gradient,) = torch.autograd.grad(theirs, x, upstream)
    assert_close(our_gradient, their_gradient, rtol=0, atol=1e-5)


@pytest.mark.parametrize("num_heads", [2, 4, 16])
def test_alibi_gives_the_weights_of_bloom(num_heads):
    """Theirs adds slope · key position, ours −slope · distance: under a causal mask a constant apart in each row."""
    scores = torch.randn(num_heads, LENGTH, LENGTH, dtype=torch.float64)
    theirs = build_alibi_tensor(torch.ones(1, LENGTH), num_heads, torch.float64)  # (H, 1, L)
    ours = alibi_bias(num_heads, LENGTH).double()
    mask = causal_mask(LENGTH)
    assert_close(masked_softmax(scores + ours, mask), masked_softmax(scores + theirs, mask), rtol=0, atol=1e-6)
