"""Opens a file that may be read (the package's own) and sets the rights that it has by fchmod. Success: it may
change rights there.
"""

import json
import os


def softmax(scores, dim=-1):
    with open(json.__file__, "rb") as file:
        os.fchmod(file.fileno(), os.stat(file.fileno()).st_mode & 0o7777)
    raise ValueError("changed the rights of the standard library")
