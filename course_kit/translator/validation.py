"""How good a model is on the validation set, between two epochs of training."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

from course_kit.translator.devices import Fabric
from course_kit.workshop.tasks import Task, TokenTask

__all__ = ["validate"]


@torch.no_grad()
def validate(model: nn.Module, task: Task, batches: Iterable[Any], runtime: Fabric) -> dict[str, float]:
    """`val_loss` and `val_perplexity` per token; without tokens, `val_accuracy` and 1 − it as `val_loss`.

    Sums over all batches of all processes and one division: a mean of the means of batches would weigh tokens by the
    batch that they are in. The loss is the negative log-likelihood, without label smoothing.
    """
    model.eval()
    has_tokens = isinstance(task, TokenTask)
    sums = torch.zeros(2, dtype=torch.float64)  # what is summed, and of how many
    for batch in map(runtime.to_device, batches):
        with runtime.autocast():
            if has_tokens:
                logits, labels = model(batch.source, batch.inputs).flatten(0, 1).float(), batch.labels.flatten()
                counted = labels != task.pad_id
                value = F.cross_entropy(logits, labels, ignore_index=task.pad_id, reduction="sum")
            else:
                right, counted = task.correct(task.predict(model, batch), batch)
                value = (right & counted).sum()
        sums += torch.tensor([value.item(), counted.sum().item()], dtype=torch.float64)
    if runtime.world_size > 1:  # not on one Apple GPU, which has no float64
        sums = runtime.all_reduce(sums.to(runtime.device), reduce_op="sum")
    total, count = sums.tolist()
    mean = total / count
    if has_tokens:
        return {"val_loss": mean, "val_perplexity": math.exp(min(mean, 80.0))}
    return {"val_loss": 1 - mean, "val_accuracy": mean}
