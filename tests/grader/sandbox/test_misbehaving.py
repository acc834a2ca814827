"""What is reported about a process that misbehaves."""

import time

import pytest
from sandboxes import HASTY, LOOP, call, code_of, end_of, problem_in

from course_grade.sandbox.session import Ended, Session
from course_kit.checker.protocol import encode


@pytest.mark.parametrize(("in_call", "what"), [(False, "reading its code"), (True, "a call")])
def test_a_submission_that_hangs_is_stopped(hasty, in_call, what):
    began = time.monotonic()
    end = end_of(hasty, LOOP, in_call=in_call)
    assert str(end) == f"took longer than 0.6 s for {what}, and was stopped"
    assert end.too_long
    assert 0.6 <= time.monotonic() - began < 3


def test_a_process_that_stopped_itself_is_ended(bare, monkeypatch):
    monkeypatch.setattr(bare, "limits", HASTY)
    end = end_of(bare, "import os, signal\nos.kill(os.getpid(), signal.SIGSTOP)")
    assert "took longer than 0.6 s" in str(end)
    assert end.too_long
    assert end.doubtful  # it had no processor time: was it the submission, or others who ran beside it?


def test_a_submission_that_exits_is_known_by_its_status(server):
    for status, in_call, what in ((0, False, "reading its code"), (77, False, "reading its code"), (5, True, "a call")):
        end = end_of(server, f"import os\nos._exit({status})", in_call=in_call)
        assert str(end) == f"ended the process with exit status {status} during {what}"
        assert not end.too_long


def test_a_crash_is_known_by_its_signal(server):
    crash = "ended the process with signal 11 (a crash) during reading its code"
    assert str(end_of(server, "import ctypes; ctypes.string_at(0)")) == crash
    assert "ended the process with signal" in str(end_of(server, "import os; os.abort()"))


def test_a_process_that_was_killed_is_known_by_its_signal(bare):
    end = end_of(bare, "import os\nos.kill(os.getpid(), 9)")
    assert str(end) == "ended the process with signal 9 (killed) during reading its code"


def test_an_ordinary_exit_is_an_exception_like_others(server):
    assert problem_in(server, "import sys\nsys.exit('bye')").type == "SystemExit"


def test_an_exception_that_nobody_catches_ends_the_process_with_its_last_words(server):
    for exception in ("KeyboardInterrupt", "GeneratorExit", "BaseException"):
        end = str(end_of(server, f"raise {exception}('goodbye \\x1b[2J now')"))
        assert end.startswith("ended the process during reading its code; its last words: ")
        assert exception in end
        assert "goodbye" in end
        assert "\x1b" not in end
    assert len(str(end_of(server, "raise BaseException('never ' * 10_000)"))) < 300


def frame(head: bytes, length: int | None = None) -> str:
    """Code that answers with this text in place of JSON."""
    return f"import os\nos.write(4, {bytes([0, 0, 0, length or len(head), 0, 0, 0, 0]) + head!r})"


NONSENSE = {
    "a giant": "import os\nos.write(4, b'\\xff' * 8)",
    "no JSON": frame(b"???"),
    "no object": frame(b"[]"),
    "nothing": frame(b"{}"),
    "nothing in it": frame(b'{"failed":null}'),
    "a wrong problem": frame(b'{"failed":{"x":[1]}}'),
    "text": "import os\nos.write(4, b'I pass all tests, give me all points')",
}


@pytest.mark.parametrize("kind", NONSENSE)
def test_nonsense_for_an_answer_ends_the_session_in_words(server, kind):
    for in_call in (False, True):
        assert str(end_of(server, NONSENSE[kind], in_call=in_call)).startswith("sent an invalid reply")


def test_an_answer_that_breaks_off_is_an_end_of_the_process(server):
    for code in ("import os\nos.write(4, b'\\0\\0\\0')", frame(b"{", length=99)):
        assert "exit status 9" in str(end_of(server, f"{code}\nos._exit(9)"))


def test_an_answer_that_drips_takes_no_longer_than_the_limit(hasty):
    drip = "os.write(4, bytes([0, 1, 0, 0, 0, 0, 0, 0]))\nwhile True:\n    os.write(4, b' ')\n    time.sleep(0.05)"
    began = time.monotonic()
    assert end_of(hasty, f"import os, time\n{drip}").too_long
    assert time.monotonic() - began < 3


def test_a_submission_that_closes_its_pipes_is_an_end_in_words(hasty):
    end = end_of(hasty, "import os\nos.close(3)\nos.close(4)\nimport time\ntime.sleep(60)")
    assert "reading its code" in str(end)


def test_a_submission_that_reads_no_more_is_stopped(hasty):
    early = frame(b'{"failed": {}, "used": {}}')
    with Session(hasty) as session:
        assert session.load(code_of(f"{early}\nimport time\ntime.sleep(6)")) == {}
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
