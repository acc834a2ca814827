"""`train_on` trains a model on a small task until it makes no mistake; the loop itself is in `training_loop`."""

from __future__ import annotations

import contextlib
import io
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from course_kit._checks import check_finite, check_instance, check_seed, check_whole
from course_kit.workshop.progress_bar import ProgressBar
from course_kit.workshop.tasks import Task
from course_kit.workshop.training_loop import BadLossError, Objective, OneDevice, updates

__all__ = ["TrainingResult", "train_on"]


@dataclass(kw_only=True, repr=False)
class TrainingResult:
    """The result of training. Printed, it says only what holds on every processor; the figures are attributes."""

    task: str  # its name
    unit: str  # what is counted: "sequences", "sets"
    steps: int  # how many were taken
    losses: list[float]  # one per step
    evaluations: list[tuple[int, float]]  # (step, share of the held-out set that is entirely right)
    accuracy: float  # share of right tokens (of right items for sets) on fresh data
    exact: float  # share of fresh sequences (sets) that are entirely right
    num_fresh: int  # how many fresh sequences (sets) there were
    first_perfect_step: int | None  # the first step after which all of the held-out set was right
    goal: float = 1.0  # the share that the task requires
    note: str = ""  # what stopped training early, other than success, or what is odd about a failure

    @property
    def reached(self) -> bool:
        """Whether as many fresh sequences (or sets) are entirely right as the task asks for."""
        return self.exact >= self.goal

    def __repr__(self) -> str:
        fresh, percent = f"{self.num_fresh:,} fresh {self.unit}", f"{100 * self.goal:.0f} %"
        if self.reached:
            share = "all" if self.goal == 1.0 else f"at least {percent}"
            return f"{self.task}: reached {percent}, {share} of {fresh} are right"
        most = "right" if self.exact >= 0.5 else "wrong"
        note = f"; {self.note}" if self.note else ""
        return f"{self.task}: did not reach {percent}, most of {fresh} are {most}{note}"


def train_on(
    model: nn.Module,
    task: Task,
    *,
    steps: int = 1200,
    learning_rate: float = 3e-3,
    seed: int = 0,
    batch_size: int = 64,
    warmup_steps: int = 100,
    evaluate_every: int = 100,
    num_fresh: int = 1000,
    show_progress: bool = True,
) -> TrainingResult:
    """Train a model on batches that are drawn fresh at every step, until it makes no more mistakes.

    Adam with betas 0.9 and 0.98, gradients clipped to norm 1; the rate rises linearly over the warm-up, then falls
    along a cosine to a hundredth at the last step. Training ends early once all of the held-out set is right in three
    successive evaluations. The model is trained in place. The global random state is left as it was.

    Args:
        model: from `assemble`, or any other that suits the task.
        task: from `course_kit.workshop.tasks`, or your own with the attributes and methods of `Task`.
        steps: largest number of steps.
        learning_rate: its highest value.
        seed: of the batches and of the model's own draws, such as dropout.
        batch_size: sequences or sets per step.
        warmup_steps: over which the rate rises; a post-norm transformer needs some (Xiong et al., 2020).
        evaluate_every: steps between two evaluations on the held-out set.
        num_fresh: size of the held-out set, and of the fresh data that the result is measured on.
        show_progress: whether to show a progress bar; in a notebook it leaves a single line.

    Returns:
        Losses and figures; if the model has not learned the task, they say so without raising an error.

    Raises:
        TypeError: the model does not suit the task.
        ValueError: it does not suit, a size is less than 1, or seed does not fit into 64 bits.
    """
    check_whole(steps=steps, batch_size=batch_size, evaluate_every=evaluate_every, num_fresh=num_fresh)
    check_whole(warmup_steps=warmup_steps, least=0)
    check_finite("learning_rate", learning_rate, 0)
    check_instance(Task, task=task)
    check_instance(nn.Module, model=model)
    check_seed(seed)
    objective = Objective(model, task)
    was_training = model.training
    runtime = OneDevice(next(model.parameters()).device)
    with (
        ProgressBar(task.name, steps, show_progress) as bar,  # first, since it writes where the caller's prints go
        contextlib.redirect_stdout(io.StringIO()),  # what a learner's part prints would come thousands of times
        torch.random.fork_rng(devices=[]),
    ):
        torch.manual_seed(seed)
        generator = torch.Generator().manual_seed(seed)
        optimizer = torch.optim.Adam(model.parameters(), lr=learning_rate, betas=(0.9, 0.98))
        schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, _rate(warmup_steps, steps))
        held_out = runtime.to_device(task.held_out(num_fresh))
        batches = (task.batch(batch_size, generator) for _ in range(steps))
        losses: list[float] = []
        evaluations: list[tuple[int, float]] = []
        note = ""
        try:
            for loss in updates(objective, batches, optimizer, schedule, clip_norm=1.0, runtime=runtime):
                losses.append(loss.item())
                bar.show(f"loss {losses[-1]:.3f}" + (f", held-out {evaluations[-1][1]:.0%}" if evaluations else ""))
                bar.advance()
                step = len(losses)
                if step % evaluate_every == 0 or step == steps:
                    evaluations.append((step, _measure(model, task, held_out)[1]))
                    if [share for _, share in evaluations[-3:]] == [1.0] * 3:
                        break
        except BadLossError as error:
            losses.append(error.loss)
            note = f"{error} at step {len(losses)}"
        accuracy, exact = _measure(model, task, runtime.to_device(task.held_out(num_fresh, seed + 1)))
        model.train(was_training)
        last = losses[-20:]
        if exact < 0.5 and sum(last) / len(last) < 0.1 and not note:
            note = (
                "the loss is small nevertheless: either training reveals what the model has to predict by itself "
                "later (does a mask or a reshape let the future through?), or the model has memorised its data"
            )
        result = TrainingResult(
            task=task.name,
            unit=task.unit,
            steps=len(losses),
            losses=losses,
            evaluations=evaluations,
            accuracy=accuracy,
            exact=exact,
            num_fresh=num_fresh,
            first_perfect_step=next((step for step, share in evaluations if share == 1.0), None),
            goal=task.goal,
            note=note,
        )
        bar.finish(repr(result))
    return result


def _rate(warmup_steps: int, steps: int) -> Callable[[int], float]:
    def factor(step: int) -> float:
        if step < warmup_steps:
            return (step + 1) / warmup_steps
        done = (step - warmup_steps) / max(1, steps - warmup_steps)
        return 0.01 + 0.495 * (1 + math.cos(math.pi * min(1.0, done)))

    return factor


@torch.no_grad()
def _measure(model: nn.Module, task: Task, batch: Any) -> tuple[float, float]:
    """Share of right parts, and of answers that are right in all parts."""
    model.eval()
    right, counted = task.correct(task.predict(model, batch), batch)
    return (right & counted).sum().item() / counted.sum().item(), (right | ~counted).all(-1).float().mean().item()
