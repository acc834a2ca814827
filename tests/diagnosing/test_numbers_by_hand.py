"""The numbers that `diagnose` measures, computed by hand for small models."""

from __future__ import annotations

import pytest
import torch
from healthy_models import PAD, VOCAB, FusedLanguageModel, tokens
from sick_models import Decoder, Encoder
from torch import nn

from course_kit.diagnosing import diagnose
from course_kit.diagnosing.calling import read_batch
from course_kit.diagnosing.subject import Subject

pytestmark = pytest.mark.filterwarnings("ignore:enable_nested_tensor")

SHORT = torch.tensor([[0, 1, 0]])
PAIR = torch.tensor([[1, 2, 3, 2], [2, 1, 3, 1]])
FOUR_TO_ONE = torch.tensor([[0.0, 2.0], [0.0, 0.0]]).exp2().log()  # ln 1, ln 4: 4 : 1 for token 1 after token 0


class Bigram(nn.Module):
    """Logits are a row of a table, changed at will."""

    def __init__(self, table, change=lambda logits, tokens: logits):
        super().__init__()
        self.table, self.change = nn.Embedding.from_pretrained(table, freeze=False), change

    def forward(self, tokens):
        return self.change(self.table(tokens), tokens)


def one_logit(place, added):
    """Scores 1 for the token itself; one position has something added to its first logit."""

    def change(logits, tokens):
        logits = logits.clone()
        logits[:, place, 0] += added(tokens)
        return logits

    return Bigram(torch.eye(4), change)


def test_numbers_by_hand():
    """Tokens 0 1 0 with targets 1 0 and equal logits: log 2 per target; then 4 : 1 for the first one."""
    assert diagnose(Bigram(torch.zeros(2, 2)), SHORT)["start loss"].number == pytest.approx(0.6931, abs=1e-4)
    report = diagnose(Bigram(FOUR_TO_ONE), SHORT)
    assert report["start loss"].number == pytest.approx((0.2231 + 0.6931) / 2, abs=1e-4)  # −ln 0.8 and −ln 0.5
    assert report["logits"].number == pytest.approx(1.3863, abs=1e-4)
    assert report["trainable parameters"].number == 4
    assert report["order"].status == "suspicious"  # the last logits depend on the last token alone
    assert report["causality"].number == 0


def test_a_start_above_log_v_by_hand():
    """A logit of 2 for the wrong one of two tokens costs log(1 + e²) = 2.127, which is 1.434 above log 2."""
    found = diagnose(Bigram(2 * torch.eye(2)), SHORT)["start loss"]
    assert (found.number, found.status) == (pytest.approx(2.1269, abs=1e-4), "suspicious")
    assert diagnose(Bigram(torch.eye(2)), SHORT)["start loss"].status == "fine"


def test_effects_are_relative_to_the_largest_logit():
    model, larger = Decoder("no mask"), Decoder("no mask")
    larger.load_state_dict(model.state_dict())
    for parameter in larger.output.parameters():
        parameter.data *= 1024
    ids = tokens()
    one, other = (diagnose(each, ids, pad_id=PAD, causal=True) for each in (model, larger))
    for name in ("tokens", "causality", "padding", "order"):
        assert one[name].number == pytest.approx(other[name].number, rel=1e-9), name


EFFECTS = {  # the change of one logit, divided by the largest logit before
    "padding": (one_logit(0, lambda tokens: tokens.shape[1]), 3 / 4),  # 4 tokens become 7
    "order": (one_logit(-1, lambda tokens: tokens[:, 0]), 2 / 2),  # the first tokens 1 and 2 become 3 and 3
    "batch independence": (one_logit(0, lambda tokens: tokens.flip(0)[:, 0]), 1 / 2),  # the neighbour's 1 becomes 2
}


@pytest.mark.parametrize("name", EFFECTS)
def test_the_change_of_a_single_logit_counts_in_full(name):
    model, number = EFFECTS[name]
    assert diagnose(model, PAIR, pad_id=0)[name].number == pytest.approx(number, abs=1e-12)


def test_order_is_judged_at_the_last_token_that_is_not_padding():
    model = one_logit(3, lambda tokens: tokens[:, 0])  # only padding depends on the order
    found = diagnose(model, torch.tensor([[1, 2, 3, 0]]), pad_id=0)["order"]
    assert (found.status, found.number) == ("suspicious", 0)


def test_training_that_ends_in_nan_is_called_so():
    root = Bigram(torch.zeros(2, 2), lambda logits, _: logits.abs().sqrt())  # no finite derivative at zero
    found = diagnose(root, SHORT)["one batch"]
    assert found.status == "wrong"
    assert "becomes NaN" in found.message


@pytest.mark.parametrize(("last", "number", "status"), [(6.0, 2 / 3, "fine"), (9.0, 1.0, "suspicious")])
def test_saturated_queries_are_counted_where_there_is_a_choice(last, number, status):
    """The first query has one key. A score of 6 above three others has the weight 0.993, one of 9 has 0.9996."""
    rows = [[0.0, 0.0, 0.0, 0.0], [9.0, 0.0, 0.0, 0.0], [0.0, 0.0, 9.0, 0.0], [0.0, last, 0.0, 0.0]]
    scores = torch.tensor(rows).masked_fill(torch.ones(4, 4).triu(1).bool(), -1e9)

    def attend(values, tokens):
        return scores.to(values).expand(len(tokens), 4, 4).softmax(dim=-1) @ values

    found = diagnose(Bigram(torch.eye(5), attend), PAIR)["attention weights"]
    assert (found.number, found.status) == (pytest.approx(number), status)


def test_probabilities_of_tokens_are_not_taken_for_attention_weights():
    certain = Bigram(20 * torch.eye(4), lambda logits, _: logits.softmax(dim=-1))  # as many as tokens
    assert diagnose(certain, PAIR)["attention weights"].status == "not checked"


@pytest.mark.parametrize("pad_id", [PAD, VOCAB - 1])
def test_what_is_replaced_in_a_batch(pad_id):
    ids = tokens(61, padded=True)
    ids[ids == PAD] = pad_id
    ids[0, :2] = torch.tensor([VOCAB - 2, VOCAB - 1])
    subject = Subject(nn.Identity(), read_batch(nn.Identity(), ids), None, "", pad_id, None, torch.zeros(3, 61, VOCAB))
    other = subject.other_tokens(ids)
    assert torch.equal(other == ids, ids == pad_id)
    assert torch.equal(other == pad_id, ids == pad_id)
    assert other.max() < VOCAB
    assert (len(subject.columns), subject.columns[0], subject.columns[-1]) == (16, 0, 60)


def test_one_batch_by_hand():
    """Adam moves each entry of the table by about its rate in each of 20 steps, so that two logits differ by 0.4."""
    share = 0.5130 / 0.6931  # log(1 + exp(−0.4)) and log 2
    found = diagnose(Bigram(torch.zeros(2, 2)), SHORT)["one batch"]
    assert found.number == pytest.approx(share, abs=0.005)
    # Both tokens follow 0, so that nothing can be learnt about two of the three targets.
    found = diagnose(Bigram(torch.zeros(2, 2)), torch.tensor([[0, 1, 0, 0]]))["one batch"]
    assert (found.number, found.status) == (pytest.approx((2 + share) / 3, abs=0.005), "suspicious")


def test_rounding_errors_are_those_of_float64():
    found = diagnose(Encoder(), tokens(padded=True), pad_id=PAD)
    assert found["padding"].number < 1e-14
    assert found["order"].number > 1e-3


def test_parameters_are_counted():
    model = Decoder("plain list")
    hidden = sum(p.numel() for layer in model.layers for p in layer.parameters())
    report = diagnose(model, tokens(), causal=True)
    assert report["unregistered parameters"].number == hidden
    numbers = sum(p.numel() for p in model.parameters())
    assert report.subject == f"Decoder with {numbers:,} parameters, 3 × 8 tokens, 47 logits each"
    model = FusedLanguageModel()
    found = diagnose(model, tokens(), causal=True)["trainable parameters"]
    assert found.number == sum(p.numel() for p in model.parameters()) - model.embedding.weight.numel()
    assert found.message == "Frozen, and not judged: `embedding.weight`."
    found = diagnose(Decoder("not called"), tokens(), causal=True)["unused parameters"]
    assert found.number == 12  # two layers with a norm, and two matrices with their biases
    assert "`layers.1.norm2.weight`" not in found.message  # the first four of them
    assert "and 8 more" in found.message


def test_padding_is_neither_a_target_nor_judged():
    class MaskedBigram(Bigram):
        """The logits of padding, and of nothing else, depend on how much padding there is."""

        def forward(self, tokens, attention_mask):
            padding = (attention_mask == 0)[..., None]
            return self.table(tokens) + padding * padding.sum(dim=1, keepdim=True)

    report = diagnose(MaskedBigram(FOUR_TO_ONE), {"tokens": SHORT, "attention_mask": torch.tensor([[1, 1, 0]])})
    assert report["start loss"].number == pytest.approx(0.2231, abs=1e-4)  # −ln 0.8, of the first token alone
    assert report["padding"].status == "fine"


def test_targets_are_taken_as_they_are_given():
    for targets, options in (([[1, -100, -100]], {}), ([[1, 0, 1]], {"pad_id": 0})):
        found = diagnose(Bigram(FOUR_TO_ONE), SHORT, targets=torch.tensor(targets), **options)["start loss"]
        assert found.number == pytest.approx(0.2231, abs=1e-4)
        assert "against the targets" in found.message
