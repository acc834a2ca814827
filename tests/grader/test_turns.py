"""Running beside others and alone, and what follows for time limits and for servers that end."""

import contextlib
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from course_grade.grading.assignment import AssignedExercise, Assignment
from course_grade.grading.grade import Grader, grade_all
from course_grade.grading.one_submission import Run
from course_grade.grading.scheduling import SharedOrExclusiveLock
from course_grade.sandbox.session import PATIENCE, Session, _TimeLeft
from course_grade.sandbox.walls import Limits
from course_grade.submission.submissions import read_submissions

pytestmark = pytest.mark.thorough

RIGHT = "import torch\ndef causal_mask(length):\n    return torch.ones(length, length, dtype=torch.bool).tril()\n"
linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="/proc is Linux's")


def test_a_server_that_is_lent_has_the_limits_and_walls_of_its_borrower(lender):
    with lender.lend(Limits(seconds=0.5), ()) as short, lender.lend(Limits(seconds=7.0), ("limits",)) as long:
        assert (short.limits.seconds, long.limits.seconds) == (0.5, 7.0)
        assert (short.walls.up, long.walls.up) == ((), ("limits",))


def test_one_that_is_alone_waits_for_the_others_and_they_for_it():
    turns, beside, together = SharedOrExclusiveLock(), [], []
    barrier = threading.Barrier(3)

    def side_by_side(number):
        with turns.beside():
            beside.append(number)
            if number < 3:
                barrier.wait(5)  # three of them are there at once
            time.sleep(0.01)
            beside.remove(number)

    def alone(_):
        with turns.alone():
            together.append(list(beside))
            time.sleep(0.01)
            together.append(list(beside))

    with ThreadPoolExecutor(12) as pool:
        done = [pool.submit(side_by_side, n) for n in range(8)] + [pool.submit(alone, n) for n in range(3)]
        assert all(future.exception(10) is None for future in done)
    assert together == [[]] * 6


def test_two_that_leave_the_others_to_be_alone_do_not_wait_for_each_other():
    turns, barrier, seen = SharedOrExclusiveLock(), threading.Barrier(2), []

    def run(number):
        with turns.beside():
            barrier.wait(5)
            with turns.alone(from_beside=True):
                seen.append(number)
                time.sleep(0.01)
                seen.append(number)

    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(run, (1, 2), timeout=10)) == [None, None]
    assert seen in ([1, 1, 2, 2], [2, 2, 1, 1])


def test_all_that_wait_behind_one_alone_go_on_together():
    turns, barrier = SharedOrExclusiveLock(), threading.Barrier(3)

    def wait_and_meet(_):
        with turns.beside():
            barrier.wait(5)

    with ThreadPoolExecutor(3) as pool:
        with turns.alone():
            waiting = pool.map(wait_and_meet, range(3), timeout=10)
            time.sleep(0.05)  # they wait by now
        assert list(waiting) == [None] * 3


def test_one_that_waits_to_be_alone_is_not_forgotten_behind_others():
    turns, ends, started = SharedOrExclusiveLock(), [threading.Event(), threading.Event()], threading.Barrier(3)

    def run(end):
        with turns.beside():
            started.wait(5)
            end.wait(5)

    def wait(turn):
        with turn():
            pass

    threads = [threading.Thread(target=run, args=(end,), daemon=True) for end in ends]
    threads += [threading.Thread(target=wait, args=(turn,), daemon=True) for turn in (turns.alone, turns.beside)]
    for thread in threads:
        thread.start()
        if thread is threads[1]:
            started.wait(5)
        time.sleep(0.05)  # it runs or waits by now
    for end in ends:  # after the first of them, the one that waits to be alone is again the last in line
        end.set()
        time.sleep(0.05)
    for thread in threads:
        thread.join(5)
    assert not any(thread.is_alive() for thread in threads)


# Time


@pytest.mark.parametrize(
    ("used", "prolonged", "doubtful"),  # seconds of processor time each time it is asked for
    [(1.0, False, False), (0.0, False, True), (0.4, True, True), (None, False, False)],
    ids=["it computed all the time", "it slept", "others ran beside it", "nothing is known"],
)
def test_time_is_counted_by_the_processor(used, prolonged, doubtful, monkeypatch):
    clock = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])
    left = _TimeLeft(1.0, lambda: used)
    left.prolong()
    assert left() == 1.0
    clock[0] = 101.01
    with contextlib.nullcontext() if prolonged else pytest.raises(TimeoutError):
        left.prolong()
    assert left.doubtful == doubtful
    if prolonged:
        assert left() == pytest.approx(0.6)
        clock[0] = 100 + PATIENCE + 0.1
        with pytest.raises(TimeoutError):
            left.prolong()


# Servers that end


@pytest.fixture
def class_of_six(tmp_path):
    for number in range(6):
        (tmp_path / f"s{number}.py").write_text(RIGHT + f"# {number}\n")
    return list(read_submissions([tmp_path]))


@linux
def test_who_ends_the_server_is_not_graded_and_costs_nobody_points(class_of_six, monkeypatch):
    observe = Run.observe

    def observed(self, sheet):
        if self.submission.student == "s3":
            os.kill(self.server._process.pid, signal.SIGKILL)
            self.server._process.wait()
        return observe(self, sheet)

    monkeypatch.setattr(Run, "observe", observed)
    results = grade_all(class_of_six, Assignment(tasks=(AssignedExercise("causal_mask"),), seed=1), None, jobs=3)
    assert [r.tasks[0].status for r in results] == ["passed"] * 3 + ["not graded"] + ["passed"] * 2
    assert "even alone" in results[3].tasks[0].note


@linux
def test_a_call_that_was_starved_is_run_again_alone(class_of_six, monkeypatch):
    original, ended, alone = Session.observe, [], []

    def starved(self, frame):
        if not ended:
            ended.append(self)
            end = self._over("took longer than 5 s for a call, and was stopped")
            end.too_long = end.doubtful = True
            raise end
        alone.append(grader._turns._alone)
        return original(self, frame)

    monkeypatch.setattr(Session, "observe", starved)
    with Grader(Assignment(tasks=(AssignedExercise("causal_mask"),), seed=1)) as grader:
        assert grader.grade(class_of_six[0]).tasks[0].status == "passed"
    assert ended
    assert alone[0]
    assert not any(alone[1:])


# Nothing is left

GRADER = """
    import sys, tempfile, time
    tempfile.tempdir = sys.argv[1]
    from course_grade.sandbox.walls import Limits
    from course_grade.sandbox.session import ForkServer, Session
    from tests.grader.session_code import code_of
    server = ForkServer(Limits())
    session = Session(server)
    session.load(code_of("open('note', 'w').close()"))
    print("ready", flush=True)
    time.sleep(60)
"""


@linux
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_no_scratch_folder_and_no_traceback_is_left_when_the_grader_is_ended(number, tmp_path):
    command = [sys.executable, "-c", textwrap.dedent(GRADER), str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "ready\n"
        assert len(list(tmp_path.iterdir())) == 1
        process.send_signal(number)
        process.wait(10)
        deadline = time.monotonic() + 20
        while list(tmp_path.iterdir()) and time.monotonic() < deadline:
            time.sleep(0.05)
        assert list(tmp_path.iterdir()) == []
        assert "Traceback" not in process.stderr.read()
