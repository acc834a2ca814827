"""What keeps a submission's process to itself. Probed on each machine, applied from the inside before its code is read.

None of this decides a verdict: that is computed in another process from the returned values. The walls are
there so that a submission disturbs neither the grader, nor other submissions, nor the machine.
"""

from __future__ import annotations

import functools
import os
import sys
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from course_grade.sandbox.landlock import landlock
from course_grade.sandbox.linux import PR_SET_PDEATHSIG, prctl
from course_grade.sandbox.namespaces import own_namespaces
from course_grade.sandbox.seccomp import seccomp

__all__ = ["FIRST_USER", "LEVELS", "USERS", "WALLS", "Limits", "Walls", "confine", "probe"]

# In the order in which they are put up. What each one does, for people.
WALLS = {
    "limits": "limits on memory, processor time, threads, open files and file size",
    "user": "a separate user without rights (if the grader runs as root)",
    "namespaces": "a separate process tree, no network, no files except Python's (Linux namespaces)",
    "landlock": "no files except Python's (read-only) and a scratch folder (Landlock)",
    "seccomp": "no new processes, sockets or signals (seccomp)",
}
# What a submission cannot do at each level, weakest first. A level promises this entry and all those before it.
LEVELS = {
    "process": "crash the grader or block it indefinitely",
    "partial": "read or change files of others, send signals to other processes, use the network, or act as root",
    "full": "start processes, list files, or write outside its own scratch folder",
}
# Users that submissions run as where the grader is root, one for each process. Not nobody: its processes would share
# their limits and could disturb each other. The range is among those that systemd keeps for such purposes.
FIRST_USER, USERS = 61200, 4000


@dataclass(frozen=True)
class Limits:
    """What a submission may use up.

    Args:
        seconds: for one call.
        load_seconds: for reading its code, imports included.
        total_seconds: for the whole submission.
        memory_mb: on top of what PyTorch itself needs.
        output_mb: written to standard output or to one file.
        threads: that may run at once.
    """

    seconds: float = 5.0
    load_seconds: float = 20.0
    total_seconds: float = 120.0
    memory_mb: int = 1024
    output_mb: int = 1
    threads: int = 64


@dataclass(frozen=True)
class Walls:
    """The walls that are available on this machine."""

    up: tuple[str, ...] = ()
    missing: dict[str, str] = field(default_factory=dict)

    @property
    def level(self) -> str:
        """One of `LEVELS`, by what a submission cannot do there."""
        up = set(self.up)
        if {"limits", "namespaces", "seccomp"} <= up:
            return "full"
        others = "namespaces" in up or {"landlock", "seccomp"} <= up  # their files and their processes
        return "partial" if "limits" in up and others and self.without_root else "process"

    @property
    def without_root(self) -> bool:
        """Whether submissions run without the rights of the machine's root."""
        return "user" not in self.missing or "namespaces" in self.up

    def reach(self, level: str) -> bool:
        """Whether these walls promise what a level does.

        Raises:
            ValueError: there is no such level.
        """
        if level not in LEVELS:
            raise ValueError(f"expected a level of walls ({', '.join(LEVELS)}), got {level!r}")
        order = list(LEVELS)
        return order.index(self.level) >= order.index(level)

    def __str__(self) -> str:
        if self.level == "full":
            return f"full ({', '.join(self.up)})"
        lacking = "; ".join(f"{name}: {why}" for name, why in self.missing.items())
        rest = f"; not available: {lacking}" if lacking else ""
        return f"{self.level} ({', '.join(self.up) or 'a process of its own'}{rest})"


def probe(wanted: Iterable[str] = WALLS, folder: str | None = None) -> Walls:
    """Try each wall in a process of its own and see which can be put up here.

    Args:
        wanted: names of walls; others are reported as switched off.
        folder: where to make a folder for the trials; the temporary folder by default.
    """
    wanted = tuple(wanted)
    up, missing = [], {}
    scratch = tempfile.mkdtemp(prefix="course-lib-", dir=folder)
    os.chmod(scratch, 0o777)
    for name in WALLS:
        if name == "user" and (not hasattr(os, "geteuid") or os.geteuid() != 0):
            continue  # already unprivileged
        if name not in wanted:
            missing[name] = "switched off"
            continue
        # In addition to those already in place: one may remove what the next one needs.
        tries = [[*up, name]]
        if name == "namespaces" and missing.get("user", "switched off") != "switched off":
            tries.insert(0, [*up, "user", name])  # in a file system of its own, that user may reach Python's files
        for walls in tries:
            why = _tried_in_child(lambda walls=tuple(walls): confine(Walls(walls), Limits(), scratch))
            if not why:
                up = walls
                break
        else:
            missing[name] = why
    os.rmdir(scratch)
    return Walls(tuple(up), {name: why for name, why in missing.items() if name not in up})


def confine(
    walls: Walls,
    limits: Limits,
    scratch: str,
    *,
    lenient: bool = False,
    user: int = FIRST_USER,
    tell: Callable[[int], Any] = lambda worker: None,
    first_process: bool = False,
) -> str:
    """Put up all walls around the calling process, which becomes the first one of its own process namespace.

    With namespaces the caller forks, unless it is the `first_process` of one already: the outer process waits and ends
    as the inner one ends; only the inner one returns.

    Args:
        walls: which ones.
        limits: what the process may use up.
        scratch: path of the folder to write to.
        lenient: permit what cannot reach beyond the process, where it has namespaces of its own.
        user: who the process becomes, with the wall of that name.
        tell: called in the outer process with the inner one's number, where there are two.
        first_process: whether the caller was forked in `next_child_has_own_processes`.

    Returns:
        The path that the scratch folder has from now on.

    Raises:
        OSError: a wall that could be put up when it was probed cannot be now; nothing must be run then.
    """
    up = set(walls.up)
    become = functools.partial(_become, user) if "user" in up else None
    if "limits" in up:
        _limit(limits)
    if "namespaces" in up:
        scratch = own_namespaces(scratch, become, tell, first_process=first_process)
    elif become:
        become()
    if "limits" in up and up & {"user", "namespaces"}:
        _limit_threads(limits)
    if "landlock" in up:
        landlock(scratch)
    if "seccomp" in up:
        seccomp(no_writing=not up & {"landlock", "namespaces"}, lenient=lenient and "namespaces" in up)
    return scratch


def _tried_in_child(action: Callable[[], None]) -> str:
    """Why the action fails, or ""."""
    if not hasattr(os, "fork"):
        return "this system has no fork"
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.close(read)
            action()
            for module in (sys.modules["torch"], os, sys.modules[__package__]):  # what is imported late stays readable
                with open(module.__file__, "rb") as file:
                    file.read(1)
            os.write(write, b"stands")
        except PermissionError as error:
            os.write(
                write,
                (error.strerror if error.filename is None else "that user cannot read Python's own files").encode(),
            )
        except BaseException as error:
            os.write(write, f"{type(error).__name__}: {error}".encode()[:300])
        finally:
            os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        why = pipe.read().decode(errors="replace")
    os.waitpid(child, 0)
    return "" if why == "stands" else why or "the trial process was killed by it"


# Limits


def _limit(limits: Limits) -> None:
    import resource

    def at_most(kind: int, value: int) -> None:
        _, hard = resource.getrlimit(kind)
        value = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(kind, (value, value))

    at_most(resource.RLIMIT_CORE, 0)
    at_most(resource.RLIMIT_FSIZE, limits.output_mb * 2**20)
    at_most(resource.RLIMIT_NOFILE, 128)
    at_most(resource.RLIMIT_CPU, int(limits.total_seconds) + 5)
    if sys.platform.startswith("linux"):  # elsewhere address space is not counted this way
        with open("/proc/self/statm", encoding="ascii") as file:
            pages = int(file.read().split()[0])
        at_most(resource.RLIMIT_AS, pages * resource.getpagesize() + limits.memory_mb * 2**20)
        at_most(resource.RLIMIT_NPROC, 4096)  # counts the whole user; see `_limit_threads`


def _limit_threads(limits: Limits) -> None:
    """Counted for each user and namespace of users, so only where this process has one of them to itself."""
    import resource

    resource.setrlimit(resource.RLIMIT_NPROC, (limits.threads, limits.threads))


def _become(user: int) -> None:
    os.setgroups([])
    os.setresgid(user, user, user)
    os.setresuid(user, user, user)
    prctl(PR_SET_PDEATHSIG, 9)  # another user, and the kernel has forgotten it
