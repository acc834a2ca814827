"""What is said about a call with arguments that the function does not take: a NumPy function that was given a tensor, a
PyTorch function that was given something else, a learner's own function with another signature."""

from __future__ import annotations

import re
from difflib import get_close_matches
from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from course_lib.grader.verdict.exceptions import Context

__all__ = ["WRONG_CALLS", "instead_of"]

# What PyTorch has for a function, method or attribute of NumPy's; other names are the same in both.
COUNTERPARTS = {
    **{name: f"torch.a{name}" for name in ("max", "min")},
    "transpose": "x.transpose(-2, -1)",
    "dot": "a @ b",
    "expand_dims": "x.unsqueeze(dim)",
    "power": "torch.pow",
    "repeat": "torch.repeat_interleave",
    "astype": "x.to(dtype)",
    "copy": "x.clone()",
    "fill": "x.fill_(value)",
    "append": "torch.cat",
}


def instead_of(name: str) -> str:
    """What PyTorch has in place of NumPy's name, in backquotes; "" if nothing is certain."""
    found = COUNTERPARTS.get(name) or (
        f"torch.{name}" if hasattr(torch, name) and name not in {"array", "asarray"} else ""
    )
    return f"`{found}`" if found else ""


def _given_a_tensor(names: list[str]) -> str:
    names = sorted(set(names))
    called = " and ".join(f"`np.{name}`" for name in names)
    others = " and ".join(filter(None, map(instead_of, names)))
    return f"{called} {'was' if len(names) == 1 else 'were'} given a tensor. " + (
        f"Use {others} instead, because gradients do not flow through NumPy."
        if others
        else "Gradients do not flow through NumPy."
    )


def _numpy_on_gradients(m: re.Match, at: Context) -> str:
    if len(at.line.numpy_calls) == 1:
        return _given_a_tensor(at.line.numpy_calls)
    return "This line hands a tensor to NumPy, and gradients do not flow through NumPy. PyTorch has the same functions."


def _numpy_passed_on(m: re.Match, at: Context) -> str:
    """NumPy calls the tensor's own method, with names of arguments that PyTorch does not know."""
    names = [name for name in at.line.numpy_calls if name.endswith(m[1])]
    return _given_a_tensor(names) if names else ""


def _not_a_tensor(m: re.Match, at: Context) -> str:
    function, given = m[1], m[2]
    if "ndarray" in given:
        return f"PyTorch's `{function}` was given a NumPy array. Use PyTorch's functions and tensors throughout."
    if given in {"int", "float"}:
        import math

        instead = f" For a number, there is `math.{function}`." if hasattr(math, function) else ""
        return f"PyTorch's `{function}` takes a tensor, but was given the plain number of type {given}.{instead}"
    return f"PyTorch's `{function}` takes a tensor, but was given a value of type `{given}`."


def _one_number(m: re.Match, at: Context) -> str:
    if at.line.math_calls:
        name = at.line.math_calls[0]
        return (
            f"`math.{name}` takes a single number, but was given a tensor with several. {instead_of(name)} computes "
            f"every entry."
        )
    return "A tensor with several numbers cannot become one Python number. Which entry, or which sum of them, is meant?"


def _other_arguments(m: re.Match, at: Context) -> str:
    facts = f"`{m[1]}` was called with ({m[2].strip(' ,')}), which it does not take."
    absent = [name for name in at.arguments_that_are(lambda value: value is None) if name.strip("`") in at.line.code]
    if absent:
        return f"{facts} In this case {' and '.join(absent)} is None."
    return f"{facts} PyTorch's message lists the arguments that it takes."


def _left_out(m: re.Match, at: Context) -> str:
    function, names = m[1], m[2].replace('"', "`").replace("'", "`")
    if at.line.code:
        return f"This line calls `{function}` without {names}." + _turning(function)
    return f"{_as_in_the_exercise(function)} The call leaves out {names}."


def _too_many(m: re.Match, at: Context) -> str:
    function = m[1]
    if at.line.code:
        return f"This line calls `{function}` with arguments that it does not take.{_turning(function)}"
    self_first = at.exercise.is_class and m[2] is not None and int(m[3]) == int(m[2]) + 1
    return _as_in_the_exercise(function) + (
        " Python passes the object itself first: every method starts with `self`." if self_first else ""
    )


def _turning(function: str) -> str:
    return " It exchanges two axes, `x.transpose(-2, -1)`; `permute` takes all of them." * (function == "transpose")


def _as_in_the_exercise(function: str) -> str:
    function = function.removeprefix(".")  # of a function that was defined in another one
    return (
        f"`{function}` has another signature than the exercise asks for: compare the names, the order and the "
        f"defaults of its arguments."
    )


def _no_method(m: re.Match, at: Context) -> str:
    if m[1] != "Tensor":
        return f"A NumPy array has no `{m[2]}`. Use PyTorch's functions and tensors throughout."
    if m[2] in COUNTERPARTS:
        return f"Tensors have no `{m[2]}`, which belongs to NumPy or to lists. PyTorch has {instead_of(m[2])}."
    similar = get_close_matches(m[2], [name for name in dir(torch.Tensor) if name[0] != "_"], 1, 0.7)
    if similar:
        return f"Tensors have no `{m[2]}`. Is `{similar[0]}` meant?"
    return f"Tensors have no `{m[2]}`. PyTorch's documentation of `torch.Tensor` lists their methods and attributes."


def _operands(m: re.Match, at: Context) -> str:
    for kind in (m[2], m[3]):
        if kind.startswith("torch.return_types."):
            name = kind.rpartition(".")[2]
            return f"`{name}` along an axis returns two tensors, the values and their positions; here one is needed."
        if "method" in kind or kind == "function":
            return f"One side of `{m[1]}` is a function itself. Are the parentheses of a call missing?"
        if kind == "tuple":
            return f"One side of `{m[1]}` is a tuple, such as the result of a function that returns several values."
    return f"`{m[1]}` has a value of type {m[2]} on its left and one of type {m[3]} on its right."


WRONG_CALLS = (
    (r"(\w+)\(\)(?: got an unexpected| received an invalid|: argument '\w+' .*must be|: .*takes)", _numpy_passed_on),
    (r"Can't call numpy\(\) on Tensor that requires grad", _numpy_on_gradients),
    (
        r"not implemented for NumPy arrays",
        "A NumPy array and a tensor meet in this line. Create tensors with PyTorch's functions, such as `torch.zeros`.",
    ),
    (r"(\w+)\(\): argument '\w+' (?:\(position \d+\) )?must be Tensor, not ([\w.]+)", _not_a_tensor),
    (r"(?:only one element tensors|Tensor with \d+ elements) c(?:an|annot) be converted to", _one_number),
    (r"(\w+)\(\) received an invalid combination of arguments - got \((.*?)\)", _other_arguments),
    (r"([\w.]+)\(\) missing \d+ required positional arguments?: ([^\n]*)", _left_out),
    (
        r"([\w.]+)\(\) (?:takes (?:from \d+ to )?(\d+) positional arguments? but (\d+) (?:was|were) given"
        r"|got an unexpected keyword argument)",
        _too_many,
    ),
    (r"'(Tensor|numpy\.ndarray)' object has no attribute '(\w+)'", _no_method),
    (r"unsupported operand type\(s\) for (\S+): '(?!NoneType)([\w.]+)' and '(?!NoneType)([\w.]+)'", _operands),
)
