"""What the mistakes in masks are made of: a square of True, and wrong ways to find padding."""

from __future__ import annotations

import torch

__all__ = ["first_tokens", "first_tokens_and_one", "square", "until_the_first_pad", "until_the_last_real"]


def first_tokens(tokens, pad_id):
    return torch.arange(tokens.shape[1]) < (tokens != pad_id).sum(1, keepdim=True)


def first_tokens_and_one(tokens, pad_id):
    return torch.arange(tokens.shape[1]) <= (tokens != pad_id).sum(1, keepdim=True)


def until_the_first_pad(tokens, pad_id):
    return (tokens != pad_id).int().cumprod(1).bool()


def until_the_last_real(tokens, pad_id):
    return (tokens != pad_id).int().flip(1).cumsum(1).flip(1) > 0


def square(length):
    return torch.ones(length, length, dtype=torch.bool)
