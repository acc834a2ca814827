"""No process, folder or descriptor is left behind."""

import contextlib
import fcntl
import os
import signal
import socket
import subprocess
import sys
import tempfile
import textwrap
import threading
import time
from pathlib import Path

import pytest
from sandboxes import LOOP, MASK, SMALL, call, children, code_of, end_of, linux

from course_grade.sandbox.session import Ended, ForkServer, ServerGone, Session

pytestmark = linux  # their processes and descriptors are looked up in /proc


@pytest.fixture
def temporary(tmp_path, monkeypatch):
    """Scratch folders are made here; nothing else is."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


LEAVES = {
    "nothing": "x = 1",
    "an exit": "import os; os._exit(3)",
    "a loop": LOOP,
    "a file": "open('note', 'w').close()",
    "a thread": "import threading, time\nthreading.Thread(target=time.sleep, args=(60,)).start()",
    "ignored signals": "import signal, time\nfor n in (1, 2, 15): signal.signal(n, signal.SIG_IGN)\ntime.sleep(60)",
}
LEAVES_WITHOUT_WALLS = {
    "a child": "import os, time\nif not os.fork(): time.sleep(60)",
    "a child that is a leader": "import os, time\nif not os.fork(): os.setsid(); time.sleep(60)",
    "a grandchild": (
        "import os, time\nif not os.fork():\n    os.setsid()\n    if os.fork(): os._exit(0)\n    time.sleep(60)"
    ),
    "a program": "import subprocess\nsubprocess.Popen(['sleep', '60'], start_new_session=True, close_fds=False)",
    "a hidden folder": "import os\nos.mkdir('a')\nopen('a/b', 'w').close()\nos.chmod('a', 0)",
    "deep folders": "import os\nfor _ in range(1500): os.mkdir('d'); os.chdir('d')",
}


def assert_nothing_is_left(server, code, temporary):
    fds = len(os.listdir("/proc/self/fd"))
    with Session(server) as session, contextlib.suppress(Ended):
        session.load(code_of(code))
    assert session.close() == 0  # once more: it is closed
    assert list(temporary.iterdir()) == []
    assert os.listdir(server.folder) == []
    assert len(os.listdir("/proc/self/fd")) == fds
    assert children(server) == []


@pytest.mark.parametrize("kind", LEAVES)
def test_no_process_folder_or_descriptor_is_left(hasty, kind, temporary):
    assert_nothing_is_left(hasty, LEAVES[kind], temporary)


@pytest.mark.parametrize("kind", LEAVES_WITHOUT_WALLS)
def test_no_process_or_folder_is_left_where_nothing_forbids_them(bare, kind, temporary, tmp_path_factory):
    path = tmp_path_factory.mktemp("locked") / "lock"
    locking = f"""
        import fcntl, os
        lock = open({str(path)!r}, "w")
        os.set_inheritable(lock.fileno(), True)
        fcntl.flock(lock, fcntl.LOCK_EX)
    """
    assert_nothing_is_left(bare, f"{textwrap.dedent(locking)}\n{LEAVES_WITHOUT_WALLS[kind]}", temporary)
    with path.open() as lock:  # a process that is left over would still hold it
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)


def test_a_link_out_of_the_scratch_folder_is_not_followed_when_it_is_removed(bare, temporary, tmp_path_factory):
    kept = tmp_path_factory.mktemp("kept") / "file"
    kept.write_text("x")
    assert_nothing_is_left(bare, f"import os\nos.symlink({str(kept.parent)!r}, 'link')", temporary)
    assert kept.exists()


def test_an_ended_session_does_not_disturb_the_next(server):
    with Session(server) as session:
        for code in ("import os; os._exit(1)", "import ctypes; ctypes.string_at(0)"):
            end_of(server, code)
        session.load(code_of(MASK))
        assert session.observe(call()).problem is None


@pytest.mark.thorough
def test_closing_the_fork_server_ends_its_sessions(temporary):
    server = ForkServer(SMALL, ())
    session = Session(server)
    session.load(code_of("x = 1"))
    process = Path(f"/proc/{session.pid}")
    assert process.exists()
    server.close()
    assert server._process.returncode is not None
    assert not process.exists()
    with contextlib.suppress(ServerGone):
        session.close()
    assert list(temporary.iterdir()) == []


def test_where_the_fork_server_was_killed_that_is_said_and_nothing_is_left(temporary):
    with ForkServer(SMALL, ()) as server:
        fds = len(os.listdir("/proc/self/fd"))
        session = Session(server)
        session.load(code_of("x = 1"))
        stat = Path(f"/proc/{session.pid}/stat")
        server._process.kill()
        server._process.wait()
        deadline = time.monotonic() + 3
        while stat.exists() and " Z " not in stat.read_text() and time.monotonic() < deadline:
            time.sleep(0.01)
        assert not stat.exists() or " Z " in stat.read_text()
        with pytest.raises(ServerGone, match="fork server has ended"):
            Session(server)
        with pytest.raises(ServerGone):
            session.close()
        assert len(os.listdir("/proc/self/fd")) == fds
    assert list(temporary.iterdir()) == []


def test_nothing_is_left_by_a_grader_that_is_killed_before_it_reads_an_answer(temporary, capfd):
    server = ForkServer(SMALL, ())
    session = Session(server)
    session.load(code_of("x = 1"))
    process = Path(f"/proc/{session.pid}")
    server._control.sendall(b'{"do": "time", "pid": 0}\n')
    assert server._control.recv(1, socket.MSG_PEEK)  # it is there, and stays unread
    server._control.close()
    assert server._process.wait(timeout=30) == 0
    assert not process.exists()
    assert list(temporary.iterdir()) == []
    assert capfd.readouterr().err == ""
    server.close()
    with contextlib.suppress(ServerGone):
        session.close()


@pytest.mark.thorough
def test_a_fork_server_that_answers_no_more_is_ended():
    with ForkServer(SMALL, ()) as server:
        server._control.settimeout(0.3)  # a minute otherwise
        os.kill(server._process.pid, signal.SIGSTOP)
        with pytest.raises(ServerGone):
            Session(server)
    assert server._process.returncode == -signal.SIGKILL


@pytest.mark.thorough
def test_a_wall_that_cannot_be_put_up_after_all_runs_nothing(tmp_path):
    """The walls are put up once more in every process; where one fails, the code of the submission is not read."""
    code = """
        import threading
        from course_grade.sandbox import server as fork_server
        from course_grade.sandbox import walls as sandbox_walls
        def fail(**_): raise OSError(38, "gone since")
        fork_server.probe = lambda wanted, folder: sandbox_walls.Walls(("seccomp",))
        sandbox_walls.seccomp = fail
        fork_server.main(int(__import__("sys").argv[1]), __import__("sys").argv[2])
    """
    server = object.__new__(ForkServer)
    server.limits, server._lock, server.folder = SMALL, threading.Lock(), str(tmp_path / "scratch")
    os.mkdir(server.folder)
    server._control, theirs = socket.socketpair()
    fd = theirs.fileno()
    command = [sys.executable, "-c", textwrap.dedent(code), str(fd), server.folder]
    server._process = subprocess.Popen(command, pass_fds=[fd])
    theirs.close()
    with server:
        server._ask({"do": "probe", "walls": []})
        end = end_of(server, f"open({str(tmp_path / 'canary')!r}, 'w')")
    assert "gone since" in str(end)
    assert not (tmp_path / "canary").exists()
