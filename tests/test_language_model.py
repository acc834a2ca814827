"""course_lib.language_model: the block of today against PyTorch and `transformers`, its loss, and what models need."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from llama_oracle import OURS, exact, llama, our_names
from oracles import CLOSE, gradients, leaf, randomise
from torch import nn
from torch.testing import assert_close

from course_lib.efficiency import grouped_query_attention
from course_lib.language_model import (
    LanguageBlock,
    LanguageModel,
    RMSNorm,
    RotaryAttention,
    SwiGLU,
    dequantise,
    induction_score,
    load_balancing_loss,
    lora,
    next_token_loss,
    rms_norm,
    swiglu,
)
from course_lib.transformer import FeedForward

TOKENS = torch.randint(0, OURS["vocab_size"], (3, 11), generator=torch.Generator().manual_seed(2))


def same_gradients(output, expected, ours, theirs):
    """Two computations give the same numbers and the same gradients of pairs of leaves."""
    assert_close(output, expected, **CLOSE)
    direction = torch.randn_like(output)
    found = torch.autograd.grad(output, ours, direction)
    wanted = torch.autograd.grad(expected, theirs, direction)
    for one, other in zip(found, wanted, strict=True):
        assert_close(one, other, **CLOSE)


# rms_norm


def test_rms_norm_by_hand():
    """3 and 4 have the mean square 12.5."""
    x, gain = torch.tensor([[3.0, 4.0]]), torch.tensor([1.0, 2.0])
    assert_close(rms_norm(x, gain, 0.0), torch.tensor([[3.0, 8.0]]) / math.sqrt(12.5))
    assert_close(rms_norm(x, gain, 3.5), torch.tensor([[0.75, 2.0]]))  # √(12.5 + 3.5) = 4


@pytest.mark.parametrize("shape", [(7,), (3, 7), (2, 3, 5)])
def test_rms_norm_is_that_of_pytorch(shape):
    x, gain = leaf(*shape), leaf(shape[-1])
    same_gradients(rms_norm(x, gain, 1e-3), F.rms_norm(x, shape[-1:], gain, 1e-3), (x, gain), (x, gain))


def test_rms_norm_keeps_a_direction_and_ignores_its_length():
    x, gain = leaf(5, 7), torch.ones(7).double()
    assert_close(rms_norm(x, gain, 0.0), rms_norm(13 * x, gain, 0.0), **CLOSE)
    assert_close((rms_norm(x, gain, 0.0) ** 2).mean(-1), torch.ones(5).double(), **CLOSE)


def test_an_rms_norm_starts_with_a_gain_of_one_and_is_that_of_pytorch():
    x, ours, theirs = leaf(3, 7), RMSNorm(7, 1e-2).double(), nn.RMSNorm(7, 1e-2).double()
    assert_close(ours(x), theirs(x), **CLOSE)
    ours.gain = theirs.weight = randomise(theirs).weight
    same_gradients(ours(x), theirs(x), (x, ours.gain), (x, theirs.weight))


# swiglu


def test_swiglu_by_hand():
    """A gate of 0 lets nothing pass, and silu(log 3) = log 3 · 3/4."""
    x = torch.tensor([[1.0, 0.0], [0.0, 1.0]])
    w_gate, w_up, w_down = torch.tensor([[0.0, math.log(3)]]), torch.tensor([[5.0, 2.0]]), torch.tensor([[1.0], [4.0]])
    passed = 0.75 * math.log(3) * 2
    assert_close(swiglu(x, w_gate, w_up, w_down), torch.tensor([[0.0, 0.0], [passed, 4 * passed]]))


def test_swiglu_is_the_network_of_a_llama():
    theirs = llama().double().model.layers[0].mlp
    ours = SwiGLU(60, 31).double()
    weights = [theirs.gate_proj.weight, theirs.up_proj.weight, theirs.down_proj.weight]
    ours.load_state_dict(dict(zip(["gate.weight", "up.weight", "down.weight"], weights, strict=True)))
    x = leaf(2, 5, 60)
    same_gradients(ours(x), theirs(x), (x, *ours.parameters()), (x, *weights))
    same_gradients(swiglu(x, *weights), theirs(x), (x, *weights), (x, *weights))


def test_two_thirds_of_the_width_give_a_feed_forward_network_as_many_matrix_entries():
    def entries(module):
        return sum(p.numel() for p in module.parameters() if p.dim() == 2)

    assert entries(SwiGLU(12, 32)) == entries(FeedForward(12, 48))


# RotaryAttention, LanguageBlock, LanguageModel


def pair():
    """Ours and theirs with the same random weights."""
    theirs = exact(llama())
    ours = LanguageModel(**OURS).double()
    ours.load_state_dict(our_names(theirs.state_dict()))
    return ours, theirs


def same_parameters(ours, theirs):
    wanted = our_names({name: p.grad for name, p in theirs.named_parameters()})
    assert gradients(ours).keys() == wanted.keys()
    for name, gradient in gradients(ours).items():
        assert_close(gradient, wanted[name], **CLOSE)


def test_attention_by_hand_without_a_turn_at_position_0():
    """The first position sees itself alone; the second weighs two keys, its own turned as far as its query."""
    attention = RotaryAttention(2, 1, 1)
    with torch.no_grad():
        for project in (attention.q_proj, attention.k_proj, attention.v_proj, attention.out_proj):
            project.weight.copy_(torch.eye(2))
    x = torch.tensor([[[1.0, 0.0], [1.0, 0.0]]])
    output, weights = attention(x)
    own, other = math.exp(1 / math.sqrt(2)), math.exp(math.cos(1.0) / math.sqrt(2))  # scores q · k / √2
    assert_close(weights, torch.tensor([[[[1.0, 0.0], [other / (own + other), own / (own + other)]]]]))
    assert_close(output, x)


def test_attention_is_that_of_a_llama():
    ours, theirs = pair()
    attention, other = ours.layers[1].attention, theirs.model.layers[1].self_attn
    x = leaf(3, 11, 60)
    turns = theirs.model.rotary_emb(x, torch.arange(11)[None])
    expected, _ = other(x, turns, attention_mask=None)
    ours_leaves = (x, attention.v_proj.weight, attention.out_proj.weight)
    same_gradients(attention(x)[0], expected, ours_leaves, (x, other.v_proj.weight, other.o_proj.weight))


def test_weights_of_attention_are_causal_and_make_the_output():
    attention = randomise(RotaryAttention(60, 6, 2)).double()
    x = torch.randn(3, 11, 60).double()
    output, weights = attention(x)
    assert weights.shape == (3, 6, 11, 11)
    assert_close(weights.sum(-1), torch.ones(3, 6, 11).double(), **CLOSE)
    assert not weights.triu(1).any()
    values = attention.v_proj(x).unflatten(-1, (2, 10)).transpose(1, 2).repeat_interleave(3, dim=1)
    assert_close(attention.out_proj((weights @ values).transpose(1, 2).flatten(2)), output, **CLOSE)


def test_the_last_position_attends_as_in_grouped_query_attention():
    """At position 0 nothing is turned, and all keys there: one position at a time."""
    attention = randomise(RotaryAttention(60, 6, 2)).double()
    x = torch.randn(3, 1, 60).double()
    q, k, v = (
        project(x).unflatten(-1, (-1, 10)).transpose(1, 2)
        for project in (attention.q_proj, attention.k_proj, attention.v_proj)
    )
    expected = grouped_query_attention(q, k, v).transpose(1, 2).flatten(2)
    assert_close(attention(x)[0], attention.out_proj(expected), **CLOSE)


def test_attention_depends_on_distances_only():
    """A dummy past whose weights are removed moves all positions; scores of the others stay as they are."""
    attention = randomise(RotaryAttention(20, 2, 1)).double()
    x = torch.randn(1, 7, 20).double()
    later = attention(torch.cat((torch.randn(1, 5, 20).double(), x), dim=1))[1][:, :, 5:, 5:]
    assert_close(later / later.sum(-1, keepdim=True), attention(x)[1], **CLOSE)


def test_a_block_is_that_of_a_llama():
    ours, theirs = pair()
    x = leaf(3, 11, 60)
    turns = theirs.model.rotary_emb(x, torch.arange(11)[None])
    expected = theirs.model.layers[0](x, position_embeddings=turns, attention_mask=None)
    block, other = ours.layers[0], theirs.model.layers[0]
    same_gradients(
        block(x),
        expected,
        (x, block.norm1.gain, block.norm2.gain, block.feed_forward.up.weight),
        (x, other.input_layernorm.weight, other.post_attention_layernorm.weight, other.mlp.up_proj.weight),
    )


def test_the_model_is_a_llama_in_values_and_all_gradients():
    ours, theirs = pair()
    logits, expected = ours(TOKENS), theirs(TOKENS).logits
    assert_close(logits, expected, **CLOSE)
    direction = torch.randn_like(expected)
    logits.backward(direction)
    expected.backward(direction)
    same_parameters(ours, theirs)


def test_a_model_starts_with_small_logits():
    logits = LanguageModel(997, 60, num_layers=3, num_heads=6, num_kv_heads=2, d_ff=31)(TOKENS)
    assert next_token_loss(logits, TOKENS).item() == pytest.approx(math.log(997), abs=0.1)


@pytest.mark.parametrize("pieces", [[11], [1] * 11, [7, 1, 3], [3, 8]])
def test_a_cache_changes_nothing(pieces):
    model = randomise(LanguageModel(**OURS)).double()
    cache = {}
    parts = [model(part, cache) for part in TOKENS.split(pieces, dim=1)]
    assert_close(torch.cat(parts, dim=1), model(TOKENS), **CLOSE)
    assert list(cache) == [layer.attention for layer in model.layers]
    assert all(k.shape == v.shape == (3, 2, 11, 10) for k, v in cache.values())


@pytest.mark.parametrize(("cache", "message"), [([], "empty at first, got list"), (3, "empty at first, got int")])
def test_a_cache_is_a_dict(cache, message, unchecked):
    with pytest.raises(ValueError, match=f"cache must be a dict, {message}"):
        LanguageModel(**OURS)(TOKENS, cache)


def test_a_cache_belongs_to_one_batch():
    model, cache = LanguageModel(**OURS), {}
    model(TOKENS, cache)
    with pytest.raises(ValueError, match="cache must be of a batch of 2, as x is, got 3"):
        model(TOKENS[:2], cache)


def test_a_model_leaves_its_tokens_alone_and_keeps_no_cache_of_its_own():
    model = LanguageModel(**OURS)
    tokens = TOKENS.clone()
    assert_close(model(tokens), model(tokens))
    assert torch.equal(tokens, TOKENS)


def test_no_parameter_is_a_bias():
    assert not [name for name, _ in LanguageModel(**OURS).named_parameters() if "bias" in name]


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ((10, 3, 1), r"num_heads must divide d_model = 1\d into even widths, got 3"),
        ((15, 3, 1), r"num_heads must divide d_model = 1\d into even widths, got 3"),
        ((60, 6, 4), "num_kv_heads must divide num_heads = 6, got 4"),
    ],
)
def test_heads_that_do_not_fit_are_refused(sizes, message):
    for build in (RotaryAttention, lambda *heads: LanguageBlock(*heads, 5)):
        with pytest.raises(ValueError, match=message):
            build(*sizes)


def test_ids_outside_the_vocabulary_are_refused():
    with pytest.raises(ValueError, match=r"tokens must be ids in 0 … 52 \(the vocabulary\), got .* 53"):
        LanguageModel(**OURS)(torch.tensor([[3, 53]]))


# next_token_loss


def test_the_loss_by_hand():
    """Probabilities 1/2 and 1/4 of the right next tokens; the last logits and the first token do not count."""
    logits = torch.tensor([[[0.5, 0.25, 0.25], [0.25, 0.25, 0.5], [0.9, 0.05, 0.05]]]).log()
    tokens = torch.tensor([[2, 0, 1]])
    assert_close(next_token_loss(logits, tokens), torch.tensor(math.log(8) / 2))
    assert_close(next_token_loss(logits, tokens, torch.tensor([[True, True, False]])), torch.tensor(math.log(2)))


def test_the_loss_is_the_cross_entropy_of_the_shifted_tokens_and_that_of_transformers():
    logits, tokens = leaf(3, 11, 53), TOKENS
    expected = F.cross_entropy(logits[:, :-1].flatten(0, 1), tokens[:, 1:].flatten())
    same_gradients(next_token_loss(logits, tokens), expected, (logits,), (logits,))
    counted = torch.rand(3, 11) < 0.6
    labels = tokens.masked_fill(~counted, -100)
    expected = F.cross_entropy(logits[:, :-1].flatten(0, 1), labels[:, 1:].flatten())
    same_gradients(next_token_loss(logits, tokens, counted), expected, (logits,), (logits,))
    theirs = exact(llama())
    out = theirs(tokens, labels=tokens)
    assert_close(next_token_loss(out.logits, tokens).float(), out.loss.float())


def test_a_loss_of_nothing_is_refused(unchecked):
    logits = torch.zeros(1, 3, 5)
    with pytest.raises(ValueError, match="tokens must have one after the first that is counted"):
        next_token_loss(logits, torch.zeros(1, 3).long(), torch.tensor([[True, False, False]]))
    with pytest.raises(ValueError, match="tokens must have one after the first that is counted"):
        next_token_loss(logits[:, :1], torch.zeros(1, 1).long())


# dequantise


def test_dequantise_by_hand():
    """0x3800 is the float16 0.5; the lower half of each byte belongs to the first sixteen numbers."""
    eight = [0x00, 0x38, *range(-16, 16)]
    found = dequantise(torch.tensor([eight]).to(torch.int8).view(torch.uint8), "Q8_0")
    assert_close(found, torch.arange(-16, 16)[None] * 0.5)
    four = torch.tensor([[0x00, 0x38, *[0x0F] * 15, 0x90]], dtype=torch.uint8)
    assert_close(dequantise(four, "Q4_0"), torch.tensor([[3.5] * 15 + [-4.0] + [-4.0] * 15 + [0.5]]))


@pytest.mark.parametrize("kind", ["Q4_0", "Q8_0"])
def test_dequantise_is_the_arithmetic_of_each_number(kind):
    """Number by number, as ggml's C code has it."""
    rows = np.random.default_rng(3).integers(0, 256, (7, 18 if kind == "Q4_0" else 34), dtype=np.uint8)
    rows[:, 1] &= 0x3B  # a finite scale
    expected = np.zeros((7, 32), np.float32)
    for n, row in enumerate(rows):
        scale = np.frombuffer(row[:2].tobytes(), "<f2")[0].astype(np.float32)
        for j in range(32):
            if kind == "Q8_0":
                q = int(row[2 + j]) - 256 * (row[2 + j] > 127)
            else:
                q = (int(row[2 + j % 16]) // (1 if j < 16 else 16)) % 16 - 8
            expected[n, j] = scale * q
    assert np.array_equal(dequantise(torch.from_numpy(rows), kind).numpy(), expected)


@pytest.mark.parametrize(
    ("blocks", "kind", "message"),
    [
        (torch.zeros(2, 18, dtype=torch.uint8), "Q5_K", "kind must be Q4_0 or Q8_0, got 'Q5_K'"),
        (
            torch.zeros(2, 34, dtype=torch.uint8),
            "Q4_0",
            r"blocks must be bytes, uint8 \(n, 18\) .* got torch.uint8 \(2, 34\)",
        ),
        (torch.zeros(2, 34), "Q8_0", r"uint8 \(n, 34\) .* got torch.float32 \(2, 34\)"),
    ],
)
def test_other_blocks_are_refused(blocks, kind, message):
    with pytest.raises(ValueError, match=message):
        dequantise(blocks, kind)


# induction_score


def test_a_perfect_induction_head_scores_one():
    """Tokens a b c a b c: each of the last three looks at what followed it before, at 1, 2 and 3."""
    weights = torch.eye(6)
    weights[3:] = torch.eye(6)[[1, 2, 3]]
    assert induction_score(weights, 3) == 1
    assert induction_score(torch.eye(6), 3) == 0
    weights[5] = torch.full((6,), 1 / 6)
    assert_close(induction_score(weights, 3), torch.tensor((1 + 1 + 1 / 6) / 3))


def test_the_score_is_the_mean_over_the_second_half_of_each_head():
    weights = torch.randn(2, 3, 5, 17, 17).double().tril().softmax(-1)  # a first token and two periods of 7, or of 8
    for period in (7, 8):
        queries = range(17 - period, 17)
        expected = torch.stack([weights[..., i, i - period + 1] for i in queries]).mean(0)
        assert_close(induction_score(weights, period), expected, **CLOSE)


def test_a_sequence_shorter_than_two_periods_is_refused():
    with pytest.raises(ValueError, match="period must be at most 3, got 4; the last 2 · period tokens"):
        induction_score(torch.eye(7), 4)


# lora


def test_lora_by_hand():
    """W x = 2, A x = 3, B A x = 12, times 4 / 1."""
    x, weight, a, b = torch.tensor([1.0]), torch.tensor([[2.0]]), torch.tensor([[3.0]]), torch.tensor([[4.0]])
    assert_close(lora(x, weight, a, b, 4.0), torch.tensor([50.0]))


def test_merged_equals_unmerged_in_values_and_gradients():
    x, weight, a, b = leaf(3, 5, 7), leaf(11, 7), leaf(2, 7), leaf(11, 2)
    merged = F.linear(x, weight + 1.5 / 2 * b @ a)
    same_gradients(lora(x, weight, a, b, 1.5), merged, (x, weight, a, b), (x, weight, a, b))
    assert_close(lora(x, weight, a, torch.zeros(11, 2).double(), 1.5), F.linear(x, weight), **CLOSE)


def test_a_rank_of_zero_is_refused():
    with pytest.raises(ValueError, match=r"a must have at least one row, got \(0, 7\)"):
        lora(torch.zeros(7), torch.zeros(3, 7), torch.zeros(0, 7), torch.zeros(3, 0), 1.0)


# load_balancing_loss


def test_the_loss_of_a_router_by_hand():
    """f = (3/4, 1/4) and P = (5/8, 3/8): 2 · (15/32 + 3/32)."""
    probs = torch.tensor([[0.75, 0.25]] * 3 + [[0.25, 0.75]])
    assert_close(load_balancing_loss(probs, torch.tensor([0, 0, 0, 1])), torch.tensor(2 * 18 / 32))
    assert load_balancing_loss(torch.full((3, 3), 1 / 3), torch.arange(3)) == pytest.approx(1)
    assert load_balancing_loss(torch.eye(5)[[2] * 7], torch.full((7,), 2)) == 5


def test_the_loss_of_a_router_is_that_of_transformers():
    from transformers.models.switch_transformers.modeling_switch_transformers import load_balancing_loss_func

    probs = torch.randn(1, 13, 5).softmax(-1)
    chosen = probs.argmax(-1)
    expected = load_balancing_loss_func(probs, chosen[..., None])
    assert_close(load_balancing_loss(probs[0], chosen[0]), expected.squeeze())


def test_gradients_of_the_loss_lower_the_probability_of_the_busy_expert():
    probs = leaf(4, 3).detach().softmax(-1).requires_grad_()
    load_balancing_loss(probs, torch.tensor([1, 1, 1, 2])).backward()
    assert_close(probs.grad, (torch.tensor([0.0, 3.0, 1.0]) * 3 / 16).double().expand(4, 3), **CLOSE)


@pytest.mark.parametrize("chosen", [[0, 3], [-1, 0]])
def test_an_expert_that_does_not_exist_is_refused(chosen):
    with pytest.raises(ValueError, match=rf"chosen must be experts 0 … 2, got {min(chosen)} … {max(chosen)}"):
        load_balancing_loss(torch.full((2, 3), 1 / 3), torch.tensor(chosen))
