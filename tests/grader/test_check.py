"""What a learner sees: check, hint, solution, progress."""

import json
import subprocess
import sys
from functools import partial
from types import SimpleNamespace

import pytest
import torch

import course_lib
from course_kit import check, hint, progress, solution, yours
from course_kit import nn as full
from course_kit.checker import notebook
from course_kit.checker import progress_file as progress_files
from course_kit.checker.report.html_report import html_of
from course_kit.exercises import all_exercises, find


def unscaled(query, key, value, mask=None):
    scores = query @ key.transpose(-2, -1)
    if mask is not None:
        scores = scores.masked_fill(~mask, float("-inf"))
    weights = scores.softmax(dim=-1)
    return weights @ value, weights


def flops(len_q, len_k, d_k, d_v):
    return 2 * len_q * len_k * (d_k + d_v)


def said(capsys, solution, name=None) -> str:
    check(solution, name)
    return capsys.readouterr().out


def said_of_unscaled(capsys) -> str:
    return said(capsys, unscaled, "scaled_dot_product_attention")


def test_a_mistake_is_named_and_shown_in_the_smallest_case(capsys):
    text = said_of_unscaled(capsys)
    assert "self-check, no grade" in text
    assert text.count("Diagnosis:") == 1
    assert "What keeps their spread the same when the vectors get longer?" in text
    smallest = text[text.index("Smallest failing case") :]
    assert "(1, d_k" not in smallest
    assert "expected" in smallest
    assert "Look next: chapter `scaled_dot_product`, “Why divide by the root of d”" in text
    assert all(prop.message in text for prop in find("scaled_dot_product_attention").properties)
    assert "  ✓ The result has the right dtype" in text
    assert "  ✗ A masked key gets weight zero" in text


def test_html_has_a_heat_map_and_text_for_screen_readers():
    report = notebook.self_check(find("scaled_dot_product_attention"), unscaled)
    markup = html_of(report, notebook.HEADING)
    assert markup.count("<table") == 2
    assert "outline" in markup
    assert 'aria-label="does not hold"' in markup
    assert "<script" not in markup


def test_a_right_solution_is_told_so_under_any_name(capsys):
    text = said(capsys, flops, "attention_flops")
    assert text.startswith("attention_flops: self-check")
    assert "All of it holds." in text
    assert "✗" not in text


def test_a_page_gets_your_own_solution_once_it_passes_and_the_courses_until_then(capsys):
    def causal_mask(length):
        return torch.ones(length, length, dtype=torch.bool).tril()

    assert yours(causal_mask) is causal_mask
    assert capsys.readouterr().out == "causal_mask: your own\n"

    def wrong(length):
        return torch.ones(length, length, dtype=torch.bool).triu()

    wrong.__name__ = "causal_mask"
    assert yours(wrong) is find("causal_mask").reference
    assert capsys.readouterr().out == "causal_mask: the course's own, until yours passes its check\n"
    with pytest.raises(TypeError, match="without calling it"):
        yours(causal_mask(3))


def test_not_attempted_is_no_error_and_not_counted(capsys):
    def softmax(scores, dim=-1):
        raise NotImplementedError

    text = said(capsys, softmax)
    assert "Not attempted yet" in text
    assert 'hint("softmax")' in text
    progress()
    assert "not begun" in capsys.readouterr().out


def test_code_to_repair_is_not_attempted_while_its_line_is_there(capsys):
    def fix_head_split(x, num_heads):
        raise NotImplementedError  # delete this line once you have decided

    text = said(capsys, fix_head_split)
    assert "Delete the line with `raise NotImplementedError` once you have repaired the code" in text
    assert "in place of" not in text
    assert 'hint("fix_head_split")' in text


def causal_mask(length):  # PyTorch raises NotImplementedError for `&`, as a stub does
    return torch.ones(length, length).tril() & torch.ones(length, length, dtype=torch.bool)


def softmax_backward(weights, grad_weights):
    return (torch.diag(weights) - torch.outer(weights, weights)) @ grad_weights


def attend(scores, value):
    return scores.softmax(-1) @ value.transpose(-2, -1), scores.softmax(-1)


def layer_norm(x, gain, bias, eps=1e-5):
    centred = x - x.mean(-1, keepdim=True)
    return centred / nonsense * gain + bias


def softmax(scores, dim=-1):
    return torch.softmax(scores, dim)


@pytest.mark.parametrize(
    ("solution", "told"),
    [
        (causal_mask, ["✗ "]),
        (softmax_backward, ["your line", "@ grad_weights"]),
        (attend, ["len_"]),
        (layer_norm, ["return centred / nonsense * gain + bias", "`nonsense` has no value here"]),
        (softmax, ["Not counted as your own work: the solution calls torch's softmax"]),
    ],
)
def test_what_is_wrong_is_said_at_the_learners_line_without_ours(solution, told, capsys):
    text = said(capsys, solution)
    assert all(words in text for words in told)
    for never in ("Not attempted", "All of it holds", "Traceback", "observing"):
        assert never not in text


@pytest.mark.parametrize("name", ["softmax", "MultiHeadAttention"])
def test_the_packages_own_reference_is_not_counted(capsys, name):
    assert "Not counted" in said(capsys, getattr(course_lib, name))


def test_prints_of_a_solution_do_not_hide_the_report(capsys):
    def attention_flops(*lengths):
        for number in range(20):
            print("here", number)
        return flops(*lengths)

    text = said(capsys, attention_flops)
    assert "here 0" in text
    assert len(text.splitlines()) < 20
    assert "more lines printed" in text


def test_a_check_leaves_the_learners_random_numbers_alone(capsys):
    torch.manual_seed(1)
    expected = torch.rand(3)
    torch.manual_seed(1)
    check(full.FeedForward)
    assert torch.equal(torch.rand(3), expected)


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        (("softmax",), TypeError, "without quotes"),
        ((torch.zeros(2),), TypeError, "not check\\(softmax\\(x\\)\\)"),
        ((full.FeedForward(4, 8),), TypeError, "leave out the parentheses"),
        ((SimpleNamespace,), KeyError, "expected the name"),
        ((flops, "EncoderLayer"), TypeError, "expected a class for EncoderLayer, got a function"),
        ((partial(flops),), KeyError, "got a function or class called flops"),
    ],
)
def test_misuse_is_answered_with_what_to_write(given, error, message):
    with pytest.raises(error, match=message):
        check(*given)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("my_softmax", 'my_softmax; rename it to softmax, or pass the exercise\'s name: check(my_softmax, "softmax")'),
        ("<lambda>", '<lambda>; pass the exercise\'s name: check(f, "softmax")'),
        ("qqq", 'qqq; pass the exercise\'s name: check(qqq, "softmax")'),
    ],
)
def test_a_function_of_another_name_is_answered_with_both_names(name, message):
    def solution(scores, dim=-1):
        return scores

    solution.__name__ = name
    with pytest.raises(KeyError) as raised:
        check(solution)
    assert f"got a function or class called {message}" in raised.value.args[0]


def test_hints_come_one_at_a_time_and_stay_at_the_last(capsys):
    hints = find("attention_flops").hints
    for number, text in enumerate([*hints, hints[-1]], 1):
        hint("attention_flops")
        out = capsys.readouterr().out
        assert text in out
        assert f"Hint {min(number, len(hints))} of {len(hints)}" in out
    hint("attention_flops", 1)
    assert hints[0] in capsys.readouterr().out
    with pytest.raises(ValueError, match="has hints 1 to"):
        hint("attention_flops", 9)


def test_solution_shows_the_reference(capsys):
    solution("causal_mask")
    assert "tril()" in capsys.readouterr().out


# Progress


def file():
    return progress_files.progress_file()[0]


def stored() -> dict:
    return json.loads(file().read_text())["exercises"]


def test_progress_keeps_the_best_and_a_pass_stays_a_pass(capsys):
    def unmasked(query, key, value, mask=None):
        weights = (query @ key.transpose(-2, -1) / query.shape[-1] ** 0.5).softmax(dim=-1)
        return weights @ value, weights

    check(flops, "attention_flops")
    check(lambda *lengths: 0, "attention_flops")
    check(unmasked, "scaled_dot_product_attention")
    entries = stored()
    assert entries["attention_flops"]["status"] == "passed"
    assert entries["attention_flops"]["best"] == 1.0
    assert entries["attention_flops"]["checks"] == 2
    assert 0 < entries["scaled_dot_product_attention"]["best"] < 1
    capsys.readouterr()
    progress()
    table = capsys.readouterr().out
    assert f"1 of {len(all_exercises())} exercises passed" in table
    for exercise in all_exercises().values():
        assert exercise.name in table


@pytest.mark.parametrize("damage", ["{", "[]", '{"exercises": 3}', "", "\x00\x01", '{"exercises": {"softmax": 1}}'])
def test_a_damaged_file_is_set_aside_and_not_lost(capsys, damage):
    for number in (1, 2):
        file().write_text(damage)
        assert "was damaged. It has been kept as" in said_of_unscaled(capsys)
        assert file().with_name(f"progress.damaged-{number}.json").read_text() == damage
        assert stored()["scaled_dot_product_attention"]["checks"] == 1


def test_strange_entries_do_no_harm(capsys):
    file().write_text(json.dumps({"exercises": {"attend": {"checks": "x", "best": None, "hints": []}, "gone": {}}}))
    hint("attend")
    check(lambda s, v: (s, v), "attend")
    progress()
    assert "attend" in capsys.readouterr().out


def test_a_pass_keeps_its_date_and_the_best_score_at_later_checks(tmp_path):
    kept = progress_files.Progress(tmp_path / "progress.json")
    kept.record("softmax", "failed", 0.25)
    assert kept.read() == {"softmax": {"status": "failed", "best": 0.25, "checks": 1}}
    kept.record("softmax", "passed", 1.0)
    assert kept.read()["softmax"].keys() == {"status", "best", "checks", "passed"}
    entry = {"status": "passed", "best": 1.0, "checks": 2, "passed": "2001-02-03"}
    kept.path.write_text(json.dumps({"version": 1, "exercises": {"softmax": entry}}))
    kept.record("softmax", "passed", 1.0)
    kept.record("softmax", "failed", 0.5)
    assert kept.read() == {"softmax": entry | {"checks": 4}}


def test_a_file_that_cannot_be_written_stops_no_check(capsys, monkeypatch, tmp_path):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("COURSE_LIB_PROGRESS", str(tmp_path / "file" / "progress.json"))
    text = said_of_unscaled(capsys)
    assert "Diagnosis" in text
    assert "cannot be" in text
    assert "checks still work" in text


def test_an_interrupted_write_leaves_the_old_file(monkeypatch, tmp_path):
    kept = progress_files.Progress(tmp_path / "progress.json")
    kept.record("attend", "failed", 0.5)
    before = kept.path.read_text()

    def full(*args):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(progress_files.os, "replace", full)
    kept.record("attend", "passed", 1.0)
    assert kept.path.read_text() == before
    assert "No space left" in kept.warning
    assert [p.name for p in tmp_path.iterdir()] == ["progress.json"]


def test_in_colab_the_drive_keeps_it_and_without_one_it_says_so(monkeypatch, tmp_path):
    monkeypatch.delenv("COURSE_LIB_PROGRESS")
    monkeypatch.setitem(sys.modules, "google.colab", SimpleNamespace())
    monkeypatch.setattr(progress_files, "DRIVE", tmp_path / "none")
    path, note = progress_files.progress_file()
    assert "mount your drive" in note
    monkeypatch.setattr(progress_files, "DRIVE", tmp_path)
    path, note = progress_files.progress_file()
    assert path == tmp_path / "course_lib" / "progress.json"
    assert "survives a restart" in note


def test_a_check_needs_nothing_but_the_runtime_requirements():
    code = (
        "import sys, course_kit\n"
        "assert 'course_kit.checker' not in sys.modules\n"
        "course_kit.check(lambda a, b, c, d: 0, 'attention_flops')\n"
        "heavy = {'rich', 'yaml', 'distributed', 'IPython', 'matplotlib', 'pandas', 'nbformat'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, timeout=120)


def test_in_a_notebook_it_is_html(monkeypatch):
    shown = []
    shell = SimpleNamespace(kernel=object())
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    monkeypatch.setitem(sys.modules, "IPython.display", SimpleNamespace(display=shown.append))
    check(unscaled, "scaled_dot_product_attention")
    (report,) = shown
    assert "Diagnosis" in report._repr_html_()
    assert "Diagnosis" in repr(report)
