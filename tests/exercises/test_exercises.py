"""Every exercise: complete, and able to tell right from wrong. And the linter that says so, which finds each fault."""

import inspect
import re

import pytest
import torch
from toy_exercise import toy

import course_lib
from course_kit.beam_trace import beam_trace
from course_kit.checker.verdict.diagnose import diagnose
from course_kit.checker.verdict.judge import judge
from course_kit.checker.verdict.sheet import sheet_of
from course_kit.exercises import Case, all_exercises, find
from course_kit.flash_attention import flash_attention
from tools.exercise_lint import _text, gifts, problems_of, solution_from

each_exercise = pytest.mark.parametrize("exercise", all_exercises().values(), ids=lambda e: e.name)


def judged(exercise, solution, *, seed=0, allow_twins=True):
    sheet = sheet_of(exercise, seed)
    return judge(exercise, sheet.trials, sheet.run(solution), allow_twins=allow_twins)


def signature(function) -> list[str]:
    parameters = inspect.signature(function).parameters.values()
    return [str(p.replace(annotation=p.empty)) for p in parameters if p.kind is not p.KEYWORD_ONLY]


@each_exercise
def test_texts_are_complete_and_the_stub_has_the_signature_of_the_reference(exercise):
    assert list(_text(exercise)) == []
    assert all(len(hint) > 20 for hint in exercise.hints)
    assert not exercise.forbidden or re.search(r"\b(does|do)\s+not\s+count\b", exercise.statement)
    stub = solution_from(exercise.stub, exercise.name)
    for method in ("__init__", "forward") if exercise.is_class else ("__call__",):
        given, right = (getattr(x, method) if exercise.is_class else x for x in (stub, exercise.reference))
        assert signature(given) == signature(right)


@each_exercise
def test_the_reference_is_the_librarys(exercise):
    if exercise.repair:  # code that somebody else might have written, which the library has under another name
        assert not hasattr(course_lib, exercise.name)
    else:
        assert exercise.reference is getattr(course_lib, exercise.name)


@pytest.mark.thorough
@each_exercise
def test_the_linter_finds_nothing(exercise):
    """Reference passes, stub is not attempted, each misconception fails and is named as itself, no case is
    degenerate."""
    assert list(problems_of(exercise, every=25)) == []


@each_exercise
def test_the_solution_passes_and_three_mistakes_are_named(exercise):
    """The linter sees this of every mistake, and much more, but takes minutes."""
    assert judged(exercise, exercise.reference).score == 1
    sheet = sheet_of(exercise, 0)
    own = [mistake.key for mistake in exercise.misconceptions if not mistake.inherited_from]
    for key in (own[0], own[len(own) // 2], own[-1]):
        seen = sheet.misconception(key)
        verdict = judge(exercise, sheet.trials, seen, allow_twins=True)
        assert verdict.status == "failed", key
        assert diagnose(sheet, verdict, seen).key == key


def winner_of(steps, *, eos_id):
    """The ids of the best hypothesis in the trace of a beam search."""
    survivors = [c for step in steps for c in step if c.survives and (c.finished or step is steps[-1])]
    best = max(survivors, key=lambda candidate: candidate.score)
    return [token for token in best.tokens if token != eos_id]


# The course's own functions, called as they are: they solve the whole exercise, so they earn nothing.
PLAIN_CALLS = {
    "greedy_decode": lambda model, bos_id, eos_id, longest: course_lib.beam_search(model, bos_id, eos_id, 1, longest),
    "beam_search": lambda *args: winner_of(beam_trace(*args), eos_id=args[2]),
    "tiled_attention": lambda *args: flash_attention(*args),
    "fix_loss": lambda logits, targets, pad_id: course_lib.label_smoothing_loss(
        logits.flatten(0, 1), targets.flatten(), 0.0, pad_id
    ),
    "fix_decoder_mask": lambda *args: course_lib.decoder_mask(*args),
    "fix_head_split": lambda *args: course_lib.split_heads(*args),
    "fix_softmax": lambda *args: course_lib.softmax(*args),
    "fix_scaled_attention": lambda *args: course_lib.scaled_dot_product_attention(*args),
    "fix_attention_weights": lambda query, key: course_lib.scaled_dot_product_attention(query, key, key)[1],
    "fix_masked_softmax": lambda *args: course_lib.masked_softmax(*args),
    "fix_padding_mask": lambda query, key, value, real: torch.nn.functional.scaled_dot_product_attention(
        query, key, value, attn_mask=course_lib.padding_mask(real.long(), 0)
    ),
    "fix_cached_attention": lambda query, key, value: course_lib.cached_attention(
        query, key[..., -1:, :], value[..., -1:, :], (key[..., :-1, :], value[..., :-1, :])
    )[0],
    "fix_layer_norm": lambda *args: course_lib.layer_norm(*args),
}
# Two repairs of four minutes have no such function: `fix_decoder_attention` and `fix_layer_stack`.
FOR_ONE_QUERY = {"fix_cached_attention"}


@pytest.mark.parametrize("name", PLAIN_CALLS)
def test_a_plain_call_of_the_courses_own_function_does_not_count(name):
    verdict = judged(find(name), PLAIN_CALLS[name], allow_twins=False)
    assert (verdict.status, verdict.score) == ("not counted", 0)
    assert all(line.holds for line in verdict.lines) or name in FOR_ONE_QUERY


def test_a_part_from_the_course_counts_where_the_statement_allows_it_or_nothing_forbids_it():
    def cached_attention(query, key, value, cache=None):
        old = cache or (key[..., :0, :], value[..., :0, :])
        key, value = (torch.cat((past, new), dim=-2) for past, new in zip(old, (key, value), strict=True))
        return course_lib.scaled_dot_product_attention(query, key, value)[0], (key, value)

    def fix_decoder_mask(tokens, pad_id):
        return course_lib.padding_mask(tokens, pad_id) & course_lib.causal_mask(tokens.shape[1])

    def fix_attention_weights(query, key):
        return course_lib.softmax(query @ key.mT / query.shape[-1] ** 0.5)

    def fix_decoder_attention(x, memory, self_mask, memory_mask):
        x = x + course_lib.scaled_dot_product_attention(x, x, x, self_mask)[0]
        return x + course_lib.scaled_dot_product_attention(x, memory, memory, memory_mask)[0]

    for solution in (cached_attention, fix_decoder_mask, fix_attention_weights, fix_decoder_attention):
        assert judged(find(solution.__name__), solution, allow_twins=False).status == "passed"


def test_unknown_names_are_answered_with_similar_ones():
    with pytest.raises(KeyError, match="Did you mean causal_mask"):
        find("casual_mask")


# The linter itself: an exercise with one fault each. If it found nothing, it would pass all tests above.


def double(x, y):
    return 2 * x + y.sum()


def changing(x, y):
    x *= 2
    return x + y.sum()


X, Y = torch.tensor([[1.0, -2, 3], [-4, 5, 6]]), torch.tensor([1.0, -2, 3, 5])
SOUND = Case(args=(X, Y))
EDGE = Case(args=(X[:, :1], Y), degenerate_because="one column on purpose")
WRONG = (
    lambda x, y: x + y.sum(),
    lambda x, y: 2 * x,
    lambda x, y: 3 * x + y.sum(),
    lambda x, y: 2 * x - y.sum(),
    lambda x, y: x * x + y.sum(),
)


def faults(*cases, mistakes=WRONG, reference=double, **changes) -> str:
    shapes = {"x": "rows columns", "y": "length"}
    return "\n".join(problems_of(toy(reference, shapes, *cases or (SOUND,), mistakes=mistakes, **changes)))


def test_a_sound_exercise_has_no_faults_and_an_edge_case_may_be_degenerate():
    assert faults() == faults(SOUND, EDGE) == ""


@pytest.mark.parametrize(
    ("args", "fault"),
    [
        ((X, Y[:3]), "columns and length are both 3 long"),
        ((X[:, :1], Y), "columns of x has length 1"),
        ((X[0], Y), "x has shape"),
        ((X.abs(), Y), "x has values of one sign"),
        ((X[:, :2] @ X[:, :2].T, Y), "x is symmetric"),
    ],
)
def test_degenerate_cases_are_faults(args, fault):
    assert fault in faults(Case(args=args))


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"hints": ("One.",)}, "1 hints, two to four are wanted"),
        ({"hints": ("One.",) * 5}, "5 hints, two to four are wanted"),
        ({"stub": f"def toy(x, y):\n    # {'x' * 90}\n    raise NotImplementedError\n"}, "a line of the stub has 96"),
        ({"stub": "def toy(x, y):\n    return x\n"}, "the stub is failed"),
        ({"read_next": ""}, "no section to look at"),
        ({"reference": changing}, "the reference does not pass"),
        ({"mistakes": WRONG[:4]}, "4 misconceptions, at least 5"),
        ({"mistakes": (*WRONG, double)}, "no case tells wrong_5 from the reference"),
        ({"mistakes": (*WRONG, lambda x, y: x.clone() + y.sum())}, "no case tells wrong_0 from wrong_5"),
        (
            {"mistakes": (*WRONG, lambda x, y: 4 * x + y.sum() + rigth)},
            "wrong_5 never runs: name 'rigth' is not defined",
        ),
    ],
)
def test_texts_and_mistakes_that_prove_nothing_are_faults(changes, fault):
    assert fault in faults(**changes)


def test_points_for_nothing_are_a_fault():
    zero = Case(args=(X * 0, Y - Y), degenerate_because="all zero")
    assert "a solution that returns zeros gets points" in faults(zero, mistakes=())
    sheet = sheet_of(toy(double, {"x": "rows columns", "y": "length"}, zero), 0)
    assert set(gifts(sheet)) == {"zeros", "ones", "its first argument"}


def test_where_rows_sum_to_one_a_gradient_may_differ_by_one_number_per_row_and_by_nothing_else():
    case = Case(args=(torch.tensor([[0.5, 0.25, 0.25], [0.1, 0.2, 0.7]]), Y))

    def gradients_hold(solution, **options) -> bool | None:
        exercise = toy(double, {"x": "rows columns", "y": "length"}, case, single_sign_args=("x",), **options)
        lines = judged(exercise, solution).lines
        return next(line.holds for line in lines if line.message.startswith("Gradients"))

    def divided(x, y):
        return 2 * x / x.sum(-1, keepdim=True) + y.sum()

    assert gradients_hold(double, sum_to_one=("x",))
    assert gradients_hold(divided, sum_to_one=("x",))
    assert gradients_hold(divided) is False
    assert gradients_hold(lambda x, y: 2 * x.detach() + y.sum(), sum_to_one=("x",)) is False
    assert gradients_hold(lambda x, y: x.detach() + x + y.sum(), sum_to_one=("x",)) is False
