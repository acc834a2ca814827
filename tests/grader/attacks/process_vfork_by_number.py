"""Calls vfork, clone3 and clone by their numbers, and through the 32-bit way. Success: it disturbs the grader,
or is still there afterwards.
"""

import ctypes
import os


def softmax(scores, dim=-1):
    libc = ctypes.CDLL(None, use_errno=True)
    tried = []
    for number in (57, 435, 0x40000000 + 57, 59):
        pid = libc.syscall(number, 0, 0, 0, 0, 0)
        if pid == 0:
            os._exit(0)
        tried.append((pid, ctypes.get_errno()))
    raise ValueError(f"{tried}")
