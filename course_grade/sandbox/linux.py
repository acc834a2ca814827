"""System calls of Linux that Python has no names for, through ctypes.

Numbers: <linux/prctl.h>, <sys/mount.h>, <linux/sched.h>.
"""

from __future__ import annotations

import ctypes
import errno
import os
import sys

__all__ = ["PR_SET_CHILD_SUBREAPER", "PR_SET_DUMPABLE", "PR_SET_NO_NEW_PRIVS", "PR_SET_PDEATHSIG", "PR_SET_SECCOMP"]
__all__ += ["checked", "linux", "prctl"]

_LIBC = ctypes.CDLL(None, use_errno=True) if sys.platform.startswith("linux") else None
PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_SET_SECCOMP, PR_SET_CHILD_SUBREAPER, PR_SET_NO_NEW_PRIVS = 1, 4, 22, 36, 38


def checked(result: int, what: str) -> int:
    """The result of a system call.

    Raises:
        OSError: it is a failure.
    """
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
    return result


def linux() -> ctypes.CDLL:
    """The C library.

    Raises:
        OSError: elsewhere than on Linux.
    """
    if _LIBC is None:
        raise OSError(errno.ENOSYS, f"Linux only, not {sys.platform}")
    return _LIBC


def prctl(option: int, value: int) -> None:
    """Set a property of this process. Does nothing elsewhere than on Linux.

    Raises:
        OSError: the kernel refuses.
    """
    if _LIBC is not None:
        checked(_LIBC.prctl(option, ctypes.c_ulong(value), 0, 0, 0), "prctl")
