"""Training by a recipe: that it learns, follows the recipe, continues to the bit, and stops where it must."""

import csv
import dataclasses
import json
import math
import os
import signal

import pytest
import torch
import torch.nn.functional as F
from tiny_runs import CAPTIONS, QUIET, REVERSAL, loss_per_token, same
from torch import nn

from course_kit.nn import Transformer
from course_kit.translator.devices import fabric
from course_kit.translator.trainer import train
from course_kit.translator.validation import validate
from course_kit.workshop.tasks import reversal


def logged_steps(folder):
    with (folder / "metrics.csv").open() as file:
        return [int(row["step"]) for row in csv.DictReader(file)]


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
