"""Signatures of functions, classes and methods from their source, which ruff breaks into lines that fit a page."""

from __future__ import annotations

import ast
import copy
import re
import subprocess
import sys
from functools import cache

__all__ = ["Definition", "fields", "is_record", "laid_out", "stub"]

Definition = ast.FunctionDef | ast.ClassDef
WIDTH = 79  # characters of a signature on one line
DOT, NEXT = "ˑ", "# next\n"  # a letter that is in no name, for `Class.method`; and what stands between two stubs


def stub(name: str, node: Definition, *, method: bool = False) -> str:
    """A signature as the first line of a function, or as it is to be shown if there is nothing to call.

    Args:
        name: as the reader calls it.
        node: the definition of a function, class or method.
        method: whether a class owns it, so that its first argument is not shown.
    """
    returned = ast.unparse(node.returns) if isinstance(node, ast.FunctionDef) and node.returns else ""
    if {"property", "cached_property"} & _decorators(node):
        return f"{name} : {returned}"
    if isinstance(node, ast.ClassDef):
        arguments = _arguments_of_class(node)
    else:
        arguments = _arguments(node.args, skip=method and "staticmethod" not in _decorators(node))
    if arguments is None:
        return name
    call = f"({arguments})" + (f" -> {returned}" if returned else "")
    comma = "," if arguments and len(name + call) > WIDTH else ""  # with it, ruff gives each argument a line
    call = f"({arguments}{comma})" + (f" -> {returned}" if returned else "")
    grouped = re.sub(r"(?<![\w.])\d{5,}(?!\w)", lambda number: f"{int(number[0]):_}", call)
    return f"def {name.replace('.', DOT)}{grouped}: ..."


@cache
def laid_out(stubs: tuple[str, ...]) -> list[str]:
    """The signatures of these stubs, in the style of the package."""
    command = [sys.executable, "-m", "ruff", "format", "--isolated", "--line-length", "88", "-"]
    code = NEXT.join(f"{one}\n" for one in stubs if one.startswith("def "))
    done = subprocess.run(command, input=code, capture_output=True, encoding="utf-8", check=True)
    shown = (part.strip().removeprefix("def ").removesuffix(": ...") for part in done.stdout.split(NEXT))
    return [next(shown).replace(DOT, ".") if one.startswith("def ") else one for one in stubs]


def fields(node: ast.ClassDef) -> list[ast.AnnAssign]:
    """The annotated names in the body of a class."""
    return [inner for inner in node.body if isinstance(inner, ast.AnnAssign)]


def is_record(node: ast.ClassDef) -> bool:
    """Whether its fields are what it is called with."""
    return bool({"dataclass", "NamedTuple"} & (_decorators(node) | {ast.unparse(base) for base in node.bases}))


def _arguments_of_class(node: ast.ClassDef) -> str | None:
    """Of `__init__`, or the fields of a dataclass; None for a class that has neither."""
    for inner in node.body:
        if isinstance(inner, ast.FunctionDef) and inner.name == "__init__":
            return _arguments(inner.args, skip=True)
    if is_record(node):
        only = any("kw_only=True" in ast.unparse(decorator) for decorator in node.decorator_list)
        return ", ".join(["*"] * only + [ast.unparse(field) for field in fields(node)])
    return None


def _arguments(args: ast.arguments, *, skip: bool) -> str:
    args = copy.deepcopy(args)
    if skip:  # self
        (args.posonlyargs or args.args).pop(0)
    return ast.unparse(args)


def _decorators(node: Definition) -> set[str]:
    calls = [decorator.func if isinstance(decorator, ast.Call) else decorator for decorator in node.decorator_list]
    return {ast.unparse(call).rsplit(".", 1)[-1] for call in calls}
