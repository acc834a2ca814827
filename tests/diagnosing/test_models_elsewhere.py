"""`diagnose` on models as they are found elsewhere: what they return, expect, keep and leave out."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
import torch
from healthy_models import PAD, VOCAB, Recurrent, tokens
from sick_models import Decoder, Encoder, Translator
from torch import nn

from course_kit.diagnosing import diagnose
from course_kit.diagnosing.calling import read_batch

pytestmark = pytest.mark.filterwarnings("ignore:enable_nested_tensor")


@dataclass
class _Output:
    hidden: torch.Tensor
    logits: torch.Tensor


OUTPUTS = {
    "the loss first": lambda logits: (logits.mean(), logits),
    "a state last": lambda logits: (logits, logits[:, 0], [logits]),
    "a record": lambda logits: _Output(logits[..., 0], logits),
    "a dict": lambda logits: {"loss": logits.mean(), "logits": logits},
}


@pytest.mark.parametrize("name", OUTPUTS)
def test_logits_are_found_in_what_the_model_returns(name):
    class Wrapped(Recurrent):
        def forward(self, tokens):
            return OUTPUTS[name](super().forward(tokens))

    report = diagnose(Wrapped(nn.LSTM), tokens(), pad_id=PAD, causal=True)
    assert report.problems == []
    assert report.subject.endswith(f"3 × 8 tokens, {VOCAB} logits each")


class _WithTargets(nn.Module):
    """All logits if the targets are given, and those of the last position if they are not."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, idx, targets=None):
        logits = self.model(idx)
        return (logits[:, [-1]], None) if targets is None else (logits, logits.mean())


def test_targets_that_a_model_can_do_without_are_its_labels():
    text = tokens(9)
    report = diagnose(_WithTargets(Recurrent(nn.LSTM)), (text[:, :-1], text[:, 1:]), pad_id=PAD)
    assert report.problems == []
    assert "against the labels" in report["start loss"].message
    assert "causal=True" not in report["causality"].message
    # Targets that are the next tokens mean that the model must not read them.
    for targets, status in ((text[:, 1:], "wrong"), (text[:, :-1], "wrong"), (text[:, 1:].flip(0), "fine")):
        assert diagnose(_WithTargets(Encoder()), (text[:, :-1], targets))["causality"].status == status


def test_a_mask_is_asked_for_only_where_none_is_passed():
    class IgnoresItsMask(Encoder):
        def forward(self, tokens, mask=None):
            return super().forward(tokens)

    ids = tokens(padded=True)
    for batch, asked in ((ids, True), ((ids, ids != PAD), False)):
        found = diagnose(IgnoresItsMask("padding not masked"), batch, pad_id=PAD)["padding"]
        assert found.status == "wrong"
        assert ("put it into the batch" in found.message) == asked


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_a_model_in_half_precision_raises_no_alarm(dtype):
    """Adam's 1e-8 is zero in float16, so that training one batch there ends in NaN, whatever the model is."""
    model = Recurrent(nn.LSTM).to(dtype)
    assert diagnose(model, tokens(), pad_id=PAD, causal=True).problems == []
    assert {p.dtype for p in model.parameters()} == {dtype}


def test_a_recurrent_layer_that_takes_the_batch_for_time_is_found():
    """Without batch_first=True, a sequence reads those above it in the batch, and none below."""
    model = Recurrent(nn.LSTM)
    model.layers.batch_first = False
    assert diagnose(model, tokens(), causal=True)["batch independence"].status == "wrong"


def test_what_a_hook_collects_or_a_dict_keeps_is_neither_a_layer_nor_an_obstacle():
    model = Decoder()
    model.seen = []
    model.output.register_forward_hook(lambda module, inputs, output: model.seen.append(output.shape))
    model.kept = {"outputs": [{"logits": model(tokens())}]}  # copy.deepcopy refuses tensors with a history
    assert diagnose(model, tokens(), pad_id=PAD, causal=True).problems == []
    assert model.kept["outputs"][0]["logits"].grad_fn is not None


class _Experts(nn.Module):
    """Each token goes to the best of eleven experts; with six tokens, most are idle."""

    def __init__(self):
        super().__init__()
        self.embedding, self.gate = nn.Embedding(VOCAB, 6), nn.Linear(6, 11)
        self.experts = nn.ModuleList(nn.Linear(6, VOCAB) for _ in range(11))

    def forward(self, tokens):
        x = self.embedding(tokens)
        share, chosen = self.gate(x).softmax(-1).max(-1, keepdim=True)
        return sum((chosen == number) * share * expert(x) for number, expert in enumerate(self.experts))


def test_idle_experts_are_not_called_wrong():
    found = diagnose(_Experts(), tokens(2))["dead gradients"]
    assert found.status == "suspicious"
    assert "`experts." in found.message


def test_roles_of_the_inputs():
    model = Translator("")
    ids, other = tokens(9), tokens(7)
    read = read_batch(model, (ids, other))
    assert read.streams == ("source", "target")
    assert read.tokens is other
    batch = {
        **{"input_ids": ids, "decoder_input_ids": tokens(9), "attention_mask": torch.ones_like(ids)},
        **{"decoder_attention_mask": torch.ones_like(ids), "token_type_ids": torch.zeros_like(ids)},
    }
    read = read_batch(model, batch)
    assert read.streams == ("input_ids", "decoder_input_ids")
    assert read_batch(model, dict(reversed(batch.items()))).streams == read.streams
    assert read.companions("input_ids") == ["attention_mask", "token_type_ids"]
    assert read.companions("decoder_input_ids") == ["decoder_attention_mask"]
    longer = read.longer("input_ids", 5, 2)
    assert longer.inputs["input_ids"][:, 9:].eq(5).all()
    assert longer.inputs["attention_mask"].sum(dim=1).tolist() == [9] * 3
    assert longer.inputs["decoder_input_ids"].shape == (3, 9)
    numbered = read_batch(model, {"tokens": ids, "position_ids": torch.arange(9).expand(3, 9)}).longer("tokens", 5, 2)
    assert numbered.inputs["position_ids"].tolist() == [[*range(11)]] * 3
    shorter = {name: value.shape[1] for name, value in read.shorter("input_ids", 4).inputs.items()}
    assert shorter == {name: 9 if "decoder" in name else 4 for name in shorter}


def test_the_polarity_of_a_mask_is_read_off_the_padding():
    ids = tokens(padded=True)
    for mask, added in ((ids == PAD, True), (ids != PAD, False)):
        read = read_batch(nn.Identity(), {"tokens": ids, "mask": mask})
        assert torch.equal(read.real("tokens", PAD), ids != PAD)
        assert read.longer("tokens", PAD, 1).inputs["mask"][:, -1].eq(added).all()
    full = read_batch(nn.Identity(), {"tokens": tokens(), "key_padding_mask": torch.zeros(3, 8, dtype=torch.bool)})
    assert full.real("tokens", None).all()
