"""Chapter `debugging`: measurements that tell a healthy model from one that trains although something is wrong.

A *model* here is anything that maps tokens `(B, L)` to logits `(B, L, V)`; `course_lib.diagnose` takes all
measurements on any module and explains them.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

__all__ = [
    "fit_one_batch",
    "idle_parameters",
    "order_effect",
    "padding_effect",
    "precision_gap",
    "start_loss",
    "token_influence",
]


def start_loss(logits: Tensor, targets: Tensor, pad_id: int | None = None) -> tuple[float, float]:
    """Cross-entropy per target in nats, and log V, which a model that knows nothing yet should be close to.

    Args:
        logits: `(..., V)`.
        targets: int `(...)`.
        pad_id: of targets that do not count.
    """
    ignored = -100 if pad_id is None else pad_id
    loss = F.cross_entropy(logits.flatten(0, -2), targets.flatten(), ignore_index=ignored)
    return loss.item(), math.log(logits.shape[-1])


def fit_one_batch(
    model: nn.Module,
    tokens: Tensor,
    targets: Tensor,
    *,
    steps: int = 100,
    learning_rate: float = 1e-3,
    pad_id: int | None = None,
) -> list[float]:
    """The loss of a copy of the model at each step of Adam on this one batch; a healthy model learns it by heart.

    Args:
        tokens: int `(B, L)`.
        targets: int `(B, L)`.
    """
    model = copy.deepcopy(model).train()
    optimizer = torch.optim.Adam(model.parameters(), lr=learning_rate)
    ignored = -100 if pad_id is None else pad_id
    losses = []
    for _ in range(steps):
        loss = F.cross_entropy(model(tokens).flatten(0, -2), targets.flatten(), ignore_index=ignored)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


@torch.no_grad()
def token_influence(model: Callable[[Tensor], Tensor], tokens: Tensor, columns: Sequence[int] | None = None) -> Tensor:
    """`(L, L)`: entry ij is the largest change of the logits at position i when token j is replaced by another one.

    Above the diagonal, a model that predicts the next token must have zeros.
    """
    logits = model(tokens)  # (B, L, V)
    changes = []
    for j in range(tokens.shape[1]) if columns is None else columns:
        changed = tokens.clone()
        changed[:, j] = (changed[:, j] + 1) % logits.shape[-1]
        changes.append((model(changed) - logits).abs().amax(dim=(0, 2)))  # (L,)
    return torch.stack(changes, dim=-1)  # (L, L)


@torch.no_grad()
def padding_effect(model: Callable[[Tensor], Tensor], tokens: Tensor, pad_id: int, extra: int = 3) -> float:
    """The largest change of the logits at the given tokens when `extra` padding tokens are appended."""
    padding = tokens.new_full((tokens.shape[0], extra), pad_id)
    longer = model(torch.cat([tokens, padding], dim=1))[:, : tokens.shape[1]]  # (B, L, V)
    return (longer - model(tokens)).abs().max().item()


def idle_parameters(model: nn.Module, loss: Tensor) -> dict[str, str]:
    """Parameters that this loss does not train: "unused" (no path to the loss) or "zero" (a gradient of zeros)."""
    named = {name: p for name, p in model.named_parameters() if p.requires_grad}
    found = torch.autograd.grad(loss, list(named.values()), allow_unused=True, retain_graph=True)
    pairs = zip(named, found, strict=True)
    return {name: "unused" if grad is None else "zero" for name, grad in pairs if grad is None or not grad.any()}


@torch.no_grad()
def order_effect(model: Callable[[Tensor], Tensor], tokens: Tensor) -> float:
    """The largest change of a token's logits when the tokens are put into reverse order; 0 where order is ignored."""
    return (model(tokens.flip(1)).flip(1) - model(tokens)).abs().max().item()


@torch.no_grad()
def precision_gap(model: nn.Module, tokens: Tensor) -> float:
    """The largest difference between the logits in float32 and in float64, relative to the largest logit."""
    exact = copy.deepcopy(model).double()(tokens)
    rough = copy.deepcopy(model).float()(tokens)
    return ((rough - exact).abs().max() / exact.abs().max()).item()
