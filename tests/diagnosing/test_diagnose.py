"""course_lib.diagnosing: no alarm on healthy models, each sick one named by the right check, and nothing changed."""

from __future__ import annotations

import copy
import random
from dataclasses import dataclass
from html.parser import HTMLParser

import numpy as np
import pytest
import torch
from healthy_models import HEALTHY, PAD, VOCAB, FusedLanguageModel, Recurrent, tokens
from sick_models import SICK, SUSPICIOUS, Decoder, Encoder, Translator
from torch import nn

from course_lib.diagnosing import CHECKS, Finding, Report, diagnose
from course_lib.diagnosing.calling import read_batch
from course_lib.diagnosing.report import shown
from course_lib.diagnosing.subject import Subject

pytestmark = pytest.mark.filterwarnings("ignore:enable_nested_tensor")


# --- healthy and sick -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", HEALTHY)
def test_a_healthy_model_raises_no_alarm(name):
    model, batch, options = HEALTHY[name]()
    report = diagnose(model, batch, **options)
    assert report.problems == [], str(report)
    assert {each.name for each in report.findings if each.status == "not checked"} <= {"device", "padding"}
    assert (report["padding"].status == "fine") == ("pad_id" in options)


@pytest.mark.parametrize("name", SICK)
def test_a_sick_model_is_named_by_the_right_check(name):
    build, check = SICK[name]
    model, batch, options = build()
    report = diagnose(model, batch, **options)
    assert report[check].status == ("suspicious" if name in SUSPICIOUS else "wrong"), str(report)
    ended = [each.name for each in report.findings if "The check ended with" in each.says]
    # A state that is kept keeps its graph as well, and PyTorch refuses to go through it twice.
    assert ended == (["one batch"] if "state" in name else []), str(report)


def test_the_figures_that_the_page_states():
    assert len(HEALTHY) >= 20
    assert len(SICK) >= 25
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


# --- causality --------------------------------------------------------------------------------------------------------


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
    assert "120 of" not in report["causality"].says
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


# --- the measured numbers, by hand ------------------------------------------------------------------------------------


class Bigram(nn.Module):
    """Logits are a row of a table."""

    def __init__(self, table):
        super().__init__()
        self.table = nn.Embedding.from_pretrained(table, freeze=False)

    def forward(self, tokens):
        return self.table(tokens)


def test_numbers_by_hand():
    """Tokens 0 1 0 with targets 1 0 and equal logits: log 2 per target; then 4 : 1 for the first one."""
    report = diagnose(Bigram(torch.zeros(2, 2)), torch.tensor([[0, 1, 0]]))
    assert report["start loss"].number == pytest.approx(0.6931, abs=1e-4)
    table = torch.tensor([[0.0, 2.0], [0.0, 0.0]]).exp2().log()  # ln 1, ln 4: 4 : 1 for token 1 after token 0
    report = diagnose(Bigram(table), torch.tensor([[0, 1, 0]]))
    assert report["start loss"].number == pytest.approx((0.2231 + 0.6931) / 2, abs=1e-4)  # −ln 0.8 and −ln 0.5
    assert report["logits"].number == pytest.approx(1.3863, abs=1e-4)
    assert report["trainable parameters"].number == 4
    assert report["order"].status == "suspicious"  # the last logits depend on the last token alone
    assert report["causality"].number == 0


def test_a_start_above_log_v_by_hand():
    """A logit of 2 for the wrong one of two tokens costs log(1 + e²) = 2.127, which is 1.434 above log 2."""
    found = diagnose(Bigram(2 * torch.eye(2)), torch.tensor([[0, 1, 0]]))["start loss"]
    assert found.number == pytest.approx(2.1269, abs=1e-4)
    assert found.status == "suspicious"
    assert diagnose(Bigram(torch.eye(2)), torch.tensor([[0, 1, 0]]))["start loss"].status == "fine"


def test_effects_are_relative_to_the_largest_logit():
    class Larger(Decoder):
        def forward(self, tokens):
            return 1024 * super().forward(tokens)

    model, ids = Decoder("no mask"), tokens()
    larger = Larger("no mask")
    larger.load_state_dict(model.state_dict())
    one, other = (diagnose(each, ids, pad_id=PAD, causal=True) for each in (model, larger))
    for name in ("tokens", "causality", "padding", "order", "float64"):
        assert one[name].number == pytest.approx(other[name].number, rel=1e-9), name


class Root(Bigram):
    """At zero, the derivative of the root is not finite."""

    def forward(self, tokens):
        return super().forward(tokens).abs().sqrt()


def test_training_that_ends_in_nan_is_called_so():
    found = diagnose(Root(torch.zeros(2, 2)), torch.tensor([[0, 1, 0]]))["one batch"]
    assert found.status == "wrong"
    assert "becomes NaN" in found.says


def test_what_is_replaced_in_a_batch():
    ids = tokens(61, padded=True)
    ids[0, 0] = VOCAB - 1
    subject = Subject(nn.Identity(), read_batch(nn.Identity(), ids), None, "", PAD, None, torch.zeros(3, 61, VOCAB))
    other = subject.other_tokens(ids)
    assert torch.equal(other == ids, ids == PAD)
    assert torch.equal(other == PAD, ids == PAD)
    assert other.max() < VOCAB
    assert (len(subject.columns), subject.columns[0], subject.columns[-1]) == (16, 0, 60)


def test_one_batch_by_hand():
    """Adam moves each entry of the table by about its rate in each of 20 steps, so that two logits differ by 0.4."""
    found = diagnose(Bigram(torch.zeros(2, 2)), torch.tensor([[0, 1, 0]]))["one batch"]
    share = 0.5130 / 0.6931  # log(1 + exp(−0.4)) and log 2
    assert found.number == pytest.approx(share, abs=0.005)
    # Both tokens follow 0, so that nothing can be learnt about two of the three targets.
    found = diagnose(Bigram(torch.zeros(2, 2)), torch.tensor([[0, 1, 0, 0]]))["one batch"]
    assert found.number == pytest.approx((2 + share) / 3, abs=0.005)
    assert found.status == "suspicious"


def test_rounding_errors_are_those_of_float64():
    found = diagnose(Encoder(), tokens(padded=True), pad_id=PAD)
    assert found["padding"].number < 1e-14
    assert found["order"].number > 1e-3


def test_the_first_line_and_the_largest_logit():
    model, ids = Decoder().train(), tokens()
    report = diagnose(model, ids, causal=True)
    numbers = sum(p.numel() for p in model.parameters())
    assert report.subject == f"Decoder with {numbers:,} parameters, 3 × 8 tokens, 47 logits each"
    assert report["logits"].number == pytest.approx(model.eval()(ids).abs().max().item(), rel=1e-5)  # float32


def test_parameters_are_counted():
    model = Decoder("plain list")
    hidden = sum(p.numel() for layer in model.layers for p in layer.parameters())
    assert diagnose(model, tokens(), causal=True)["unregistered parameters"].number == hidden
    model = FusedLanguageModel()
    found = diagnose(model, tokens(), causal=True)["trainable parameters"]
    assert found.number == sum(p.numel() for p in model.parameters()) - model.embedding.weight.numel()
    assert found.says == "Frozen, and not judged: `embedding.weight`."
    found = diagnose(Decoder("not called"), tokens(), causal=True)["unused parameters"]
    assert found.number == 12  # two layers with a norm, and two matrices with their biases
    assert "`layers.1.norm2.weight`" not in found.says  # the first four of them
    assert "and 8 more" in found.says


class MaskedBigram(Bigram):
    """Takes a mask; the logits of padding, and of nothing else, depend on how much padding there is."""

    def forward(self, tokens, attention_mask):
        padding = (attention_mask == 0)[..., None]
        return self.table(tokens) + padding * padding.sum(dim=1, keepdim=True)


def test_padding_is_neither_a_target_nor_judged():
    model = MaskedBigram(torch.tensor([[0.0, 2.0], [0.0, 0.0]]).exp2().log())
    batch = {"tokens": torch.tensor([[0, 1, 0]]), "attention_mask": torch.tensor([[1, 1, 0]])}
    report = diagnose(model, batch)
    assert report["start loss"].number == pytest.approx(0.2231, abs=1e-4)  # −ln 0.8, of the first token alone
    assert report["padding"].status == "fine"


def test_targets_are_taken_as_they_are_given():
    model, ids = Bigram(torch.tensor([[0.0, 2.0], [0.0, 0.0]]).exp2().log()), torch.tensor([[0, 1, 0]])
    given = diagnose(model, ids, targets=torch.tensor([[1, -100, -100]]))["start loss"]
    assert given.number == pytest.approx(0.2231, abs=1e-4)
    assert "against the targets" in given.says
    padded = diagnose(model, ids, targets=torch.tensor([[1, 0, 1]]), pad_id=0)["start loss"]
    assert padded.number == pytest.approx(0.2231, abs=1e-4)


# --- the model is left alone ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("train", [False, True])
@pytest.mark.parametrize("fault", ["", "scales its weights", "running count", "state", "shifts the input in place"])
def test_model_batch_and_generators_are_unchanged(unchecked, train, fault):  # beartype draws from `random`
    model, ids = Decoder(fault).train(train), tokens()
    model.layers[0].dropout.train(not train)  # a mode of its own
    for parameter in model.parameters():
        parameter.grad = torch.randn_like(parameter)
    before, given, grads = copy.deepcopy(model), ids.clone(), [p.grad.clone() for p in model.parameters()]
    random.seed(7)  # not where a test before this one has left them
    np.random.seed(7)
    states = torch.get_rng_state(), random.getstate(), np.random.get_state()[1].tolist()
    diagnose(model, ids, pad_id=PAD, causal=True)
    assert torch.equal(torch.get_rng_state(), states[0])
    assert (random.getstate(), np.random.get_state()[1].tolist()) == states[1:]
    assert torch.equal(ids, given)
    assert [module.training for module in model.modules()] == [module.training for module in before.modules()]
    assert model.state is None
    for now, then in zip(model.state_dict().values(), before.state_dict().values(), strict=True):
        assert torch.equal(now, then)
    for parameter, grad in zip(model.parameters(), grads, strict=True):
        assert torch.equal(parameter.grad, grad)
        assert parameter.requires_grad


def test_gradients_of_what_a_copy_shares_with_its_model_are_unchanged():
    """`copy.deepcopy` copies no functions, so that both use the layer that this one refers to."""
    model = Decoder("closure")
    inner = model.extra.__closure__[0].cell_contents
    weight = inner.weight.detach().clone()
    assert "extra(inner).weight" in diagnose(model, tokens(), causal=True)["unregistered parameters"].says
    assert inner.weight.grad is None
    assert torch.equal(inner.weight, weight)


def test_two_reports_on_one_model_are_the_same():
    build, _ = SICK["functional dropout in eval mode"]
    model, batch, options = build()
    torch.manual_seed(1)
    first = diagnose(model, batch, **options)
    torch.manual_seed(2)
    assert diagnose(model, batch, **options) == first


class IgnoresItsMask(Encoder):
    def forward(self, tokens, mask):
        return super().forward(tokens)


def test_a_mask_is_asked_for_only_where_none_is_passed():
    ids = tokens(padded=True)
    found = diagnose(Encoder("padding not masked"), ids, pad_id=PAD)["padding"]
    assert found.status == "wrong"
    assert "put it into the batch" in found.says
    found = diagnose(IgnoresItsMask("padding not masked"), (ids, ids != PAD), pad_id=PAD)["padding"]
    assert found.status == "wrong"
    assert "put it into the batch" not in found.says


@pytest.mark.parametrize("draw", [random.random, np.random.rand, lambda: torch.rand(()).item()])
def test_random_numbers_of_every_generator_are_told_from_a_state(draw):
    class Noisy(Decoder):
        def forward(self, tokens):
            return super().forward(tokens) * (1 + draw())

    assert "random in eval mode" in diagnose(Noisy(), tokens(), pad_id=PAD)["determinism"].says


def test_what_is_kept_between_calls():
    """Running statistics belong to training, so that they are no side effect; a hidden state is one."""
    assert diagnose(Decoder("batch norm"), tokens(), causal=True)["side effects"].status == "fine"
    assert "keeps something from call to call" in diagnose(Decoder("state"), tokens())["determinism"].says


def test_noise_is_not_taken_for_an_effect_of_padding():
    build, _ = SICK["noise in eval mode"]
    model, batch, options = build()
    assert diagnose(model, batch, **options)["padding"].status == "not checked"


def test_gradients_may_be_off_and_a_state_with_a_history_may_be_there():
    model = Decoder("state")
    model(tokens())  # copy.deepcopy refuses what it keeps now
    with torch.no_grad():
        assert not torch.is_grad_enabled()
        assert diagnose(model, tokens(), pad_id=PAD)["determinism"].status == "wrong"
        assert not torch.is_grad_enabled()
    with torch.inference_mode():
        assert diagnose(Decoder(), tokens(), pad_id=PAD, causal=True).problems == []


class SwitchesOff(nn.Module):
    def __init__(self):
        super().__init__()
        self.model = Decoder()

    def forward(self, tokens):
        logits = self.model(tokens)
        torch.set_grad_enabled(False)
        torch.set_default_dtype(torch.float64)
        return logits


def test_switches_of_pytorch_are_restored():
    report = diagnose(SwitchesOff(), tokens(), pad_id=PAD)
    assert "torch.is_grad_enabled()" in report["side effects"].says
    assert torch.is_grad_enabled()
    assert torch.get_default_dtype() == torch.float32


def test_no_check_sees_what_another_one_has_switched():
    seen = []

    class SwitchesTheDtype(Decoder):
        def forward(self, tokens):
            seen.append(torch.get_default_dtype())
            torch.set_default_dtype(torch.float64)
            return super().forward(tokens)

    diagnose(SwitchesTheDtype(), tokens(), pad_id=PAD)
    assert seen.count(torch.float32) > 10  # the first call of each check


# --- checks that cannot run -------------------------------------------------------------------------------------------


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
    assert report["causality"].says == "The check ended with RuntimeError: <another batch>"
    assert {status[name] for name in ("causality", "padding", "order", "batch independence")} == {"not checked"}
    assert {status[name] for name in ("logits", "determinism", "start loss", "one batch", "float64")} == {"fine"}


def test_an_interruption_by_the_user_passes():
    with pytest.raises(KeyboardInterrupt):
        diagnose(FailsLater(KeyboardInterrupt()), torch.arange(1, 9).repeat(2, 1))


# --- models as they are found elsewhere -------------------------------------------------------------------------------


class _Wrapped(nn.Module):
    """The recurrent language model, with another output."""

    def __init__(self, output):
        super().__init__()
        self.model, self.output = Recurrent(nn.LSTM), output

    def forward(self, tokens):
        return self.output(self.model(tokens))


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
    report = diagnose(_Wrapped(OUTPUTS[name]), tokens(), pad_id=PAD, causal=True)
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
    assert "against the labels" in report["start loss"].says
    assert "causal=True" not in report["causality"].says
    # Targets that are the next tokens mean that the model must not read them.
    assert diagnose(_WithTargets(Encoder()), (text[:, :-1], text[:, 1:]))["causality"].status == "wrong"
    assert diagnose(_WithTargets(Encoder()), (text[:, :-1], text[:, :-1]))["causality"].status == "wrong"
    assert diagnose(_WithTargets(Encoder()), (text[:, :-1], text[:, 1:].flip(0)))["causality"].status == "fine"


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


def test_a_hook_that_refers_to_the_model_is_not_an_unregistered_layer():
    model = Decoder()
    model.seen = []
    model.output.register_forward_hook(lambda module, inputs, output: model.seen.append(output.shape))
    assert diagnose(model, tokens(), pad_id=PAD, causal=True).problems == []


def test_outputs_that_were_kept_in_a_dict_are_no_obstacle():
    model = Decoder()
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
    assert "`experts." in found.says


def test_a_single_token_has_no_dead_gradients():
    """No state is taken over, so that the recurrent weights have no gradient in a healthy model either."""
    assert diagnose(Recurrent(nn.LSTM), tokens(1))["dead gradients"].status == "not checked"


# --- report -----------------------------------------------------------------------------------------------------------


def test_the_text_has_problems_first():
    report = diagnose(Decoder("no mask"), tokens(), causal=True)
    lines = str(report).splitlines()
    assert lines[0].startswith("Decoder with ")
    assert lines[1] == "16 fine, 1 wrong, 1 not checked"
    assert lines[3].startswith("✗ causality: wrong (largest change of earlier logits")
    assert all(len(line) <= 140 for line in lines)
    assert report.problems == [report["causality"]]
    with pytest.raises(KeyError, match=r"expected one of logits, determinism.*got 'colour'"):
        report["colour"]


def test_problems_are_in_the_order_of_their_weight():
    findings = [Finding(s, s, "", 0) for s in ("suspicious", "not checked", "fine", "wrong")]
    report = Report("all kinds", findings)
    assert [each.name for each in report.problems] == ["wrong", "suspicious"]
    assert report.verdict == "1 fine, 1 suspicious, 1 wrong, 1 not checked"
    assert Report("none", findings[2:3]).verdict == "1 fine, 0 wrong"
    marks = [line[0] for line in str(report).splitlines()[3:] if not line.startswith(" ") and line]
    assert marks == ["✗", "?", "✓", "–"]
    assert "✗ wrong: wrong (: 0)" in str(report)


class _Tags(HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.open, self.seen, self.text = [], [], ""
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.seen.append(tag)
        if tag != "br":
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data


def test_html_is_escaped():
    hostile = "<script>alert('x')</script> & \"quoted\""
    statuses = ("fine", "suspicious", "wrong", "not checked")
    report = Report(hostile, [Finding(f"{hostile} {s}", s, hostile, 1.5, hostile) for s in statuses])
    page = _Tags(report._repr_html_())
    assert page.open == []
    assert "script" not in page.seen
    assert page.text.count(hostile) == 1 + 3 * 4
    assert 'aria-label="wrong"' in report._repr_html_()
    assert '<div class="course-lib-report ' in report._repr_html_()  # the book's style sheet knows this class


def test_names_between_backticks_are_code():
    page = Report("", [Finding("", "wrong", "`a.b` and `<i>` and ` alone")])._repr_html_()
    assert "<br><code>a.b</code> and <code>&lt;i&gt;</code> and ` alone</li>" in page


def test_html_of_an_empty_report_and_of_a_real_one():
    assert _Tags(Report("nothing", [])._repr_html_()).seen.count("li") == 0
    assert _Tags(diagnose(Decoder(), tokens(), causal=True)._repr_html_()).seen.count("li") == len(CHECKS)


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0, "0"),
        (18784, "18,784"),
        (0.5, "0.500"),
        (2e-16, "below 1e-9"),
        (2e-5, "below 1e-4"),
        (123456.7, "1.2e+05"),
        (float("inf"), "inf"),
    ],
)
def test_numbers_are_short(number, text):
    assert shown(number) == text


# --- batches ----------------------------------------------------------------------------------------------------------


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


# --- wrong arguments --------------------------------------------------------------------------------------------------


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
