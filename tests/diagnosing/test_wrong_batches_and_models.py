"""What `diagnose` refuses, and with which words."""

from __future__ import annotations

import pytest
import torch
from healthy_models import VOCAB, tokens
from sick_models import Decoder
from torch import nn

from course_kit.diagnosing import diagnose

pytestmark = pytest.mark.filterwarnings("ignore:enable_nested_tensor")


class Returns(nn.Module):
    def __init__(self, value):
        super().__init__()
        self.value = value

    def forward(self, tokens):
        if isinstance(self.value, Exception):
            raise self.value
        return self.value


def _lazy():
    return nn.Sequential(nn.Embedding(VOCAB, 4), nn.LazyLinear(VOCAB))


IDS = torch.ones(2, 3, dtype=torch.long)
REFUSED = {
    "not a module": (lambda x: x, IDS, {}, TypeError, "model must be of type Module"),
    "float tokens": (Decoder, IDS.float(), {}, TypeError, r"batch must have tokens.*got tokens torch.float32 \(2, 3\)"),
    "short integers": (Decoder, IDS.short(), {}, TypeError, r"torch.int16 \(2, 3\); convert token ids with .long"),
    "lists": (Decoder, [[1, 2], [3, 4]], {}, TypeError, "pass torch.tensor"),
    "no batch": (Decoder, None, {}, TypeError, "batch must be a tensor of tokens.*got NoneType"),
    "nothing in it": (Decoder, (), {}, TypeError, "batch must have tokens.*got nothing"),
    "one axis": (Decoder, IDS[0], {}, TypeError, r"got tokens torch.int64 \(3,\); add the axis"),
    "empty": (Decoder, IDS[:0], {}, ValueError, r"batch must contain at least one token.*\(0, 3\)"),
    "too many": (Decoder, (IDS, IDS), {}, ValueError, "must run in eval mode on this batch.*TypeError.*a tuple"),
    "another name": (Decoder, {"ids": IDS}, {}, ValueError, "must run in eval mode on this batch"),
    "not in the vocabulary": (Decoder, IDS * VOCAB, {}, ValueError, "IndexError.*the largest token, 47"),
    "no logits": (lambda: Returns(None), IDS, {}, TypeError, "must return logits.*got NoneType"),
    "a dict without logits": (lambda: Returns({"x": 1}), IDS, {}, TypeError, "must return logits.*got dict"),
    "classes": (lambda: Returns(torch.ones(2, 5)), IDS, {}, ValueError, r"\(2, 3, 'V'\), got \(2, 5\).*every position"),
    "last position": (lambda: Returns(torch.ones(2, 1, 5)), IDS, {}, ValueError, "last position only.*no targets"),
    "time first": (lambda: Returns(torch.ones(3, 2, 5)), IDS, {}, ValueError, r"order \(B, L, V\)"),
    "a class": (Decoder, IDS, {}, TypeError, "got the class Decoder; build a model from it first"),
    "a lazy module": (_lazy, IDS, {}, ValueError, "got a lazy module without `1.weight`; call the model once"),
    "no numbers": (lambda: Decoder().to("meta"), IDS, {}, ValueError, "on the device 'meta'; load the weights"),
    "no words": (lambda: Returns(AssertionError()), IDS, {}, ValueError, "got AssertionError; call it on the batch"),
    "padding not in the vocabulary": (Decoder, IDS, {"pad_id": VOCAB}, ValueError, "pad_id must be.*0 … 46, got 47"),
    "negative padding": (Decoder, IDS, {"pad_id": -1}, ValueError, "pad_id must be at least 0"),
    "padding in words": (Decoder, IDS, {"pad_id": "<pad>"}, TypeError, "pad_id must be a whole number"),
    "causal in words": (Decoder, IDS, {"causal": "yes"}, TypeError, "causal must be of type bool"),
    "float targets": (Decoder, IDS, {"targets": IDS.float()}, TypeError, "targets must be a tensor of integers"),
    "short targets": (Decoder, IDS, {"targets": IDS[:, 1:]}, ValueError, r"targets must have the shape.*\(2, 2\)"),
    "large targets": (Decoder, IDS, {"targets": IDS * VOCAB}, ValueError, "targets must be tokens of the vocabulary"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_wrong_arguments_are_refused(unchecked, name):
    model, batch, options, error, message = REFUSED[name]
    with pytest.raises(error, match=message):
        diagnose(model if name in ("not a module", "a class") else model(), batch, **options)


def test_a_model_that_cannot_be_copied_is_refused():
    class Stubborn(Decoder):
        def __deepcopy__(self, memo):
            raise RuntimeError("one of a kind")

    with pytest.raises(ValueError, match="model must be copyable, got RuntimeError: one of a kind"):
        diagnose(Stubborn(), tokens())
