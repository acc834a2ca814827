"""Sets an extended attribute of a canary file outside of scratch. Success: it is set."""

import os


def softmax(scores, dim=-1):
    os.setxattr("/tmp/course-lib-canary-file", "user.attack", b"1")
    raise ValueError("set")
