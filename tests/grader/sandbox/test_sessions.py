"""Sessions with all walls or none: what comes back, and what a submission must not know."""

import contextlib
import os

import torch
from sandboxes import MASK, SMALL, call, code_of, found_in, problem_in

from course_grade.sandbox.child import SCRATCH
from course_grade.sandbox.session import ForkServer, Session

# All walls, or none


def test_a_solution_is_called_and_what_it_returned_comes_back(server):
    with Session(server) as session:
        assert session.load(code_of(MASK)) == {}
        seen = session.observe(call())
        assert seen.problem is None
        assert torch.equal(seen.value, torch.ones(3, 3).tril().bool())


def test_a_piece_that_fails_is_known_by_the_names_that_it_would_have_defined(server):
    with Session(server) as session:
        failed = session.load(code_of("import torch\nx = 1 / 0", "x", "y"))
    assert set(failed) == {"x", "y", "causal_mask"}  # the exercises that need the piece
    assert set(failed["causal_mask"]) == {"x", "y", "causal_mask"}
    problem = failed["causal_mask"]["x"]
    assert (problem.type, problem.line, problem.file) == ("ZeroDivisionError", 2, "s.py")


def test_an_exception_in_a_call_comes_back_and_the_process_goes_on(server):
    with Session(server) as session:
        session.load(code_of("calls = []\ndef causal_mask(length):\n    calls.append(1)\n    return len(calls) // 0"))
        assert session.observe(call()).problem.type == "ZeroDivisionError"
        assert session.observe(call()).problem.line == 4
    with Session(server) as session:
        session.load(code_of("x = 1"))
        assert session.observe(call()).problem.type == "NameError"  # it has no such function


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
        assert other.load(code_of("note"))["it"]["it"].type == "NameError"
        assert other.load(code_of("import torch\ntorch.note"))["it"]["it"].type == "AttributeError"


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
