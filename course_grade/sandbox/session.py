"""The grader's side of a submission's process: start it, ask it, and be done with it whatever it does."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from typing import Any

from course_grade.sandbox.child import SCRATCH
from course_grade.sandbox.scratch import remove
from course_grade.sandbox.walls import WALLS, Limits, Walls
from course_kit.checker.observing import Observation, Problem
from course_kit.checker.protocol import (
    ProtocolError,
    bounded_text,
    decode,
    encode,
    lengths,
    unpack_observation,
    unpack_problem,
)

__all__ = ["Ended", "ForkServer", "NotGraded", "ServerGone", "Session"]


class Ended(Exception):  # noqa: N818 - the end of a process, not an error of ours
    """The submission's process is gone, or was ended; the message says why, as the end of a sentence about it."""

    too_long = False
    doubtful = False  # it took too long, but by the clock on the wall: perhaps others were in its way


class NotGraded(Exception):  # noqa: N818 - no verdict is possible, through no fault of the submission
    """The grader could not observe a solution for a reason of its own; the message says which, as a sentence."""


START_SECONDS = 120.0  # for the fork server to start
PATIENCE = 4  # times the limit, by the clock on the wall, for a process that gets little processor time
ANSWER_SECONDS = 15.0  # for an answer of the fork server; it needs milliseconds


class ServerGone(RuntimeError):  # noqa: N818 - it may have been asked to go
    """The fork server has ended; nothing more can be graded by it."""


class ForkServer:
    """A process with PyTorch loaded, from which submissions' processes are forked. Used by any number of threads.

    Args:
        limits: for every submission.
        walls: which walls to put up where the machine has them; all by default.
    """

    def __init__(self, limits: Limits, walls: tuple[str, ...] = tuple(WALLS)):
        if not hasattr(os, "fork"):
            raise OSError(
                "grading needs a system with fork (Linux, macOS); on Windows run it in WSL, or grade in a Linux "
                "container"
            )
        self.limits = limits
        self.gone = False  # whether it has ended
        self._lock = threading.Lock()
        self._control, theirs = socket.socketpair()
        self._control.settimeout(START_SECONDS)
        fd = theirs.fileno()
        # All scratch folders lie in this one, which the fork server removes when the grader ends, however it ends.
        self.folder = tempfile.mkdtemp(prefix="course-lib-")
        os.chmod(self.folder, 0o711)
        command = [sys.executable, "-m", "course_grade.sandbox.server", str(fd), self.folder]
        # It starts in the root folder, since Python looks for modules where it starts, and submissions may lie there.
        self._process = subprocess.Popen(command, pass_fds=[fd], env=_environment(), cwd="/", stdin=subprocess.DEVNULL)
        theirs.close()
        found = self._ask({"do": "probe", "walls": list(walls)})
        self.walls = Walls(tuple(found["up"]), found["missing"])
        if not self.walls.without_root and "user" in walls:
            self.close()
            raise OSError(
                f"submissions would run as root, which is not safe: expected Linux namespaces, or Python's files where "
                f"other users can read them ({self.walls}). Run the grader as another user, or install Python and the "
                f"course in a folder that all users can read, such as /opt or /usr/local"
            )
        self._control.settimeout(ANSWER_SECONDS)

    def _ask(self, command: dict[str, Any], fds: tuple[int, ...] = ()) -> dict[str, Any]:
        with self._lock:
            try:
                socket.send_fds(self._control, [json.dumps(command).encode() + b"\n"], fds)
                answer = b""
                while not answer.endswith(b"\n"):
                    chunk = self._control.recv(65536)
                    if not chunk:
                        raise OSError
                    answer += chunk
                return json.loads(answer)
            except (OSError, ValueError):
                self.gone = True
                self._process.kill()  # stopped, or ended already
                raise ServerGone(
                    f"the grader's fork server has ended (exit status {self._process.poll()}); run the grader again, "
                    f"and it continues where it stopped"
                ) from None

    def close(self) -> None:
        """End the process and all of its children."""
        with self._lock:
            self._control.close()
        try:
            self._process.wait(timeout=3)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        remove(self.folder)  # where it was killed

    def processor_seconds(self, pid: int) -> float | None:
        """How much processor time a session's process has used; None where the system does not say."""
        return self._ask({"do": "time", "pid": pid})["seconds"]

    def __enter__(self) -> ForkServer:
        return self

    def __exit__(self, *error) -> None:
        self.close()


class Session:
    """One process of one submission.

    Args:
        server: where it is forked from.
        lenient: permit what cannot reach beyond the process, for code that broke without it.
    """

    def __init__(self, server: ForkServer, *, lenient: bool = False):
        self.server = server
        self._spent = 0.0  # processor time before the first call
        self.used_at_load: dict[str, set[str]] = {}  # by exercise: forbidden functions, as the process says
        self.scratch = tempfile.mkdtemp(prefix="course-lib-", dir=server.folder)
        os.chmod(self.scratch, 0o777)  # the submission may run as another user
        self._output = tempfile.TemporaryFile()  # noqa: SIM115 - as long as the session
        their_requests, self._requests = os.pipe()
        self._answers, their_answers = os.pipe()
        os.set_blocking(self._requests, False)
        try:
            self.pid = server._ask(
                {
                    "do": "start",
                    "limits": dataclasses.asdict(server.limits),
                    "scratch": self.scratch,
                    "lenient": lenient,
                },
                (their_requests, their_answers, self._output.fileno()),
            )["pid"]
        except BaseException:
            os.close(self._requests)
            os.close(self._answers)
            self._output.close()
            remove(self.scratch)
            raise
        finally:
            os.close(their_requests)
            os.close(their_answers)

    def load(self, message: dict[str, Any]) -> dict[str, dict[str, Problem]]:
        """Hand over the code; by exercise, the problems of failing statements, by the names that they would define.

        Raises:
            Ended: the process did not survive it.
        """
        frame = encode({"do": "load", **message})
        answer, _ = self._exchange(frame, self.server.limits.load_seconds, "reading its code")
        self._spent = self.server.processor_seconds(self.pid) or 0.0
        try:
            failed, used = answer["failed"], answer["used"]
            self.used_at_load = {
                bounded_text(n, 80): {bounded_text(twin, 120) for twin in forbidden[:20]}
                for n, forbidden in used.items()
            }
            return {
                bounded_text(exercise, 80): {
                    bounded_text(name, 80): unpack_problem(problem) for name, problem in list(problems.items())[:200]
                }
                for exercise, problems in failed.items()
            }
        except (ProtocolError, KeyError, TypeError, ValueError, AttributeError) as error:
            raise self._over("sent an invalid reply while its code was being loaded") from error

    def observe(self, frame: bytes) -> Observation:
        """Run one case.

        Raises:
            Ended: the process did not survive it, or took too long.
        """
        answer, blobs = self._exchange(frame, self.server.limits.seconds, "a call")
        try:
            return unpack_observation(answer, blobs)
        except ProtocolError as error:
            raise self._over(f"sent an invalid reply ({error})") from error

    def close(self, patience: float = 0.02) -> int:
        """End the process; how it ended.

        Args:
            patience: seconds in which it may end by itself, with a status to tell.
        """
        if self.pid is None:
            return 0
        pid, self.pid = self.pid, None
        os.close(self._requests)  # it ends by itself when no more requests can come
        try:
            return self.server._ask({"do": "end", "pid": pid, "patience": patience})["status"]
        except ServerGone:  # no other process will end it
            with contextlib.suppress(OSError):
                os.killpg(pid, signal.SIGKILL)
            raise
        finally:
            os.close(self._answers)
            self._output.close()
            remove(self.scratch)

    def _over(self, why: str) -> Ended:
        self.close()
        return Ended(why)

    def _exchange(self, frame: bytes, seconds: float, what: str) -> tuple[dict[str, Any], bytes]:
        time_left = _TimeLeft(seconds, self._used)
        try:
            self._send(frame, time_left)
            head, blobs = lengths(self._receive(8, time_left))
            return decode(self._receive(head, time_left)), self._receive(blobs, time_left)
        except TimeoutError:
            end = self._over(f"took longer than {seconds:g} s for {what}, and was stopped")
            end.too_long, end.doubtful = True, time_left.doubtful
            raise end from None
        except ProtocolError as error:
            raise self._over(f"sent an invalid reply ({error})") from None
        except (EOFError, BrokenPipeError):
            raise self._ended_by_itself(what) from None

    def _used(self) -> float | None:
        """Processor time since the code was read."""
        spent = self.server.processor_seconds(self.pid)
        return None if spent is None else spent - self._spent

    def _ended_by_itself(self, what: str) -> Ended:
        self._output.seek(0)
        written = self._output.read(2**20).decode("utf-8", "replace").replace(self.scratch, SCRATCH)[-300:].strip()
        status = self.close(patience=0.5)  # it has closed its side already
        if status == 70:  # exit status of our own part of the process when it cannot continue
            last = bounded_text(written.rpartition(chr(10))[2], 200)
            return Ended(f"ended the process during {what}; its last words: {last!r}")
        if status < 0 or status > 128:
            number = -status if status < 0 else status - 128
            return Ended(f"ended the process with signal {number} ({_signal_name(number)}) during {what}")
        return Ended(f"ended the process with exit status {status} during {what}")

    def _send(self, frame: bytes, time_left: _TimeLeft) -> None:
        view = memoryview(frame)
        while view:
            while not select.select([], [self._requests], [], time_left())[1]:
                time_left.prolong()
            view = view[os.write(self._requests, view) :]

    def _receive(self, count: int, time_left: _TimeLeft) -> bytes:
        chunks = bytearray()
        while len(chunks) < count:
            while not select.select([self._answers], [], [], time_left())[0]:
                time_left.prolong()
            chunk = os.read(self._answers, min(count - len(chunks), 2**20))
            if not chunk:
                raise EOFError
            chunks += chunk
        return bytes(chunks)

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *error) -> None:
        self.close()


class _TimeLeft:
    """Time for one answer: counted by the processor's clock, so that others who run beside cost a submission nothing.

    Args:
        seconds: of processor time.
        used: returns how much of it the process has used.
    """

    def __init__(self, seconds: float, used: Callable[[], float | None]):
        self.seconds, self.used = seconds, used
        self.began = time.monotonic()
        self.until = self.began + seconds
        self.doubtful = False

    def __call__(self) -> float:
        return max(0.0, self.until - time.monotonic())

    def prolong(self) -> None:
        """Go on where the process has not had its time.

        Raises:
            TimeoutError: it has; or it sleeps, or gets so little that it would take forever.
        """
        if time.monotonic() < self.until:
            return
        used, passed = self.used(), time.monotonic() - self.began
        if used is not None and used < 0.9 * self.seconds:
            self.doubtful = True
            if used > 0.05 * passed and passed < PATIENCE * self.seconds:
                self.until = time.monotonic() + max(0.05, self.seconds - used)
                return
        else:
            self.doubtful = False
        raise TimeoutError


def _environment() -> dict[str, str]:
    """What the fork server needs, and nothing that a submission should not see, such as a token of CI."""
    kept = ("PATH", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "LANG", "LC_ALL")
    environment = {name: os.environ[name] for name in kept if name in os.environ}
    return {
        **environment,
        "OMP_NUM_THREADS": "1",
        "GLIBC_TUNABLES": "glibc.malloc.hugetlb=1",  # large pages, of which a fork copies fewer: half the time
        "MKL_NUM_THREADS": "1",
        "PYTHONHASHSEED": "0",
        "PYTHONSAFEPATH": "1",
        "CUDA_VISIBLE_DEVICES": "",  # graded on the processor; a process that has used a GPU cannot be forked
    }


def _signal_name(number: int) -> str:
    names = {
        signal.SIGSEGV: "a crash",
        signal.SIGABRT: "an abort",
        signal.SIGKILL: "killed",
        signal.SIGXCPU: "out of time",
    }
    return names.get(number, signal.strsignal(number) or "unknown")
