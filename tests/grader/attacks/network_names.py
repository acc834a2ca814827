"""Looks up localhost. Success: it gets through."""

import socket


def softmax(scores, dim=-1):
    raise ValueError(socket.getaddrinfo("localhost", 59999))
