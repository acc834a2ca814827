"""Which files belong to which student."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

from course_lib.grader._protocol import clean

__all__ = ["find_files", "ignored_files", "readable"]


def find_files(
    paths: Iterable[Path], *, as_one: bool = False, results: Path | None = None
) -> Iterator[tuple[str, list[Path]]]:
    """Each student below the paths with the files that belong to them, in order of the students' names.

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
        yield student, [file for _, files in entries for file in files]
        return
    found = _by_student(entries)
    for student in sorted(found):
        yield student, found[student]


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


def _is_code(path: Path) -> bool:
    return path.is_file() and path.suffix.lower() in {".py", ".ipynb"} and not path.name.startswith(".")


def _code_files(folder: Path) -> Iterator[Path]:
    for path in folder.rglob("*"):
        hidden = any(
            part.startswith(".") or part in {"__pycache__", "__MACOSX"} for part in path.relative_to(folder).parts
        )
        if not hidden and _is_code(path) and not path.is_symlink():
            yield path
