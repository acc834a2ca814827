"""What is said about mistakes without a name: only what is certain, and what the learner's own line shows."""

import itertools
from functools import partial

import pytest
import torch
from toy_exercise import toy

from course_kit.checker.observing import Observation, Problem
from course_kit.checker.protocol import pack_problem, unpack_problem
from course_kit.checker.report.html_report import html_of
from course_kit.checker.report.plain_report import text_of
from course_kit.checker.report.report import _weights, report_on
from course_kit.checker.shortening import listed, shortened
from course_kit.checker.verdict.code_line import CodeLine
from course_kit.checker.verdict.diagnose import diagnose
from course_kit.checker.verdict.explaining import explain_problem
from course_kit.checker.verdict.judge import judge
from course_kit.checker.verdict.named_mistake import Fit
from course_kit.checker.verdict.sheet import Sheet, sheet_of
from course_kit.checker.verdict.trials import trials_of
from course_kit.exercises import Case, Misconception, find

SIZES = "The size of tensor a (5) must match the size of tensor b (7) at non-singleton dimension 1"


def tip(code: str, message: str, type_: str = "RuntimeError", *, args=None, name: str = "attend") -> str:
    case = Case(args=args if args is not None else (torch.zeros(4, 5), torch.zeros(5, 7)))
    explained = explain_problem(find(name), case, Observation(problem=Problem(type_, message, 1, code)))
    return explained.message if explained else ""


@pytest.mark.parametrize(
    ("code", "message", "never"),
    [
        ("return weights / weights.sum(-1)", "`sum` drops the axis", "unsqueeze"),
        ("return weights / weights.sum(-1, keepdim=True)", "Write the shape of each", "keepdim"),
        ("x = weights.unsqueeze(-2) + value", "The line inserts an axis with `unsqueeze`", "keepdim"),
        ("x = mask[:, None] & other", "The line inserts an axis with `None`", "keepdim"),
        ("scores = query * key.transpose(-2, -1)", "a matrix product is `@`", "keepdim"),
        ("scores = query * key.mT", "a matrix product is `@`", "unsqueeze"),
        ("x = scores / math.sqrt(k)", "Write the shape of each", "keepdim"),
        # The operator that fails may stand inside the reduction.
        ("return n * torch.sum(weights * value)", "Write the shape of each", "keepdim"),
        ("return n * (weights * value).sum(-1)", "Write the shape of each", "keepdim"),
        ("weights /= torch.sum(weights, dim=-1)", "`sum` drops the axis", "unsqueeze"),
    ],
)
def test_the_learners_line_chooses_the_tip(code, message, never):
    text = tip(code, SIZES)
    assert "length 5 (len_k) at axis 1, the other 7 (d_v)" in text
    assert message in text
    assert never not in text


def test_no_axis_was_dropped_where_lengths_differ_at_the_first_one():
    assert "keepdim" not in tip("return (share * probs.mean(0)).sum()", SIZES.replace("dimension 1", "dimension 0"))


def test_a_matrix_product_or_a_layer_is_not_called_entry_by_entry():
    assert "entry by entry" not in tip("return weights @ value", SIZES)
    assert "entry by entry" not in tip("x = x + self.attention(x)", SIZES)
    assert "combines two tensors entry by entry" in tip("return weights * value", SIZES)


def test_none_is_said_of_the_argument_that_is_none():
    message = "cannot unpack non-iterable NoneType object"
    query = torch.zeros(1, 1, 1, 2)
    with_none = tip("keys, values = cache", message, "TypeError", args=(query, query, query), name="cached_attention")
    assert "In this case `cache` is None." in with_none
    cache = (query, query)
    without = tip("k, v = f()", message, "TypeError", args=(query, query, query, cache), name="cached_attention")
    assert "no argument is None in this case" in without


def test_lines_that_are_no_statement_are_read_all_the_same():
    assert CodeLine("for x in y.unsqueeze(0):").inserts_an_axis == "unsqueeze"
    assert CodeLine("return e / e.sum(-1)").drops_an_axis == "sum"
    assert CodeLine("return e / e.sum(-1, True)").drops_an_axis == ""
    for code in ("", "((((", "\\", "x = 'a\\d'", "(" * 5000):
        assert CodeLine(code).drops_an_axis == ""


def said(name: str, solution) -> str:
    """The tip for a solution, as if no mistake had a name."""
    sheet = sheet_of(find(name), 0)
    observations = sheet.run(solution)
    verdict = judge(sheet.exercise, sheet.trials, observations, allow_twins=True)
    found = diagnose(sheet, verdict, observations, named=False)
    return found.message if found else ""


def report(exercise, solution):
    sheet = sheet_of(exercise, 0)
    return report_on(sheet, sheet.run(solution))


def test_infinity_is_said_and_where_it_comes_from_is_asked_only_of_nan():
    only_the_best = said("top_p_filter", lambda x, p: x.masked_fill(x < x.max(), float("-inf")))
    assert only_the_best == "Every failing case has `inf`, `-inf` or `nan` where a number is expected."
    assert said("top_p_filter", lambda x, p: x.masked_fill(x < 0, 0.0)) == ""
    overflows = said("softmax", lambda x, dim=-1: x.exp() / x.exp().sum(dim, keepdim=True))
    assert "computes 0 / 0" in overflows


def test_a_fault_that_depends_on_batch_dimensions_is_said_from_two_cases_on():
    assert said("attend", lambda x, value: (x.softmax(1) @ value, x.softmax(1))).startswith("Right without a batch")
    clamped = next(m for m in find("FeedForward").misconceptions if "clamp to 0 … 1" in m.message)
    assert "batch" not in said("FeedForward", clamped.solution)


def test_every_wrong_bool_is_marked_in_text_and_html():
    x = torch.tensor([[1.0, -1.0], [-1.0, 1.0]])
    found = report(toy(lambda x: x > 0, {"x": "a b"}, Case(args=(x,)), differentiable=False), lambda x: x == x)
    text = text_of(found, "")
    assert text.split("got")[-1].count("*") == 3  # two cells, and the legend
    assert "(* wrong)" in text
    assert html_of(found, "").split("got</caption>")[1].count("outline") == 2


def test_weights_of_a_small_module_are_shown_and_count_for_its_size():
    class FeedForward(find("FeedForward").reference):
        def forward(self, x):
            return super().forward(x) + 1

    first = sheet_of(find("FeedForward"), 0).trials[0].case
    assert first.size > sum(p.numel() for p in first.state.values())
    found = report(find("FeedForward"), FeedForward)
    assert "weights: linear1.weight (3, 2), linear1.bias (3,)" in text_of(found, "")
    assert "[[" not in text_of(found, "").split("weights:")[1]
    assert html_of(found, "").split("<details>")[1].count("linear1.weight (3, 2) = [[") == 1
    large = max(sheet_of(find("DecoderLayer"), 0).trials, key=lambda t: t.case.size)
    assert not any(numbers for _, numbers in _weights(large.case))


def test_text_is_cut_between_words_with_a_count():
    assert shortened("one two three", 13) == "one two three"
    assert shortened("one two three", 9) == "one two … (6 more characters)"
    assert shortened("12345 67890", 7) == "12345 … (6 more characters)"
    assert shortened("x" * 300, 100) == "… (300 more characters)"
    assert listed(["a", "b", "c"], 2) == "a, b, c"
    assert listed(["a", "b", "c", "d"], 2) == "a, b … and 2 more"


def test_a_mistake_judged_by_its_values_first_is_still_known_by_its_gradients():
    exercise = find("LearnedPositionalEmbedding")
    sheet, fresh = Sheet(exercise, 1, trials_of(exercise, 1)), Sheet(exercise, 1, trials_of(exercise, 1))
    by_gradient = 0
    for mistake, trial in itertools.product(exercise.misconceptions, [t for t in sheet.trials if t.cotangents][:1]):
        of_values = sheet.misconception_facets(mistake.key, trial, values_only=True)
        of_all = sheet.misconception_facets(mistake.key, trial)
        assert of_all == fresh.misconception_facets(mistake.key, trial)
        by_gradient += of_all != of_values
    assert by_gradient


SIGNS = (
    Misconception("first_sign", "The sign of x is kept.", lambda x, y: x.sum() + y.abs().sum()),
    Misconception("second_sign", "The sign of y is kept.", lambda x, y: x.abs().sum() + y.sum()),
)
BOTH = Misconception("a+b", "There are two mistakes here: a, and b.", lambda x, y: x.sum() + y.abs().sum())


def sum_of_sizes(*mistakes):
    """An exercise in two tensors, of which either may be negative in a case."""
    x, y = torch.tensor([[1.0, 2.0]]), torch.tensor([[3.0, 4.0]])
    cases = [Case(args=args) for n in (2, 3, 4) for args in ((-n * x, y), (x, -n * y), (n * x, y))]
    shapes = {"x": "a b", "y": "c d"}
    return toy(lambda x, y: x.abs().sum() + y.abs().sum(), shapes, *cases, mistakes=mistakes, differentiable=False)


def test_two_mistakes_that_show_in_different_cases_are_both_named():
    found = report(sum_of_sizes(*SIGNS), lambda x, y: x.sum() + y.sum()).diagnosis
    assert found.keys == ("first_sign", "second_sign")
    assert found.message == (
        "There are two mistakes at once. The first: The sign of x is kept. The second: The sign of y is kept."
    )
    assert report(sum_of_sizes(*SIGNS), SIGNS[0].solution).diagnosis.keys == ("first_sign",)
    more = report(sum_of_sizes(*SIGNS), lambda x, y: x.sum() + y.abs().sum() + (y < 0).any()).diagnosis
    assert more.message.endswith("This does not explain every failing case, so check again after correcting it.")


def test_a_message_about_two_mistakes_is_not_put_into_another_one():
    found = report(sum_of_sizes(BOTH, SIGNS[1]), lambda x, y: x.sum() + y.sum()).diagnosis
    assert found is None or found.message.count("two mistakes") <= 1


@pytest.mark.parametrize(
    ("solution", "told"),
    [
        (lambda x: (x >= 0).float(), "Zero is not positive. The dtype is wrong, too: expected bool, got float32."),
        (lambda x: (x > 0).long(), "The values are right, but the dtype is not: expected bool, got int64."),
        (lambda x: 0.5 * (x >= 0), None),
    ],
)
def test_a_mistake_in_another_dtype_is_named_together_with_the_dtype(solution, told):
    x = torch.tensor([[1.0, -1.0, 0.0], [-1.0, 1.0, 2.0]])
    mistake = Misconception("zero_too", "Zero is not positive.", lambda x: x >= 0)
    exercise = toy(lambda x: x > 0, {"x": "a b"}, Case(args=(x,)), mistakes=[mistake], differentiable=False)
    found = report(exercise, solution).diagnosis
    assert (found and found.message) == told


def test_a_check_compares_messages_as_they_arrive_from_a_submission():
    """Long texts are cut on the way, and would otherwise fit no mistake in grading, or another one."""

    def fails(x):
        raise ValueError("word " * 180)

    (seen,) = sheet_of(toy(lambda x: x, {"x": "a b"}, Case(args=(torch.ones(1, 1),))), 0).run(fails)
    assert seen.problem == unpack_problem(pack_problem(seen.problem))
    assert len(seen.problem.message) <= 500


def test_a_label_in_float32_is_right_to_the_accuracy_of_float32():
    """Although some cases in float64 pass, in which nothing is rounded."""

    def by_label(logits, targets, smoothing, pad_id, *, dtype=torch.float32, wrong=0.0):
        one_hot = torch.nn.functional.one_hot(targets, logits.shape[1]).to(dtype)
        q = one_hot * (1 - smoothing) + smoothing / logits.shape[1] + wrong
        return -(q * logits.log_softmax(-1)).sum(-1)[targets != pad_id].mean()

    exercise = find("label_smoothing_loss")
    found = report(exercise, by_label).diagnosis
    assert found.key == "any/precision"
    assert found.message.startswith("Right only to the accuracy of float32: some step computes in a coarser")
    assert report(exercise, partial(by_label, dtype=torch.float64)).diagnosis.key == "any/dtype"
    worse = report(exercise, partial(by_label, wrong=1e-3)).diagnosis
    assert worse is None or worse.key != "any/precision"


def test_an_exception_in_float64_is_not_called_inaccurate():
    def refused(scores, dim=-1):
        if scores.dtype == torch.float64:
            raise ValueError("no float64")
        return scores.softmax(dim)

    def dotted(router_probs, chosen):
        counts = torch.bincount(chosen, minlength=router_probs.shape[1]).float()
        return router_probs.shape[1] / len(chosen) * (counts @ router_probs.mean(0))

    assert said("softmax", refused) == ""
    assert "two tensors of different dtypes. The arguments are float64 in this" in said("load_balancing_loss", dotted)


@pytest.mark.parametrize(
    ("explained", "raising", "silent", "other", "enough"),
    [
        (1, 0, 0, 0, True), (1, 0, 1, 0, False), (1, 0, 0, 1, False), (2, 0, 1, 0, True), (2, 0, 1, 1, True),
        (2, 0, 2, 1, False), (1, 1, 0, 0, True), (1, 2, 0, 0, False), (0, 0, 0, 0, False),
    ],
)  # fmt: skip
def test_a_mistake_has_a_name_where_it_explains_half_of_what_fails_and_not_by_chance(
    explained, raising, silent, other, enough
):
    """A single case may agree by chance, so that one is enough only where none contradicts it."""
    sheet = sheet_of(find("softmax"), 0)
    trials = iter(sheet.trials * 2)
    fit = Fit(sheet.exercise.misconceptions[0], values=explained, by_value=explained)
    for into, count in ((fit.explained, explained), (fit.raising, raising), (fit.silent, silent), (fit.other, other)):
        into += [next(trials) for _ in range(count)]
    assert fit.is_enough == enough
