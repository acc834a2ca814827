"""Random folders of a class, random names, files and notebooks: reading them ends, and gives one row per student.

The examples are the same in every run. `COURSE_LIB_EXAMPLES=5000` tries that many others.
"""

import json
import os
import tempfile
import time
from pathlib import Path

import pytest
from handed_in import notebook_bytes
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from course_grade.grading.assignment import Assignment
from course_grade.grading.results import Result
from course_grade.grading.store import Store
from course_grade.submission.isolated_reader import LONGEST_PROBLEM, MOST_PROBLEMS
from course_grade.submission.submissions import find_submissions, ignored_files, read_each

MORE = int(os.environ.get("COURSE_LIB_EXAMPLES", "0"))
PROFILE = settings(
    max_examples=MORE or 60,
    derandomize=not MORE,
    database=None,
    deadline=None,  # the time of reading is asserted below, without that of making the files
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example],
)

# Names

SUFFIXES = [".py", ".ipynb", ".PY", ".Ipynb", "", ".txt", ".zip", ".ipynb.txt", ".py~", ".pyc"]
STEMS = st.one_of(
    st.sampled_from(["zoe", "Zoe", "Jos\u00e9", "Jose\u0301", "a b", "grading", "results", "submissions", "softmax"]),
    st.sampled_from([".git", "__pycache__", "__MACOSX", "._zoe", ".x", "__alice", ".ipynb_checkpoints", "-rf", "~"]),
    st.text(st.characters(exclude_characters="/\0", exclude_categories=["Cs"]), max_size=70),
    st.binary(max_size=20).map(lambda raw: os.fsdecode(raw.replace(b"/", b"").replace(b"\0", b""))),
    st.sampled_from(["𝔸" * 60, "\n\r\x1b[2J", "\u202e", "=cmd()", "<b>", "[red]", "%s%n", "x" * 240]),
)


def _fits(name: str) -> bool:
    return name not in {"", ".", ".."} and len(os.fsencode(name)) <= 255


NAMES = st.builds(str.__add__, STEMS, st.sampled_from(SUFFIXES)).filter(_fits)

# Contents

FRAGMENTS = st.sampled_from(
    [
        *("def softmax(scores, dim=-1):", "    return scores", "softmax = 1", "class softmax:", "\tpass"),
        *("from course_lib import softmax", "import *", "if __name__ == '__main__':", "softmax = softmax(softmax)"),
        *("x = (", ")", "'''", '"""', "\\", ";", "0;" * 500, "@", "x" * 5000, "[" * 300, "-" * 3000 + "1"),
        *("%matplotlib inline", "!ls", "%%time", "%%bash", "f?", "# coding: utf-7", "# -*- coding: latin-1 -*-"),
        *("\x0c", "\0", "é大\ud800", "return 1", "nonlocal x", "await x", "softmax.y = softmax", "del softmax"),
        *("[softmax := 1 for y in z]", "global softmax", "print 'x'", "match x:"),
    ]
)  # fmt: skip
CODE = st.lists(st.one_of(FRAGMENTS, st.text(max_size=30)), max_size=12).map("\n".join)
ENCODINGS = st.sampled_from(["utf-8", "utf-8-sig", "utf-16", "utf-32", "utf-16-be", "utf-32-le", "latin-1", "utf-7"])
ENCODED = st.builds(lambda text, encoding: text.encode(encoding, "replace"), CODE, ENCODINGS)
CELLS = st.lists(st.tuples(st.sampled_from(["code", "markdown", "raw", "", "heading"]), CODE), max_size=6)
JSON = st.one_of(st.none(), st.integers(), st.text(max_size=8), st.lists(st.dictionaries(st.just("source"), CODE)))
NOTEBOOKS = st.one_of(
    CELLS.map(lambda cells: notebook_bytes(*cells)),
    JSON.map(lambda value: json.dumps({"cells": value}).encode()),
    JSON.map(lambda value: json.dumps(value).encode()),
)
CONTENTS = st.one_of(ENCODED, NOTEBOOKS, st.binary(max_size=200), st.just(b"\x00\x05\x16\x07" + b"x" * 20))

# Trees: a file is bytes, a folder a dictionary, a link a text, a pipe nothing.

LEAVES = st.one_of(CONTENTS, CONTENTS, CONTENTS, st.sampled_from(["..", ".", "nowhere", "/dev/zero", "/"]), st.none())
TREES = st.dictionaries(
    NAMES,
    st.recursive(LEAVES, lambda inner: st.dictionaries(NAMES, inner, max_size=4), max_leaves=8),
    min_size=1,
    max_size=6,
)


def build(folder: str, tree: dict) -> None:
    for name, what in tree.items():
        path = os.path.join(folder, name)
        try:
            if isinstance(what, dict):
                os.mkdir(path)
                build(path, what)
            elif isinstance(what, bytes):
                with open(path, "xb") as file:
                    file.write(what)
            elif isinstance(what, str):
                os.symlink(what, path)
            else:
                os.mkfifo(path)
        except (FileExistsError, UnicodeEncodeError):  # this file system takes one name for another, or not at all
            continue


@pytest.mark.thorough
@PROFILE
@given(tree=TREES)
def test_reading_ends_with_one_row_per_student(tree):
    with tempfile.TemporaryDirectory(prefix="trees-") as folder:
        build(folder, {"class": {**tree, "last one.py": b"def softmax(scores): return scores"}})
        check(Path(folder))


def check(folder: Path) -> None:
    start = time.monotonic()
    submissions = list(read_each(find_submissions([folder / "class"])))
    assert time.monotonic() - start < 60

    # Each entry of the folder is one row, or is named as none.
    assert len(submissions) + len(ignored_files([folder / "class"])) == len(os.listdir(folder / "class"))
    names = {submission.student for submission in submissions}
    assert len(names) == len(submissions)
    assert all(name and name.isprintable() and str(folder) not in name for name in names)

    (last,) = (s for s in submissions if s.student.startswith("last one"))
    assert last.find("softmax", "attention") is not None  # whatever came before it

    store = Store(folder / "results", Assignment(seed=1))
    for submission in submissions:
        assert submission.sources or submission.problems  # nothing disappears without a word
        assert len(submission.problems) <= MOST_PROBLEMS + 1
        assert all(text.isprintable() and len(text) <= LONGEST_PROBLEM for text in submission.problems)
        json.dumps(submission.request({"softmax": "attention"})).encode()
        assert submission.broken("softmax") is not None
        assert len(submission.digest) == 64
        store.save(submission, Result(submission.student, []))
    assert all(store.load(submission) is not None for submission in submissions)
    assert len(list((folder / "results").glob("*.json"))) == len(submissions)
