r"""Exception message with unicode digits, which \d matches and int() may refuse. Success: an exception in the
grader.
"""


def softmax(scores, dim=-1):
    raise RuntimeError("mat1 and mat2 shapes cannot be multiplied (\u0663x\u0e53 and \U0001d7d8x\u096c)")


def causal_mask(length):
    raise NameError("name '\u0663' is not defined")
