"""Folders that somebody else packed: whatever lies in them costs their own student only, in words that say why."""

import ctypes
import json
import os
import stat
import sys
import time
from pathlib import Path

import pytest

from course_grade.submission.folder_listing import listing
from course_grade.submission.submissions import find_submissions, ignored_files, read_each, read_submissions

CODE = "def f(): return 1"


def far_below(eve: Path, *names: str) -> None:
    """A file in folders that are made step by step, since its path may be too long to be used as a whole."""
    here = os.getcwd()
    os.chdir(eve)
    for name in names:
        os.mkdir(name)
        os.chdir(name)
    Path("a.py").write_text(CODE)
    os.chdir(here)


def code_in(*names: str):
    """A maker of files with these names."""

    def make(eve: Path) -> None:
        for name in names:
            (eve / name).write_text(CODE)

    return make


def links_in_a_circle(eve: Path) -> None:
    (eve / "one.py").symlink_to("two.py")
    (eve / "two.py").symlink_to("one.py")
    (eve / "again").symlink_to(eve.parent)


def bytes_that_are_not_text(eve: Path) -> None:
    (eve / os.fsdecode(b"caf\xe9")).mkdir()
    (eve / os.fsdecode(b"caf\xe9") / os.fsdecode(b"caf\xe8.py")).write_text(CODE)


def more_entries_than_are_looked_at(eve: Path) -> None:
    for number in range(20_050):
        os.close(os.open(eve / f"{number}.txt", os.O_WRONLY | os.O_CREAT))


TREES = {  # how it is made, and what is said of it
    "letters of four bytes": (code_in("𝔸" * 60 + ".py"), None),
    "folders in folders": (lambda eve: far_below(eve, *["d"] * 1500), "folders more than 40 deep are not read: d"),
    "paths too long": (lambda eve: far_below(eve, *["n" * 250] * 20), None),
    "links in a circle": (links_in_a_circle, "one.py is a link; links are not followed"),
    "bytes that are not text": (bytes_that_are_not_text, None),
    "names that move the cursor": (code_in("a\nb\r\x1b[2J\u202e.py"), None),
    "names that look alike": (code_in("Jose\u0301.py", "Jos\u00e9.py", "Week.py", "week.py"), None),
    "pipes": (lambda eve: os.mkfifo(eve / "pipe.py"), "pipe.py is not a regular file, and is not read"),
    "many files": (
        code_in(*(f"f{number}.py" for number in range(400))),
        "400 files of code were handed in; only 300 are read, those in the fewest folders",
    ),
    "more entries than are looked at": (
        more_entries_than_are_looked_at,
        "more than 20000 files were handed in; the others are not read",
    ),
    "a folder called like a file": (lambda eve: (eve / "a.py").mkdir(), "no .py or .ipynb file was handed in"),
}


@pytest.fixture
def folder(tmp_path):
    """A class of two, of whom eve packs what she likes."""
    folder = tmp_path / "class"
    (folder / "eve").mkdir(parents=True)
    (folder / "zoe.py").write_text(CODE)
    yield folder
    os.system(f"rm -rf -- '{folder}'")  # pytest's own way of removing folders ends at paths that are too long


@pytest.mark.parametrize("kind", TREES)
def test_a_tree_costs_its_own_student_only(kind, folder):
    make, expected = TREES[kind]
    make(folder / "eve")
    start = time.monotonic()
    eve, zoe = read_submissions([folder], names=["f"])
    assert time.monotonic() - start < 30
    assert (zoe.student, zoe.problems, zoe.defined()) == ("zoe", [], {"f"})
    if expected is None:
        assert (eve.problems, eve.defined()) == ([], {"f"})
    else:
        assert expected in eve.problems
    assert all(text.isprintable() for s in eve.sources for text in (s.name, *eve.problems))
    names = [source.name for source in eve.sources]
    assert len(set(names)) == len(names)
    json.dumps([names, eve.request({"f": "week"})]).encode()


def test_folders_are_read_down_to_a_depth_of_40(folder):
    for deep, shown, problems in ((40, ["week.py"], []), (41, [], ["folders more than 40 deep are not read: d"])):
        bottom = folder.joinpath(f"{deep}", *["d"] * deep)
        bottom.mkdir(parents=True)
        (bottom / "week.py").write_text(CODE)
        found = listing([str(folder / f"{deep}")])
        assert ([file.shown for file in found.files], found.problems) == (shown, problems)


def test_of_what_was_meant_as_code_five_are_named_and_the_others_counted(folder):
    """Only these, beside code: handing in pictures or texts is not a mistake."""
    names = ["0.zip", "1.ipynb.txt", "2.PY.bak", "3.tar.gz", "4.zip", "5.zip", "6.zip"]
    for name in ("week.py", "notes.txt", "plot.png", *names):
        (folder / "eve" / name).write_text("")
        named = [n for n in names if (folder / "eve" / n).exists()]
        more = f" and {len(named) - 5} more" if len(named) > 5 else ""
        problem = f"not read, since only .py and .ipynb files are: {', '.join(named[:5])}{more}"
        assert listing([str(folder / "eve")]).problems == ([problem] if named else [])


def without_privileges(work) -> object:
    """What a function returns in a process that may read only what everybody may, even where root runs the tests."""
    reading, writing = os.pipe()
    pid = os.fork()
    if not pid:
        status = 1
        try:
            if os.geteuid() == 0:
                for capability in (1, 2):  # to read what the mode forbids: CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH
                    assert ctypes.CDLL(None).prctl(24, capability, 0, 0, 0) == 0  # for programs that it starts
            os.write(writing, json.dumps(work()).encode())
            status = 0
        finally:
            os._exit(status)
    os.close(writing)
    with open(reading, "rb") as file:
        answer = file.read()
    assert os.waitpid(pid, 0)[1] == 0
    return json.loads(answer)


@pytest.mark.skipif(sys.platform != "linux", reason="drops privileges in Linux's way")
@pytest.mark.parametrize("mode", [0o000, 0o444, 0o111])
def test_a_folder_that_may_not_be_read_costs_its_own_student_only(mode, folder):
    eve = folder / "eve"
    (eve / "a.py").write_text(CODE)
    (eve / "closed").mkdir()
    (eve / "closed" / "b.py").write_text(CODE)
    (folder / "closed").mkdir()
    for path in (eve / "closed", folder / "closed"):
        path.chmod(mode)

    def work():
        return {s.student: [s.problems, sorted(s.defined())] for s in read_submissions([folder], names=["f"])}

    told = without_privileges(work)
    for path in (eve / "closed", folder / "closed"):
        path.chmod(stat.S_IRWXU)
    assert told["zoe"] == [[], ["f"]]
    assert told["eve"][1] == ["f"]
    if mode != 0o444:  # its names may be read then, and what they stand for may not
        assert told["eve"][0] == ["closed cannot be read: Permission denied"]
        assert told["closed"][0] == ["closed cannot be read: Permission denied"]
    else:
        assert told["eve"][0] == ["b.py cannot be read: Permission denied"]


def test_files_that_vanish_between_listing_and_reading_are_named(folder):
    handed_in = find_submissions([folder])
    os.rmdir(folder / "eve")
    (folder / "zoe.py").unlink()
    told = {s.student: s.problems for s in read_each(handed_in)}
    assert told == {
        "eve": ["eve cannot be read: No such file or directory"],
        "zoe": ["zoe.py cannot be read: No such file or directory"],
    }


# Names


def test_no_beginning_of_a_name_is_special(folder):
    os.rmdir(folder / "eve")
    for name in ("__alice.py", ".bob.py", "._carl.py", ".py", "__init__.py", "-e.py", "..dora.py"):
        (folder / name).write_text(CODE)
    (folder / "__eva").mkdir()
    (folder / "__eva" / ".week.py").write_text(CODE)
    found = {s.student: s.defined() for s in read_submissions([folder], names=["f"])}
    names = ["__alice", ".bob", "._carl", ".py", "__init__", "-e", "..dora", "__eva", "zoe"]
    assert found == {name: {"f"} for name in names}


def test_folders_that_tools_leave_are_listed(folder):
    for name in (".git", ".ipynb_checkpoints", "__pycache__", "__MACOSX"):
        (folder / name).mkdir()
        (folder / name / "a.py").write_text(CODE)
    (folder / "._zoe.py").write_bytes(b"\x00\x05\x16\x07 from a Mac")
    assert [s.student for s in read_submissions([folder])] == ["eve", "zoe"]
    assert ignored_files([folder]) == ["._zoe.py", ".git", ".ipynb_checkpoints", "__MACOSX", "__pycache__"]


def test_students_of_one_name_are_told_apart_without_absolute_paths(tmp_path):
    groups = [tmp_path / group / "week1" for group in ("a", "b")]
    for group in groups:
        group.mkdir(parents=True)
        (group / "zoe.py").write_text(CODE)
        (group / "Jose\u0301.py").write_text(CODE)
    (groups[0] / "Jos\u00e9.py").write_text(CODE)
    students = [s.student for s in read_submissions(groups)]
    assert students == ["a/week1/José.py", "a/week1/José.py (2)", "a/week1/zoe.py", "b/week1/José.py", "b/week1/zoe.py"]


def test_a_path_that_is_given_twice_is_graded_once(folder):
    paths = [folder / "zoe.py", folder, folder / "eve" / ".." / "zoe.py"]
    assert [s.student for s in read_submissions(paths)] == ["eve", "zoe"]


def test_a_student_who_handed_in_no_code_has_a_row_with_the_reason(folder):
    for name in ("work.zip", "week.ipynb.txt", "week.pdf", "notes.txt", "week.py.docx"):
        (folder / name).mkdir()
        (folder / name / name).write_bytes(b"x")
        (folder / f"adam {name}").write_bytes(b"x")
        found = {s.student: s.problems for s in read_submissions([folder])}
        assert found[name] == [f"no .py or .ipynb file was handed in; found: {name}"]
        assert [f"no .py or .ipynb file was handed in; found: adam {name}"] in found.values()
    assert (found["zoe"], found["eve"]) == ([], ["no .py or .ipynb file was handed in"])
    assert len(found) == 12
