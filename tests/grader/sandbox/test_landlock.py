"""Landlock, seen from inside of a real submission's process."""

import os

from sandboxes import code_of, problem_in

import course_lib
from course_grade.sandbox.session import Session


def test_files_of_others_cannot_be_read_listed_or_removed(landlock_only, neighbour):
    path, new = str(neighbour), str(neighbour.parent / "new")
    for code in (
        f"open({path!r}).read()",
        f"open({path!r}, 'a')",
        f"os.listdir({str(neighbour.parent)!r})",
        f"os.remove({path!r})",
        f"os.rename({path!r}, 'mine')",
        f"os.link({path!r}, 'mine')",
        f"os.truncate({path!r}, 0)",
        f"open({new!r}, 'w')",
        f"os.mkdir({new!r})",
    ):
        problem = problem_in(landlock_only, f"import os\n{code}")
        assert problem, code
        # EXDEV: a rename or a link from one folder to another.
        assert problem.type == "PermissionError" or "cross-device" in problem.message, (code, problem)
    assert [p.name for p in neighbour.parent.iterdir()] == ["neighbour.py"]
    assert neighbour.read_text() == "secret"


def test_the_machines_own_files_cannot_be_read(landlock_only):
    places = ("/etc/passwd", "/etc/hostname", "/proc/1/cmdline", "/proc/self/environ", "/tmp", "/")
    for path in filter(os.path.exists, places):
        reading = f"os.listdir({path!r})" if os.path.isdir(path) else f"open({path!r}).read()"
        assert problem_in(landlock_only, f"import os\n{reading}").type == "PermissionError", path


def test_python_and_the_package_can_be_read_and_not_written(landlock_only):
    mine = course_lib.__file__
    for module in ("wave", "sqlite3", "course_kit.measuring", "torch.nn.utils.parametrizations"):
        assert problem_in(landlock_only, f"import {module}") is None
    assert problem_in(landlock_only, f"open({mine!r}).read()") is None
    for place, mode in ((mine, "a"), (f"{mine}.new", "w")):
        assert problem_in(landlock_only, f"open({place!r}, {mode!r})").type == "PermissionError"


def test_the_scratch_folder_takes_plain_files_and_folders_only(landlock_only):
    good = "with open('note', 'w') as f: f.write('x')\nassert open('note').read() == 'x'\nos.remove('note')"
    assert problem_in(landlock_only, f"import os\n{good}\nos.mkdir('folder')\nos.rmdir('folder')") is None
    for code in ("os.symlink('/etc/passwd', 'link')", "os.mkfifo('pipe')"):
        assert problem_in(landlock_only, f"import os\n{code}").type == "PermissionError", code


def test_the_folder_of_another_submission_is_out_of_reach(landlock_only):
    with Session(landlock_only) as one, Session(landlock_only) as other:
        one.load(code_of("with open('note', 'w') as f: f.write('x')"))
        assert os.listdir(one.scratch) == ["note"]
        assert other.load(code_of(f"open({one.scratch!r} + '/note')"))["it"]["it"].type == "PermissionError"
