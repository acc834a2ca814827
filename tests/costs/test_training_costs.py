"""course_kit.costs.training: PyTorch's FLOP counter, and the storages of gradients and optimizers, as oracles."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from course_kit.costs.training import (
    TrainingMemory,
    language_model_flops,
    training_flops,
    training_memory,
    transformer_flops,
)
from course_kit.nn import LanguageModel, Transformer, TransformerConfig


def small(**changes):
    sizes = {"vocab_size": 31, "d_model": 12, "num_heads": 3, "num_layers": 2, "d_ff": 23, "dropout": 0.0}
    return TransformerConfig(**{**sizes, **changes})


def counted(function):
    """Operations by PyTorch's counter, with attention as two plain products, which it can see on every processor."""
    with sdpa_kernel(SDPBackend.MATH), FlopCounterMode(display=False) as counter:
        result = function()
    return counter.get_total_flops(), result


def tokens(batch_size, length):
    return torch.randint(1, 31, (batch_size, length))


# --- 6 N D ------------------------------------------------------------------------------------------------------------


def test_a_linear_layer_takes_two_operations_per_parameter_and_token_forward_and_four_backward():
    layer, x = nn.Linear(11, 7, bias=False), torch.randn(5, 11, requires_grad=True)
    forward, y = counted(lambda: layer(x))
    backward, _ = counted(lambda: y.sum().backward())
    assert (forward, backward) == (2 * 77 * 5, 4 * 77 * 5)
    assert forward + backward == training_flops(77, 5)
    assert training_flops(0, 5) == training_flops(7, 0) == 0


def test_the_published_total_of_gpt_3():
    """Brown et al. (2020), table D.1: 174,600 million parameters, 300 billion tokens, 3.14e23 operations."""
    assert f"{training_flops(174_600_000_000, 300_000_000_000):.2e}" == "3.14e+23"


# --- exact counts -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("changes", [{}, {"dropout": 0.3}, {"norm": "pre"}, {"positions": "rotary"}, {"num_heads": 1}])
def test_a_language_model_takes_what_the_counter_counts(changes):
    config = small(**changes)
    for sizes in ((1, 1), (3, 7), (2, 40)):
        forward, logits = counted(lambda sizes=sizes: LanguageModel(config)(tokens(*sizes)))
        backward, _ = counted(lambda logits=logits: logits.sum().backward())
        assert forward == language_model_flops(config, *reversed(sizes))
        assert backward == 2 * forward


@pytest.mark.parametrize("changes", [{}, {"target_vocab_size": 37}, {"tie_embeddings": False}, {"norm": "pre"}])
def test_a_transformer_takes_what_the_counter_counts(changes):
    config = small(**changes)
    for batch, *lengths in ((1, 1, 1), (3, 5, 7), (2, 13, 4)):
        inputs = [tokens(batch, length) for length in lengths]
        forward, logits = counted(lambda inputs=inputs: Transformer(config)(*inputs))
        backward, _ = counted(lambda logits=logits: logits.sum().backward())
        assert forward == transformer_flops(config, *lengths, batch)
        assert backward == 2 * forward


# --- memory -----------------------------------------------------------------------------------------------------------


def storage_bytes(tensors):
    return sum({t.untyped_storage().data_ptr(): t.untyped_storage().nbytes() for t in tensors}.values())


@pytest.mark.parametrize(
    ("optimizer_type", "options", "numbers", "has_step"),
    [
        (torch.optim.Adam, {}, 2, True),
        (torch.optim.AdamW, {}, 2, True),
        (torch.optim.Adam, {"amsgrad": True}, 3, True),
        (torch.optim.SGD, {"momentum": 0.9}, 1, False),
        (torch.optim.SGD, {}, 0, False),
    ],
)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_storages_after_a_step_are_what_the_formula_gives(optimizer_type, options, numbers, has_step, dtype):
    model = LanguageModel(small()).to(dtype)
    optimizer = optimizer_type(model.parameters(), lr=0.1, **options)
    F.cross_entropy(model(tokens(3, 7)).flatten(0, 1), tokens(3, 7).flatten()).backward()
    optimizer.step()
    parameters = list(model.parameters())  # the tied matrix once
    memory = training_memory(
        sum(p.numel() for p in parameters), bytes_per_number=dtype.itemsize, optimizer_numbers=numbers
    )
    state = [value for values in optimizer.state.values() for value in values.values() if torch.is_tensor(value)]
    steps = 4 * len(parameters) if has_step else 0  # Adam also has the number of the step beside each tensor
    assert memory.weights == storage_bytes(parameters)
    assert memory.gradients == storage_bytes([p.grad for p in parameters])
    assert memory.optimizer == storage_bytes(state) - steps
    assert memory.activations == 0


def test_memory_by_hand():
    memory = training_memory(10, 7, bytes_per_number=2)
    assert memory == TrainingMemory(weights=20, gradients=20, optimizer=40, activations=14)
    assert memory.total == 94
    assert training_memory(10).total == 160  # sixteen bytes per parameter with Adam in float32
