"""How large the text of a figure is: the smallest size that the code which draws it names, in points.

The picture does not tell, but its cell does, together with the functions that the cell calls: those of the page, and
those of `course_kit.viz`. Exponents and indices, which are always smaller than their text, are not counted.
"""

from __future__ import annotations

import ast
import hashlib
from binascii import a2b_base64
from collections.abc import Iterable
from functools import cache

import nbformat

from tools.publisher import ROOT

STYLE = 10.5  # `font.size` of course_kit/viz/style.py
_NAMES = {"fontsize", "labelsize", "titlesize"}
Sizes = dict[str, tuple[float, frozenset[str]]]  # of a function: its smallest size, and what it calls


def sizes_of_pictures(notebook: nbformat.NotebookNode) -> dict[str, float]:
    """The smallest text of each picture of an executed notebook, in points, by the picture's checksum (SHA-256)."""
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    page = "\n".join(cell.source for cell in cells)
    return {
        hashlib.sha256(a2b_base64(png)).hexdigest(): smallest_text(cell.source, page)
        for cell in cells
        for output in cell.outputs
        if (png := output.get("data", {}).get("image/png"))
    }


def smallest_text(cell: str, page: str) -> float:
    """The smallest text, in points, that a cell can draw; `page` is the code of its page, for the functions there."""
    known = {**_of_the_package(), **_functions(page)}
    size, waiting = _looked_at(_parsed(cell))
    seen: set[str] = set()
    while waiting := waiting - seen:
        name = min(waiting)
        seen.add(name)
        if name in known:
            smaller, more = known[name]
            size, waiting = min(size, smaller), waiting | more
    return size


@cache
def _of_the_package() -> Sizes:
    found: Sizes = {}
    for path in sorted((ROOT / "course_kit/viz").glob("*.py")):
        code = path.read_text(encoding="utf-8")
        if "matplotlib" in code:  # the other modules draw in HTML
            found |= _functions(code)
    return found


@cache
def _functions(code: str) -> Sizes:
    return {node.name: _looked_at(node) for node in ast.walk(_parsed(code)) if isinstance(node, ast.FunctionDef)}


def _parsed(code: str) -> ast.Module:
    """The code without the lines that only IPython understands."""
    return ast.parse("\n".join("" if line.startswith(("%", "!")) else line for line in code.splitlines()))


def _looked_at(node: ast.AST) -> tuple[float, frozenset[str]]:
    """The smallest size named in some code, and the functions that it calls by their plain names."""
    sizes, calls = [STYLE], set()
    for part in ast.walk(node):
        if isinstance(part, ast.Call):
            if isinstance(part.func, ast.Name):
                calls.add(part.func.id)
            elif isinstance(part.func, ast.Attribute) and part.func.attr == "set_fontsize":
                sizes += _numbers(part.args)
            elif isinstance(part.func, ast.Attribute) and part.func.attr in ("text", "annotate"):
                sizes += _numbers(word.value for word in part.keywords if word.arg == "size")
            sizes += _numbers(word.value for word in part.keywords if word.arg in _NAMES)
        elif isinstance(part, ast.Dict):
            sizes += _numbers(value for key, value in zip(part.keys, part.values, strict=True) if _text(key) in _NAMES)
        elif isinstance(part, ast.arguments):
            named = dict(zip(reversed(part.args), reversed(part.defaults), strict=False))
            named |= zip(part.kwonlyargs, part.kw_defaults, strict=True)
            sizes += _numbers(value for argument, value in named.items() if argument.arg in _NAMES)
    return min(sizes), frozenset(calls)


def _text(node: ast.expr | None) -> str:
    return str(node.value) if isinstance(node, ast.Constant) else ""


def _numbers(nodes: Iterable[ast.expr | None]) -> list[float]:
    return [float(n.value) for n in nodes if isinstance(n, ast.Constant) and isinstance(n.value, int | float)]
