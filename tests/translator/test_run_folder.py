"""The folder of a run: nothing is lost or overwritten, and only the same run can be resumed in it."""

import dataclasses
import json
import math
import os

import pytest
import torch
from tiny_runs import CAPTIONS, QUIET, REVERSAL, made_task
from torch import nn

from course_kit.nn import Transformer
from course_kit.translator.checkpoints import RunFolder, RunState, description, load_checkpoint
from course_kit.translator.devices import Precision
from course_kit.translator.trainer import train
from course_kit.workshop.tasks import reversal


@pytest.mark.parametrize(
    ("damaged", "resume", "error", "message"),
    [
        ("", False, FileExistsError, "holds the checkpoints of another run; resume it, or choose another"),
        ("last.ckpt", True, ValueError, r"last\.ckpt is not a checkpoint of a training run, or is damaged"),
        ("-last.ckpt", True, FileNotFoundError, r"expected a checkpoint last\.ckpt in .*begun to resume from"),
        ("-best.ckpt", True, FileNotFoundError, r"expected the best epoch's checkpoint best\.ckpt in "),
        ("run.json", True, ValueError, r"run\.json must describe the run to be resumed"),
        ("-run.json", True, ValueError, r"run\.json must describe the run to be resumed"),
    ],
)
def test_nothing_is_overwritten_and_nothing_is_resumed_from_what_is_damaged(
    begun, monkeypatch, damaged, resume, error, message
):
    """A minus removes the file, otherwise half of it is left."""
    monkeypatch.setenv("LOCAL_RANK", "0")  # as for the first of several processes
    if damaged.startswith("-"):
        (begun / damaged[1:]).unlink()
    elif damaged:
        content = (begun / damaged).read_bytes()
        (begun / damaged).write_bytes(content[: len(content) // 2])
    before = {path.name: path.read_bytes() for path in begun.glob("*.*")}
    with pytest.raises(error, match=message):
        train(reversal(), REVERSAL, out=begun, resume=resume, **QUIET)
    assert {path.name: path.read_bytes() for path in begun.glob("*.*")} == before


def test_there_is_nothing_to_resume_without_a_folder():
    with pytest.raises(FileNotFoundError, match="expected a folder to resume from, got out=None"):
        train(reversal(), REVERSAL, resume=True, **QUIET)


@pytest.mark.parametrize("written", [0, 1])
def test_a_full_disk_leaves_the_last_checkpoint_whole(begun, monkeypatch, written):
    """Whether it is full from the start, or after the best checkpoint was written."""
    whole, calls = (begun / "last.ckpt").read_bytes(), []

    def full(descriptor):
        calls.append(descriptor)
        if len(calls) > written:
            os.ftruncate(descriptor, 1000)
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        train(reversal(), REVERSAL, out=begun, resume=True, stop_after=2, **QUIET)
    assert (begun / "last.ckpt").read_bytes() == whole
    load_checkpoint(Transformer(REVERSAL.model_config()), begun / "last.ckpt")


def test_weights_of_another_shape_or_a_missing_file_are_refused(begun):
    larger = Transformer(dataclasses.replace(REVERSAL, d_model=32).model_config())
    with pytest.raises(ValueError, match=r"best\.ckpt belongs to a model with other shapes"):
        load_checkpoint(larger, begun / "best.ckpt")
    with pytest.raises(FileNotFoundError):
        load_checkpoint(larger, begun / "none.ckpt")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"seed": 3}, "these differ: recipe.seed: 0 then, 3 now. Use the same settings"),
        ({"learning_rate": 0.1}, "these differ: recipe.learning_rate: 0.003 then, 0.1 now. Use"),
        ({"d_ff": 32}, "these differ: model: .*; recipe.d_ff: 24 then, 32 now. Use"),
        ({"precision": "bf16-mixed"}, "these differ: precision: '32-true' then, 'bf16-mixed' now. Use"),
    ],
)
def test_a_run_goes_on_with_what_it_was_begun_with(begun, change, message):
    with pytest.raises(ValueError, match=message):
        train(reversal(), dataclasses.replace(REVERSAL, **change), out=begun, resume=True, **QUIET)


def test_a_run_does_not_go_on_with_other_data_another_task_or_more_devices(captions, tmp_path):
    model, folder = Transformer(CAPTIONS.model_config()), RunFolder(tmp_path)
    folder.begin(description(captions, CAPTIONS, model, "32-true", 1))
    folder.check_same(description(made_task(), CAPTIONS, model, "32-true", 1))
    for name, task, devices in (("data", made_task(130), 1), ("task", reversal(), 1), ("devices", captions, 2)):
        with pytest.raises(ValueError, match=f"these differ: {name}: "):
            folder.check_same(description(task, CAPTIONS, model, "32-true", devices))


@pytest.mark.parametrize(
    ("losses", "kept"),
    [([2.0, 1.0, 1.0], 2), ([1.0, 1.0, 0.5], 3), ([math.nan, 3.0, math.nan], 2), ([3.0, 2.0, 4.0, 2.0], 2)],
)
def test_of_equally_good_epochs_the_first_is_kept(tmp_path, losses, kept):
    model = nn.Linear(1, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    parts = (model, optimizer, torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1.0), Precision())
    folder, history = RunFolder(tmp_path), []
    for epoch, loss in enumerate(losses, 1):
        history.append({"epoch": epoch, "val_loss": loss})
        folder.keep(RunState(*parts, step=10 * epoch, history=list(history)))
    for name, steps in (("best.ckpt", 10 * kept), ("last.ckpt", 10 * len(losses))):
        assert torch.load(tmp_path / name, weights_only=True)["global_step"] == steps
    assert [epoch["epoch"] for epoch in json.loads((tmp_path / "history.json").read_text())] == [*range(1, epoch + 1)]
