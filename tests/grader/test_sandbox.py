"""Walls, seen from inside of a real submission's process, and what is said about a process that misbehaves."""

import contextlib
import dataclasses
import errno
import fcntl
import itertools
import json
import os
import re
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import textwrap
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import torch

import course_lib
from course_lib.exercises import Case
from course_lib.grader.sandbox import seccomp
from course_lib.grader.sandbox import walls as sandbox_walls
from course_lib.grader.sandbox.child import SCRATCH
from course_lib.grader.sandbox.protocol import encode, pack_case
from course_lib.grader.sandbox.seccomp import seccomp_program
from course_lib.grader.sandbox.session import Ended, ForkServer, ServerGone, Session
from course_lib.grader.sandbox.walls import WALLS, Limits, Walls, probe

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="grading needs fork")
linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="namespaces, Landlock and seccomp are Linux's")

SMALL = Limits(seconds=8.0, load_seconds=8.0, total_seconds=10.0, memory_mb=300)
HASTY = dataclasses.replace(SMALL, seconds=0.6, load_seconds=0.6)  # for what hangs
CASE, CASE_BYTES = pack_case(Case(args=(3,)), (), False)
MASK = "import torch\ndef causal_mask(length):\n    return torch.ones(length, length, dtype=torch.bool).tril()\n"


# Helpers


def code_of(code: str, *names: str) -> dict:
    piece = {"file": "s.py", "line": 1, "code": textwrap.dedent(code), "names": list(names or ("it",))}
    return {"files": {}, "siblings": {}, "pieces": [piece]}


def call(seed: int = 1) -> bytes:
    return encode({"do": "case", "exercise": "causal_mask", "seed": seed, **CASE}, CASE_BYTES)


def problem_in(server: ForkServer, code: str):
    """The exception that the code ends in inside of a session, or None."""
    with Session(server) as session:
        return session.load(code_of(code)).get("it")


def found_in(server: ForkServer, expression: str, before: str = ""):
    """The value of an expression inside of a session."""
    code = f"{textwrap.dedent(before)}\nimport json\nraise KeyError(json.dumps({expression}))"
    problem = problem_in(server, code)
    assert problem.type == "KeyError", problem
    return json.loads(problem.message.strip("'"))


def end_of(server: ForkServer, code: str) -> Ended:
    """How a session ends whose code, when it is loaded, ends the process."""
    with Session(server) as session, pytest.raises(Ended) as ended:
        session.load(code_of(code))
    assert not os.path.exists(session.scratch)
    return ended.value


def children(server: ForkServer) -> list[str]:
    pid = server._process.pid
    return Path(f"/proc/{pid}/task/{pid}/children").read_text().split()


def with_walls(*walls: str):
    """A fixture: a fork server with these walls only; skips where the machine has not all of them."""

    @pytest.fixture(scope="module")
    def server():
        with ForkServer(SMALL, walls) as server:
            if set(server.walls.up) != set(walls):
                pytest.skip(str(server.walls))
            yield server

    return server


full = with_walls("limits", "namespaces", "landlock", "seccomp")
bare = with_walls()
limits_only = with_walls("limits")
namespaces_only = with_walls("namespaces")
landlock_only = with_walls("landlock")
seccomp_only = with_walls("seccomp")


@pytest.fixture(params=["full", "bare"])
def server(request):
    return request.getfixturevalue(request.param)


@pytest.fixture
def hasty(server, monkeypatch):
    """The same, with little time for each answer."""
    monkeypatch.setattr(server, "limits", HASTY)
    return server


@pytest.fixture
def hasty_bare(bare, monkeypatch):
    monkeypatch.setattr(bare, "limits", HASTY)
    return bare


# Walls: their names and level


@pytest.mark.parametrize(
    ("up", "level"),
    [
        ((), "process"),
        (("limits",), "process"),
        (("limits", "seccomp"), "process"),
        (("limits", "landlock"), "process"),
        (("user",), "process"),
        (("limits", "landlock", "seccomp"), "partial"),
        (("limits", "namespaces", "landlock"), "partial"),
        (("namespaces", "landlock", "seccomp"), "process"),
        (("limits", "namespaces", "seccomp"), "full"),
        (("limits", "namespaces", "landlock", "seccomp"), "full"),
        (tuple(WALLS), "full"),
    ],
)
def test_the_level_is_full_where_all_walls_stand(up, level):
    assert Walls(up).level == level


def test_the_level_is_said_with_what_stands_and_why_the_others_do_not():
    text = str(Walls(("limits",), {"landlock": "no such call", "seccomp": "switched off"}))
    assert text == "process (limits; not available: landlock: no such call; seccomp: switched off)"
    assert str(Walls()) == "process (a process of its own)"


# Probing


def test_every_wall_is_either_up_or_missing_for_a_reason():
    walls = probe()
    expected = set(WALLS) if os.geteuid() == 0 else set(WALLS) - {"user"}
    assert set(walls.up) | set(walls.missing) == expected
    assert not set(walls.up) & set(walls.missing)
    assert all(walls.missing.values())


def test_walls_that_nobody_wants_are_switched_off():
    walls = probe(("limits",))
    assert walls.up == ("limits",)
    assert set(walls.missing.values()) == {"switched off"}


def test_probing_puts_no_wall_around_the_one_who_probes(tmp_path):
    probe()
    (tmp_path / "file").write_text("x")
    socket.socket().close()
    assert subprocess.run(["true"], check=False).returncode == 0


def test_probing_leaves_no_folder_and_no_process(lender, tmp_path, monkeypatch):
    lender.close()  # so that whatever is left is left by probing
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    before = len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0
    probe()
    assert list(tmp_path.iterdir()) == []
    if before:
        assert len(os.listdir("/proc/self/fd")) == before
    with pytest.raises(ChildProcessError):
        os.waitpid(-1, os.WNOHANG)


@pytest.mark.parametrize("error", [OSError(errno.ENOSYS, "not in this kernel"), ValueError("what"), SystemExit("why")])
def test_a_wall_that_cannot_be_put_up_is_missing_with_the_reason(error, monkeypatch):
    def fail(**_):
        raise error

    monkeypatch.setattr(sandbox_walls, "seccomp", fail)
    walls = probe(("limits", "seccomp"))
    assert walls.up == ("limits",)
    assert str(error) in walls.missing["seccomp"]


def test_nothing_is_put_up_twice_or_left_out(monkeypatch):
    put_up = []
    for name in ("_limit", "_limit_threads", "landlock", "seccomp"):
        monkeypatch.setattr(sandbox_walls, name, lambda *_, name=name, **__: put_up.append(name))
    monkeypatch.setattr(sandbox_walls, "_become", lambda *_: put_up.append("user"))
    sandbox_walls.confine(Walls(("limits", "user", "landlock", "seccomp")), SMALL, "")
    assert put_up == ["_limit", "user", "_limit_threads", "landlock", "seccomp"]
    put_up.clear()
    sandbox_walls.confine(Walls(("limits", "landlock")), SMALL, "")
    assert put_up == ["_limit", "landlock"]


@pytest.mark.parametrize(
    ("walls", "level", "reached"),
    [
        (Walls(), "process", True),
        (Walls(), "partial", False),
        (Walls(("limits", "landlock", "seccomp")), "partial", True),
        (Walls(("limits", "landlock", "seccomp")), "full", False),
        (Walls(("limits", "landlock", "seccomp"), {"user": "no"}), "partial", False),  # it runs as root
        (Walls(("limits", "namespaces", "seccomp"), {"user": "no"}), "full", True),
    ],
)
def test_a_level_is_reached_by_those_above_it(walls, level, reached):
    assert walls.reach(level) == reached


def test_a_level_that_is_none_is_refused():
    with pytest.raises(ValueError, match=r"expected a level of walls .process, partial, full., got 'all'"):
        Walls().reach("all")


# Limits


@linux
def test_memory_is_limited(limits_only):
    problem = problem_in(limits_only, "x = bytearray(400 * 2**20)")
    assert problem.type == "MemoryError"
    assert problem_in(limits_only, "x = bytearray(200 * 2**20)") is None


@linux
def test_pytorchs_memory_is_limited(limits_only):
    problem = problem_in(limits_only, "import torch\nx = torch.ones(400 * 2**20, dtype=torch.uint8)")
    assert "memory" in problem.message


def test_a_file_cannot_grow_over_its_limit(limits_only):
    problem = problem_in(limits_only, "with open('big', 'wb') as f: f.write(bytes(2 * 2**20))")
    assert problem.type == "OSError"
    assert "File too large" in problem.message
    assert problem_in(limits_only, "with open('small', 'wb') as f: f.write(bytes(2**19))") is None


def test_output_cannot_grow_over_its_limit(limits_only):
    with Session(limits_only) as session:
        assert "File too large" in session.load(code_of("print('x' * 2**22, flush=True)"))["it"].message
        assert os.fstat(session._output.fileno()).st_size <= 2**20


def test_a_session_whose_output_is_full_goes_on(limits_only):
    with Session(limits_only) as session:
        flood = "print('x' * 2**22)\n"
        session.load(code_of(f"import contextlib\nwith contextlib.suppress(OSError): {flood}\n" + MASK))
        assert session.observe(call()).value.tolist() == torch.ones(3, 3).tril().bool().tolist()


def test_only_so_many_files_can_be_open(limits_only):
    problem = problem_in(limits_only, "import os\nx = [open(os.devnull) for _ in range(200)]")
    assert "Too many open files" in problem.message


def test_processor_time_is_limited_and_no_core_is_dumped(limits_only):
    limits = found_in(
        limits_only,
        "[resource.getrlimit(resource.RLIMIT_CPU), resource.getrlimit(resource.RLIMIT_CORE)]",
        "import resource",
    )
    assert limits[0][1] <= SMALL.total_seconds + 5
    assert limits[1] == [0, 0]


@linux
def test_limits_cannot_be_raised_again(full):
    problem = problem_in(full, "import resource\nresource.setrlimit(resource.RLIMIT_AS, (2**40, 2**40))")
    assert problem.type in {"ValueError", "PermissionError"}


# Another user


@linux
@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can become somebody else")
def test_root_becomes_another_user_for_good():
    code = """
        import os
        from course_lib.grader.sandbox.walls import _become
        _become(61234)
        assert os.getresuid() == os.getresgid() == (61234,) * 3
        assert os.getgroups() == []
        for become_root in (lambda: os.setuid(0), lambda: os.setgid(0), lambda: os.setresuid(0, 0, 0)):
            try:
                become_root()
            except PermissionError:
                continue
            raise SystemExit("root again")
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(code)], check=True, timeout=60)


# Namespaces


@linux
def test_a_submission_is_alone_in_its_process_namespace(namespaces_only):
    assert found_in(namespaces_only, "[os.getpid(), os.getppid()]", "import os") == [1, 0]


@linux
def test_processes_outside_cannot_be_signalled(namespaces_only):
    problem = problem_in(namespaces_only, f"import os\nos.kill({os.getpid()}, 0)")
    assert problem.type == "ProcessLookupError"


@linux
def test_there_is_no_network(namespaces_only):
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
        socket.create_connection(("127.0.0.1", port), timeout=5).close()  # there is a network out here
        problem = problem_in(
            namespaces_only, f"import socket\nsocket.create_connection(('127.0.0.1', {port}), timeout=0.3)"
        )
    assert problem is not None
    assert "OSError" in problem.bases
    assert found_in(namespaces_only, "socket.if_nameindex()", "import socket") == [[1, "lo"]]


@linux
def test_abstract_sockets_of_others_are_out_of_reach(namespaces_only):
    name = f"\0course-lib-test-{os.getpid()}"
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(name)
        listening.listen()
        problem = problem_in(
            namespaces_only, f"import socket\nsocket.socket(socket.AF_UNIX).connect('\\0' + {name[1:]!r})"
        )
    assert problem.type == "ConnectionRefusedError"


@linux
def test_what_is_written_to_the_scratch_folder_is_seen_by_nobody_else(namespaces_only):
    with Session(namespaces_only) as one, Session(namespaces_only) as other:
        assert one.load(code_of("with open('note', 'w') as f: f.write('x')")) == {}
        assert os.listdir(one.scratch) == []
        problem = other.load(code_of(f"open({one.scratch!r} + '/note')"))["it"]
    assert problem.type == "FileNotFoundError"


@linux
def test_the_scratch_folder_holds_only_so_much(namespaces_only):
    problem = problem_in(
        namespaces_only, "for n in range(20):\n    with open(f'{n}', 'wb') as f: f.write(bytes(2**20))"
    )
    assert "No space left" in problem.message
    problem = problem_in(namespaces_only, "for n in range(2000): open(f'{n}', 'w').close()")
    assert "No space left" in problem.message


# Landlock


@pytest.fixture
def neighbour(tmp_path):
    path = tmp_path / "neighbour.py"
    path.write_text("secret")
    path.chmod(0o666)
    return path


@linux
def test_files_of_others_cannot_be_read_listed_or_removed(landlock_only, neighbour):
    path = str(neighbour)
    for code in (
        f"open({path!r}).read()",
        f"open({path!r}, 'a')",
        f"os.listdir({str(neighbour.parent)!r})",
        f"os.remove({path!r})",
        f"os.rename({path!r}, 'mine')",
        f"os.link({path!r}, 'mine')",
        f"os.truncate({path!r}, 0)",
        f"open({str(neighbour.parent / 'new')!r}, 'w')",
        f"os.mkdir({str(neighbour.parent / 'new')!r})",
    ):
        problem = problem_in(landlock_only, f"import os\n{code}")
        assert problem, code
        # EXDEV: a rename or a link from one folder to another.
        assert problem.type == "PermissionError" or "cross-device" in problem.message, (code, problem)
    assert [p.name for p in neighbour.parent.iterdir()] == ["neighbour.py"]
    assert neighbour.read_text() == "secret"


@linux
@pytest.mark.parametrize("path", ["/etc/passwd", "/etc/hostname", "/proc/1/cmdline", "/proc/self/environ", "/tmp", "/"])
def test_the_machines_own_files_cannot_be_read(landlock_only, path):
    if not os.path.exists(path):
        pytest.skip(f"no {path} here")
    reading = f"os.listdir({path!r})" if os.path.isdir(path) else f"open({path!r}).read()"
    assert problem_in(landlock_only, f"import os\n{reading}").type == "PermissionError"


@linux
def test_python_and_the_package_can_be_read_and_not_written(landlock_only):
    for module in ("wave", "sqlite3", "course_lib.measuring", "torch.nn.utils.parametrizations"):
        assert problem_in(landlock_only, f"import {module}") is None
    mine = str(Path(course_lib.__file__))
    assert problem_in(landlock_only, f"open({mine!r}).read()") is None
    assert problem_in(landlock_only, f"open({mine!r}, 'a')").type == "PermissionError"
    assert problem_in(landlock_only, f"open({mine + '.new'!r}, 'w')").type == "PermissionError"


@linux
def test_the_scratch_folder_takes_plain_files_and_folders_only(landlock_only):
    good = "with open('note', 'w') as f: f.write('x')\nassert open('note').read() == 'x'\nos.remove('note')"
    assert problem_in(landlock_only, f"import os\n{good}\nos.mkdir('folder')\nos.rmdir('folder')") is None
    for code in ("os.symlink('/etc/passwd', 'link')", "os.mkfifo('pipe')"):
        assert problem_in(landlock_only, f"import os\n{code}").type == "PermissionError", code


@linux
def test_the_folder_of_another_submission_is_out_of_reach(landlock_only):
    with Session(landlock_only) as one, Session(landlock_only) as other:
        one.load(code_of("with open('note', 'w') as f: f.write('x')"))
        assert os.listdir(one.scratch) == ["note"]
        assert other.load(code_of(f"open({one.scratch!r} + '/note')"))["it"].type == "PermissionError"


# Seccomp


FORBIDDEN = [
    "os.fork()",
    "os.forkpty()",
    "subprocess.run(['true'])",
    "os.posix_spawn('/bin/true', ['true'], {})",
    "os.execv('/bin/true', ['true'])",
    "os.system('true') and os.fork()",
    "multiprocessing.get_context('fork').Process(target=print).start()",
    "multiprocessing.get_context('spawn').Process(target=print).start()",
    "os.kill(os.getppid(), 0)",
    "os.kill(os.getpid(), 9)",
    "signal.raise_signal(9)",
    "socket.socket()",
    "socket.socketpair()",
    "socket.create_connection(('127.0.0.1', 9))",
    "os.memfd_create('x')",
    "os.chmod('.', 0)",
    "os.chown('.', 0, 0)",
    "os.utime('.')",
    "os.fchmod(os.open('.', os.O_RDONLY), 0)",
    "os.setxattr('.', 'user.x', b'x')",
    "os.chroot('.')",
    "os.setpriority(os.PRIO_PROCESS, 0, 1)",
    "os.open('note', os.O_CREAT | os.O_WRONLY)",
    "open('note', 'w')",
    "open('/dev/null', 'r+b', buffering=0)",
    "os.truncate('/dev/null', 0)",
    "os.mkdir('folder')",
    "os.rename('a', 'b')",
    "os.remove('a')",
    "os.symlink('a', 'b')",
    "fcntl.fcntl(3, fcntl.F_SETOWN, os.getppid())",
    "fcntl.fcntl(3, 10, 9)",
    "fcntl.fcntl(3, fcntl.F_SETFL, os.O_ASYNC)",
    "fcntl.ioctl(3, 0x5452, struct.pack('i', 1))",
    "fcntl.ioctl(3, 0x8901, struct.pack('i', os.getppid()))",
    "os.sched_setaffinity(os.getppid(), {0})",
    "os.setsid()",
    "os.setpgid(0, 0)",
]


@linux
@pytest.mark.parametrize("code", FORBIDDEN)
def test_what_a_solution_has_no_use_for_is_not_permitted(seccomp_only, code):
    problem = problem_in(seccomp_only, f"import fcntl, multiprocessing, os, signal, socket, struct, subprocess\n{code}")
    assert problem, code
    assert problem.type == "PermissionError" or "not permitted" in problem.message


@linux
def test_threads_are_permitted(full):
    threads = "import threading\nt = threading.Thread(target=lambda: done.append(1))\nt.start()\nt.join()"
    assert found_in(full, "done", f"done = []\n{threads}") == [1]


@linux
def test_reading_is_permitted_where_only_seccomp_stands(seccomp_only, neighbour):
    assert problem_in(seccomp_only, f"assert open({str(neighbour)!r}).read() == 'secret'") is None


class Call:
    """A system call as seccomp sees it."""

    def __init__(self, number, *arguments, architecture=0xC000003E):
        self.words = struct.pack("<IIQ6Q", number, architecture, 0, *arguments, *[0] * (6 - len(arguments)))


def answer(program: bytes, call: Call) -> int:
    """Run a packet filter, as the kernel would: <linux/bpf_common.h>."""
    steps = list(struct.iter_unpack("HBBI", program))
    at, accumulator = 0, 0
    while True:
        code, then, otherwise, value = steps[at]
        at += 1
        if code == 0x20:
            (accumulator,) = struct.unpack_from("<I", call.words, value)
        elif code == 0x06:
            return value
        else:
            holds = {0x15: accumulator == value, 0x35: accumulator >= value, 0x45: bool(accumulator & value)}[code]
            at += then if holds else otherwise


MACHINES = [("x86_64", 0, 0xC000003E), ("aarch64", 1, 0xC00000B7), ("arm64", 1, 0xC00000B7)]
ALLOWED, REFUSED, NO_SUCH_CALL = 0x7FFF0000, 0x00050001, 0x00050026
HARMLESS = {"read": (0, 63), "write": (1, 64), "mmap": (9, 222), "futex": (202, 98), "exit_group": (231, 94)}


@pytest.mark.parametrize("no_writing", [False, True])
@pytest.mark.parametrize(("machine", "column", "architecture"), MACHINES)
def test_the_filter_answers_every_call_as_the_table_says(machine, column, architecture, no_writing):
    program = seccomp_program(machine, no_writing=no_writing)

    def asked(number, *arguments, architecture=architecture):
        return answer(program, Call(number, *arguments, architecture=architecture))

    refused = {**seccomp._CALLS, **(seccomp._CHANGES if no_writing else {})}
    for name, numbers in refused.items():
        if numbers[column] is not None:
            assert asked(numbers[column]) == REFUSED, name
    for name, numbers in {**HARMLESS, **({} if no_writing else seccomp._CHANGES)}.items():
        if numbers[column] is not None:
            assert asked(numbers[column]) == ALLOWED, name
    clone, clone3 = seccomp._CLONE[column], seccomp._CLONE3[column]
    assert asked(clone, 0x11) == REFUSED  # SIGCHLD: a process
    assert asked(clone, 0x3D0F00) == ALLOWED  # what pthread_create asks for: a thread
    assert asked(clone3) == NO_SUCH_CALL
    assert asked(HARMLESS["read"][column], architecture=0x40000003) == REFUSED  # i386's numbers on this machine


@pytest.mark.parametrize(("machine", "column", "architecture"), MACHINES)
def test_without_landlock_files_are_opened_for_reading_only(machine, column, architecture):
    opened = {0: [(257, 2), (2, 1)], 1: [(56, 2)]}[column]  # number, place of the flags among the arguments
    for (number, place), flags in itertools.product(opened, (0, 0o2000000, 1, 2, 0o100, 0o1000)):
        asked = Call(number, *[0] * place, flags, architecture=architecture)
        expected = REFUSED if flags & 0o1103 else ALLOWED
        assert answer(seccomp_program(machine, no_writing=True), asked) == expected
        assert answer(seccomp_program(machine, no_writing=False), asked) == ALLOWED


def test_the_second_set_of_numbers_of_x86_is_closed():
    program = seccomp_program("x86_64", no_writing=False)
    assert answer(program, Call(0x40000000 | 57)) == answer(program, Call(0x40000000)) == REFUSED


ARGUMENTS = {  # call: numbers, arguments, whether it is permitted, whether at the second try
    "F_GETFD": ((72, 25), (3, 1, 0), True, True),
    "F_SETFL, O_NONBLOCK": ((72, 25), (3, 4, 0o4000), True, True),
    "F_SETFL, O_ASYNC": ((72, 25), (3, 4, 0o20000), False, False),
    "F_SETFL, O_ASYNC among others": ((72, 25), (3, 4, 0o24002), False, False),
    "F_SETOWN": ((72, 25), (3, 8, 1), False, False),
    "F_SETSIG": ((72, 25), (3, 10, 9), False, False),
    "F_SETSIG, high bits set": ((72, 25), (3, 10 | 1 << 40, 9), False, False),
    "F_SETOWN_EX": ((72, 25), (3, 15, 0), False, False),
    "F_SETLEASE": ((72, 25), (3, 1024, 0), False, False),
    "F_NOTIFY": ((72, 25), (3, 1026, 1), False, False),
    "TCGETS": ((16, 29), (1, 0x5401, 0), True, True),
    "FIONREAD": ((16, 29), (1, 0x541B, 0), True, True),
    "FIOASYNC": ((16, 29), (3, 0x5452, 0), False, False),
    "FIOSETOWN": ((16, 29), (3, 0x8901, 0), False, False),
    "SIOCSPGRP": ((16, 29), (3, 0x8902 | 1 << 33, 0), False, False),
    "TIOCSTI": ((16, 29), (0, 0x5412, 0), False, False),
    "PR_SET_NAME": ((157, 167), (15, 0), True, True),
    "PR_SET_PDEATHSIG": ((157, 167), (1, 0), False, False),
    "its own affinity": ((203, 122), (0, 8, 0), True, True),
    "another's affinity": ((203, 122), (4711, 8, 0), False, True),
    "inotify_init1": ((294, 26), (0,), False, False),
    "setsid": ((112, 157), (), False, True),
    "ioprio_set": ((251, 30), (1, 0, 0), False, False),
}


@pytest.mark.parametrize("kind", ARGUMENTS)
@pytest.mark.parametrize(("machine", "column", "architecture"), MACHINES)
def test_calls_are_refused_by_what_they_ask_for(kind, machine, column, architecture):
    numbers, arguments, permitted, at_second_try = ARGUMENTS[kind]
    for no_writing, lenient in itertools.product((False, True), (False, True)):
        program = seccomp_program(machine, no_writing=no_writing, lenient=lenient)
        found = answer(program, Call(numbers[column], *arguments, architecture=architecture))
        assert found == (ALLOWED if (at_second_try if lenient else permitted) else REFUSED)


def test_a_machine_without_a_table_has_no_filter():
    with pytest.raises(OSError, match="no table of system calls for riscv64"):
        seccomp_program("riscv64", no_writing=False)


HEADERS = [
    ("/usr/include/x86_64-linux-gnu/asm/unistd_64.h", r"#define __NR_(\w+)\s+(\d+)\s*$", 0),
    ("/usr/include/asm-generic/unistd.h", r"#define __NR(?:3264)?_(\w+)\s+(\d+)\s*$", 1),
]


@pytest.mark.parametrize(("header", "pattern", "column"), HEADERS, ids=["x86-64", "arm64"])
def test_the_numbers_of_calls_are_those_of_the_kernels_headers(header, pattern, column):
    if not os.path.exists(header):
        pytest.skip(f"no {header} here")
    known = {name: int(number) for name, number in re.findall(pattern, Path(header).read_text(), re.MULTILINE)}
    table = {**seccomp._CALLS, **seccomp._CHANGES, "clone": seccomp._CLONE, "clone3": seccomp._CLONE3}
    table |= {name: numbers for name, (numbers, _, _) in seccomp._VALUES.items()}
    table |= {"sched_setaffinity": seccomp._SETAFFINITY}
    table |= {name: [numbers[0] for numbers in machines] for name, machines in seccomp._OPENS.items()}
    told = {name: numbers[column] for name, numbers in table.items() if name in known}
    assert told == {name: known[name] for name in told}
    assert len(told) > 60


# All walls, or none


@linux
def test_with_all_walls_the_level_is_full(full):
    assert full.walls.level == "full"


def test_a_solution_is_called_and_what_it_returned_comes_back(server):
    with Session(server) as session:
        assert session.load(code_of(MASK, "causal_mask")) == {}
        seen = session.observe(call())
        assert seen.problem is None
        assert torch.equal(seen.value, torch.ones(3, 3).tril().bool())


def test_a_piece_that_fails_is_known_by_the_names_that_it_would_have_defined(server):
    with Session(server) as session:
        failed = session.load(code_of("import torch\nx = 1 / 0", "x", "y"))
    assert set(failed) == {"x", "y"}
    assert (failed["x"].type, failed["x"].line, failed["x"].file) == ("ZeroDivisionError", 2, "s.py")


def test_an_exception_in_a_call_comes_back_and_the_process_goes_on(server):
    with Session(server) as session:
        session.load(code_of("calls = []\ndef causal_mask(length):\n    calls.append(1)\n    return len(calls) // 0"))
        assert session.observe(call()).problem.type == "ZeroDivisionError"
        assert session.observe(call()).problem.line == 4


def test_a_solution_that_nobody_wrote_is_not_defined(server):
    with Session(server) as session:
        session.load(code_of("x = 1"))
        assert session.observe(call()).problem.type == "NameError"


def test_chance_is_the_same_for_the_same_seed(server):
    code = """
        import random, numpy, torch
        def causal_mask(length):
            return torch.rand(()).item(), random.random(), float(numpy.random.rand())
    """
    with Session(server) as session:
        session.load(code_of(code))
        seen = [session.observe(call(seed)).value.items for seed in (1, 2, 1)]
    assert seen[0] == seen[2]
    assert not set(seen[0]) & set(seen[1])


def test_sessions_do_not_know_of_each_other(server):
    with Session(server) as one, Session(server) as other:
        one.load(code_of("import builtins, torch\nbuiltins.note = torch.note = 1"))
        assert other.load(code_of("note"))["it"].type == "NameError"
        assert other.load(code_of("import torch\ntorch.note"))["it"].type == "AttributeError"


def test_a_submission_has_no_descriptors_but_its_own(server):
    code = """
        import os
        def leads_somewhere(fd):
            try:
                return os.fstat(fd).st_rdev != os.stat(os.devnull).st_rdev
            except OSError:
                return False
    """
    with Session(server), Session(server):
        # Output twice, requests, answers, and the file that output goes to; input and all others are /dev/null.
        assert found_in(server, "[fd for fd in range(5000) if leads_somewhere(fd)]", code) == [1, 2, 3, 4, 5]


def test_a_submission_has_no_descriptors_but_its_own_whatever_the_grader_has_open():
    with contextlib.ExitStack() as stack:
        for _ in range(300):
            stack.enter_context(open(os.devnull))
        with ForkServer(SMALL, ()) as server:
            assert server._control.fileno() > 203
            test_a_submission_has_no_descriptors_but_its_own(server)


def test_nobody_answers_a_submission_that_asks(server):
    assert problem_in(server, "input('your name? ')").type == "EOFError"


def test_many_sessions_run_side_by_side(server):
    def masked(number):
        with Session(server) as session:
            session.load(code_of(f"def causal_mask(length):\n    return {number}"))
            return session.observe(call()).value

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(masked, range(12))) == list(range(12))


# What a submission may not know


def test_secrets_of_the_graders_environment_are_not_there(monkeypatch):
    monkeypatch.setenv("SECRET_OF_CI", "hidden-treasure")
    before = """
        import os
        all = str(os.environ)
        if os.path.exists("/proc/self/environ"):  # as the process was started
            all += open("/proc/self/environ").read()
            assert "PATH=" in all
    """
    with ForkServer(SMALL, ()) as server:
        assert found_in(server, "['SECRET_OF_CI' in all, 'hidden-treasure' in all]", before) == [False, False]


def test_home_and_temporary_folder_are_the_scratch_folder(server):
    places = found_in(server, "[os.environ['HOME'], os.environ['TMPDIR'], os.getcwd()]", "import os")
    assert set(places) == {SCRATCH}  # its name differs from run to run, and is not told


@linux
def test_the_fork_server_cannot_be_looked_into_nor_the_grader(full):
    for pid in (os.getpid(), full._process.pid):
        for name in ("mem", "environ", "maps", "fd/0"):
            problem = problem_in(full, f"open('/proc/{pid}/{name}', 'rb').read(1)")
            assert problem.type in {"PermissionError", "FileNotFoundError"}


def test_modules_that_lie_where_the_grader_was_started_are_not_imported(tmp_path, monkeypatch):
    for name in ("random", "socket", "json", "torch", "course_lib", "sitecustomize"):
        (tmp_path / f"{name}.py").write_text(f"open({str(tmp_path / 'canary')!r}, 'w')")
    monkeypatch.chdir(tmp_path)
    with ForkServer(SMALL, ()) as server:
        assert problem_in(server, "import random, wave") is None
    assert not (tmp_path / "canary").exists()


# What is said about a process that misbehaves


LOOP = "while True:\n    try:\n        while True: pass\n    except BaseException: pass"


def test_a_submission_that_hangs_while_it_is_read_is_stopped(hasty):
    began = time.monotonic()
    end = end_of(hasty, LOOP)
    assert str(end) == "took longer than 0.6 s for reading its code, and was stopped"
    assert end.too_long
    assert 0.6 <= time.monotonic() - began < 3


def test_a_call_that_hangs_is_stopped(hasty):
    with Session(hasty) as session:
        session.load(code_of("def causal_mask(length):\n" + textwrap.indent(LOOP, "    ")))
        with pytest.raises(Ended, match=r"took longer than 0.6 s for a call, and was stopped") as ended:
            session.observe(call())
        assert ended.value.too_long
    assert not os.path.exists(session.scratch)


def test_a_process_that_stopped_itself_is_ended(hasty_bare):
    end = end_of(hasty_bare, "import os, signal\nos.kill(os.getpid(), signal.SIGSTOP)")
    assert "took longer than 0.6 s" in str(end)
    assert end.too_long
    assert end.doubtful  # it had no processor time: was it the submission, or others who ran beside it?


@pytest.mark.parametrize("status", [0, 1, 3, 77])
def test_a_submission_that_exits_is_known_by_its_status(server, status):
    end = end_of(server, f"import os\nos._exit({status})")
    assert str(end) == f"ended the process with exit status {status} during reading its code"
    assert not end.too_long


def test_a_call_that_exits_is_known_by_its_status(server):
    with Session(server) as session:
        session.load(code_of("import os\ndef causal_mask(length):\n    os._exit(5)"))
        with pytest.raises(Ended, match=r"^ended the process with exit status 5 during a call$"):
            session.observe(call())


@pytest.mark.parametrize(
    ("code", "says"),
    [
        ("import ctypes; ctypes.string_at(0)", "ended the process with signal 11 (a crash) during reading its code"),
        ("import os; os.abort()", "ended the process with signal"),
    ],
    ids=["a null pointer", "an abort"],
)
def test_a_crash_is_known_by_its_signal(server, code, says):
    assert says in str(end_of(server, code))


def test_a_process_that_was_killed_is_known_by_its_signal(bare):
    end = end_of(bare, "import os\nos.kill(os.getpid(), 9)")
    assert str(end) == "ended the process with signal 9 (killed) during reading its code"


def test_an_ordinary_exit_is_an_exception_like_others(server):
    assert problem_in(server, "import sys\nsys.exit('bye')").type == "SystemExit"


@pytest.mark.parametrize("exception", ["KeyboardInterrupt", "GeneratorExit", "BaseException"])
def test_an_exception_that_nobody_catches_ends_the_process_with_its_last_words(server, exception):
    end = str(end_of(server, f"raise {exception}('goodbye \\x1b[2J now')"))
    assert end.startswith("ended the process during reading its code; its last words: ")
    assert exception in end
    assert "goodbye" in end
    assert "\x1b" not in end


def test_last_words_are_short(server):
    assert len(str(end_of(server, "raise BaseException('never ' * 10_000)"))) < 300


NONSENSE = {
    "a giant": "os.write(4, b'\\xff' * 8)",
    "no JSON": "os.write(4, bytes([0, 0, 0, 3, 0, 0, 0, 0]) + b'???')",
    "no object": "os.write(4, bytes([0, 0, 0, 2, 0, 0, 0, 0]) + b'[]')",
    "nothing": "os.write(4, bytes([0, 0, 0, 2, 0, 0, 0, 0]) + b'{}')",
    "nothing in it": "os.write(4, bytes([0, 0, 0, 15, 0, 0, 0, 0]) + b'{\"failed\":null}')",
    "a wrong problem": 'os.write(4, bytes([0, 0, 0, 20, 0, 0, 0, 0]) + b\'{"failed":{"x":[1]}}\')',
    "text": "os.write(4, b'I pass all tests, give me all points')",
}


@pytest.mark.parametrize("kind", NONSENSE)
def test_nonsense_for_an_answer_ends_the_session_in_words(server, kind):
    end = end_of(server, f"import os\n{NONSENSE[kind]}")
    assert str(end).startswith("sent an invalid reply")


def test_nonsense_in_a_call_ends_the_session_in_words(server):
    with Session(server) as session:
        session.load(code_of(f"import os\ndef causal_mask(length):\n    {NONSENSE['nothing']}"))
        with pytest.raises(Ended, match="sent an invalid reply"):
            session.observe(call())


@pytest.mark.parametrize("code", ["os.write(4, b'\\0\\0\\0')", "os.write(4, bytes([0, 0, 0, 99, 0, 0, 0, 0]) + b'{')"])
def test_an_answer_that_breaks_off_is_an_end_of_the_process(server, code):
    assert "exit status 9" in str(end_of(server, f"import os\n{code}\nos._exit(9)"))


def test_an_answer_that_drips_takes_no_longer_than_the_limit(hasty):
    drip = "os.write(4, bytes([0, 1, 0, 0, 0, 0, 0, 0]))\nwhile True:\n    os.write(4, b' ')\n    time.sleep(0.05)"
    began = time.monotonic()
    assert end_of(hasty, f"import os, time\n{drip}").too_long
    assert time.monotonic() - began < 3


def test_a_submission_that_closes_its_pipes_is_an_end_in_words(hasty):
    end = end_of(hasty, "import os\nos.close(3)\nos.close(4)\nimport time\ntime.sleep(60)")
    assert "reading its code" in str(end)


def test_a_submission_that_reads_no_more_is_stopped(hasty):
    early = 'os.write(4, bytes([0, 0, 0, 26, 0, 0, 0, 0]) + b\'{"failed": {}, "used": {}}\')'
    with Session(hasty) as session:
        assert session.load(code_of(f"import os, time\n{early}\ntime.sleep(6)")) == {}
        began = time.monotonic()
        with pytest.raises(Ended) as ended:
            session.observe(encode({"do": "case"}, bytes(2**20)))  # more than a pipe holds
        assert ended.value.too_long
        assert time.monotonic() - began < 3


def test_a_submission_that_cannot_be_asked_any_more_is_an_end_in_words(server):
    with Session(server) as session:
        session.load(code_of("import os\nos.close(3)"))
        time.sleep(0.3)  # until it noticed
        with pytest.raises(Ended, match="during a call"):
            session.observe(call())


# Nothing is left behind


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
    "a link to a folder": "import os\nos.mkdir('../target-of-link')\nos.symlink('../target-of-link', 'l')",
}


def assert_nothing_is_left(server, code, temporary):
    fds = len(os.listdir("/proc/self/fd"))
    with Session(server) as session, contextlib.suppress(Ended):
        session.load(code_of(code))
    assert list(temporary.iterdir()) == []
    assert os.listdir(server.folder) in ([], ["target-of-link"])
    assert len(os.listdir("/proc/self/fd")) == fds
    assert children(server) == []


@linux
@pytest.mark.parametrize("kind", LEAVES)
def test_no_process_folder_or_descriptor_is_left(hasty, kind, temporary):
    assert_nothing_is_left(hasty, LEAVES[kind], temporary)


@linux
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


@linux
def test_a_link_out_of_the_scratch_folder_is_not_followed_when_it_is_removed(bare, temporary, tmp_path_factory):
    kept = tmp_path_factory.mktemp("kept") / "file"
    kept.write_text("x")
    assert_nothing_is_left(bare, f"import os\nos.symlink({str(kept.parent)!r}, 'link')", temporary)
    assert kept.exists()


def test_a_session_that_is_closed_twice_is_closed(server):
    session = Session(server)
    session.close()
    assert session.close() == 0


def test_an_ended_session_does_not_disturb_the_next(server):
    with Session(server) as session:
        for code in ("import os; os._exit(1)", "import ctypes; ctypes.string_at(0)"):
            end_of(server, code)
        session.load(code_of(MASK))
        assert session.observe(call()).problem is None


@linux
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


@linux
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


@linux
def test_a_fork_server_that_answers_no_more_is_ended():
    with ForkServer(SMALL, ()) as server:
        server._control.settimeout(0.3)  # a minute otherwise
        os.kill(server._process.pid, signal.SIGSTOP)
        with pytest.raises(ServerGone):
            Session(server)
    assert server._process.returncode == -signal.SIGKILL


@linux
def test_a_wall_that_cannot_be_put_up_after_all_runs_nothing(tmp_path):
    """The walls are put up once more in every process; where one fails, the code of the submission is not read."""
    code = """
        import threading
        from course_lib.grader.sandbox import server as fork_server
        from course_lib.grader.sandbox import walls as sandbox_walls
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
