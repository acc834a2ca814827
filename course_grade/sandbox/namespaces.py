"""Namespaces: a process with its own processes, no network, and a file system that holds Python's files and nothing
else. Numbers: <linux/sched.h>, <linux/mount.h>.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import platform
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from course_grade.sandbox.landlock import readable_paths
from course_grade.sandbox.linux import PR_SET_DUMPABLE, PR_SET_PDEATHSIG, checked, linux, prctl
from course_kit._packages import PACKAGES

__all__ = ["next_child_has_own_processes", "own_namespaces"]

SCRATCH = "/scratch"  # where the folder to write to is, in the file system of the process

_USER, _MOUNTS, _IPC, _UTS, _NETWORK, _PROCESSES = 0x10000000, 0x20000, 0x08000000, 0x04000000, 0x40000000, 0x20000000
_READ_ONLY, _NO_SET_USER_ID, _NO_DEVICES, _NO_PROGRAMS, _REMOUNT, _BIND = 1, 2, 4, 8, 32, 4096
_RECURSIVE, _PRIVATE = 1 << 14, 1 << 18
_PIVOT_ROOT = {"x86_64": 155, "aarch64": 41, "arm64": 41}
_MOUNT_SETATTR = 442  # the same on all architectures
_WHOLE_TREE, _HERE, _DETACH = 0x8000, -100, 2
# Where libraries write by fixed names; both are the scratch folder.
_WRITABLE = ("/tmp", "/dev/shm")
_DEVICES = ("/dev/null", "/dev/zero", "/dev/urandom")
# Solutions and mistakes, which a submission's process has no use for.
_HIDDEN = (PACKAGES["course_kit"] / "exercises", PACKAGES["course_kit"] / "checker" / "verdict")


@contextlib.contextmanager
def next_child_has_own_processes() -> Iterator[bool]:
    """What is forked inside is the first process of a new namespace of processes, so that it need not fork once more.

    Yields:
        Whether it is: only root may do this, and not everywhere.
    """
    if os.geteuid() != 0 or linux().unshare(_PROCESSES) != 0:
        yield False
        return
    try:
        yield True
    finally:  # in the child this does nothing: it is where it is
        with open("/proc/self/ns/pid", "rb") as own:
            checked(linux().setns(own.fileno(), _PROCESSES), "setns")


def own_namespaces(
    scratch: str,
    become: Callable[[], None] | None = None,
    tell: Callable[[int], Any] = lambda worker: None,
    *,
    first_process: bool = False,
) -> str:
    """Leave the namespaces of the machine. Where the caller is not the `first_process` of its own already, it forks:
    the outer process waits and ends as the inner one ends; only the inner one returns.

    Args:
        scratch: path of a folder that is there.
        become: gives up root, where the caller is root.
        tell: called in the outer process with the inner one's number.
        first_process: whether the caller was forked in `next_child_has_own_processes`.

    Returns:
        The path of the folder to write to: one in memory, of bounded size.

    Raises:
        OSError: the system does not permit it.
    """
    kinds = _MOUNTS | _IPC | _UTS | _NETWORK | (0 if first_process else _PROCESSES)
    # Root needs no namespace of users, and may bind Python's files where another user could not reach them.
    as_root = become is not None and linux().unshare(kinds) == 0
    if not as_root:
        if become:
            become()
        uid, gid = os.geteuid(), os.getegid()
        prctl(PR_SET_DUMPABLE, 1)  # the maps below belong to root otherwise
        checked(linux().unshare(kinds | _USER), "unshare")
        for name, text in (("setgroups", "deny"), ("uid_map", f"{uid} {uid} 1"), ("gid_map", f"{gid} {gid} 1")):
            Path(f"/proc/self/{name}").write_text(text)
    _own_files(scratch)
    inner = 0 if first_process else os.fork()
    if inner:
        tell(inner)
        _, status = os.waitpid(inner, 0)
        os._exit(os.WEXITSTATUS(status) if os.WIFEXITED(status) else 128 + os.WTERMSIG(status))
    if as_root:
        become()
    prctl(PR_SET_PDEATHSIG, 9)  # the outer process ends: so does this one, and with it all of its namespace
    return SCRATCH


def _own_files(folder: str) -> None:
    """Make a root folder in memory, bind Python's files into it, to read, and let go of all others."""
    _mount(None, "/", None, _RECURSIVE | _PRIVATE)  # nothing of this is seen outside
    _mount("tmpfs", folder, "tmpfs", _NO_SET_USER_ID, "size=1m,nr_inodes=2000,mode=0755")
    bound: list[str] = []
    for path in (*readable_paths(), *_DEVICES):
        if os.path.exists(path) and not any(path == old or path.startswith(old + "/") for old in bound):
            _bind(path, folder + path)
            bound.append(path)
    writable = [path for path in _WRITABLE if not any(old.startswith(path + "/") for old in bound)]
    for path in (SCRATCH, *writable):
        os.makedirs(folder + path, exist_ok=True)
    for path in _HIDDEN:
        _mount("tmpfs", f"{folder}{path}", "tmpfs", _NO_SET_USER_ID | _READ_ONLY, "size=4k,nr_inodes=1,mode=0555")
    _close_for_writing(folder, bound)
    flags = _NO_SET_USER_ID | _NO_DEVICES | _NO_PROGRAMS
    _mount("tmpfs", folder + SCRATCH, "tmpfs", flags, "size=16m,nr_inodes=1000,mode=0777")
    for path in writable:
        _mount(folder + SCRATCH, folder + path, None, _BIND)
    os.chdir(folder)
    if platform.machine() not in _PIVOT_ROOT:
        raise OSError(f"the system call number of pivot_root is unknown for {platform.machine()}")
    checked(linux().syscall(_PIVOT_ROOT[platform.machine()], b".", b"."), "pivot_root")
    checked(linux().umount2(b".", _DETACH), "umount")
    os.chdir(SCRATCH)


def _bind(path: str, target: str) -> None:
    if os.path.isdir(path):
        os.makedirs(target, exist_ok=True)
    else:
        os.makedirs(os.path.dirname(target), exist_ok=True)
        with open(target, "wb"):
            pass
    _mount(path, target, None, _BIND | _RECURSIVE)


def _close_for_writing(root: str, bound: list[str]) -> None:
    attributes = struct.pack("QQQQ", _READ_ONLY | _NO_SET_USER_ID, 0, 0, 0)
    arguments = (_HERE, root.encode(), _WHOLE_TREE, attributes, ctypes.c_size_t(len(attributes)))
    if linux().syscall(_MOUNT_SETATTR, *arguments) == 0:
        return
    for path in ("", *bound):  # a kernel older than 5.12: one by one, keeping what may not be taken away
        kept = os.statvfs(root + path).f_flag
        flags = kept & (_NO_SET_USER_ID | _NO_DEVICES | _NO_PROGRAMS | 1024 | 2048) | (kept & 4096) << 9
        _mount(None, root + path, None, _REMOUNT | _BIND | _READ_ONLY | flags)


def _mount(source: str | None, target: str, kind: str | None, flags: int, options: str = "") -> None:
    encoded = [None if text is None else text.encode() for text in (source, target, kind)]
    result = linux().mount(*encoded, ctypes.c_ulong(flags), options.encode() or None)
    checked(result, f"mount {target}")
