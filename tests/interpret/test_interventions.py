"""course_kit.interpret.interventions: heads switched off, outputs recorded and put into another run."""

from __future__ import annotations

import copy

import pytest
import torch
from oracles import CLOSE, gradients, randomise
from torch import nn
from torch.testing import assert_close

from course_kit.interpret.interventions import heads_off, patch_heads, patch_outputs, record_heads, record_outputs
from course_kit.nn import MultiHeadAttention, Transformer, TransformerConfig, named_attentions, record_attention

SIZES = {"vocab_size": 17, "d_model": 22, "num_heads": 2, "num_layers": 3, "d_ff": 13, "dropout": 0.0}
SELF, CROSS = "encoder.layers.1.self_attention", "decoder.layers.2.cross_attention"
SOURCE = torch.tensor([[3, 4, 5, 6, 7], [8, 9, 10, 0, 0]])
TARGET = torch.tensor([[1, 3, 5, 7, 11, 13, 16], [1, 2, 4, 6, 0, 0, 0]])
ONE, OTHER = (SOURCE, TARGET), (SOURCE + (SOURCE > 0), TARGET)  # two runs
POSITIONS = pytest.mark.parametrize("positions", [slice(None), slice(2, None), 3, [0, 4]])


def transformer(norm="pre"):
    return randomise(Transformer(TransformerConfig(**SIZES, norm=norm))).double().eval()


@pytest.fixture
def model():
    return transformer()


def recorded(model, run, *names):
    """The heads of a run, and what these sub-modules return."""
    with record_heads(model) as heads, record_outputs(model, names) as outputs:
        model(*run)
    return heads, outputs


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
def test_a_model_with_heads_off_is_one_whose_output_projections_have_no_columns_for_them(norm):
    """Values and gradients; the gradients of the missing columns are zero in both."""
    ours = transformer(norm)
    theirs, off, masks = copy.deepcopy(ours), {SELF: [1], CROSS: [0, 1]}, {}
    for name, heads in off.items():
        weight = theirs.get_submodule(name).out_proj.weight
        masks[f"{name}.out_proj.weight"] = mask = torch.ones_like(weight)
        for head in heads:
            mask[:, 11 * head : 11 * (head + 1)] = 0
        weight.data *= mask
    with heads_off(ours, off):
        output = ours(*ONE)
    expected = theirs(*ONE)
    assert_close(output, expected, **CLOSE)
    grad = torch.randn_like(output)
    output.backward(grad)
    expected.backward(grad)
    wanted = {name: gradient * masks.get(name, 1) for name, gradient in gradients(theirs).items()}
    assert_close(gradients(ours), wanted, rtol=0, atol=1e-8)  # of gradients of a few hundred


def test_attentions_may_have_different_numbers_of_heads():
    class TwoAttentions(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second = MultiHeadAttention(6, 2), MultiHeadAttention(6, 3)

        def forward(self, x):
            x = self.first(x, x, x)[0]
            return self.second(x, x, x)[0]

    ours, x = randomise(TwoAttentions()).double(), torch.randn(2, 5, 6, dtype=torch.float64)
    theirs = copy.deepcopy(ours)
    theirs.first.out_proj.weight.data[:, 3:6] = 0  # head 1 of three features
    theirs.second.out_proj.weight.data[:, [0, 1, 4, 5]] = 0  # heads 0 and 2 of two features
    with heads_off(ours, {"first": [1], "second": [0, 2]}):
        assert_close(ours(x), theirs(x), **CLOSE)
    heads, _ = recorded(ours, (x,))
    assert (heads["first"].shape, heads["second"].shape) == ((2, 2, 5, 3), (2, 3, 5, 2))


def test_heads_that_are_off_still_have_maps_and_work_step_by_step(model):
    source, target = SOURCE[:1], TARGET[:1]
    with heads_off(model, {CROSS: [0], "decoder.layers.0.self_attention": [1]}), record_attention(model) as maps:
        expected = model(source, target)
        cross = maps[CROSS]
        with torch.no_grad():
            cache = model.begin(source)
            steps = [model.step(target[:, i : i + 1], cache) for i in range(7)]
    assert_close(cross.sum(-1), torch.ones(1, 2, 7, dtype=torch.float64))
    assert_close(torch.cat(steps, dim=1), expected, rtol=0, atol=1e-9)


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
def test_every_hook_is_removed_after_the_block_and_after_an_error_in_it(block, model):
    before = model(*ONE)
    with block(model):
        model(*ONE)
        assert len(names_of_hooks(model)) >= 2
    assert names_of_hooks(model) == []
    with pytest.raises(ZeroDivisionError), block(model):
        raise ZeroDivisionError
    assert names_of_hooks(model) == []
    assert torch.equal(model(*ONE), before)


@pytest.mark.parametrize(
    ("block", "error", "message"),
    [
        (lambda m: heads_off(m, {SELF: [0], "encoder": [0]}), KeyError, r"name of an attention, one of encoder\.lay"),
        (lambda m: heads_off(m, {SELF: [0, 2, -1]}), ValueError, r"_attention has the heads 0 … 1, got \[2, -1\]"),
        (lambda m: patch_heads(m, {(CROSS, 2): torch.zeros(1)}), ValueError, r"has the heads 0 … 1, got \[2\]"),
        (lambda m: patch_outputs(m, {"x.y": torch.zeros(1)}), KeyError, r"Transformer has no sub-module 'x\.y'"),
        (lambda m: record_outputs(m, ["decoder", "decoding"]), KeyError, "no sub-module 'decoding'"),
        (lambda m: heads_off(nn.Linear(2, 3), {"": [0]}), ValueError, "got Linear with none"),
        (lambda m: record_heads(nn.Linear(2, 3)), ValueError, "got Linear with none"),
    ],
)
def test_names_and_heads_that_do_not_exist_are_errors_before_anything_is_changed(block, error, message, model):
    with pytest.raises(error, match=message):
        block(model).__enter__()
    assert names_of_hooks(model) == []


# --- recording --------------------------------------------------------------------------------------------------------


def test_recorded_heads_are_weights_times_values(model):
    with record_attention(model) as maps:
        heads, _ = recorded(model, ONE)
    assert set(heads) == set(maps) == set(named_attentions(model))
    values = model.get_submodule(CROSS).v_proj(model.encode(SOURCE)).unflatten(-1, (2, 11)).transpose(1, 2)
    assert_close(heads[CROSS], (maps[CROSS] @ values).detach(), **CLOSE)
    assert not any(output.requires_grad for output in heads.values())


def test_of_two_runs_in_one_block_the_latest_is_recorded(model):
    with record_heads(model) as heads, record_outputs(model, ["encoder"]) as outputs:
        model(*ONE)
        model(*OTHER)
    assert_close(heads, recorded(model, OTHER)[0], **CLOSE)
    assert_close(outputs["encoder"], model.encode(OTHER[0]).detach(), **CLOSE)


def test_recorded_outputs_are_what_the_submodules_return(model):
    names = ["source_embedding", "encoder.layers.0", SELF, "output"]
    _, outputs = recorded(model, ONE, *names)
    mask = (SOURCE != 0)[:, None, None]
    embedded = model.source_embedding(SOURCE)
    first = model.encoder.layers[0](embedded, mask)
    normed = model.encoder.layers[1].norm1(first)
    attended = model.encoder.layers[1].self_attention(normed, normed, normed, mask)[0]
    for name, expected in zip(names, (embedded, first, attended, model(*ONE)), strict=True):
        assert_close(outputs[name], expected.detach(), **CLOSE)
        assert not outputs[name].requires_grad


# --- patching ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["source_embedding", "encoder.layers.2"])
def test_with_all_of_the_source_patched_the_other_run_comes_out(name, model):
    with patch_outputs(model, recorded(model, OTHER, name)[1]):
        patched = model(*ONE)
    assert_close(patched, model(*OTHER), **CLOSE)  # the padding mask is that of both
    assert not torch.allclose(patched, model(*ONE))


@POSITIONS
@pytest.mark.parametrize("name", ["encoder.layers.0", SELF])
def test_a_patch_changes_its_positions_alone_and_no_attention_weights_of_its_own(name, positions, model):
    with record_attention(model) as maps:
        expected = recorded(model, ONE, name)[1][name].clone()
    patches = recorded(model, OTHER, name)[1]
    with patch_outputs(model, patches, positions=positions), record_attention(model) as patched_maps:
        found = recorded(model, ONE, name)[1][name]
    expected[:, positions] = patches[name][:, positions]
    assert_close(found, expected, **CLOSE)
    before = SELF if name == SELF else "encoder.layers.0.self_attention"
    assert_close(patched_maps[before], maps[before], **CLOSE)


@POSITIONS
@pytest.mark.parametrize("pairs", [[(SELF, 1), (SELF, 0)], [(SELF, 1), (CROSS, 0)]])
def test_each_patched_head_is_that_of_the_other_run_and_the_others_are_not(pairs, positions, model):
    clean, heads = (recorded(model, run)[0] for run in (ONE, OTHER))
    with patch_heads(model, {(name, head): heads[name][:, head] for name, head in pairs}, positions=positions):
        seen, _ = recorded(model, ONE)
    expected = clean[SELF].clone()
    for name, head in pairs:
        assert_close(seen[name][:, head, positions], heads[name][:, head, positions], **CLOSE)
        if name == SELF:
            expected[:, head, positions] = heads[SELF][:, head, positions]
    assert_close(seen[SELF], expected, **CLOSE)


def test_what_a_patch_replaces_is_left_as_it_was_where_it_was_recorded(model):
    """Recording first keeps a view of what the module computed; the patch must not write into it."""
    (clean_heads, clean), (heads, outputs) = (recorded(model, run, SELF) for run in (ONE, OTHER))
    with record_heads(model) as before, patch_heads(model, {(SELF, 1): heads[SELF][:, 1]}):
        model(*ONE)
    assert_close(before[SELF], clean_heads[SELF], **CLOSE)
    with record_outputs(model, [SELF]) as before, patch_outputs(model, outputs):
        model(*ONE)
    assert_close(before[SELF], clean[SELF], **CLOSE)


@POSITIONS
def test_a_patched_encoder_has_values_and_gradients_of_a_decoder_given_the_patched_memory(positions, model):
    """No gradient reaches what was replaced."""
    patch = model.encode(OTHER[0]).detach()
    with patch_outputs(model, {"encoder": patch}, positions=positions):
        patched = model(*ONE)
    patched.square().sum().backward()
    found = {name: torch.zeros_like(p) if p.grad is None else p.grad for name, p in model.named_parameters()}
    model.zero_grad()
    kept = torch.ones(2, 5, 1, dtype=torch.float64)
    kept[:, positions] = 0
    expected = model.decode(TARGET, kept * model.encode(SOURCE) + (1 - kept) * patch, SOURCE)
    assert_close(patched, expected, **CLOSE)
    expected.square().sum().backward()
    assert_close(found, gradients(model), rtol=1e-9, atol=1e-8)  # of gradients of a few hundred


@pytest.mark.parametrize(
    ("block", "message"),
    [
        (
            lambda m: patch_outputs(m, {"encoder": torch.zeros(1, 5, 22)}),
            r"patch of encoder must have .*\(2, 5, 22\), got \(1, 5, 22\); both runs need the same batch size",
        ),
        (
            lambda m: patch_heads(m, {(CROSS, 1): torch.zeros(2, 7, 22)}),
            r"patch of head 1 of decoder.*\(2, 7, 11\), got \(2, 7, 22\)",
        ),
    ],
)
def test_a_patch_of_another_shape_is_an_error(block, message, model):
    with block(model), pytest.raises(ValueError, match=message):
        model(*ONE)


def test_a_part_that_is_not_called_cannot_be_patched_silently(model):
    """With gradients, self-attention computes its three projections as one product, without calling them."""
    name = f"{SELF}.v_proj"
    message = rf"Transformer did not call {name}, so nothing was patched there"
    both = {"encoder": torch.zeros(2, 5, 22), name: torch.zeros(2, 5, 22)}  # the first is called
    with pytest.raises(ValueError, match=message), patch_outputs(model, both):
        model(*ONE)
    with pytest.raises(ZeroDivisionError), patch_outputs(model, both):
        raise ZeroDivisionError  # the error of the block is not hidden
