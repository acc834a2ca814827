"""course_kit.diagnosing: no alarm on healthy models, each sick one named by the right check, and what it cannot see."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from healthy_models import HEALTHY, PAD, VOCAB, Recurrent, tokens
from sick_models import SICK, SUSPICIOUS, Decoder, Encoder, Translator
from torch import nn

from course_kit.diagnosing import CHECKS, diagnose

ROOT = Path(__file__).parents[2]
WITHOUT_ATTENTION = {name for name in HEALTHY if any(part in name for part in ("LSTM", "GRU", "convolutions"))}
WITHOUT_ATTENTION |= {"recurrent translator"}
pytestmark = pytest.mark.filterwarnings("ignore:enable_nested_tensor")


@pytest.mark.thorough
@pytest.mark.parametrize("name", HEALTHY)
def test_a_healthy_model_raises_no_alarm(name):
    model, batch, options = HEALTHY[name]()
    report = diagnose(model, batch, **options)
    assert report.problems == [], str(report)
    not_checked = {each.name for each in report.findings if each.status == "not checked"}
    assert not_checked <= {"device", "padding", "attention weights"}
    assert ("attention weights" in not_checked) == (name in WITHOUT_ATTENTION)
    assert (report["padding"].status == "fine") == ("pad_id" in options)


@pytest.mark.parametrize("name", SICK)
def test_a_sick_model_is_named_by_the_right_check(name):
    build, check = SICK[name]
    model, batch, options = build()
    report = diagnose(model, batch, **options)
    assert report[check].status == ("suspicious" if name in SUSPICIOUS else "wrong"), str(report)
    ended = [each.name for each in report.findings if "The check ended with" in each.message]
    # A state that is kept keeps its graph as well, and PyTorch refuses to go through it twice.
    assert ended == (["one batch"] if "state" in name else []), str(report)


def test_the_figures_that_the_page_states():
    page = (ROOT / "book/deeper/diagnose_a_model.md").read_text(encoding="utf-8")
    assert f"no alarm on {len(HEALTHY)} healthy models" in page
    assert f"in all {len(SICK)} faulty cases" in page
    assert len(HEALTHY) >= 20 <= 25 <= len(SICK)
    assert {check for _, check in SICK.values()} == set(CHECKS)


def test_what_the_battery_cannot_see():
    """Faults that leave every measured property as it is; they need a comparison with a model that is right."""
    # Two causal layers without a position code: the first layer's means differ from place to place, so order counts.
    assert diagnose(Decoder("no positions"), tokens(), pad_id=PAD, causal=True)["order"].status == "fine"

    class Unscaled(Decoder):  # scores too large by √d_k: another model, but a sound one
        def __init__(self):
            super().__init__()
            for layer in self.layers:
                layer.attention.query.weight.data *= 6**0.5

    assert diagnose(Unscaled(), tokens(), pad_id=PAD, causal=True).problems == []

    class PaddingInTheLoss(Decoder):
        """Its training loop counts padding in the mean: the battery never sees the loop."""

    assert diagnose(PaddingInTheLoss(), tokens(), pad_id=PAD, causal=True).problems == []
    # A padding mask that is missing in a decoder makes no difference where padding comes last.
    assert diagnose(Decoder(), tokens(padded=True), pad_id=PAD, causal=True)["padding"].status == "fine"


def test_reading_both_directions_is_an_alarm_only_where_the_future_is_forbidden():
    ids = tokens()
    assert diagnose(Encoder(), ids)["causality"].status == "fine"
    assert diagnose(Encoder(), ids, causal=False)["causality"].status == "fine"
    assert diagnose(Encoder(), ids, causal=True)["causality"].status == "wrong"
    assert diagnose(Decoder(), ids, causal=False)["causality"].status == "suspicious"
    assert diagnose(Translator("no target mask"), (ids, ids))["causality"].status == "wrong"
    assert diagnose(_Named(Encoder()), {"tokens": ids, "labels": ids})["causality"].status == "wrong"
    other = ids.clone()
    other[0, 0] = ids[0, 0] % (VOCAB - 1) + 1
    assert diagnose(_Named(Encoder()), {"tokens": ids, "labels": other})["causality"].status == "fine"


def test_a_single_token_has_no_future():
    found = diagnose(Decoder(), tokens(1), pad_id=PAD)
    assert found["causality"].status == found["order"].status == found["start loss"].status == "not checked"


def test_a_long_batch_is_sampled():
    report = diagnose(Recurrent(nn.GRU), torch.randint(1, VOCAB, (1, 61)), causal=True)
    assert report["causality"].status == "fine"
    assert "120 of" not in report["causality"].message
    leaking = diagnose(Decoder("off by one"), torch.randint(1, VOCAB, (1, 61)), causal=True)
    assert leaking["causality"].status == "wrong"


class _Named(nn.Module):
    """Takes keywords only, and labels that it insists on."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, *, tokens, labels):
        assert labels.shape == tokens.shape
        return self.model(tokens)
