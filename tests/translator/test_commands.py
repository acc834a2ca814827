"""The commands train, translate and evaluate, as people type them; more wrong lines are in test_wrong_command_lines."""

import io
import json
import os
import subprocess
import sys
from importlib import import_module

import pytest
import yaml

from course_grade.command import main
from course_kit.data import multi30k
from course_kit.translator import Translator
from course_kit.viz import readable
from tools.publisher import ROOT

RECIPE = {
    "vocab_size": 1200, "d_model": 16, "num_heads": 2, "num_layers": 1, "d_ff": 24, "epochs": 2, "warmup_steps": 10,
    "bpe_dropout": 0.0, "precision": "32-true",
}  # fmt: skip


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A folder of `course-lib train` on the built-in corpus."""
    folder = tmp_path_factory.mktemp("train")
    (folder / "r.yaml").write_text(yaml.safe_dump(RECIPE))
    command = ["train", "--config", str(folder / "r.yaml"), "--data", "built-in", "--out", str(folder / "run")]
    assert main([*command, "--quiet", "--accelerator", "cpu", "--seed", "4"]) == 0
    return folder / "run"


@pytest.fixture
def lines(monkeypatch):
    return lambda text: monkeypatch.setattr("sys.stdin", io.StringIO(text))


@pytest.fixture
def translate(trained, lines, capsys):
    """Runs the command on a text; its status, output and errors."""

    def run(text, *options):
        lines(text)
        status = main(["translate", "--model", str(trained / "translator"), *options])
        return status, *capsys.readouterr()

    return run


def test_train_writes_a_translator_with_its_card(trained):
    config = json.loads((trained / "translator/config.json").read_text())
    assert config["corpus"] == "built-in captions"
    assert config["recipe"] == {**config["recipe"], **RECIPE, "seed": 4}
    assert "built-in captions" in (trained / "translator/README.md").read_text()
    history = json.loads((trained / "history.json").read_text())
    assert len(history) == 2
    assert config["best"] == min(history, key=lambda epoch: epoch["val_loss"])
    Translator.load(trained / "translator")


def test_the_default_recipe_is_cut_to_a_small_corpus_and_the_options_reach_the_training(monkeypatch, tmp_path, capsys):
    seen = []

    def stop(task, recipe, **options):
        seen.append((len(task.vocabulary), recipe, options))
        raise KeyboardInterrupt

    monkeypatch.setattr("course_kit.translator.trainer.train", stop)
    command = ["train", "--data", "built-in", "--out", str(tmp_path / "x"), "--seed", "7", "--epochs", "3"]
    assert main([*command, "--resume", "--devices", "2", "--accelerator", "cpu"]) == 130
    ((size, recipe, options),) = seen
    assert size == recipe.vocab_size == 2000
    assert (recipe.seed, recipe.epochs) == (7, 3)
    assert options == {
        "out": tmp_path / "x", "resume": True, "accelerator": "cpu", "devices": 2, "strategy": "ddp",
        "show_progress": True,
    }  # fmt: skip
    captured = capsys.readouterr()
    assert "The recipe is made for Multi30k" in captured.out
    assert "--resume continues from there" in captured.err


def test_translate_gives_a_line_for_a_line_and_the_n_best_with_scores(translate):
    status, out, _ = translate("Ein Hund schläft.\n\nEin Kind spielt.\n", "--beam", "2")
    out = out.split("\n")
    assert (status, len(out), out[1], out[3]) == (0, 4, "", "")
    status, out, _ = translate("Ein Hund schläft.\n", "--beam", "3", "--n-best", "3")
    scores = [float(line.split("\t")[0]) for line in out.splitlines()]
    assert (status, len(scores)) == (0, 3)
    assert scores == sorted(scores, reverse=True)


def test_translate_draws_the_attention(trained, translate, tmp_path):
    target = tmp_path / "a.svg"
    status, _, errors = translate("\nEin Hund schläft.\n", "--attention", str(target))
    assert status == 0
    assert "cross-attention of line 2" in errors
    vocabulary = Translator.load(trained / "translator").vocabulary
    tokens = [readable(token) for token in vocabulary.tokens(vocabulary.encode("Ein Hund schläft."))]
    assert [token for token in tokens if token not in target.read_text()] == []
    status, _, errors = translate("\n\n", "--attention", str(target))
    assert status == 2
    assert "needs a sentence" in errors


def test_translate_warns_of_another_script_and_refuses_a_line_without_end(translate):
    status, _, errors = translate("Ein Hund.\n犬が公園で遊んでいます\n", "--beam", "1")
    assert status == 0
    assert "line 2: " in errors
    assert "line 1: " not in errors
    status, out, errors = translate("Hund " * 2000, "--beam", "1")
    assert (status, out) == (2, "")
    assert "sentence 1 must have fewer than 256 tokens" in errors


@pytest.mark.thorough
def test_input_is_utf8_whatever_the_machine_thinks(trained):
    """In a container (LC_ALL=C) and with an encoding of Windows; a line in another encoding is named."""

    def run(given, **environment):
        command = ["translate", "--model", str(trained / "translator"), "--beam", "1"]
        return subprocess.run(
            [sys.executable, "-m", "course_grade.command", *command],
            input=given,
            capture_output=True,
            env={**os.environ, "PYTHONUTF8": "0", **environment},
            cwd=ROOT,
            timeout=300,
            check=False,
        )

    given = "Ein Mädchen.\r\nZwei Bären.\n".encode()
    expected = run(given, PYTHONUTF8="1").stdout
    assert len(expected.splitlines()) == 2
    assert run(given, LC_ALL="C", PYTHONIOENCODING="cp1252").stdout == expected
    wrong = run("Ein Hund.\nEin Mädchen.\n".encode("latin-1"), LC_ALL="C")
    assert (wrong.returncode, wrong.stdout) == (2, b"")
    assert b"line 2 of standard input must be UTF-8" in wrong.stderr


def test_evaluate_prints_scores_with_signature_and_keeps_them(trained, monkeypatch, capsys, tmp_path):
    """Options of the search differ from their defaults; three pairs are enough for scores."""
    seen, evaluate = [], Translator.evaluate

    def watched(self, pairs, **options):
        seen.append((len(pairs), options))
        return evaluate(self, pairs[:3], **options)

    monkeypatch.setattr(Translator, "evaluate", watched)
    scores, text = tmp_path / "scores.json", tmp_path / "out.txt"
    command = ["evaluate", "--model", str(trained / "translator"), "--data", "built-in", "--beam", "3"]
    files = ["--json", str(scores), "--translations", str(text)]
    assert main([*command, "--length-penalty", "0.25", "--split", "test", *files]) == 0
    assert seen == [(500, {"beam_size": 3, "length_penalty": 0.25})]
    out = capsys.readouterr().out
    assert [part for part in ("built-in captions, test", "tok:13a", "perplexity") if part not in out] == []
    about = json.loads(scores.read_text())
    assert [about[name] for name in ("split", "beam", "length_penalty", "sentences")] == ["test", 3, 0.25, 3]
    assert len(text.read_text().splitlines()) == 3


def test_the_options_of_the_search_reach_it(translate, monkeypatch):
    seen, hypotheses = [], Translator.hypotheses

    def watched(self, given, **options):
        seen.append(options)
        return hypotheses(self, given, **options)

    monkeypatch.setattr(Translator, "hypotheses", watched)
    assert translate("Ein Hund.\n", "--beam", "3", "--length-penalty", "0.25", "--n-best", "2")[0] == 0
    assert seen == [{"beam_size": 3, "num_best": 2, "length_penalty": 0.25}]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("translate --beam ²", "argument --beam: must be a whole number of at least 1, got '²'"),
        ("translate --attention map.gif", "argument --attention: must end with .png or .svg, got 'map.gif'"),
        ("evaluate --json nowhere/scores.json", "argument --json: must be a file in an existing folder"),
        ("train --out README.md", "argument --out: must be a folder or a new name, got the file 'README.md'"),
        ("translate --beam 101", "--beam: must be at most 100, got 101"),
        ("translate --length-penalty 1e308", "--length-penalty: must be a number between -10 and 10, got '1e308'"),
        ("evaluate --length-penalty nan", "--length-penalty: must be a number between -10 and 10, got 'nan'"),
    ],
)
def test_a_wrong_argument_is_refused_before_the_work(monkeypatch, capsys, line, message):
    monkeypatch.chdir(ROOT)
    with pytest.raises(SystemExit, match="2"):
        main(line.split())
    assert message in capsys.readouterr().err


def test_what_only_the_work_can_find_out_is_one_line(trained, lines, monkeypatch, capsys):
    def refused(*command):
        assert main([*command]) == 2
        error = capsys.readouterr().err
        assert error.startswith("course-lib")
        assert error.count("\n") == 1
        return error

    lines("Ein Hund.\n")
    assert "--model must be the folder of a translator, got ''" in refused("translate", "--model", "")
    assert "--n-best must not exceed --beam = 5, got 9" in refused("translate", "--n-best", "9")
    assert "--data must be multi30k, built-in, auto or a folder, got 'x'" in refused("evaluate", "--data", "x")
    assert f"take {trained / 'translator'}" in refused("translate", "--model", str(trained))
    assert "seed must be below" in refused("train", "--data", "built-in", "--out", "run", "--seed", str(2**70))
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    assert "needs tokenizers" in refused("translate")
    monkeypatch.undo()
    monkeypatch.setattr("sys.stdin", None)  # what Python makes of `<&-`
    assert "expected lines on standard input, but it is closed" in refused("translate")


def test_a_folder_of_the_corpus_can_be_named(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("COURSE_LIB_DATA", "")
    (tmp_path / "train.de.gz").write_bytes(b"cut off")

    def refused(name, *_):
        raise FileNotFoundError(name)

    monkeypatch.setattr(import_module("course_kit.data.multi30k"), "_download", refused)
    assert main(["evaluate", "--data", str(tmp_path)]) == 2
    assert "train.de.gz is not the file of Multi30k" in capsys.readouterr().err
    assert multi30k(download=False).name == "Multi30k"
