"""The folder of a run: checkpoints written whole or not at all, its history and log, and what the run is made of."""

from __future__ import annotations

import hashlib
import io
import itertools
import json
import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import nn

from course_kit._files import make_folder, write_whole
from course_kit.translator.devices import Precision
from course_kit.translator.recipe import Recipe
from course_kit.translator.task import FollowsRecipe
from course_kit.workshop.tasks import Task

__all__ = ["History", "RunFolder", "RunState", "description", "load_checkpoint"]

History = list[dict[str, float]]  # an entry per epoch

LAST = "last.ckpt"
BEST = "best.ckpt"
RUN = "run.json"  # what the run is made of
PARTS = ("state_dict", "optimizer_states", "lr_schedulers", "global_step", "history", "precision")  # of a checkpoint


@dataclass
class RunState:
    """All that a run needs to continue to the bit after an epoch; random draws follow from the step and need no state.

    Args:
        objective: model and task, as `Fabric.setup` gives it back.
        optimizer: with its moments.
        schedule: with the number of its step.
        precision: of float16, the factor of the loss.
        step: updates so far.
        history: of the epochs so far.
    """

    objective: nn.Module
    optimizer: torch.optim.Optimizer
    schedule: torch.optim.lr_scheduler.LRScheduler
    precision: Precision
    step: int = 0
    history: History = field(default_factory=list)

    def state_dict(self) -> dict[str, Any]:
        """For a checkpoint."""
        return {
            "state_dict": self.objective.state_dict(),
            "optimizer_states": [self.optimizer.state_dict()],
            "lr_schedulers": [self.schedule.state_dict()],
            "precision": self.precision.state_dict(),
            "global_step": self.step,
            "history": self.history,
        }

    def load_state_dict(self, checkpoint: dict[str, Any]) -> None:
        """From a checkpoint."""
        self.objective.load_state_dict(checkpoint["state_dict"])
        self.optimizer.load_state_dict(checkpoint["optimizer_states"][0])
        self.schedule.load_state_dict(checkpoint["lr_schedulers"][0])
        self.precision.load_state_dict(checkpoint["precision"])
        self.step, self.history = checkpoint["global_step"], checkpoint["history"]


class RunFolder:
    """Where a run keeps its checkpoints.

    Args:
        path: of the folder; it need not exist.
    """

    def __init__(self, path: Path):
        self.path = path

    def check_free(self) -> None:
        """Refuse a folder that holds another run.

        Raises:
            FileExistsError: there is a checkpoint in it.
        """
        if (self.path / LAST).exists():
            raise FileExistsError(
                f"{self.path} holds the checkpoints of another run; resume it, or choose another folder (nothing is "
                f"overwritten)"
            )

    def begin(self, run: dict[str, Any]) -> None:
        """Make the folder, and write down what the run is made of.

        Raises:
            NotADirectoryError: a file has its name.
        """
        make_folder(self.path)
        write_whole(self.path / RUN, json.dumps(run, indent=1, ensure_ascii=False) + "\n")

    def last(self) -> dict[str, Any]:
        """The last epoch's checkpoint, to resume from.

        Raises:
            FileNotFoundError: it is missing, or the best epoch's is.
            ValueError: it is damaged.
        """
        if not (self.path / LAST).is_file():
            raise FileNotFoundError(f"expected a checkpoint {LAST} in {self.path} to resume from; start without resume")
        checkpoint = _read(self.path / LAST)
        if not (self.path / BEST).is_file():
            raise FileNotFoundError(
                f"expected the best epoch's checkpoint {BEST} in {self.path}, beside {LAST}; put it back (a copy of "
                f"{LAST} will do where the last epoch was the best), or start again in another folder"
            )
        return checkpoint

    def check_same(self, run: dict[str, Any]) -> None:
        """Compare what a run is made of with what was written down when it began.

        Raises:
            ValueError: something is different, or nothing was written down.
        """
        path = self.path / RUN
        try:
            before = json.loads(path.read_text(encoding="utf-8"))
        except (FileNotFoundError, json.JSONDecodeError) as error:
            raise ValueError(f"{path} must describe the run to be resumed: {error}") from None
        pairs = {name: (before.get(name), run.get(name)) for name in {**before, **run}}
        other = [f"{name}: {then!r} then, {now!r} now" for name, (then, now) in pairs.items() if then != now]
        if other:
            raise ValueError(
                f"a resumed run must use the same settings; these differ: {'; '.join(other)}. Use the same settings, "
                f"or start again in another folder"
            )

    def new_log(self) -> Path:
        """A folder for the log that is not there yet; a resumed run has one of its own (log-2, log-3, …)."""
        names = itertools.chain(["log"], (f"log-{number}" for number in itertools.count(2)))
        return next(self.path / name for name in names if not (self.path / name).exists())

    def keep(self, state: RunState) -> None:
        """Write an epoch's checkpoint (as the best one, too, if it is the best so far), and the history."""
        content = io.BytesIO()
        torch.save(state.state_dict(), content)
        if _is_best(state.history):
            write_whole(self.path / BEST, content.getvalue())
        write_whole(self.path / LAST, content.getvalue())
        write_whole(self.path / "history.json", json.dumps(state.history, indent=1) + "\n")

    def load_best(self, model: nn.Module) -> None:
        """Put the weights of the best epoch into a model."""
        if (self.path / BEST).is_file():
            load_checkpoint(model, self.path / BEST)


def description(task: Task, recipe: Recipe, model: nn.Module, precision: str, devices: int | str) -> dict[str, Any]:
    """All that a run must not change when it is resumed."""
    shapes = "".join(f"{name}{tuple(p.shape)}" for name, p in model.named_parameters())
    return {
        "task": task.name,
        "data": task.fingerprint() if isinstance(task, FollowsRecipe) else "",
        "model": hashlib.sha256(shapes.encode()).hexdigest(),
        "precision": precision,
        "devices": str(devices),
        **{f"recipe.{name}": value for name, value in recipe.to_dict().items() if name != "precision"},
    }


def load_checkpoint(model: nn.Module, path: str | Path) -> None:
    """Put the weights of a checkpoint that `train` wrote into a model.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: it is damaged, or of a model of another shape.
    """
    weights = {name.removeprefix("model."): tensor for name, tensor in _read(Path(path))["state_dict"].items()}
    try:
        model.load_state_dict(weights)
    except RuntimeError as error:
        raise ValueError(f"{path} belongs to a model with other shapes: {error}") from None


def _read(path: Path) -> dict[str, Any]:
    try:
        checkpoint = torch.load(path, map_location="cpu", weights_only=True)
        return {name: checkpoint[name] for name in PARTS}
    except FileNotFoundError:
        raise
    except Exception as error:  # zip, pickle and key errors of a file that is something else
        raise ValueError(f"{path} is not a checkpoint of a training run, or is damaged: {error}") from None


def _is_best(history: History) -> bool:
    """Whether the last epoch has a lower validation loss than all before; NaN counts as infinite."""
    losses = [math.inf if math.isnan(epoch["val_loss"]) else epoch["val_loss"] for epoch in history]
    return all(losses[-1] < loss for loss in losses[:-1])
