"""Whether an exception is the doing of the grader's walls, and if so, whose attempt they refused.

The walls refuse what a solution has no use for: other files, the network, processes. Libraries attempt some of this
for reasons of their own: PyTorch makes a folder for a cache, reads about the processor, starts a thread. Such an
error is not the learner's mistake. The grader runs the case again where more is permitted; if a library is refused
there, too, the exercise is not graded.

What is written here comes from the submission's process, so it can be a lie. The worst that a lie can do is "not
graded", which has no points.
"""

from __future__ import annotations

import errno
import linecache
import os
import re
import sys
import traceback

from course_kit._packages import OURS

__all__ = ["LIBRARY", "OWN", "refused"]

OWN = "own"  # the learner's line itself opens a file or a socket, or starts a process
LIBRARY = "library"  # code that the learner's line called does

ERRORS = {
    *(errno.EPERM, errno.EACCES, errno.EROFS, errno.ENOSYS, errno.EXDEV),  # not permitted
    *(errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EMFILE, errno.ENFILE, errno.EAGAIN),  # too much of it
}
NO_THREAD = "can't start new thread"
TEXTS = re.compile(
    f"Failed to initialize cpuinfo|{NO_THREAD}|No usable temporary directory|(?:"
    + "|".join(re.escape(os.strerror(number)) for number in sorted(ERRORS))
    + r")\b"
)
DEEPEST = 8  # causes that are followed


def refused(error: BaseException) -> str:
    """`OWN`, `LIBRARY`, or "" where the exception has nothing to do with the walls.

    Args:
        error: as it came out of the learner's code.
    """
    for cause in _chain(error):
        if isinstance(cause, OSError) and cause.errno in ERRORS:
            return OWN if _own_call(cause, error) or _own_path(cause) else LIBRARY
        if isinstance(cause, RuntimeError | ImportError | OSError) and TEXTS.search(_text(cause)):
            own_thread = NO_THREAD in _text(cause) and _own_call(cause, error)
            return OWN if own_thread else LIBRARY
    return ""


def _chain(error: BaseException | None) -> list[BaseException]:
    causes = []
    while error is not None and len(causes) < DEEPEST:
        causes.append(error)
        error = error.__cause__ or error.__context__
    return causes


def _text(error: BaseException) -> str:
    try:
        return str(error)[:2000]
    except Exception:
        return ""


def _own_call(cause: BaseException, error: BaseException) -> bool:
    """Whether the learner's line called `open` or its like, itself or by way of Python's own library only."""
    installed = False  # whether code of an installed package ran below the learner's last line
    for step in (error, cause):
        for frame in traceback.extract_tb(step.__traceback__, limit=-50):
            installed = not _learners(frame.filename) and (installed or _installed(frame.filename))
    return not installed


def _own_path(cause: OSError) -> bool:
    """Whether the path occurs in the learner's code, which then asked for it, with whichever function."""
    name = os.path.basename(str(cause.filename or ""))
    if not name:
        return False
    texts = (entry[2] for file, entry in list(linecache.cache.items()) if _learners(file) and len(entry) > 2)
    return any(name in line for lines in texts for line in lines)


def _learners(filename: str) -> bool:
    return not (_installed(filename) or filename.startswith((sys.base_prefix, "<frozen")))


def _installed(filename: str) -> bool:
    return "site-packages" in filename or "dist-packages" in filename or filename.startswith(OURS)
