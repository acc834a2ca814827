"""Where a run computes: on which device, in which precision, and in how many processes."""

import json
import os
import subprocess
import sys

import pytest
import torch
from lightning_fabric.utilities.rank_zero import rank_zero_only
from tiny_runs import CAPTIONS, QUIET, REVERSAL, loss_per_token, same

from course_kit.nn import Transformer
from course_kit.translator.batches import training_share, validation_share
from course_kit.translator.checkpoints import load_checkpoint
from course_kit.translator.devices import best_precision
from course_kit.translator.trainer import train
from course_kit.workshop.tasks import reversal
from tools.publisher import ROOT


@pytest.mark.parametrize(
    "change", [{"devices": 0}, {"devices": "x"}, {"accelerator": "tpu"}, {"accelerator": "quantum"}], ids=str
)
def test_a_device_that_the_machine_lacks_is_named(change):
    ((name, value),) = change.items()
    with pytest.raises(ValueError, match=rf"Lightning does not take .*{name}={value!r}.* on this machine"):
        train(reversal(), REVERSAL, **QUIET | change)


def test_the_best_precision_is_the_fastest_that_trains_well(monkeypatch):
    amx, avx = "_is_amx_tile_supported", "_is_avx512_bf16_supported"
    for cuda, bf16, instructions, accelerator, expected in (
        (False, False, "", "auto", "32-true"),
        (False, False, amx, "auto", "bf16-mixed"),
        (False, False, avx, "auto", "bf16-mixed"),
        (True, True, "", "auto", "bf16-mixed"),
        (True, False, "", "gpu", "16-mixed"),
        (True, True, "", "cpu", "32-true"),
    ):
        monkeypatch.setattr(torch.cuda, "is_available", lambda cuda=cuda: cuda)
        monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda including_emulation, bf16=bf16: bf16)
        for name in (amx, avx):
            monkeypatch.setattr(torch.cpu, name, lambda has=name == instructions: has)
        assert best_precision(accelerator) == expected


def test_each_process_needs_a_batch(captions):
    with pytest.raises(ValueError, match=r"1000 processes need a batch each, got \d+ in an epoch; take fewer devices"):
        training_share(captions.epoch(0, seed=0), rank=0, world=1000)
    assert len(validation_share(captions, rank=0, world=1000)) == len(captions.split("val"))  # all of them, for each


@pytest.mark.thorough
def test_the_others_leave_the_description_of_the_run_to_the_first(begun, monkeypatch):
    """By the time they start, the first may have written a checkpoint."""
    (begun / "run.json").unlink()
    monkeypatch.setattr(rank_zero_only, "rank", 1)
    train(reversal(), REVERSAL, out=begun, stop_after=1, **QUIET)
    assert not (begun / "run.json").exists()


SCRIPT = """
import json, sys
from tiny_runs import CAPTIONS, REVERSAL, made_task

from course_kit.translator.trainer import train
from course_kit.workshop.tasks import reversal

task, recipe = (made_task(), CAPTIONS) if sys.argv[1] == "captions" else (reversal(), REVERSAL)
if __name__ == "__main__":
    options = {"accelerator": "cpu", "devices": 2, "strategy": "ddp", "show_progress": False}
    train(task, recipe, out=sys.argv[2], **options, **json.loads(sys.argv[3]))
"""


def run_with_two_processes(folder, kind, recipe, **options):
    """Its history, and the model of its last epoch."""
    script = folder.with_suffix(".py")
    script.write_text(SCRIPT)
    paths = os.pathsep.join(map(str, (ROOT, ROOT / "tests")))
    done = subprocess.run(
        [sys.executable, str(script), kind, str(folder), json.dumps(options)],
        capture_output=True,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": paths, "PYTHONWARNINGS": "ignore"},
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    model = Transformer(recipe.model_config()).eval()
    load_checkpoint(model, folder / "last.ckpt")
    return json.loads((folder / "history.json").read_text()), model


@pytest.mark.thorough
def test_two_processes_share_the_work_and_a_stopped_run_of_theirs_goes_on_to_the_bit(captions, tmp_path):
    """Half as many steps each; the loss is that of all of "val"."""
    whole, model = run_with_two_processes(tmp_path / "whole", "captions", CAPTIONS)
    batches = len(captions.by_recipe(CAPTIONS).epoch(0, seed=0))
    assert [epoch["step"] for epoch in whole] == [batches // 2, batches // 2 * 2]
    assert whole[-1]["val_loss"] == pytest.approx(loss_per_token(model, captions), rel=1e-5)
    run_with_two_processes(tmp_path / "parts", "captions", CAPTIONS, stop_after=1)
    parts, other = run_with_two_processes(tmp_path / "parts", "captions", CAPTIONS, resume=True)
    assert parts == whole
    assert same(model, other)


@pytest.mark.thorough
def test_two_processes_with_a_task_that_has_one_batch_to_measure_on(tmp_path):
    history, model = run_with_two_processes(tmp_path / "run", "reversal", REVERSAL, stop_after=1)
    assert history[0]["step"] == 50
    with torch.no_grad():
        expected = reversal().loss(model, reversal().held_out(500)).item()
    assert history[0]["val_loss"] == pytest.approx(expected, rel=1e-5)
