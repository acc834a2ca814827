"""Putting a trained translator into the package: weights, scores of every run, card."""

import json
import shutil

import pytest
import torch
import yaml

from course_grade.command import main
from course_kit.data import built_in_corpus
from course_kit.translator import Translator
from course_kit.translator.recipe import Recipe
from tools import pretrained

pytestmark = pytest.mark.thorough

SIZES = {"vocab_size": 600, "d_model": 16, "num_heads": 2, "num_layers": 1, "d_ff": 24, "precision": "32-true"}


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Three of a training by the command, one of them longer."""
    folder = tmp_path_factory.mktemp("runs")
    (folder / "r.yaml").write_text(yaml.safe_dump(SIZES))
    for seed, epochs in ((0, 2), (1, 1), (2, 1)):
        command = ["train", "--config", str(folder / "r.yaml"), "--data", "built-in", "--out", str(folder / f"{seed}")]
        assert main([*command, "--quiet", "--accelerator", "cpu", "--seed", f"{seed}", "--epochs", f"{epochs}"]) == 0
    return [folder / f"{seed}" for seed in range(3)]


@pytest.fixture(scope="module")
def published(runs, tmp_path_factory):
    corpus = built_in_corpus(num_held_out=20)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pretrained, "load_corpus", lambda name: corpus)
        patch.setattr(pretrained, "SPLITS", ("val", "test"))
        pretrained.publish(runs, tmp_path_factory.mktemp("published"))
        yield tmp_path_factory.getbasetemp() / "published0", corpus


def test_the_first_runs_translator_is_put_in_whole(published, runs):
    folder, corpus = published
    source = [german for german, _ in corpus["test"]]
    assert Translator.load(folder).translate(source) == Translator.load(runs[0] / "translator").translate(source)
    assert Recipe.read(folder / "recipe.yaml") == Recipe(**SIZES, epochs=2, seed=0)
    assert len(json.loads((folder / "history.json").read_text())) == 2


def test_every_run_has_its_scores(published, runs):
    folder, corpus = published
    rows = json.loads((folder / "scores.json").read_text())
    assert [(row["seed"], row["epochs"]) for row in rows] == [(0, 2), (1, 1), (2, 1)]
    assert [other["beam"] for other in rows[0]["other_searches"]] == [1, 5, 5]
    for row, run in zip(rows, runs, strict=True):
        assert row["test"]["perplexity"] == pytest.approx(
            Translator.load(run / "translator").perplexity(corpus["test"])
        )


def test_what_is_scored_already_is_not_scored_again(published, runs, monkeypatch, tmp_path):
    folder, corpus = published
    shutil.copytree(folder, tmp_path / "again")
    monkeypatch.setattr(pretrained, "load_corpus", lambda name: corpus)
    monkeypatch.setattr(pretrained, "SPLITS", ("val", "test"))
    monkeypatch.setattr(Translator, "evaluate", None)
    pretrained.publish(runs[:2], tmp_path / "again")
    rows = json.loads((folder / "scores.json").read_text())
    assert json.loads((tmp_path / "again/scores.json").read_text()) == rows[:2]
    with pytest.raises(TypeError, match="not callable"):
        pretrained.publish(runs[:1], tmp_path / "new")


def test_the_card_says_what_was_measured(published):
    folder, _ = published
    card = (folder / "README.md").read_text()
    rows = json.loads((folder / "scores.json").read_text())
    for row in rows:
        assert f"| {row['seed']} | {row['epochs']} | test | {row['test']['bleu']:.2f} |" in card
    assert "test, 2 seeds with 1 epochs: mean" in card
    assert "minutes on a CPU with " in card
    assert "in precision 32-true" in card
    assert f"torch {torch.__version__}; " in card


def test_a_run_that_was_resumed_or_was_on_a_gpu_says_so():
    assert "resumed" in pretrained._where({"resumed": True})
    assert pretrained._where({"accelerator": "gpu", "devices": 2}) == " on 2 × gpu"
