"""The statements of a file: what each defines, what it needs when it runs, and what it needs later."""

from __future__ import annotations

import ast
import re
import symtable
from collections.abc import Iterator
from dataclasses import dataclass, field

from course_kit.checker.sanitize import clean

__all__ = ["LARGEST_SOURCE", "Piece", "Source", "TooMuch", "add_statements", "parsed"]

LARGEST_SOURCE = 2**20  # characters of code in a file
MOST_STATEMENTS = 25_000  # at the top level of a file
DEEPEST = 400  # expressions and statements inside each other
LONGEST_REASON = 200  # characters; Python's messages quote names
LONGEST_IDENTIFIER = 80  # characters of names that are shown or looked for


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
        own: whether it imports from `course_lib` or `course_kit`.
        modules: names that `from … import …` binds, each with the module that it is imported from.
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
    modules: tuple[tuple[str, str], ...] = ()


@dataclass
class Source:
    """A file of a submission.

    Args:
        name: of the file.
        pieces: its statements, in order.
        cells: text of each cell (or of the file) by the name that tracebacks use.
        broken: what could not be read: place and reason, with the names that it seems to define.
        remarks: how it was read, where that is worth knowing, as the end of a sentence about it.
        slices: what definitions need, by name, where that was found out before; the other statements are left out.
        imports: names that are imported at the top level, each with its module.
        path: of the file below the student's folder, with "/" between folders.
    """

    name: str
    pieces: list[Piece] = field(default_factory=list)
    cells: dict[str, str] = field(default_factory=dict)
    broken: list[tuple[str, str, frozenset[str]]] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)
    slices: dict[str, list[Piece]] | None = None
    imports: dict[str, str] = field(default_factory=dict)
    path: str = ""

    def defines(self, name: str) -> bool:
        """Whether the file has a definition of a name that is the student's own."""
        return name in self.slices if self.slices is not None else self.definition(name) is not None

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
        ValueError: the source becomes longer than sources may be.
    """
    text = text.replace("\r\n", "\n").replace("\r", "\n").replace("\f", " ")
    source.cells[place] = text
    length = sum(map(len, source.cells.values()))
    if length > LARGEST_SOURCE:
        raise TooMuch(f"it has {length // 2**10} KB of code; more than {LARGEST_SOURCE // 2**10} are not read")
    try:
        body = ast.parse(text).body
        if len(source.pieces) + len(body) > MOST_STATEMENTS:
            raise TooMuch(f"it has more than {MOST_STATEMENTS} statements, and is not read")
        lines = text.encode().split(b"\n")
        for number, node in enumerate(body):
            if not _is_main_guard(node):
                before, after = body[number - 1] if number else None, body[number + 1 : number + 2]
                code, first = _code_of(node, before, after, lines)
                source.pieces.append(_piece(place, code, first, node))
    except TooMuch:
        raise
    except SyntaxError as error:
        reason = clean(error.msg, LONGEST_REASON) + (f" in line {error.lineno}" if error.lineno else "")
        source.broken.append((place, reason, _seeming(text)))
    except (ValueError, RecursionError):
        source.broken.append((place, "it is nested too deeply, or holds characters that are not text", _seeming(text)))
    except MemoryError:  # Python's parser says so of what is nested too deeply, too
        source.broken.append((place, "it is nested too deeply, or has too many statements", _seeming(text)))


class TooMuch(ValueError):  # noqa: N818 - the message says of what
    """A file that is larger than files are read."""


def _is_main_guard(node: ast.stmt) -> bool:
    """`if __name__ == "__main__":` — a submission is imported, so that its block never runs."""
    match node:
        case ast.If(test=ast.Compare(left=ast.Name("__name__"), ops=[ast.Eq(), *_]), orelse=[]):
            return True
    return False


def _seeming(text: str) -> frozenset[str]:
    names = re.findall(r"^[ \t]*(?:async )?(?:def|class)[ \t]+(\w+)", text, re.MULTILINE)
    return frozenset(name for name in names if len(name) <= LONGEST_IDENTIFIER)


def _code_of(node: ast.stmt, before: ast.stmt | None, after: list[ast.stmt], lines: list[bytes]) -> tuple[str, int]:
    """The code of a statement and the line where it begins: whole lines, unless others share them."""
    first, last = _first_line(node), node.end_lineno
    shared = (before and before.end_lineno == first) or (after and _first_line(after[0]) == last)
    code = lines[first - 1 : last]
    if shared or (node.col_offset and first == node.lineno):
        begin, end = node.col_offset, node.end_col_offset  # columns count bytes
        code = [code[0][begin:end]] if first == last else [code[0][begin:], *code[1:-1], code[-1][:end]]
    return b"\n".join(code).decode(), first


def _first_line(node: ast.stmt) -> int:
    return min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", []))])


def _piece(place: str, code: str, first: int, node: ast.stmt) -> Piece:
    if len(code) > DEEPEST and _deeper(node, DEEPEST):
        raise ValueError
    try:
        names = _names(node, code)
    except SyntaxError as error:  # what only the symbol table notices: it counts lines from the statement's first
        error.lineno = first - 1 + (error.lineno or 1)
        raise
    return Piece(
        place,
        first,
        code,
        *map(frozenset, names),
        imported=isinstance(node, ast.Import | ast.ImportFrom),
        star=any(alias.name == "*" for alias in getattr(node, "names", []) if isinstance(alias, ast.alias)),
        own=isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] in {"course_lib", "course_kit"},
        modules=_modules(node),
    )


def _modules(node: ast.stmt) -> tuple[tuple[str, str], ...]:
    """Names that `from … import …` binds, at any depth, and the module that each is imported from."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return ()
    imports = [node] if isinstance(node, ast.ImportFrom) else []
    if isinstance(node, ast.Try | ast.If | ast.With):
        imports += [part for part in ast.walk(node) if isinstance(part, ast.ImportFrom)]
    return tuple(
        (alias.asname or alias.name, clean(part.module or "", 80))
        for part in imports
        for alias in part.names
        if not part.level
    )


def _deeper(node: ast.AST, most: int) -> bool:
    """Whether something in a statement is nested in more than that many others."""
    level: list[ast.AST] = [node]
    for _ in range(most):
        level = [child for part in level for child in ast.iter_child_nodes(part)]
        if not level:
            return False
    return True


def _names(node: ast.stmt, code: str) -> tuple[set[str], set[str], set[str], set[str]]:
    """Names that a statement defines, needs at once, needs later, and changes; Python's own symbol table tells."""
    top = symtable.symtable(code, "statement", "exec")
    only_inside, binds = _bound_in_comprehensions(node)  # Python 3.12 and later count those as bound here
    now: set[str] = set()
    later: set[str] = set()
    declared = isinstance(node, ast.AnnAssign) and node.value is None  # `width: int` defines nothing
    for symbol in top.get_symbols():
        assigned = symbol.is_assigned() and symbol.get_name() not in only_inside and not declared
        if assigned or symbol.is_imported():
            binds.add(symbol.get_name())
        if symbol.is_referenced():
            now.add(symbol.get_name())
    _inside(top, now, later)
    changes = set(_changed(node))
    return binds, now | changes, later, changes


def _inside(table: symtable.SymbolTable, now: set[str], later: set[str]) -> None:
    """Global names of the scopes within: bodies of classes and comprehensions run at once, functions later."""
    for child in table.get_children():
        at_once = child.get_type() == "class" or child.get_name() in {"listcomp", "setcomp", "dictcomp", "genexpr"}
        into = now if at_once else later
        into |= {symbol.get_name() for symbol in child.get_symbols() if symbol.is_global()}
        _inside(child, into, later)


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
    """Names of things that a statement changes: `x += 1`, `A.forward = f`, `table[0] = 1`, `setattr(A, …)`, and those
    that a definition is registered with: `@f.register`."""
    for decorator in getattr(node, "decorator_list", ()):
        called = decorator.func if isinstance(decorator, ast.Call) else decorator
        if isinstance(called, ast.Attribute):
            yield from _root(called)
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
