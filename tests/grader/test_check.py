"""What a learner sees: check, hint, solution, progress."""

import json
import re
import subprocess
import sys
from types import SimpleNamespace

import pytest
import torch

import course_lib
from course_kit import check, hint, progress, solution
from course_kit import nn as full
from course_kit.checker import notebook
from course_kit.checker import progress_file as progress_files
from course_kit.checker.report.html_report import html_of
from course_kit.checker.report.plain_report import text_of
from course_kit.exercises import all_exercises, find


def scaled_dot_product_attention(query, key, value, mask=None):
    scores = query @ key.transpose(-2, -1)
    if mask is not None:
        scores = scores.masked_fill(~mask, float("-inf"))
    weights = scores.softmax(dim=-1)
    return weights @ value, weights


def said(capsys, *arguments) -> str:
    check(*arguments)
    return capsys.readouterr().out


def test_a_mistake_is_named_and_shown_in_the_smallest_case(capsys):
    text = said(capsys, scaled_dot_product_attention)
    assert "self-check, no grade" in text
    assert text.count("Diagnosis:") == 1
    assert "What keeps their spread the same when the vectors get longer?" in text
    smallest = text[text.index("Smallest failing case") :]
    assert "(1, d_k" not in smallest
    assert "expected" in smallest
    assert "Look next: chapter `scaled_dot_product`, “Why divide by the root of d”" in text


def test_each_property_has_a_line(capsys):
    text = said(capsys, scaled_dot_product_attention)
    exercise = find("scaled_dot_product_attention")
    for prop in exercise.properties:
        assert prop.message in text
    assert "  ✓ The result has the right dtype" in text
    assert "  ✗ A masked key gets weight zero" in text


def test_html_has_a_heat_map_and_text_for_screen_readers():
    report = notebook.self_check(find("scaled_dot_product_attention"), scaled_dot_product_attention)
    markup = html_of(report, notebook.HEADING)
    assert markup.count("<table") == 2
    assert "outline" in markup
    assert 'aria-label="does not hold"' in markup
    assert "<script" not in markup


def test_a_right_solution_is_told_so(capsys):
    def attention_flops(len_q, len_k, d_k, d_v):
        return 2 * len_q * len_k * d_k + 2 * len_q * len_k * d_v

    text = said(capsys, attention_flops)
    assert "All of it holds." in text
    assert "✗" not in text


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
        return x.reshape(*x.shape[:-2], num_heads, x.shape[-2], -1)

    text = said(capsys, fix_head_split)
    assert "Delete the line with `raise NotImplementedError` once you have repaired the code" in text
    assert "or once you are sure that nothing in it needs repair" in text
    assert "in place of" not in text
    assert 'hint("fix_head_split")' in text


def test_torchs_own_not_implemented_is_an_attempt(capsys):
    def causal_mask(length):
        return torch.ones(length, length).tril() & torch.ones(length, length, dtype=torch.bool)

    text = said(capsys, causal_mask)
    assert "Not attempted" not in text
    assert "✗" in text


def test_an_exception_is_shown_at_the_learners_line_without_ours(capsys):
    def softmax_backward(weights, grad_weights):
        jacobian = torch.diag(weights) - torch.outer(weights, weights)
        return jacobian @ grad_weights

    text = said(capsys, softmax_backward)
    assert "Count axes" in text or "one row" in text or "batch" in text
    assert "Traceback" not in text
    assert "observing" not in text


def test_a_shape_mismatch_names_the_axes(capsys):
    def attend(scores, value):
        return scores.softmax(-1) @ value.transpose(-2, -1), scores.softmax(-1)

    report = notebook.self_check(find("attend"), attend)
    assert "len_k" in text_of(report, "") or "len_q" in text_of(report, "")


def test_the_learners_own_line_is_quoted(capsys):
    def layer_norm(x, gain, bias, eps=1e-5):
        centred = x - x.mean(-1, keepdim=True)
        return centred / nonsense * gain + bias

    text = said(capsys, layer_norm)
    assert "return centred / nonsense * gain + bias" in text
    assert "`nonsense` has no value here" in text


def test_a_forbidden_function_is_said_and_not_counted(capsys):
    def softmax(scores, dim=-1):
        return torch.softmax(scores, dim)

    text = said(capsys, softmax)
    assert "Not counted as your own work: the solution calls torch's softmax" in text
    assert "All of it holds" not in text


@pytest.mark.parametrize("name", ["softmax", "MultiHeadAttention", "EncoderLayer"])
def test_the_packages_own_reference_is_not_counted(capsys, name):
    assert "Not counted" in said(capsys, getattr(course_lib, name))


def test_prints_of_a_solution_do_not_hide_the_report(capsys):
    def attention_flops(len_q, len_k, d_k, d_v):
        for number in range(20):
            print("here", number)
        return 2 * len_q * len_k * (d_k + d_v)

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
        ("softmax", TypeError, "without quotes"),
        (torch.zeros(2), TypeError, "not check\\(softmax\\(x\\)\\)"),
        (full.FeedForward(4, 8), TypeError, "leave out the parentheses"),
        (lambda scores: scores, KeyError, "expected the name of an exercise"),
        (SimpleNamespace, KeyError, "expected the name"),
    ],
)
def test_misuse_is_answered_with_what_to_write(given, error, message):
    with pytest.raises(error, match=message):
        check(given)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("my_softmax", 'called my_softmax; rename it to softmax, or pass .*: check\\(my_softmax, "softmax"\\)'),
        ("<lambda>", 'pass the exercise\'s name: check\\(f, "softmax"\\)'),
        ("qqq", 'pass the exercise\'s name: check\\(qqq, "softmax"\\)'),
    ],
)
def test_a_function_of_another_name_is_answered_with_both_names(name, message):
    def solution(scores, dim=-1):
        return scores

    solution.__name__ = name
    with pytest.raises(KeyError) as raised:
        check(solution)
    assert re.search(message, raised.value.args[0])
    assert ("rename" in raised.value.args[0]) == (name == "my_softmax")


def test_a_function_for_a_class_is_answered():
    def encoder_layer(x, mask=None):
        return x

    with pytest.raises(TypeError, match="expected a class for EncoderLayer, got a function"):
        check(encoder_layer, "EncoderLayer")


def test_a_solution_under_another_name_can_be_checked(capsys):
    assert "attention_flops: self-check" in said(capsys, lambda a, b, c, d: 2 * a * b * (c + d), "attention_flops")


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


def stored() -> dict:
    return json.loads(progress_files.progress_file()[0].read_text())["exercises"]


def unmasked(query, key, value, mask=None):
    weights = (query @ key.transpose(-2, -1) / query.shape[-1] ** 0.5).softmax(dim=-1)
    return weights @ value, weights


def test_progress_keeps_the_best_and_a_pass_stays_a_pass(capsys):
    check(lambda a, b, c, d: 2 * a * b * (c + d), "attention_flops")
    check(lambda a, b, c, d: 0, "attention_flops")
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
    path = progress_files.progress_file()[0]
    path.write_text(damage)
    text = said(capsys, scaled_dot_product_attention)
    assert "was damaged. It has been kept as" in text
    assert path.with_name("progress.damaged-1.json").read_text() == damage
    assert stored()["scaled_dot_product_attention"]["checks"] == 1
    path.write_text(damage)
    said(capsys, scaled_dot_product_attention)
    assert path.with_name("progress.damaged-2.json").exists()


def test_strange_entries_do_no_harm(capsys):
    path = progress_files.progress_file()[0]
    path.write_text(json.dumps({"exercises": {"attend": {"checks": "x", "best": None, "hints": []}, "gone": {}}}))
    hint("attend")
    check(lambda s, v: (s, v), "attend")
    progress()
    assert "attend" in capsys.readouterr().out


def test_a_file_that_cannot_be_written_stops_no_check(capsys, monkeypatch, tmp_path):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("COURSE_LIB_PROGRESS", str(tmp_path / "file" / "progress.json"))
    text = said(capsys, scaled_dot_product_attention)
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
    check(scaled_dot_product_attention)
    (report,) = shown
    assert "Diagnosis" in report._repr_html_()
    assert "Diagnosis" in repr(report)
