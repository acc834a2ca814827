"""Calls softmax in TorchScript, where no function mode is. Right by value: a known limit, since what runs in a
process of its own can hide what it calls.
"""

import torch

COMPILED = torch.jit.CompilationUnit("def f(x, d: int):\n    return torch.softmax(x, d)\n").f


def softmax(scores, dim=-1):
    return COMPILED(scores, dim)
