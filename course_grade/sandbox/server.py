"""A process that has PyTorch loaded and forks one child for each submission: a fork takes milliseconds, an import
seconds.

    python -m course_grade.sandbox.server FD FOLDER     started by the grader; FD is a socket

It never runs a submission's code itself. Commands are lines of JSON: {"do": "start", …} with the child's file
descriptors, answered by its process id; {"do": "end", "pid": …, "patience": …}, answered by how it ended.
"""

from __future__ import annotations

import contextlib
import fcntl
import gc
import itertools
import json
import os
import resource
import select
import signal
import socket
import sys
import tempfile
import time
import warnings

import torch

from course_grade.sandbox import child as inside
from course_grade.sandbox.large_pages import move_to_large_pages
from course_grade.sandbox.linux import PR_SET_CHILD_SUBREAPER, PR_SET_DUMPABLE, PR_SET_PDEATHSIG, prctl
from course_grade.sandbox.namespaces import next_child_has_own_processes
from course_grade.sandbox.preload import CACHES, warm
from course_grade.sandbox.scratch import remove
from course_grade.sandbox.walls import FIRST_USER, USERS, Limits, Walls, confine, probe

__all__ = ["main"]

# What a submission finds in its environment, beside the places of caches.
ENVIRONMENT = {
    "MPLBACKEND": "Agg",
    "OMP_NUM_THREADS": "1",
    "USER": "student",  # asked for by getpass, where a user has no name
    "LOGNAME": "student",
}


def main(fd: int, folder: str) -> None:
    """Serve until the grader closes the socket, then remove what submissions left.

    Args:
        fd: the socket.
        folder: where scratch folders lie; it is removed at the end, however the grader ended.
    """
    control = socket.socket(fileno=fd)
    torch.set_num_threads(1)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # these are for the grader, whose end then ends this process
    warm()
    inside.warm()
    gc.collect()
    gc.freeze()  # or the first collection in a child would copy all that we have loaded
    move_to_large_pages()
    with contextlib.suppress(OSError):
        prctl(PR_SET_CHILD_SUBREAPER, 1)  # what a child leaves behind becomes ours, and is ended
        prctl(PR_SET_DUMPABLE, 0)  # no child may look into this process
    running: dict[int, _Child] = {}
    walls, numbers = Walls(), itertools.count()
    with contextlib.suppress(ConnectionError):  # a grader that is killed may leave what we wrote unread
        while True:
            message, fds, _, _ = socket.recv_fds(control, 65536, 8)
            while message and not message.endswith(b"\n"):
                message += control.recv(65536)
            if not message:
                break
            command = json.loads(message)
            if command["do"] == "probe":
                walls = probe(command["walls"], folder)
                answer = {"up": walls.up, "missing": walls.missing}
            elif command["do"] == "start":
                child = _start(control, fds, walls, command, next(numbers))
                running[child.pid] = child
                answer = {"pid": child.pid}
                for handle in fds:
                    os.close(handle)
            elif command["pid"] not in running:
                answer = {"status": 0, "seconds": None}  # none of ours, or ended before
            elif command["do"] == "time":
                answer = {"seconds": running[command["pid"]].processor_seconds()}
            else:
                child = running.pop(command["pid"])
                answer = {"status": _end(child.pid, running, command["patience"])}
                child.close()
            control.sendall(json.dumps(answer).encode() + b"\n")
    for pid in running:
        _end(pid, {})
    remove(folder)


class _Child:
    """A submission's process: what we forked, which with namespaces only waits for the one that runs the code.

    Args:
        pid: of the process that was forked.
        told: a pipe that says, with namespaces, which process runs the code.
    """

    def __init__(self, pid: int, told: int):
        self.pid, self._told = pid, told
        self._worker: int | None = None

    def processor_seconds(self) -> float | None:
        """What the process has used up, all threads together; None where the system does not say."""
        if self._worker is None:
            ready, _, _ = select.select([self._told], [], [], 0)
            self._worker = int(os.read(self._told, 20) or self.pid) if ready else self.pid
        try:
            return time.clock_gettime((~self._worker << 3) | 2)  # CPUCLOCK_SCHED, of another process
        except OSError:
            return None

    def close(self) -> None:
        os.close(self._told)


def _start(control: socket.socket, fds: list[int], walls: Walls, command: dict, number: int) -> _Child:
    limits, scratch = Limits(**command["limits"]), command["scratch"]
    told, telling = os.pipe()
    # One fork in place of two, where root may do it: each copies the tables of all that is loaded here.
    own = next_child_has_own_processes() if {"user", "namespaces"} <= set(walls.up) else contextlib.nullcontext(False)
    with own as first_process:
        pid = os.fork()
    if pid:
        os.close(telling)
        return _Child(pid, told)
    status = 70
    try:
        os.setsid()
        with contextlib.suppress(OSError):
            prctl(PR_SET_PDEATHSIG, signal.SIGKILL)  # it does not outlive this server
        control.detach()  # its descriptor is closed with all the others
        warnings.simplefilter("ignore")
        requests, answers, output, telling = _place([*fds, telling])
        os.chdir(scratch)
        sys.stdin = open(os.devnull)  # noqa: SIM115 - open as long as the process
        os.dup2(output, 1)
        os.dup2(output, 2)
        sys.stdout = open(1, "w", encoding="utf-8", errors="replace", closefd=False)  # noqa: SIM115 - open as long as the process
        sys.stderr = open(2, "w", encoding="utf-8", errors="replace", closefd=False)  # noqa: SIM115 - open as long as the process
        sys.argv = ["submission"]
        tempfile.tempdir = None  # to be determined again, from TMPDIR
        user = FIRST_USER + number % USERS
        if "user" in walls.up:
            os.chown(scratch, user, user)
            os.chmod(scratch, 0o700)
        tell = lambda worker: os.write(telling, str(worker).encode())  # noqa: E731
        lenient = command["lenient"]
        scratch = confine(walls, limits, scratch, lenient=lenient, user=user, tell=tell, first_process=first_process)
        os.close(telling)
        os.environ.clear()
        os.environ.update(ENVIRONMENT, **dict.fromkeys(CACHES, scratch))
        with contextlib.suppress(OSError):
            prctl(PR_SET_DUMPABLE, 0)
        inside.serve(requests, answers, scratch)
        status = 0
    except BaseException as error:
        with contextlib.suppress(BaseException):
            print(f"{type(error).__name__}: {error}", file=sys.stderr, flush=True)
    finally:
        os._exit(status)


def _place(fds: list[int]) -> range:
    """Keep these descriptors, as 3, 4 and so on, and close all others: neither our socket nor another one's pipe."""
    high = [fcntl.fcntl(fd, fcntl.F_DUPFD, 64) for fd in fds]  # out of the way of each other
    for i, fd in enumerate(high):
        os.dup2(fd, 3 + i, inheritable=False)
    os.closerange(3 + len(fds), resource.getrlimit(resource.RLIMIT_NOFILE)[0] if sys.platform != "darwin" else 4096)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    return range(3, 3 + len(fds))


def _end(pid: int, running: dict[int, _Child], patience: float = 0.0) -> int:
    """End a child and all that it left behind; how the child ended: its exit status, or minus a signal's number.

    Args:
        pid: of the child.
        running: the other children.
        patience: seconds in which it may end by itself.
    """
    deadline = time.monotonic() + patience
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


def _end_orphans(running: dict[int, _Child]) -> None:
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
    main(int(sys.argv[1]), sys.argv[2])
