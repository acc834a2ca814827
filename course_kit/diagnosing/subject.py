"""The model under examination: only copies of it are run, each with the same random numbers."""

from __future__ import annotations

import copy
import random
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from torch import Tensor, nn

from course_kit.diagnosing.calling import Batch
from course_lib.debugging import token_influence

__all__ = ["TOLERANCE", "Subject", "copied", "isolated", "seeded"]

TOLERANCE = 1e-5  # of the largest logit: float32 rounds at 1e-7, and a leak that weak is not worth a search
_HALF = (torch.float16, torch.bfloat16)
_COLUMNS = 16  # tokens of a long batch that are replaced, one after the other


@dataclass
class Subject:
    """A model, a batch, and what is known of both.

    Args:
        model: never run itself.
        batch: what it is called with.
        targets: int `(B, L)` with −100 where no target is, or None.
        aligned: where the targets come from, for a sentence.
        pad_id: the padding token, or None.
        causal: whether the future has to be hidden; None if that is not known.
        logits: of the batch, in eval mode, `(B, L, V)`.
    """

    model: nn.Module
    batch: Batch
    targets: Tensor | None
    aligned: str
    pad_id: int | None
    causal: bool | None
    logits: Tensor

    def copied(self, *, train: bool = False) -> nn.Module:
        """A copy of the model in eval mode, or in train mode."""
        return copied(self.model).train(train)

    def trained_copy(self) -> nn.Module:
        """A copy that an optimizer can update: in float32 where the model is in half precision, since the 1e-8 that
        Adam adds to its denominator is zero in float16."""
        model = self.copied()
        return model.float() if any(p.dtype in _HALF for p in model.parameters()) else model

    @cached_property
    def keeps_state(self) -> bool:
        """Whether a second call with the same random numbers returns something else."""
        model = self.copied()
        with torch.no_grad():
            first, second = (_seeded_logits(self.batch, model) for _ in range(2))
        return not torch.equal(first.nan_to_num(), second.nan_to_num())

    @cached_property
    def is_random(self) -> bool:
        """Whether a second call in eval mode with other random numbers returns something else."""
        model = self.copied()
        with torch.no_grad(), seeded(0):
            first, second = (self.batch.logits(model) for _ in range(2))
        return not self.keeps_state and not torch.equal(first.nan_to_num(), second.nan_to_num())

    @property
    def blind(self) -> str:
        """Why changes of the logits say nothing, or an empty text."""
        if not self.logits.isfinite().all():
            return "There are logits that are not finite."
        return "" if self.influence.max() > TOLERANCE else "The logits do not depend on any token."

    @cached_property
    def exact_dtype(self) -> torch.dtype | None:
        """float64 where the model can be run in it, else None: it stays as it is."""
        try:
            with torch.no_grad():
                found = _seeded_logits(self.batch.to(torch.float64), self.copied().double())
        except Exception:
            return None
        return torch.float64 if found.dtype == torch.float64 and found.isfinite().all() else None

    def runner(self, *, train: bool = False) -> Callable[[Batch], Tensor]:
        """From a batch to its logits, always with the same random numbers, and in float64 if possible.

        No gradients are kept. Weights that start at zero get small random values first, so that what runs through them
        is seen, and a model that changes from call to call is copied anew for each.
        """
        model = self.copied(train=train)
        _wake(model)
        if self.exact_dtype is not None:
            model = model.to(self.exact_dtype)
        fresh = train or self.keeps_state

        def run(batch: Batch) -> Tensor:
            batch = batch if self.exact_dtype is None else batch.to(self.exact_dtype)
            with torch.no_grad():
                return _seeded_logits(batch, copied(model) if fresh else model)

        return run

    def other_tokens(self, tokens: Tensor) -> Tensor:
        """Each token replaced by another one; padding stays, and nothing becomes padding."""
        size = self.logits.shape[-1]
        if tokens is not self.batch.tokens:  # a source may have another vocabulary, of which only these are known
            size = min(size, int(tokens.max()) + 1)
        other = (tokens + 1) % size
        if self.pad_id is None:
            return other
        other = torch.where(other == self.pad_id, (other + 1) % size, other)
        return torch.where(tokens == self.pad_id, tokens, other)

    @cached_property
    def columns(self) -> list[int]:
        """The tokens that are replaced by `influence`: all of them, or some of a long batch."""
        length = self.batch.tokens.shape[1]
        spread = torch.linspace(0, length - 1, min(length, _COLUMNS)).round().long()
        return sorted({*spread.tolist()})

    @cached_property
    def influence(self) -> Tensor:
        """`(L, columns)`: by how much each token changes the logits at each position, relative to the largest logit."""
        run = self.runner()
        scale = run(self.batch).abs().max().clamp(min=1e-30)
        found = token_influence(lambda tokens: run(self.batch.with_tokens(tokens)), self.batch.tokens, self.columns)
        return found / scale


def _wake(model: nn.Module) -> None:
    """Small random values for weights that are all zero, such as those of a branch that is to open while training."""
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if parameter.requires_grad and not name.endswith("bias") and not parameter.any():
                parameter.copy_(0.1 * torch.randn(parameter.shape, generator=generator))


def copied(model: nn.Module) -> nn.Module:
    """A deep copy; a tensor with a history, which `copy.deepcopy` refuses, is copied without it."""
    memo: dict[int, object] = {}
    for module in model.modules():
        for tensor in _tensors_in(vars(module), depth=4):
            if tensor.grad_fn is not None:
                memo[id(tensor)] = tensor.detach().clone()
    return copy.deepcopy(model, memo)


def _tensors_in(value: object, depth: int) -> Iterator[Tensor]:
    """Tensors in a container, and in containers inside it."""
    if isinstance(value, Tensor):
        yield value
    elif depth and isinstance(value, dict | list | tuple):
        for each in value.values() if isinstance(value, dict) else value:
            yield from _tensors_in(each, depth - 1)


def _seeded_logits(batch: Batch, model: nn.Module) -> Tensor:
    with seeded(0):
        return batch.logits(model)


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Random numbers from this seed, with all three generators that a model may draw from."""
    if torch.cuda.is_available():
        torch.manual_seed(seed)
    else:  # the same, without the stack trace that PyTorch keeps at each call for GPUs that may be used later
        torch.default_generator.manual_seed(seed)
    random.seed(seed)
    np.random.seed(seed)
    yield


@contextmanager
def isolated(model: nn.Module) -> Iterator[None]:
    """Gradients are on, warnings are off, and afterwards generators and PyTorch's switches are as they were."""
    devices = {tensor.device for tensor in (*model.parameters(), *model.buffers()) if tensor.device.type == "cuda"}
    python, numpy, dtype = random.getstate(), np.random.get_state(), torch.get_default_dtype()
    with (
        torch.random.fork_rng(devices=list(devices)),
        torch.inference_mode(False),
        torch.enable_grad(),
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore")
        try:
            yield
        finally:
            random.setstate(python)
            np.random.set_state(numpy)
            torch.set_default_dtype(dtype)
