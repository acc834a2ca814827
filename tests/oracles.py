"""What several test files share: random leaves, PyTorch's names for our parameters, and a check on side effects."""

from __future__ import annotations

from contextlib import contextmanager

import torch
from torch import Tensor, nn
from torch.testing import assert_close

CLOSE = {"rtol": 0.0, "atol": 1e-10}  # for float64: two right computations differ in the last bits only
DTYPES = [torch.float16, torch.bfloat16, torch.float32, torch.float64]

_THEIR_NAMES = {"self_attention": "self_attn", "cross_attention": "multihead_attn", "feed_forward.": ""}


def leaf(*shape: int, dtype: torch.dtype = torch.float64) -> Tensor:
    """A random tensor that collects gradients."""
    return torch.randn(*shape, dtype=dtype, requires_grad=True)


def randomise(module: nn.Module) -> nn.Module:
    """Give every parameter a random value: a gain of one or a bias of zero would hide that it is not used."""
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.normal_(std=0.5)
    return module


def torch_names(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """Our parameters (or their gradients) under the names that PyTorch's modules have for them, q, k and v stacked."""
    renamed = {}
    for name, tensor in tensors.items():
        for ours, theirs in _THEIR_NAMES.items():
            name = name.replace(ours, theirs)
        renamed[name] = tensor
    for name in [name for name in renamed if "q_proj." in name]:
        stacked = [renamed.pop(name.replace("q_proj", which)) for which in ("q_proj", "k_proj", "v_proj")]
        renamed[name.replace("q_proj.", "in_proj_")] = torch.cat(stacked)
    return renamed


def gradients(module: nn.Module) -> dict[str, Tensor]:
    """Name to gradient, for every parameter."""
    return {name: parameter.grad for name, parameter in module.named_parameters()}


def assert_same_function(output: Tensor, expected: Tensor, ours: nn.Module, theirs: nn.Module, inputs: tuple) -> None:
    """Two modules with parameters of the same names gave the same output, and give the same gradients of everything."""
    grad = torch.randn_like(expected)
    assert_close(output, expected, **CLOSE)
    of_inputs = [torch.autograd.grad(result, inputs, grad, retain_graph=True) for result in (output, expected)]
    assert_close(*of_inputs, **CLOSE)
    output.backward(grad, inputs=list(ours.parameters()))
    expected.backward(grad, inputs=list(theirs.parameters()))
    assert_close(gradients(ours), gradients(theirs), **CLOSE)


@contextmanager
def no_side_effects(*tensors: Tensor):
    """The block leaves these tensors and the state of the global random generator as they were."""
    before = [tensor.detach().clone() for tensor in tensors]
    generator = torch.get_rng_state()
    yield
    for tensor, old in zip(tensors, before, strict=True):
        assert torch.equal(tensor, old)
    assert torch.equal(torch.get_rng_state(), generator)
