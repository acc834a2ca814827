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

# Limits

TOO_MUCH = {  # what is refused, in which words, and what is not
    "x = bytearray(400 * 2**20)": ("MemoryError", "x = bytearray(200 * 2**20)"),
    "import torch\nx = torch.ones(400 * 2**20, dtype=torch.uint8)": ("memory", "import torch\nx = torch.ones(9)"),
    "open('big', 'wb').write(bytes(2 * 2**20))": ("File too large", "open('small', 'wb').write(bytes(2**19))"),
    "import os\nx = [open(os.devnull) for _ in range(200)]": ("Too many open files", "open('/dev/null')"),
}


@linux
@pytest.mark.parametrize("code", TOO_MUCH)
def test_memory_files_and_their_size_are_limited(limits_only, code):
    words, permitted = TOO_MUCH[code]
    problem = problem_in(limits_only, code)
    assert words in f"{problem.type}: {problem.message}"
    assert problem_in(limits_only, permitted) is None


def test_output_cannot_grow_over_its_limit_and_the_session_goes_on(limits_only):
    with Session(limits_only) as session:
        assert "File too large" in session.load(code_of("print('x' * 2**22, flush=True)"))["it"]["it"].message
        assert os.fstat(session._output.fileno()).st_size <= 2**20
    with Session(limits_only) as session:
        flood = "print('x' * 2**22)\n"
        session.load(code_of(f"import contextlib\nwith contextlib.suppress(OSError): {flood}\n" + MASK))
        assert session.observe(call()).value.tolist() == torch.ones(3, 3).tril().bool().tolist()


def test_processor_time_is_limited_and_no_core_is_dumped(limits_only):
    limits = "[resource.getrlimit(resource.RLIMIT_CPU), resource.getrlimit(resource.RLIMIT_CORE)]"
    (_, seconds), core = found_in(limits_only, limits, "import resource")
    assert seconds <= SMALL.total_seconds + 5
    assert core == [0, 0]


def test_limits_cannot_be_raised_again(full):
    problem = problem_in(full, "import resource\nresource.setrlimit(resource.RLIMIT_AS, (2**40, 2**40))")
    assert problem.type in {"ValueError", "PermissionError"}


# Another user


@linux
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
def test_root_becomes_another_user_for_good():
    code = """
        import os
        from course_grade.sandbox.walls import _become
        os.setgroups([4711])
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


def test_processes_outside_are_not_seen_and_cannot_be_signalled(namespaces_only):
    assert found_in(namespaces_only, "[os.getpid(), os.getppid()]", "import os") == [1, 0]
    assert problem_in(namespaces_only, f"import os\nos.kill({os.getpid()}, 0)").type == "ProcessLookupError"


def test_there_is_no_network(namespaces_only):
    with socket.create_server(("127.0.0.1", 0)) as listening:
        address = listening.getsockname()[:2]
        socket.create_connection(address, timeout=5).close()  # there is a network out here
        problem = problem_in(namespaces_only, f"import socket\nsocket.create_connection({address}, timeout=0.3)")
    assert problem is not None
    assert "OSError" in problem.bases
    assert found_in(namespaces_only, "socket.if_nameindex()", "import socket") == [[1, "lo"]]


def test_abstract_sockets_of_others_are_out_of_reach(namespaces_only):
    name = f"\0course-lib-test-{os.getpid()}"
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(name)
        listening.listen()
        problem = problem_in(namespaces_only, f"import socket\nsocket.socket(socket.AF_UNIX).connect({name!r})")
    assert problem.type == "ConnectionRefusedError"


def test_what_is_written_to_the_scratch_folder_is_seen_by_nobody_else(namespaces_only):
    with Session(namespaces_only) as one, Session(namespaces_only) as other:
        assert one.load(code_of("with open('note', 'w') as f: f.write('x')")) == {}
        assert os.listdir(one.scratch) == []
        problem = other.load(code_of(f"open({one.scratch!r} + '/note')"))["it"]["it"]
    assert problem.type == "FileNotFoundError"


def test_the_scratch_folder_holds_only_so_much(namespaces_only):
    for count, size in ((20, 2**20), (2000, 0)):
        code = f"for n in range({count}):\n    with open(f'{{n}}', 'wb') as f: f.write(bytes({size}))"
        assert "No space left" in problem_in(namespaces_only, code).message
