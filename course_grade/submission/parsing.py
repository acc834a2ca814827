"""From the bytes of a file or notebook to its statements, without running it."""

from __future__ import annotations

import codecs
import contextlib
import io
import json
import re
import tokenize
from typing import Any

from course_grade.submission.statements import Source, TooMuch, add_statements, parsed
from course_kit.checker.sanitize import clean

__all__ = ["decoded", "read_notebook", "read_python"]

MOST_CELLS = 5000  # of a notebook
MARKS = {  # those of UTF-32 first, since one of them begins like one of UTF-16
    codecs.BOM_UTF32_LE: "utf-32-le",
    codecs.BOM_UTF32_BE: "utf-32-be",
    codecs.BOM_UTF16_LE: "utf-16-le",
    codecs.BOM_UTF16_BE: "utf-16-be",
    codecs.BOM_UTF8: "utf-8",
}
KEPT_CELL_MAGICS = ("time", "timeit", "capture", "prun")


def read_python(name: str, raw: bytes) -> Source:
    """A Python file.

    Raises:
        ValueError: it is not text, or too long.
    """
    text, remark = decoded(raw)
    if text.lstrip()[:1] == "{":  # a dictionary, or a notebook under another name: as Python, it would define nothing
        with contextlib.suppress(ValueError):
            source = read_notebook(name, raw)
            source.remarks.append("it is a notebook and was read as one")
            return source
    source = Source(name, remarks=[remark] if remark else [])
    add_statements(source, name, text)
    return source


def read_notebook(name: str, raw: bytes) -> Source:
    """A notebook. Code cells first; a cell that has become text by mistake counts where nothing else defines its names.

    Raises:
        ValueError: it is not a notebook, or too long.
    """
    text, remark = decoded(raw)
    texts = _cells(text)
    source = Source(name, remarks=[remark] if remark else [])
    for number, kind, text in texts:
        if kind == "code":
            add_statements(source, f"{name}, cell {number}", _without_magics(text))
    defined = {n for piece in source.pieces if not piece.imported for n in piece.binds}
    for number, kind, text in texts:
        if kind in {"raw", "markdown"} and re.search(r"^(def|class) \w", _unfenced(text), re.MULTILINE):
            other = Source(name)
            try:
                add_statements(other, f"{name}, cell {number}", _unfenced(text))
            except TooMuch:  # a picture inside a text, most likely
                continue
            new = [piece for piece in other.pieces if piece.imported or not piece.binds & defined]
            if any(not piece.imported and piece.binds for piece in new):
                source.pieces += new
                source.cells |= other.cells
    return source


def _cells(text: str) -> list[tuple[int, Any, str]]:
    """Number, type and text of each cell."""
    try:
        notebook = json.loads(text)
        cells = notebook["cells"] if "cells" in notebook else notebook["worksheets"][0]["cells"]
        texts = [
            (number, cell.get("cell_type"), _joined(cell.get("source", cell.get("input", ""))))
            for number, cell in enumerate(cells, 1)
        ]
    except (ValueError, KeyError, TypeError, AttributeError, IndexError, RecursionError) as error:
        raise ValueError("it is not a readable notebook (damaged, or saved incompletely?)") from error
    if len(texts) > MOST_CELLS:
        raise TooMuch(f"it has {len(texts)} cells; more than {MOST_CELLS} are not read")
    return [(number, kind if isinstance(kind, str) else "", text) for number, kind, text in texts]


def _joined(text: Any) -> str:
    return "".join(text) if isinstance(text, list) else str(text)


def _unfenced(text: str) -> str:
    fenced = re.findall(r"^```(?:python|py)?[ \t]*\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    return "\n".join(fenced) if fenced else text


def decoded(raw: bytes) -> tuple[str, str]:
    """The text of a file in whatever encoding it has, and a remark where that is a guess ("" if not).

    A byte order mark decides, then the zeros that UTF-16 and UTF-32 have in every text, then the coding line that
    Python knows (PEP 263), then UTF-8.

    Raises:
        ValueError: it is not text in the encoding that it begins with.
    """
    found = ((mark, encoding) for mark, encoding in MARKS.items() if raw.startswith(mark))
    mark, encoding = next(found, (b"", _by_zeros(raw[:4096])))
    if encoding:
        try:
            return raw[len(mark) :].decode(encoding), ""
        except UnicodeDecodeError:
            kind = f"{encoding.upper()} text"
            why = f"it begins as {kind} but is damaged" if mark else f"it looks like {kind} and is damaged"
            raise ValueError(f"{why}; save it as UTF-8") from None
    named = "UTF-8"
    try:
        named = tokenize.detect_encoding(io.BytesIO(raw).readline)[0]
        return raw.decode(named), ""
    except (SyntaxError, LookupError, UnicodeError):  # an unknown encoding, or bytes that do not belong to it
        with contextlib.suppress(UnicodeDecodeError):
            return raw.decode("utf-8"), "its coding line names no encoding that fits; it was read as UTF-8"
    remark = f"it is not {clean(named, 40).upper()} text, and was read as Latin-1; save it as UTF-8"
    return raw.decode("latin-1"), remark


def _by_zeros(start: bytes) -> str:
    """The encoding whose code units would explain the zeros at the beginning of a file, "" if none does."""
    if b"\0" not in start:
        return ""
    for encoding in ("utf-32-le", "utf-32-be", "utf-16-le", "utf-16-be"):
        width = 4 if "32" in encoding else 2
        text = start[: len(start) // width * width].decode(encoding, "replace")
        # Code is ASCII for the most part; read in the wrong way, hardly any of it is.
        if sum(c.isascii() and c != "\0" for c in text) > len(text) // 2:
            return encoding
    return ""


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
