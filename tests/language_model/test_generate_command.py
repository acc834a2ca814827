"""The command generate, as people type it."""

from __future__ import annotations

import sys

import pytest

from course_grade.command import main
from course_kit.language_model import finding, load_language_model

from .conftest import save, write_gguf


@pytest.fixture
def run(folder, capsys):
    """Runs the command; its status, its output and its errors."""

    def generate(*arguments, model=folder):
        status = main(["generate", *arguments, "--model", str(model), "--max-tokens", "9"])
        said = capsys.readouterr()
        return status, said.out, said.err

    return generate


def test_a_question_is_answered_in_the_form_of_the_chat(run, folder):
    writer = load_language_model(folder)
    expected = "".join(writer.generate(writer.chat_prompt("A cat?"), 9))
    assert run("A cat?") == run("A cat?", "--chat") == (0, expected + "\n", "")


def test_a_text_is_continued(run, folder):
    expected = "".join(load_language_model(folder).generate("A cat", 9))
    assert run("A cat", "--raw") == (0, f"A cat{expected}\n", "")


def test_a_gguf_file_is_drawn_from(run, tmp_path):
    write_gguf(tmp_path / "a.gguf")
    options = ["--raw", "--temperature", "2.5", "--top-p", "0.9", "--seed", "3"]
    expected = load_language_model(tmp_path / "a.gguf").generate("A", 9, temperature=2.5, top_p=0.9, seed=3)
    assert run("A", *options, model=tmp_path / "a.gguf") == (0, "A" + "".join(expected) + "\n", "")


def test_without_a_chat_format_texts_are_continued(run, tmp_path, capsys):
    save(tmp_path, template=None)
    capsys.readouterr()  # the progress of `transformers`
    assert run("A cat", model=tmp_path) == run("A cat", "--raw", model=tmp_path)
    status, out, err = run("A cat", "--chat", model=tmp_path)
    assert (status, out) == (2, "")
    assert "the chat template must be ChatML, got none" in err


def test_pieces_are_written_as_they_come(folder, monkeypatch):
    written = []

    class Terminal:
        def write(self, text):
            written.append(text)

        def flush(self):
            written.append(None)

    monkeypatch.setattr(sys, "stdout", Terminal())
    assert main(["generate", "A cat", "--raw", "--model", str(folder), "--max-tokens", "4"]) == 0
    pieces = list(load_language_model(folder).generate("A cat", 4))
    assert [text for text in written if text] == ["A cat", *pieces, "\n"]
    assert written.count(None) >= len(pieces) + 1


def test_a_model_that_is_nowhere_is_one_sentence(monkeypatch, capsys):
    monkeypatch.delenv("COURSE_LIB_MODELS", raising=False)
    monkeypatch.setattr(finding, "in_package", lambda package, file: None)
    monkeypatch.setattr(finding, "_in_hub_cache", lambda repository: None)
    assert main(["generate", "Hi"]) == 2
    (sentence,) = capsys.readouterr().err.splitlines()
    assert sentence.startswith("course-lib: the language model 'SmolLM2-135M-Instruct' was not found")
