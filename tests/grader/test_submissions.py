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


def test_the_chapters_notebook_counts_as_its_file(files):
    submission = files(masking_dot_ipynb=notebook_bytes("def f(): 1"), z_dot_py="def f(): 3")
    assert submission.find("f", "masking").name == "masking.ipynb"


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


def test_two_files_of_one_name_stay_two(tmp_path):
    for folder, number in (("a", 1), ("b", 2)):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "week.py").write_text(f"def g(): return {number}\ndef {folder}(): return g()")
    submission = read_submission("ada", sorted(tmp_path.rglob("*.py")), names=["a", "b"])
    assert [source.name for source in submission.sources] == ["a/week.py", "b/week.py"]
    assert len(submission.request({"a": "", "b": ""})["files"]) == 2


def test_more_statements_than_anybody_writes_are_refused_in_words(tmp_path):
    names = ", ".join(f"x{n}" for n in range(6000))
    path = tmp_path / "s.py"
    path.write_text("\n".join(f"x{n} = 0" for n in range(6000)) + f"\ndef f(): return [{names}]\ndef g(): return 1\n")
    submission = read_submission("s", [path], names=["f", "g"])
    request = submission.request({"f": "week", "g": "week"})
    assert submission.broken("f") == "f in s.py could not be read: it needs more than 5000 statements"
    assert [piece["names"] for piece in request["pieces"]] == [["g"]]


def test_the_digest_follows_names_and_bytes(tmp_path):
    def digest(**texts):
        for path in tmp_path.iterdir():
            path.unlink()
        for name, text in texts.items():
            (tmp_path / f"{name}.py").write_text(text)
        return read_submission("s", sorted(tmp_path.iterdir())).digest

    different = [{"a": "x"}, {"b": "x"}, {"a": "y"}, {"a": "x", "b": ""}, {"a": "", "b": "x"}, {"a": "xb", "b": ""}]
    assert len({digest(**files) for files in different}) == len(different)
    assert digest(a="x") == digest(a="x")


def test_the_newest_file_tells_when_it_was_handed_in(tmp_path):
    for name, when in (("a.py", 1000), ("b.py", 3000), ("c.py", 2000)):
        (tmp_path / name).write_text("x = 1")
        os.utime(tmp_path / name, (when, when))
    assert read_submission("s", sorted(tmp_path.glob("*.py"))).modified == 3000


def test_files_of_one_name_keep_paths_of_their_own(tmp_path):
    """Each becomes a module: files of two folders, and two files that are given by their paths."""
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "week.py").write_text("def f(): 1")
    for paths in ([tmp_path / "a", tmp_path / "b"], [tmp_path / "a/week.py", tmp_path / "b/week.py"]):
        (submission,) = read_submissions(paths, as_one=True, names=["f"])
        assert len({source.path for source in submission.sources}) == 2
