"""Changes rights and times of a canary file outside of scratch. Success: they are changed."""

import os

PATH = "/tmp/course-lib-canary-file"


def softmax(scores, dim=-1):
    done = []
    for action in (lambda: os.chmod(PATH, 0o600), lambda: os.utime(PATH, (0, 0)), lambda: os.chown(PATH, 0, 0)):
        try:
            action()
            done.append("changed")
        except OSError as error:
            done.append(error.strerror)
    raise ValueError(f"{done}")
