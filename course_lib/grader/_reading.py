"""A file or notebook to its statements, without running it; and all files of one student."""

from __future__ import annotations

import json
import re
from typing import Any

from course_lib.grader._statements import LARGEST_SOURCE, Source, add_statements, parsed

__all__ = ["LARGEST_FILE", "read_notebook", "read_python"]

LARGEST_FILE = 20 * 2**20  # bytes; a notebook with its pictures
KEPT_CELL_MAGICS = ("time", "timeit", "capture", "prun")


def read_python(name: str, raw: bytes) -> Source:
    """A Python file.

    Raises:
        ValueError: it is not text, or too long.
    """
    source = Source(name)
    add_statements(source, name, _decoded(raw))
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
            add_statements(source, f"{name}, cell {number}", _without_magics(text))
    defined = {n for piece in source.pieces if not piece.imported for n in piece.binds}
    for number, kind, text in texts:
        if kind in {"raw", "markdown"} and re.search(r"^(def|class) \w", _unfenced(text), re.MULTILINE):
            other = Source(name)
            add_statements(other, f"{name}, cell {number}", _unfenced(text))
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
    if parsed(text) is not None:
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
