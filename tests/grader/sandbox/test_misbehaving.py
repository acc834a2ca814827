"""What is reported about a process that misbehaves."""

import os
import textwrap
import time

import pytest
from sandboxes import LOOP, call, code_of, end_of, problem_in

from course_grade.sandbox.session import Ended, Session
from course_kit.checker.protocol import encode

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="grading needs fork")


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
    ("code", "message"),
    [
        ("import ctypes; ctypes.string_at(0)", "ended the process with signal 11 (a crash) during reading its code"),
        ("import os; os.abort()", "ended the process with signal"),
    ],
    ids=["a null pointer", "an abort"],
)
def test_a_crash_is_known_by_its_signal(server, code, message):
    assert message in str(end_of(server, code))


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
