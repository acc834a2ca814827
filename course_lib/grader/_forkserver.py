"""A process that has PyTorch loaded and forks one child for each submission: a fork takes milliseconds, an import
seconds.

    python -m course_lib.grader._forkserver FD     started by the grader; FD is a socket

It never runs a submission's code itself. Commands are lines of JSON: {"do": "start", …} with the child's file
descriptors, answered by its process id; {"do": "end", "pid": …}, answered by how it ended.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import resource
import signal
import socket
import sys
import tempfile
import time
import warnings

import torch

import course_lib.exercises
from course_lib.grader import _child
from course_lib.grader._sandbox import (
    PR_SET_CHILD_SUBREAPER,
    PR_SET_DUMPABLE,
    PR_SET_PDEATHSIG,
    Limits,
    Walls,
    confine,
    prctl,
    probe,
)
from course_lib.grader._warming import CACHES, warm

__all__ = ["main"]

# What a submission finds in its environment, beside the places of caches.
ENVIRONMENT = {
    "MPLBACKEND": "Agg",
    "OMP_NUM_THREADS": "1",
    "USER": "student",  # asked for by getpass, where a user has no name
    "LOGNAME": "student",
}


def main(fd: int) -> None:
    """Serve until the grader closes the socket."""
    control = socket.socket(fileno=fd)
    torch.set_num_threads(1)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the grader, which then ends this process
    course_lib.exercises.all_exercises()
    warm()
    with contextlib.suppress(OSError):
        prctl(PR_SET_CHILD_SUBREAPER, 1)  # what a child leaves behind becomes ours, and is ended
        prctl(PR_SET_DUMPABLE, 0)  # no child may look into this process
    running: set[int] = set()
    walls = Walls()
    while True:
        message, fds, _, _ = socket.recv_fds(control, 65536, 8)
        while message and not message.endswith(b"\n"):
            message += control.recv(65536)
        if not message:
            break
        command = json.loads(message)
        if command["do"] == "probe":
            walls = probe(command["walls"])
            answer = {"up": walls.up, "missing": walls.missing}
        elif command["do"] == "start":
            answer = {"pid": _start(control, fds, walls, command)}
            running.add(answer["pid"])
            for handle in fds:
                os.close(handle)
        elif command["pid"] in running:
            running.remove(command["pid"])
            answer = {"status": _end(command["pid"], running)}
        else:
            answer = {"status": 0}  # none of ours, or ended before
        control.sendall(json.dumps(answer).encode() + b"\n")
    for pid in running:
        _end(pid, set())


def _start(control: socket.socket, fds: list[int], walls: Walls, command: dict) -> int:
    limits, scratch, lenient = Limits(**command["limits"]), command["scratch"], command["lenient"]
    pid = os.fork()
    if pid:
        return pid
    status = 70
    try:
        os.setsid()
        with contextlib.suppress(OSError):
            prctl(PR_SET_PDEATHSIG, signal.SIGKILL)  # it does not outlive this server
        control.detach()  # its descriptor is closed with all the others
        warnings.simplefilter("ignore")
        requests, answers, output = _place(fds)
        os.chdir(scratch)
        sys.stdin = open(os.devnull)  # noqa: SIM115 - open as long as the process
        os.dup2(output, 1)
        os.dup2(output, 2)
        sys.stdout = open(1, "w", encoding="utf-8", errors="replace", closefd=False)  # noqa: SIM115 - open as long as the process
        sys.stderr = open(2, "w", encoding="utf-8", errors="replace", closefd=False)  # noqa: SIM115 - open as long as the process
        os.environ.clear()
        os.environ.update(ENVIRONMENT, **dict.fromkeys(CACHES, scratch))
        sys.argv = ["submission"]
        tempfile.tempdir = None  # to be found anew, from TMPDIR
        confine(walls, limits, scratch, lenient=lenient)
        with contextlib.suppress(OSError):
            prctl(PR_SET_DUMPABLE, 0)
        _child.serve(requests, answers, scratch)
        status = 0
    except BaseException as error:
        with contextlib.suppress(BaseException):
            print(f"{type(error).__name__}: {error}", file=sys.stderr, flush=True)
    finally:
        os._exit(status)


def _place(fds: list[int]) -> tuple[int, int, int]:
    """Keep three descriptors, as 3, 4 and 5, and close all others: neither our socket nor another one's pipe."""
    high = [fcntl.fcntl(fd, fcntl.F_DUPFD, 64) for fd in fds]  # out of the way of each other
    for i, fd in enumerate(high):
        os.dup2(fd, 3 + i, inheritable=False)
    os.closerange(6, resource.getrlimit(resource.RLIMIT_NOFILE)[0] if sys.platform != "darwin" else 4096)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    return 3, 4, 5


def _end(pid: int, running: set[int]) -> int:
    """End a child and all that it left behind; how the child ended: its exit status, or minus a signal's number."""
    deadline = time.monotonic() + 0.02
    status = None
    while status is None and time.monotonic() < deadline:  # it may be about to end by itself, with a status to tell
        done, code = os.waitpid(pid, os.WNOHANG)
        status = os.waitstatus_to_exitcode(code) if done else None
        if status is None:
            time.sleep(0.001)
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)
    if status is None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        status = -int(signal.SIGKILL)
    _end_orphans(running)
    return status


def _end_orphans(running: set[int]) -> None:
    """Processes that lost their parent are ours by now; submissions have no use for processes."""
    for _ in range(100):
        orphans = [pid for pid in _children() if pid not in running]
        if not orphans:
            return
        for pid in orphans:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, 0)


def _children() -> list[int]:
    try:
        with open(f"/proc/self/task/{os.getpid()}/children", encoding="ascii") as file:
            return [int(pid) for pid in file.read().split()]
    except OSError:  # not on this system
        return []


if __name__ == "__main__":
    main(int(sys.argv[1]))
