"""course_kit.interpret.interventions: heads switched off, outputs recorded and put into another run."""

from __future__ import annotations

import copy

import pytest
import torch
from oracles import CLOSE, gradients, randomise
from torch import nn
from torch.testing import assert_close

from course_kit.interpret.interventions import (
    heads_off,
    patch_heads,
    patch_outputs,
    record_heads,
    record_outputs,
)
from course_kit.nn import (
    LanguageModel,
    MultiHeadAttention,
    Transformer,
    TransformerConfig,
    TransformerEncoder,
    named_attentions,
    record_attention,
)

SIZES = {"vocab_size": 17, "d_model": 22, "num_heads": 2, "num_layers": 3, "d_ff": 13, "dropout": 0.0}
SELF, CROSS = "encoder.layers.1.self_attention", "decoder.layers.2.cross_attention"


def transformer(norm="pre"):
    return randomise(Transformer(TransformerConfig(**SIZES, norm=norm))).double().eval()


@pytest.fixture
def model():
    return transformer()


@pytest.fixture
def runs():
    """Source and target of two runs: the second sentence of the batch is padded."""
    source = torch.tensor([[3, 4, 5, 6, 7], [8, 9, 10, 0, 0]])
    target = torch.tensor([[1, 3, 5, 7, 11, 13, 16], [1, 2, 4, 6, 0, 0, 0]])
    return (source, target), (source + (source > 0), target)


def names_of_hooks(model):
    return [n for n, m in model.named_modules() if m._forward_hooks or m._forward_pre_hooks]


# --- heads off --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("need_weights", [True, False])
def test_a_head_switched_off_by_hand(need_weights):
    # As in test_multi_head: the heads bring 5 and 15, the output projection swaps them and adds (1, −1).
    module = MultiHeadAttention(2, 2)
    for projection in (module.q_proj, module.k_proj, module.v_proj):
        projection.weight.data = torch.eye(2)
    module.out_proj.weight.data = torch.tensor([[0.0, 1.0], [1.0, 0.0]])
    module.out_proj.bias.data = torch.tensor([1.0, -1.0])
    query, key = torch.tensor([[[1.0986123, 0.0]]]), torch.tensor([[[1.0, 0.0], [0.0, 1.0]]])
    value = torch.tensor([[[4.0, 10.0], [8.0, 20.0]]])
    for off, expected in (([], [16.0, 4.0]), ([0], [16.0, -1.0]), ([1], [1.0, 4.0]), ([0, 1], [1.0, -1.0])):
        with heads_off(module, {"": off}):
            output, _ = module(query, key, value, need_weights=need_weights)
        assert_close(output[0, 0], torch.tensor(expected))


@pytest.mark.parametrize("norm", ["pre", "post"])
def test_a_model_with_heads_off_is_one_whose_output_projections_have_no_columns_for_them(norm, runs):
    """Values and gradients; the gradients of the missing columns are zero in both."""
    ours = transformer(norm)
    theirs, off = copy.deepcopy(ours), {SELF: [1], CROSS: [0, 1]}
    masks = {}
    for name, heads in off.items():
        weight = theirs.get_submodule(name).out_proj.weight
        masks[name] = torch.ones_like(weight)
        for head in heads:
            masks[name][:, 11 * head : 11 * (head + 1)] = 0
        weight.data *= masks[name]
    with heads_off(ours, off):
        output = ours(*runs[0])
    expected = theirs(*runs[0])
    assert_close(output, expected, **CLOSE)
    assert not torch.allclose(output, ours(*runs[0]))
    grad = torch.randn_like(output)
    output.backward(grad)
    expected.backward(grad)
    found, wanted = gradients(ours), gradients(theirs)
    for name, mask in masks.items():
        wanted[f"{name}.out_proj.weight"] = wanted[f"{name}.out_proj.weight"] * mask
    assert_close(found, wanted, rtol=0, atol=1e-8)  # of gradients of a few hundred


class TwoAttentions(nn.Module):
    """Self-attention of two heads, then of three."""

    def __init__(self):
        super().__init__()
        self.first, self.second = MultiHeadAttention(6, 2), MultiHeadAttention(6, 3)

    def forward(self, x):
        x = self.first(x, x, x)[0]
        return self.second(x, x, x)[0]


def test_attentions_may_have_different_numbers_of_heads():
    ours, x = randomise(TwoAttentions()).double(), torch.randn(2, 5, 6, dtype=torch.float64)
    theirs = copy.deepcopy(ours)
    theirs.first.out_proj.weight.data[:, 3:6] = 0  # head 1 of three features
    theirs.second.out_proj.weight.data[:, [0, 1, 4, 5]] = 0  # heads 0 and 2 of two features
    with heads_off(ours, {"first": [1], "second": [0, 2]}):
        assert_close(ours(x), theirs(x), **CLOSE)
    with record_heads(ours) as heads:
        ours(x)
    assert heads["first"].shape == (2, 2, 5, 3)
    assert heads["second"].shape == (2, 3, 5, 2)


def test_heads_that_are_off_still_have_maps_and_work_step_by_step(model, runs):
    (source, target), _ = runs
    with heads_off(model, {CROSS: [0], "decoder.layers.0.self_attention": [1]}), record_attention(model) as maps:
        expected = model(source[:1], target[:1])
    assert_close(maps[CROSS].sum(-1), torch.ones(1, 2, 7, dtype=torch.float64))
    with heads_off(model, {CROSS: [0], "decoder.layers.0.self_attention": [1]}), torch.no_grad():
        cache = model.begin(source[:1])
        steps = [model.step(target[:1, i : i + 1], cache) for i in range(7)]
    assert_close(torch.cat(steps, dim=1), expected, rtol=0, atol=1e-9)


def test_blocks_nest_and_leave_nothing_behind(model, runs):
    before = model(*runs[0])
    with heads_off(model, {SELF: [0]}), heads_off(model, {SELF: [1]}):
        both = model(*runs[0])
    with heads_off(model, {SELF: [0, 1]}):
        assert_close(model(*runs[0]), both, **CLOSE)
    with pytest.raises(ZeroDivisionError), heads_off(model, {SELF: [0]}):
        raise ZeroDivisionError
    assert torch.equal(model(*runs[0]), before)
    assert names_of_hooks(model) == []


@pytest.mark.parametrize(
    "build",
    [
        lambda: TransformerEncoder(TransformerConfig(**SIZES)),
        lambda: LanguageModel(TransformerConfig(**SIZES, positions="alibi")),
    ],
)
def test_every_model_of_the_course_can_be_changed(build):
    model, tokens = randomise(build()).eval(), torch.tensor([[3, 5, 7, 11]])
    name = next(iter(named_attentions(model)))
    with heads_off(model, {name: [1]}):
        changed = model(tokens)
    assert not torch.allclose(changed, model(tokens))


def test_names_and_heads_that_do_not_exist_are_errors_before_anything_is_changed(model):
    with pytest.raises(
        KeyError, match=r"expected the name of an attention, one of encoder\.layers\.0\.self_attention, "
    ):
        heads_off(model, {SELF: [0], "encoder": [0]}).__enter__()
    with pytest.raises(ValueError, match=r"self_attention has the heads 0 … 1, got \[2, -1\]"):
        heads_off(model, {SELF: [0, 2, -1]}).__enter__()
    with pytest.raises(ValueError, match=r"cross_attention has the heads 0 … 1, got \[2\]"):
        patch_heads(model, {(CROSS, 2): torch.zeros(1)}).__enter__()
    with pytest.raises(KeyError, match=r"Transformer has no sub-module 'decoder\.layers\.9'"):
        patch_outputs(model, {"decoder.layers.9": torch.zeros(1)}).__enter__()
    with pytest.raises(KeyError, match="no sub-module 'decoding'"):
        record_outputs(model, ["decoder", "decoding"]).__enter__()
    with pytest.raises(ValueError, match=r"at least one course_kit\.nn\.MultiHeadAttention, got Linear with none"):
        heads_off(nn.Linear(2, 3), {"": [0]}).__enter__()
    with pytest.raises(ValueError, match="got Linear with none"):
        record_heads(nn.Linear(2, 3)).__enter__()
    assert names_of_hooks(model) == []


@pytest.mark.parametrize(
    "block",
    [
        lambda model: heads_off(model, {SELF: [0], CROSS: [1]}),
        record_heads,
        lambda model: patch_heads(model, {(SELF, 0): torch.zeros(2, 5, 11), (CROSS, 1): torch.zeros(2, 7, 11)}),
        lambda model: record_outputs(model, ["encoder", "decoder"]),
        lambda model: patch_outputs(model, {"encoder": torch.zeros(2, 5, 22), "decoder": torch.zeros(2, 7, 22)}),
    ],
)
def test_every_hook_is_removed_after_the_block_and_after_an_error_in_it(block, model, runs):
    with block(model):
        model(*runs[0])
        assert len(names_of_hooks(model)) >= 2
    assert names_of_hooks(model) == []
    with pytest.raises(ZeroDivisionError), block(model):
        raise ZeroDivisionError
    assert names_of_hooks(model) == []


# --- recording --------------------------------------------------------------------------------------------------------


def test_recorded_heads_are_weights_times_values(model, runs):
    with record_heads(model) as heads, record_attention(model) as maps:
        expected = model(*runs[0])
    assert set(heads) == set(maps) == set(named_attentions(model))
    memory = model.encode(runs[0][0])
    attention = model.get_submodule(CROSS)
    values = attention.v_proj(memory).unflatten(-1, (2, 11)).transpose(1, 2)  # (B, H, L_source, d_head)
    assert_close(heads[CROSS], (maps[CROSS] @ values).detach(), **CLOSE)
    assert_close(model(*runs[0]), expected, **CLOSE)
    assert not any(output.requires_grad for output in heads.values())


def test_of_two_runs_in_one_block_the_latest_is_recorded(model, runs):
    one, other = runs
    with record_heads(model) as heads, record_outputs(model, ["encoder"]) as outputs:
        model(*one)
        model(*other)
    with record_heads(model) as expected:
        model(*other)
    assert_close(heads[SELF], expected[SELF], **CLOSE)
    assert_close(outputs["encoder"], model.encode(other[0]).detach(), **CLOSE)


def test_recorded_outputs_are_what_the_submodules_return(model, runs):
    names = ["source_embedding", "encoder.layers.0", "encoder", SELF, "output"]
    with record_outputs(model, iter(names)) as outputs:
        logits = model(*runs[0])
    source = runs[0][0]
    mask = (source != 0)[:, None, None]
    embedded = model.source_embedding(source)
    assert_close(outputs["source_embedding"], embedded.detach(), **CLOSE)
    first = model.encoder.layers[0](embedded, mask)
    assert_close(outputs["encoder.layers.0"], first.detach(), **CLOSE)
    normed = model.encoder.layers[1].norm1(first)
    assert_close(
        outputs[SELF], model.encoder.layers[1].self_attention(normed, normed, normed, mask)[0].detach(), **CLOSE
    )
    assert torch.equal(outputs["output"], logits.detach())
    assert not any(output.requires_grad for output in outputs.values())


# --- patching ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["encoder", "source_embedding", "encoder.layers.2"])
def test_with_all_of_the_source_patched_the_other_run_comes_out(name, model, runs):
    one, other = runs
    expected = model(*other)
    with record_outputs(model, [name]) as outputs:
        model(*other)
    with patch_outputs(model, outputs):
        patched = model(*one)
    assert_close(patched, expected, **CLOSE)  # the padding mask is that of both
    assert not torch.allclose(patched, model(*one))


def test_a_patch_of_one_position_changes_this_position_alone(model, runs):
    one, other = runs
    names = ["encoder.layers.0", SELF]
    with record_outputs(model, names) as clean:
        model(*one)
    with record_outputs(model, names) as outputs:
        model(*other)
    for name in names:
        for positions in (3, [1, 3], slice(2, None)):
            with (
                patch_outputs(model, {name: outputs[name]}, positions=positions),
                record_outputs(model, [name]) as seen,
            ):
                model(*one)
            expected = clean[name].clone()
            expected[:, positions] = outputs[name][:, positions]
            assert_close(seen[name], expected, **CLOSE)


def test_a_run_patched_with_itself_is_the_same_run(model, runs):
    names = ["encoder.layers.1", SELF, CROSS, "decoder.layers.0", "decoder.layers.0.feed_forward"]
    with record_outputs(model, names) as outputs, record_heads(model) as heads:
        expected = model(*runs[0])
    patches = {(name, head): output[:, head] for name, output in heads.items() for head in range(2)}
    with patch_outputs(model, outputs), patch_heads(model, patches):
        assert_close(model(*runs[0]), expected, **CLOSE)


@pytest.mark.parametrize("positions", [slice(None), 4, [0, 5]])
def test_a_patched_head_is_that_of_the_other_run_and_the_others_are_not(positions, model, runs):
    one, other = runs
    with record_heads(model) as clean:
        model(*one)
    with record_heads(model) as heads:
        model(*other)
    with patch_heads(model, {(CROSS, 1): heads[CROSS][:, 1]}, positions=positions), record_heads(model) as seen:
        model(*one)
    expected = clean[CROSS].clone()
    expected[:, 1, positions] = heads[CROSS][:, 1, positions]
    assert_close(seen[CROSS], expected, **CLOSE)
    assert not torch.allclose(seen[CROSS], clean[CROSS])


@pytest.mark.parametrize("pairs", [[(SELF, 0), (SELF, 1)], [(SELF, 1), (SELF, 0)], [(SELF, 1), (CROSS, 0)]])
def test_each_of_several_patched_heads_gets_its_own_patch(pairs, model, runs):
    one, other = runs
    with record_heads(model) as heads:
        model(*other)
    with patch_heads(model, {(n, h): heads[n][:, h] for n, h in pairs}), record_heads(model) as seen:
        model(*one)
    for name, head in pairs:
        assert_close(seen[name][:, head], heads[name][:, head], **CLOSE)


def test_what_a_patch_replaces_is_left_as_it_was_where_it_was_recorded(model, runs):
    """Recording first keeps a view of what the module computed; the patch must not write into it."""
    one, other = runs
    with record_heads(model) as clean_heads, record_outputs(model, [SELF]) as clean:
        model(*one)
    with record_heads(model) as heads, record_outputs(model, [SELF]) as outputs:
        model(*other)
    with record_heads(model) as before, patch_heads(model, {(SELF, 1): heads[SELF][:, 1]}):
        model(*one)
    assert_close(before[SELF], clean_heads[SELF], **CLOSE)
    with record_outputs(model, [SELF]) as before, patch_outputs(model, outputs):
        model(*one)
    assert_close(before[SELF], clean[SELF], **CLOSE)


@pytest.mark.parametrize("positions", [slice(None), 3, [0, 4]])
def test_values_and_gradients_of_a_patched_encoder_are_those_of_a_decoder_given_the_patched_memory(
    positions, model, runs
):
    """No gradient reaches what was replaced."""
    one, other = runs
    patch = model.encode(other[0]).detach()
    with patch_outputs(model, {"encoder": patch}, positions=positions):
        patched = model(*one)
    patched.square().sum().backward()
    found = {name: torch.zeros_like(p) if p.grad is None else p.grad for name, p in model.named_parameters()}
    model.zero_grad()
    kept = torch.ones(2, 5, 1, dtype=torch.float64)
    kept[:, positions] = 0
    expected = model.decode(one[1], kept * model.encode(one[0]) + (1 - kept) * patch, one[0])
    assert_close(patched, expected, **CLOSE)
    expected.square().sum().backward()
    for name, wanted in gradients(model).items():
        assert_close(found[name], wanted, rtol=1e-9, atol=1e-8)  # of gradients of a few hundred


def test_a_patched_attention_still_returns_its_weights(model, runs):
    with record_attention(model) as expected:
        model(*runs[0])
    with patch_outputs(model, {SELF: torch.zeros(2, 5, 22, dtype=torch.float64)}), record_attention(model) as maps:
        model(*runs[0])
    assert_close(maps[SELF], expected[SELF], **CLOSE)


def test_a_head_patched_with_zeros_is_switched_off(model, runs):
    with heads_off(model, {CROSS: [0]}):
        expected = model(*runs[0])
    with patch_heads(model, {(CROSS, 0): torch.zeros(2, 7, 11, dtype=torch.float64)}):
        assert_close(model(*runs[0]), expected, **CLOSE)


def test_all_heads_and_the_residual_patched_together_give_the_layer_of_the_other_run(model, runs):
    """The parts of a layer add up: its input and both sub-layers of the other run make its output."""
    one, other = runs
    parts = ["encoder.layers.0", SELF, "encoder.layers.1.feed_forward"]
    with record_outputs(model, [*parts, "encoder.layers.1"]) as outputs:
        model(*other)
    with (
        patch_outputs(model, {name: outputs[name] for name in parts}),
        record_outputs(model, ["encoder.layers.1"]) as seen,
    ):
        model(*one)
    assert_close(seen["encoder.layers.1"], outputs["encoder.layers.1"], **CLOSE)


def test_a_patch_of_another_shape_is_an_error(model, runs):
    with (
        patch_outputs(model, {"encoder.layers.0": torch.zeros(2, 3, 22)}),
        pytest.raises(
            ValueError, match=r"patch of encoder.layers.0 must have the shape .*\(2, 5, 22\), got \(2, 3, 22\)"
        ),
    ):
        model(*runs[0])
    with (
        patch_outputs(model, {"encoder": torch.zeros(1, 5, 22)}),
        pytest.raises(ValueError, match=r"\(2, 5, 22\), got \(1, 5, 22\); both runs need the same batch size"),
    ):
        model(*runs[0])
    with (
        patch_heads(model, {(CROSS, 1): torch.zeros(2, 7, 22)}),
        pytest.raises(ValueError, match=r"patch of head 1 of decoder.*\(2, 7, 11\), got \(2, 7, 22\)"),
    ):
        model(*runs[0])


def test_a_part_that_is_not_called_cannot_be_patched_silently(model, runs):
    """With gradients, self-attention computes its three projections as one product, without calling them."""
    name = f"{SELF}.v_proj"
    message = rf"Transformer did not call {name}, so nothing was patched there"
    with pytest.raises(ValueError, match=message), patch_outputs(model, {name: torch.zeros(2, 5, 22)}):
        model(*runs[0])
    both = {"encoder": torch.zeros(2, 5, 22), name: torch.zeros(2, 5, 22)}  # the first is called
    with pytest.raises(ValueError, match=message), patch_outputs(model, both):
        model(*runs[0])
    with pytest.raises(ZeroDivisionError), patch_outputs(model, {name: torch.zeros(2, 5, 22)}):
        raise ZeroDivisionError  # the error of the block is not hidden
