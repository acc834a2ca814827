"""Result files are named after students, and students name themselves: any name gives a file name that works."""

import pytest

from course_grade.grading.assignment import Assignment
from course_grade.grading.results import Result
from course_grade.grading.store import Store
from course_grade.submission.submissions import Submission

NAMES = {
    "60 letters of four bytes": "𝔸" * 60,
    "200 letters of four bytes": "𐐷" * 200,
    "half a character at the limit": "a" + "𝔸" * 60,
    "slashes and dots": "../../etc/passwd",
    "control characters": "a\nb\x00c\x1b[2J",
    "half a character": "caf\udce9",
    "nothing": "",
    "a reserved name": "CON",
}


@pytest.mark.parametrize("name", NAMES.values(), ids=NAMES)
def test_a_result_is_kept_under_any_name(name, tmp_path):
    store = Store(tmp_path, Assignment(seed=1))
    submission = Submission(name, digest="d")
    store.save(submission, Result("s", []))
    assert store.load(submission) is not None
    path = store.path(submission)
    assert path.parent == tmp_path
    # The feedback page and the temporary file beside it get longer names than the result.
    assert len(path.name.encode()) <= 100


def test_names_that_look_alike_have_files_of_their_own(tmp_path):
    store = Store(tmp_path, Assignment(seed=1))
    names = ["Zoe", "zoe", "zoe!", "zoe?", "Jose\u0301", "Jos\u00e9", "𝔸" * 60, "𝔸" * 61]
    # Some file systems ignore case, and some the way in which a character is composed.
    assert len({store.path(Submission(name)).name.casefold() for name in names}) == len(names)
