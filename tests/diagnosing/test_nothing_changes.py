"""`diagnose` leaves the model, the batch, random numbers and switches of PyTorch as they were."""

from __future__ import annotations

import copy
import random

import numpy as np
import pytest
import torch
from healthy_models import PAD, FusedLanguageModel, tokens
from sick_models import SICK, Decoder
from torch import nn
from torch.testing import assert_close

from course_kit.diagnosing import CHECKS, diagnose

pytestmark = pytest.mark.filterwarnings("ignore:enable_nested_tensor")


@pytest.mark.parametrize("train", [False, True])
@pytest.mark.parametrize("fault", ["", "scales its weights", "running count", "state", "shifts the input in place"])
def test_model_batch_and_generators_are_unchanged(unchecked, train, fault):  # beartype draws from `random`
    model, ids = Decoder(fault).train(train), tokens()
    model.layers[0].dropout.train(not train)  # a mode of its own
    for parameter in model.parameters():
        parameter.grad = torch.randn_like(parameter)
    random.seed(7)  # not where a test before this one has left them
    np.random.seed(7)

    def everything():
        drawn = torch.get_rng_state(), random.getstate(), np.random.get_state()[1].tolist()
        named = {name: (p, p.grad, p.requires_grad) for name, p in model.named_parameters()}
        modes = [module.training for module in model.modules()]
        return copy.deepcopy((drawn, named, dict(model.named_buffers()), modes, model.state, ids))

    before = everything()
    diagnose(model, ids, pad_id=PAD, causal=True)
    assert_close(everything(), before, rtol=0, atol=0)


def test_gradients_of_what_a_copy_shares_with_its_model_are_unchanged():
    """`copy.deepcopy` copies no functions, so that both use the layer that this one refers to."""
    model = Decoder("closure")
    inner = model.extra.__closure__[0].cell_contents
    weight = inner.weight.detach().clone()
    assert "extra(inner).weight" in diagnose(model, tokens(), causal=True)["unregistered parameters"].message
    assert inner.weight.grad is None
    assert torch.equal(inner.weight, weight)


def test_two_reports_on_one_model_are_the_same():
    model, batch, options = SICK["functional dropout in eval mode"][0]()
    reports = []
    for seed in (1, 2):
        torch.manual_seed(seed)
        reports.append(diagnose(model, batch, **options))
    assert reports[0] == reports[1]
    assert reports[0]["padding"].status == "not checked"  # noise is not taken for an effect of padding


@pytest.mark.parametrize("draw", [random.random, np.random.rand, lambda: torch.rand(()).item()])
def test_random_numbers_of_every_generator_are_told_from_a_state(draw):
    class Noisy(Decoder):
        def forward(self, tokens):
            return super().forward(tokens) * (1 + draw())

    assert "random in eval mode" in diagnose(Noisy(), tokens(), pad_id=PAD)["determinism"].message


def test_running_statistics_belong_to_training_and_are_no_side_effect():
    assert diagnose(Decoder("batch norm"), tokens(), causal=True)["side effects"].status == "fine"


def test_gradients_may_be_off_and_a_state_with_a_history_may_be_there():
    model = Decoder("state")
    model(tokens())  # copy.deepcopy refuses what it keeps now
    with torch.no_grad():
        assert "keeps something from call to call" in diagnose(model, tokens(), pad_id=PAD)["determinism"].message
        assert not torch.is_grad_enabled()
    with torch.inference_mode():
        assert diagnose(Decoder(), tokens(), pad_id=PAD, causal=True).problems == []


def test_switches_of_pytorch_are_restored_before_another_check_sees_them():
    seen = []

    class SwitchesOff(Decoder):
        def forward(self, tokens):
            seen.append(torch.get_default_dtype())
            logits = super().forward(tokens)
            torch.set_grad_enabled(False)
            torch.set_default_dtype(torch.float64)
            return logits

    report = diagnose(SwitchesOff(), tokens(), pad_id=PAD)
    assert "torch.is_grad_enabled()" in report["side effects"].message
    assert torch.is_grad_enabled()
    assert torch.get_default_dtype() == torch.float32
    assert torch.backends.mha.get_fastpath_enabled()
    assert seen.count(torch.float32) > 10  # the first call of each check


class FailsLater(nn.Module):
    """Raises an error where the batch is not the one that it was built for."""

    def __init__(self, error):
        super().__init__()
        self.model, self.error = FusedLanguageModel(), error
        self.register_buffer("expected", torch.arange(1, 9).repeat(2, 1))

    def forward(self, tokens):
        if not torch.equal(tokens, self.expected.to(tokens.device)):
            raise self.error
        return self.model(tokens)


def test_an_error_in_one_check_does_not_end_the_others():
    report = diagnose(FailsLater(RuntimeError("<another batch>")), torch.arange(1, 9).repeat(2, 1), pad_id=PAD)
    status = {each.name: each.status for each in report.findings}
    assert list(status) == list(CHECKS)
    assert report["causality"].message == "The check ended with RuntimeError: <another batch>"
    assert {status[name] for name in ("causality", "padding", "order", "batch independence")} == {"not checked"}
    assert {status[name] for name in ("logits", "determinism", "start loss", "one batch", "float64")} == {"fine"}


def test_an_interruption_by_the_user_passes():
    with pytest.raises(KeyboardInterrupt):
        diagnose(FailsLater(KeyboardInterrupt()), torch.arange(1, 9).repeat(2, 1))
