"""What tests share: small solutions, submissions out of texts, and what comes out when their pieces are run."""

import __future__

import json
import textwrap

from course_grade.submission.submissions import needed, read_notebook, read_python

__all__ = ["CAUSAL", "IMPORT", "NOT_STABLE", "SOFTMAX", "answer", "code", "notebook", "notebook_bytes", "run", "texts"]

IMPORT = "import torch\n"
SOFTMAX = """
def softmax(scores, dim=-1):
    e = (scores - scores.amax(dim, keepdim=True)).exp()
    return e / e.sum(dim, keepdim=True)
"""
NOT_STABLE = """
def softmax(scores, dim=-1):
    return scores.exp() / scores.exp().sum(dim, keepdim=True)
"""
CAUSAL = """
def causal_mask(length):
    return torch.ones(length, length, dtype=torch.bool).tril()
"""


def code(text: str):
    return read_python("week.py", textwrap.dedent(text).encode())


def notebook_bytes(*cells) -> bytes:
    """Cells are code, or pairs of a type and a text."""
    pairs = [("code", cell) if isinstance(cell, str) else cell for cell in cells]
    listed = [{"cell_type": kind, "source": text, "metadata": {}} for kind, text in pairs]
    return json.dumps({"cells": listed, "nbformat": 4, "nbformat_minor": 5, "metadata": {}}).encode()


def notebook(*cells):
    return read_notebook("week.ipynb", notebook_bytes(*cells))


def run(pieces) -> dict:
    """What is defined after the pieces were run in their order, without annotations, as a submission's process does."""
    module = {"__name__": "submission"}
    for piece in pieces:
        text = "\n" * (piece.line - 1) + piece.code
        exec(compile(text, piece.file, "exec", __future__.annotations.compiler_flag, dont_inherit=True), module)
    return module


def answer(source, name: str = "f"):
    """What the function of that name returns."""
    return run(needed(source, name))[name]()


def texts(source, name: str = "f") -> str:
    """Everything that is run for a definition."""
    return "\n".join(piece.code for piece in needed(source, name))
