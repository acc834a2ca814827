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


def test_a_file_alone_is_a_student_and_a_whole_folder_may_be_one(class_folder):
    folder = class_folder("zoe.py", "sub/b.py")
    assert students(folder / "zoe.py") == ["zoe"]
    (submission,) = read_submissions([folder], as_one=True)
    assert (submission.student, len(submission.sources)) == ("class", 2)


def test_the_name_of_a_student_does_not_depend_on_how_the_path_is_written(class_folder, monkeypatch):
    monkeypatch.chdir(class_folder("zoe/a.py"))
    assert students(Path()) == students(Path("../class/")) == ["zoe"]
    assert students(Path(), as_one=True) == ["class"]


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


def test_what_computers_and_tools_leave_in_folders_is_no_submission(class_folder):
    left = (".ipynb_checkpoints/a-checkpoint.ipynb", "__pycache__/a.py", "__MACOSX/._a.py", "._a.py", ".venv/lib/m.py")
    folder = class_folder("zoe/a.py", ".git/config", "zoe/module.py/readme", *left, *(f"zoe/{name}" for name in left))
    for name in ("zoe/._a.py", "._a.py"):  # what macOS writes beside a file on a disk that is not its own
        (folder / name).write_bytes(b"\x00\x05\x16\x07\x00\x02\x00\x00Mac OS X        ")
    (submission,) = read_submissions([folder])
    assert [source.name for source in submission.sources] == ["a.py"]


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


def test_a_link_leads_to_nobody_elses_work_and_in_no_circle(class_folder, tmp_path):
    folder = class_folder("zoe.py", "mia/a.py")
    (tmp_path / "secret.py").write_text("def f(): return 'secret'")
    os.symlink("zoe.py", folder / "mallory.py")
    os.symlink(folder / "mia", folder / "eve")
    os.symlink(tmp_path / "secret.py", folder / "mia" / "b.py")
    os.symlink(folder, folder / "mia" / "up")
    found = list(read_submissions([folder]))
    assert [s.student for s in found] == ["eve", "mallory", "mia", "zoe"]
    assert [[source.name for source in s.sources] for s in found] == [[], [], ["a.py"], ["zoe.py"]]
    assert found[1].problems[0] == "mallory.py is a link; links are not followed"
    assert found[2].problems == ["b.py is a link; links are not followed", "up is a link; links are not followed"]


def test_a_path_that_does_not_exist_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match="nowhere, which does not exist"):
        students(tmp_path / "nowhere")


@pytest.mark.parametrize("name", ["notes.txt", "sub.zip", ".hidden/a.py"])
def test_a_path_without_submissions_is_named(class_folder, name):
    folder = class_folder(name)
    for path in (folder, folder / name) if "/" not in name else (folder,):
        with pytest.raises(FileNotFoundError, match=r"expected \.py or \.ipynb files"):
            students(path)


def test_a_folder_without_submissions_names_five_of_its_files_and_counts_the_others(class_folder):
    folder = class_folder(*(f"{name}.txt" for name in "abcdefg"))
    with pytest.raises(FileNotFoundError, match=r"it has only a\.txt, b\.txt, c\.txt, d\.txt, e\.txt and 2 more$"):
        students(folder)


def test_names_that_are_no_text_or_move_the_cursor_are_made_readable_and_stay_different(class_folder):
    folder = class_folder("eve.py", "\x1b[2J\u202escreen.py")
    try:
        for name in (b"caf\xe8.py", b"caf\xe9.py"):
            (folder / os.fsdecode(name)).write_text("def f(): return 1")
    except OSError:
        pytest.skip("this file system takes only names that are text")
    names = students(folder)
    assert len(set(names)) == 4
    assert "eve" in names  # who shares no name keeps it
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
