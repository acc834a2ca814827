"""A function of the library as a learner would write it: the same code without what only a library needs."""

from __future__ import annotations

import ast
import importlib
import re
from collections.abc import Iterator, Mapping

__all__ = ["imports_of", "learners_code"]

# Lines that refuse wrong arguments, such as `check_tokens(tokens)`: no solution has to.
_CHECK = re.compile(r"_?check_\w+")


def learners_code(source: str) -> str:
    """The source without docstrings, annotations and checks; everything else stays as it is written.

    Args:
        source: of a function or class.
    """
    lines = source.split("\n")
    for first, last, new in sorted(_changes(source, lines), reverse=True):
        lines[first - 1 : last] = new
    return "\n".join(lines)


def imports_of(code: str, names: Mapping[str, object]) -> str:
    """The lines that import what the code takes from `course_lib` and PyTorch's functions as `F`, if any.

    Two empty lines follow them.

    Args:
        code: of a solution.
        names: of the module that it stands in.
    """
    tree = ast.parse(code)
    own = {node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)} - own
    homes = {name: getattr(names.get(name), "__module__", None) or "" for name in used}
    ours = sorted(name for name, home in homes.items() if home.startswith("course_lib."))
    functional = ["import torch.nn.functional as F"] if "F" in used else []
    if not ours:
        return "\n".join([*functional, "", "", ""]) if functional else ""
    face = importlib.import_module("course_lib").__all__
    public = [name for name in ours if name in face]
    lines = [f"from course_lib import {', '.join(public)}"] if public else []
    lines += [f"from {homes[name]} import {name}" for name in ours if name not in public]
    return "\n".join([*functional, *([""] if functional else []), *lines]) + "\n\n\n"


def _changes(source: str, lines: list[str]) -> Iterator[tuple[int, int, list[str]]]:
    """First and last line of each passage that changes, counted from 1, and the lines that take its place."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef) and _is_annotated(node):
            last = max([node.lineno, *(part.end_lineno for part in [*_parameters(node), node.returns] if part)])
            while not lines[last - 1].endswith(":"):
                last += 1
            head = f"{' ' * node.col_offset}def {node.name}({_names_and_defaults(node.args, source)}):"
            yield node.lineno, last, [head]
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield from ((line.lineno, line.end_lineno, []) for line in node.decorator_list if _is_checked(line))
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and ast.get_docstring(node) is not None:
            last = node.body[0].end_lineno
            yield node.body[0].lineno, last + (not lines[last].strip()), []
        if isinstance(node, ast.AnnAssign) and node.value is not None:
            new = f"{' ' * node.col_offset}{ast.unparse(node.target)} = {ast.unparse(node.value)}"
            yield node.lineno, node.end_lineno, [new]
        if isinstance(node, ast.FunctionDef):
            ends = ((line.lineno, line.end_lineno) for line in node.body if _is_check(line))
            yield from ((first, last + (not lines[last].strip()), []) for first, last in ends)


def _is_checked(decorator: ast.expr) -> bool:
    name = decorator.func if isinstance(decorator, ast.Call) else decorator
    return isinstance(name, ast.Name) and name.id == "checked"


def _is_check(line: ast.stmt) -> bool:
    called = line.value.func if isinstance(line, ast.Expr) and isinstance(line.value, ast.Call) else None
    return isinstance(called, ast.Name) and _CHECK.fullmatch(called.id) is not None


def _parameters(function: ast.FunctionDef) -> list[ast.arg | None]:
    names = function.args
    return [*names.posonlyargs, *names.args, names.vararg, *names.kwonlyargs, names.kwarg]


def _is_annotated(function: ast.FunctionDef) -> bool:
    return function.returns is not None or any(name and name.annotation for name in _parameters(function))


def _names_and_defaults(arguments: ast.arguments, source: str) -> str:
    names = [*arguments.posonlyargs, *arguments.args]
    defaults = [None] * (len(names) - len(arguments.defaults)) + arguments.defaults

    def written(name: ast.arg, default: ast.expr | None) -> str:
        return name.arg if default is None else f"{name.arg}={ast.get_source_segment(source, default)}"

    parts = [written(*pair) for pair in zip(names, defaults, strict=True)]
    if arguments.vararg or arguments.kwonlyargs:
        parts.append(f"*{arguments.vararg.arg if arguments.vararg else ''}")
    parts += [written(*pair) for pair in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)]
    return ", ".join([*parts, *([f"**{arguments.kwarg.arg}"] if arguments.kwarg else [])])
