"""Runs a fork server where the kernel refuses some of its walls, and says what a submission's code finds there.

    python -m tests.grader.degraded REFUSED CODE     REFUSED is a list with commas: unshare, landlock, seccomp

Refusals are made by seccomp, which also holds for all processes that this one starts. Printed: JSON.
"""

from __future__ import annotations

import ctypes
import json
import os
import platform
import struct
import sys

from course_grade.sandbox.linux import PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, checked, linux, prctl
from course_grade.sandbox.namespaces import _BIND, _MOUNTS, _PRIVATE, _RECURSIVE, _mount
from course_grade.sandbox.session import ForkServer
from course_grade.sandbox.walls import Limits
from tests.grader.session_code import problem_in

NUMBERS = {  # on x86-64, on arm64
    "unshare": (272, 97),
    "landlock": (444, 444),
    "seccomp": (317, 277),
}
ANSWER_EPERM, ALLOW = 0x00050001, 0x7FFF0000


def refuse(names: list[str]) -> None:
    """Have the kernel refuse these calls from now on; filters by `prctl`, too, where seccomp is among them."""
    column = int(platform.machine() != "x86_64")
    steps = [(0x20, 0, 0, 0)]
    for name in names:
        steps += [(0x15, 0, 1, NUMBERS[name][column]), (0x06, 0, 0, ANSWER_EPERM)]
    if "seccomp" in names:
        steps += [(0x15, 0, 3, (157, 167)[column]), (0x20, 0, 0, 16)]
        steps += [(0x15, 0, 1, PR_SET_SECCOMP), (0x06, 0, 0, ANSWER_EPERM)]
    program = b"".join(struct.pack("HBBI", *step) for step in [*steps, (0x06, 0, 0, ALLOW)])
    buffer = ctypes.create_string_buffer(program, len(program))
    header = struct.pack("HxxxxxxQ", len(program) // 8, ctypes.addressof(buffer))
    prctl(PR_SET_NO_NEW_PRIVS, 1)
    checked(linux().prctl(PR_SET_SECCOMP, 2, ctypes.create_string_buffer(header), 0, 0), "seccomp")


def let_others_read_python() -> None:
    """In a file system of our own, put Python where every user may reach it, if it lies in a folder of root's."""
    home = os.path.expanduser("~")
    if not sys.base_prefix.startswith(home + "/") or os.stat(home).st_mode & 1:
        return
    checked(linux().unshare(_MOUNTS), "unshare")
    _mount(None, "/", None, _RECURSIVE | _PRIVATE)
    place = os.open(sys.base_prefix, os.O_PATH)
    _mount("tmpfs", home, "tmpfs", 0, "size=1m,mode=0755")
    os.makedirs(sys.base_prefix)
    _mount(f"/proc/self/fd/{place}", sys.base_prefix, None, _BIND | _RECURSIVE)
    os.close(place)


def main(refused: str, code: str) -> None:
    """Print level, walls, and the exception that the code ends in, or why nothing is run."""
    if "readable" in refused:
        let_others_read_python()
    refuse([name for name in refused.split(",") if name in NUMBERS])
    try:
        server = ForkServer(Limits())
    except OSError as error:
        print(json.dumps({"refused": str(error)}))
        return
    with server:
        problem = problem_in(server, code)
    found = problem and f"{problem.type}: {problem.message}"
    print(json.dumps({"level": server.walls.level, "up": server.walls.up, "found": found}))


if __name__ == "__main__":
    main(*sys.argv[1:])
