"""What students hand in: Python files and notebooks, read without running them.

Of a file, only what an exercise needs is run: the last definition of its name, and what that definition uses, in an
order in which it works. Training loops, plots, magics and checks between the cells are left alone, and cells that were
copied, deleted or moved do no harm.
"""

from __future__ import annotations

import ast
import builtins
import hashlib
import json
import os
import re
import symtable
import textwrap
import warnings
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from course_lib.grader._protocol import clean

__all__ = ["Piece", "Submission", "ignored_files", "read_submissions"]

LARGEST_FILE = 20 * 2**20  # bytes; a notebook with its pictures
LARGEST_SOURCE = 2**20  # bytes of code
MOST_PIECES = 5000  # statements that one definition may need
KEPT_CELL_MAGICS = ("time", "timeit", "capture", "prun")


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


@dataclass
class Submission:
    """Everything that one student handed in.

    Args:
        student: name of the file or folder.
        sources: its files.
        problems: what could not be read at all, a sentence each.
        digest: of all bytes; a changed submission is graded again.
        modified: of the newest file, seconds since 1970.
    """

    student: str
    sources: list[Source] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    digest: str = ""
    modified: float = 0.0

    def defined(self) -> set[str]:
        """Names that the submission defines, or seems to."""
        names = {
            name for source in self.sources for piece in source.pieces if not piece.imported for name in piece.binds
        }
        return names | {name for source in self.sources for *_, seems in source.broken for name in seems}

    def find(self, name: str, stem: str) -> Source | None:
        """The file whose definition of a name counts: the chapter's, else the last one by name."""
        having = [source for source in self.sources if source.definition(name) is not None]
        chapters = [source for source in having if Path(source.name).stem == stem]
        return (chapters or having)[-1] if having else None

    def broken(self, name: str) -> str:
        """Why a name has no definition although there seems to be one, or ""."""
        for source in reversed(self.sources):
            for where, why, names in reversed(source.broken):
                if name in names:
                    return f"{where} could not be read: {why}"
        return ""

    def request(self, names: dict[str, str]) -> dict[str, Any]:
        """The code that these exercises need, for the process that runs it.

        Args:
            names: exercise to stem.
        """
        pieces: list[Piece] = []
        for name, stem in names.items():
            source = self.find(name, stem)
            if source is not None:
                try:
                    new = needed(source, name)
                except ValueError as error:
                    self.problems.append(f"{name}: {error}")
                    continue
                known = {id(piece) for piece in pieces}
                pieces += [piece for piece in new if id(piece) not in known]
        used = {piece.file for piece in pieces}
        files = {place: text for source in self.sources for place, text in source.cells.items() if place in used}
        siblings = {
            Path(source.name).stem: source.cells[source.name] for source in self.sources if source.name.endswith(".py")
        }
        return {
            "files": files,
            "siblings": siblings,
            "pieces": [
                {"file": p.file, "line": p.line, "code": p.code, "names": sorted(p.binds | p.changes)} for p in pieces
            ],
        }


# Finding and reading


def read_submissions(
    paths: Iterable[Path], *, as_one: bool = False, results: Path | None = None
) -> Iterator[Submission]:
    """Every submission below the paths, in order of the students' names.

    A file is a submission. In a folder, each file is one and each folder is one, with all files below it.

    Args:
        paths: files and folders.
        as_one: everything below the paths is one student's.
        results: a folder that is no submission, since results are written there. Folders of results of earlier runs
            are none either.

    Raises:
        FileNotFoundError: a path does not exist, or nothing below it is a `.py` or `.ipynb`.
    """
    entries: list[tuple[Path, list[Path]]] = []
    for path in paths:
        if not path.exists():
            raise FileNotFoundError(f"expected a file or folder of submissions, got {path}, which does not exist")
        below = _entries(path, results) if path.is_dir() and not as_one else [path]
        new = [(entry, _files(entry)) for entry in below]
        new = [(entry, files) for entry, files in new if files or (entry.is_dir() and (as_one or entry is not path))]
        if not new:
            raise FileNotFoundError(
                f"expected .py or .ipynb files in {path}, got none; give a file, or a folder with one a student"
            )
        entries += new
    if as_one:
        first = entries[0][0].resolve()
        student = readable(first.name if first.is_dir() else first.stem)
        yield read_submission(student, [file for _, files in entries for file in files])
        return
    found = _by_student(entries)
    for student in sorted(found):
        yield read_submission(student, found[student])


def _entries(folder: Path, results: Path | None = None) -> list[Path]:
    """The submissions that lie in a folder; links may point to somebody else's work, and results are none."""
    visible = [entry for entry in sorted(folder.iterdir()) if not entry.name.startswith((".", "__"))]
    return [
        entry
        for entry in visible
        if not entry.is_symlink()
        and (entry.is_dir() or _is_code(entry))
        and not (results and entry.resolve() == results.resolve())
        and not _holds_results(entry)
    ]


def _holds_results(entry: Path) -> bool:
    """Whether an earlier run wrote its results there; a folder with code in it is a student's in any case."""
    return (entry / "submissions").is_dir() and (entry / "results.json").is_file() and not _files(entry)


def ignored_files(paths: Iterable[Path]) -> list[str]:
    """Names of what lies beside the submissions and is none: other file types, archives, links."""
    ignored = []
    for path in paths:
        if path.is_dir():
            taken = set(_entries(path))
            others = [entry for entry in sorted(path.iterdir()) if entry not in taken and not _holds_results(entry)]
            ignored += [readable(entry.name) for entry in others if not entry.name.startswith(".")]
    return ignored


def _files(entry: Path) -> list[Path]:
    if entry.is_dir():
        return sorted(_code_files(entry))
    return [entry] if _is_code(entry) else []


def _by_student(entries: list[tuple[Path, list[Path]]]) -> dict[str, list[Path]]:
    """Names of students. Where two would have the same, those keep their suffix, or the folder that they lie in."""
    names = [
        (
            readable(entry.name if entry.is_dir() else entry.stem),
            readable(entry.name),
            readable(f"{entry.resolve().parent.name}/{entry.name}"),
            readable(str(entry.resolve())),
        )
        for entry, _ in entries
    ]
    level = [0] * len(names)
    while True:
        chosen = [name[at] for name, at in zip(names, level, strict=True)]
        counts = Counter(chosen)
        twice = [place for place, name in enumerate(chosen) if counts[name] > 1 and level[place] < 3]
        if not twice:
            break
        for place in twice:
            level[place] += 1
    found: dict[str, list[Path]] = {}
    for name, (_, files) in zip(chosen, entries, strict=True):
        number = 1
        while (key := name if number == 1 else f"{name} ({number})") in found:
            number += 1  # names that differ only in bytes that are no text
        found[key] = files
    return found


def readable(name: str) -> str:
    """A file's name as text; archives made elsewhere may hold bytes that are none."""
    return clean(os.fsencode(name).decode("utf-8", "replace"), 200)


def read_submission(student: str, files: list[Path]) -> Submission:
    """One student's files; what cannot be read is among the problems."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about the student's code; that is not the grader's to say
        return _read_submission(student, files)


def _read_submission(student: str, files: list[Path]) -> Submission:
    submission = Submission(student)
    digest = hashlib.sha256()
    counts = Counter(path.name for path in files)
    for path in files:
        # Two files of one name are told apart by the folder that they lie in.
        shown = path.name if counts[path.name] == 1 else f"{path.parent.name}/{path.name}"
        try:
            size = path.stat().st_size
            if size > LARGEST_FILE:
                text = (
                    f"{readable(path.name)} has {size / 2**20:.0f} MB; more than {LARGEST_FILE // 2**20} are not read"
                )
                submission.problems.append(text)
                digest.update(text.encode())
                continue
            with path.open("rb") as file:
                raw = file.read(LARGEST_FILE + 1)
            submission.modified = max(submission.modified, path.stat().st_mtime)
        except OSError as error:
            submission.problems.append(f"{readable(path.name)} cannot be read: {error.strerror}")
            continue
        digest.update(os.fsencode(path.name) + f" {len(raw)} ".encode() + raw)
        try:
            read = read_notebook if path.suffix.lower() == ".ipynb" else read_python
            source = read(readable(shown), raw)
            submission.sources.append(source)
        except ValueError as error:
            submission.problems.append(f"{readable(path.name)}: {error}")
        except Exception as error:  # whatever a file may hold, the others are read
            submission.problems.append(f"{readable(path.name)} cannot be read: {type(error).__name__}")
    if not files:
        submission.problems.append("no .py or .ipynb file was handed in")
    submission.digest = digest.hexdigest()
    return submission


def _is_code(path: Path) -> bool:
    return path.is_file() and path.suffix.lower() in {".py", ".ipynb"} and not path.name.startswith(".")


def _code_files(folder: Path) -> Iterator[Path]:
    for path in folder.rglob("*"):
        hidden = any(
            part.startswith(".") or part in {"__pycache__", "__MACOSX"} for part in path.relative_to(folder).parts
        )
        if not hidden and _is_code(path) and not path.is_symlink():
            yield path


def read_python(name: str, raw: bytes) -> Source:
    """A Python file.

    Raises:
        ValueError: it is not text, or too long.
    """
    source = Source(name)
    _add(source, name, _decoded(raw))
    return source


def read_notebook(name: str, raw: bytes) -> Source:
    """A notebook. Code cells first; a cell that has become text by mistake counts where nothing else defines its names.

    Raises:
        ValueError: it is no notebook.
    """
    try:
        notebook = json.loads(_decoded(raw, LARGEST_FILE))
        cells = notebook["cells"] if "cells" in notebook else notebook["worksheets"][0]["cells"]
        texts = [
            (number, cell.get("cell_type"), _joined(cell.get("source", cell.get("input", ""))))
            for number, cell in enumerate(cells, 1)
        ]
    except (ValueError, KeyError, TypeError, AttributeError, IndexError, RecursionError) as error:
        raise ValueError("it is not a notebook that can be read (damaged, or saved half-way?)") from error
    source = Source(name)
    for number, kind, text in texts:
        if kind == "code":
            _add(source, f"{name}, cell {number}", _without_magics(text))
    defined = {n for piece in source.pieces if not piece.imported for n in piece.binds}
    for number, kind, text in texts:
        if kind in {"raw", "markdown"} and re.search(r"^(def|class) \w", _unfenced(text), re.MULTILINE):
            other = Source(name)
            _add(other, f"{name}, cell {number}", _unfenced(text))
            new = [piece for piece in other.pieces if piece.imported or not piece.binds & defined]
            if any(not piece.imported and piece.binds for piece in new):
                source.pieces += new
                source.cells |= other.cells
    return source


def _joined(text: Any) -> str:
    return "".join(text) if isinstance(text, list) else str(text)


def _unfenced(text: str) -> str:
    fenced = re.findall(r"^```(?:python|py)?[ \t]*\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    return "\n".join(fenced) if fenced else text


def _decoded(raw: bytes, longest: int = LARGEST_SOURCE) -> str:
    if len(raw) > longest:
        raise ValueError(f"it has {len(raw) // 2**10} KB of code; more than {longest // 2**10} are not read")
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        return raw.decode("latin-1")


def _without_magics(text: str) -> str:
    """The cell as Python: what only IPython understands is left out, line numbers stay."""
    first = next((line for line in text.split("\n") if line.strip()), "")
    if first.startswith("%%"):
        if first[2:].split(" ")[0] not in KEPT_CELL_MAGICS:
            return ""
        text = text.replace(first, "", 1)
    if _parsed(text) is not None:
        return text
    lines = []
    quotes, continued = "", False
    for line in text.split("\n"):
        if quotes or continued:  # inside a text of several lines, or of a magic of several lines
            lines.append(line if quotes else "")
            continued = not quotes and line.rstrip().endswith("\\")
            quotes = _open_quotes(line, quotes)
            continue
        bare = line.lstrip()
        indent = line[: len(line) - len(bare)]
        assigned = re.match(r"([\w\s,.]+=\s*)[%!]", bare)
        if bare.startswith(("%", "!", "?")) or re.fullmatch(r"[\w.]+\?{1,2}\s*", bare):
            lines.append(f"{indent}pass")
            continued = bare[0] in "%!" and bare.rstrip().endswith("\\")
        elif assigned:
            lines.append(f"{indent}{assigned[1]}None")
            continued = bare.rstrip().endswith("\\")
        else:
            lines.append(line)
            quotes = _open_quotes(line, "")
    return "\n".join(lines)


def _open_quotes(line: str, quotes: str) -> str:
    """The triple quotes that are open after a line, "" if none, given those that were open before it."""
    for found in re.findall(r"\"\"\"|'''|#", line):
        if found == "#":
            if not quotes:
                break
        elif not quotes:
            quotes = found
        elif found == quotes:
            quotes = ""
    return quotes


def _parsed(text: str) -> ast.Module | None:
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


# Statements and what they need


def _add(source: Source, place: str, text: str) -> None:
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


def needed(source: Source, name: str) -> list[Piece]:
    """The statements that a definition needs, itself included, in an order in which they run.

    Raises:
        ValueError: it needs more of them than anybody writes.
    """
    wanted = source.definition(name)
    if wanted is None:
        return []
    slicer = _Slicer(source)
    slicer.add(wanted)
    order = slicer.in_order()
    known = {n for p in order for n in p.binds} | set(dir(builtins))
    open_names = {n for p in order for n in p.now | p.later} - known
    first = [p for p in source.pieces if p.imported and "__future__" in p.code]
    first += [p for p in source.pieces if p.star] if open_names else []
    return [*first, *(p for p in order if not any(p is other for other in first))]


class _Slicer:
    """Collects statements: what one needs to run comes before it, what its functions call comes anywhere."""

    def __init__(self, source: Source):
        self.order: list[Piece] = []
        self.done: set[int] = set()  # places of statements
        self.pieces = source.pieces
        self.binders: dict[str, list[int]] = {}
        self.changers: dict[str, list[int]] = {}
        for place, piece in enumerate(source.pieces):
            for name in piece.binds:
                self.binders.setdefault(name, []).append(place)
            for name in piece.changes:
                self.changers.setdefault(name, []).append(place)

    def add(self, wanted: Piece) -> None:
        waiting = [next(place for place, piece in enumerate(self.pieces) if piece is wanted)]
        while waiting:
            new = self._with_what_runs_before(waiting.pop())
            for place in new:
                piece = self.pieces[place]
                waiting += [p for n in sorted(piece.later) if (p := self._binder(n)) is not None and p not in self.done]
                # Changes made before the definition that counts were made to another one.
                # What is imported is not changed for the definition's sake: `plt.show()`, `torch.manual_seed(0)`.
                own = () if piece.imported else sorted(piece.binds)
                changes = [p for n in own for p in self.changers.get(n, ()) if p > place]
                waiting += [p for p in changes if p not in self.done]
            if len(self.order) > MOST_PIECES:
                raise ValueError(f"a definition that needs more than {MOST_PIECES} statements is not run")

    def _with_what_runs_before(self, place: int) -> list[int]:
        """Adds a statement after those that it needs at once; the places that were added."""
        new, stack = [], [(place, False)]
        entered: set[int] = set()
        while stack:
            place, ready = stack.pop()
            if place in self.done:
                continue
            if ready:
                self.done.add(place)
                self.order.append(self.pieces[place])
                new.append(place)
                continue
            if place in entered:
                continue
            entered.add(place)
            stack.append((place, True))
            piece = self.pieces[place]
            for name in sorted(piece.now, reverse=True):
                # `f = fast(f)` needs the f before it; everything else the last one.
                before = place if name in piece.binds | piece.changes else None
                other = self._binder(name, before)
                if other is not None and other not in self.done:
                    stack.append((other, False))
        return new

    def in_order(self) -> list[Piece]:
        """What was collected, as it stands in the file, but nothing before what it needs when it runs."""
        emitted: dict[int, None] = {}
        for root in sorted(self.done):
            stack, entered = [(root, False)], set()
            while stack:
                place, ready = stack.pop()
                if place in emitted:
                    continue
                if ready:
                    emitted[place] = None
                elif place not in entered:
                    entered.add(place)
                    stack.append((place, True))
                    stack += [(other, False) for other in reversed(self._needs(place)) if other not in emitted]
        return [self.pieces[place] for place in emitted]

    def _needs(self, place: int) -> list[int]:
        """What has to run before a statement: what it names, and all that functions among that use when called."""
        piece = self.pieces[place]
        found: dict[int, None] = {}
        for name in sorted(piece.now):
            other = self._binder(name, place if name in piece.binds | piece.changes else None)
            waiting = [other] if other is not None else []
            while waiting:
                other = waiting.pop()
                if other not in found and other != place:
                    found[other] = None
                    later = (self._binder(n) for n in sorted(self.pieces[other].later))
                    waiting += [p for p in later if p is not None]
        return sorted(p for p in found if p in self.done)

    def _binder(self, name: str, before: int | None = None) -> int | None:
        places = self.binders.get(name, ())
        if before is not None:
            places = places[: bisect_left(places, before)]
        own = next((p for p in reversed(places) if not self.pieces[p].own), None)
        return own if own is not None else (places[-1] if places else None)
