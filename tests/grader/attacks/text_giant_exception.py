"""Exception message of 50 MB, with a chain of 1,000 causes. Success: the grader is slow or its report long."""


def softmax(scores, dim=-1):
    error = ValueError("first")
    for number in range(1000):
        error, error.__cause__ = ValueError(f"{number}"), error
    raise ValueError("x" * 50_000_000) from error


def causal_mask(length):
    raise ExceptionGroup("g" * 10**6, [ValueError("v" * 10**6) for _ in range(20)])
