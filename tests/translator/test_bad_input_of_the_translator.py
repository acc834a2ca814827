"""Bad input of the translator, its recipe, its training and its commands: one clear error, before the work."""

from __future__ import annotations

import hashlib
import json
import math

import pytest
import torch

from course_grade.command import main
from course_kit import train_on
from course_kit.data import Vocabulary, built_in_corpus
from course_kit.nn import Transformer, TransformerConfig
from course_kit.translator import Translator
from course_kit.translator.recipe import Recipe
from course_kit.translator.trainer import train
from course_kit.workshop.tasks import reversal

PAIR = ("Ein Hund.", "A dog.")
SIZES = {"vocab_size": 100, "d_model": 8, "num_heads": 2, "num_layers": 1, "d_ff": 8}


@pytest.fixture(scope="module")
def translator():
    vocabulary = Vocabulary.learn(built_in_corpus(num_train=20, num_held_out=5).sentences("train"), 100)
    return Translator(Transformer(TransformerConfig(**SIZES)), vocabulary)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda t: t.translate("ein Hund"),
            TypeError,
            r"list of strings, got the string 'ein Hund'; pass \[sentence\]",
        ),
        (lambda t: t.translate(["ein Hund", None]), TypeError, "sentence 2 must be a string, got NoneType"),
        (lambda t: t.samples("ein Hund"), TypeError, "got the string 'ein Hund'"),
        (lambda t: t.unknown_share(None), TypeError, "must be a string, got NoneType"),
        (lambda t: t.translate(["x"], max_tokens=-1), ValueError, "max_tokens must be at least 1, got -1"),
        (lambda t: t.translate(["x"], max_tokens=2.5), TypeError, "max_tokens must be a whole number, got 2.5"),
        (lambda t: t.translate([], beam_size=0), ValueError, "beam_size must be at least 1, got 0"),
        (lambda t: t.translate(["x"], beam_size=100_000), ValueError, "beam_size must be at most 100, got 100000"),
        (lambda t: t.translate(["x"], length_penalty=1e308), ValueError, "between -10 and 10, got 1e[+]308"),
        (lambda t: t.samples(["x"], seed=2**70), ValueError, "seed must be below 2[*][*]64"),
        (lambda t: t.samples(["x"], top_k=1.5), TypeError, "top_k must be a whole number, got 1.5"),
        (lambda t: t.attention("Ein Hund.", layer=99), ValueError, "layer must be one of the decoder's 1.*got 99"),
        (lambda t: t.attention("Ein Hund.", layer=0.5), TypeError, "layer must be a whole number"),
        (lambda t: t.attention(None), TypeError, "must be a string, got NoneType"),
        (lambda t: t.perplexity([]), ValueError, "at least one pair"),
        (lambda t: t.evaluate([]), ValueError, "at least one pair"),
        (lambda t: t.perplexity([("a", "b", "c")]), TypeError, "pair 1 must be .sentence, translation., two strings"),
        (lambda t: t.evaluate([PAIR, ("a", "b", "c")]), TypeError, "pair 2 must be"),
        (lambda t: t.evaluate(["ab"]), TypeError, "pair 1 must be"),
        (lambda t: t.evaluate([None]), TypeError, "pair 1 must be .*got None"),
        (lambda t: t.perplexity([PAIR], max_tokens=0), ValueError, "max_tokens must be at least 1"),
    ],
)
def test_what_is_not_a_list_of_texts_is_refused(translator, unchecked, call, error, message):
    with pytest.raises(error, match=message):
        call(translator)


def test_a_file_is_not_a_folder(translator, tmp_path):
    (tmp_path / "file").write_text("text")
    with pytest.raises(NotADirectoryError, match="expected the folder of a translator, got the file"):
        Translator.load(tmp_path / "file")
    for place in (tmp_path / "file", tmp_path / "file" / "inside"):
        with pytest.raises(NotADirectoryError, match="where a file is in the way; choose another name"):
            translator.save(place)
    with pytest.raises(NotADirectoryError, match="where a file is in the way"):
        train(reversal(), Recipe(vocab_size=13, d_model=8, num_heads=1), out=tmp_path / "file", show_progress=False)
    assert (tmp_path / "file").read_text() == "text"


def test_a_config_with_half_a_layer_is_refused(translator, unchecked, tmp_path):
    translator.save(tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    config["model"]["num_layers"] = 2.5
    (tmp_path / "config.json").write_text(json.dumps(config))
    with pytest.raises(ValueError, match=r"config.json is no.*num_layers must be a whole number, got 2.5"):
        Translator.load(tmp_path)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("config.json", b"[" * 100_000, "config.json is not that of a translator"),
        ("config.json", b"[]", "config.json is not that of a translator"),
        ("weights.safetensors", b"<html>Not found</html>", "weights.safetensors is not a safetensors file"),
    ],
)
def test_a_folder_of_other_files_is_refused(translator, tmp_path, name, content, message):
    translator.save(tmp_path)
    (tmp_path / name).write_bytes(content)
    if name != "config.json":  # with the checksum of the wrong file, so that only its content tells
        config = json.loads((tmp_path / "config.json").read_text())
        config["sha256"][name] = hashlib.sha256(content).hexdigest()
        (tmp_path / "config.json").write_text(json.dumps(config))
    with pytest.raises(ValueError, match=message):
        Translator.load(tmp_path)


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"epochs": 2.5}, TypeError, "epochs must be a whole number, got 2.5"),
        ({"seed": 2**70}, ValueError, "seed must be below 2[*][*]64"),
        ({"seed": "0"}, TypeError, "seed must be a whole number, got '0'"),
        ({"learning_rate": "fast"}, TypeError, "learning_rate must be a number, got 'fast'"),
        ({"betas": 0.9}, TypeError, "betas must be two numbers, got 0.9"),
        ({"betas": (0.9, None)}, TypeError, "betas must be two numbers"),
    ],
)
def test_a_recipe_of_other_types_is_refused(unchecked, change, error, message):
    with pytest.raises(error, match=message):
        Recipe(**change)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"epochs: 3\nd_ff: 8\nepochs: 5\n", "must give each name once, got epochs more than once"),
        (b"epochs: \xff\n", "must be UTF-8"),
        (b"[" * 3000, "is not YAML: maximum recursion depth exceeded"),
        (b"seed: 2026-13-45\n", "is not YAML: month must be in 1..12"),
        (b"[a, b]: 3\n", r"is not YAML: while constructing a mapping [^\n]*$"),
        (b"<<: 5\n", r"is not YAML: while constructing a mapping [^\n]*$"),
    ],
)
def test_a_recipe_that_cannot_be_read_in_one_way_is_refused(tmp_path, text, message):
    (tmp_path / "r.yaml").write_bytes(text)
    with pytest.raises(ValueError, match=message):
        Recipe.read(tmp_path / "r.yaml")


@pytest.mark.parametrize("stop_after", [0, -1])
def test_a_run_cannot_stop_before_its_first_epoch(stop_after):
    with pytest.raises(ValueError, match=f"stop_after must be at least 1, got {stop_after}; None trains"):
        train(reversal(), Recipe(), stop_after=stop_after)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"seed": 2**70}, ValueError, "seed must be below 2[*][*]64"),
        ({"steps": 2.5}, TypeError, "steps must be a whole number, got 2.5"),
        ({"warmup_steps": -1}, ValueError, "warmup_steps must be at least 0, got -1"),
    ],
)
def test_a_short_training_refuses_what_is_not_a_number_of_steps(unchecked, options, error, message):
    with pytest.raises(error, match=message):
        train_on(torch.nn.Linear(1, 1), reversal(), **options)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("translate --length-penalty 1e308", "--length-penalty: must be a number between -10 and 10, got '1e308'"),
        ("evaluate --length-penalty nan", "--length-penalty: must be a number between -10 and 10, got 'nan'"),
        ("translate --length-penalty x", "--length-penalty: must be a number between -10 and 10, got 'x'"),
        ("translate --beam 100000", "--beam: must be at most 100, got 100000"),
        ("train --out FILE", "--out: must be a folder or a new name, got the file"),
    ],
)
def test_a_command_refuses_a_wrong_argument_before_the_work(tmp_path, capsys, arguments, message):
    (tmp_path / "file").touch()
    with pytest.raises(SystemExit) as stopped:
        main(arguments.replace("FILE", str(tmp_path / "file")).split())
    assert stopped.value.code == 2
    assert message in capsys.readouterr().err


def test_a_closed_standard_input_is_one_line(monkeypatch, capsys):
    monkeypatch.setattr("sys.stdin", None)  # what Python makes of `<&-`
    assert main(["translate"]) == 2
    error = capsys.readouterr().err
    assert error.startswith("course-lib: expected lines on standard input, but it is closed")
    assert error.count("\n") == 1


def test_a_seed_without_end_and_a_name_given_twice_are_one_line(tmp_path, capsys):
    (tmp_path / "r.yaml").write_text("epochs: 3\nepochs: 5\n")
    for options in (["--seed", str(2**70)], ["--config", str(tmp_path / "r.yaml")]):
        assert main(["train", "--data", "built-in", "--out", str(tmp_path / "run"), *options]) == 2
        assert capsys.readouterr().err.count("\n") == 1


def test_an_empty_name_of_a_model_is_not_the_default_one(capsys):
    assert main(["translate", "--model", ""]) == 2
    assert "--model must be the folder of a translator, got ''" in capsys.readouterr().err


@pytest.mark.parametrize("kind", ["--gradescope", "--notebook", "--classroom"])
def test_an_assignment_is_not_exported_onto_a_folder(tmp_path, capsys, kind):
    assert main(["export", "softmax", kind, str(tmp_path), "--install", "course_lib==0.1.0"]) == 2
    error = capsys.readouterr().err
    assert "expected a file or a new name, but it is a folder" in error
    assert error.count("\n") == 1


def test_a_learning_rate_of_nan_is_refused(unchecked):
    with pytest.raises(ValueError, match="learning_rate must be positive and finite, got nan"):
        Recipe(learning_rate=math.nan)
