"""Wrong command lines of every command: exit status 2, and one sentence that says what to do."""

from __future__ import annotations

import io
import json
import re
import sys

import pytest

from course_grade.command import main

# What is in the folder: `file`, `a.py` and `other.py` (files; the last without an exercise), `folder`, `broken` (a link
# to nothing), `bytes` (not UTF-8), `list.yaml`, `bad.yaml`, `due.yaml` (an assignment), `half` (a translator without
# weights), `other` (not a translator), `encoder` (an encoder's folder without weights)
CONFIG = {
    "format": 1,
    "model": {"vocab_size": 9, "d_model": 4, "num_heads": 2, "num_layers": 1, "d_ff": 8},
    "sha256": {"weights.safetensors": "0", "vocabulary.json": "0"},
}
EXPORT = "export softmax --install course"
LINES = {
    # what is asked for is not there, or is something else
    "": "the following arguments are required: command",
    "grad": "invalid choice: 'grad'",
    "grade ''": "expected a file or folder, got an empty text",
    "grade": "the following arguments are required: PATH",
    "grade none/a.py": "expected a file or folder of submissions, got none/a.py, which does not exist",
    "grade list.yaml": "expected .py or .ipynb files in list.yaml, got none",
    "grade folder": "expected .py or .ipynb files in folder, got none",
    "grade other.py": "expected a definition of an exercise in the submissions, found none",
    "grade file/a.py": "file/a.py",
    "grade broken": "broken",
    "grade broken.py": "broken.py",
    "grade a.py --jobs 0": "--jobs must be at least 1, got 0",
    "grade a.py --jobs many": "--jobs: invalid int value: 'many'",
    "grade a.py --seed x": "--seed: invalid int value: 'x'",
    "grade a.py --exercise sofmax": "got 'sofmax'. Did you mean softmax",
    "grade a.py --require-walls high": "invalid choice: 'high'",
    "grade a.py --assignment none.yaml": "none.yaml: there is no such file or folder; check the path",
    "grade a.py --assignment folder": "folder: it is a folder, but a file is expected",
    "grade a.py --assignment file/week.yaml": "file/week.yaml: a part of this path is a file, but a folder is expected",
    "grade a.py --assignment bytes": "bytes is not YAML",
    "grade a.py --assignment list.yaml": "list.yaml",
    "grade a.py --assignment bad.yaml": "bad.yaml: exercises: softmax: points must be a number of at least 0, got -2",
    "grade a.py --submitted-at none.csv": "--submitted-at needs a due date in the assignment",
    "grade a.py --assignment due.yaml --submitted-at none.csv": "none.csv: there is no such file",
    "grade a.py --assignment due.yaml --submitted-at none.yml": "none.yml: there is no such file",
    "grade a.py --assignment due.yaml --submitted-at folder": "folder: it is a folder",
    "grade a.py --assignment due.yaml --submitted-at bytes": "bytes: expected a CSV file in UTF-8",
    "grade a.py --out file": "file, where a file is in the way; choose another name",
    "grade a.py --out file/results": "file/results, where a file is in the way; choose another name",
    "grade a.py --json folder": "folder cannot be written: expected a file or a new name, but it is a folder",
    "grade a.py --json file/a.json": "where a file is in the way",
    "grade a.py --csv folder": "folder cannot be written",
    "grade a.py --junit file/a.xml": "where a file is in the way",
    "grade a.py --gradescope file/a.json": "where a file is in the way",
    "grade a.py --json one --csv one": "--csv and --json name the same file",
    "grade a.py --similarity": "--similarity compares submissions",
    "grade folder/.. --gradescope g.json": "--gradescope writes the results of a single submission",
    "show": "the following arguments are required: NAME",
    "show sofmax": "got 'sofmax'. Did you mean softmax",
    "list all": "unrecognized arguments: all",
    "doctor now": "unrecognized arguments: now",
    "export sofmax --notebook x.ipynb": "got 'sofmax'. Did you mean softmax",
    "export --notebook x.ipynb": "expected names of exercises, or an assignment that names some",
    "export --assignment bad.yaml --notebook x.ipynb": "bad.yaml: exercises: softmax: points must be a number",
    "export softmax": "expected --notebook, --gradescope or --classroom",
    "export softmax --gradescope x.zip": "--gradescope needs --install REQUIREMENT",
    "export softmax --classroom x.yml": "--classroom needs --install REQUIREMENT",
    "export softmax --notebook folder": "folder cannot be written",
    "export softmax --notebook file/x.ipynb": "where a file is in the way",
    f"{EXPORT} --gradescope folder": "folder cannot be written",
    f"{EXPORT} --classroom file/x/y.yml": "where a file is in the way",
    "export --assignment none.yaml --notebook x.ipynb": "none.yaml: there is no such file or folder; check the path",
    "export --assignment folder --notebook x.ipynb": "folder: it is a folder, but a file is expected",
    "train": "the following arguments are required: --out",
    "train --out file": "must be a folder or a new name, got the file 'file'",
    "train --out file/run --data built-in --epochs 1": "where a file is in the way",
    "train --out run --config none.yaml": "none.yaml: there is no such file or folder; check the path",
    "train --out run --config folder": "folder: it is a folder, but a file is expected",
    "train --out run --config file/recipe.yaml": "file/recipe.yaml: a part of this path is a file",
    "train --out run --config bytes": "bytes must be UTF-8",
    "train --out run --config list.yaml": "list.yaml must hold lines of the form `name: value`",
    "train --out run --data none": "--data must be multi30k, built-in, auto or a folder, got 'none'",
    "train --out run --data file": "--data must be multi30k, built-in, auto or a folder, got 'file'",
    "train --out run --epochs 0": "must be a whole number of at least 1, got '0'",
    "train --out run --seed -1.5": "--seed: invalid int value",
    "translate --config folder": "unrecognized arguments: --config folder",
    "translate --model none": "--model must be the folder of a translator, got 'none'",
    "translate --model file": "--model must be the folder of a translator, got 'file'",
    "translate --model folder": "--model must be the folder of a translator, got 'folder'",
    "translate --model half": "half/weights.safetensors: there is no such file",
    "translate --model other": "other/config.json is not that of a translator",
    "translate --beam 0": "must be a whole number of at least 1, got '0'",
    "translate --n-best 9": "--n-best must not exceed --beam = 5, got 9",
    "translate --attention folder": "must be a file in an existing folder",
    "translate --attention none/x.png": "must be a file in an existing folder",
    "translate --attention x.pdf": "must end with .png or .svg",
    "translate --length-penalty long": "must be a number between -10 and 10, got 'long'",
    "evaluate --model half": "half/weights.safetensors: there is no such file",
    "evaluate --data none": "--data must be multi30k, built-in, auto or a folder, got 'none'",
    "evaluate --data built-in --split none": "none",
    "evaluate --json folder": "must be a file in an existing folder",
    "evaluate --translations file/x": "must be a file in an existing folder",
    "inspect": "the following arguments are required: SENTENCE, --out",
    "inspect text --out x.pdf": "must end with .html, got 'x.pdf'",
    "inspect text --out none/x.html": "must be a file in an existing folder",
    "inspect text --out file/x.html": "must be a file in an existing folder",
    "inspect text --out x.html --model none": "none",
    "inspect text --out x.html --model folder": "config.json",
    "inspect text --out x.html --model file": "file",
    "inspect text --out x.html --model encoder": "encoder",
    "inspect text --out x.html --head 3": "must be a layer and a head counted from 1",
    "generate": "the following arguments are required: PROMPT",
    "generate ''": "expected a question or a text, got an empty one",
    "generate a --model none": "the language model 'none' was not found as source",
    "generate a --model none.gguf": "none.gguf must be a folder with config.json and model.safetensors, or",
    "generate a --model file": "or a .gguf file, got another file",
    "generate a --model folder": "config.json is missing",
    "generate a --model encoder": "expected the architecture llama or qwen2, got 'bert'",
    "generate a --chat --raw": "not allowed with argument",
    "generate a --temperature hot": "must be a number between 0 and 100, got 'hot'",
    "generate a --temperature -1": "must be a number between 0 and 100, got '-1'",
    "generate a --top-p 1.5": "must be a number between 0 and 1, got '1.5'",
    "generate a --max-tokens 0": "must be a whole number of at least 1, got '0'",
    "generate a --seed -1.5": "--seed: invalid int value",
    "inspect a b c --out x.html": "expected one or two non-empty sentences, got 3",
}


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A folder with things of all kinds."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"Ein Hund.\n")))
    (tmp_path / "file").write_text("text\n")
    (tmp_path / "a.py").write_text("def softmax(scores, dim=-1):\n    return scores\n")
    (tmp_path / "other.py").write_text("x = 1\n")
    (tmp_path / "bad.yaml").write_text("exercises: {softmax: -2}\n")
    (tmp_path / "bytes").write_bytes(b"\xff\xfe\xff")
    (tmp_path / "list.yaml").write_text("- 3\n")
    (tmp_path / "folder").mkdir()
    (tmp_path / "half").mkdir()
    (tmp_path / "half" / "config.json").write_text(json.dumps(CONFIG))
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "config.json").write_text("{}")
    (tmp_path / "due.yaml").write_text("exercises: {softmax: 1}\ndue: 2026-05-01 12:00\n")
    (tmp_path / "encoder").mkdir()
    (tmp_path / "encoder" / "config.json").write_text('{"model_type": "bert"}')
    for name in ("broken", "broken.py"):
        (tmp_path / name).symlink_to(tmp_path / "nothing" / "at all")
    return tmp_path


@pytest.mark.parametrize("line", LINES)
def test_a_wrong_line_is_answered_with_a_sentence(here, capsys, line):
    before = sorted(here.rglob("*"))
    try:
        status = main(["" if word == "''" else word for word in line.split()])
    except SystemExit as stop:  # argparse's own refusals
        status = stop.code
    said = capsys.readouterr()
    assert status == 2
    assert said.out == "" or line.startswith(("train", "evaluate"))  # they say first which corpus they use
    # The usage, or an example, may be beside it.
    (sentence,) = (one for one in said.err.strip().splitlines() if one.startswith("course-lib"))
    assert not re.match("course-lib: ['\"]", sentence), "a sentence, not the repr of one"
    assert LINES[line] in sentence
    assert not re.search(r"Errno|Traceback|<class|object at 0x", sentence)
    assert sorted(here.rglob("*")) == before, "a wrong line leaves nothing behind"
