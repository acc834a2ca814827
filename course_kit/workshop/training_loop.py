"""The training loop: batch, loss, gradient, clipping, step. `train_on` and the translator's `train` both run `updates`.

Around the loop, `train_on` measures how much the model gets right; `train` adds validation, checkpoints and a history.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from course_kit.workshop.tasks import Task

__all__ = ["BadLossError", "Objective", "OneDevice", "Runtime", "updates"]


class Objective(nn.Module):
    """What is minimised: a model and its task as one module, from a batch to the loss.

    Raises:
        TypeError, ValueError: the model does not suit the task.
    """

    def __init__(self, model: nn.Module, task: Task):
        super().__init__()
        task.check_model(model)
        self.model = model
        self.task = task

    def forward(self, batch: Any) -> Tensor:
        """The task's loss, a scalar."""
        return self.task.loss(self.model, batch)


def updates(
    objective: nn.Module,
    batches: Iterable[Any],
    optimizer: torch.optim.Optimizer,
    schedule: torch.optim.lr_scheduler.LRScheduler,
    *,
    clip_norm: float,
    runtime: Runtime,
    check_loss: bool = True,
) -> Iterator[Tensor]:
    """Change the parameters once per batch, and yield the loss of each batch after its update.

    Args:
        objective: from a batch to a scalar loss.
        batches: as many as there shall be updates; each is drawn right before its update.
        optimizer: turns gradients into steps.
        schedule: sets the optimizer's learning rate for the next update.
        clip_norm: the gradients of all parameters together are scaled down to this norm; 0 for no clipping.
        runtime: moves batches to the device and computes gradients there.
        check_loss: look at each loss before the update. On a GPU this waits for the loss at every step.

    Raises:
        BadLossError: the loss is NaN or infinite, or depends on no parameter. Nothing was updated.
    """
    for batch in batches:
        objective.train()
        loss = objective(runtime.to_device(batch))
        if check_loss and not math.isfinite(loss.item()):
            raise BadLossError(loss.item(), f"the loss became {loss.item()}")
        if not loss.requires_grad:
            raise BadLossError(loss.item(), "the loss does not depend on any parameter")
        optimizer.zero_grad()
        runtime.backward(loss)
        if clip_norm:
            runtime.clip_gradients(objective, optimizer, max_norm=clip_norm, error_if_nonfinite=False)
        optimizer.step()
        schedule.step()
        yield loss.detach()


class BadLossError(FloatingPointError):
    """No update can be made from this loss."""

    def __init__(self, loss: float, reason: str):
        super().__init__(reason)
        self.loss = loss


class Runtime(Protocol):
    """Where and in which precision the loop computes: `OneDevice`, or a `Fabric` of Lightning's."""

    def to_device(self, batch: Any) -> Any:
        """The batch, where the model is."""
        ...

    def backward(self, loss: Tensor) -> None:
        """Add the gradients of the loss to the parameters."""
        ...

    def clip_gradients(
        self, module: nn.Module, optimizer: torch.optim.Optimizer, *, max_norm: float, error_if_nonfinite: bool
    ) -> Any:
        """Scale all gradients so that their common norm is at most `max_norm`."""
        ...


class OneDevice:
    """Plain PyTorch on the device of the model, in the precision of its parameters."""

    def __init__(self, device: torch.device):
        self.device = device

    def to_device(self, batch: Any) -> Any:
        """A named tuple of tensors, moved."""
        return type(batch)(*(tensor.to(self.device) for tensor in batch))

    def backward(self, loss: Tensor) -> None:
        """PyTorch's own."""
        loss.backward()

    def clip_gradients(
        self, module: nn.Module, optimizer: torch.optim.Optimizer, *, max_norm: float, error_if_nonfinite: bool
    ) -> Tensor:
        """PyTorch's own."""
        return nn.utils.clip_grad_norm_(module.parameters(), max_norm, error_if_nonfinite=error_if_nonfinite)
