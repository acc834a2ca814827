"""course_kit.workshop.tasks: sequences and sets, greedy writing, and the loop that trains."""

from __future__ import annotations

import io
import sys
import types

import pytest
import torch
from oracles import no_side_effects
from torch import nn

import course_kit as ck
from course_kit import nn as full
from course_kit.workshop import tasks
from course_kit.workshop import train_on as loop
from course_kit.workshop.tasks import AnomalyTask, Sets, Task
from course_kit.workshop.train_on import TrainingResult, train_on


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


class Table(nn.Module):
    """An "encoder–decoder" that has a logit for each pair of a token and the next; it reads no source."""

    def __init__(self, logits):
        super().__init__()
        self.logits = nn.Parameter(logits)

    def encode(self, source):
        return source

    def decode(self, target, memory, source):
        return self.logits[target]

    def forward(self, source, target):
        return self.decode(target, source, source)


class Nearest(nn.Module):
    """The score of an item is its distance from the mean of its set, times a parameter."""

    def __init__(self):
        super().__init__()
        self.factor = nn.Parameter(torch.tensor(0.1))

    def forward(self, features):
        return (features - features.mean(1, keepdim=True)).norm(dim=-1) * self.factor


# --- by hand ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "target"), [(tasks.reversal, [3, 4, 6]), (tasks.copy, [6, 4, 3]), (tasks.sort, [3, 4, 6])]
)
def test_pairs_by_hand(make, target):
    pairs = make(length=3, vocab_size=7, min_length=1).pairs([torch.tensor([6, 4, 3]), torch.tensor([5])])
    assert pairs.source.tolist() == [[6, 4, 3], [5, 0, 0]]
    assert pairs.inputs.tolist() == [[1, *target], [1, 5, 0, 0]]
    assert pairs.labels.tolist() == [[*target, 2], [5, 2, 0, 0]]


def test_greedy_writing_by_hand():
    # 1 (bos) is followed by 3, 3 by 4, 4 by 2 (eos); after eos comes padding, whatever the table says.
    logits = torch.zeros(5, 5)
    logits[1, 3] = logits[3, 4] = logits[4, 2] = logits[2, 3] = logits[0, 3] = 1.0
    written = tasks.greedy_tokens(Table(logits), torch.tensor([[3], [4]]), max_length=5, bos_id=1, eos_id=2, pad_id=0)
    assert written.tolist() == [[3, 4, 2, 0, 0]] * 2


def test_measures_by_hand():
    task = tasks.reversal(length=2, vocab_size=5, min_length=1)
    pairs = task.pairs([torch.tensor([3, 3]), torch.tensor([3]), torch.tensor([4])])  # 3 3 2, 3 2 0, 4 2 0
    logits = torch.zeros(5, 5)
    logits[1, 3] = logits[3, 2] = 1.0  # writes 3 2 0 always: right are 3, nothing, nothing / 3 2 / nothing 2
    assert loop._measure(Table(logits), task, pairs) == pytest.approx((4 / 7, 1 / 3))


def test_the_loss_leaves_padding_out():
    task = tasks.copy(length=3, vocab_size=5, min_length=1)
    pairs = task.pairs([torch.tensor([3, 4, 3]), torch.tensor([4])])
    logits = torch.randn(5, 5)
    log_p = logits.log_softmax(-1)
    steps = [(1, 3), (3, 4), (4, 3), (3, 2), (1, 4), (4, 2)]
    expected = -sum(log_p[a, b] for a, b in steps) / len(steps)
    torch.testing.assert_close(task.loss(Table(logits), pairs), expected)


def test_the_loss_of_sets_by_hand():
    batch = Sets(torch.zeros(1, 4, 2), torch.tensor([3]))  # four scores of zero
    torch.testing.assert_close(AnomalyTask().loss(Nearest(), batch), torch.tensor(4.0).log())


# --- batches ----------------------------------------------------------------------------------------------------------


def test_batches_keep_the_stated_sizes():
    task = tasks.sort(length=7, vocab_size=11, min_length=3)
    source, inputs, labels = task.batch(500, generator())
    lengths = (source != task.pad_id).sum(1)
    assert set(lengths.tolist()) == {3, 4, 5, 6, 7}
    assert set(source.unique().tolist()) == {0, *range(3, 11)}
    assert inputs.shape == labels.shape == (500, 8)
    symbols = labels.masked_fill(labels == task.eos_id, task.pad_id)
    assert torch.equal(symbols.sort(1).values[:, 1:], source.sort(1).values)


@pytest.mark.parametrize("task", [tasks.reversal(), tasks.anomaly()], ids=lambda task: task.name)
def test_batches_come_from_the_generator_alone_and_held_out_data_are_always_the_same(task):
    assert isinstance(task, Task)
    drawing = generator(1)
    with no_side_effects():
        first, again, other, held_out = *(task.batch(9, generator(seed)) for seed in (1, 1, 2)), task.held_out(9)
        next_ones = [task.batch(9, drawing) for _ in range(2)][1]
    torch.manual_seed(5)
    assert all(map(torch.equal, first, again))
    assert all(map(torch.equal, held_out, task.held_out(9)))
    for same in (other, next_ones):
        assert not torch.equal(first[0], same[0])
    assert not torch.equal(held_out[0], task.held_out(9, 1)[0])


def test_one_item_of_a_set_is_of_another_class():
    task = AnomalyTask(set_size=5, num_features=3, num_classes=8, noise=0.0)
    features, target = task.batch(400, generator())
    assert features.shape == (400, 5, 3)
    assert set(target.tolist()) == {0, 1, 2, 3, 4}
    odd = features[torch.arange(400), target]  # (B, d)
    same = (features == odd[:, None]).all(-1)  # (B, n)
    assert (same.sum(1) == 1).all()
    others = features[~same].view(400, 4, 3)
    assert (others == others[:, :1]).all()
    met, unseen = (x.flatten(0, 1).unique(dim=0) for x in (features, task.held_out(400).features))
    assert len(met) == len(unseen) == 4  # half of the classes are for training
    assert not (unseen[:, None] == met).all(-1).any()


def test_noise_has_the_stated_deviation():
    noisy, clean = (AnomalyTask(set_size=5, num_features=7, num_classes=4, noise=noise) for noise in (0.25, 0.0))
    difference = noisy.batch(300, generator()).features - clean.batch(300, generator()).features
    assert difference.std() == pytest.approx(0.25, rel=0.05)
    assert repr(noisy) == "AnomalyTask(set_size=5, num_features=7, num_classes=4, noise=0.25)"


@pytest.mark.parametrize(
    ("make", "options", "message"),
    [
        (tasks.reversal, {"length": 4, "min_length": 5}, "min_length must lie in 1 … length = 4, got 5"),
        (tasks.sort, {"vocab_size": 4}, "vocab_size must be at least 5, got 4"),
        (tasks.anomaly, {"set_size": 2}, "set_size must be at least 3, got 2"),
        (tasks.anomaly, {"num_classes": 3}, "num_classes must be at least 4, got 3"),
        (tasks.anomaly, {"noise": -1.0}, "noise is a standard deviation"),
    ],
)
def test_impossible_tasks_are_refused(make, options, message):
    with pytest.raises(ValueError, match=message):
        make(**options)


# --- training ---------------------------------------------------------------------------------------------------------

SMALL = {"steps": 4, "evaluate_every": 2, "num_fresh": 20, "batch_size": 8, "show_progress": False}


def test_an_encoder_decoder_of_the_course_learns_short_reversal():
    config = full.TransformerConfig(vocab_size=6, d_model=32, num_heads=2, num_layers=1, d_ff=64, dropout=0.0)
    model, task = full.Transformer(config), tasks.reversal(length=3, vocab_size=6, min_length=2)
    options = {**SMALL, "steps": 400, "evaluate_every": 40, "num_fresh": 200, "batch_size": 64}
    result = train_on(model, task, warmup_steps=20, **options)
    assert result.exact == result.accuracy == 1.0
    assert result.steps == len(result.losses) < 400  # three evaluations without a mistake end it, and no two do
    assert [share for _, share in result.evaluations[-3:]] == [1.0] * 3
    assert result.first_perfect_step <= result.steps - 2 * 40
    assert result.first_perfect_step == next(step for step, share in result.evaluations if share == 1.0)
    assert sum(result.losses[-10:]) < 0.2 * sum(result.losses[:10])
    assert repr(result) == "reversal: reached 100 %, all of 200 fresh sequences are right"


def test_a_set_encoder_of_the_course_finds_the_odd_item_among_classes_that_it_has_not_met():
    task = tasks.anomaly()
    result = train_on(ck.assemble_set_encoder(num_features=task.num_features), task, steps=150, show_progress=False)
    assert result.reached
    assert repr(result) == "anomaly: reached 99 %, at least 99 % of 1,000 fresh sets are right"


def test_what_is_not_learned_is_said_and_no_error():
    result = train_on(Table(torch.zeros(13, 13)), tasks.reversal(), **{**SMALL, "steps": 3})
    assert result.first_perfect_step is None
    assert [step for step, _ in result.evaluations] == [2, 3]  # after the last step, too
    assert repr(result) == "reversal: did not reach 100 %, most of 20 fresh sequences are wrong"


@pytest.mark.parametrize(
    ("figures", "words"),
    [
        ({"exact": 1.0}, "t: reached 100 %, all of 1,000 fresh sets are right"),
        ({"exact": 0.999}, "t: did not reach 100 %, most of 1,000 fresh sets are right"),
        ({"exact": 0.5}, "t: did not reach 100 %, most of 1,000 fresh sets are right"),
        ({"exact": 0.499, "note": "n"}, "t: did not reach 100 %, most of 1,000 fresh sets are wrong; n"),
        ({"exact": 0.99, "goal": 0.99}, "t: reached 99 %, at least 99 % of 1,000 fresh sets are right"),
        ({"exact": 0.989, "goal": 0.99}, "t: did not reach 99 %, most of 1,000 fresh sets are right"),
    ],
)
def test_the_words_by_hand(figures, words):
    usual = {"task": "t", "unit": "sets", "steps": 1, "losses": [], "evaluations": [], "accuracy": 1.0}
    result = TrainingResult(**usual, num_fresh=1000, first_perfect_step=None, **figures)
    assert repr(result) == words
    assert result.reached == ("did not" not in words)


def test_what_was_learned_by_heart_is_suspected():
    table = torch.full((6, 6), -9.0)
    table[1, 3] = table[3, 4] = table[4, 5] = table[5, 2] = 9.0  # writes 3 4 5, whatever the source

    class Leaking(Table):
        """Right while it is given the answer; by itself it writes the same always."""

        def forward(self, source, target):
            later = torch.cat((target[:, 1:], torch.zeros_like(target[:, :1])), dim=1)
            return nn.functional.one_hot(later.masked_fill(later == 0, 2), 6) * 30.0 + self.logits.sum() * 0

    task = tasks.copy(length=3, vocab_size=6, min_length=3)
    assert train_on(Leaking(table), task, **SMALL).note.startswith("the loss is small nevertheless")
    assert train_on(Table(table), task, **SMALL).note == ""  # as wrong, and the loss says so


def test_a_loss_that_is_no_number_ends_training():
    result = train_on(Table(torch.full((13, 13), float("nan"))), tasks.reversal(), **SMALL)
    assert result.steps == 1
    assert "the loss became nan at step 1" in repr(result)


def test_equal_seeds_give_equal_results_and_the_global_state_stays():
    def run(seed, noisy=0):
        torch.manual_seed(noisy)
        model = nn.Sequential(nn.Dropout(0.5), Nearest()).eval()
        with no_side_effects():
            result = train_on(model, tasks.anomaly(), seed=seed, **SMALL)
        assert not model.training
        return result, model[1].factor.item()

    assert run(3) == run(3, noisy=9)
    assert run(3)[0].losses != run(4)[0].losses


def test_the_rate_is_the_one_asked_for_and_rises_and_falls():
    models = [Nearest() for _ in range(2)]
    for model, rate in zip(models, (0.0, 0.01), strict=True):
        train_on(model, tasks.anomaly(), learning_rate=rate, warmup_steps=2, **SMALL)
    assert models[0].factor.item() == pytest.approx(0.1)
    assert models[1].factor.item() > 0.11
    factor = loop._rate(10, 110)
    found = [factor(step) for step in (0, 9, 10, 60, 110, 200)]
    assert found == pytest.approx([0.1, 1, 1, 0.505, 0.01, 0.01])
    assert loop._rate(0, 5)(0) == 1.0


def test_gradients_are_clipped_and_the_result_is_measured_on_data_that_no_evaluation_saw():
    numbers = []

    class Steep(AnomalyTask):
        def loss(self, model, batch):
            return 1e4 * super().loss(model, batch)

        def held_out(self, size=1000, number=0):
            numbers.append(number)
            return super().held_out(size, number)

    model = Nearest()
    train_on(model, Steep(), seed=4, **SMALL)
    assert model.factor.grad.abs() == pytest.approx(1.0)
    assert numbers == [0, 5]


def test_sizes_below_one_and_models_that_do_not_suit_are_refused():
    for name in ("steps", "batch_size", "evaluate_every", "num_fresh"):
        with pytest.raises(ValueError, match=f"{name} must be at least 1, got 0"):
            train_on(Nearest(), tasks.anomaly(), **{**SMALL, name: 0})
    with pytest.raises(TypeError, match=r"reversal needs an encoder–decoder .* got Nearest; assemble"):
        train_on(Nearest(), tasks.reversal(), **SMALL)
    with pytest.raises(TypeError, match=r"anomaly needs a model from features .* assemble_set_encoder"):
        train_on(Table(torch.zeros(13, 13)), tasks.anomaly(), **SMALL)
    model = ck.assemble(vocab_size=13, pad_id=4, d_model=8, num_heads=2, d_ff=8)
    with pytest.raises(ValueError, match="pads with 0, got a model whose pad_id is 4"):
        train_on(model, tasks.reversal(), **SMALL)


# --- the bar, and what parts print ------------------------------------------------------------------------------------

BAR = {**SMALL, "show_progress": True}


class Prints(Nearest):
    def forward(self, features):
        print("here")
        return super().forward(features)


class Terminal(io.StringIO):
    def isatty(self):
        return True


def terminal(monkeypatch):
    monkeypatch.setattr(sys, "stderr", Terminal())
    return sys.stderr


def test_elsewhere_nothing_is_written(capsys):
    train_on(Prints(), tasks.anomaly(), **BAR)
    assert capsys.readouterr() == ("", "")


def test_in_a_terminal_the_bar_stands_on_standard_error(monkeypatch, capsys):
    screen = terminal(monkeypatch)
    train_on(Nearest(), tasks.anomaly(), **SMALL)
    assert screen.getvalue() == ""
    result = train_on(Nearest(), tasks.anomaly(), **BAR)
    assert "anomaly:" in screen.getvalue()
    assert screen.getvalue().endswith(f"{result!r}\n")
    assert capsys.readouterr().out == ""


def test_in_a_notebook_one_line_stays_on_standard_output(monkeypatch, capsys):
    """After the last carriage return stands only the result; notebooks take away what is before."""
    ipython = types.SimpleNamespace(get_ipython=lambda: types.SimpleNamespace(kernel=object()))
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    result = train_on(Prints(), tasks.anomaly(), **BAR)
    out, err = capsys.readouterr()
    assert err == ""
    assert "\r" in out
    assert out.split("\r")[-1] == f"{result!r}\n"
    assert out.count("\n") == 1


def test_an_error_of_the_model_closes_the_bar(monkeypatch):
    class Breaks(Nearest):
        def forward(self, features):
            raise ZeroDivisionError

    screen = terminal(monkeypatch)
    with pytest.raises(ZeroDivisionError):
        train_on(Breaks(), tasks.anomaly(), **BAR)
    assert screen.getvalue().endswith("\r")
