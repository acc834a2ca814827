"""The loader of Multi30k: folder, cache, download, and what is damaged on the way."""

import gzip
import hashlib
import http.server
import io
import os
import re
import subprocess
import threading
import urllib.error
from importlib import import_module

import pytest

from course_kit.data import load_corpus, multi30k
from tools.publisher import ROOT

loader = import_module("course_kit.data.multi30k")  # the function has the name of its module

# The first has a separator that str.splitlines would cut at.
GERMAN = gzip.compress("Ein Hund.\nZwei\u2028Hunde.\n".encode(), mtime=0)
ENGLISH = gzip.compress(b"A dog.\nTwo dogs.\n", mtime=0)


def http_error(status, reason=""):
    return urllib.error.HTTPError("", status, reason, {}, None)


@pytest.fixture
def small(monkeypatch, tmp_path):
    """A corpus of two pairs per split, an empty cache, no folder, and no network."""
    known = (2, *(hashlib.sha256(content).hexdigest() for content in (GERMAN, ENGLISH)))
    monkeypatch.setattr(loader, "SPLITS", {"train": known, "val": known, "test_2017_flickr": (2, None, None)})
    monkeypatch.setattr(loader, "_cache", lambda: tmp_path / "cache")
    monkeypatch.delenv("COURSE_LIB_DATA", raising=False)
    serve(monkeypatch, *(urllib.error.URLError("no network in this test") for _ in range(9)))
    return tmp_path


def put(folder, **contents):
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in contents.items():
        (folder / f"{name.replace('__', '.')}.gz").write_bytes(content)


def serve(monkeypatch, *answers):
    """What the repository sends, call after call; an exception is raised. The addresses asked for are returned."""
    asked, remaining = [], list(answers)

    def urlopen(address, timeout):
        asked.append(address)
        answer = remaining.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return io.BytesIO(answer)

    monkeypatch.setattr(loader.urllib.request, "urlopen", urlopen)
    return asked


def test_the_folder_that_is_named_is_read_or_the_one_in_it(small, monkeypatch):
    put(small / "data/multi30k", train__de=GERMAN, train__en=ENGLISH)
    for folder in ("data/multi30k", "data"):
        monkeypatch.setenv("COURSE_LIB_DATA", str(small / folder))
        assert multi30k()["train"] == [("Ein Hund.", "A dog."), ("Zwei\u2028Hunde.", "Two dogs.")]


def test_a_damaged_file_in_the_folder_is_an_error_not_a_download(small, monkeypatch):
    put(small / "here", train__de=GERMAN[:-5], train__en=ENGLISH)
    monkeypatch.setenv("COURSE_LIB_DATA", str(small / "here"))
    asked = serve(monkeypatch, GERMAN)
    with pytest.raises(ValueError, match=r"train\.de\.gz is not the file of Multi30k.*expected SHA-256"):
        multi30k()["train"]
    assert not asked


def test_a_download_is_kept_and_not_made_twice(small, monkeypatch):
    asked = serve(monkeypatch, GERMAN, ENGLISH)
    assert len(multi30k()["train"]) == 2
    assert [address.rsplit("/", 1)[1] for address in asked] == ["train.de.gz", "train.en.gz"]
    assert all(loader.COMMIT in address for address in asked)
    assert sorted(p.name for p in (small / "cache").iterdir()) == ["train.de.gz", "train.en.gz"]
    serve(monkeypatch)  # would fail at the first call
    assert len(multi30k(download=False)["train"]) == 2


def test_a_file_that_was_damaged_in_the_cache_is_fetched_again(small, monkeypatch):
    put(small / "cache", train__de=b"rubbish", train__en=ENGLISH)
    asked = serve(monkeypatch, GERMAN)
    assert multi30k()["train"][0][0] == "Ein Hund."
    assert len(asked) == 1


@pytest.mark.parametrize(
    "first",
    [GERMAN[:-3], ENGLISH, TimeoutError("timed out"), *(http_error(status) for status in (408, 429, 500, 503))],
    ids=["truncated", "another file", "no answer", "408", "429", "500", "503"],
)
def test_a_bad_download_is_tried_again_and_never_kept(small, monkeypatch, first):
    serve(monkeypatch, first, GERMAN, ENGLISH)
    assert len(multi30k()["train"]) == 2
    assert (small / "cache/train.de.gz").read_bytes() == GERMAN


@pytest.mark.parametrize(
    ("answers", "message", "tries"),
    [
        ([GERMAN[:-3]] * 3, r"could not be downloaded.*SHA-256.*COURSE_LIB_DATA.*built-in", 3),
        ([http_error(404, "Not Found")], "HTTP Error 404: Not Found", 1),  # asking again does not help
    ],
)
def test_a_download_that_fails_is_an_error_that_says_what_to_do(small, monkeypatch, answers, message, tries):
    asked = serve(monkeypatch, *answers)
    with pytest.raises(FileNotFoundError, match=message):
        multi30k()["train"]
    assert len(asked) == tries
    assert not (small / "cache").exists()


def test_a_server_that_hangs_up_is_no_traceback(small, monkeypatch):
    """A real one: it promises a thousand bytes, sends ten, and closes."""
    asked = []

    class Rude(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            asked.append(self.path)
            self.send_response(200)
            self.send_header("Content-Length", "1000")
            self.end_headers()
            self.wfile.write(b"0123456789")

        def log_message(self, *_):
            pass

    monkeypatch.undo()
    monkeypatch.setattr(loader, "_cache", lambda: small / "cache")
    monkeypatch.delenv("COURSE_LIB_DATA", raising=False)
    with http.server.HTTPServer(("127.0.0.1", 0), Rude) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        monkeypatch.setattr(loader, "ADDRESS", f"http://127.0.0.1:{server.server_port}/")
        with pytest.raises(FileNotFoundError, match=r"could not be downloaded.*IncompleteRead"):
            multi30k()["train"]
        server.shutdown()
    assert asked == 3 * ["/train.de.gz"]


def test_a_full_disk_leaves_nothing_behind_and_is_said(small, monkeypatch):
    """The corpus is there all the same; only the next time it is downloaded again."""
    serve(monkeypatch, GERMAN, ENGLISH)

    def full(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.warns(UserWarning, match=r"train\..*\.gz of Multi30k cannot be cached .*: .*No space left"):
        assert len(multi30k()["train"]) == 2
    assert list((small / "cache").iterdir()) == []


def test_a_file_without_a_known_sum_must_unpack_and_have_its_lines(small, monkeypatch):
    serve(monkeypatch, GERMAN[:-3], GERMAN, *[gzip.compress(b"one line\n")] * 3)
    with pytest.raises(FileNotFoundError, match=r"test_2017_flickr\.en\.gz .*expected 2 lines, got 1"):
        multi30k()["test_2017_flickr"]
    assert [p.name for p in (small / "cache").iterdir()] == ["test_2017_flickr.de.gz"]  # what is wrong is not kept


def test_without_a_download_the_error_names_folder_and_cache_and_auto_falls_back_on_the_built_in_captions(small):
    with pytest.raises(FileNotFoundError, match=r"neither in the folder COURSE_LIB_DATA=\(not set\) nor in the cache"):
        multi30k(download=False)["train"]
    assert load_corpus("auto").name == "built-in captions"
    with pytest.raises(FileNotFoundError):
        load_corpus("multi30k")
    with pytest.raises(ValueError, match='name must be "multi30k", "built-in" or "auto"'):
        load_corpus("wmt")
    with pytest.raises(KeyError, match="has the splits train, val, test_2017_flickr, got 'test'"):
        multi30k()["test"]


def test_the_real_corpus_where_it_is():
    """Runs where COURSE_LIB_DATA names it; elsewhere the pinned sums are all that is checked."""
    assert set(loader.SPLITS) == {"train", "val", "test_2016_flickr", "test_2017_flickr", "test_2017_mscoco"}
    if "COURSE_LIB_DATA" not in os.environ:
        pytest.skip("COURSE_LIB_DATA is not set")
    corpus = multi30k(download=False)
    assert [len(corpus[split]) for split in ("train", "val", "test_2016_flickr")] == [29_000, 1_014, 1_000]
    assert all(all(pair) for pair in corpus["train"])


QUOTED = 3  # whole sentences of the corpus that a file may quote
SHORTEST = 40  # characters; shorter sentences can be anybody's


def test_no_sentence_of_it_is_in_the_project():
    """Its licence is not ours: a page may quote a few sentences, and no file holds the corpus, packed or not.

    Sentences that a line break cuts are not seen.
    """
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True)
    files = listed.stdout.split("\0")
    assert not [name for name in files if name.endswith((".gz", ".zip", ".parquet", ".npy"))]
    if "COURSE_LIB_DATA" not in os.environ:
        pytest.skip("COURSE_LIB_DATA is not set")
    corpus = multi30k(download=False)
    sentences = [s for split in ("train", "val", "test_2016_flickr") for pair in corpus[split] for s in pair]
    known = {}
    for sentence in sentences:
        if len(sentence) >= SHORTEST:
            known.setdefault(sentence[:SHORTEST], set()).add(sentence)
    starts = {start.split()[0] for start in known}
    assert len(known) > 50_000
    for name in filter(None, files):
        try:
            text = (ROOT / name).read_text(encoding="utf-8")
        except (UnicodeDecodeError, FileNotFoundError):
            continue
        places = (m.start() for m in re.finditer(r"\w\S*", text) if m.group() in starts)
        quoted = {s for i in places for s in known.get(text[i : i + SHORTEST], ()) if text.startswith(s, i)}
        assert len(quoted) <= QUOTED, (name, sorted(quoted))
