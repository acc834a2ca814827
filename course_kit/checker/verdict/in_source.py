"""Statements in a solution's code that change a tensor in place, and those that no gradient passes."""

from __future__ import annotations

import ast
import textwrap
import warnings
from collections.abc import Iterable, Iterator

__all__ = ["calls_in", "detaching", "in_place", "nodes_of"]

DETACHING = {"detach", "detach_", "item", "tolist", "numpy", "no_grad", "inference_mode"}


def nodes_of(sources: Iterable[str]) -> Iterator[ast.AST]:
    """All nodes of the syntax trees of some code; none of code that cannot be read."""
    for source in sources:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Python warns about a literal that looks like a slip
            try:
                tree = ast.parse(textwrap.dedent(source))
            except (SyntaxError, ValueError, RecursionError, MemoryError):
                continue
        yield from ast.walk(tree)


def in_place(sources: Iterable[str]) -> list[str]:
    """Statements that may change a tensor in place: `state += x`, `x[i] = y`, `x.exp_()`."""
    return [_written(node) for node in nodes_of(sources) if _is_in_place(node)]


def _is_in_place(node: ast.AST) -> bool:
    if isinstance(node, ast.AugAssign):
        return not isinstance(node.value, ast.Constant)
    if isinstance(node, ast.Assign):
        return any(isinstance(target, ast.Subscript) for target in node.targets)
    called = node.func if isinstance(node, ast.Call) else None
    return isinstance(called, ast.Attribute) and called.attr.endswith("_") and not called.attr.endswith("__")


def detaching(sources: Iterable[str]) -> list[str]:
    """Expressions such as `x.detach()`, `x.item()`, `torch.no_grad()`."""
    calls = [node for node in nodes_of(sources) if isinstance(node, ast.Call)]
    return [_written(node) for node in calls if getattr(node.func, "attr", "") in DETACHING]


def calls_in(nodes: Iterable[ast.AST], *modules: str) -> list[str]:
    """Names of the functions of some modules that are called, such as "sum" for `np.sum(…)` and the module "np"."""
    functions = [node.func for node in nodes if isinstance(node, ast.Call)]
    return [f.attr for f in functions if isinstance(f, ast.Attribute) and getattr(f.value, "id", "") in modules]


def _written(node: ast.AST) -> str:
    text = ast.unparse(node)
    return text if len(text) <= 60 else f"{text[:59]}…"
