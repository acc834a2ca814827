"""The statements of a file: what each defines, what it needs when it runs, and what it needs later."""

from __future__ import annotations

import ast
import re
import symtable
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass, field

__all__ = ["LARGEST_SOURCE", "Piece", "Source", "add_statements", "parsed"]

LARGEST_SOURCE = 2**20  # bytes of code


@dataclass(frozen=True)
class Piece:
    """A statement at the top level of a file, with what it defines and what it needs.

    Args:
        file: "week1.py", or "week1.ipynb, cell 3".
        line: where it begins there.
        code: its source.
        binds: names that it defines.
        now: names that it needs when it runs.
        later: names that functions inside need when they are called.
        changes: names of things that it changes (`A.forward = f`, `x += 1`).
        imported: whether it only imports.
        star: whether it imports everything from somewhere.
        own: whether `course_lib` is what it imports from.
    """

    file: str
    line: int
    code: str
    binds: frozenset[str]
    now: frozenset[str]
    later: frozenset[str]
    changes: frozenset[str] = frozenset()
    imported: bool = False
    star: bool = False
    own: bool = False


@dataclass
class Source:
    """A file of a submission.

    Args:
        name: of the file.
        pieces: its statements, in order.
        cells: text of each cell (or of the file) by the name that tracebacks use.
        broken: what could not be read: place and reason, with the names that it seems to define.
    """

    name: str
    pieces: list[Piece] = field(default_factory=list)
    cells: dict[str, str] = field(default_factory=dict)
    broken: list[tuple[str, str, frozenset[str]]] = field(default_factory=list)

    def definition(self, name: str) -> Piece | None:
        """The last definition of a name that is the student's own."""
        own = [piece for piece in self.pieces if name in piece.binds and not piece.imported]
        return own[-1] if own else None


def parsed(text: str) -> ast.Module | None:
    """The syntax tree of a text, or None if it is not Python."""
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def add_statements(source: Source, place: str, text: str) -> None:
    """Add the statements of a cell or file to a source; what cannot be parsed is among what is broken.

    Args:
        source: to which they belong.
        place: name of the cell or file, as tracebacks show it.
        text: its code.

    Raises:
        ValueError: it is too long.
    """
    if len(text) > LARGEST_SOURCE:
        raise ValueError(f"it has {len(text) // 2**10} KB of code; more than {LARGEST_SOURCE // 2**10} are not read")
    text = text.replace("\r\n", "\n").replace("\r", "\n").replace("\f", " ")
    source.cells[place] = text
    try:
        tree = ast.parse(text)
        lines = text.split("\n")
        for node in tree.body:
            if not _is_main_guard(node):
                source.pieces.append(_piece(place, lines, node))
    except SyntaxError as error:
        reason = f"{error.msg} in line {error.lineno}"
        source.broken.append((place, reason, _seeming(text)))
    except (ValueError, RecursionError, MemoryError):
        source.broken.append((place, "it is nested too deeply, or holds characters that are no text", _seeming(text)))


def _is_main_guard(node: ast.stmt) -> bool:
    """`if __name__ == "__main__":` — a submission is imported, so that its block never runs."""
    return (
        isinstance(node, ast.If)
        and not node.orelse
        and isinstance(node.test, ast.Compare)
        and isinstance(node.test.left, ast.Name)
        and node.test.left.id == "__name__"
        and isinstance(node.test.ops[0], ast.Eq)
    )


def _seeming(text: str) -> frozenset[str]:
    return frozenset(re.findall(r"^[ \t]*(?:async )?(?:def|class)[ \t]+(\w+)", text, re.MULTILINE))


def _piece(place: str, lines: list[str], node: ast.stmt) -> Piece:
    first = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", []))])
    code = "\n".join(lines[first - 1 : node.end_lineno])
    before = lines[first - 1].encode()[: node.col_offset].decode(errors="ignore")
    if before.strip() or lines[node.end_lineno - 1].encode()[node.end_col_offset :].strip()[:1] == b";":
        code = ast.unparse(node)  # several statements in one line
    names = _Names(node, code)
    return Piece(
        place,
        first,
        code,
        frozenset(names.binds),
        frozenset(names.now),
        frozenset(names.later),
        frozenset(names.changes),
        imported=isinstance(node, ast.Import | ast.ImportFrom),
        star=any(alias.name == "*" for alias in getattr(node, "names", []) if isinstance(alias, ast.alias)),
        own=isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "course_lib",
    )


class _Names:
    """Names that a statement defines, needs at once, needs later, and changes; Python's own symbol table tells."""

    def __init__(self, node: ast.stmt, code: str):
        self.binds: set[str] = set()
        self.now: set[str] = set()
        self.later: set[str] = set()
        top = symtable.symtable(textwrap.dedent(code), "statement", "exec")
        only_inside, walrus = _bound_in_comprehensions(node)  # Python 3.12 and later count those as bound here
        self.binds |= walrus
        declared = isinstance(node, ast.AnnAssign) and node.value is None  # `width: int` defines nothing
        for symbol in top.get_symbols():
            assigned = symbol.is_assigned() and symbol.get_name() not in only_inside and not declared
            if assigned or symbol.is_imported():
                self.binds.add(symbol.get_name())
            if symbol.is_referenced():
                self.now.add(symbol.get_name())
        self._inside(top, self.now)
        self.changes = set(_changed(node))
        self.now |= self.changes

    def _inside(self, table: symtable.SymbolTable, names: set[str]) -> None:
        """Global names of the scopes within: bodies of classes and comprehensions run at once, functions later."""
        for child in table.get_children():
            at_once = child.get_type() == "class" or child.get_name() in {"listcomp", "setcomp", "dictcomp", "genexpr"}
            into = names if at_once else self.later
            into |= {symbol.get_name() for symbol in child.get_symbols() if symbol.is_global()}
            self._inside(child, into)


def _bound_in_comprehensions(node: ast.stmt) -> tuple[set[str], set[str]]:
    """Names that comprehensions of a statement bind and nothing else of it does; names that `:=` binds."""
    inside: set[str] = set()
    outside: set[str] = set()
    walrus: set[str] = set()
    stack: list[tuple[ast.AST, bool]] = [(node, False)]
    while stack:
        part, target = stack.pop()
        if isinstance(part, ast.NamedExpr):
            walrus.add(part.target.id)
        if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store):
            (inside if target else outside).add(part.id)
        elif isinstance(part, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            outside.add(part.name)
            continue
        elif isinstance(part, ast.Lambda):
            continue
        for name, child in ast.iter_fields(part):
            for one in child if isinstance(child, list) else [child]:
                if isinstance(one, ast.AST):
                    stack.append((one, target or (isinstance(part, ast.comprehension) and name == "target")))
    return inside - outside, walrus


def _changed(node: ast.stmt) -> Iterator[str]:
    """Names of things that a statement changes: `x += 1`, `A.forward = f`, `table[0] = 1`, `setattr(A, …)`."""
    stack: list[ast.AST] = [node]
    while stack:
        part = stack.pop()
        if isinstance(part, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef):
            continue
        targets = part.targets if isinstance(part, ast.Assign) else []
        if isinstance(part, ast.AugAssign):
            yield from _root(part.target)
        elif isinstance(part, ast.Call) and isinstance(part.func, ast.Name) and part.func.id == "setattr" and part.args:
            targets = part.args[:1]
        elif isinstance(part, ast.Expr) and isinstance(part.value, ast.Call):
            called = part.value.func  # `table.append(1)`: what is called for nothing but its effect
            targets = [called] if isinstance(called, ast.Attribute) else []
        for target in targets:
            if isinstance(part, ast.Call) or isinstance(target, ast.Attribute | ast.Subscript):
                yield from _root(target)
        stack += ast.iter_child_nodes(part)


def _root(target: ast.expr) -> Iterator[str]:
    while isinstance(target, ast.Attribute | ast.Subscript | ast.Starred):
        target = target.value
    if isinstance(target, ast.Name):
        yield target.id
