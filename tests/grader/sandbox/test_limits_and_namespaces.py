"""Limits, another user, and namespaces, seen from inside of a real submission's process."""

import os
import socket
import subprocess
import sys
import textwrap

import pytest
import torch
from sandboxes import MASK, SMALL, call, code_of, found_in, linux, problem_in

from course_grade.sandbox.session import Session

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="grading needs fork")

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
        assert "File too large" in session.load(code_of("print('x' * 2**22, flush=True)"))["it"]["it"].message
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
        from course_grade.sandbox.walls import _become
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
        problem = other.load(code_of(f"open({one.scratch!r} + '/note')"))["it"]["it"]
    assert problem.type == "FileNotFoundError"


@linux
def test_the_scratch_folder_holds_only_so_much(namespaces_only):
    problem = problem_in(
        namespaces_only, "for n in range(20):\n    with open(f'{n}', 'wb') as f: f.write(bytes(2**20))"
    )
    assert "No space left" in problem.message
    problem = problem_in(namespaces_only, "for n in range(2000): open(f'{n}', 'w').close()")
    assert "No space left" in problem.message
