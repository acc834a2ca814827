"""Repairs: the code that is given runs, `check` names its faults, and a half repair gets the name of what is left."""

import math

import pytest
import torch
from torch import nn
from torch.testing import assert_close

import course_lib
from course_kit.checker.notebook import self_check
from course_kit.checker.verdict.judge import CONDUCT, judge
from course_kit.checker.verdict.sheet import sheet_of
from course_kit.exercises import all_exercises, find

pytestmark = pytest.mark.thorough

REPAIRS = {name: exercise for name, exercise in all_exercises().items() if exercise.repair}
HEALTHY = "fix_softmax"  # the one in which nothing needs repair
NOT_IN_PLACE = ("scores.masked_fill_(", "scores = scores.masked_fill(")
NO_NUMBER = [("-1e9)", "-math.inf)"), ("dim=-1)", "dim=-1).nan_to_num(0.0)")]
BIASED = ("x.std(dim=-1,", "x.std(dim=-1, correction=0,")
EPS_INSIDE = [
    ("x.std(dim=-1, keepdim=True)", "(x.var(dim=-1, keepdim=True) + eps).sqrt()"),
    ("(deviation + eps)", "deviation"),
]
EDITED = [  # exercise, the fault that is left ("" for none), edits of the code that is given
    ("fix_masked_softmax", "number_left", [NOT_IN_PLACE]),
    ("fix_masked_softmax", "scores_changed_left", NO_NUMBER),
    ("fix_masked_softmax", "", [NOT_IN_PLACE, *NO_NUMBER]),
    ("fix_layer_norm", "unbiased_left", EPS_INSIDE),
    ("fix_layer_norm", "eps_outside_left", [BIASED]),
    ("fix_layer_norm", "", [*EPS_INSIDE, ("x.var(dim=-1,", "x.var(dim=-1, correction=0,")]),
]


def report_of(code, name):
    """What `check` says after the code was run below the imports of an exported notebook."""
    namespace = {"math": math, "torch": torch, "nn": nn}
    exec(code, namespace)
    return self_check(find(name), namespace[name])


each_repair = pytest.mark.parametrize("exercise", REPAIRS.values(), ids=REPAIRS)


def test_the_exercises_of_the_chapter_are_repairs_and_no_others():
    assert {exercise.chapter for exercise in REPAIRS.values()} == {"debugging"}
    assert all(exercise.repair for exercise in all_exercises().values() if exercise.chapter == "debugging")
    assert all(name.startswith("fix_") for name in REPAIRS)


@each_repair
def test_one_line_stops_the_code_and_without_it_the_faults_are_named(exercise):
    """The linter sees that the stub as it is counts as not attempted."""
    (stopping,) = (line for line in exercise.stub.splitlines(keepends=True) if "NotImplementedError" in line)
    assert stopping.strip() == "raise NotImplementedError  # delete this line once you have decided"
    assert exercise.code_to_repair == exercise.stub.replace(stopping, "")
    report = report_of(exercise.code_to_repair, exercise.name)
    if exercise.name == HEALTHY:
        assert (report.verdict.status, report.diagnosis) == ("passed", None)
        return
    assert report.verdict.status == "failed"
    assert report.diagnosis.key == exercise.misconceptions[0].key == "as_given"


def test_in_the_healthy_one_every_mistake_is_a_wrong_repair():
    assert "as_given" not in {mistake.key for mistake in find(HEALTHY).misconceptions}


@each_repair
def test_gradients_are_called_right_only_where_every_result_is(exercise):
    """A case without the fault has the right gradient whatever the fault does, so it proves nothing."""
    sheet = sheet_of(exercise, 0)
    for mistake in exercise.misconceptions:
        if mistake.inherited_from:
            continue
        verdict = judge(exercise, sheet.trials, sheet.misconception(mistake.key), allow_twins=True)
        facets = {finding.facet for found in verdict.findings.values() for finding in found}
        gradients = [line.holds for line in verdict.lines if line.message == CONDUCT["gradient"]]
        if facets & {"problem", "structure", "shape", "value"}:
            assert True not in gradients, mistake.key


def test_a_container_that_is_called_is_an_error_and_no_stub():
    """PyTorch raises NotImplementedError then, as a stub does."""
    code = find("fix_layer_stack").code_to_repair.replace("[nn.Linear", "nn.ModuleList([nn.Linear", 1)
    code = code.replace("range(num_layers)]", "range(num_layers)])").split("        for layer in self.layers")[0]
    report = report_of(code + "        return self.layers(x)\n", "fix_layer_stack")
    assert report.verdict.status == "failed"
    assert report.diagnosis.key == "container_called"


@pytest.mark.parametrize(
    ("failing", "rule"),
    [
        ("Without", lambda ones, real: ones.tril(1) & real),
        ("Without", lambda ones, real: ones.triu() & real),
        ("No", lambda ones, real: ones.tril() & (real | ~real)),
        ("The", lambda ones, real: ones.tril() & real & real.mT),
    ],
)
def test_each_line_about_the_decoder_mask_fails_for_a_reason_of_its_own(failing, rule):
    def fix_decoder_mask(tokens, pad_id):
        ones = torch.ones(tokens.shape[1], tokens.shape[1], dtype=torch.bool)
        return rule(ones, (tokens != pad_id)[:, None, None, :])

    lines = self_check(find("fix_decoder_mask"), fix_decoder_mask).verdict.lines
    holds = {line.message.split()[0]: line.holds for line in lines if not line.conduct}
    assert {line for line, fine in holds.items() if not fine} == {failing, "Together:"}
    assert len(holds) == 4


@pytest.mark.parametrize(("name", "left", "edits"), EDITED)
def test_a_half_repair_is_named_by_the_fault_that_is_left(name, left, edits):
    code = find(name).code_to_repair
    for before, after in edits:
        assert code.count(before) == 1
        code = code.replace(before, after)
    report = report_of(code, name)
    assert report.verdict.status == ("failed" if left else "passed")
    assert (report.diagnosis.key if report.diagnosis else "") == left


@each_repair
def test_a_report_does_not_show_a_repaired_line(exercise):
    """`check` says what is left, not where: no line of the stub or of the solution is in a message."""
    lines = {line.strip() for code in (exercise.stub, exercise.solution) for line in code.splitlines()}
    told = [*(p.message for p in exercise.properties), *(m.message for m in exercise.misconceptions), *exercise.hints]
    assert [line for line in lines if len(line) > 12 and any(line in text for text in told)] == []


IN_THE_LIBRARY = {  # repairs that take the arguments of a library's function
    "fix_softmax": "softmax",
    "fix_masked_softmax": "masked_softmax",
    "fix_layer_norm": "layer_norm",
    "fix_head_split": "split_heads",
    "fix_decoder_mask": "decoder_mask",
}


def test_a_repaired_function_computes_what_the_librarys_does():
    """Each is written as somebody else might have written it, so the texts differ."""
    for name, function in IN_THE_LIBRARY.items():
        for trial in sheet_of(find(name), 0).trials:
            args = trial.case.args
            assert_close(find(name).reference(*args), getattr(course_lib, function)(*args))
