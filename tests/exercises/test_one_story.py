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

each_exercise = pytest.mark.parametrize("exercise", all_exercises().values(), ids=lambda e: e.name)


def numbers(text: str) -> set[str]:
    return set(re.findall(r"\d+(?:\.\d+)?", text))


def quoted_from_elsewhere(report: Report) -> set[str]:
    """Numbers in a diagnosis that the shown case does not have."""
    example = report.example
    shown = "\n".join([example.heading, *example.call, example.text, example.where, example.code])
    return numbers(CONSTANTS.sub("", report.diagnosis.message)) - numbers(shown)


@pytest.mark.thorough
@each_exercise
def test_tips_quote_the_case_that_is_shown(exercise):
    """As if no mistake had a name."""
    sheet = sheet_of(exercise, 0)
    for mistake in (mistake for mistake in exercise.misconceptions if not mistake.inherited_from):
        seen = sheet.misconception(mistake.key)
        verdict = judge(exercise, sheet.trials, seen, allow_twins=True)
        if diagnosis := diagnose(sheet, verdict, seen, named=False):
            report = Report(exercise, verdict, diagnosis, _example(sheet, verdict, seen, diagnosis))
            assert quoted_from_elsewhere(report) == set(), (mistake.key, diagnosis.message, report.example)


@pytest.mark.thorough
@each_exercise
def test_a_diagnosed_mistake_is_shown_by_a_case_that_it_explains(exercise):
    sheet = sheet_of(exercise, 0)
    for cell in (cell for cell in cells("held_out") if cell.exercise == exercise.name):
        report = report_on(sheet, sheet.run(cell.load()), allow_twins=True)
        diagnosis = report.diagnosis
        assert report.example
        if diagnosis is None:
            continue
        assert diagnosis.trial.number in report.verdict.findings
        if diagnosis.key.startswith("any/"):
            assert quoted_from_elsewhere(report) == set(), (diagnosis.message, report.example)
        else:
            of_mistake = sheet.misconception_at(diagnosis.key, diagnosis.trial)
            assert findings_of(exercise, diagnosis.trial, of_mistake)
            assert diagnosis.trial.number in diagnosis.explains


def report_and_text(name, solution):
    """The report on a solution, or on the mistake of that key."""
    sheet = sheet_of(find(name), 0)
    seen = sheet.misconception(solution) if isinstance(solution, str) else sheet.run(solution)
    report = report_on(sheet, seen)
    return report, text_of(report, "")


def test_a_number_from_another_case_is_noticed():
    report, _ = report_and_text("attend", lambda scores, value: (scores @ value, scores))
    elsewhere = Diagnosis("any/test", "The sum runs over 4711 (len_k) entries.", report.diagnosis.trial)
    assert quoted_from_elsewhere(Report(report.exercise, report.verdict, elsewhere, report.example)) == {"4711"}


def test_only_the_line_to_begin_with_is_marked_where_one_mistake_breaks_all():
    report, text = report_and_text("scaled_dot_product_attention", "no_scale")
    failing = [line.message for line in report.verdict.lines if line.holds is False]
    assert len(failing) >= 2
    assert text.count("← begin here") == 1
    assert f"✗ {failing[0]} ← begin here" in text
    assert text.count("(fails for the same reason)") == len(failing) - 1


def test_nothing_is_marked_where_one_mistake_does_not_explain_all():
    def two_mistakes(query, key, value, mask=None):
        if mask is not None:
            return value.sum(-1), query
        output, weights = find("scaled_dot_product_attention").reference(query, key, value)
        return output * query.shape[-1] ** 0.5, weights

    report, text = report_and_text("scaled_dot_product_attention", two_mistakes)
    assert sum(line.holds is False for line in report.verdict.lines) >= 2
    assert "begin here" not in text


def test_no_line_of_a_repair_is_said_to_fail_for_the_same_reason_as_another():
    report, text = report_and_text("fix_masked_softmax", "as_given")
    assert report.diagnosis.key == "as_given"
    assert sum(line.holds is False for line in report.verdict.lines) >= 3
    assert "same reason" not in text


def test_missing_parameters_are_the_cause_of_whatever_else_fails():
    mistake = next(m for m in find("FeedForward").misconceptions if "no parameters" in m.message)
    report, text = report_and_text("FeedForward", mistake.key)
    assert report.cause.conduct
    (marked,) = (line for line in text.split("\n") if line.endswith("← begin here"))
    assert "It has the named parameters, and no others" in marked
