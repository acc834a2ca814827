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
    optimizer = torch.optim.AdamW(
        model.parameters(), betas=recipe.betas, eps=recipe.eps, weight_decay=recipe.weight_decay
    )
    epochs = [list(task.epoch(number, seed=recipe.seed)) for number in range(recipe.epochs)]
    total_steps = recipe.epochs * len(epochs[0])
    for step, batch in enumerate((batch for epoch in epochs for batch in epoch), 1):
        optimizer.param_groups[0]["lr"] = recipe.rate(step, total_steps)
        optimizer.zero_grad()
        task.loss(model, batch).backward()
        if recipe.clip_norm:
            nn.utils.clip_grad_norm_(model.parameters(), recipe.clip_norm)
        optimizer.step()
    return model


@pytest.mark.thorough
@pytest.mark.parametrize(
    "change",
    [
        {},
        {"seed": 3, "bpe_dropout": 0.3},
        {"betas": (0.5, 0.7), "weight_decay": 0.5},
        {"eps": 0.1, "clip_norm": 0.05},
        {"eps": 0.1, "clip_norm": 0.0},
        {"schedule": "inverse_sqrt", "label_smoothing": 0.6},
        {"schedule": "constant", "tie_embeddings": False, "norm": "post", "positions": "rotary"},
    ],
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


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("vocab_size", 77), ("d_model", 24), ("num_heads", 3), ("num_layers", 5), ("d_ff", 29), ("dropout", 0.45),
        ("norm", "post"), ("positions", "rotary"), ("tie_embeddings", False),
    ],
)  # fmt: skip
def test_each_size_and_choice_reaches_the_model(name, value):
    start = {"d_model": 12, "num_heads": 2}  # both can be changed alone
    before = Recipe(**start)  # its choice may be another than the model's own default
    assert getattr(before, name) != value
    assert getattr(before.model_config(), name) == getattr(before, name)
    assert getattr(Recipe(**{**start, name: value}).model_config(), name) == value


def test_a_recipe_has_every_choice_of_a_model_but_those_of_its_vocabulary_and_length():
    """A choice that is added to the configuration is added to the recipe, and to the test above, or to this list."""
    here, there = ({field.name for field in dataclasses.fields(cls)} for cls in (Recipe, TransformerConfig))
    assert there - here == {"target_vocab_size", "max_length", "pad_id"}


def test_dropout_is_active_while_training_and_not_while_measuring():
    modes = []

    class Watched(nn.Dropout):
        def forward(self, x):
            modes.append(self.training)
            return super().forward(x)

    model = Pull()
    model.dropout = Watched(0.5)
    train(Pulled([1.0]), dataclasses.replace(PULLING, epochs=1), model=model, **QUIET)
    assert modes == [True] * STEPS + [False]


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
    """Epoch n pulls the number to `places[n]`; right are as many tenths as it has passed. It notes dropout's masks."""

    name = "pulled"
    unit = "numbers"
    goal = 1.0

    def __init__(self, places, strengths=(1.0, 1.0, 1.0)):
        self.places, self.strengths, self.masks = places, strengths, []

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
        self.masks.append((ones != 0).tolist())
        return batch.strength * (number - batch.place).square()

    def predict(self, model, batch):
        return model()[0]

    def correct(self, prediction, batch):
        right = (prediction > torch.arange(-10, 10) / 10)[None]
        return right, torch.ones_like(right)


TO_AND_FRO = {"places": [-5.0, 5.0, -5.0], "strengths": [1.0, 100.0, 0.01]}


def test_the_weights_of_the_epoch_with_the_lowest_validation_loss_are_returned(tmp_path):
    """The second of three: neither the first nor the last, nor the one with the lowest training loss."""
    task = Pulled(**TO_AND_FRO)
    model, history = train(task, PULLING, model=Pull(), out=tmp_path / "run", **QUIET)
    first, second, third = (epoch["val_loss"] for epoch in history)
    assert second < min(first, third)
    assert min(history, key=lambda epoch: epoch["train_loss"]) == history[2]
    right, _ = task.correct(model.number.detach(), None)
    assert 1 - right.float().mean().item() == pytest.approx(second, abs=1e-6)


def test_the_last_epoch_is_kept_too_and_returned_where_nothing_is_kept(tmp_path):
    train(Pulled(**TO_AND_FRO), PULLING, model=Pull(), out=tmp_path / "run", **QUIET)
    best, last = (torch.load(tmp_path / "run" / name, weights_only=True) for name in ("best.ckpt", "last.ckpt"))
    assert (best["global_step"], last["global_step"]) == (2 * STEPS, 3 * STEPS)
    model, _ = train(Pulled(**TO_AND_FRO), PULLING, model=Pull(), **QUIET)
    assert torch.equal(model.number, last["state_dict"]["model.number"])
    assert model.number < best["state_dict"]["model.number"]


def test_a_run_that_was_stopped_after_its_best_epoch_goes_on_with_the_last_one(tmp_path):
    """No epoch is trained twice, and the best is still known."""
    settings = {"model": Pull(), "out": tmp_path / "run", **QUIET}
    recipe = dataclasses.replace(PULLING, epochs=4)
    places = {"places": [5.0, -5.0, -5.0, -5.0], "strengths": [1.0] * 4}
    _, history = train(Pulled(**places), recipe, stop_after=2, **settings)
    task = Pulled(**places)
    model, whole = train(task, recipe, resume=True, **settings)
    assert len(task.masks) == 2 * STEPS
    assert whole[:2] == history
    assert len(whole) == 4
    right, _ = task.correct(model.number.detach(), None)
    assert 1 - right.float().mean().item() == pytest.approx(history[0]["val_loss"], abs=1e-6)


class Noted(Pulled):
    """Notes the losses of training."""

    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        self.losses = []

    def loss(self, model, batch):
        loss = super().loss(model, batch)
        self.losses.append(loss.item())
        return loss


def test_history_and_log_have_the_loss_and_the_rate_of_their_step(tmp_path):
    """The loss of an epoch is the mean over its own steps, the first and the later ones alike."""
    task, recipe = Noted(**TO_AND_FRO), dataclasses.replace(PULLING, schedule="cosine")
    _, history = train(task, recipe, model=Pull(), out=tmp_path / "run", **QUIET)
    total = recipe.epochs * STEPS
    for epoch, entry in enumerate(history):
        losses = task.losses[epoch * STEPS : (epoch + 1) * STEPS]
        assert entry["train_loss"] == pytest.approx(sum(losses) / STEPS, rel=1e-5)
        assert entry["rate"] == pytest.approx(recipe.rate((epoch + 1) * STEPS + 1, total))  # of the step to come
    with (tmp_path / "run/log/metrics.csv").open() as file:
        rows = {int(row["step"]): row for row in csv.DictReader(file)}
    assert float(rows[9]["rate"]) == pytest.approx(recipe.rate(10, total))  # steps are counted from 0 in the log
    for epoch, entry in enumerate(history):
        assert float(rows[entry["step"] - 1]["train_loss"]) == pytest.approx(entry["train_loss"])
        assert float(rows[entry["step"] - 1]["epoch"]) == epoch


def test_the_bar_ends_with_the_lowest_validation_loss(monkeypatch):
    """Of three epochs the second is the best."""

    class Terminal(io.StringIO):
        def isatty(self):
            return True

    monkeypatch.setattr(sys, "stderr", Terminal())
    _, history = train(Pulled(**TO_AND_FRO), PULLING, model=Pull(), accelerator="cpu")
    lowest = min(epoch["val_loss"] for epoch in history)
    assert lowest < history[-1]["val_loss"]
    assert sys.stderr.getvalue().endswith(f"pulled: 3 epochs, lowest validation loss {lowest:.3f}\n")


def masks_of(**change):
    task = Pulled([1.0] * 3)
    train(task, dataclasses.replace(PULLING, **change), model=Pull(), **QUIET)
    return task.masks


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


class Drawn:
    """A task without a training set that notes what was drawn; its model learns nothing."""

    name = "drawn"
    unit = "numbers"
    goal = 1.0

    def __init__(self):
        self.seen = []

    def check_model(self, model):
        pass

    def batch(self, size, generator):
        return Target(torch.randint(2**40, (size,), generator=generator), torch.zeros(size))

    def held_out(self, size, number=0):
        return Target(torch.zeros(size), torch.zeros(size))

    def loss(self, model, batch):
        self.seen += batch.place.tolist()
        return 0 * model.weight.sum()

    def predict(self, model, batch):
        return batch.place

    def correct(self, prediction, batch):
        return prediction[:, None] == 0, prediction[:, None] == 0


def test_a_task_without_a_training_set_gets_fresh_batches_in_every_step_and_epoch():
    """A hundred batches of 64 numbers below 2**40 an epoch: none comes twice."""
    task = Drawn()
    train(task, dataclasses.replace(PULLING, epochs=2), model=nn.Linear(1, 1), **QUIET)
    assert len(task.seen) == 2 * 100 * 64
    assert len(set(task.seen)) == len(task.seen)


def test_fresh_batches_follow_from_seed_epoch_and_place():
    def drawn(seed, epoch, place):
        return batches_of_epoch(reversal(), epoch, seed)[place].source.tolist()

    assert drawn(0, 0, 0) == drawn(0, 0, 0)
    assert len({str(drawn(seed, epoch, place)) for seed in (0, 1) for epoch in (0, 1) for place in (0, 1)}) == 8


@pytest.mark.parametrize("world", [1, 2, 3])
def test_processes_share_the_batches_of_the_current_epoch(captions, world):
    """No batch twice; as many for each, so that the remainder of a division is left out."""
    task = captions.by_recipe(dataclasses.replace(TINY, max_tokens=128))
    batches = [batch.source.tolist() for batch in task.epoch(4, seed=9)]
    ours = batches_of_epoch(task, 4, seed=9)
    shares = [[ours[place].source.tolist() for place in training_share(ours, rank, world)] for rank in range(world)]
    assert {len(share) for share in shares} == {len(batches) // world}
    together = [batch for in_step in zip(*shares, strict=True) for batch in in_step]
    assert together == batches[: len(together)]


def test_validation_reads_every_pair_of_val_once(captions):
    shares = []
    for rank in (0, 1):
        shares += [len(batch.source) for batch in validation_share(captions.by_recipe(TINY), rank, 2)]
    assert sum(shares) == len(captions.corpus["val"])
