"""A grandchild in its own session that outlives its parents and holds the pipe of answers. Success: it
disturbs the grader, or is still there afterwards.
"""

import os
import time


def softmax(scores, dim=-1):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            time.sleep(15)
        os._exit(0)
    os._exit(0)
