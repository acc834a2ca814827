"""What is promised where the kernel refuses a wall: files of others stay closed, and nothing runs as root."""

import json
import os
import subprocess
import sys

import pytest

pytestmark = [
    pytest.mark.skipif(
        not sys.platform.startswith("linux") or os.geteuid() != 0, reason="root of a Linux makes these environments"
    ),
    pytest.mark.thorough,
]

READS = "open({path!r}).read()"


def found_where(refused: str, code: str) -> dict:
    command = [sys.executable, "-m", "tests.grader.degraded", refused, code]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


@pytest.fixture
def neighbour(tmp_path):
    path = tmp_path / "neighbour.py"
    path.write_text("secret")
    for folder in (path, *path.parents):
        if folder.name.startswith(("pytest-", "test_", "neighbour")):
            folder.chmod(0o755)
    return str(path)


@pytest.mark.parametrize(
    ("refused", "level", "up"),
    [
        ("landlock", "full", {"limits", "user", "namespaces", "seccomp"}),
        ("seccomp", "partial", {"limits", "user", "namespaces", "landlock"}),
        ("readable,unshare", "partial", {"limits", "user", "landlock", "seccomp"}),
        ("landlock,seccomp", "partial", {"limits", "user", "namespaces"}),
        ("readable,unshare,landlock", "process", {"limits", "user", "seccomp"}),
    ],
)
def test_files_of_others_are_closed_at_every_level_but_the_lowest(refused, level, up, neighbour):
    found = found_where(refused, READS.format(path=neighbour))
    assert (found["level"], set(found["up"])) == (level, up)
    if level != "process":  # there, only the rights of files keep others out, and `course-lib grade` asks for more
        assert found["found"].startswith(("PermissionError", "FileNotFoundError"))


def test_nothing_runs_as_root():
    code = "import os\nraise KeyError(os.getuid())"
    assert int(found_where("readable,unshare", code)["found"].split()[1]) > 0
    assert int(found_where("landlock", code)["found"].split()[1]) > 0


def test_where_code_would_run_as_root_nothing_is_run(tmp_path):
    canary = tmp_path / "canary"
    if os.stat(os.path.expanduser("~")).st_mode & 1 or not sys.base_prefix.startswith(os.path.expanduser("~") + "/"):
        pytest.skip("Python lies where other users can read it")
    found = found_where("unshare", f"open({str(canary)!r}, 'w')")
    assert "submissions would run as root" in found["refused"]
    assert not canary.exists()
