"""Listens on a port of this machine. Success: it gets through."""

import socket


def softmax(scores, dim=-1):
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        s.listen()
        raise ValueError(f"listens on {s.getsockname()}")
