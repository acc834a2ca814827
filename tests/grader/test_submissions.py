"""Several files of one student: which counts, what is sent to the process that runs them, and when they changed."""

import json
import os

import pytest
from handed_in import answer, notebook_bytes

from course_grade.submission.submissions import Submission, read_python, read_submission, read_submissions


@pytest.fixture
def files(tmp_path):
    """Files of one student, by name."""

    def write(**texts) -> Submission:
        folder = tmp_path / "student"
        for name, text in texts.items():
            path = folder / name.replace("__", "/").replace("_dot_", ".")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(text if isinstance(text, bytes) else text.encode())
        (submission,) = read_submissions([folder], as_one=True, names=["f", "g"])
        return submission

    return write


def test_the_file_of_the_chapter_counts_and_otherwise_the_last_by_name(files):
    submission = files(a_dot_py="def f(): 1", masking_dot_py="def f(): 2", z_dot_py="def f(): 3\ndef g(): 3")
    assert submission.find("f", "masking").name == "masking.py"
    assert submission.find("f", "transformer").name == "z.py"
    assert submission.find("g", "masking").name == "z.py"
    assert submission.find("nobody", "masking") is None
    submission = files(efficiency_dot_ipynb=notebook_bytes("def f(): 1"))
    assert submission.find("f", "efficiency").name == "efficiency.ipynb"


def test_one_file_may_import_another(files):
    submission = files(week_dot_py="from helpers import g\ndef f(): return g()", helpers_dot_py="def g(): return 1")
    request = submission.request({"f": "week"})
    assert [piece["code"] for piece in request["pieces"]] == ["from helpers import g", "def f(): return g()"]
    assert request["siblings"]["helpers.py"] == ("helpers.py", "def g(): return 1")


def test_a_statement_that_two_exercises_need_is_sent_once(files):
    submission = files(week_dot_py="import math\ndef f(): return math.pi\ndef g(): return math.e")
    pieces = submission.request({"f": "week", "g": "week", "missing": "week"})["pieces"]
    assert sorted(piece["code"] for piece in pieces) == [
        "def f(): return math.pi",
        "def g(): return math.e",
        "import math",
    ]


def test_what_a_statement_changes_is_put_down_to_it(files):
    """If it fails, the report on that definition says why."""
    text = "SCALES = [1]\nSCALES[0] += 1\ndef f(): return SCALES\nf.scale = 1 / 0\n"
    here = Submission("ada", [read_python("week.py", text.encode())])  # the other is read in another process
    for submission in (files(week_dot_py=text), here):
        pieces = submission.request({"f": "week"})["pieces"]
        named = {piece["line"]: piece["names"] for piece in pieces}
        assert named == {1: ["SCALES"], 2: ["SCALES"], 3: ["f"], 4: ["f"]}


def test_a_request_travels_as_json(files):
    submission = files(n_dot_ipynb=notebook_bytes("def f(): return 'é\\ud800'", "x = '\ud800'"))
    assert json.loads(json.dumps(submission.request({"f": "n"})))["pieces"][0]["names"] == ["f"]


def test_broken_files_do_not_disturb_the_others(files):
    submission = files(a_dot_ipynb=b"{", b_dot_py="def f(: pass", c_dot_py="def f(): return 1", d_dot_py=b"\xff\x00")
    assert answer(submission.find("f", "week")) == 1
    assert submission.problems == [
        "a.ipynb: it is not a readable notebook (damaged, or saved incompletely?)",
        "b.py could not be read: invalid syntax in line 1",
        "d.py could not be read: source code string cannot contain null bytes",
        "d.py: it is not UTF-8 text, and was read as Latin-1; save it as UTF-8",
    ]


def test_two_files_of_one_name_stay_two_modules(tmp_path):
    """Whether their folders are given or their paths."""
    for name, number in (("a", 1), ("b", 2)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "week.py").write_text(f"def g(): return {number}\ndef {name}(): return g()")
    for paths in ([tmp_path / "a", tmp_path / "b"], [tmp_path / "a/week.py", tmp_path / "b/week.py"]):
        (submission,) = read_submissions(paths, as_one=True, names=["a", "b"])
        assert len({source.path for source in submission.sources}) == 2
        assert len(submission.request({"a": "", "b": ""})["files"]) == 2


def test_more_statements_than_anybody_writes_are_refused_in_words(tmp_path):
    names = ", ".join(f"x{n}" for n in range(6000))
    path = tmp_path / "s.py"
    path.write_text("\n".join(f"x{n} = 0" for n in range(6000)) + f"\ndef f(): return [{names}]\ndef g(): return 1\n")
    submission = read_submission("s", [path], names=["f", "g"])
    request = submission.request({"f": "week", "g": "week"})
    assert submission.broken("f") == "f in s.py could not be read: it needs more than 5000 statements"
    assert [piece["names"] for piece in request["pieces"]] == [["g"]]


def test_the_digest_follows_names_and_bytes_and_the_newest_file_tells_when_it_was_handed_in(tmp_path):
    def read(**texts):
        for path in tmp_path.iterdir():
            path.unlink()
        for when, (name, text) in enumerate(texts.items()):
            (tmp_path / f"{name}.py").write_text(text)
            os.utime(tmp_path / f"{name}.py", (1000 - when, 1000 - when))
        return read_submission("s", sorted(tmp_path.iterdir()))

    different = [{"a": "x"}, {"b": "x"}, {"a": "y"}, {"b": "x", "a": ""}, {"a": "x", "b": ""}, {"a": "xb", "b": ""}]
    assert len({read(**files).digest for files in different}) == len(different)
    assert read(a="x").digest == read(a="x").digest
    assert [read(**files).modified for files in ({"a": "", "b": "", "c": ""}, {"c": "", "b": "", "a": ""})] == [
        1000
    ] * 2
