"""What is said about a call with arguments that the function does not take: a NumPy function that was given a tensor, a
PyTorch function that was given something else, a learner's own function with another signature."""

from __future__ import annotations

import math
import re
from difflib import get_close_matches
from typing import TYPE_CHECKING

import torch

from course_kit.checker.verdict.in_source import calls_in

if TYPE_CHECKING:
    from course_kit.checker.verdict.exceptions import Context

__all__ = ["WRONG_CALLS", "instead_of"]

# What PyTorch has for a function or method of NumPy's; other names are the same in both.
OTHER_NAMES = {"max": "torch.amax", "min": "torch.amin", "transpose": "x.transpose(-2, -1)", "dot": "a @ b"}
OTHER_NAMES |= {"expand_dims": "x.unsqueeze(dim)", "power": "torch.pow", "repeat": "torch.repeat_interleave"}
OTHER_NAMES |= {"astype": "x.to(dtype)", "copy": "x.clone()", "append": "torch.cat", "array": "", "asarray": ""}


def instead_of(name: str) -> str:
    """What PyTorch has in place of NumPy's name, in backquotes; "" if nothing is certain."""
    found = OTHER_NAMES.get(name, f"torch.{name}" if hasattr(torch, name) else "")
    return f"`{found}`" if found else ""


def _given_a_tensor(m: re.Match, at: Context) -> str:
    """NumPy passes a tensor on to its own method, or asks it for its numbers."""
    method = m.groupdict().get("method")
    names = sorted({name for name in calls_in(at.line.nodes, "np", "numpy") if method is None or name.endswith(method)})
    if len(names) != 1:
        return "" if method else "This line hands a tensor to NumPy, which no gradient passes. Use PyTorch's functions."
    instead = f"Use {instead_of(names[0])} instead" if instead_of(names[0]) else "Use PyTorch's functions"
    return f"`np.{names[0]}` was given a tensor. {instead}, because no gradient passes NumPy."


def _number_for_a_tensor(m: re.Match, at: Context) -> str:
    instead = f" For a number, there is `math.{m[1]}`." if hasattr(math, m[1]) else ""
    return f"PyTorch's `{m[1]}` takes a tensor, but was given a number of type {m[2]}.{instead}"


def _one_number(m: re.Match, at: Context) -> str:
    names = calls_in(at.line.nodes, "math")
    instead = f" `math.{names[0]}` takes one; {instead_of(names[0])} computes every entry." if names else ""
    return f"A tensor with several numbers cannot become a single one.{instead}"


def _other_arguments(m: re.Match, at: Context) -> str:
    absent = [name for name in at.arguments_that_are(lambda value: value is None) if name.strip("`") in at.line.code]
    then = f"In this case {' and '.join(absent)} is None." if absent else "PyTorch's message lists what it takes."
    return f"`{m[1]}` was called with ({m[2].strip(' ,')}), which it does not take. {then}"


def _wrong_call(m: re.Match, at: Context) -> str:
    """The call of the exercise itself has no line of the learner's."""
    function, exactly = m[1].removeprefix("."), f"without {m['without']}" if m["without"] else "with other arguments"
    if at.line.code:
        turning = " It exchanges two axes, `x.transpose(-2, -1)`; `permute` takes all of them."
        return f"This line calls `{function}` {exactly}.".replace(
            "other arguments", "arguments that it does not take"
        ) + (turning if function == "transpose" else "")
    first = " The first argument of every method is `self`." if at.exercise.is_class else ""
    return (
        f"The exercise calls `{function}` {exactly or 'with other arguments'}: compare the number and order "
        f"of its arguments, and their defaults, with yours.{first}"
    )


def _no_method(m: re.Match, at: Context) -> str:
    name, similar = m[1], get_close_matches(m[1], [name for name in dir(torch.Tensor) if name[0] != "_"], 1, 0.7)
    if OTHER_NAMES.get(name):
        return f"Tensors have no `{name}`, which belongs to NumPy or to lists. PyTorch has {instead_of(name)}."
    documented = "PyTorch's documentation of `torch.Tensor` lists their methods and attributes."
    return f"Tensors have no `{name}`. " + (f"Is `{similar[0]}` meant?" if similar else documented)


WRONG_CALLS = {
    r"(?P<method>\w+)\(\)(?: got an unexp| received an inv|: argument '\w+' .*must be|: .*takes)": _given_a_tensor,
    r"Can't call numpy\(\) on Tensor that requires grad": _given_a_tensor,
    r"not implemented for NumPy arrays|must be Tensor, not numpy.ndarray|'numpy.ndarray' object has no attribute": (
        "This line expects a tensor, and there is a NumPy array. Create tensors with PyTorch's functions."
    ),
    r"torch\.return_types\.(\w+)": r"`\1` along an axis returns two tensors, the values and their positions; take one.",
    r"(\w+)\(\): argument '\w+' .*must be Tensor, not (int|float)": _number_for_a_tensor,
    r"must be Tensor, not ([A-Z]\w+)": (
        r"`\1(…)` builds an object, such as a layer, which is called afterwards: `\1()(x)`."
    ),
    r"(\w+)\(\): argument 'tensors' .*must be tuple of Tensors, not Tensor": (
        r"`\1` takes one list of tensors: `torch.\1([a, b], dim=…)`."
    ),
    r"must be Tensor, not (\w+)": r"A function for tensors was given a value of type \1.",
    r"(?:only one element tensors|Tensor with \d+ elements) c(?:an|annot) be converted to": _one_number,
    r"(\w+)\(\) received an invalid combination of arguments - got \((.*?)\)": _other_arguments,
    (
        r"([\w.]+)\(\) (?:missing \d+ required positional arguments?: (?P<without>[^\n]*)"
        r"|takes .*positional arguments? but \d+ (?:was|were) given|got an unexpected keyword argument)"
    ): _wrong_call,
    r"'Tensor' object has no attribute '(\w+)'": _no_method,
    r"module '([\w.]+)' has no attribute '(\w+)'": (
        r"`\1` has no `\2`. Is the name spelt right? Capital letters count, too."
    ),
    r"unsupported operand type\(s\) for (\S+): .*(?:method|function)": (
        r"One side of `\1` is a function itself. Are the parentheses of a call missing?"
    ),
    r"unsupported operand type\(s\) for (\S+): .*'tuple'": (
        r"One side of `\1` is a tuple, such as the result of a function that returns several values."
    ),
}
