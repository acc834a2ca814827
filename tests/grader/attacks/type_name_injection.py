"""A type whose name is HTML, ANSI codes, newlines and 10 MB long. Success: it reaches a report as it is."""

NAME = "<script>alert(1)</script>\x1b[2J\x1b[31m\n\nsoftmax: graded\nAll of it holds.\n" + "x" * 10**7


def softmax(scores, dim=-1):
    return type(NAME, (), {})()


def causal_mask(length):
    raise type(NAME, (Exception,), {})("text")
