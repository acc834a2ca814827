"""What several test files share: random leaves, PyTorch's names for our parameters, and a check on side effects."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import contextmanager

import torch
from torch import Tensor, nn
from torch.testing import assert_close

from course_lib.masking import causal_mask

CLOSE = {"rtol": 0.0, "atol": 1e-10}  # for float64: two right computations differ in the last bits only
DTYPES = [torch.float16, torch.bfloat16, torch.float32, torch.float64]

# Masks against scores (3, 2, 5, 7), True = may attend. Every query has a key: PyTorch's module gives NaN without.
MASKS = {
    "none": lambda: None,
    "causal": lambda: causal_mask(7)[-5:],
    "padding": lambda: torch.tensor([[1, 1, 1, 1, 1, 1, 1], [1, 1, 1, 1, 1, 0, 0], [1, 0, 0, 0, 0, 0, 0]]).bool()[
        :, None, None, :
    ],
    "2-D": lambda: (torch.rand(5, 7) < 0.6).index_fill(1, torch.tensor([3]), True),
    "3-D": lambda: (torch.rand(2, 5, 7) < 0.6).index_fill(2, torch.tensor([3]), True),
    "4-D": lambda: (torch.rand(3, 2, 5, 7) < 0.6).index_fill(3, torch.tensor([3]), True),
}

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


def torch_mask(mask: Tensor | None) -> Tensor | None:
    """One of `MASKS` as `nn.MultiheadAttention` takes it: (B · H, L_q, L_k) with True = may not attend."""
    return None if mask is None else ~mask.expand(3, 2, 5, 7).reshape(6, 5, 7)


def gradients(module: nn.Module) -> dict[str, Tensor]:
    """Name to gradient, for every parameter."""
    return {name: parameter.grad for name, parameter in module.named_parameters()}


def assert_same_function(
    output: Tensor, expected: Tensor, ours: nn.Module, theirs: nn.Module, inputs: tuple, names: Callable = dict
) -> None:
    """Two modules gave the same output, and give the same gradients of inputs and parameters.

    Args:
        output: of ours.
        expected: of theirs.
        ours: a module of the course.
        theirs: another one.
        inputs: of both.
        names: from the names of our parameters to theirs, `torch_names` for a module of PyTorch.
    """
    assert_same(output, expected, inputs)
    grad = torch.randn_like(expected)
    output.backward(grad, inputs=list(ours.parameters()))
    expected.backward(grad, inputs=list(theirs.parameters()))
    assert_close(names(gradients(ours)), gradients(theirs), **CLOSE)


def assert_same(ours: Tensor, theirs: Tensor, leaves: Tensor | tuple) -> None:
    """Two results agree, and so do the gradients of a random sum of them with respect to the leaves."""
    assert ours.shape == theirs.shape
    assert_close(ours, theirs, **CLOSE)
    grad = torch.randn_like(theirs)
    of_both = (torch.autograd.grad(result, leaves, grad, retain_graph=True) for result in (ours, theirs))
    assert_close(*of_both, **CLOSE)


@contextmanager
def no_side_effects(*tensors: Tensor):
    """The block leaves these tensors and the state of the global random generator as they were."""
    before = [tensor.detach().clone() for tensor in tensors]
    generator = torch.get_rng_state()
    yield
    for tensor, old in zip(tensors, before, strict=True):
        assert torch.equal(tensor, old)
    assert torch.equal(torch.get_rng_state(), generator)
