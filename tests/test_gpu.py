"""On an accelerator: the same numbers as on the CPU, masks made where the tokens are, half precision."""

from __future__ import annotations

import copy

import pytest
import torch
from oracles import CLOSE, leaf, randomise
from torch.testing import assert_close

from course_kit.nn import (
    AlibiPosition,
    LanguageModel,
    MultiHeadAttention,
    SinusoidalPositionalEncoding,
    Transformer,
    TransformerConfig,
    TransformerEncoder,
)
from course_kit.nn.attention import attention_with_bias, fused_attention
from course_kit.recurrent import RecurrentEncoderDecoder
from course_kit.translator import search as generating
from course_lib import attention, masking, multi_head, positional_encoding, scaled_dot_product, transformer

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device, and this machine has none"),
]

DEVICE = "cuda"
PAD = 1
SOURCE = torch.tensor([[2, 3, 4, 5, 6, 7, 8], [9, 8, 7, 6, 5, PAD, PAD], [PAD, PAD, PAD, PAD, PAD, PAD, PAD]])
TARGET = torch.tensor([[0, 12, 13, 14, 15], [0, 16, 15, PAD, PAD], [0, 2, 3, 4, PAD]])
POSITIONS = pytest.mark.parametrize("positions", ["sinusoidal", "learned", "rotary", "alibi", "none"])


def small(**changes):
    return TransformerConfig(
        vocab_size=17, d_model=32, num_heads=2, num_layers=2, d_ff=13, dropout=0.0, pad_id=PAD, **changes
    )  # heads of 16 features: the fused kernels take widths of a multiple of 8


def on_device(tensors):
    return [tensor.detach().to(DEVICE).requires_grad_(tensor.requires_grad) for tensor in tensors]


def assert_same_on_both_devices(function, *tensors):
    """Values and gradients of a function of tensors, in float64."""
    outputs, grads = [], []
    for inputs in (tensors, on_device(tensors)):
        output = function(*inputs)
        assert output.device == inputs[0].device
        leaves = [tensor for tensor in inputs if tensor.requires_grad]
        outputs.append(output.cpu())
        grads.append([g.cpu() for g in torch.autograd.grad(output.sin().sum(), leaves)])
    assert_close(outputs[0], outputs[1], **CLOSE)
    assert_close(grads[0], grads[1], **CLOSE)


def assert_same_model_on_both_devices(model, *tokens):
    model = randomise(model).double()
    twin = copy.deepcopy(model).to(DEVICE)
    expected, output = model(*tokens), twin(*(t.to(DEVICE) for t in tokens))
    if isinstance(expected, tuple):
        expected, output = expected[0], output[0]
    assert output.device.type == DEVICE
    assert_close(output.cpu(), expected, **CLOSE)
    expected.sin().sum().backward(), output.sin().sum().backward()
    for ours, theirs in zip(model.parameters(), twin.parameters(), strict=True):
        # A sum over a batch in another order, of numbers up to about 1e2.
        assert_close(theirs.grad.cpu(), ours.grad, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(
    ("function", "shapes"),
    [
        (attention.softmax, [(5, 7)]),
        (attention.dot_product_score, [(2, 5, 11), (2, 7, 11)]),
        (attention.additive_score, [(5, 11), (7, 13), (17, 11), (17, 13), (17,)]),
        (lambda *xs: attention.attend(*xs)[0], [(5, 7), (7, 11)]),
        (lambda *xs: attention.kernel_regression(*xs, bandwidth=0.5), [(5,), (7,), (7,)]),
        (lambda *xs: scaled_dot_product.self_attention(*xs)[0], [(2, 5, 11), (11, 7), (11, 7), (11, 13)]),
        (scaled_dot_product.softmax_backward, [(5, 7), (5, 7)]),
        (lambda x: multi_head.merge_heads(multi_head.split_heads(x, 2)), [(3, 5, 22)]),
        (lambda x: positional_encoding.apply_rotary(x, torch.arange(5, device=x.device)), [(3, 5, 14)]),
        (transformer.layer_norm, [(3, 5, 11), (11,), (11,)]),
    ],
    ids=["softmax", "dot", "additive", "attend", "kernel", "self", "backward", "heads", "rotary", "layer_norm"],
)
def test_functions_and_gradients_are_those_of_the_cpu(function, shapes):
    assert_same_on_both_devices(function, *(leaf(*shape) for shape in shapes))


@pytest.mark.parametrize("fused", [False, True], ids=["explicit", "fused"])
@pytest.mark.parametrize("with_bias", [False, True])
@pytest.mark.parametrize("masked", [False, True])
def test_attention_and_its_gradients_are_those_of_the_cpu(fused, with_bias, masked):
    mask = torch.rand(5, 7) < 0.6
    mask[2] = False

    def attend(query, key, value, bias):
        function = fused_attention if fused else attention_with_bias
        here = mask.to(query.device) if masked else None
        result = function(query, key, value, here, bias=bias if with_bias else None)
        return (result if fused else result[0]) + 0 * bias.sum()

    assert_same_on_both_devices(attend, leaf(2, 3, 5, 11), leaf(2, 3, 7, 11), leaf(2, 3, 7, 13), leaf(3, 5, 7))


@POSITIONS
@pytest.mark.parametrize("norm", ["post", "pre"])
def test_models_and_their_gradients_are_those_of_the_cpu(positions, norm):
    config = small(positions=positions, norm=norm)
    assert_same_model_on_both_devices(Transformer(config), SOURCE, TARGET)
    assert_same_model_on_both_devices(TransformerEncoder(config), SOURCE)
    assert_same_model_on_both_devices(LanguageModel(config), SOURCE)


def test_the_plain_model_and_its_gradients_are_those_of_the_cpu():
    model = transformer.Transformer(17, d_model=32, num_heads=2, d_ff=13, num_layers=2, pad_id=PAD)
    assert_same_model_on_both_devices(model, SOURCE, TARGET)


@pytest.mark.parametrize("with_attention", [False, True])
def test_the_recurrent_model_and_its_gradients_are_those_of_the_cpu(with_attention):
    model = RecurrentEncoderDecoder(17, 11, attention=with_attention, pad_id=PAD)
    assert_same_model_on_both_devices(model, SOURCE, TARGET)


def test_masks_and_tables_are_made_where_they_are_wanted():
    tokens, heads = SOURCE.to(DEVICE), torch.zeros(1, 2, 5, 7, device=DEVICE)
    tensors = {
        "padding": masking.padding_mask(tokens, PAD),
        "decoder": masking.decoder_mask(tokens, PAD),
        "sinusoidal": SinusoidalPositionalEncoding(7)(torch.zeros(1, 5, 7, device=DEVICE)),
        "alibi": AlibiPosition().bias(heads, heads),
    }
    assert {name: tensor.device.type for name, tensor in tensors.items()} == dict.fromkeys(tensors, DEVICE)
    assert torch.equal(tensors["decoder"].cpu(), masking.decoder_mask(SOURCE, PAD))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
@pytest.mark.parametrize("need_weights", [True, False])
@pytest.mark.parametrize("masked", [False, True])
def test_half_precision_is_near_float64_and_empty_rows_bring_home_the_bias_only(dtype, need_weights, masked):
    module = MultiHeadAttention(32, 2)
    torch.nn.init.normal_(module.out_proj.bias)
    module = module.to(DEVICE, dtype)
    query, key = torch.randn(3, 5, 32, device=DEVICE).to(dtype), torch.randn(3, 7, 32, device=DEVICE).to(dtype)
    mask = None
    if masked:
        mask = torch.rand(5, 7, device=DEVICE) < 0.6
        mask[2], mask[3] = False, True
    output, _ = module(query.requires_grad_(), key, key, mask, need_weights=need_weights)
    exact, _ = copy.deepcopy(module).double()(query.double(), key.double(), key.double(), mask)
    assert output.dtype == dtype
    # Three products in a row, each rounded to eps / 2 of numbers up to 4 in inputs, weights and result: about 18 eps.
    # A float32 product may run in TF32 on a GPU, with the eps of float16.
    eps = max(torch.finfo(dtype).eps, torch.finfo(torch.float16).eps)
    assert_close(output.double(), exact, rtol=0, atol=18 * eps)
    if masked:
        assert torch.equal(output[:, 2], module.out_proj.bias.expand(3, 32))
    output.sum().backward()
    assert query.grad.isfinite().all()
    assert all(parameter.grad.isfinite().all() for parameter in module.parameters())


@POSITIONS
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_models_run_in_half_precision_with_finite_gradients(positions, dtype):
    model = Transformer(small(positions=positions)).to(DEVICE, dtype)
    logits = model(SOURCE.to(DEVICE), TARGET.to(DEVICE))
    assert logits.dtype == dtype
    assert logits.isfinite().all()
    logits.square().mean().backward()
    assert all(parameter.grad.isfinite().all() for parameter in model.parameters())


@POSITIONS
@pytest.mark.parametrize("use_cache", [True, False], ids=["cached", "uncached"])
def test_decoding_gives_the_same_translations(positions, use_cache):
    model = randomise(Transformer(small(positions=positions))).double().eval()
    options = {"bos_id": 0, "eos_id": 15, "max_length": 7, "use_cache": use_cache}
    source = SOURCE[:2]
    for search in (generating.greedy, lambda *a, **k: generating.beam(*a, **k, beam_size=3, num_best=3)):
        expected = search(model, source, **options)
        found = search(copy.deepcopy(model).to(DEVICE), source.to(DEVICE), **options)
        assert found.tokens == expected.tokens
        # Sums of seven logarithms in float64: their rounding is a millionth of this.
        ours, theirs = (torch.tensor(each.log_probs, dtype=torch.float64) for each in (found, expected))
        assert_close(ours, theirs, rtol=0, atol=1e-8)


def test_the_trainer_uses_mixed_precision_and_learns():
    from course_kit.translator.devices import best_precision
    from course_kit.translator.recipe import Recipe
    from course_kit.translator.trainer import train
    from course_kit.workshop.tasks import reversal

    assert best_precision() in {"bf16-mixed", "16-mixed"}
    recipe = Recipe(
        vocab_size=13, d_model=32, num_heads=2, num_layers=1, d_ff=64, epochs=3, warmup_steps=50, dropout=0.1
    )
    model, history = train(reversal(), recipe, accelerator="gpu", show_progress=False)
    assert history[-1]["val_loss"] < 0.9 * history[0]["val_loss"]
    assert next(model.parameters()).device.type == "cpu"  # given back where everyone can use it


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_masked_softmax_keeps_its_word_in_half_precision(dtype):
    scores = (10 * torch.randn(3, 5, 7, device=DEVICE)).to(dtype).requires_grad_()
    mask = torch.rand(3, 5, 7, device=DEVICE) < 0.5
    mask[:, 0], mask[:, 1] = False, True
    weights = masking.masked_softmax(scores, mask)
    assert (weights[~mask] == 0.0).all()
    # Seven weights of at most 1, each rounded twice, and the sum: less than 7 eps.
    assert_close(weights.sum(-1), mask.any(-1).to(dtype), rtol=0, atol=7 * torch.finfo(dtype).eps)
    weights.square().sum().backward()
    assert scores.grad.isfinite().all()
