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


def inside(folder: Path, *names: str) -> int:
    """An open folder below another one, made step by step, since its path may be too long to be used as a whole."""
    handle = os.open(folder, os.O_RDONLY)
    for name in names:
        os.mkdir(name, dir_fd=handle)
        inner = os.open(name, os.O_RDONLY, dir_fd=handle)
        os.close(handle)
        handle = inner
    return handle


def write_at(handle: int, name: str) -> None:
    with open(os.open(name, os.O_WRONLY | os.O_CREAT, 0o600, dir_fd=handle), "w") as file:
        file.write(CODE)
    os.close(handle)


def letters_of_four_bytes(eve: Path) -> None:
    (eve / ("𝔸" * 60 + ".py")).write_text(CODE)


def folders_in_folders(eve: Path) -> None:
    write_at(inside(eve, *["d"] * 1500), "a.py")


def paths_too_long(eve: Path) -> None:
    write_at(inside(eve, *["n" * 250] * 20), "a.py")


def links_in_a_circle(eve: Path) -> None:
    (eve / "one.py").symlink_to("two.py")
    (eve / "two.py").symlink_to("one.py")
    (eve / "again").symlink_to(eve.parent)


def bytes_that_are_not_text(eve: Path) -> None:
    (eve / os.fsdecode(b"caf\xe9")).mkdir()
    (eve / os.fsdecode(b"caf\xe9") / os.fsdecode(b"caf\xe8.py")).write_text(CODE)


def names_that_move_the_cursor(eve: Path) -> None:
    (eve / "a\nb\r\x1b[2J\u202e.py").write_text(CODE)


def names_that_look_alike(eve: Path) -> None:
    for name in ("Jose\u0301.py", "Jos\u00e9.py", "Week.py", "week.py"):
        (eve / name).write_text(CODE)


def pipes_and_sockets(eve: Path) -> None:
    os.mkfifo(eve / "pipe.py")


def many_files(eve: Path) -> None:
    for number in range(400):
        (eve / f"f{number}.py").write_text(CODE)


def more_entries_than_are_looked_at(eve: Path) -> None:
    for number in range(20_050):
        os.close(os.open(eve / f"{number}.txt", os.O_WRONLY | os.O_CREAT))


def a_folder_called_like_a_file(eve: Path) -> None:
    (eve / "a.py").mkdir()


TREES = {
    letters_of_four_bytes: None,
    folders_in_folders: "folders more than 40 deep are not read: d",
    paths_too_long: None,
    links_in_a_circle: "one.py is a link; links are not followed",
    bytes_that_are_not_text: None,
    names_that_move_the_cursor: None,
    names_that_look_alike: None,
    pipes_and_sockets: "pipe.py is not a regular file, and is not read",
    many_files: "400 files of code were handed in; only 300 are read, those in the fewest folders",
    more_entries_than_are_looked_at: "more than 20000 files were handed in; the others are not read",
    a_folder_called_like_a_file: "no .py or .ipynb file was handed in",
}


@pytest.fixture
def folder(tmp_path):
    """A class of two, of whom eve packs what she likes."""
    folder = tmp_path / "class"
    (folder / "eve").mkdir(parents=True)
    (folder / "zoe.py").write_text(CODE)
    yield folder
    os.system(f"rm -rf -- '{folder}'")  # pytest's own way of removing folders ends at paths that are too long


@pytest.mark.parametrize("make", TREES, ids=lambda make: make.__name__)
def test_a_tree_costs_its_own_student_only(make, folder):
    make(folder / "eve")
    start = time.monotonic()
    eve, zoe = read_submissions([folder], names=["f"])
    assert time.monotonic() - start < 30
    assert (zoe.student, zoe.problems, zoe.defined()) == ("zoe", [], {"f"})
    expected = TREES[make]
    if expected is None:
        assert (eve.problems, eve.defined()) == ([], {"f"})
    else:
        assert expected in eve.problems
    assert all(text.isprintable() for s in eve.sources for text in (s.name, *eve.problems))
    names = [source.name for source in eve.sources]
    assert len(set(names)) == len(names)
    json.dumps([names, eve.request({"f": "week"})]).encode()


@pytest.mark.parametrize("deep", [39, 40, 41])
def test_folders_are_read_down_to_a_depth_of_40(folder, deep):
    bottom = folder.joinpath("eve", *["d"] * deep)
    bottom.mkdir(parents=True)
    (bottom / "week.py").write_text(CODE)
    found = listing([str(folder / "eve")])
    assert [file.shown for file in found.files] == (["week.py"] if deep <= 40 else [])
    assert found.problems == ([] if deep <= 40 else ["folders more than 40 deep are not read: d"])


@pytest.mark.parametrize(("archives", "listed"), [(1, ""), (5, ""), (6, " and 1 more"), (8, " and 3 more")])
def test_of_what_was_meant_as_code_five_are_named_and_the_others_counted(folder, archives, listed):
    """Only these, beside code: handing in pictures or texts is not a mistake."""
    (folder / "eve" / "week.py").write_text(CODE)
    names = [f"{number}.zip" for number in range(archives)]
    for name in [*names, "notes.txt", "plot.png"]:
        (folder / "eve" / name).write_text("")
    problem = f"not read, since only .py and .ipynb files are: {', '.join(names[:5])}{listed}"
    assert listing([str(folder / "eve")]).problems == [problem]


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


@pytest.mark.parametrize("name", ["work.zip", "week.ipynb.txt", "week.pdf", "notes.txt", "week.py.docx"])
def test_a_student_who_handed_in_no_code_has_a_row_with_the_reason(name, folder):
    (folder / "eve" / name).write_bytes(b"x")
    (folder / f"adam {name}").write_bytes(b"x")
    found = {s.student: s.problems for s in read_submissions([folder])}
    assert found.pop("zoe") == []
    assert found.pop("eve") == [f"no .py or .ipynb file was handed in; found: {name}"]
    assert list(found.values()) == [[f"no .py or .ipynb file was handed in; found: adam {name}"]]


@pytest.mark.parametrize("name", ["softmax.ipynb.txt", "week.PY.bak", "all.zip", "more.tar.gz"])
def test_code_under_another_name_is_named_beside_code_that_is_read(name, folder):
    (folder / "eve" / "week.py").write_text(CODE)
    (folder / "eve" / name).write_bytes(b"x")
    (folder / "eve" / "data.csv").write_bytes(b"x")
    eve, _ = read_submissions([folder])
    assert eve.problems == [f"not read, since only .py and .ipynb files are: {name}"]
