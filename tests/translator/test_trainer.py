"""Training by a recipe: what a step does, that a stopped run continues to the bit, and that nothing is lost."""

import csv
import dataclasses
import json
import math
import os
import signal
import subprocess
import sys
import textwrap

import pytest
import torch
import torch.nn.functional as F
from lightning_fabric.utilities.rank_zero import rank_zero_only
from torch import nn

from course_kit import train_on
from course_kit.data import Vocabulary, built_in_corpus
from course_kit.nn import Transformer
from course_kit.translator import TranslationTask
from course_kit.translator.batches import training_share, validation_share
from course_kit.translator.checkpoints import RunFolder, RunState, load_checkpoint
from course_kit.translator.devices import Precision, best_precision, fabric
from course_kit.translator.dropout import ByteDropout
from course_kit.translator.recipe import Recipe
from course_kit.translator.trainer import train
from course_kit.translator.validation import validate
from course_kit.workshop.assemble import assemble_set_encoder
from course_kit.workshop.tasks import anomaly, reversal
from tools.publisher import ROOT

TINY = {"d_model": 16, "num_heads": 2, "num_layers": 1, "d_ff": 24, "dropout": 0.1, "precision": "32-true"}
REVERSAL = Recipe(vocab_size=13, epochs=3, warmup_steps=50, learning_rate=3e-3, **TINY)
QUIET = {"accelerator": "cpu", "show_progress": False}


@pytest.fixture(scope="module")
def captions():
    corpus = built_in_corpus(num_train=120, num_held_out=30)
    vocabulary = Vocabulary.learn(corpus.sentences("train"), 250)
    return TranslationTask(corpus, vocabulary, max_tokens=256, bpe_dropout=0.1)


def same(one: nn.Module, other: nn.Module) -> bool:
    pairs = zip(one.state_dict().values(), other.state_dict().values(), strict=True)
    return all(torch.equal(a, b) for a, b in pairs)


def test_a_run_lowers_the_loss_and_writes_its_history_down(tmp_path):
    model, history = train(reversal(), REVERSAL, out=tmp_path, **QUIET)
    assert [epoch["epoch"] for epoch in history] == [1, 2, 3]
    assert [epoch["step"] for epoch in history] == [100, 200, 300]
    assert history[-1]["val_loss"] < 0.9 * history[0]["val_loss"]
    assert history[-1]["val_perplexity"] == pytest.approx(torch.tensor(history[-1]["val_loss"]).exp().item(), rel=1e-5)
    assert history[-1]["rate"] == pytest.approx(0.01 * REVERSAL.learning_rate, rel=0.01)
    assert json.loads((tmp_path / "history.json").read_text()) == history
    assert not model.training
    assert "rate" in (tmp_path / "log/metrics.csv").read_text().splitlines()[0]


def test_a_stopped_run_goes_on_to_the_bit(captions, tmp_path):
    """With dropout in the model and in the spelling, a shuffle an epoch, Adam's moments and a falling rate."""
    recipe = Recipe(vocab_size=250, epochs=3, warmup_steps=10, max_tokens=256, bpe_dropout=0.1, **TINY)
    whole, history = train(captions, recipe, out=tmp_path / "whole", **QUIET)
    torch.rand(7)  # the global random state is another one meanwhile
    train(captions, recipe, out=tmp_path / "parts", stop_after=1, **QUIET)
    torch.rand(3)
    parts, other = train(captions, recipe, out=tmp_path / "parts", resume=True, **QUIET)
    assert same(whole, parts)
    assert history == other
    first, second = (logged_steps(tmp_path / "parts" / log) for log in ("log", "log-2"))
    assert max(first) <= history[0]["step"] < max(second)  # the log of the first part is not written over


def test_a_huge_validation_loss_has_a_finite_perplexity():
    class Sure(nn.Module):
        """Of padding, which is never right."""

        def forward(self, source, inputs):
            return 1e4 * F.one_hot(torch.zeros_like(inputs), 13)

    task = reversal()
    runtime = fabric(accelerator="cpu", devices=1, strategy="auto", precision="32-true", log=None)
    figures = validate(Sure(), task, [task.held_out(3)], runtime)
    assert figures["val_loss"] == pytest.approx(1e4)
    assert math.isfinite(figures["val_perplexity"])


def logged_steps(folder):
    with (folder / "metrics.csv").open() as file:
        return [int(row["step"]) for row in csv.DictReader(file)]


def test_the_recipe_decides_on_batches_and_loss(captions):
    """Whatever the task was made with."""
    recipe = Recipe(vocab_size=250, epochs=1, max_tokens=128, bpe_dropout=0.0, label_smoothing=0.3, **TINY)
    task = captions.by_recipe(recipe)
    assert (task.max_tokens, task.bpe_dropout, task.label_smoothing) == (128, 0.0, 0.3)
    assert (captions.max_tokens, captions.bpe_dropout) == (256, 0.1)
    _, history = train(captions, recipe, **QUIET)
    assert history[0]["step"] == len(task.epoch(0, seed=0)) > len(captions.epoch(0, seed=0))


@pytest.mark.thorough
def test_the_same_seed_gives_the_same_weights_and_another_others():
    one, _ = train(reversal(), REVERSAL, stop_after=1, **QUIET)
    again, _ = train(reversal(), REVERSAL, stop_after=1, **QUIET)
    other, _ = train(reversal(), dataclasses.replace(REVERSAL, seed=1), stop_after=1, **QUIET)
    assert same(one, again)
    assert not same(one, other)


@pytest.mark.thorough
def test_the_global_random_state_is_left_alone():
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    train(reversal(), REVERSAL, stop_after=1, **QUIET)
    assert torch.equal(torch.rand(3), expected)


def test_perplexity_is_per_token_not_per_batch(captions):
    """Against the sum over all pairs, one by one."""
    recipe = Recipe(vocab_size=250, epochs=1, warmup_steps=5, max_tokens=256, **TINY)
    model, history = train(captions, recipe, **QUIET)
    total, count = 0.0, 0
    for pair in captions.corpus["val"]:
        batch = captions.pairs([pair])
        with torch.no_grad():
            log_probs = model(batch.source, batch.inputs).log_softmax(-1)[0]
        total -= log_probs.gather(1, batch.labels[0][:, None]).sum().item()
        count += batch.labels.shape[1]
    assert history[-1]["val_loss"] == pytest.approx(total / count, rel=1e-5)


def test_gradients_are_clipped(captions):
    """With a clip of almost nothing and plain steps the weights hardly move; Adam would hide it."""
    seen = []

    class Watched(TranslationTask):
        def loss(self, model, batch):
            loss = super().loss(model, batch)
            model.output.weight.register_post_accumulate_grad_hook(lambda p: None)
            return 1000 * loss

    task = Watched(captions.corpus, captions.vocabulary, max_tokens=256)
    recipe = Recipe(vocab_size=250, epochs=1, warmup_steps=5, max_tokens=256, clip_norm=0.25, **TINY)

    original = torch.optim.AdamW.step

    def step(self, *arguments, **options):
        result = original(self, *arguments, **options)
        gradients = [p.grad for group in self.param_groups for p in group["params"] if p.grad is not None]
        seen.append(torch.stack([g.norm() for g in gradients]).norm().item())
        return result

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(torch.optim.AdamW, "step", step)
        train(task, recipe, **QUIET)
    assert seen
    assert max(seen) <= 0.2501


@pytest.mark.thorough
def test_a_task_without_tokens_trains_too():
    """Sets instead of sentences: the same loop, accuracy instead of perplexity."""
    task = anomaly(set_size=5, num_features=8)
    model = assemble_set_encoder(num_features=8, d_model=16, num_heads=2, num_layers=1, d_ff=32)
    recipe = Recipe(vocab_size=5, epochs=2, warmup_steps=20, learning_rate=3e-3, **TINY)
    _, history = train(task, recipe, model=model, **QUIET)
    assert history[-1]["val_accuracy"] > 0.4  # a guess has one fifth
    assert "val_perplexity" not in history[-1]


@pytest.mark.thorough
def test_nothing_is_overwritten_and_nothing_is_resumed_from_nowhere(tmp_path):
    train(reversal(), REVERSAL, out=tmp_path, stop_after=1, **QUIET)
    before = (tmp_path / "last.ckpt").read_bytes()
    with pytest.raises(FileExistsError, match="holds the checkpoints of another run; resume it, or choose another"):
        train(reversal(), REVERSAL, out=tmp_path, **QUIET)
    assert (tmp_path / "last.ckpt").read_bytes() == before
    with pytest.raises(FileNotFoundError, match=r"expected a checkpoint last\.ckpt in .*empty.* to resume from"):
        train(reversal(), REVERSAL, out=tmp_path / "empty", resume=True, **QUIET)


def test_a_loss_that_is_no_number_stops_at_its_step():
    class Broken(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = Transformer(REVERSAL.model_config())

        def encode(self, source):
            return self.inner.encode(source)

        def decode(self, target, memory, source):
            return self.inner.decode(target, memory, source)

        def forward(self, source, target):
            return self.inner(source, target) * float("nan")

    with pytest.raises(FloatingPointError, match="the loss became nan at step 1; lower learning_rate"):
        train(reversal(), REVERSAL, model=Broken(), **QUIET)


@pytest.mark.thorough
def test_a_full_disk_leaves_the_last_checkpoint_whole(tmp_path, monkeypatch):
    """The second checkpoint can be written half: an error, and the first one still loads."""
    train(reversal(), REVERSAL, out=tmp_path, stop_after=1, **QUIET)
    whole = (tmp_path / "last.ckpt").read_bytes()

    def full(descriptor):
        os.ftruncate(descriptor, 1000)
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        train(reversal(), REVERSAL, out=tmp_path, resume=True, **QUIET)
    monkeypatch.undo()
    assert (tmp_path / "last.ckpt").read_bytes() == whole
    train(reversal(), REVERSAL, out=tmp_path, resume=True, **QUIET)


@pytest.mark.thorough
def test_a_checkpoint_of_another_shape_or_a_damaged_one_is_refused(tmp_path):
    train(reversal(), REVERSAL, out=tmp_path, stop_after=1, **QUIET)
    larger = Transformer(Recipe(vocab_size=13, **{**TINY, "d_model": 32}).model_config())
    with pytest.raises(ValueError, match=r"best\.ckpt belongs to a model with other shapes"):
        load_checkpoint(larger, tmp_path / "best.ckpt")
    (tmp_path / "half.ckpt").write_bytes((tmp_path / "best.ckpt").read_bytes()[:2000])
    with pytest.raises(ValueError, match=r"half\.ckpt is not a checkpoint of a training run, or is damaged"):
        load_checkpoint(Transformer(REVERSAL.model_config()), tmp_path / "half.ckpt")
    with pytest.raises(FileNotFoundError):
        load_checkpoint(larger, tmp_path / "none.ckpt")


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"seed": 3}, "recipe.seed: 0 then, 3 now"),
        ({"learning_rate": 0.1}, "recipe.learning_rate: 0.003 then, 0.1 now"),
        ({"d_ff": 32}, "recipe.d_ff: 24 then, 32 now"),
        ({"precision": "bf16-mixed"}, "precision: '32-true' then, 'bf16-mixed' now"),
    ],
)
def test_a_run_goes_on_with_what_it_was_begun_with(tmp_path, change, message):
    train(reversal(), REVERSAL, out=tmp_path, stop_after=1, **QUIET)
    with pytest.raises(ValueError, match=message):
        train(reversal(), dataclasses.replace(REVERSAL, **change), out=tmp_path, resume=True, **QUIET)


def test_a_run_does_not_go_on_with_another_corpus(captions, tmp_path):
    recipe = Recipe(vocab_size=250, epochs=2, warmup_steps=5, max_tokens=256, **TINY)
    train(captions, recipe, out=tmp_path, stop_after=1, **QUIET)
    corpus = built_in_corpus(num_train=130, num_held_out=30)
    other = TranslationTask(corpus, captions.vocabulary)
    with pytest.raises(ValueError, match="these differ: data: "):
        train(other, recipe, out=tmp_path, resume=True, **QUIET)


def test_a_damaged_checkpoint_is_named(tmp_path):
    train(reversal(), REVERSAL, out=tmp_path, stop_after=1, **QUIET)
    (tmp_path / "last.ckpt").write_bytes((tmp_path / "last.ckpt").read_bytes()[:3000])
    with pytest.raises(ValueError, match=r"last\.ckpt is not a checkpoint of a training run, or is damaged"):
        train(reversal(), REVERSAL, out=tmp_path, resume=True, **QUIET)


@pytest.mark.thorough
def test_the_best_epoch_is_kept_in_a_folder_that_was_moved(tmp_path):
    """After the rate is raised far too high the model can only get worse."""
    recipe = dataclasses.replace(REVERSAL, schedule="constant", warmup_steps=1, epochs=2)
    train(reversal(), recipe, out=tmp_path / "here", stop_after=1, **QUIET)
    best = (tmp_path / "here/best.ckpt").read_bytes()
    (tmp_path / "here").rename(tmp_path / "there")
    checkpoint = torch.load(tmp_path / "there/last.ckpt", weights_only=False)
    for group in checkpoint["optimizer_states"][0]["param_groups"]:
        group["lr"] = group["initial_lr"] = 30.0
    checkpoint["lr_schedulers"][0]["base_lrs"] = [30.0]
    torch.save(checkpoint, tmp_path / "there/last.ckpt")
    _, history = train(reversal(), recipe, out=tmp_path / "there", resume=True, **QUIET)
    assert history[1]["val_loss"] > history[0]["val_loss"]
    assert (tmp_path / "there/best.ckpt").read_bytes() == best


@pytest.mark.parametrize(
    ("losses", "kept"),
    [([2.0, 1.0, 1.0], 2), ([1.0, 1.0, 0.5], 3), ([float("nan"), 3.0, float("nan")], 2), ([3.0, 2.0, 4.0, 2.0], 2)],
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


@pytest.mark.thorough
def test_a_best_epoch_that_is_missing_is_asked_for(tmp_path):
    train(reversal(), REVERSAL, out=tmp_path, stop_after=1, **QUIET)
    (tmp_path / "best.ckpt").unlink()
    with pytest.raises(FileNotFoundError, match=r"expected the best epoch's checkpoint best\.ckpt in "):
        train(reversal(), REVERSAL, out=tmp_path, resume=True, **QUIET)


def test_a_run_of_an_earlier_version_is_resumed(captions, tmp_path):
    """Its checkpoints had the history, and the factor of float16, where Lightning's Trainer puts them."""
    recipe = Recipe(vocab_size=250, epochs=2, warmup_steps=10, max_tokens=256, **TINY)
    whole, history = train(captions, recipe, **QUIET)
    train(captions, recipe, out=tmp_path, stop_after=1, **QUIET)
    checkpoint = torch.load(tmp_path / "last.ckpt", weights_only=True)
    checkpoint["callbacks"] = {"History": {"epochs": checkpoint.pop("history")}}
    del checkpoint["precision"]
    torch.save(checkpoint, tmp_path / "last.ckpt")
    parts, other = train(captions, recipe, out=tmp_path, resume=True, **QUIET)
    assert same(whole, parts)
    assert other == history


@pytest.mark.thorough
def test_a_model_that_comes_in_eval_mode_is_trained_with_dropout():
    recipe = dataclasses.replace(REVERSAL, dropout=0.5)
    models = []
    for mode in (True, False):
        torch.manual_seed(0)
        model = Transformer(recipe.model_config()).train(mode)
        models.append(train(reversal(), recipe, model=model, stop_after=1, **QUIET)[0])
    assert same(*models)


@pytest.mark.parametrize("devices", [0, "x"])
def test_a_device_that_the_machine_lacks_is_named(devices):
    with pytest.raises(ValueError, match=r"Lightning does not take accelerator='cpu', devices=.* on this machine"):
        train(reversal(), REVERSAL, devices=devices, **QUIET)


def test_each_process_takes_equally_many_batches():
    assert [training_share(range(7), rank, 3) for rank in range(3)] == [[0, 3], [1, 4], [2, 5]]


def test_each_process_needs_a_batch(captions):
    with pytest.raises(ValueError, match=r"1000 processes need a batch each, got \d+ in an epoch; take fewer devices"):
        training_share(captions.epoch(0, seed=0), rank=0, world=1000)
    assert len(validation_share(captions, rank=0, world=1000)) == len(captions.split("val"))  # all of them, for each


@pytest.mark.thorough
def test_the_first_of_several_processes_overwrites_nothing_either(tmp_path, monkeypatch):
    """Their starter sets LOCAL_RANK for it, too."""
    train(reversal(), REVERSAL, out=tmp_path, stop_after=1, **QUIET)
    monkeypatch.setenv("LOCAL_RANK", "0")
    with pytest.raises(FileExistsError):
        train(reversal(), REVERSAL, out=tmp_path, **QUIET)


@pytest.mark.thorough
def test_the_others_leave_the_description_of_the_run_to_the_first(tmp_path, monkeypatch):
    """By the time they start, the first may have written a checkpoint."""
    train(reversal(), REVERSAL, out=tmp_path, stop_after=1, **QUIET)
    (tmp_path / "run.json").unlink()
    monkeypatch.setattr(rank_zero_only, "rank", 1)
    train(reversal(), REVERSAL, out=tmp_path, stop_after=1, **QUIET)
    assert not (tmp_path / "run.json").exists()


def test_ctrl_c_is_a_keyboard_interrupt_and_the_settings_are_given_back():
    class Interrupted(type(reversal())):
        def loss(self, model, batch):
            raise KeyboardInterrupt

    task = Interrupted(name="reversal", rearrange=lambda s: s.flip(0), length=6, vocab_size=13, min_length=3)
    handler = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        train(task, REVERSAL, **QUIET)
    assert signal.getsignal(signal.SIGINT) is handler
    assert not torch.are_deterministic_algorithms_enabled()
    assert "CUBLAS_WORKSPACE_CONFIG" not in os.environ


@pytest.mark.thorough
def test_a_model_is_given_back_with_its_own_dropout_and_trained_with_the_fast_one():
    seen = set()

    class Watched(type(reversal())):
        def loss(self, model, batch):
            seen.update(type(module) for module in model.modules() if isinstance(module, nn.Dropout))
            return super().loss(model, batch)

    task = Watched(name="reversal", rearrange=lambda s: s.flip(0), length=6, vocab_size=13, min_length=3)
    model = Transformer(REVERSAL.model_config())
    modules = list(model.modules())
    trained, _ = train(task, REVERSAL, model=model, stop_after=1, **QUIET)
    assert seen == {ByteDropout}
    assert trained is model
    assert all(one is other for one, other in zip(model.modules(), modules, strict=True))
    assert not any(module.training for module in modules)


def test_a_model_that_does_not_suit_the_task_is_refused_before_training():
    with pytest.raises(TypeError, match="reversal needs an encoder–decoder"):
        train(reversal(), REVERSAL, model=nn.Linear(2, 2), **QUIET)


SCRIPT = """
import json, sys
from course_kit.data import Vocabulary, built_in_corpus
from course_kit.translator import TranslationTask
from course_kit.translator.recipe import Recipe
from course_kit.workshop.tasks import reversal
from course_kit.translator.trainer import train

kind, out, options = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])
if kind == "captions":
    corpus = built_in_corpus(num_train=120, num_held_out=30)
    task = TranslationTask(corpus, Vocabulary.learn(corpus.sentences("train"), 250), max_tokens=256)
else:
    task = reversal()
recipe = Recipe(vocab_size=250 if kind == "captions" else 13, d_model=16, num_heads=2, num_layers=1, d_ff=24,
                dropout=0.1, epochs=2, warmup_steps=5, max_tokens=256, precision="32-true", bpe_dropout=0.0)
if __name__ == "__main__":
    train(task, recipe, out=out, accelerator="cpu", devices=2, strategy="ddp", show_progress=False, **options)
"""


def run_with_two_processes(folder, kind, **options):
    """Its history."""
    script = folder.with_suffix(".py")
    script.write_text(textwrap.dedent(SCRIPT))
    done = subprocess.run(
        [sys.executable, str(script), kind, str(folder), json.dumps(options)],
        capture_output=True,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT), "PYTHONWARNINGS": "ignore"},
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads((folder / "history.json").read_text())


@pytest.mark.thorough
def test_two_processes_share_the_work_and_a_stopped_run_of_theirs_goes_on_to_the_bit(captions, tmp_path):
    """Half as many steps each; the loss is that of all of "val", computed here again by one process."""
    whole = run_with_two_processes(tmp_path / "whole", "captions")
    recipe = Recipe(vocab_size=250, epochs=2, max_tokens=256, bpe_dropout=0.0, **TINY)
    task = captions.by_recipe(recipe)
    assert [epoch["step"] for epoch in whole] == [n * (len(task.epoch(0, seed=0)) // 2) for n in (1, 2)]

    model = Transformer(recipe.model_config()).eval()
    load_checkpoint(model, tmp_path / "whole/last.ckpt")
    total, count = 0.0, 0
    with torch.no_grad():
        for batch in task.split("val"):
            rows, labels = model(batch.source, batch.inputs).flatten(0, 1), batch.labels.flatten()
            total += F.cross_entropy(rows, labels, ignore_index=task.pad_id, reduction="sum").item()
            count += int((labels != task.pad_id).sum())
    assert whole[-1]["val_loss"] == pytest.approx(total / count, rel=1e-5)

    run_with_two_processes(tmp_path / "parts", "captions", stop_after=1)
    parts = run_with_two_processes(tmp_path / "parts", "captions", resume=True)
    assert parts == whole
    other = Transformer(recipe.model_config())
    load_checkpoint(other, tmp_path / "parts/last.ckpt")
    assert same(model, other)


@pytest.mark.thorough
def test_two_processes_with_a_task_that_has_one_batch_to_measure_on(tmp_path):
    history = run_with_two_processes(tmp_path / "run", "reversal", stop_after=1)
    assert history[0]["step"] == 50
    model = Transformer(Recipe(vocab_size=13, **TINY).model_config()).eval()
    load_checkpoint(model, tmp_path / "run/last.ckpt")
    with torch.no_grad():
        expected = reversal().loss(model, reversal().held_out(500)).item()
    assert history[0]["val_loss"] == pytest.approx(expected, rel=1e-5)


class TestByteDropout:
    def test_what_is_kept_keeps_the_mean(self):
        x = torch.ones(400, 500)
        y = ByteDropout(0.3)(x)
        p = round(0.3 * 256) / 256
        assert set(y.unique().tolist()) == {0.0, torch.tensor(256 / (256 - 77)).item()}
        assert abs((y == 0).float().mean().item() - p) < 0.005
        assert abs(y.mean().item() - 1) < 0.01

    def test_one_byte_of_256_is_kept_where_255_are_dropped(self):
        y = ByteDropout(255 / 256)(torch.ones(400, 500))
        assert set(y.unique().tolist()) == {0.0, 256.0}
        assert abs(y.mean().item() - 1) < 0.2

    def test_entries_are_dropped_independently(self):
        kept = (ByteDropout(0.5)(torch.ones(1001, 16)) != 0).float()  # sixteen bytes: two words a row
        correlation = torch.corrcoef(kept.T) - torch.eye(16)
        assert correlation.abs().max() < 0.15

    def test_the_gradient_is_dropped_likewise(self):
        x = torch.randn(7, 11, requires_grad=True)
        y = ByteDropout(0.5)(x)
        (grad,) = torch.autograd.grad(y.sum(), x)
        torch.testing.assert_close(y, x * grad)

    def test_it_does_nothing_outside_training_and_follows_the_seed(self):
        layer, x = ByteDropout(0.5), torch.randn(5, 3)
        assert layer.eval()(x) is x or torch.equal(layer(x), x)
        layer.train()
        torch.manual_seed(1)
        one = layer(x)
        torch.manual_seed(1)
        assert torch.equal(layer(x), one)

    @pytest.mark.parametrize("p", [0.0, 0.001, 0.999, 1.0])
    def test_at_the_ends_it_is_the_ordinary_one(self, p):
        """There the nearest 256th is none or all."""
        torch.manual_seed(0)
        y = ByteDropout(p)(torch.ones(1000, 40))
        torch.manual_seed(0)
        torch.testing.assert_close(y, nn.Dropout(p)(torch.ones(1000, 40)))

    def test_a_model_keeps_its_parameters(self):
        model = Transformer(REVERSAL.model_config())
        names = list(model.state_dict())
        with ByteDropout.inside(model):
            assert list(model.state_dict()) == names
            assert not [m for m in model.modules() if type(m) is nn.Dropout]
            assert [m for m in model.modules() if type(m) is ByteDropout]

    def test_a_model_has_its_own_modules_again_afterwards(self):
        """The very same ones, even after an error."""
        model = nn.Sequential(nn.Dropout(0.25), nn.Linear(2, 3), nn.Sequential(nn.Dropout(0.5))).eval()
        modules = list(model.modules())

        def interrupted():
            with ByteDropout.inside(model):
                assert (type(model[0]), model[0].p, model[2][0].p) == (ByteDropout, 0.25, 0.5)
                assert not model[0].training
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            interrupted()
        assert all(one is other for one, other in zip(model.modules(), modules, strict=True))


def test_the_best_precision_is_one_of_lightnings():
    assert best_precision() in {"32-true", "16-mixed", "bf16-mixed"}


@pytest.mark.thorough
def test_mixed_precision_learns_as_well():
    """bfloat16 runs on every CPU, on most slowly; the loss stays close to that of float32.

    After 100 steps they differ by less than 0.0001, measured with three seeds; an untrained model's is higher by 1.
    """
    figures = {}
    for precision in ("32-true", "bf16-mixed"):
        recipe = dataclasses.replace(REVERSAL, epochs=1, precision=precision)
        figures[precision] = train(reversal(), recipe, **QUIET)[1][-1]["val_loss"]
    assert figures["bf16-mixed"] == pytest.approx(figures["32-true"], abs=0.01)


@pytest.mark.thorough
def test_train_on_and_the_trainer_take_the_same_tasks():
    task = reversal(length=6)
    result = train_on(Transformer(REVERSAL.model_config()), task, steps=5, num_fresh=10, show_progress=False)
    assert result.task == task.name
    model, _ = train(task, REVERSAL, stop_after=1, **QUIET)
    assert task.predict(model, task.held_out(3)).shape[0] == 3
