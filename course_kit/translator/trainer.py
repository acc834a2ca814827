"""Training by a recipe: epochs, validation, checkpoints; a stopped run is resumed to the bit.

`train(task, recipe, out=…)` is all that most readers need; `course-lib train` calls it. What happens to each batch is
in `course_kit.workshop.training_loop`.

All that is random in step n follows from the recipe's seed and n, all that is random in epoch e from the seed and e:
a run that was stopped after an epoch continues as if it had not been stopped.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import torch
from torch import nn

from course_kit._checks import check_instance, check_whole
from course_kit.nn import Transformer
from course_kit.translator.batches import batches_of_epoch, draw_seed, training_share, validation_share
from course_kit.translator.checkpoints import History, RunFolder, RunState, description
from course_kit.translator.devices import Fabric, best_precision, deterministic, fabric, is_first_process, on_cpu
from course_kit.translator.dropout import ByteDropout
from course_kit.translator.recipe import Recipe
from course_kit.translator.task import FollowsRecipe
from course_kit.translator.validation import validate
from course_kit.workshop.progress_bar import ProgressBar
from course_kit.workshop.tasks import Task
from course_kit.workshop.training_loop import BadLossError, Objective, updates

__all__ = ["train"]

LOG_EVERY = 10  # steps
REMEDY = "lower learning_rate, lengthen warmup_steps, or set precision: 32-true. The last checkpoint is kept"


def train(
    task: Task,
    recipe: Recipe,
    *,
    model: nn.Module | None = None,
    out: str | Path | None = None,
    resume: bool = False,
    accelerator: str = "auto",
    devices: int | str = 1,
    strategy: str = "auto",
    show_progress: bool = True,
    stop_after: int | None = None,
) -> tuple[nn.Module, History]:
    """Train a model on a task by a recipe.

    The best epoch (by validation loss) and the last one are kept as checkpoints in `out`. There, history.json has an
    entry per epoch; losses and rate are in log/metrics.csv (log-2, log-3, … for runs that were resumed).

    Args:
        task: `TranslationTask`, or any other. Size of batches, label smoothing and BPE-dropout of a translation are
            those of the recipe, whatever the task was made with.
        recipe: everything that decides the result.
        model: None makes `Transformer(recipe.model_config())`, initialised from the recipe's seed. A model of yours is
            trained in place.
        out: folder for checkpoints and history; None keeps nothing on disk.
        resume: continue from the last checkpoint in `out`; on a CPU to the bit as if the run had not stopped.
        accelerator: as in Lightning: "auto", "cpu", "gpu", "mps".
        devices: how many, as in Lightning; each takes its share of an epoch's batches.
        strategy: as in Lightning; "ddp" for several processes.
        show_progress: show a bar.
        stop_after: stop after so many epochs of the recipe's, with the rate as for all of them; `resume` continues.

    Returns:
        `(model, history)`: the model with the weights of the best epoch (of the last one where nothing is kept), in
        eval mode on the CPU, and a dictionary per epoch: `train_loss` is the mean over batches (dropout and smoothing
        included), `val_loss` the mean over all tokens, `rate` the learning rate of the step to come.

    Raises:
        TypeError: an argument is of another type.
        TypeError, ValueError: the model does not suit the task, or stop_after is not a whole number of at least 1.
        NotADirectoryError: `out` is a file.
        FileNotFoundError: there is nothing to resume, or the best epoch's checkpoint is missing.
        FileExistsError: `out` holds another run's checkpoints, and `resume` is False.
        ValueError: the machine has no such accelerator or too few devices; what is to be resumed was begun with
            another recipe, task, precision or number of devices, or its checkpoint is damaged; a rate for embeddings,
            and the model has none.
        FloatingPointError: the loss became NaN or infinite. On a GPU this is seen at the end of the epoch only.
    """
    check_instance(Task, task=task)
    check_instance(Recipe, recipe=recipe)
    check_instance((nn.Module, type(None)), model=model)
    check_instance((str, Path, type(None)), out=out)
    if not isinstance(devices, str):
        check_whole(devices=devices, least=-1, most=2**20, hint="; -1 takes all that there are")
    check_instance(str, accelerator=accelerator, strategy=strategy)
    if stop_after is not None:
        check_whole(stop_after=stop_after, hint="; None trains for all epochs of the recipe")
    if isinstance(task, FollowsRecipe):
        task = task.by_recipe(recipe)
    folder = None if out is None else RunFolder(Path(out))
    if resume and folder is None:
        raise FileNotFoundError("expected a folder to resume from, got out=None; name it, or start without resume")
    checkpoint = folder.last() if resume else None
    if folder is not None and not resume and is_first_process():
        folder.check_free()
    if model is None:
        with torch.random.fork_rng():
            torch.manual_seed(recipe.seed)
            model = Transformer(recipe.model_config())
    precision = best_precision(accelerator) if recipe.precision == "auto" else recipe.precision
    if folder is not None:
        run = description(task, recipe, model, precision, devices)
        if resume:
            folder.check_same(run)
        elif is_first_process():
            folder.begin(run)
    objective = Objective(model, task)
    log = None if folder is None else folder.new_log()
    runtime = fabric(accelerator=accelerator, devices=devices, strategy=strategy, precision=precision, log=log)
    last_epoch = recipe.epochs if stop_after is None else min(stop_after, recipe.epochs)
    with ByteDropout.inside(model), deterministic(on_cpu(accelerator)), torch.random.fork_rng():
        runtime.launch()  # from here on, there is one process per device
        steps = len(batches_of_epoch(task, 0, recipe.seed)) // runtime.world_size
        optimizer, schedule = _optimizer(model, recipe, total_steps=steps * recipe.epochs)
        objective, optimizer = runtime.setup(objective, optimizer)  # on its device, and shared by the processes
        state = RunState(objective, optimizer, schedule, runtime.strategy.precision)
        if checkpoint is not None:
            state.load_state_dict(checkpoint)
        with ProgressBar(task.name, last_epoch * steps, show_progress and runtime.is_global_zero) as bar:
            bar.advance(state.step)
            _run_epochs(state, last_epoch, recipe, runtime, folder, bar)
            lowest = min(epoch["val_loss"] for epoch in state.history)
            bar.finish(f"{task.name}: {len(state.history)} epochs, lowest validation loss {lowest:.3f}")
    if folder is not None:
        folder.load_best(model)
    return model.to("cpu").eval(), state.history


def _run_epochs(
    state: RunState, last_epoch: int, recipe: Recipe, runtime: Fabric, folder: RunFolder | None, bar: ProgressBar
) -> None:
    """In each epoch: an update per batch, then validation, an entry in the history, and a checkpoint."""
    model, task = state.objective.module.model, state.objective.module.task
    rank, world = runtime.global_rank, runtime.world_size
    held_out = validation_share(task, rank, world)
    for epoch in range(len(state.history), last_epoch):
        batches = batches_of_epoch(task, epoch, recipe.seed)
        mine = (batches[place] for place in training_share(batches, rank, world))
        losses = updates(
            state.objective,
            _with_dropout_seeds(mine, recipe.seed, state.step, rank),
            state.optimizer,
            state.schedule,
            clip_norm=recipe.clip_norm,
            runtime=runtime,
            check_loss=runtime.device.type == "cpu",
        )
        total, first_step, rate = torch.zeros((), device=runtime.device), state.step, state.schedule.get_last_lr()[0]
        try:
            for loss in losses:
                total = total + loss
                state.step += 1
                if state.step % LOG_EVERY == 0:
                    runtime.log_dict({"rate": rate}, state.step - 1)
                    bar.show(f"epoch {epoch + 1}, loss {loss.item():.3f}")
                rate = state.schedule.get_last_lr()[0]  # of the next step
                bar.advance()
        except BadLossError as error:
            raise FloatingPointError(f"{error} at step {state.step + 1}; {REMEDY}") from None
        figures = validate(model, task, held_out, runtime)
        figures["train_loss"] = runtime.all_reduce(total, reduce_op="mean").item() / (state.step - first_step)
        if not math.isfinite(figures["train_loss"]):
            raise FloatingPointError(f"the loss became {figures['train_loss']} in epoch {epoch + 1}; {REMEDY}")
        figures = {name: _single(figure) for name, figure in figures.items()}
        runtime.log_dict({"epoch": epoch, **figures}, state.step - 1)
        state.history.append({"rate": rate, **figures, "epoch": epoch + 1, "step": state.step})
        if folder is not None and runtime.is_global_zero:
            runtime.logger.save()
            folder.keep(state)
        runtime.barrier()  # no process reads a checkpoint before it is written


def _optimizer(
    model: nn.Module, recipe: Recipe, *, total_steps: int
) -> tuple[torch.optim.Optimizer, torch.optim.lr_scheduler.LRScheduler]:
    """Adam (with decoupled weight decay, none by default), and the recipe's rate for each step."""
    modules = [module for module in model.modules() if isinstance(module, nn.Embedding)]
    embeddings = dict.fromkeys(module.weight for module in modules)  # each once, in a fixed order
    others = [weight for weight in model.parameters() if weight not in embeddings]
    rates = ((others, recipe.learning_rate), (list(embeddings), recipe.learning_rate * recipe.embedding_rate))
    groups = [{"params": weights, "lr": rate} for weights, rate in rates]
    optimizer = torch.optim.AdamW(groups, betas=recipe.betas, eps=recipe.eps, weight_decay=recipe.weight_decay)

    def factor(steps_done: int) -> float:
        return recipe.rate(steps_done + 1, total_steps) / recipe.learning_rate

    return optimizer, torch.optim.lr_scheduler.LambdaLR(optimizer, factor)


def _with_dropout_seeds(batches: Iterable[Any], seed: int, first_step: int, rank: int) -> Iterator[Any]:
    """The batches; right before each is used, dropout's draws are fixed by seed, step and process."""
    for step, batch in enumerate(batches, first_step):
        torch.manual_seed(draw_seed(seed, step, rank))
        yield batch


def _single(figure: float) -> float:
    """In float32, in which the model computed it."""
    return torch.tensor(figure, dtype=torch.float32).item()
