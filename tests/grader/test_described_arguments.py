"""Arguments that are no tensors: functions described by data, pairs of tensors, lists; and results of these kinds."""

import os
import re

import pytest
import torch
from toy_exercise import toy

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
from course_kit.exercises import Case, find
from course_kit.exercises._language_model import MOST_CALLS, NextLogProbs

pytestmark = pytest.mark.usefixtures("lent_fork_servers")

BOS, EOS = 0, 1
TABLE = {(): [0.1, 0.2, 0.3, 0.4], (3,): [0.4, 0.3, 0.2, 0.1], (3, 2): [0.05, 0.8, 0.1, 0.05]}
REST = [0.25, 0.25, 0.25, 0.25]
MODEL = NextLogProbs.of(TABLE, REST, BOS, EOS, max_length=3)


# The model


def test_every_sequence_has_a_row_of_its_own_and_an_answer_is_a_copy():
    ask = MODEL.function()
    for prefix, probs in [*TABLE.items(), ((2,), REST), ((2, 3), REST)]:  # 2, 3 is not 3, 2
        for _ in range(2):
            answer = ask([BOS, *prefix])
            assert answer.exp().tolist() == pytest.approx(probs, abs=1e-6)
            answer.fill_(0.0)


def test_with_fewer_rows_the_whole_sequence_still_counts():
    ask = NextLogProbs(torch.randn(61, 5).log_softmax(-1), BOS, EOS, 20).function()
    assert not torch.equal(ask([BOS, 2, 3, 4, 3]), ask([BOS, 3, 3, 4, 3]))
    assert not torch.equal(ask([BOS, 2, 3]), ask([BOS, 3, 2]))
    assert ask([BOS, *[2, 3, 4] * 6]).shape == (5,)


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
        MODEL.function()(tokens)


def test_what_is_asked_for_ever_comes_to_an_end():
    ask = MODEL.function()
    for _ in range(MOST_CALLS):
        ask([BOS])
    with pytest.raises(RuntimeError, match=f"more than {MOST_CALLS} times"):
        ask([BOS])
    assert MODEL.function()([BOS]) is not None  # the next function begins to count anew


def test_the_table_names_bos_and_eos_and_shows_what_a_search_asks_for():
    lines = list(MODEL.shown())
    assert lines[1].split() == ["after", "0", "bos", "1", "eos", "2", "3"]
    assert lines[2].split() == ["[0]", "0.100", "0.200", "0.300", "0.400"]
    assert any(line.split()[:2] == ["[0,", "3]"] for line in lines)
    assert not any("1]" in line or "1," in line for line in lines[2:])  # nothing follows eos


# On the way to a submission


def test_a_model_and_a_pair_of_tensors_arrive_as_they_were_sent():
    pair = (torch.randn(2, 3), torch.randn(4, dtype=torch.float64))
    message, blobs = pack_case(Case(args=(MODEL, BOS, pair), note="secret"), (), False)
    frame = encode(message, blobs)
    assert b"secret" not in frame
    head, _ = lengths(frame[:8])
    model, bos_id, arrived = unpack_case(decode(frame[8 : 8 + head]), frame[8 + head :])[0].args
    assert isinstance(model, NextLogProbs)
    assert torch.equal(model.log_probs, MODEL.log_probs)
    assert (model.bos_id, model.eos_id, model.max_length, bos_id) == (BOS, EOS, 3, BOS)
    assert type(arrived) is tuple
    for mine, sent in zip(arrived, pair, strict=True):
        assert torch.equal(mine, sent)
        assert mine.dtype == sent.dtype


def test_a_submission_cannot_answer_with_a_model():
    message, blobs = pack_observation(Observation(value=torch.zeros(3, 2)))
    assert unpack_observation(message, blobs).value.shape == (3, 2)
    message["value"] = {"model": [message["value"], 0, 1, 3]}
    assert unpack_observation(message, blobs).value is None


def test_a_case_knows_its_size_and_dtype_through_models_and_pairs():
    case = Case(args=(MODEL, BOS, (torch.zeros(2, 3), [torch.zeros(4)])))
    assert case.size == MODEL.log_probs.numel() + 1 + 6 + 4
    assert case.dtype == torch.float32
    exact = case.to(torch.float64)
    assert exact.args[0].log_probs.dtype == exact.args[2][0].dtype == exact.args[2][1][0].dtype == torch.float64


# What is observed of an exercise that takes a tensor and a pair, and returns a tensor and a pair


def grow(x, pair):
    return x * pair[0], (pair[0] + x, pair[1] - x)


def zeroing(x, pair):
    result = grow(x, pair)
    with torch.no_grad():
        pair[1].zero_()
    return result


GROW = toy(
    grow,
    {"x": "n", "pair": "n"},
    Case(args=(torch.tensor([1.0, -2, 3]), (torch.tensor([0.5, 2, -1]), torch.tensor([4.0, -3, 1])))),
    returns=("product", "sums"),
)


def findings_of(solution):
    sheet = sheet_of(GROW, 0)
    verdict = judge(GROW, sheet.trials, sheet.run(solution), allow_twins=True)
    return [(f.facet, f.where, f.text) for found in verdict.findings.values() for f in found]


def test_a_right_solution_with_pairs_has_no_findings():
    assert findings_of(grow) == []
    assert findings_of(lambda x, pair: [x * pair[0], [pair[0] + x, pair[1] - x]]) == []  # a list serves as well


@pytest.mark.parametrize(
    ("solution", "facet", "where", "text"),
    [
        (lambda x, pair: (x * pair[0], (pair[0] + x, pair[1] + x)), "value", "sums[1]", "expected "),
        (
            lambda x, pair: (x * pair[0], (pair[0] + x, (pair[1] - x)[:2])),
            *("shape", "sums[1]", "expected shape (3,), got (2,)"),
        ),
        (
            lambda x, pair: (x * pair[0], torch.stack(grow(x, pair)[1])),
            *("structure", "sums", "expected 2 values, got a float32 tensor of shape (2, 3)"),
        ),
        (
            lambda x, pair: (x * pair[0], (pair[0] + x,)),
            *("structure", "sums", "expected 2 values, got a tuple of 1 values"),
        ),
        (
            lambda x, pair: grow(x, (pair[0], pair[1].detach())),
            *("gradient", "gradient of pair[1]", "no gradient reaches pair[1]"),
        ),
        (
            lambda x, pair: (grow(x, pair)[0], tuple(t.detach() for t in grow(x, pair)[1])),
            *("gradient", "gradient of x", "the gradient of x is "),
        ),
        (zeroing, "manners", "pair", "the call changed pair"),
    ],
)
def test_what_is_wrong_with_a_pair_is_named(solution, facet, where, text):
    found = findings_of(solution)[0]
    assert found[:2] == (facet, where)
    assert found[2].startswith(text)


def test_leaves_of_a_result():
    seen = observe(grow, GROW, Case(args=(torch.ones(2), (torch.ones(2), torch.zeros(2)))), watch=False)
    assert [leaf.tolist() for leaf in leaves(seen.value)] == [[1.0, 1.0], [2.0, 2.0], [-1.0, -1.0]]
    assert leaves(5) == (5,)


@pytest.mark.parametrize(
    ("form", "got"),
    [
        (lambda found: tuple(found), "(2, 3)"),
        (lambda found: [*found, 9], "[2, 3, 9]"),
        (lambda found: [float(token) for token in found], "[2.0, 3.0]"),
        (lambda found: [token == 2 for token in found], "[True, False]"),
        (lambda found: torch.tensor(found, dtype=torch.long), "a int64 tensor of shape (2,)"),
        (lambda found: [torch.tensor(token) for token in found], "[a int64 tensor of shape (), "),
        (lambda found: " ".join(map(str, found)), "'2 3'"),
        (lambda found: None, "None (is there a return?)"),
    ],
)
def test_a_list_is_compared_as_a_whole_and_by_type(form, got):
    exercise = find("greedy_decode")
    sheet = sheet_of(exercise, 0)
    verdict = judge(exercise, sheet.trials, sheet.run(lambda *args: form(exercise.reference(*args))), allow_twins=True)
    assert verdict.findings[0][0].text.startswith(f"expected [2, 3], got {got}")


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
    assert re.search(r"cache\[1\]\[\d, \d\]: expected", capsys.readouterr().out)


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
    wanted = {"greedy_decode": "passed", "cached_attention": "passed", "beam_search": "failed", "corpus_bleu": "failed"}
    limits = Limits(seconds=2.0, load_seconds=20.0, total_seconds=60.0, memory_mb=600)
    assignment = Assignment(tasks=tuple(AssignedExercise(name, 1.0) for name in wanted), seed=5, limits=limits)
    with Grader(assignment) as grader:
        tasks = {task.name: task for task in grader.grade(read_submission("student", [path])).tasks}
    assert {name: task.status for name, task in tasks.items()} == wanted
    assert tasks["beam_search"].diagnosis["key"] == "greedy"
    assert "probabilities of the next token" in tasks["beam_search"].text
    assert "changed hypotheses" in tasks["corpus_bleu"].text
