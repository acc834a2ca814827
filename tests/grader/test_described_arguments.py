"""Arguments that are no tensors: functions described by data, pairs of tensors, lists; and results of these kinds."""

import os
import re

import pytest
import torch

from course_grade.grading.assignment import AssignedExercise, Assignment
from course_grade.grading.grade import Grader
from course_grade.sandbox.walls import Limits
from course_grade.submission.submissions import read_submission
from course_kit import check
from course_kit.checker.observing import Observation, leaves, observe
from course_kit.checker.protocol import (
    decode,
    encode,
    lengths,
    pack_case,
    pack_observation,
    unpack_case,
    unpack_observation,
)
from course_kit.checker.verdict.judge import judge
from course_kit.checker.verdict.sheet import sheet_of
from course_kit.exercises import Case, Exercise, find
from course_kit.exercises._language_model import MOST_CALLS, NextLogProbs

pytestmark = pytest.mark.usefixtures("lent_fork_servers")

BOS, EOS = 0, 1
TABLE = {(): [0.1, 0.2, 0.3, 0.4], (3,): [0.4, 0.3, 0.2, 0.1], (3, 2): [0.05, 0.8, 0.1, 0.05]}
REST = [0.25, 0.25, 0.25, 0.25]


def a_model() -> NextLogProbs:
    return NextLogProbs.of(TABLE, REST, BOS, EOS, max_length=3)


# The model


def test_every_sequence_has_a_row_of_its_own():
    ask = a_model().function()
    for prefix, probs in TABLE.items():
        assert ask([BOS, *prefix]).exp().tolist() == pytest.approx(probs, abs=1e-6)
    assert ask([BOS, 2]).exp().tolist() == pytest.approx(REST, abs=1e-6)
    assert ask([BOS, 2, 3]).exp().tolist() == pytest.approx(REST, abs=1e-6)  # not that of 3, 2


def test_with_fewer_rows_the_whole_sequence_still_counts():
    model = NextLogProbs(torch.randn(61, 5).log_softmax(-1), BOS, EOS, 20)
    ask = model.function()
    assert not torch.equal(ask([BOS, 2, 3, 4, 3]), ask([BOS, 3, 3, 4, 3]))
    assert not torch.equal(ask([BOS, 2, 3]), ask([BOS, 3, 2]))
    assert ask([BOS, *[2, 3, 4] * 6]).shape == (5,)


def test_an_answer_is_a_copy():
    ask = a_model().function()
    ask([BOS]).fill_(0.0)
    assert ask([BOS]).exp().tolist() == pytest.approx(TABLE[()], abs=1e-6)


@pytest.mark.parametrize(
    ("tokens", "error", "message"),
    [
        (torch.tensor([BOS]), TypeError, "expected a list of ints, got Tensor"),
        (BOS, TypeError, "expected a list of ints, got int"),
        ([BOS, torch.tensor(2)], TypeError, "got one with an item of type Tensor"),
        ([BOS, 2.0], TypeError, "got one with an item of type float"),
        ([], ValueError, r"next_log_probs\(\[\]\): expected bos first, which is 0 here"),
        ([3, 2], ValueError, "expected bos first"),
        ([BOS, 4], ValueError, "expected ids from 0 to 3"),
        ([BOS, -1], ValueError, "expected ids from 0 to 3"),
        ([BOS, 3, EOS], ValueError, "this one has ended with eos, 1"),
        ([BOS, EOS, 3], ValueError, "this one has ended with eos, 1"),
        ([BOS, 2, 2, 2, 2], ValueError, "expected at most 3 tokens after bos, the max_length"),
    ],
    ids=str,
)
def test_a_wrong_question_is_refused_in_clear_words(tokens, error, message):
    with pytest.raises(error, match=message):
        a_model().function()(tokens)


def test_what_is_asked_for_ever_comes_to_an_end():
    ask = a_model().function()
    for _ in range(MOST_CALLS):
        ask([BOS])
    with pytest.raises(RuntimeError, match=f"more than {MOST_CALLS} times"):
        ask([BOS])
    assert a_model().function()([BOS]) is not None  # the next function begins to count anew


def test_the_table_names_bos_and_eos_and_shows_what_a_search_asks_for():
    lines = list(a_model().shown())
    assert lines[1].split() == ["after", "0", "bos", "1", "eos", "2", "3"]
    assert lines[2].split() == ["[0]", "0.100", "0.200", "0.300", "0.400"]
    assert any(line.split()[:2] == ["[0,", "3]"] for line in lines)
    assert not any("1]" in line or "1," in line for line in lines[2:])  # nothing follows eos


# On the way to a submission


def arrived(*args) -> Case:
    message, blobs = pack_case(Case(args=args, note="secret"), (), False)
    frame = encode(message, blobs)
    head, _ = lengths(frame[:8])
    assert b"secret" not in frame
    return unpack_case(decode(frame[8 : 8 + head]), frame[8 + head :])[0]


def test_a_model_arrives_as_it_was_sent():
    sent = a_model()
    model, bos_id = arrived(sent, BOS).args
    assert isinstance(model, NextLogProbs)
    assert torch.equal(model.log_probs, sent.log_probs)
    assert (model.bos_id, model.eos_id, model.max_length) == (BOS, EOS, 3)
    assert bos_id == BOS


def test_a_pair_of_tensors_arrives_as_a_tuple():
    pair = (torch.randn(2, 3), torch.randn(4, dtype=torch.float64))
    ((keys, values),) = arrived(pair).args
    assert type(arrived(pair).args[0]) is tuple
    assert torch.equal(keys, pair[0])
    assert torch.equal(values, pair[1])
    assert values.dtype == torch.float64


def test_a_submission_cannot_answer_with_a_model():
    message, blobs = pack_observation(Observation(value=torch.zeros(3, 2)))
    assert unpack_observation(message, blobs).value.shape == (3, 2)
    message["value"] = {"model": [message["value"], 0, 1, 3]}
    assert unpack_observation(message, blobs).value is None


def test_a_case_knows_its_size_and_dtype_through_models_and_pairs():
    case = Case(args=(a_model(), BOS, (torch.zeros(2, 3), [torch.zeros(4)])))
    assert case.size == a_model().log_probs.numel() + 1 + 6 + 4
    assert case.dtype == torch.float32
    exact = case.to(torch.float64)
    assert exact.args[0].log_probs.dtype == exact.args[2][0].dtype == exact.args[2][1][0].dtype == torch.float64


# What is observed


def pair_exercise() -> Exercise:
    """Takes a tensor and a pair, returns a tensor and a pair."""
    return Exercise(
        name="grow",
        title="Grow",
        statement="x times the first, and the pair with x added.",
        difficulty=1,
        minutes=1,
        stub="def grow(x, pair):\n    raise NotImplementedError\n",
        hints=("One.", "Two."),
        reference=lambda x, pair: (x * pair[0], (pair[0] + x, pair[1] - x)),
        shapes={"x": "n", "pair": "n"},
        returns=("product", "sums"),
    )


@pytest.fixture
def judged():
    exercise = pair_exercise()
    exercise.reference = grow

    @exercise.holds("It grows.")
    def _(draw):
        yield Case(args=(draw.normal(3), (draw.normal(3), draw.normal(3))))

    def run(solution):
        sheet = sheet_of(exercise, 0)
        verdict = judge(exercise, sheet.trials, sheet.run(solution), allow_twins=True)
        return {f.facet: f for found in verdict.findings.values() for f in found}

    return run


def grow(x, pair):
    return x * pair[0], (pair[0] + x, pair[1] - x)


def test_a_right_solution_with_pairs_has_no_findings(judged):
    assert judged(grow) == {}
    assert judged(lambda x, pair: [x * pair[0], [pair[0] + x, pair[1] - x]]) == {}  # a list serves as well


def test_a_wrong_item_of_a_pair_is_named(judged):
    found = judged(lambda x, pair: (x * pair[0], (pair[0] + x, pair[1] + x)))
    assert found["value"].where == "sums[1]"
    found = judged(lambda x, pair: (x * pair[0], (pair[0] + x, (pair[1] - x)[:2])))
    assert (found["shape"].where, found["shape"].text) == ("sums[1]", "expected shape (3,), got (2,)")
    found = judged(lambda x, pair: (x * pair[0], torch.stack(grow(x, pair)[1])))
    assert found["structure"].text == "expected 2 values, got a float32 tensor of shape (2, 3)"
    found = judged(lambda x, pair: (x * pair[0], (pair[0] + x,)))
    assert found["structure"].text == "expected 2 values, got a tuple of 1 values"


def test_gradients_are_followed_through_pairs(judged):
    found = judged(lambda x, pair: grow(x, (pair[0], pair[1].detach())))
    assert found["gradient"].text == "no gradient reaches pair[1]"
    found = judged(lambda x, pair: (grow(x, pair)[0], tuple(t.detach() for t in grow(x, pair)[1])))
    assert "pair[1]" in found["gradient"].text or "the gradient of x" in found["gradient"].text


def test_a_pair_that_is_written_into_is_noticed(judged):
    def solution(x, pair):
        result = grow(x, pair)
        with torch.no_grad():
            pair[1].zero_()
        return result

    assert judged(solution)["manners"].text == "the call changed pair"


def test_leaves_of_a_result():
    seen = observe(grow, pair_exercise(), Case(args=(torch.ones(2), (torch.ones(2), torch.zeros(2)))), watch=False)
    assert [leaf.tolist() for leaf in leaves(seen.value)] == [[1.0, 1.0], [2.0, 2.0], [-1.0, -1.0]]
    assert leaves(5) == (5,)


def ids(result):
    """A greedy decoder with another form of its result."""
    right = find("greedy_decode").reference
    return lambda *args: result(right(*args))


@pytest.mark.parametrize(
    ("form", "text"),
    [
        (lambda found: tuple(found), "expected [2, 3], got (2, 3)"),
        (lambda found: [*found, 9], "expected [2, 3], got [2, 3, 9]"),
        (lambda found: [float(token) for token in found], "expected [2, 3], got [2.0, 3.0]"),
        (lambda found: [token == 2 for token in found], "expected [2, 3], got [True, False]"),
        (lambda found: torch.tensor(found, dtype=torch.long), "expected [2, 3], got a int64 tensor of shape (2,)"),
        (lambda found: [torch.tensor(token) for token in found], "expected [2, 3], got [a int64 tensor of shape (), "),
        (lambda found: " ".join(map(str, found)), "expected [2, 3], got '2 3'"),
        (lambda found: None, "expected [2, 3], got None (is there a return?)"),
    ],
)
def test_a_list_is_compared_as_a_whole_and_by_type(form, text):
    exercise = find("greedy_decode")
    sheet = sheet_of(exercise, 0)
    verdict = judge(exercise, sheet.trials, sheet.run(ids(form)), allow_twins=True)
    assert verdict.findings[0][0].text.startswith(text)


# What is said


def test_the_report_shows_the_model_and_what_was_asked_wrongly(capsys):
    def greedy_decode(next_log_probs, bos_id, eos_id, max_length):
        return [int(next_log_probs([5 + bos_id]).argmax())]

    check(greedy_decode)
    text = capsys.readouterr().out
    assert "probabilities of the next token" in text
    assert "0 bos  1 eos" in text
    assert "expected bos first, which is 0 here" in text
    assert "your line" in text
    assert "The model needs all tokens so far at every call, with bos as the first." in text


def test_a_wrong_item_of_the_cache_is_shown(capsys):
    def cached_attention(query, key, value, cache=None):
        output, (keys, values) = find("cached_attention").reference(query, key, value, cache)
        return output, (keys, values + 1)

    check(cached_attention)
    text = capsys.readouterr().out
    assert re.search(r"cache\[1\]\[\d, \d\]: expected", text)


# In a process of its own


@pytest.mark.skipif(not hasattr(os, "fork"), reason="grading needs fork")
def test_functions_and_pairs_reach_a_submission(tmp_path):
    path = tmp_path / "student.py"
    path.write_text(
        """
import torch
def greedy_decode(next_log_probs, bos_id, eos_id, max_length):
    tokens = [bos_id]
    while len(tokens) <= max_length:
        token = int(next_log_probs(tokens).argmax())
        if token == eos_id:
            break
        tokens.append(token)
    return tokens[1:]

def cached_attention(query, key, value, cache=None):
    if cache is not None:
        key, value = torch.cat((cache[0], key), -2), torch.cat((cache[1], value), -2)
    weights = (query @ key.mT / query.shape[-1] ** 0.5).softmax(-1)
    return weights @ value, (key, value)

def beam_search(next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty=0.0):
    return greedy_decode(next_log_probs, bos_id, eos_id, max_length)

def corpus_bleu(hypotheses, references):
    return hypotheses.clear()
"""
    )
    names = ("greedy_decode", "cached_attention", "beam_search", "corpus_bleu")
    limits = Limits(seconds=2.0, load_seconds=20.0, total_seconds=60.0, memory_mb=600)
    with Grader(
        Assignment(tasks=tuple(AssignedExercise(name, 1.0) for name in names), seed=5, limits=limits)
    ) as grader:
        result = grader.grade(read_submission("student", [path]))
    tasks = {task.name: task for task in result.tasks}
    assert {name: task.status for name, task in tasks.items()} == {
        "greedy_decode": "passed",
        "cached_attention": "passed",
        "beam_search": "failed",
        "corpus_bleu": "failed",
    }
    assert tasks["beam_search"].diagnosis["key"] == "greedy"
    assert "probabilities of the next token" in tasks["beam_search"].text
    assert "changed hypotheses" in tasks["corpus_bleu"].text
