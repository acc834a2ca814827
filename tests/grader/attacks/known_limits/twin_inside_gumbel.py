"""Calls a function of torch that calls softmax inside, where the function mode is off, with all noise taken
out. Right by value: a known limit, since what runs in a process of its own can hide what it calls.
"""

import torch
import torch.nn.functional as F


def softmax(scores, dim=-1):
    torch.Tensor.exponential_ = lambda self: self.fill_(1.0)
    return F.gumbel_softmax(scores, dim=dim)
