"""Every exercise: complete, as the contract names it, and able to tell right from wrong."""

import ast
import inspect
import re

import pytest
import torch

import course_lib
from course_kit.beam_trace import beam_trace
from course_kit.checker.verdict.diagnose import diagnose
from course_kit.checker.verdict.judge import judge
from course_kit.checker.verdict.sheet import sheet_of
from course_kit.exercises import STEMS, Case, Exercise, Misconception, all_exercises, find
from course_kit.flash_attention import flash_attention
from tools.exercise_lint import gifts, problems_of

# The contract of the course: names and signatures, which other parts rely on.
CONTRACT = {
    "attention": {
        "softmax": "scores, dim=-1",
        "additive_score": "query, key, w_query, w_key, v",
        "attend": "scores, value",
        "kernel_regression": "x_query, x_key, y_key, bandwidth",
    },
    "scaled_dot_product": {
        "scaled_dot_product_attention": "query, key, value, mask=None",
        "self_attention": "x, w_q, w_k, w_v, mask=None",
        "softmax_backward": "weights, grad_weights",
        "attention_flops": "len_q, len_k, d_k, d_v",
    },
    "multi_head": {
        "split_heads": "x, num_heads",
        "merge_heads": "x",
        "MultiHeadAttention": "query, key, value, mask=None",
        "multi_head_parameter_count": "d_model, num_heads, bias=True",
    },
    "masking": {
        "padding_mask": "tokens, pad_id",
        "causal_mask": "length",
        "decoder_mask": "tokens, pad_id",
        "masked_softmax": "scores, mask",
        "sliding_window_mask": "length, window",
    },
    "positional_encoding": {
        "sinusoidal_encoding": "length, d_model",
        "LearnedPositionalEmbedding": "x",
        "shift_matrix": "offset, d_model",
        "apply_rotary": "x, positions, base=10000.0",
        "alibi_bias": "num_heads, length",
    },
    "transformer": {
        "layer_norm": "x, gain, bias, eps=1e-05",
        "FeedForward": "x",
        "EncoderLayer": "x, mask=None",
        "DecoderLayer": "x, memory, self_mask=None, memory_mask=None",
        "transformer_parameter_count": "vocab_size, d_model, num_layers, d_ff",
    },
    "training": {
        "teacher_forcing_pair": "tokens",
        "label_smoothing_loss": "logits, targets, smoothing, pad_id",
        "warmup_rate": "step, d_model, warmup_steps",
        "token_batches": "lengths, max_tokens",
    },
    "decoding": {
        "greedy_decode": "next_log_probs, bos_id, eos_id, max_length",
        "beam_search": "next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty=0.0",
        "top_p_filter": "logits, p",
        "corpus_bleu": "hypotheses, references",
        "cached_attention": "query, key, value, cache=None",
    },
    "inspection": {
        "attention_entropy": "weights",
        "attention_rollout": "weights",
        "previous_token_score": "weights",
        "attention_between_words": "weights, query_words, key_words",
        "head_switched_off": "heads, weight, bias, off",
    },
    "efficiency": {
        "convolution_layers": "length, kernel_size, dilated=False",
        "online_softmax_step": "maximum, total, output, scores, value",
        "tiled_attention": "query, key, value, block_size",
        "cache_bytes": "num_layers, num_kv_heads, d_head, length, batch_size=1, bytes_per_number=2",
        "grouped_query_attention": "query, key, value",
        "linear_attention": "query, key, value",
        "speculative_acceptance": "target, draft",
    },
    "debugging": {
        "fix_loss": "logits, targets, pad_id",
        "fix_decoder_mask": "tokens, pad_id",
        "fix_decoder_attention": "x, memory, self_mask, memory_mask",
        "fix_layer_stack": "x",
        "fix_head_split": "x, num_heads",
        "fix_softmax": "scores, dim=-1",
        "fix_scaled_attention": "query, key, value",
        "fix_attention_weights": "query, key",
        "fix_masked_softmax": "scores, mask",
        "fix_padding_mask": "query, key, value, real",
        "fix_cached_attention": "query, key, value",
        "fix_layer_norm": "x, gain, bias, eps=1e-05",
    },
}
CONSTRUCTORS = {
    "MultiHeadAttention": "d_model, num_heads",
    "LearnedPositionalEmbedding": "max_length, d_model",
    "FeedForward": "d_model, d_ff",
    "EncoderLayer": "d_model, num_heads, d_ff",
    "DecoderLayer": "d_model, num_heads, d_ff",
    "fix_layer_stack": "d_model, num_layers",
}
each_exercise = pytest.mark.parametrize("exercise", all_exercises().values(), ids=lambda e: e.name)


def signature(function) -> str:
    parameters = [p.replace(annotation=p.empty) for p in inspect.signature(function).parameters.values()]
    return ", ".join(str(p) for p in parameters if p.name != "self" and p.kind is not p.KEYWORD_ONLY)


def test_every_exercise_of_the_contract_is_there():
    names = {stem: {e.name for e in all_exercises().values() if e.stem == stem} for stem in STEMS}
    assert {stem: set(exercises) for stem, exercises in CONTRACT.items()} == {
        stem: names[stem] & set(CONTRACT[stem]) for stem in STEMS
    }


@pytest.mark.parametrize("name", [name for names in CONTRACT.values() for name in names])
def test_signatures_are_those_of_the_contract(name):
    exercise = find(name)
    wanted = CONTRACT[exercise.stem][name]
    stub: dict = {"nn": torch.nn, "torch": torch}
    exec(exercise.stub, stub)
    for thing in (exercise.reference, stub[exercise.name]):
        assert signature(thing.forward if exercise.is_class else thing) == wanted
        if exercise.is_class:
            assert signature(thing.__init__) == CONSTRUCTORS[exercise.name]


@pytest.mark.thorough
@each_exercise
def test_the_linter_finds_nothing(exercise):
    """Reference passes, stub is not attempted, each misconception fails and is named as itself, no case is
    degenerate."""
    assert list(problems_of(exercise, every=25)) == []


@each_exercise
def test_the_solution_passes_and_three_mistakes_are_named(exercise):
    """The linter sees this of every mistake, and much more, but takes minutes."""
    sheet = sheet_of(exercise, 0)
    assert judge(exercise, sheet.trials, sheet.run(exercise.reference), allow_twins=True).score == 1
    own = [mistake.key for mistake in exercise.misconceptions if not mistake.inherited_from]
    for key in (own[0], own[len(own) // 2], own[-1]):
        seen = sheet.misconception(key)
        verdict = judge(exercise, sheet.trials, seen, allow_twins=True)
        assert verdict.status == "failed", key
        assert diagnose(sheet, verdict, seen).key == key


@pytest.mark.parametrize("exercise", [e for e in all_exercises().values() if not e.repair], ids=lambda e: e.name)
def test_the_package_has_the_same_function(exercise):
    """A repair has none: what it computes is in the package under its own name."""
    sheet = sheet_of(exercise, 3)
    verdict = judge(exercise, sheet.trials, sheet.run(getattr(course_lib, exercise.name)), allow_twins=True)
    parameters = {line.message for line in verdict.lines if not line.holds}
    assert verdict.status == "passed", parameters


@each_exercise
def test_stub_and_hints_fit_a_page(exercise):
    assert all(len(line) <= 88 for line in exercise.stub.split("\n"))
    ast.parse(exercise.stub)
    assert 2 <= len(exercise.hints) <= 4
    assert all(len(hint) > 20 for hint in exercise.hints)


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
    exercise = find(name)
    sheet = sheet_of(exercise, 0)
    seen = sheet.run(PLAIN_CALLS[name])
    verdict = judge(exercise, sheet.trials, seen, allow_twins=False)
    assert verdict.status == "not counted"
    assert verdict.score == 0
    if name not in FOR_ONE_QUERY:
        assert judge(exercise, sheet.trials, seen, allow_twins=True).status == "passed"


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
        exercise = find(solution.__name__)
        sheet = sheet_of(exercise, 0)
        assert judge(exercise, sheet.trials, sheet.run(solution), allow_twins=False).status == "passed"


@each_exercise
def test_a_statement_says_that_a_function_for_the_whole_does_not_count(exercise):
    assert not exercise.forbidden or re.search(r"\b(does|do)\s+not\s+count\b", exercise.statement)


def test_unknown_names_are_answered_with_similar_ones():
    with pytest.raises(KeyError, match="Did you mean causal_mask"):
        find("casual_mask")


# The linter itself. An exercise with one fault each; a linter that finds nothing would pass all tests above.


def double(x, y):
    return 2 * x + y.sum()


def an_exercise(**changes) -> Exercise:
    options = {
        "name": "double",
        "title": "Double",
        "statement": "Twice x, plus the sum of y.",
        "difficulty": 1,
        "minutes": 1,
        "stub": "def double(x, y):\n    raise NotImplementedError\n",
        "hints": ("One.", "Two."),
        "reference": double,
        "shapes": {"x": "rows columns", "y": "length"},
        "read_next": "attention: The softmax turns scores into weights",
    }
    return Exercise(**{**options, **changes})


def with_cases(exercise, *cases, misconceptions=()):
    exercise.holds("It doubles.")(lambda draw: iter(cases))
    for number, wrong in enumerate(misconceptions):
        exercise.misconceptions.append(Misconception(f"wrong_{number}", f"Wrong in way {number}.", wrong))
    return exercise


X, Y = torch.tensor([[1.0, -2, 3], [-4, 5, 6]]), torch.tensor([1.0, -2, 3, 5])
WRONG = [
    lambda x, y: x + y.sum(),
    lambda x, y: 2 * x,
    lambda x, y: 3 * x + y.sum(),
    lambda x, y: 2 * x - y.sum(),
    lambda x, y: x * x + y.sum(),
]


def faults(exercise) -> str:
    return "\n".join(problems_of(exercise))


def test_a_sound_exercise_has_no_faults():
    assert faults(with_cases(an_exercise(), Case(args=(X, Y)), misconceptions=WRONG)) == ""


@pytest.mark.parametrize(
    ("case", "fault"),
    [
        (Case(args=(X, Y[:3])), "columns and length are both 3 long"),
        (Case(args=(X[:, :1], Y)), "columns of x has length 1"),
        (Case(args=(X[0], Y)), "x has shape"),
        (Case(args=(X.abs(), Y)), "x has values of one sign"),
        (Case(args=(X[:, :2] @ X[:, :2].T, Y)), "x is symmetric"),
    ],
)
def test_degenerate_cases_are_faults(case, fault):
    assert fault in faults(with_cases(an_exercise(), case, misconceptions=WRONG))


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"hints": ("One.",)}, "1 hints, two to four are wanted"),
        ({"hints": ("One.", "Two.", "Three.", "Four.", "Five.")}, "5 hints, two to four are wanted"),
        (
            {"stub": f"def double(x, y):\n    # {'x' * 90}\n    raise NotImplementedError\n"},
            "a line of the stub has 96",
        ),
    ],
)
def test_texts_that_do_not_fit_are_faults(changes, fault):
    assert fault in faults(with_cases(an_exercise(**changes), Case(args=(X, Y)), misconceptions=WRONG))


def test_a_mistake_that_only_ends_in_an_undefined_name_is_a_fault():
    spoilt = [*WRONG, lambda x, y: 4 * x + y.sum() + rigth]
    found = faults(with_cases(an_exercise(), Case(args=(X, Y)), misconceptions=spoilt))
    assert "wrong_5 never runs: name 'rigth' is not defined" in found


def test_an_edge_case_may_be_degenerate():
    edge = Case(args=(X[:, :1], Y), degenerate_because="one column on purpose")
    assert faults(with_cases(an_exercise(), Case(args=(X, Y)), edge, misconceptions=WRONG)) == ""


def test_a_misconception_that_no_case_shows_is_a_fault():
    found = faults(with_cases(an_exercise(), Case(args=(X, Y)), misconceptions=[*WRONG, double]))
    assert "no case tells wrong_5 from the reference" in found


def test_two_misconceptions_that_no_case_tells_apart_are_a_fault():
    same = [*WRONG, lambda x, y: x.clone() + y.sum()]
    assert "no case tells wrong_0 from wrong_5" in faults(
        with_cases(an_exercise(), Case(args=(X, Y)), misconceptions=same)
    )


def test_few_misconceptions_hints_and_a_stub_that_runs_are_faults():
    found = faults(
        with_cases(
            an_exercise(hints=("One.",), stub="def double(x, y):\n    return x\n", read_next=""),
            Case(args=(X, Y)),
            misconceptions=WRONG[:4],
        )
    )
    for fault in (
        "4 misconceptions, at least 5",
        "hints, two to four are wanted",
        "the stub is failed",
        "no section to look at",
    ):
        assert fault in found


def gradients_hold(solution, **options) -> bool | None:
    """What the report says of the gradients of a solution that doubles rows which sum to one."""
    exercise = with_cases(
        an_exercise(single_sign_args=("x",), **options),
        Case(args=(torch.tensor([[0.5, 0.25, 0.25], [0.1, 0.2, 0.7]]), Y)),
    )
    sheet = sheet_of(exercise, 0)
    verdict = judge(exercise, sheet.trials, sheet.run(solution), allow_twins=True)
    return next(line.holds for line in verdict.lines if line.message.startswith("Gradients"))


def test_where_rows_sum_to_one_a_gradient_may_differ_by_one_number_per_row_and_by_nothing_else():
    def divided(x, y):
        return 2 * x / x.sum(-1, keepdim=True) + y.sum()

    def detached(x, y):
        return 2 * x.detach() + y.sum()

    def half_detached(x, y):
        return x.detach() + x + y.sum()

    assert gradients_hold(double, sum_to_one=("x",))
    assert gradients_hold(divided) is False
    assert gradients_hold(divided, sum_to_one=("x",))
    assert gradients_hold(detached, sum_to_one=("x",)) is False
    assert gradients_hold(half_detached, sum_to_one=("x",)) is False


def test_points_for_nothing_are_a_fault():
    zero = Case(args=(torch.tensor([[1.0, -2, 3], [-1, 2, 4]]) * 0, Y - Y), degenerate_because="all zero")
    exercise = with_cases(an_exercise(), zero)
    assert "a solution that returns zeros gets points" in faults(exercise)
    assert set(gifts(sheet_of(exercise, 0))) == {"zeros", "ones", "its first argument"}


def test_a_reference_that_breaks_its_own_rules_is_a_fault():
    def changing(x, y):
        x *= 2
        return x + y.sum()

    assert "the reference does not pass" in faults(
        with_cases(
            an_exercise(
                reference=changing, name="changing", stub="def changing(x, y):\n    raise NotImplementedError\n"
            ),
            Case(args=(X, Y)),
            misconceptions=WRONG,
        )
    )
