"""The command inspect, as people type it."""

import json
import re

import pytest
import torch
from transformers import BertConfig, BertModel

from bert.conftest import BERT, SIZES, save_model
from course_grade.command import main
from course_kit.bert import commands as inspecting
from course_kit.bert import load_encoder
from course_kit.viz.view_numbers import fixed
from tests.viz.test_inspection_inputs import decoded


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A small random BERT with a tokenizer of letters."""
    torch.manual_seed(3)
    return save_model(BertModel(BertConfig(**SIZES, **BERT)), tmp_path_factory.mktemp("model"))


@pytest.fixture
def run(folder, tmp_path):
    """Runs the command; its status and the page, or None."""

    def inspect(*arguments, model=folder):
        page = tmp_path / "page.html"
        status = main(["inspect", *arguments, "--model", str(model), "--out", str(page)])
        return status, page.read_text(encoding="utf-8") if page.exists() else None

    return inspect


def titles(page):
    return re.findall("<h2>(.*?)</h2>", page)


def data_of(page):
    texts = re.findall(r'<script type="application/json">(.*?)</script>', page)
    return [json.loads(text.replace("<\\/", "</")) for text in texts]


def test_a_sentence_gives_a_page_of_views(run, folder, capsys):
    status, page = run("a b dog")
    assert status == 0
    assert titles(page)[:2] == ["All heads of a model", "Where a head looks"]
    assert titles(page)[2].startswith("Which features make a score (layer ")
    assert titles(page)[3:] == ["Vectors through the layers"]
    assert "<h1>a b dog</h1>" in page
    assert "4 views of 5 tokens" in capsys.readouterr().err
    encoder = load_encoder(folder)
    attention = encoder.attention(encoder.tokenize(["a b dog"]))[:, 0]
    overview = data_of(page)[0]
    assert overview["q"] == ["[CLS]", "a", "b", "dog", "[SEP]"]
    assert [fixed(t / 1000) for t in decoded(overview["w"])] == [fixed(w) for w in attention.flatten().tolist()]


def test_a_pair_has_a_view_of_its_own(run):
    status, page = run("a b", "dog c d")
    assert status == 0
    assert len(titles(page)) == 5
    pair = data_of(page)[titles(page).index("Attention between two sentences")]
    assert (pair["tokens"], pair["second"]) == (["[CLS]", "a", "b", "[SEP]", "dog", "c", "d", "[SEP]"], 4)
    assert data_of(page)[-1]["senses"] == ["sentence A"] * 2 + ["sentence B"] * 3


def test_a_head_can_be_chosen_and_its_queries_and_keys_make_its_weights(run, folder):
    status, page = run("a b dog", "--head", "2.3")
    assert status == 0
    assert "Which features make a score (layer 2, head 3)" in page
    lines, neurons = data_of(page)[1:3]
    assert (lines["layer"], lines["on"]) == (1, [2])
    query, key = (torch.tensor(neurons[name]) for name in "qk")
    encoder = load_encoder(folder)
    expected = encoder.attention(encoder.tokenize(["a b dog"]))[1, 0, 2]
    torch.testing.assert_close((query @ key.T * neurons["scale"]).softmax(-1), expected, atol=1e-6, rtol=1e-5)


def test_the_page_needs_nothing_from_elsewhere_and_shows_text_as_text(run):
    page = run("<b>a</b> & b")[1]
    assert "<b>" not in page.split("<script")[0]
    assert "&lt;b&gt;a&lt;/b&gt; &amp; b" in page
    assert not re.search(r'(src|href)="|url\((?!data:)|@import', page)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["a", "b", "c"], "expected one or two non-empty sentences, got 3"),
        (["a", " "], "expected one or two non-empty sentences, got 2"),
        (["a", "--head", "3.1"], "--head must be from 1.1 to 2.3, got 3.1"),
        (["a", "--head", "2.4"], "--head must be from 1.1 to 2.3, got 2.4"),
        (["a " * 40], "at most 23 tokens"),
    ],
)
def test_what_cannot_be_shown_is_said_and_nothing_is_written(run, capsys, arguments, message):
    assert run(*arguments) == (2, None)
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("--out", "page.txt", "must end with .html, got"),
        ("--out", "missing/page.html", "must be a file in an existing folder"),
        ("--head", "0.1", "a layer and a head counted from 1, such as 3.7, got '0.1'"),
        ("--head", "seven", "got 'seven'"),
    ],
)
def test_wrong_options_are_said_before_the_work(run, capsys, option, value, message):
    with pytest.raises(SystemExit, match="2"):
        run("a", option, value)
    assert message in capsys.readouterr().err


def test_an_older_page_stays_where_a_new_one_cannot_be_written(run, tmp_path, monkeypatch, capsys):
    before = run("a b")[1]

    def full(*_):
        raise OSError("disk full")

    monkeypatch.setattr("course_kit._files.os.replace", full)
    assert run("dog")[0] == 2
    assert "disk full" in capsys.readouterr().err
    assert (tmp_path / "page.html").read_text() == before
    assert [path.name for path in tmp_path.iterdir()] == ["page.html"]


def test_the_vectors_of_three_to_forty_words_are_shown(run, monkeypatch):
    assert len(titles(run("dog")[1])) == 3
    assert len(titles(run("a b dog")[1])) == 4
    monkeypatch.setattr(inspecting, "MOST_WORDS", 4)
    assert data_of(run("a b c d e f")[1])[-1]["labels"] == list("abcd")
