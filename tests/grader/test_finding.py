"""Folders of a class: which files are whose, and what every student is called."""

import json
import os
from pathlib import Path

import pytest
from handed_in import notebook_bytes

from course_grade.submission.submissions import read_submission, read_submissions


@pytest.fixture
def class_folder(tmp_path):
    folder = tmp_path / "class"

    def write(*names, text="def f(): return 1"):
        for name in names:
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(notebook_bytes(text) if name.endswith(".ipynb") else text.encode())
        return folder

    return write


def students(*paths, **options) -> list[str]:
    return [submission.student for submission in read_submissions(paths, **options)]


def test_each_file_and_each_folder_is_a_student_in_order_of_names(class_folder):
    folder = class_folder("zoe.py", "adam.ipynb", "mia/week/deep/a.py", "mia/b.ipynb", "read me.txt", "data.csv")
    found = list(read_submissions([folder]))
    assert [s.student for s in found] == ["adam", "data", "mia", "read me", "zoe"]
    found = [s for s in found if s.sources]
    assert [s.student for s in found] == ["adam", "mia", "zoe"]
    assert [source.name for source in found[1].sources] == ["b.ipynb", "a.py"]


def test_a_file_alone_is_a_student(class_folder):
    assert students(class_folder("zoe.py") / "zoe.py") == ["zoe"]


def test_a_whole_folder_may_be_one_students(class_folder):
    folder = class_folder("a.py", "sub/b.py")
    (submission,) = read_submissions([folder], as_one=True)
    assert (submission.student, len(submission.sources)) == ("class", 2)


def test_the_name_of_a_student_does_not_depend_on_how_the_path_is_written(class_folder, monkeypatch):
    folder = class_folder("zoe/a.py")
    monkeypatch.chdir(folder)
    assert students(Path()) == ["zoe"]
    assert students(Path(), as_one=True) == ["class"]
    assert students(Path("../class/")) == ["zoe"]


def test_several_paths_are_one_class(class_folder):
    folder = class_folder("zoe.py", "adam.py", "group/mia.py")
    assert students(folder / "zoe.py", folder / "adam.py", folder / "group") == ["adam", "mia", "zoe"]


def test_a_student_with_an_empty_folder_is_told_so(class_folder):
    folder = class_folder("zoe.py", "mia/notes.txt")
    (folder / "nils").mkdir()
    told = {s.student: s.problems for s in read_submissions([folder])}
    assert told == {
        "zoe": [],
        "mia": ["no .py or .ipynb file was handed in; found: notes.txt"],
        "nils": ["no .py or .ipynb file was handed in"],
    }


def test_what_computers_leave_in_folders_is_no_submission(class_folder):
    folder = class_folder(
        "zoe/a.py",
        "zoe/.ipynb_checkpoints/a-checkpoint.ipynb",
        "zoe/__pycache__/a.py",
        "zoe/__MACOSX/._a.py",
        "zoe/._a.py",
        "._zoe.py",
        ".git/config",
        "__MACOSX/._zoe.py",
        "zoe/module.py/readme",
    )
    for name in ("zoe/._a.py", "._zoe.py"):  # what macOS writes beside a file on a disk that is not its own
        (folder / name).write_bytes(b"\x00\x05\x16\x07\x00\x02\x00\x00Mac OS X        ")
    (submission,) = read_submissions([folder])
    assert [source.name for source in submission.sources] == ["a.py"]


def test_folders_that_tools_leave_are_no_student(class_folder):
    folder = class_folder("zoe.py", ".ipynb_checkpoints/zoe-checkpoint.ipynb", "__pycache__/x.py", ".venv/lib/m.py")
    assert students(folder) == ["zoe"]


def test_suffixes_in_capitals_are_read(class_folder):
    folder = class_folder("zoe.PY", "mia/A.PY")
    (folder / "nils.IPYNB").write_bytes(notebook_bytes("def f(): return 1"))
    found = list(read_submissions([folder], names=["f"]))
    assert [s.student for s in found] == ["mia", "nils", "zoe"]
    assert all(s.defined() == {"f"} for s in found)


def test_two_students_of_one_name_stay_two(class_folder):
    folder = class_folder("monday/zoe.py", "tuesday/zoe.py", "wednesday/zoe.ipynb", "wednesday/zoe/a.py")
    assert len(students(folder / "monday", folder / "tuesday")) == 2
    assert len(students(folder / "wednesday")) == 2
    assert len(students(folder / "monday", folder / "tuesday", folder / "wednesday")) == 4


def test_a_link_leads_to_nobody_elses_work(class_folder, tmp_path):
    folder = class_folder("zoe.py", "mia/a.py")
    (tmp_path / "secret.py").write_text("def f(): return 'secret'")
    os.symlink("zoe.py", folder / "mallory.py")
    os.symlink(folder / "mia", folder / "eve")
    os.symlink(tmp_path / "secret.py", folder / "mia" / "b.py")
    os.symlink(tmp_path, folder / "mia" / "up")
    found = list(read_submissions([folder]))
    assert [s.student for s in found] == ["eve", "mallory", "mia", "zoe"]
    assert [[source.name for source in s.sources] for s in found] == [[], [], ["a.py"], ["zoe.py"]]
    assert found[1].problems[0] == "mallory.py is a link; links are not followed"
    assert found[2].problems == ["b.py is a link; links are not followed", "up is a link; links are not followed"]


def test_links_in_a_circle_end(class_folder):
    folder = class_folder("mia/a.py")
    os.symlink(folder, folder / "mia" / "again")
    assert students(folder) == ["mia"]


def test_a_path_that_does_not_exist_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match="nowhere, which does not exist"):
        students(tmp_path / "nowhere")


@pytest.mark.parametrize("name", ["notes.txt", "sub.zip", ".hidden/a.py"])
def test_a_path_without_submissions_is_named(class_folder, name):
    folder = class_folder(name)
    for path in (folder, folder / name) if "/" not in name else (folder,):
        with pytest.raises(FileNotFoundError, match=r"expected \.py or \.ipynb files"):
            students(path)


def test_names_of_files_that_are_no_text_or_move_the_cursor_are_made_readable(class_folder):
    folder = class_folder("zoe.py")
    (folder / "\x1b[2J\u202escreen.py").write_text("")
    try:
        (folder / os.fsdecode(b"caf\xe9.py")).write_text("")
    except OSError:
        pytest.skip("this file system takes only names that are text")
    names = students(folder)
    assert len(names) == 3
    assert all(name.isprintable() for name in names)
    json.dumps(names).encode()


@pytest.mark.skipif(hasattr(os, "geteuid") and os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read_is_named(class_folder):
    folder = class_folder("zoe.py")
    (folder / "zoe.py").chmod(0)
    assert read_submission("zoe", [folder / "zoe.py"]).problems == ["zoe.py cannot be read: Permission denied"]


def test_a_file_that_vanishes_meanwhile_is_named(tmp_path):
    submission = read_submission("zoe", [tmp_path / "zoe.py"])
    assert submission.problems == ["zoe.py cannot be read: No such file or directory"]


def test_names_that_differ_in_bytes_that_are_no_text_stay_two(tmp_path):
    for name in (b"caf\xe8.py", b"caf\xe9.py"):
        with open(os.fsencode(tmp_path) + b"/" + name, "w") as file:
            file.write("def f(): return 1")
    (tmp_path / "eve.py").write_text("def f(): return 1")
    students = [s.student for s in read_submissions([tmp_path])]
    assert len(set(students)) == 3
    assert "eve" in students  # who shares no name keeps it


def test_a_folder_without_submissions_names_five_of_its_files_and_counts_the_others(class_folder):
    folder = class_folder(*(f"{name}.txt" for name in "abcdefg"))
    with pytest.raises(FileNotFoundError, match=r"it has only a\.txt, b\.txt, c\.txt, d\.txt, e\.txt and 2 more$"):
        students(folder)
