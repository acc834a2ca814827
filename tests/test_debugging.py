"""course_lib.debugging: each measurement by hand, against an oracle, on a healthy and on a faulty model."""

from __future__ import annotations

import math

import pytest
import torch
import torch.nn.functional as F
from oracles import no_side_effects
from torch import nn

from course_kit.nn import LanguageModel, TransformerConfig, TransformerEncoder
from course_lib.debugging import (
    fit_one_batch,
    idle_parameters,
    order_effect,
    padding_effect,
    precision_gap,
    start_loss,
    token_influence,
)

VOCAB, PAD = 11, 0


def config(**options) -> TransformerConfig:
    sizes = {"vocab_size": VOCAB, "d_model": 8, "num_heads": 2, "num_layers": 2, "d_ff": 12, "dropout": 0.0}
    return TransformerConfig(**{**sizes, **options})


def tokens(length: int = 5) -> torch.Tensor:
    return torch.randint(1, VOCAB, (3, length))


class Sums(nn.Module):
    """Logit v at position i is v times a weighted sum of the tokens: weights[i][j] for token j."""

    def __init__(self, weights, vocab=VOCAB):
        super().__init__()
        self.weights = nn.Parameter(torch.tensor(weights, dtype=torch.float32))
        self.vocab = vocab

    def forward(self, tokens):
        sums = tokens.to(self.weights.dtype) @ self.weights[: tokens.shape[1], : tokens.shape[1]].T  # (B, L)
        return sums[..., None] * torch.arange(self.vocab, dtype=self.weights.dtype)


# --- start_loss -------------------------------------------------------------------------------------------------------


def test_start_loss_by_hand():
    """Equal logits cost log V. With weights 1 : 3, the targets cost log 4 and log 4/3."""
    loss, chance = start_loss(torch.zeros(2, 3, 7), torch.ones(2, 3, dtype=torch.long))
    assert (loss, chance) == pytest.approx((math.log(7), math.log(7)), abs=1e-6)
    logits = torch.tensor([0.0, math.log(3)]).repeat(3, 1)
    targets = torch.tensor([0, 1, 1])
    assert start_loss(logits, targets)[0] == pytest.approx((math.log(4) + 2 * math.log(4 / 3)) / 3, abs=1e-6)
    assert start_loss(logits, targets, pad_id=1)[0] == pytest.approx(math.log(4), abs=1e-6)
    assert start_loss(logits, torch.tensor([0, 1, -100]))[0] == pytest.approx((math.log(4) + math.log(4 / 3)) / 2)
    assert start_loss(logits[0], targets[0])[0] == pytest.approx(math.log(4), abs=1e-6)


def test_start_loss_is_the_mean_of_log_probabilities():
    logits, targets = torch.randn(2, 3, VOCAB, dtype=torch.float64), torch.randint(0, VOCAB, (2, 3))
    targets[0, 0], targets[1, 2] = PAD, 4
    counted = [(b, i) for b in range(2) for i in range(3) if targets[b, i] != PAD]
    mean = sum(-logits[b, i].softmax(-1)[targets[b, i]].log().item() for b, i in counted) / len(counted)
    assert start_loss(logits, targets, PAD)[0] == pytest.approx(mean, abs=1e-12)


# --- fit_one_batch ----------------------------------------------------------------------------------------------------


def test_a_healthy_model_learns_one_batch_and_is_left_alone():
    model, ids = LanguageModel(config(dropout=0.1)).eval(), tokens()
    with no_side_effects(*model.parameters(), ids):
        losses = fit_one_batch(model, ids[:, :-1], ids[:, 1:], steps=60, learning_rate=2e-2)
    assert len(losses) == 60
    assert losses[-1] < 0.3 * losses[0]
    assert not any(module.training for module in model.modules())
    assert all(p.grad is None for p in model.parameters())
    assert losses[:9] == fit_one_batch(model, ids[:, :-1], ids[:, 1:], steps=9, learning_rate=2e-2)


def test_the_first_steps_are_those_of_adam():
    """The first loss is that of the model; the second that after one update, here computed by hand: Adam's first step
    is the learning rate in the direction of the sign."""
    model, ids, targets = LanguageModel(config()), tokens(), tokens()
    losses = fit_one_batch(model, ids, targets, steps=2, learning_rate=1e-3)
    first = F.cross_entropy(model(ids).transpose(1, 2), targets)
    gradients = torch.autograd.grad(first, list(model.parameters()))
    with torch.no_grad():
        for parameter, gradient in zip(model.parameters(), gradients, strict=True):
            parameter -= 1e-3 * gradient / (gradient.abs() + 1e-8)
        second = F.cross_entropy(model(ids).transpose(1, 2), targets)
    assert losses == pytest.approx([first.item(), second.item()], abs=1e-5)  # float32


def test_padding_and_missing_targets_do_not_count():
    model, ids = LanguageModel(config()), tokens()
    targets = ids.clone()
    targets[:, 2:] = PAD
    ignored = targets.masked_fill(targets == PAD, -100)
    assert fit_one_batch(model, ids, targets, steps=2, pad_id=PAD) == fit_one_batch(model, ids, ignored, steps=2)
    assert fit_one_batch(model, ids, targets, steps=1) != fit_one_batch(model, ids, ignored, steps=1)


def test_dropout_is_active_while_one_batch_is_learnt():
    model, ids = LanguageModel(config(dropout=0.9)).eval(), tokens()
    without = F.cross_entropy(model(ids).transpose(1, 2), ids).item()
    assert abs(fit_one_batch(model, ids, ids, steps=1)[0] - without) > 1e-3


def test_frozen_parameters_are_no_error_and_gradients_are_switched_on():
    model, ids = LanguageModel(config()), tokens()
    model.embedding.requires_grad_(False)
    with torch.no_grad():
        losses = fit_one_batch(model, ids, ids, steps=3)
    assert losses[2] < losses[0]


# --- token_influence --------------------------------------------------------------------------------------------------


def test_token_influence_by_hand():
    """Token j + 1 instead of j moves the sum at i by weights[i][j], and the largest logit by 10 times as much."""
    weights = [[0.5, 0.0, 3.0], [1.0, 2.0, 0.0], [0.0, -1.0, 0.25]]
    ids = torch.tensor([[1, 2, 3], [4, 5, 6]])
    assert token_influence(Sums(weights), ids).tolist() == [[10 * abs(w) for w in row] for row in weights]
    assert token_influence(Sums(weights), ids, [2, 0]).tolist() == [[30.0, 5.0], [0.0, 10.0], [2.5, 0.0]]
    # The last token of the vocabulary is replaced by the first: 4 → 0, times the largest factor, 4.
    assert token_influence(Sums([[1.0]], vocab=5), torch.tensor([[4]])).item() == 16.0


def test_the_influence_of_a_causal_model_is_a_triangle():
    causal = token_influence(LanguageModel(config()), tokens())
    assert not causal.triu(1).any()
    assert causal.tril().count_nonzero() == 15
    both = token_influence(lambda ids: TransformerEncoder(config())(ids), tokens())
    assert both.count_nonzero() == 25


@pytest.mark.parametrize("measure", [token_influence, order_effect, lambda m, x: padding_effect(m, x, PAD)])
def test_measurements_run_in_eval_mode_and_restore_every_mode(measure):
    model, ids = LanguageModel(config(dropout=0.5)).train(), tokens()
    model.layers.layers[0].eval()
    modes = [module.training for module in model.modules()]
    with no_side_effects(*model.parameters(), ids):
        first, second = measure(model, ids), measure(model, ids)
    assert torch.equal(torch.as_tensor(first), torch.as_tensor(second))
    assert [module.training for module in model.modules()] == modes


def test_the_modes_are_restored_after_an_error():
    model = LanguageModel(config()).train()
    with pytest.raises(ValueError, match="tokens must be ids in 0"):
        token_influence(model, tokens() + VOCAB)
    assert all(module.training for module in model.modules())


# --- padding_effect ---------------------------------------------------------------------------------------------------


def test_padding_effect_by_hand():
    """Two tokens 5 behind the last one move a sum with weights ½ and ¼ by 3.75, and the largest logit by 37.5."""
    model = Sums([[1.0, 1.0, 0.5, 0.25], [1.0, 1.0, 0.0, 0.0], [0.0] * 4, [0.0] * 4])
    assert padding_effect(model, torch.tensor([[1, 2]]), 5, extra=2) == pytest.approx(37.5)
    assert padding_effect(model, torch.tensor([[5, 2]]), 5, extra=2) == 0.0  # position 0 is padding itself


def test_padding_is_masked_in_this_package():
    encoder = TransformerEncoder(config()).double()
    ids = tokens()
    ids[0, -2:] = PAD
    assert padding_effect(encoder, ids, PAD) < 1e-12
    assert padding_effect(encoder, ids, PAD + 1) > 0.1  # another token is not masked
    assert padding_effect(LanguageModel(config()).double(), ids, PAD, extra=7) < 1e-12


# --- idle_parameters --------------------------------------------------------------------------------------------------


class Partly(nn.Module):
    def __init__(self):
        super().__init__()
        self.used, self.unused, self.dead, self.frozen = (nn.Parameter(torch.ones(2)) for _ in range(4))
        self.frozen.requires_grad_(False)

    def loss(self):
        return (self.used + 0 * self.dead + self.frozen).sum()


def test_idle_parameters_by_hand():
    model = Partly()
    model.used.grad = torch.tensor([7.0, 8.0])
    loss = model.loss()
    assert idle_parameters(model, loss) == {"unused": "unused", "dead": "zero"}
    assert model.used.grad.tolist() == [7.0, 8.0]  # what was collected is left alone
    loss.backward()  # the graph is still there
    assert model.used.grad.tolist() == [8.0, 9.0]


def test_nothing_is_idle_in_a_healthy_model_and_nothing_trainable_is_no_error():
    model, ids = LanguageModel(config()), tokens()
    loss = F.cross_entropy(model(ids).transpose(1, 2), ids)
    assert idle_parameters(model, loss) == {}
    assert idle_parameters(model.requires_grad_(False), torch.ones(())) == {}


# --- order_effect -----------------------------------------------------------------------------------------------------


def test_order_effect_by_hand():
    """The sum at i is the token at i plus three times the first one: reversing 1 4 changes 3 into 12, times 10."""
    model = Sums([[4.0, 0.0], [3.0, 1.0]])
    assert order_effect(model, torch.tensor([[1, 4]])) == pytest.approx(90.0)
    assert order_effect(Sums([[2.0, 1.0], [1.0, 2.0]]), torch.tensor([[1, 4]])) == 0.0


def test_an_encoder_without_positions_ignores_the_order():
    ids = tokens()
    assert order_effect(TransformerEncoder(config(positions="none")).double(), ids) < 1e-12
    assert order_effect(TransformerEncoder(config()).double(), ids) > 0.1
    assert order_effect(LanguageModel(config(positions="none")).double(), ids) > 1e-3  # by the causal mask


# --- precision_gap ----------------------------------------------------------------------------------------------------


class Third(nn.Module):
    def __init__(self, offset=0.0):
        super().__init__()
        self.third = nn.Parameter(torch.tensor(1 / 3, dtype=torch.float64))
        self.offset = offset

    def forward(self, tokens):
        return (self.third * torch.ones_like(tokens)[..., None] + self.offset) - self.offset


def test_precision_gap_by_hand():
    """1/3 in float32 is 2^-25 / 3 too large, relative 2^-25; behind 2^23, only whole numbers are left: 0 instead."""
    assert precision_gap(Third(), tokens()) == pytest.approx(2**-25, rel=1e-6)
    assert precision_gap(Third(offset=2.0**23), tokens()) == pytest.approx(1.0, rel=1e-6)
    assert precision_gap(Sums([[0.0] * 5] * 5), tokens()) == 0.0


def test_precision_gap_leaves_the_model_alone():
    model, ids = LanguageModel(config(dropout=0.5)).train(), tokens()
    with no_side_effects(*model.parameters(), ids):
        assert precision_gap(model, ids) < 1e-5
    assert model.training
    assert {p.dtype for p in model.parameters()} == {torch.float32}


# --- models that are not ready ----------------------------------------------------------------------------------------

ON_MODULES = {
    "fit_one_batch": lambda model, ids: fit_one_batch(model, ids, ids, steps=1),
    "precision_gap": precision_gap,
    "token_influence": token_influence,
    "padding_effect": lambda model, ids: padding_effect(model, ids, PAD),
    "order_effect": order_effect,
}


@pytest.mark.parametrize("name", ON_MODULES)
def test_a_model_without_weights_is_refused_and_left_alone(name):
    model, ids = nn.Sequential(nn.Embedding(VOCAB, 4), nn.LazyLinear(VOCAB)), tokens()
    with no_side_effects(ids), pytest.raises(ValueError, match=r"without `1.weight`; call the model once"):
        ON_MODULES[name](model, ids)
    assert nn.parameter.is_lazy(model[1].weight)
    with pytest.raises(ValueError, match=r"`embedding.embedding.weight` on the device 'meta'; load the weights"):
        ON_MODULES[name](LanguageModel(config()).to("meta"), ids)


@pytest.mark.parametrize("name", ["fit_one_batch", "precision_gap"])
def test_a_model_that_cannot_be_copied_is_refused(name):
    model = LanguageModel(config())
    model.kept = model(tokens())
    with pytest.raises(ValueError, match=r"model must be copyable, got RuntimeError.*outputs that were kept"):
        ON_MODULES[name](model, tokens())


# --- wrong arguments --------------------------------------------------------------------------------------------------

IDS = torch.ones(2, 3, dtype=torch.long)
MODEL = Sums([[1.0] * 6] * 6)
REFUSED = {
    "one target per position": (
        lambda: start_loss(torch.ones(2, 4, 5), IDS),
        r"logits and targets must have the same axes .*, got logits \(2, 4, 5\) and targets \(2, 3\); one target per",
    ),
    "targets that broadcast": (
        lambda: start_loss(torch.ones(2, 1, 5), IDS),
        r"targets must have the shape .* \(2, 1\), got \(2, 3\); one target per position",
    ),
    "above the vocabulary": (lambda: start_loss(torch.ones(2, 3, 1), IDS), "0 … 0, got 1 … 1"),
    "below the vocabulary": (lambda: start_loss(torch.ones(2, 3, 5), IDS - 2), r"vocabulary, 0 … 4, got -1 … -1"),
    "no vocabulary": (lambda: start_loss(torch.ones(2, 3, 0), IDS), r"with V ≥ 1, got \(2, 3, 0\)"),
    "padding only": (lambda: start_loss(torch.ones(2, 3, 5), IDS, 1), "got padding only"),
    "one target per token": (lambda: fit_one_batch(MODEL, IDS, IDS[:, 1:]), r"agree in length, .*; one target per"),
    "all frozen": (
        lambda: fit_one_batch(Sums([[1.0]]).requires_grad_(False), IDS, IDS), "must have parameters to train",
    ),
    "no tokens": (lambda: token_influence(MODEL, IDS[:0]), r"at least one token, got \(0, 3\)"),
    "no such column": (lambda: token_influence(MODEL, IDS, [3]), r"columns\[0\] must be at most 2, got 3"),
    "no column": (lambda: token_influence(MODEL, IDS, []), "got none; leave it out"),
    "a class": (lambda: token_influence(nn.Linear, IDS), "got the class Linear; build a model"),
    "no logits": (
        lambda: token_influence(lambda x: x, IDS), r"must return logits \(2, 3, 'V'\), got torch.int64 \(2, 3\)",
    ),
    "a tuple": (lambda: padding_effect(lambda x: (x, x), IDS, 0), "got tuple; pass a function"),
    "not reduced": (lambda: idle_parameters(MODEL, torch.ones(2)), r"got \(2,\); take its mean"),
    "no gradient": (lambda: idle_parameters(MODEL, torch.ones(())), "loss must depend on a parameter"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_wrong_arguments_are_refused(unchecked, name):
    call, message = REFUSED[name]
    with pytest.raises((TypeError, ValueError), match=message):
        call()
