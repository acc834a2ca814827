"""Which files and folders belong to which student."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from course_grade.submission.folder_listing import is_code, is_hidden_folder, is_leftover
from course_kit.checker.sanitize import readable

__all__ = ["HandedIn", "find_submissions", "ignored_files"]


@dataclass(frozen=True)
class HandedIn:
    """What one student handed in, not read yet.

    Args:
        student: name of the file or folder.
        entries: the files and folders.
    """

    student: str
    entries: tuple[Path, ...]


def find_submissions(paths: Iterable[Path], *, as_one: bool = False) -> list[HandedIn]:
    """Every submission below the paths, in order of the students' names.

    A file is a submission. In a folder, each file is one and each folder is one, with all files below it. Files that
    cannot be graded, such as archives, are submissions too: reading them says why.

    Args:
        paths: files and folders.
        as_one: everything below the paths is one student's.

    Raises:
        FileNotFoundError: a path does not exist, or there is nothing below it that could be graded.
    """
    entries: dict[Path, None] = {}  # a path that is given twice counts once
    for path in paths:
        if not path.exists():
            raise FileNotFoundError(f"expected a file or folder of submissions, got {path}, which does not exist")
        below = [Path(os.path.realpath(path))] if as_one or not path.is_dir() else _within(path)[0]
        if path.is_dir() and not any(map(_gradable, below)):
            raise FileNotFoundError(_nothing(path, below))
        entries.update(dict.fromkeys(below))
    if not any(map(_gradable, entries)):
        raise FileNotFoundError(_nothing(path, entries))
    if as_one:
        return [HandedIn(_stem(next(iter(entries))), tuple(entries))]
    return _named(sorted(entries, key=os.fsencode))


def ignored_files(paths: Iterable[Path]) -> list[str]:
    """Names of what lies beside the submissions and is not one: hidden folders, and what systems leave behind."""
    return [name for path in paths if path.is_dir() for name in _within(path)[1]]


def _within(folder: Path) -> tuple[list[Path], list[str]]:
    """The submissions that lie in a folder, and the names of everything else."""
    real = os.path.realpath(folder)
    with os.scandir(real) as scan:
        found = sorted((os.fsencode(entry.name), entry.name, entry.is_dir(follow_symlinks=False)) for entry in scan)
    stems = {os.path.splitext(name)[0] for _, name, is_folder in found if is_code(name) and not is_folder}
    stems |= {name for _, name, is_folder in found if is_folder}
    entries, others = [], []
    for _, name, is_folder in found:
        if is_folder:
            is_one = not is_hidden_folder(name)
        elif is_code(name):
            is_one = not is_leftover(name, real)
        else:  # a file beside the code of the same student needs no row of its own
            is_one = not name.startswith(".") and os.path.splitext(name)[0] not in stems
        if is_one:
            entries.append(Path(real, name))
        else:
            others.append(readable(name))
    return entries, others


def _gradable(entry: Path) -> bool:
    return is_code(entry.name) or entry.is_dir()


def _nothing(path: Path, below: Iterable[Path]) -> str:
    names = [readable(entry.name) for entry in below]
    some = f"; it has only {', '.join(names[:5])}" + (f" and {len(names) - 5} more" if len(names) > 5 else "")
    return (
        f"expected .py or .ipynb files in {path}, got none; give a file, or a folder with one per student"
        f"{some if names else ''}"
    )


def _named(entries: list[Path]) -> list[HandedIn]:
    """Names of students. Where two would have the same, those keep their suffix, and the folders that tell them
    apart; what still reads the same gets a number."""
    parts = [tuple(map(readable, entry.parts)) for entry in entries]
    shown = [0] * len(entries)  # how many parts of each path, 0 for its name without the suffix
    while True:
        names = ["/".join(parts[at][-many:]) if many else _stem(entries[at]) for at, many in enumerate(shown)]
        paths: dict[str, set[tuple[str, ...]]] = {}
        for at, name in enumerate(names):
            paths.setdefault(name, set()).add(parts[at])
        crowded = [at for at, name in enumerate(names) if len(paths[name]) > 1 and shown[at] < len(parts[at])]
        if not crowded:
            break
        for at in crowded:
            shown[at] += 1
    taken: set[str] = set()
    found = []
    for name, entry in zip(names, entries, strict=True):
        student, number = name, 1
        while student in taken or (number > 1 and student in paths):
            number += 1  # names that differ only in bytes that are not text, or in how a letter is composed
            student = f"{name} ({number})"
        taken.add(student)
        found.append(HandedIn(student, (entry,)))
    return sorted(found, key=lambda handed_in: handed_in.student)


def _stem(entry: Path) -> str:
    """The name of a student: a folder's, or a file's without its suffix."""
    stem = entry.name if entry.is_dir() and not entry.is_symlink() else os.path.splitext(entry.name)[0]
    return readable(stem) if stem.strip() else readable(entry.name)
