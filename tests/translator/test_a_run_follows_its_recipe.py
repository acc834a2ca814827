"""Every number of a recipe reaches the run: against a training loop of plain PyTorch, and with models of a few numbers.

A run with a number that is not handed on still learns. So nothing here asks whether the loss falls: each test compares
with what the recipe says.
"""

import csv
import dataclasses
import io
import sys
from typing import NamedTuple

import pytest
import torch
from torch import Tensor, nn
from torch.testing import assert_close

from course_kit.data import Vocabulary, built_in_corpus
from course_kit.nn import Transformer, TransformerConfig
from course_kit.translator import TranslationTask
from course_kit.translator.batches import batches_of_epoch, draw_seed, training_share, validation_share
from course_kit.translator.dropout import ByteDropout
from course_kit.translator.recipe import Recipe
from course_kit.translator.trainer import _with_dropout_seeds, train
from course_kit.workshop.tasks import reversal

TINY = Recipe(
    vocab_size=120, d_model=8, num_heads=2, num_layers=1, d_ff=6, dropout=0.0, max_tokens=101, epochs=2, warmup_steps=3,
    learning_rate=0.01, precision="32-true",
)  # fmt: skip
QUIET = {"accelerator": "cpu", "show_progress": False}


@pytest.fixture(scope="module")
def captions():
    """A batch holds seven sentences or so; an epoch has five batches."""
    corpus = built_in_corpus(num_train=24, num_held_out=5)
    return TranslationTask(corpus, Vocabulary.learn(corpus.sentences("train"), 120), max_tokens=500)


def by_hand(task: TranslationTask, recipe: Recipe) -> nn.Module:
    """The recipe's run without dropout, as few lines of PyTorch."""
    with torch.random.fork_rng():
        torch.manual_seed(recipe.seed)
        model = Transformer(recipe.model_config())
    task = task.by_recipe(recipe)
    embeddings, others = (
        [weight for name, weight in model.named_parameters() if ("embedding" in name) == wanted]
        for wanted in (True, False)
    )
    optimizer = torch.optim.AdamW(
        [{"params": others, "factor": 1.0}, {"params": embeddings, "factor": recipe.embedding_rate}],
        betas=recipe.betas, eps=recipe.eps, weight_decay=recipe.weight_decay,
    )  # fmt: skip
    epochs = [list(task.epoch(number, seed=recipe.seed)) for number in range(recipe.epochs)]
    total_steps = recipe.epochs * len(epochs[0])
    for step, batch in enumerate((batch for epoch in epochs for batch in epoch), 1):
        for group in optimizer.param_groups:
            group["lr"] = group["factor"] * recipe.rate(step, total_steps)
        optimizer.zero_grad()
        task.loss(model, batch).backward()
        if recipe.clip_norm:
            nn.utils.clip_grad_norm_(model.parameters(), recipe.clip_norm)
        optimizer.step()
    return model


@pytest.mark.parametrize(
    "change",
    [
        {"seed": 3, "bpe_dropout": 0.3, "eps": 0.1, "clip_norm": 0.05, "embedding_rate": 3.0},
        *(
            pytest.param(change, marks=pytest.mark.thorough)
            for change in (
                {},
                {"betas": (0.5, 0.7), "weight_decay": 0.5},
                {"eps": 0.1, "clip_norm": 0.0},
                {"schedule": "inverse_sqrt", "label_smoothing": 0.6},
                {
                    "schedule": "constant",
                    "tie_embeddings": False,
                    "norm": "post",
                    "positions": "learned",
                    "embedding_rate": 0.2,
                },
            )
        ),
    ],
    ids=str,
)
def test_a_run_is_the_plain_loop(captions, change):
    """Weights after two epochs; without `out` those of the last step are returned."""
    recipe = dataclasses.replace(TINY, **change)
    expected = by_hand(captions, recipe)
    model, history = train(captions, recipe, **QUIET)
    assert len(history) == 2
    assert model.config == expected.config
    for (name, ours), theirs in zip(model.state_dict().items(), expected.state_dict().values(), strict=True):
        # float32: the run's rate is a factor of the highest rate, which is rounded differently.
        assert_close(ours, theirs, rtol=1e-4, atol=1e-6, msg=lambda text, name=name: f"{name}: {text}")


def test_each_size_and_choice_of_a_model_can_be_chosen_and_reaches_it():
    """A choice that is added to the configuration is added to the recipe and to this test, or to its last line."""
    changes = {
        "vocab_size": 77, "d_model": 24, "num_heads": 3, "num_layers": 5, "d_ff": 29, "dropout": 0.45, "norm": "post",
        "positions": "learned", "tie_embeddings": False,
    }  # fmt: skip
    before, after = Recipe().model_config(), Recipe(**changes).model_config()
    for name, value in changes.items():
        assert getattr(after, name) == value != getattr(before, name)
        assert getattr(before, name) == getattr(Recipe(), name)
    here, there = ({field.name for field in dataclasses.fields(cls)} for cls in (Recipe, TransformerConfig))
    assert there & here == set(changes)
    assert there - here == {"target_vocab_size", "max_length", "pad_id"}


# A model of one number that is pulled to and fro: which epoch is the best is known beforehand. With both betas 0, a
# step of Adam is as long as the learning rate, however strong the pull.

STEPS = 4  # in an epoch
PULLING = dataclasses.replace(
    TINY, learning_rate=0.1, betas=(0.0, 0.0), warmup_steps=1, schedule="constant", epochs=3, weight_decay=0.0
)


class Pull(nn.Module):
    """One number, and dropout of a hundred ones beside it."""

    def __init__(self):
        super().__init__()
        self.number = nn.Parameter(torch.tensor(0.05))
        self.dropout = nn.Dropout(0.5)

    def forward(self) -> tuple[Tensor, Tensor]:
        return self.number, self.dropout(torch.ones(100))


class Target(NamedTuple):
    """What pulls, and how strongly."""

    place: Tensor
    strength: Tensor


class Pulled:
    """Epoch n pulls the number to `places[n]`; right are as many fifths as it has passed. It notes what it sees."""

    name, unit, goal = "pulled", "numbers", 1.0

    def __init__(self, places, strengths=(1.0, 1.0, 1.0, 1.0)):
        self.places, self.strengths = places, strengths
        self.losses, self.masks, self.layers = [], [], []

    def check_model(self, model):
        assert isinstance(model, Pull)

    def epoch(self, number, *, seed):
        return [Target(torch.tensor(self.places[number]), torch.tensor(self.strengths[number]))] * STEPS

    def split(self, name):
        assert name == "val"
        return [self.held_out()]

    def batch(self, size, generator):
        raise AssertionError("a task with epochs is asked for these")

    def held_out(self, size=1, number=0):
        return Target(torch.tensor(0.0), torch.tensor(1.0))

    def loss(self, model, batch):
        number, ones = model()
        loss = batch.strength * (number - batch.place).square()
        self.losses.append(loss.item())
        self.masks.append((ones != 0).tolist())
        self.layers.append((type(model.dropout), model.dropout.training))
        return loss

    def predict(self, model, batch):
        self.layers.append((type(model.dropout), model.dropout.training))
        return model()[0]

    def correct(self, prediction, batch):
        right = (prediction > torch.arange(-10, 10) / 10)[None]
        return right, torch.arange(20)[None] % 2 == 0


def test_a_rate_for_embeddings_changes_nothing_without_embeddings():
    recipes = [dataclasses.replace(PULLING, embedding_rate=rate) for rate in (1.0, 3.0)]
    first, second = (train(Pulled([1.0] * 3), recipe, model=Pull(), **QUIET)[1] for recipe in recipes)
    assert first == second


def loss_of(model):
    """One minus the share of -1.0, -0.8, …, 0.8 that the number has passed."""
    return 1 - sum(model.number.item() > i / 5 for i in range(-5, 5)) / 10


TO_AND_FRO = {"places": [-5.0, 5.0, -5.0], "strengths": [1.0, 100.0, 0.01]}


def test_best_and_last_epoch_are_kept_and_the_weights_of_the_lowest_validation_loss_returned(tmp_path):
    """The second of three: neither the first nor the last, nor the one with the lowest training loss."""
    model, history = train(Pulled(**TO_AND_FRO), PULLING, model=Pull(), out=tmp_path / "run", **QUIET)
    first, second, third = (epoch["val_loss"] for epoch in history)
    assert second < min(first, third)
    assert min(history, key=lambda epoch: epoch["train_loss"]) == history[2]
    assert loss_of(model) == pytest.approx(second, abs=1e-6)
    assert history[1]["val_accuracy"] == pytest.approx(1 - second, abs=1e-6)
    assert "val_perplexity" not in history[1]
    best, last = (torch.load(tmp_path / "run" / name, weights_only=True) for name in ("best.ckpt", "last.ckpt"))
    assert (best["global_step"], last["global_step"]) == (2 * STEPS, 3 * STEPS)
    assert torch.equal(model.number, best["state_dict"]["model.number"])
    model, _ = train(Pulled(**TO_AND_FRO), PULLING, model=Pull(), **QUIET)  # where nothing is kept, the last
    assert torch.equal(model.number, last["state_dict"]["model.number"])
    assert model.number < best["state_dict"]["model.number"]


def test_a_run_that_was_stopped_after_its_best_epoch_goes_on_with_the_last_one(tmp_path):
    """No epoch is trained twice, and the best is still known, in a folder that was moved."""
    recipe, places = dataclasses.replace(PULLING, epochs=4), [5.0, -5.0, -5.0, -5.0]
    _, history = train(Pulled(places), recipe, model=Pull(), out=tmp_path / "here", stop_after=2, **QUIET)
    (tmp_path / "here").rename(tmp_path / "there")
    task = Pulled(places)
    model, whole = train(task, recipe, model=Pull(), out=tmp_path / "there", resume=True, **QUIET)
    assert len(task.masks) == 2 * STEPS
    assert whole[:2] == history
    assert len(whole) == 4
    assert loss_of(model) == pytest.approx(history[0]["val_loss"], abs=1e-6)


def test_history_and_log_have_the_loss_and_the_rate_of_their_step(tmp_path):
    """The loss of an epoch is the mean over its own steps, the first and the later ones alike."""
    task, recipe = Pulled(**TO_AND_FRO), dataclasses.replace(PULLING, schedule="cosine")
    _, history = train(task, recipe, model=Pull(), out=tmp_path / "run", **QUIET)
    total = recipe.epochs * STEPS
    with (tmp_path / "run/log/metrics.csv").open() as file:
        rows = {int(row["step"]): row for row in csv.DictReader(file)}
    assert float(rows[9]["rate"]) == pytest.approx(recipe.rate(10, total))  # steps are counted from 0 in the log
    for epoch, entry in enumerate(history):
        losses = task.losses[epoch * STEPS : (epoch + 1) * STEPS]
        assert entry["train_loss"] == pytest.approx(sum(losses) / STEPS, rel=1e-5)
        assert entry["rate"] == pytest.approx(recipe.rate((epoch + 1) * STEPS + 1, total))  # of the step to come
        assert float(rows[entry["step"] - 1]["train_loss"]) == pytest.approx(entry["train_loss"])
        assert float(rows[entry["step"] - 1]["epoch"]) == epoch


def test_the_bar_ends_with_the_lowest_validation_loss(monkeypatch):
    """Of three epochs the second is the best."""
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    sys.stderr.isatty = lambda: True
    _, history = train(Pulled(**TO_AND_FRO), PULLING, model=Pull(), accelerator="cpu")
    lowest = min(epoch["val_loss"] for epoch in history)
    assert lowest < history[-1]["val_loss"]
    assert sys.stderr.getvalue().endswith(f"pulled: 3 epochs, lowest validation loss {lowest:.3f}\n")


# Dropout


def masks_of(**change):
    task = Pulled([1.0] * 3)
    train(task, dataclasses.replace(PULLING, **change), model=Pull(), **QUIET)
    return task.masks


def test_dropout_is_the_fast_one_active_in_training_only_and_the_models_own_afterwards():
    """A model that comes in eval mode is trained with dropout, too."""
    model, task = Pull().eval(), Pulled([1.0])
    own = model.dropout
    trained, _ = train(task, dataclasses.replace(PULLING, epochs=1), model=model, **QUIET)
    assert task.layers == [(ByteDropout, True)] * STEPS + [(ByteDropout, False)]
    assert trained is model
    assert model.dropout is own
    assert not any(module.training for module in model.modules())


def test_dropout_is_another_in_each_step_of_each_epoch_and_follows_the_seed():
    masks = masks_of()
    assert len(masks) == 3 * STEPS
    assert all(one != other for i, one in enumerate(masks) for other in masks[:i])
    assert masks_of() == masks
    assert all(one != other for one, other in zip(masks_of(seed=1), masks, strict=True))


def test_dropout_is_another_in_each_process():
    drawn = []
    for rank in (0, 1):
        assert next(_with_dropout_seeds(["batch"], seed=3, first_step=5, rank=rank)) == "batch"
        drawn.append(torch.rand(7))
        torch.manual_seed(draw_seed(3, 5, rank))
        assert torch.equal(torch.rand(7), drawn[-1])
    assert not torch.equal(*drawn)


# Batches


def test_a_task_without_a_training_set_gets_fresh_batches_by_seed_epoch_and_place():
    def drawn(seed, epoch, place):
        return batches_of_epoch(reversal(), epoch, seed)[place].source.tolist()

    assert drawn(0, 0, 0) == drawn(0, 0, 0)
    assert len(drawn(0, 0, 0)) == 64
    assert len({str(drawn(seed, epoch, place)) for seed in (0, 1) for epoch in (0, 1) for place in (0, 1)}) == 8


def test_processes_share_the_batches_of_the_current_epoch(captions):
    """No batch twice; as many for each, so that the remainder of a division is left out."""
    task = captions.by_recipe(dataclasses.replace(TINY, max_tokens=128))
    batches = [batch.source.tolist() for batch in task.epoch(4, seed=9)]
    ours = batches_of_epoch(task, 4, seed=9)
    for world in (1, 2, 3):
        shares = [[ours[place].source.tolist() for place in training_share(ours, rank, world)] for rank in range(world)]
        assert {len(share) for share in shares} == {len(batches) // world}
        together = [batch for in_step in zip(*shares, strict=True) for batch in in_step]
        assert together == batches[: len(together)]


def test_validation_reads_every_pair_of_val_once(captions):
    task = captions.by_recipe(dataclasses.replace(TINY, max_tokens=128))
    shares = [validation_share(task, rank, 2) for rank in (0, 1)]
    assert all(shares)
    assert sum(len(batch.source) for share in shares for batch in share) == len(captions.corpus["val"])
