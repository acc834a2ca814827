"""The diagnosis, the lengths that it quotes and the case that is shown come from one failing case."""

import re

import pytest
from solutions_by_others import cells

from course_kit.checker.report.plain_report import text_of
from course_kit.checker.report.report import Report, _example, report_on
from course_kit.checker.verdict.diagnose import diagnose
from course_kit.checker.verdict.evidence import Diagnosis
from course_kit.checker.verdict.judge import findings_of, judge
from course_kit.checker.verdict.sheet import sheet_of
from course_kit.exercises import all_exercises, find

# Numbers that are not quoted from a case: names of dtypes, the end of float16, axes counted from the right, and zeros.
CONSTANTS = re.compile(r"b?float\d+|65504|−1 and −2|0 / 0, ∞ − ∞ or 0 · ∞|indices start at 0|`[^`]*`")


def numbers(text: str) -> set[str]:
    return set(re.findall(r"\d+(?:\.\d+)?", text))


def quoted_from_elsewhere(report: Report) -> set[str]:
    """Numbers in a diagnosis that the shown case does not have."""
    example = report.example
    shown = "\n".join([example.heading, *example.call, example.text, example.where, example.code])
    return numbers(CONSTANTS.sub("", report.diagnosis.message)) - numbers(shown)


def report_without_names(sheet, observations) -> Report:
    """The report as if no mistake had a name."""
    verdict = judge(sheet.exercise, sheet.trials, observations, allow_twins=True)
    diagnosis = diagnose(sheet, verdict, observations, named=False)
    return Report(sheet.exercise, verdict, diagnosis, _example(sheet, verdict, observations, diagnosis))


@pytest.mark.thorough
@pytest.mark.parametrize("exercise", all_exercises().values(), ids=lambda e: e.name)
def test_tips_quote_the_case_that_is_shown(exercise):
    sheet = sheet_of(exercise, 0)
    for mistake in exercise.misconceptions:
        if mistake.inherited_from:
            continue
        report = report_without_names(sheet, sheet.misconception(mistake.key))
        if report.diagnosis is not None:
            assert quoted_from_elsewhere(report) == set(), (mistake.key, report.diagnosis.message, report.example)


@pytest.mark.thorough
@pytest.mark.parametrize("exercise", all_exercises().values(), ids=lambda e: e.name)
def test_a_named_mistake_is_shown_by_a_case_that_it_explains(exercise):
    for cell in (cell for cell in cells("held_out") if cell.exercise == exercise.name):
        is_shown_by_a_case_that_it_explains(cell, sheet_of(exercise, 0))


def is_shown_by_a_case_that_it_explains(cell, sheet):
    report = report_on(sheet, sheet.run(cell.load()), allow_twins=True)
    diagnosis = report.diagnosis
    if diagnosis is None:
        assert report.example
        return
    assert diagnosis.trial.number in report.verdict.findings
    if diagnosis.key.startswith("any/"):
        assert quoted_from_elsewhere(report) == set(), (diagnosis.message, report.example)
        return
    of_mistake = sheet.misconception_at(diagnosis.key, diagnosis.trial)
    assert findings_of(sheet.exercise, diagnosis.trial, of_mistake)
    assert diagnosis.trial.number in diagnosis.explains


def test_a_number_from_another_case_is_noticed():
    sheet = sheet_of(find("attend"), 0)
    observations = sheet.run(lambda scores, value: (scores @ value, scores))
    report = report_on(sheet, observations)
    trial = (
        report.diagnosis.trial
        if report.diagnosis
        else next(t for t in sheet.trials if t.number in report.verdict.findings)
    )
    elsewhere = Diagnosis("any/test", "The sum runs over 4711 (len_k) entries.", trial)
    assert quoted_from_elsewhere(Report(report.exercise, report.verdict, elsewhere, report.example)) == {"4711"}


def test_only_the_line_to_begin_with_is_marked_where_one_mistake_breaks_all():
    sheet = sheet_of(find("scaled_dot_product_attention"), 0)
    report = report_on(sheet, sheet.misconception("no_scale"))
    text = text_of(report, "")
    failing = [line.message for line in report.verdict.lines if line.holds is False]
    assert len(failing) >= 2
    assert text.count("← begin here") == 1
    assert f"✗ {failing[0]} ← begin here" in text
    assert text.count("(fails for the same reason)") == len(failing) - 1


def test_nothing_is_marked_where_one_mistake_does_not_explain_all():
    sheet = sheet_of(find("scaled_dot_product_attention"), 0)

    def two_mistakes(query, key, value, mask=None):
        if mask is not None:
            return value.sum(-1), query
        output, weights = find("scaled_dot_product_attention").reference(query, key, value)
        return output * query.shape[-1] ** 0.5, weights

    report = report_on(sheet, sheet.run(two_mistakes))
    assert sum(line.holds is False for line in report.verdict.lines) >= 2
    assert "begin here" not in text_of(report, "")


def test_no_line_of_a_repair_is_said_to_fail_for_the_same_reason_as_another():
    sheet = sheet_of(find("fix_masked_softmax"), 0)
    report = report_on(sheet, sheet.misconception("as_given"))
    assert report.diagnosis.key == "as_given"
    assert sum(line.holds is False for line in report.verdict.lines) >= 3
    assert "same reason" not in text_of(report, "")


def test_missing_parameters_are_the_cause_of_whatever_else_fails():
    sheet = sheet_of(find("FeedForward"), 0)
    mistake = next(m for m in find("FeedForward").misconceptions if "no parameters" in m.message)
    report = report_on(sheet, sheet.misconception(mistake.key))
    assert report.cause.conduct
    (marked,) = (line for line in text_of(report, "").split("\n") if line.endswith("← begin here"))
    assert "It has the named parameters, and no others" in marked
