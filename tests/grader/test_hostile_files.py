"""Files that are made to be expensive or odd: read within bounds, in a process of its own, and never lost without a
word."""

import json
import os
import re
import resource
import signal
import time

import pytest
from handed_in import answer, notebook_bytes

from course_grade.grading.assignment import Assignment, tasks_for
from course_grade.grading.grade import Grader
from course_grade.output.student_page import feedback_page
from course_grade.submission import isolated_reader
from course_grade.submission.isolated_reader import Reader
from course_grade.submission.submissions import HandedIn, find_submissions, read_each, read_python, read_submission

pytestmark = [
    pytest.mark.usefixtures("lent_fork_servers"),
    pytest.mark.skipif(not hasattr(os, "fork"), reason="grading needs fork"),
]

CODE = "def f(): return 1\n"


@pytest.fixture
def read(tmp_path):
    """Read one file, by its name and content."""

    def read(name: str, content: bytes | str):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return read_submission("eve", [path], names=["f"])

    return read


def json_of_lists(megabytes: int) -> str:
    return '{"cells":[' + "[]," * (megabytes * 2**20 // 3) + "[]]}"


EXPENSIVE = {
    "many statements on one line": ("a.py", "0;" * 500_000 + "\n" + CODE, "(more than 25000|too many) statements"),
    "many statements": ("a.py", "x = 1\n" * 150_000 + CODE, "it has more than 25000 statements"),
    "code of megabytes": ("a.py", "# " + "x" * 2**20 + "\n" + CODE, "it has 1024 KB of code; more than 1024"),
    "signs in front of signs": ("a.py", "x = " + "-" * 10**6 + "1\n" + CODE, "it is nested too deeply"),
    "a sum of half a million": ("a.py", "x = " + "1+" * 500_000 + "1\n" + CODE, "it is nested too deeply"),
    "half a million attributes": ("a.py", "x = a" + ".b" * 500_000 + "\n" + CODE, "it is nested too deeply"),
    "an expression 1,000 deep": ("a.py", "x = a" + "[0]" * 1000 + "\n" + CODE, "it is nested too deeply"),
    "brackets in brackets": ("a.py", "x = " + "(" * 10**5 + "\n" + CODE, "too many nested parentheses"),
    "an identifier of 300 KB": ("a.py", f"def {'n' * 300_000}(x, x): pass\n{CODE}", "duplicate argument 'x'"),
    "an argument of 300 KB": ("a.py", f"def g({'n' * 300_000}, {'n' * 300_000}): pass\n{CODE}", "duplicate argument"),
    "lists for cells": ("a.ipynb", json_of_lists(10), "it is not a readable notebook"),
    "lists of more memory": ("a.ipynb", json_of_lists(19), "needs more than 512 MB of memory|not a notebook"),
    "many cells": ("a.ipynb", notebook_bytes(*["x = 1"] * 6000, CODE), "it has 6001 cells; more than 5000"),
    "much code in cells": ("a.ipynb", notebook_bytes(*["#" * 5000] * 300, CODE), "KB of code; more than 1024"),
    "many statements in cells": ("a.ipynb", notebook_bytes(*["x;" * 300] * 100, CODE), "more than 25000 statements"),
    "deep JSON": ("a.ipynb", "[" * 10**6, "it is not a readable notebook"),
}


@pytest.mark.thorough
@pytest.mark.parametrize(("name", "content", "why"), EXPENSIVE.values(), ids=EXPENSIVE)
def test_an_expensive_file_is_read_in_bounds_and_said_to_be(name, content, why, read):
    before = resource.getrusage(resource.RUSAGE_SELF)
    submission = read(name, content)
    after = resource.getrusage(resource.RUSAGE_SELF)
    assert after.ru_utime - before.ru_utime < 1  # of the grader's own time
    assert re.search(why, submission.problems[0])
    assert max(map(len, submission.problems)) <= isolated_reader.LONGEST_PROBLEM
    assert submission.digest
    assert submission.modified


def test_an_honest_notebook_of_ten_megabytes_is_read(read):
    cells = [{"cell_type": "code", "source": CODE, "outputs": [{"data": {"image/png": "A" * 10**6}}]}] * 10
    submission = read("a.ipynb", json.dumps({"cells": cells}))
    assert (submission.problems, submission.defined()) == ([], {"f"})


def test_a_definition_that_needs_too_much_code_is_refused_and_the_others_are_kept(tmp_path):
    path = tmp_path / "a.py"
    path.write_text(f"TABLE = '{'x' * 200_000}'\ndef f(): return TABLE\ndef g(): return 1\n")
    submission = read_submission("eve", [path], names=["f", "g"])
    assert submission.broken("f") == "f in a.py could not be read: it needs more than 128 KB of code"
    assert [piece["names"] for piece in submission.request({"f": "a", "g": "a"})["pieces"]] == [["g"]]


# When the process that reads does not come to its end


def two(tmp_path) -> list[HandedIn]:
    (tmp_path / "eve").mkdir()
    for name in ("eve/a.py", "eve/b.py", "eve/c.py", "zoe.py"):
        (tmp_path / name).write_text(CODE)
    (tmp_path / "eve" / "b.py").write_text("x = " + "-" * 10**6 + "1\n" + "0;" * 200_000)
    return find_submissions([tmp_path])


@pytest.mark.parametrize(
    ("limit", "value", "why"),
    [
        ("CPU_SECONDS", 0, "takes more than 0 s of computing to read, and is not read"),
        ("WALL_SECONDS", -1.0, "takes longer than -1 s to read, and is not read"),
        ("LARGEST_ANSWER", 10, "has more than 0 MB of code, and is not read"),
    ],
)
def test_what_exceeds_a_limit_is_named_and_the_next_student_is_read(limit, value, why, tmp_path, monkeypatch):
    handed_in = two(tmp_path)
    with Reader() as reader:
        monkeypatch.setattr(isolated_reader, limit, value)
        eve = reader.read(handed_in[0].entries, ["f"])
        assert any(why in problem for problem in eve.problems)
        monkeypatch.undo()
        zoe = reader.read(handed_in[1].entries, ["f"])
    assert (zoe.problems, [s.name for s in zoe.sources]) == ([], ["zoe.py"])


def test_too_little_memory_costs_a_file_and_not_the_next_one(tmp_path, monkeypatch):
    (tmp_path / "a.ipynb").write_text(json_of_lists(15))
    (tmp_path / "b.py").write_text(CODE)
    monkeypatch.setattr(isolated_reader, "MEMORY", 2**27)
    submission = read_submission("eve", [tmp_path / "a.ipynb", tmp_path / "b.py"], names=["f"])
    assert submission.problems == ["a.ipynb: reading it needs more than 128 MB of memory"]
    assert submission.defined() == {"f"}


def test_a_reader_that_is_killed_costs_no_submission_and_none_is_left_behind(tmp_path):
    for name in ("adam", "eve", "zoe"):
        (tmp_path / f"{name}.py").write_text(CODE)
    with Reader() as reader:
        for path in sorted(tmp_path.iterdir()):
            os.kill(reader._process.pid, signal.SIGKILL)
            time.sleep(0.1)
            read = reader.read([path], ["f"])
            assert "f" in read.sources[0].slices
        pid = reader._process.pid
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


NOTHING = b'"cells": {}, "broken": [], "slices": {}, "imports": {}, "path": "a"}\n'
ANSWERS = [
    *(b"", b"[]\n", b"{}\n{", b'{"file": "x"}\n', b'{"file": 0, "shown": 3}\n', b'{"problem": 3}\n'),
    b'{"digest": "x", "modified": []}\n',
    b'{"source": 3, "pieces": [], ' + NOTHING,
    b'{"source": "a", "pieces": [[1]], ' + NOTHING,
    b'{"source": "a", "pieces": [], ' + NOTHING.replace(b'"slices": {}', b'"slices": {"f": [7]}'),
    b'{"source": "a", "pieces": [], ' + NOTHING.replace(b'"a"', b"7"),
]


@pytest.mark.parametrize("answer", ANSWERS)
def test_no_answer_of_the_reader_is_taken_for_what_it_seems(answer, tmp_path, monkeypatch):
    script = tmp_path / "reader.py"
    script.write_text(f"import sys\nsys.stdin.readline()\nsys.stdout.buffer.write({answer!r})\n")
    monkeypatch.setattr(isolated_reader, "SCRIPT", script)
    with Reader() as reader:
        read = reader.read([tmp_path / "a.py"], ["f"])
    assert read.sources == []
    assert "the process that reads it" in read.problems[0]


def test_submissions_are_read_one_after_another_while_the_first_are_looked_at(tmp_path):
    for number in range(3):
        (tmp_path / f"{number}.py").write_text(CODE)
    reading = read_each(find_submissions([tmp_path]), names=["f"])
    assert next(reading).student == "0"
    (tmp_path / "2.py").write_text("def f(: pass")
    assert [s.problems for s in reading] == [[], ["2.py could not be read: invalid syntax in line 1"]]


# Encodings

TEXT = "# Größe, 大きさ, \N{FACE WITH TEARS OF JOY}\ndef f(): return 'ä大'\n"


@pytest.mark.parametrize(
    "encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32", "utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be"]
)
def test_every_encoding_of_unicode_is_read(encoding, read):
    for mark in ("", "\ufeff") if encoding[-2:] in {"le", "be"} else ("",):
        assert answer(read("a.py", (mark + TEXT).encode(encoding)).sources[0]) == "ä大"
    cells = json.dumps({"cells": [{"cell_type": "code", "source": TEXT}]}, ensure_ascii=False)
    assert answer(read("a.ipynb", cells.encode(encoding)).sources[0]) == "ä大"


@pytest.mark.parametrize("encoding", ["latin-1", "cp1252", "koi8-r", "shift_jis", "utf-8", "mac-roman", "gb18030"])
def test_the_coding_line_counts(encoding, read):
    sign = {"koi8-r": "д", "shift_jis": "大", "gb18030": "大"}.get(encoding, "é")
    for lines in ("", "#!/usr/bin/env python\n"):
        text = f"{lines}# -*- coding: {encoding} -*-\ndef f(): return '{sign}'\n"
        submission = read("a.py", text.encode(encoding))
        assert (answer(submission.sources[0]), submission.problems) == (sign, [])


WRONG_LINE = "its coding line names no encoding that fits; it was read as UTF-8"
GUESSES = {f"# coding: {named}\n": ("utf-8", WRONG_LINE) for named in ("ascii", "no-such", "rot13", "hex", "utf-16")}
GUESSES[""] = ("latin-1", "it is not UTF-8 text, and was read as Latin-1; save it as UTF-8")


@pytest.mark.parametrize("line", GUESSES)
def test_a_guess_is_said_to_be_one(line, read):
    encoding, said = GUESSES[line]
    submission = read("a.py", f"{line}def f(): return 'é'".encode(encoding))
    assert (answer(submission.sources[0]), submission.problems) == ("é", [f"a.py: {said}"])


def test_a_damaged_file_is_said_to_be(read):
    for encoding in ("utf-16", "utf-32", "utf-16-le"):
        for name in ("a.py", "a.ipynb"):
            (problem,) = read(name, TEXT.encode(encoding) + b"\x00\xd8\x00").problems
            assert "save it as UTF-8" in problem


def test_zeros_in_a_file_do_not_make_it_utf_16():
    for zeros in (b"\0", b"\0" * 200):
        source = read_python("a.py", b"x = '" + zeros + b"'\ndef f(): return 1\n")
        assert source.broken[0][2] == {"f"}


# Files that would be lost without a word


def test_a_notebook_under_the_name_of_a_python_file_is_read(read):
    submission = read("a.py", b"\n" + notebook_bytes(CODE))
    assert answer(submission.sources[0]) == 1
    assert submission.request({"f": "a"})["siblings"] == {}
    assert submission.problems == ["a.py: it is a notebook and was read as one"]


def test_a_file_that_begins_with_a_dictionary_is_python(read):
    submission = read("a.py", '{"cells": 1}\n' + CODE)
    assert (submission.defined(), submission.problems) == ({"f"}, [])


def test_an_empty_file_is_said_to_be_empty_unless_another_lies_beside_it(read, tmp_path):
    for name, content in (("a.py", ""), ("a.py", "# to do\n"), ("a.ipynb", notebook_bytes(""))):
        assert read(name, content).problems == ["the submission contains no code"]
    (tmp_path / "b.py").write_text(CODE)
    assert read_submission("eve", [tmp_path], names=["f"]).problems == []


# Names that are imported


MODULES = {
    "from course_lib import f": "course_lib",
    "from course_lib.attention import f": "course_lib.attention",
    "from course_lib import softmax as f": "course_lib",
    "from course_lib import *": "course_lib",
    **dict.fromkeys(["import f", "from . import f", "from course_lib import g"], ""),
    "def g():\n    from course_lib import f": "",
}


@pytest.mark.parametrize("text", MODULES)
def test_a_name_that_is_imported_is_known_with_its_module(text, read):
    submission = read("a.py", text)
    assert submission.imports("f") == MODULES[text]
    assert submission.find("f", "a") is None


# As far as the page of a student


@pytest.fixture(scope="module")
def grader():
    with Grader(Assignment(tasks_for({"softmax"}), seed=3)) as grader:
        yield grader


N = "n" * 60_000
LONG = {
    "an argument": f"def softmax({N}, dim=-1):\n    return missing",
    "a name that is not defined": f"def softmax(scores, dim=-1):\n    return {N}",
    "a message": f"def softmax(scores, dim=-1):\n    raise ValueError('{N}')",
    "an exception": f"class {N}(Exception): pass\ndef softmax(scores, dim=-1):\n    raise {N}",
    "a function": f"def softmax(scores, dim=-1):\n    return f()\ndef f(): {N}()",
    "a syntax error": f"def softmax({N}, {N}): pass",
    "a decorator": f"@{N}\ndef softmax(scores, dim=-1):\n    return scores",
}


@pytest.mark.thorough
@pytest.mark.parametrize("text", LONG.values(), ids=LONG)
def test_a_long_identifier_does_not_make_a_long_page(text, tmp_path, grader):
    (tmp_path / "a.py").write_text(text)
    result = grader.grade(read_submission("eve", [tmp_path / "a.py"]))
    assert result.points == 0
    assert len(feedback_page(result, grader.assignment)) < 20_000


def test_an_exercise_that_is_imported_is_said_to_be(tmp_path, grader):
    (tmp_path / "a.py").write_text("from course_lib import softmax\n")
    (task,) = grader.grade(read_submission("eve", [tmp_path / "a.py"])).tasks
    assert task.status == "not attempted"
    assert task.note == "softmax is imported from course_lib, not written here"
    assert task.note in task.text
