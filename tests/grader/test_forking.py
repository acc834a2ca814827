"""What makes a submission's process cheap to start: large pages, one fork in place of two, nothing set up twice."""

import os
import re
import sys
from pathlib import Path
from unittest.mock import Mock

import pytest
import torch

from course_grade.sandbox import child, large_pages
from course_grade.sandbox.large_pages import move_to_large_pages
from course_grade.sandbox.namespaces import next_child_has_own_processes
from course_grade.sandbox.session import ForkServer, Session
from course_grade.sandbox.walls import Limits
from tests.grader.session_code import code_of

pytestmark = [
    pytest.mark.thorough,
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="large pages and namespaces are Linux's"),
]

RELEASE = tuple(map(int, re.findall(r"\d+", os.uname().release)[:2]))
LARGE = Path("/sys/kernel/mm/transparent_hugepage/enabled")
CAN_COLLAPSE = LARGE.exists() and "[never]" not in LARGE.read_text() and RELEASE >= (6, 1)


def in_child(action):
    """What the action returns in a forked process, as text."""
    read, write = os.pipe()
    if not (pid := os.fork()):
        os.write(write, str(action()).encode())
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as pipe:
        answer = pipe.read()
    os.waitpid(pid, 0)
    return answer


def in_large_pages() -> int:
    """Kilobytes."""
    return int(re.search(r"AnonHugePages: +(\d+)", Path("/proc/self/smaps_rollup").read_text())[1])


def test_memory_moves_to_large_pages_and_keeps_what_it_holds():
    numbers = torch.arange(4 * 2**20, dtype=torch.int64)  # 32 MB
    numbers[1::2].mul_(3)  # every page is written to
    expected = numbers.tolist()[:: 2**14]
    before = in_large_pages()
    # In a process of its own: the tests' memory stays as it is.
    moved, large = map(int, in_child(lambda: f"{move_to_large_pages()} {in_large_pages()}").split())
    if not CAN_COLLAPSE:
        assert moved == 0
        pytest.skip("this kernel cannot collapse pages (before 6.1), or large pages are switched off")
    assert moved % 2**21 == 0
    assert (large - before) * 1024 >= 16 * 2**20
    assert eval(in_child(lambda: move_to_large_pages() and numbers.tolist()[:: 2**14])) == expected


def test_only_private_writable_memory_that_belongs_to_no_file_is_moved(monkeypatch):
    maps = (
        "55d0c0000000-55d0c8000000 rw-p 00000000 00:00 0                          [heap]\n"
        "7f0000000000-7f0000400000 rw-p 00000000 00:00 0 \n"
        "7f1000000000-7f1000400000 r--p 00000000 00:00 0 \n"
        "7f2000000000-7f2000400000 rw-s 00000000 00:01 5                          /dev/zero (deleted)\n"
        "7f3000000000-7f3000400000 rw-p 00100000 fe:00 77                         /usr/lib/libc.so.6\n"
        "7ffd00000000-7ffd00400000 rw-p 00000000 00:00 0                          [stack]\n"
    )
    monkeypatch.setattr(Path, "read_text", lambda *args, **options: maps)
    assert large_pages._areas() == [(0x55D0C0000000, 0x55D0C8000000), (0x7F0000000000, 0x7F0000400000)]
    monkeypatch.setattr(Path, "read_text", Mock(side_effect=FileNotFoundError))  # a system without that list
    assert move_to_large_pages() == 0


def test_the_next_child_is_the_first_of_its_processes_and_the_one_after_it_is_not(monkeypatch):
    with next_child_has_own_processes() as own:
        first = in_child(os.getpid)
    assert (first == "1") == own  # only root may do this, and not everywhere
    assert in_child(os.getpid) != "1"
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with next_child_has_own_processes() as own:
        assert own is False
        assert in_child(os.getpid) != "1"


def test_a_submission_has_one_process_where_root_may_give_it_namespaces():
    with ForkServer(limits=Limits()) as server:
        if not {"user", "namespaces"} <= set(server.walls.up):
            pytest.skip("there is no user of its own, or there are no namespaces here")
        with Session(server) as session:
            assert session.load(code_of("x = 1")) == {}  # by now it is what it becomes
            assert Path(f"/proc/{session.pid}/task/{session.pid}/children").read_text() == ""
            status = Path(f"/proc/{session.pid}/status").read_text()
            assert re.search(r"^NSpid:\s+\d+\s+1$", status, re.MULTILINE)


def test_the_first_observation_was_made_before_the_fork(monkeypatch):
    """Both kinds of exercises, with gradients: what PyTorch sets up for them is there."""
    seen, original = [], child.observe
    monkeypatch.setattr(child, "observe", lambda *args, **options: seen.append(original(*args, **options)) or seen[-1])
    child.warm()
    assert [one.problem for one in seen] == [None, None]
    assert [len(one.gradients) for one in seen] == [1, 3]  # input; input, weight, bias
    assert all(gradient is not None for one in seen for gradient in one.gradients.values())
