"""The commands train, translate and evaluate, as people type them."""

import io
import json
import os
import subprocess
import sys

import pytest
import yaml

from course_grade.command import main
from course_kit.data import multi30k
from course_kit.translator import Translator
from course_kit.viz import readable
from tools.publisher import ROOT

loader = __import__("course_kit.data.multi30k", fromlist=["_"])
RECIPE = {
    "vocab_size": 1200,
    "d_model": 16,
    "num_heads": 2,
    "num_layers": 1,
    "d_ff": 24,
    "epochs": 2,
    "warmup_steps": 10,
    "bpe_dropout": 0.0,
    "precision": "32-true",
}


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A folder of `course-lib train` on the built-in corpus."""
    folder = tmp_path_factory.mktemp("train")
    (folder / "r.yaml").write_text(yaml.safe_dump(RECIPE))
    command = ["train", "--config", str(folder / "r.yaml"), "--data", "built-in", "--out", str(folder / "run")]
    assert main([*command, "--quiet", "--accelerator", "cpu", "--seed", "4"]) == 0
    return folder


@pytest.fixture
def lines(monkeypatch):
    def give(text):
        monkeypatch.setattr("sys.stdin", io.StringIO(text))

    return give


def test_train_writes_a_translator_with_its_card(trained):
    folder = trained / "run/translator"
    config = json.loads((folder / "config.json").read_text())
    assert config["corpus"] == "built-in captions"
    assert config["recipe"] == {**config["recipe"], **RECIPE, "seed": 4}
    assert "built-in captions" in (folder / "README.md").read_text()
    assert len(json.loads((trained / "run/history.json").read_text())) == 2
    Translator.load(folder)


def test_a_folder_in_use_is_not_overwritten(trained, capsys):
    command = ["train", "--config", str(trained / "r.yaml"), "--data", "built-in", "--out", str(trained / "run")]
    assert main([*command, "--quiet", "--accelerator", "cpu"]) == 2
    assert "holds the checkpoints of another run" in capsys.readouterr().err


def test_translate_gives_a_line_for_a_line(trained, lines, capsys):
    lines("Ein Hund schläft.\n\nEin Kind spielt.\n")
    assert main(["translate", "--model", str(trained / "run/translator"), "--beam", "2"]) == 0
    out = capsys.readouterr().out.split("\n")
    assert len(out) == 4
    assert out[1] == out[3] == ""


def test_translate_gives_the_n_best_with_scores(trained, lines, capsys):
    lines("Ein Hund schläft.\n")
    assert main(["translate", "--model", str(trained / "run/translator"), "--beam", "3", "--n-best", "3"]) == 0
    scores = [float(line.split("\t")[0]) for line in capsys.readouterr().out.splitlines()]
    assert len(scores) == 3
    assert scores == sorted(scores, reverse=True)


def test_translate_draws_the_attention(trained, lines, capsys, tmp_path):
    lines("\nEin Hund schläft.\n")
    target = tmp_path / "a.svg"
    assert main(["translate", "--model", str(trained / "run/translator"), "--attention", str(target)]) == 0
    assert "cross-attention of line 2" in capsys.readouterr().err
    vocabulary = Translator.load(trained / "run/translator").vocabulary
    tokens = [readable(token) for token in vocabulary.tokens(vocabulary.encode("Ein Hund schläft."))]
    assert [token for token in tokens if token not in target.read_text()] == []
    lines("\n\n")
    assert main(["translate", "--model", str(trained / "run/translator"), "--attention", str(target)]) == 2
    assert "needs a sentence" in capsys.readouterr().err


def test_translate_warns_of_another_script_and_refuses_a_line_without_end(trained, lines, capsys):
    lines("Ein Hund.\n犬が公園で遊んでいます\n")
    assert main(["translate", "--model", str(trained / "run/translator"), "--beam", "1"]) == 0
    assert "line 2: " in capsys.readouterr().err
    lines("Hund " * 2000)
    assert main(["translate", "--model", str(trained / "run/translator"), "--beam", "1"]) == 2
    captured = capsys.readouterr()
    assert "sentence 1 must have fewer than 256 tokens" in captured.err
    assert captured.out == ""


def run(arguments, given, **environment):
    return subprocess.run(
        [sys.executable, "-m", "course_grade.command", *arguments],
        input=given,
        capture_output=True,
        env={**os.environ, "PYTHONUTF8": "0", **environment},
        cwd=ROOT,
        timeout=300,
        check=False,
    )


@pytest.mark.thorough
def test_input_is_utf8_whatever_the_machine_thinks(trained):
    """In a container (LC_ALL=C) and with an encoding of Windows; a line in another encoding is named."""
    command = ["translate", "--model", str(trained / "run/translator"), "--beam", "1"]
    given = "Ein Mädchen.\r\nZwei Bären.\n".encode()
    expected = run(command, given, PYTHONUTF8="1").stdout
    assert len(expected.splitlines()) == 2
    assert run(command, given, LC_ALL="C", PYTHONIOENCODING="cp1252").stdout == expected
    wrong = run(command, "Ein Hund.\nEin Mädchen.\n".encode("latin-1"), LC_ALL="C")
    assert wrong.returncode == 2
    assert b"line 2 of standard input must be UTF-8" in wrong.stderr
    assert wrong.stdout == b""


def test_the_default_recipe_is_cut_to_a_small_corpus(monkeypatch, tmp_path, capsys):
    seen = []

    def stop(task, recipe, **options):
        seen.append((len(task.vocabulary), recipe))
        raise KeyboardInterrupt

    monkeypatch.setattr("course_kit.translator.trainer.train", stop)
    assert main(["train", "--data", "built-in", "--out", str(tmp_path / "x"), "--seed", "7"]) == 130
    ((size, recipe),) = seen
    assert size == recipe.vocab_size == 2000
    assert recipe.seed == 7
    captured = capsys.readouterr()
    assert "The recipe is made for Multi30k" in captured.out
    assert "--resume continues from there" in captured.err


def test_the_options_of_the_search_reach_it(trained, lines, monkeypatch, tmp_path, capsys):
    """Each differs from its default; three pairs are enough for scores."""
    seen = []

    def watch(name):
        original = getattr(Translator, name)

        def watched(self, given, **options):
            seen.append((name, options))
            return original(self, list(given)[:3], **options)

        monkeypatch.setattr(Translator, name, watched)

    watch("evaluate")
    options = ["--model", str(trained / "run/translator"), "--beam", "3", "--length-penalty", "0.25"]
    scores = tmp_path / "scores.json"
    assert main(["evaluate", *options, "--data", "built-in", "--split", "test", "--json", str(scores)]) == 0
    assert seen == [("evaluate", {"beam_size": 3, "length_penalty": 0.25})]
    about = json.loads(scores.read_text())
    assert [about[name] for name in ("split", "beam", "length_penalty", "sentences")] == ["test", 3, 0.25, 3]
    seen.clear()
    watch("hypotheses")
    lines("Ein Hund.\n")
    assert main(["translate", *options, "--n-best", "2"]) == 0
    assert seen == [("hypotheses", {"beam_size": 3, "num_best": 2, "length_penalty": 0.25})]


def test_evaluate_prints_scores_with_signature_and_keeps_them(trained, capsys, tmp_path):
    files = {name: tmp_path / name for name in ("scores.json", "out.txt")}
    command = ["evaluate", "--model", str(trained / "run/translator"), "--data", "built-in", "--beam", "1"]
    assert main([*command, "--json", str(files["scores.json"]), "--translations", str(files["out.txt"])]) == 0
    out = capsys.readouterr().out
    assert "built-in captions, val" in out
    assert "tok:13a" in out
    assert "perplexity" in out
    scores = json.loads(files["scores.json"].read_text())
    assert scores["split"] == "val"
    assert len(files["out.txt"].read_text().splitlines()) == scores["sentences"] == 500


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["translate", "--model", "nowhere"], "--model must be the folder of a translator, got 'nowhere'; `course-lib"),
        (["translate", "--n-best", "9"], "--n-best must not exceed --beam = 5, got 9"),
        (["evaluate", "--data", "nowhere"], "--data must be multi30k, built-in, auto or a folder, got 'nowhere'"),
        (["evaluate", "--data", "built-in", "--split", "test_2016_flickr"], "has the splits train, val, test"),
        (["train", "--config", "nowhere.yaml", "--out", "x"], "nowhere.yaml"),
    ],
)
def test_wrong_use_is_one_line(lines, capsys, arguments, message):
    lines("")
    assert main(arguments) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.startswith("course-lib: ")
    assert error.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["translate", "--beam", "0"], "argument --beam: must be a whole number of at least 1, got '0'"),
        (["translate", "--attention", "map.gif"], "argument --attention: must end with .png or .svg, got 'map.gif'"),
        (["evaluate", "--json", "nowhere/scores.json"], "argument --json: must be a file in an existing folder"),
        (["translate", "--beam", "²"], "argument --beam: must be a whole number of at least 1, got '²'"),
        (
            ["train", "--out", "x", "--epochs", "two"],
            "argument --epochs: must be a whole number of at least 1, got 'two'",
        ),
    ],
)
def test_a_wrong_argument_is_refused_before_the_work(capsys, arguments, message):
    with pytest.raises(SystemExit) as stopped:
        main(arguments)
    assert stopped.value.code == 2
    assert message in capsys.readouterr().err


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="pipes have names on POSIX systems only")
def test_what_is_no_file_is_not_replaced_by_one(tmp_path, capsys):
    """Such as a pipe; it would also be the fate of /dev/null, for whoever may write there."""
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(SystemExit):
        main(["evaluate", "--json", str(tmp_path / "pipe")])
    assert "argument --json: must be a file in an existing folder" in capsys.readouterr().err
    assert (tmp_path / "pipe").is_fifo()


@pytest.mark.parametrize("accelerator", ["quantum", "tpu"])
def test_an_accelerator_that_is_not_there_is_one_line(tmp_path, capsys, accelerator):
    assert main(["train", "--data", "built-in", "--out", str(tmp_path / "run"), "--accelerator", accelerator]) == 2
    error = capsys.readouterr().err
    assert f"accelerator='{accelerator}'" in error
    assert error.startswith("course-lib: ")
    assert error.count("\n") == 1


def test_a_runs_folder_instead_of_its_translator_gets_a_hint(trained, lines, capsys):
    lines("Ein Hund.\n")
    assert main(["translate", "--model", str(trained / "run")]) == 2
    assert f"take {trained / 'run/translator'}" in capsys.readouterr().err


def test_a_folder_of_the_corpus_can_be_named(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("COURSE_LIB_DATA", "")
    (tmp_path / "train.de.gz").write_bytes(b"cut off")
    monkeypatch.setattr(loader, "_download", lambda name, *rest: (_ for _ in ()).throw(FileNotFoundError(name)))
    assert main(["evaluate", "--data", str(tmp_path)]) == 2
    assert "train.de.gz is not the file of Multi30k" in capsys.readouterr().err
    assert multi30k(download=False).name == "Multi30k"


def test_what_is_not_installed_is_named(monkeypatch, capsys, lines):
    lines("Ein Hund.\n")
    monkeypatch.setitem(__import__("sys").modules, "tokenizers", None)
    assert main(["translate"]) == 2
    assert "needs tokenizers" in capsys.readouterr().err
