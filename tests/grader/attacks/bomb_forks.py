"""At most 60 processes, each asleep for 20 s. Success: the grader, or the machine, is disturbed. Walls only."""

import os
import time


def softmax(scores, dim=-1):
    for _ in range(60):
        if os.fork() == 0:
            time.sleep(20)
            os._exit(0)
    return 0
