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
    assert {check for _, check in SICK.values()} == set(CHECKS)


def test_what_the_battery_cannot_see():
    """Faults that leave every measured property as it is; they need a comparison with a model that is right."""
    # Two causal layers without a position code: the first layer's means differ from place to place, so order counts.
    assert diagnose(Decoder("no positions"), tokens(), pad_id=PAD, causal=True)["order"].status == "fine"
    # Scores too large by √d_k are another model, but a sound one; so is a decoder without a padding mask where padding
    # comes last.
    unscaled = Decoder()
    for layer in unscaled.layers:
        layer.attention.query.weight.data *= 6**0.5
    assert diagnose(unscaled, tokens(padded=True), pad_id=PAD, causal=True).problems == []


def test_reading_both_directions_is_an_alarm_only_where_the_future_is_forbidden():
    class Named(nn.Module):
        """Takes keywords only, and labels that it insists on."""

        def __init__(self):
            super().__init__()
            self.model = Encoder()

        def forward(self, *, tokens, labels):
            assert labels.shape == tokens.shape
            return self.model(tokens)

    ids = tokens()
    other = ids.clone()
    other[0, 0] = ids[0, 0] % (VOCAB - 1) + 1
    for model, batch, options, status in (
        (Encoder(), ids, {}, "fine"),
        (Encoder(), ids, {"causal": False}, "fine"),
        (Encoder(), ids, {"causal": True}, "wrong"),
        (Decoder(), ids, {"causal": False}, "suspicious"),
        (Translator("no mask"), (ids, ids), {}, "wrong"),
        (Named(), {"tokens": ids, "labels": ids}, {}, "wrong"),
        (Named(), {"tokens": ids, "labels": other}, {}, "fine"),
    ):
        assert diagnose(model, batch, **options)["causality"].status == status, (model, options)


def test_a_single_token_has_no_future_and_no_state_to_take_over():
    found = diagnose(Decoder(), tokens(1), pad_id=PAD)
    assert {found[name].status for name in ("causality", "order", "start loss", "dead gradients")} == {"not checked"}


def test_a_long_batch_is_sampled():
    ids = torch.randint(1, VOCAB, (1, 61))
    assert diagnose(Recurrent(nn.GRU), ids, causal=True)["causality"].status == "fine"
    assert diagnose(Decoder("off by one"), ids, causal=True)["causality"].status == "wrong"
