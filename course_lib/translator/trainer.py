"""Training with PyTorch Lightning: any task of the course, by a recipe, with checkpoints that go on to the bit.

`train(task, recipe, out=…)` is all that most readers need; `course-lib train` calls it.
"""

from __future__ import annotations

import hashlib
import io
import itertools
import json
import logging
import math
import os
import random
import signal
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path, PureWindowsPath
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.data import DataLoader, Subset

from course_lib._checks import check_whole
from course_lib._files import make_folder, write_whole
from course_lib.models import Transformer
from course_lib.translator.recipe import Recipe
from course_lib.workshop.tasks import Task

with warnings.catch_warnings():
    # In a notebook without ipywidgets, tqdm warns as soon as somebody imports its bar; ours are plain text.
    warnings.filterwarnings("ignore", "IProgress not found")
    import pytorch_lightning as pl
    from pytorch_lightning.callbacks import Callback, LearningRateMonitor, ModelCheckpoint, TQDMProgressBar
    from pytorch_lightning.loggers import CSVLogger
    from pytorch_lightning.plugins.io import TorchCheckpointIO
    from pytorch_lightning.utilities import rank_zero_only
    from pytorch_lightning.utilities.exceptions import MisconfigurationException

__all__ = ["ByteDropout", "History", "TaskData", "TaskModule", "best_precision", "train"]

LAST = "last.ckpt"
RUN = "run.json"  # what the run is made of
BEST = "best.ckpt"


class ByteDropout(nn.Dropout):
    """Dropout from one random byte an entry: what `nn.Dropout` does, with p rounded to a 256th, in less time on a CPU.

    There, drawing 32 bits for each entry is a large part of a small model's training step; how large, is measured in
    benchmarks/training_step.py. On other devices, where not training, and where p is rounded to none or all, it is
    `nn.Dropout`.
    """

    def forward(self, x: Tensor) -> Tensor:
        """`(...)` to `(...)`: each entry 0 with probability p, else divided by 1 − p."""
        dropped = round(self.p * 256)
        if not self.training or dropped in (0, 256) or x.device.type != "cpu":
            return super().forward(x)
        words = torch.empty((x.numel() + 7) // 8, dtype=torch.int64).random_(-(2**63), None)  # eight bytes each
        kept = words.view(torch.uint8)[: x.numel()].view(x.shape) >= dropped
        return x * kept * (256 / (256 - dropped))

    @classmethod
    def put_into(cls, model: nn.Module) -> None:
        """Replace every `nn.Dropout` of a model; parameters and their names stay as they are."""
        for module in model.modules():
            for name, child in module.named_children():
                if type(child) is nn.Dropout:
                    setattr(module, name, cls(child.p))


class TaskModule(pl.LightningModule):
    """A model, a task and a recipe: what one step does.

    All that is random in step n follows from the recipe's seed and n: a run that was stopped after an epoch goes on as
    if it had not been.

    Args:
        model: that suits the task.
        task: gives the loss; of one with tokens (it has a `pad_id`), perplexity is measured, else the share of right
            answers.
        recipe: gives rate, optimiser and seed.
        batches_per_epoch: of all processes together; with the recipe's epochs, the steps over which the rate falls.
    """

    def __init__(self, model: nn.Module, task: Task, recipe: Recipe, batches_per_epoch: int):
        super().__init__()
        task.check_model(model)
        self.model = model
        self.task = task
        self.recipe = recipe
        self.batches_per_epoch = batches_per_epoch
        self._has_tokens = hasattr(task, "pad_id")
        self._sums = torch.zeros(2, dtype=torch.float64)

    def on_train_batch_start(self, batch: Any, batch_idx: int) -> None:
        """Dropout's draws: from seed, step and process."""
        torch.manual_seed(random.Random(f"{self.recipe.seed}, {self.global_step}, {self.global_rank}").getrandbits(63))

    def training_step(self, batch: Any, batch_idx: int) -> Tensor:
        """The task's loss.

        Raises:
            FloatingPointError: it is NaN or infinite; on a GPU this is seen at the end of the epoch only.
        """
        loss = self.task.loss(self.model, batch)
        if loss.device.type == "cpu" and not math.isfinite(loss.item()):
            raise FloatingPointError(_not_finite(loss.item(), f"step {self.global_step + 1}"))
        self.log("train_loss", loss.detach(), prog_bar=True, on_step=False, on_epoch=True, batch_size=1, sync_dist=True)
        return loss

    def on_validation_epoch_start(self) -> None:
        """Sums over the whole split: a mean of means of batches would weigh tokens by the batch they are in."""
        self._sums.zero_()

    def validation_step(self, batch: Any, batch_idx: int) -> None:
        """Negative log-likelihood of each token, without smoothing, and their number; or what is right."""
        if self._has_tokens:
            logits = self.model(batch.source, batch.inputs).flatten(0, 1).float()
            labels, pad_id = batch.labels.flatten(), self.task.pad_id
            total = F.cross_entropy(logits, labels, ignore_index=pad_id, reduction="sum")
            self._sums += torch.tensor([total.item(), (labels != pad_id).sum().item()], dtype=torch.float64)
        else:
            right, counted = self.task.correct(self.task.predict(self.model, batch), batch)
            self._sums += torch.tensor([(right & counted).sum().item(), counted.sum().item()], dtype=torch.float64)

    def on_validation_epoch_end(self) -> None:
        """`val_loss` and `val_perplexity` per token, or `val_accuracy` (and 1 − it as `val_loss`)."""
        sums = self._sums
        if self.trainer.world_size > 1:  # not on one Apple GPU, which has no float64
            sums = self.trainer.strategy.reduce(sums.to(self.device), reduce_op="sum")
        total, count = sums.tolist()
        if self._has_tokens:
            self.log("val_loss", total / count, prog_bar=True)
            self.log("val_perplexity", math.exp(min(total / count, 80.0)), prog_bar=True)
        else:
            self.log("val_loss", 1 - total / count)
            self.log("val_accuracy", total / count, prog_bar=True)

    def configure_optimizers(self) -> dict[str, Any]:
        """Adam (with decoupled weight decay, none by default) and the recipe's rate, a step at a time."""
        recipe = self.recipe
        optimizer = torch.optim.AdamW(
            self.parameters(),
            lr=recipe.learning_rate,
            betas=recipe.betas,
            eps=recipe.eps,
            weight_decay=recipe.weight_decay,
        )

        total_steps = self.batches_per_epoch // self.trainer.world_size * recipe.epochs

        def factor(steps_done: int) -> float:
            return recipe.rate(steps_done + 1, total_steps) / recipe.learning_rate

        schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, factor)
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": schedule, "interval": "step", "name": "rate"}}


class _Fresh(Sequence):
    """Batches of a task without a training set: drawn when they are asked for, from the seed and their place."""

    def __init__(self, task: Task, number: int, size: int, seed: str):
        self._task, self._number, self._size, self._seed = task, number, size, seed

    def __len__(self) -> int:
        return self._number

    def __getitem__(self, place: int) -> Any:
        draw = torch.Generator().manual_seed(random.Random(f"{self._seed}, {place}").getrandbits(63))
        return self._task.batch(self._size, draw)


class TaskData(pl.LightningDataModule):
    """A task's batches, other ones each epoch, shared out among the processes.

    Args:
        task: with `epoch` and `split` (a training set that comes round again), or any other: then an epoch is
            `fresh_batches` of `batch_size`.
        seed: of order and draws.
        batch_size: of a task without a training set.
        fresh_batches: in an epoch, of such a task.
    """

    def __init__(self, task: Task, *, seed: int, batch_size: int = 64, fresh_batches: int = 100):
        super().__init__()
        self.task, self.seed, self.batch_size, self.fresh_batches = task, seed, batch_size, fresh_batches

    def batches(self, epoch: int) -> Sequence[Any]:
        """Those of an epoch, counted from 0, for all processes together."""
        if hasattr(self.task, "epoch"):
            return self.task.epoch(epoch, seed=self.seed)
        return _Fresh(self.task, self.fresh_batches, self.batch_size, f"{self.seed}, {epoch}")

    def train_dataloader(self) -> DataLoader:
        """This process's batches of the current epoch; each process has as many.

        Raises:
            ValueError: there are fewer batches than processes.
        """
        batches = self.batches(self.trainer.current_epoch)
        rank, world = self.trainer.global_rank, self.trainer.world_size
        if len(batches) < world:
            raise ValueError(
                f"{world} processes need a batch each, got {len(batches)} in an epoch; take fewer devices, or smaller "
                f"batches (max_tokens)"
            )
        return DataLoader(Subset(batches, range(rank, len(batches) - len(batches) % world, world)), batch_size=None)

    def val_dataloader(self) -> DataLoader:
        """This process's batches of "val"; of a task without one, a batch that stays the same.

        Where there are fewer batches than processes, each process has all of them: the shares and means are the same.
        """
        batches = self.task.split("val") if hasattr(self.task, "split") else [self.task.held_out(500)]
        rank, world = self.trainer.global_rank, self.trainer.world_size
        mine = range(rank, len(batches), world) if len(batches) >= world else range(len(batches))
        return DataLoader(Subset(batches, mine), batch_size=None)


class History(Callback):
    """A line for each epoch: step, losses, perplexity, rate. Kept in the checkpoint, so that it goes on too.

    `train_loss` is the mean over batches (dropout and smoothing included), `val_loss` the mean over all tokens, and
    `rate` that of the step to come.

    Args:
        path: of a JSON file that is written anew after each epoch; None for none.
    """

    def __init__(self, path: Path | None = None):
        self.path = path
        self.epochs: list[dict[str, float]] = []

    def on_train_epoch_end(self, trainer: pl.Trainer, module: pl.LightningModule) -> None:
        """Write down what the epoch came to."""
        figures = {name: float(value) for name, value in trainer.callback_metrics.items()}
        rate = trainer.optimizers[0].param_groups[0]["lr"]
        self.epochs.append({**figures, "epoch": trainer.current_epoch + 1, "step": trainer.global_step, "rate": rate})
        if not math.isfinite(figures.get("train_loss", 0.0)):
            raise FloatingPointError(_not_finite(figures["train_loss"], f"epoch {trainer.current_epoch + 1}"))
        if self.path is not None and trainer.is_global_zero:
            write_whole(self.path, json.dumps(self.epochs, indent=1) + "\n")

    def state_dict(self) -> dict[str, Any]:
        """For the checkpoint."""
        return {"epochs": self.epochs}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """From the checkpoint."""
        self.epochs = list(state["epochs"])


def best_precision(accelerator: str = "auto") -> str:
    """Lightning's name of the fastest precision that this machine trains well in.

    bfloat16 where a GPU or the processor's matrix unit (AMX) multiplies it; float16 on older GPUs; else float32.

    Args:
        accelerator: as in Lightning; with "cpu", a GPU is not looked at.
    """
    if torch.cuda.is_available() and accelerator != "cpu":
        return "bf16-mixed" if torch.cuda.is_bf16_supported(including_emulation=False) else "16-mixed"
    has_matrix_unit = getattr(torch.cpu, "_is_amx_tile_supported", lambda: False)
    return "bf16-mixed" if has_matrix_unit() else "32-true"


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
) -> tuple[nn.Module, list[dict[str, float]]]:
    """Train a model on a task by a recipe.

    The best epoch (by validation loss) and the last one are kept as checkpoints in `out`. There, history.json has an
    entry an epoch; loss and rate every few steps are in log/metrics.csv (log-2, log-3, … for runs that were resumed).

    Args:
        task: `TranslationTask`, or any other. Size of batches, label smoothing and BPE-dropout of a translation are
            those of the recipe, whatever the task was made with.
        recipe: everything that decides the result.
        model: None makes `Transformer(recipe.model_config())`, initialised from the recipe's seed. A model of yours is
            trained in place, and has `ByteDropout` for `nn.Dropout` afterwards.
        out: folder for checkpoints and history; None keeps nothing on disk.
        resume: go on from the last checkpoint in `out`; on a CPU to the bit as if the run had not stopped.
        accelerator: as in Lightning: "auto", "cpu", "gpu", "mps".
        devices: how many, as in Lightning; each takes its share of an epoch's batches.
        strategy: as in Lightning; "ddp" for several processes.
        show_progress: a bar.
        stop_after: stop after so many epochs of the recipe's, with the rate as for all of them; `resume` goes on.

    Returns:
        `(model, history)`: the model with the weights of the best epoch (of the last one where nothing is kept), in
        eval mode on the CPU, and a dictionary an epoch.

    Raises:
        TypeError, ValueError: the model does not suit the task, or stop_after is not a whole number of at least 1.
        NotADirectoryError: `out` is a file.
        FileNotFoundError: there is nothing to resume, or the best epoch's checkpoint is missing.
        FileExistsError: `out` holds another run's checkpoints, and `resume` is False.
        ValueError: the machine has no such accelerator or too few devices; what is to be resumed was begun with
            another recipe, task, precision or number of devices, or its checkpoint is damaged.
        FloatingPointError: the loss became NaN or infinite.
    """
    if stop_after is not None:
        check_whole(stop_after=stop_after, hint="; None trains for all epochs of the recipe")
    if hasattr(task, "by_recipe"):
        task = task.by_recipe(recipe)
    out = None if out is None else Path(out)
    if resume and (out is None or not (out / LAST).is_file()):
        raise FileNotFoundError(f"expected a checkpoint {LAST} in {out} to resume from; start without resume")
    if resume:
        _read_checkpoint(out / LAST)
        if not (out / BEST).is_file():
            raise FileNotFoundError(
                f"expected the best epoch's checkpoint {BEST} in {out}, beside {LAST}; put it back (a copy of {LAST} "
                f"will do where the last epoch was the best), or start anew in another folder"
            )
    if out is not None and not resume and (out / LAST).exists() and rank_zero_only.rank == 0:
        raise FileExistsError(
            f"{out} holds the checkpoints of another run; resume it, or choose another folder (nothing is overwritten)"
        )
    if model is None:
        with torch.random.fork_rng():
            torch.manual_seed(recipe.seed)
            model = Transformer(recipe.model_config())
    precision = best_precision(accelerator) if recipe.precision == "auto" else recipe.precision
    if out is not None:
        make_folder(out)
        _same_run(out / RUN, _description(task, recipe, model, precision, devices), resume)
    ByteDropout.put_into(model)
    model.train()  # Lightning leaves a model in the mode in which it comes
    data = TaskData(task, seed=recipe.seed)
    module = TaskModule(model, task, recipe, batches_per_epoch=len(data.batches(0)))
    history = History(None if out is None else out / "history.json")
    callbacks: list[Callback] = [history]
    if out is not None:
        callbacks.append(LearningRateMonitor("step"))
        callbacks.append(
            _Checkpoints(
                out,
                filename="best",
                monitor="val_loss",
                enable_version_counter=False,
                save_on_train_epoch_end=True,
            )
        )
    if show_progress:
        callbacks.append(TQDMProgressBar(refresh_rate=10))
    with _quiet_lightning(), _deterministic_as_before(), torch.random.fork_rng():
        trainer = _trainer(
            accelerator=accelerator,
            devices=devices,
            strategy=strategy,
            precision=precision,
            max_epochs=recipe.epochs if stop_after is None else min(stop_after, recipe.epochs),
            gradient_clip_val=recipe.clip_norm or None,
            reload_dataloaders_every_n_epochs=1,
            use_distributed_sampler=False,
            num_sanity_val_steps=0,
            deterministic=on_cpu(accelerator),
            logger=False if out is None else CSVLogger(out, name="", version=_new_log(out)),
            callbacks=callbacks,
            plugins=[_WholeFiles()],
            enable_checkpointing=out is not None,
            enable_progress_bar=show_progress,
            enable_model_summary=False,
            log_every_n_steps=10,
        )
        handler = signal.getsignal(signal.SIGINT)
        try:
            trainer.fit(module, data, ckpt_path=out / LAST if resume else None, weights_only=False if resume else None)
        except SystemExit:  # how Lightning answers Ctrl-C; a notebook would take it for its end
            signal.signal(signal.SIGINT, handler)
            raise KeyboardInterrupt from None
    if out is not None and (out / BEST).is_file():
        load_checkpoint(model, out / BEST)
    return model.to("cpu").eval(), history.epochs


def _trainer(**options: Any) -> pl.Trainer:
    try:
        return pl.Trainer(**options)
    except (MisconfigurationException, ModuleNotFoundError, TypeError) as error:  # a TPU without torch_xla; devices="x"
        asked = ", ".join(f"{name}={options[name]!r}" for name in ("accelerator", "devices", "strategy", "precision"))
        raise ValueError(f"Lightning does not take {asked} on this machine: {error}") from None


def load_checkpoint(model: nn.Module, path: str | Path) -> None:
    """Put the weights of a checkpoint that `train` wrote into a model.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: it is damaged, or of a model of another shape.
    """
    weights = {name.removeprefix("model."): tensor for name, tensor in _read_checkpoint(Path(path)).items()}
    try:
        model.load_state_dict(weights)
    except RuntimeError as error:
        raise ValueError(f"{path} is of a model of another shape: {error}") from None


def _read_checkpoint(path: Path) -> dict[str, Tensor]:
    """The weights in it; ValueError where it is damaged."""
    try:
        return torch.load(path, map_location="cpu", weights_only=True)["state_dict"]
    except FileNotFoundError:
        raise
    except Exception as error:  # zip, pickle and key errors of a file that is something else
        raise ValueError(f"{path} is no checkpoint of a training, or is damaged: {error}") from None


class _Checkpoints(ModelCheckpoint):
    """The best epoch and the last one.

    Lightning's own `save_last` leaves out every epoch that is not the best so far, and where the folder was moved since
    (to a drive, say), Lightning would forget which epoch was the best.
    """

    def on_train_epoch_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Write the best epoch, if this is it, then the last one, which thus knows about the best."""
        super().on_train_epoch_end(trainer, pl_module)
        trainer.save_checkpoint(Path(self.dirpath) / LAST)

    @property
    def state_key(self) -> str:
        """That of Lightning's class: made of this one's name, it would change with the name."""
        return super().state_key.replace(type(self).__qualname__, ModelCheckpoint.__qualname__, 1)

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        def here(path: str) -> str:
            return str(Path(self.dirpath) / PureWindowsPath(path).name) if path else path

        paths = {name: here(state_dict[name]) for name in ("best_model_path", "kth_best_model_path", "last_model_path")}
        scores = {here(path): score for path, score in state_dict["best_k_models"].items()}
        super().load_state_dict({**state_dict, **paths, "best_k_models": scores, "dirpath": self.dirpath})


class _WholeFiles(TorchCheckpointIO):
    """Lightning writes a checkpoint elsewhere and moves it, which between disks is a copy that can end half-way."""

    def save_checkpoint(self, checkpoint: dict[str, Any], path: str | Path, storage_options: Any = None) -> None:
        content = io.BytesIO()
        torch.save(checkpoint, content)
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        write_whole(Path(path), content.getvalue())


def _description(task: Task, recipe: Recipe, model: nn.Module, precision: str, devices: int | str) -> dict[str, Any]:
    """All that a run must not change when it goes on."""
    shapes = "".join(f"{name}{tuple(p.shape)}" for name, p in model.named_parameters())
    return {
        "task": task.name,
        "data": task.fingerprint() if hasattr(task, "fingerprint") else "",
        "model": hashlib.sha256(shapes.encode()).hexdigest(),
        "precision": precision,
        "devices": str(devices),
        **{f"recipe.{name}": value for name, value in recipe.to_dict().items() if name != "precision"},
    }


def _same_run(path: Path, run: dict[str, Any], resume: bool) -> None:
    """Write down what a run is made of, or compare it with what was written when it began."""
    if not resume:
        if rank_zero_only.rank == 0:
            write_whole(path, json.dumps(run, indent=1, ensure_ascii=False) + "\n")
        return
    try:
        before = json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, json.JSONDecodeError) as error:
        raise ValueError(f"{path} must say what the run to be resumed was made of: {error}") from None
    pairs = {name: (before.get(name), run.get(name)) for name in {**before, **run}}
    other = [f"{name}: {then!r} then, {now!r} now" for name, (then, now) in pairs.items() if then != now]
    if other:
        raise ValueError(
            f"a run goes on with what it was begun with; different are {'; '.join(other)}. Give the same, or start "
            f"anew in another folder"
        )


@contextmanager
def _deterministic_as_before() -> Iterator[None]:
    """Lightning asks PyTorch for deterministic algorithms, for good: undone here."""
    before = torch.are_deterministic_algorithms_enabled(), os.environ.get("CUBLAS_WORKSPACE_CONFIG")
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(before[0])
        if before[1] is None:
            os.environ.pop("CUBLAS_WORKSPACE_CONFIG", None)


def on_cpu(accelerator: str) -> bool:
    """Whether Lightning's accelerator, "auto" included, is the processor of this machine."""
    other = torch.cuda.is_available() or torch.backends.mps.is_available()
    return accelerator == "cpu" or (accelerator == "auto" and not other)


def _new_log(out: Path) -> str:
    """A folder of its own for each run: Lightning writes metrics.csv anew."""
    names = itertools.chain(["log"], (f"log-{number}" for number in itertools.count(2)))
    return next(name for name in names if not (out / name).exists())


def _not_finite(loss: float, where: str) -> str:
    return (
        f"the training loss became {loss} in {where}; lower learning_rate, lengthen warmup_steps, or set "
        f"precision: 32-true. The last checkpoint is kept"
    )


@contextmanager
def _quiet_lightning() -> Iterator[None]:
    """Without what Lightning says about the machine, its tips, and choices that are made here on purpose."""
    logger = logging.getLogger("pytorch_lightning")
    level = logger.level
    logger.setLevel(logging.WARNING)
    try:
        with warnings.catch_warnings():
            for message in (
                "does not have many workers",  # batches come padded from memory: workers would copy them
                "GPU available but not used",
                "exists and is not empty",  # the folder of a run that is resumed
                "logging interval",
                "LeafSpec",  # its use of PyTorch
            ):
                warnings.filterwarnings("ignore", f".*{message}.*")
            yield
    finally:
        logger.setLevel(level)
