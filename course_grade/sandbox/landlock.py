"""Landlock: a list of what may be touched in the file system; everything else is refused. <linux/landlock.h>"""

from __future__ import annotations

import os
import struct
import sys

from course_grade.sandbox.linux import PR_SET_NO_NEW_PRIVS, checked, linux, prctl
from course_kit._packages import PACKAGES

__all__ = ["landlock", "readable_paths"]

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446  # the same on all architectures
_EXECUTE, _WRITE, _READ, _READ_DIR, _REMOVE_DIR, _REMOVE_FILE = 1, 2, 4, 8, 1 << 4, 1 << 5
_MAKE_DIR, _MAKE_FILE, _TRUNCATE = 1 << 7, 1 << 8, 1 << 14
_SCRATCH = _WRITE | _READ | _READ_DIR | _REMOVE_DIR | _REMOVE_FILE | _MAKE_DIR | _MAKE_FILE | _TRUNCATE


def landlock(scratch: str | None) -> None:
    """Close all files to this process, but for `readable_paths` and a folder to write to.

    Raises:
        OSError: this kernel has no Landlock.
    """
    libc = linux()
    version = checked(libc.syscall(_CREATE_RULESET, None, 0, 1), "Landlock")
    handled = (1 << 13) - 1 if version == 1 else (1 << 14) - 1 if version == 2 else (1 << 15) - 1
    if version >= 5:
        handled |= 1 << 15  # ioctl on devices
    network = 3 if version >= 4 else 0  # bind and connect over TCP
    scoped = 3 if version >= 6 else 0  # abstract sockets and signals to processes outside
    attributes = struct.pack("QQQ", handled, network, scoped)[: 24 if version >= 6 else 16 if version >= 4 else 8]
    rules = checked(libc.syscall(_CREATE_RULESET, attributes, len(attributes), 0), "landlock_create_ruleset")
    try:
        for path in readable_paths():
            _allow(rules, path, (_EXECUTE | _READ | _READ_DIR) & handled)
        _allow(rules, "/dev/null", (_READ | _WRITE) & handled)
        if scratch:
            # Plain files and folders only: no links out of it, no devices, no moves from folder to folder.
            _allow(rules, scratch, _SCRATCH & handled)
        prctl(PR_SET_NO_NEW_PRIVS, 1)
        checked(libc.syscall(_RESTRICT_SELF, rules, 0), "landlock_restrict_self")
    finally:
        os.close(rules)


def readable_paths() -> list[str]:
    """Files and folders that Python, PyTorch and the course's packages need."""
    own = [
        sys.prefix,
        sys.base_prefix,
        *map(str, PACKAGES.values()),
        *(p for p in sys.path if p.endswith("-packages")),
    ]
    system = ["/usr", "/lib", "/lib64", "/etc/ld.so.cache", "/dev/urandom", "/dev/zero", "/sys/devices/system/cpu"]
    return [path for path in dict.fromkeys(own + system) if os.path.exists(path)]


def _allow(rules: int, path: str, access: int) -> None:
    if not os.path.isdir(path):
        access &= _EXECUTE | _READ | _WRITE
    place = os.open(path, os.O_PATH | os.O_CLOEXEC)
    try:
        rule = struct.pack("=Qi", access, place)
        checked(linux().syscall(_ADD_RULE, rules, 1, rule, 0), f"landlock_add_rule {path}")
    finally:
        os.close(place)
