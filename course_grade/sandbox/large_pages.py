"""Moves a process's memory into large pages, so that a fork copies hundreds of page table entries and not tens of
thousands: for a process of 350 MB a tenth of the time. Numbers: <asm-generic/mman-common.h>.
"""

from __future__ import annotations

import ctypes
import re
from pathlib import Path

from course_grade.sandbox.linux import linux

__all__ = ["move_to_large_pages"]

_SIZE = 2 * 2**20  # of a large page on x86-64, and on arm64 with small pages of 4 KB
_ADVISE_LARGE, _COLLAPSE = 14, 25
_AREA = re.compile(r"([0-9a-f]+)-([0-9a-f]+) rw-p 00000000 00:00 0 *(\[heap\])?$")


def move_to_large_pages() -> int:
    """Collapse this process's own memory, as far as the kernel can: from Linux 6.1 on, where large pages are enabled.

    Contents stay as they are. A kernel that cannot do it changes nothing.

    Returns:
        How many bytes lie in large pages now that may not have before.
    """
    moved = 0
    for first, last in _areas():
        for start in range(-(-first // _SIZE) * _SIZE, last - _SIZE + 1, _SIZE):
            place = ctypes.c_void_p(start), ctypes.c_size_t(_SIZE)
            if linux().madvise(*place, _ADVISE_LARGE) == 0 and linux().madvise(*place, _COLLAPSE) == 0:
                moved += _SIZE
    return moved


def _areas() -> list[tuple[int, int]]:
    """First and last address of each private writable area that belongs to no file."""
    try:
        lines = Path("/proc/self/maps").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:  # not on this system
        return []
    found = [_AREA.fullmatch(line) for line in lines]
    return [(int(area[1], 16), int(area[2], 16)) for area in found if area]
