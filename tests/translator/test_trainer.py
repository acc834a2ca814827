"""Training by a recipe: that a stopped run continues to the bit, that nothing is lost, and what processes share."""

import csv
import dataclasses
import json
import math
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from lightning_fabric.utilities.rank_zero import rank_zero_only
from torch import nn

from course_kit.data import Vocabulary, built_in_corpus
from course_kit.nn import Transformer
from course_kit.translator import TranslationTask
from course_kit.translator.batches import training_share, validation_share
from course_kit.translator.checkpoints import RunFolder, RunState, description, load_checkpoint
from course_kit.translator.devices import Precision, best_precision, fabric
from course_kit.translator.dropout import ByteDropout
from course_kit.translator.recipe import Recipe
from course_kit.translator.trainer import train
from course_kit.translator.validation import validate
from course_kit.workshop.tasks import reversal
from tools.publisher import ROOT

TINY = {"d_model": 16, "num_heads": 2, "num_layers": 1, "d_ff": 24, "dropout": 0.1, "precision": "32-true"}
REVERSAL = Recipe(vocab_size=13, epochs=3, warmup_steps=50, learning_rate=3e-3, positions="sinusoidal", **TINY)
CAPTIONS = Recipe(vocab_size=250, epochs=2, warmup_steps=10, max_tokens=256, **TINY)
QUIET = {"accelerator": "cpu", "show_progress": False}


def made_task(num_train=120):
    corpus = built_in_corpus(num_train=num_train, num_held_out=30)
    return TranslationTask(corpus, Vocabulary.learn(corpus.sentences("train"), 250), max_tokens=256, bpe_dropout=0.1)


@pytest.fixture(scope="module")
def captions():
    return made_task()


@pytest.fixture(scope="module")
def first_epoch(tmp_path_factory):
    folder = tmp_path_factory.mktemp("first")
    train(reversal(), REVERSAL, out=folder, stop_after=1, **QUIET)
    return folder


@pytest.fixture
def begun(first_epoch, tmp_path):
    """The folder of a run that was stopped after the first of its three epochs."""
    return shutil.copytree(first_epoch, tmp_path / "begun")


def same(one: nn.Module, other: nn.Module) -> bool:
    pairs = zip(one.state_dict().values(), other.state_dict().values(), strict=True)
    return all(torch.equal(a, b) for a, b in pairs)


def loss_per_token(model, task):
    """Of "val", each pair by itself."""
    total, count = 0.0, 0
    for pair in task.corpus["val"]:
        batch = task.pairs([pair])
        with torch.no_grad():
            total += F.cross_entropy(model(batch.source, batch.inputs)[0], batch.labels[0], reduction="sum").item()
        count += batch.labels.shape[1]
    return total / count


def logged_steps(folder):
    with (folder / "metrics.csv").open() as file:
        return [int(row["step"]) for row in csv.DictReader(file)]


# A run


def test_a_run_lowers_the_loss_and_writes_its_history_down(tmp_path):
    model, history = train(reversal(), REVERSAL, out=tmp_path, **QUIET)
    assert [(epoch["epoch"], epoch["step"]) for epoch in history] == [(1, 100), (2, 200), (3, 300)]
    assert history[-1]["val_loss"] < 0.9 * history[0]["val_loss"]
    assert history[-1]["val_perplexity"] == pytest.approx(math.exp(history[-1]["val_loss"]), rel=1e-5)
    assert history[-1]["rate"] == pytest.approx(0.01 * REVERSAL.learning_rate, rel=0.01)
    assert json.loads((tmp_path / "history.json").read_text()) == history
    assert not model.training


def test_a_stopped_run_goes_on_to_the_bit(captions, tmp_path):
    """With dropout in the model and in the spelling, a shuffle per epoch, Adam's moments and a falling rate."""
    recipe = dataclasses.replace(CAPTIONS, epochs=3, bpe_dropout=0.1)
    torch.manual_seed(5)
    before = torch.get_rng_state()
    whole, history = train(captions, recipe, out=tmp_path / "whole", **QUIET)
    assert torch.equal(torch.get_rng_state(), before)
    torch.rand(7)  # from here on the global random state is another one
    train(captions, recipe, out=tmp_path / "parts", stop_after=1, **QUIET)
    torch.rand(3)
    parts, other = train(captions, recipe, out=tmp_path / "parts", resume=True, **QUIET)
    assert same(whole, parts)
    assert history == other
    first, second = (logged_steps(tmp_path / "parts" / log) for log in ("log", "log-2"))
    assert max(first) <= history[0]["step"] < max(second)  # the log of the first part is not overwritten


def test_a_run_of_an_earlier_version_is_resumed(captions, tmp_path):
    """Its checkpoints had the history, and the factor of float16, where Lightning's Trainer puts them."""
    whole, history = train(captions, CAPTIONS, **QUIET)
    train(captions, CAPTIONS, out=tmp_path, stop_after=1, **QUIET)
    checkpoint = torch.load(tmp_path / "last.ckpt", weights_only=True)
    checkpoint["callbacks"] = {"History": {"epochs": checkpoint.pop("history")}}
    del checkpoint["precision"]
    torch.save(checkpoint, tmp_path / "last.ckpt")
    parts, other = train(captions, CAPTIONS, out=tmp_path, resume=True, **QUIET)
    assert same(whole, parts)
    assert other == history


def test_the_recipe_decides_on_batches_and_loss_and_validation_is_per_token(captions):
    """Whatever the task was made with; a mean of the means of batches would be another number."""
    recipe = dataclasses.replace(CAPTIONS, epochs=1, max_tokens=128, bpe_dropout=0.0, label_smoothing=0.3)
    task = captions.by_recipe(recipe)
    assert (task.max_tokens, task.bpe_dropout, task.label_smoothing) == (128, 0.0, 0.3)
    assert (captions.max_tokens, captions.bpe_dropout) == (256, 0.1)
    model, history = train(captions, recipe, **QUIET)
    assert history[0]["step"] == len(task.epoch(0, seed=0)) > len(captions.epoch(0, seed=0))
    assert history[0]["val_loss"] == pytest.approx(loss_per_token(model, captions), rel=1e-5)


def test_a_huge_validation_loss_has_a_finite_perplexity():
    class Sure(nn.Module):
        """Of padding, which is never right."""

        def forward(self, source, inputs):
            return 1e4 * F.one_hot(torch.zeros_like(inputs), 13)

    task = reversal()
    runtime = fabric(accelerator="cpu", devices=1, strategy="auto", precision="32-true")
    figures = validate(Sure(), task, [task.held_out(3)], runtime)
    assert figures["val_loss"] == pytest.approx(1e4)
    assert math.isfinite(figures["val_perplexity"])


def test_a_loss_that_is_not_a_number_stops_at_its_step():
    class Broken(Transformer):
        def forward(self, source, target):
            return super().forward(source, target) * math.nan

    with pytest.raises(FloatingPointError, match="the loss became nan at step 1; lower learning_rate"):
        train(reversal(), REVERSAL, model=Broken(REVERSAL.model_config()), **QUIET)


def test_ctrl_c_is_a_keyboard_interrupt_and_the_settings_are_given_back(monkeypatch):
    def interrupt(*_):
        assert torch.are_deterministic_algorithms_enabled()
        raise KeyboardInterrupt

    handler, task = signal.getsignal(signal.SIGINT), reversal()
    monkeypatch.setattr(type(task), "loss", interrupt)
    with pytest.raises(KeyboardInterrupt):
        train(task, REVERSAL, **QUIET)
    assert signal.getsignal(signal.SIGINT) is handler
    assert not torch.are_deterministic_algorithms_enabled()
    assert "CUBLAS_WORKSPACE_CONFIG" not in os.environ


def test_a_model_that_does_not_suit_the_task_is_refused_before_training():
    with pytest.raises(TypeError, match="reversal needs an encoder–decoder"):
        train(reversal(), REVERSAL, model=nn.Linear(2, 2), **QUIET)


@pytest.mark.thorough
def test_mixed_precision_learns_as_well():
    """bfloat16 runs on every CPU, on most slowly; the loss stays close to that of float32.

    After 100 steps they differ by less than 0.0001, measured with three seeds; an untrained model's is higher by 1.
    """
    figures = [
        train(reversal(), dataclasses.replace(REVERSAL, epochs=1, precision=precision), **QUIET)[1][-1]["val_loss"]
        for precision in ("32-true", "bf16-mixed")
    ]
    assert figures[0] == pytest.approx(figures[1], abs=0.01)


# The folder of a run


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


# Devices and processes


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
from test_trainer import CAPTIONS, REVERSAL, made_task, reversal, train

task, recipe = (made_task(), CAPTIONS) if sys.argv[1] == "captions" else (reversal(), REVERSAL)
if __name__ == "__main__":
    options = {"accelerator": "cpu", "devices": 2, "strategy": "ddp", "show_progress": False}
    train(task, recipe, out=sys.argv[2], **options, **json.loads(sys.argv[3]))
"""


def run_with_two_processes(folder, kind, recipe, **options):
    """Its history, and the model of its last epoch."""
    script = folder.with_suffix(".py")
    script.write_text(SCRIPT)
    paths = os.pathsep.join(map(str, (ROOT, ROOT / "tests", Path(__file__).parent)))
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


class TestByteDropout:
    @pytest.mark.parametrize(("p", "dropped"), [(0.3, 77), (255 / 256, 255)])
    def test_what_is_kept_keeps_the_mean_and_its_gradient(self, p, dropped):
        x = torch.ones(400, 500, requires_grad=True)
        y = ByteDropout(p)(x)
        assert set(y.unique().tolist()) == {0.0, torch.tensor(256 / (256 - dropped)).item()}
        assert (y == 0).float().mean().item() == pytest.approx(dropped / 256, abs=0.005)
        assert torch.equal(torch.autograd.grad(y.sum(), x)[0], y)

    def test_entries_are_dropped_independently(self):
        kept = (ByteDropout(0.5)(torch.ones(1001, 16)) != 0).float()  # sixteen bytes: two words a row
        assert (torch.corrcoef(kept.T) - torch.eye(16)).abs().max() < 0.15

    @pytest.mark.parametrize("p", [0.0, 0.001, 0.999, 1.0])
    def test_at_the_ends_and_outside_training_it_is_the_ordinary_one(self, p):
        """At the ends the nearest 256th is none or all."""
        drawn = []
        for layer in (ByteDropout(p), nn.Dropout(p)):
            torch.manual_seed(0)
            drawn.append(layer(torch.ones(1000, 40)))
        torch.testing.assert_close(*drawn)
        assert torch.equal(ByteDropout(0.5).eval()(torch.ones(7, 11)), torch.ones(7, 11))

    def test_a_model_keeps_its_parameters_and_has_its_own_modules_again_afterwards(self):
        """The very same ones, even after an error."""
        model = nn.Sequential(nn.Dropout(0.25), nn.Linear(2, 3), nn.Sequential(nn.Dropout(0.5))).eval()
        modules, names = list(model.modules()), list(model.state_dict())

        def interrupted():
            with ByteDropout.inside(model):
                assert [(type(m), m.p, m.training) for m in (model[0], model[2][0])] == [
                    (ByteDropout, 0.25, False),
                    (ByteDropout, 0.5, False),
                ]
                assert list(model.state_dict()) == names
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            interrupted()
        assert all(one is other for one, other in zip(model.modules(), modules, strict=True))
