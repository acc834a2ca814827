"""The files of one student, however deep they lie: listed and opened folder by folder, since paths may be too long."""

from __future__ import annotations

import contextlib
import os
import re
import stat
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice

from course_kit.checker.sanitize import readable

__all__ = ["CodeFile", "Listing", "contents", "is_code", "is_hidden_folder", "is_leftover", "listing", "opened"]

MOST_FILES = 300  # of one student
MOST_ENTRIES = 20_000  # files and folders of one student that are looked at
DEEPEST_FOLDER = 40  # folders inside each other
LARGEST_FILE = 20 * 2**20  # bytes; a notebook with its pictures
APPLE_DOUBLE = b"\x00\x05\x16\x07"  # what macOS writes beside a file, on disks that are not its own
# What somebody meant to hand in and what is not read: renamed code, archives of code.
_MEANT = re.compile(r"\.(py|ipynb)\W|\.(py|ipynb)$|\.(zip|tar|tgz|gz|bz2|xz|rar|7z)$", re.IGNORECASE)
# Neither follow links, nor wait for input from a pipe.
_OPEN = os.O_RDONLY | sum(getattr(os, flag, 0) for flag in ("O_NONBLOCK", "O_CLOEXEC", "O_NOFOLLOW"))


@dataclass(order=True)
class CodeFile:
    """A file that is read.

    Args:
        entry: number of the entry that it lies below.
        parts: names of the folders below that entry, and of the file; () if the entry is the file.
        shown: its name for people.
    """

    entry: int
    parts: tuple[str, ...]
    shown: str


@dataclass
class Listing:
    """What lies below the entries of one student.

    Args:
        files: the code.
        problems: what could not be looked at, a sentence each.
        others: names of what is not code.
    """

    files: list[CodeFile] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    others: list[str] = field(default_factory=list)


def is_code(name: str) -> bool:
    """Whether a file is read, by its name: no beginning of a name is special."""
    return name.lower().endswith((".py", ".ipynb"))


def is_hidden_folder(name: str) -> bool:
    """Whether a folder is one that tools leave behind."""
    return name.startswith(".") or name in {"__pycache__", "__MACOSX"}


def is_leftover(name: str, folder: int | str) -> bool:
    """Whether a file is what macOS leaves beside one, by its first bytes; the name alone does not tell."""
    if not name.startswith("._"):
        return False
    try:
        return contents(name, folder, len(APPLE_DOUBLE))[0].startswith(APPLE_DOUBLE)
    except (OSError, ValueError):
        return False


def contents(name: str, folder: int | str, most: int) -> tuple[bytes, os.stat_result]:
    """The first bytes of a file, and its state.

    Args:
        name: of the file.
        folder: where it lies: an open folder, or the path of one.
        most: how many bytes are read.

    Raises:
        OSError: it cannot be read.
        ValueError: it is not a regular file.
    """
    path, inside = (name, folder) if isinstance(folder, int) else (os.path.join(folder, name), None)
    handle = os.open(path, _OPEN, dir_fd=inside)
    with open(handle, "rb", buffering=0) as file:
        state = os.fstat(handle)
        if not stat.S_ISREG(state.st_mode):
            raise ValueError("it is not a regular file")
        chunks, left = [], most
        while left > 0 and (chunk := file.read(left)):
            chunks.append(chunk)
            left -= len(chunk)
    return b"".join(chunks), state


def listing(entries: list[str]) -> Listing:
    """What lies below files and folders that are all one student's; links are not followed."""
    found = Listing()
    for number, entry in enumerate(entries):
        _Walk(found, number).entry(entry)
    if len(found.files) > MOST_FILES:
        found.problems.append(
            f"{len(found.files)} files of code were handed in; only {MOST_FILES} are read, those in the fewest folders"
        )
        found.files = sorted(sorted(found.files, key=lambda file: len(file.parts))[:MOST_FILES])
    _tell_apart(entries, found.files)
    _say_others(found)
    return found


def opened(entries: list[str], file: CodeFile, most: int) -> tuple[bytes, os.stat_result]:
    """The first bytes of a file of a listing, and its state; errors are those of `contents`."""
    entry = entries[file.entry]
    if not file.parts:
        return contents(os.path.basename(entry), os.path.dirname(entry), most)
    with contextlib.ExitStack() as handles:
        handle = handles.enter_context(_folder(entry))
        for part in file.parts[:-1]:
            handle = handles.enter_context(_folder(part, handle))
        return contents(file.parts[-1], handle, most)


@contextlib.contextmanager
def _folder(path: str, inside: int | None = None) -> Iterator[int]:
    handle = os.open(path, _OPEN | os.O_DIRECTORY, dir_fd=inside)
    try:
        yield handle
    finally:
        os.close(handle)


class _Walk:
    """Adds what lies below one entry, in order of names."""

    def __init__(self, found: Listing, number: int):
        self.found, self.number = found, number
        self.left = MOST_ENTRIES

    def entry(self, path: str) -> None:
        folder, name = os.path.split(path)
        try:
            mode = os.stat(path, follow_symlinks=False).st_mode
            if stat.S_ISDIR(mode):
                with _folder(path) as handle:
                    self._inside(handle, ())
            else:
                self._file((), name, mode, folder)
        except OSError as error:
            self._problem(name, error)

    def _inside(self, handle: int, parts: tuple[str, ...]) -> None:
        for name in self._names(handle):
            try:
                mode = os.stat(name, dir_fd=handle, follow_symlinks=False).st_mode
                if not stat.S_ISDIR(mode):
                    self._file((*parts, name), name, mode, handle)
                elif is_hidden_folder(name):
                    self.found.others.append(f"{readable(name)} (a hidden folder)")
                elif len(parts) >= DEEPEST_FOLDER:
                    text = f"folders more than {DEEPEST_FOLDER} deep are not read: {readable(name)}"
                    self.found.problems.append(text)
                else:
                    with _folder(name, handle) as inner:
                        self._inside(inner, (*parts, name))
            except OSError as error:
                self._problem(name, error)

    def _names(self, handle: int) -> list[str]:
        if self.left < 0:
            return []
        with os.scandir(handle) as scan:
            names = [entry.name for entry in islice(scan, self.left + 1)]
        self.left -= len(names)
        if self.left < 0:
            self.found.problems.append(f"more than {MOST_ENTRIES} files were handed in; the others are not read")
        return sorted(names)

    def _file(self, parts: tuple[str, ...], name: str, mode: int, folder: int | str) -> None:
        if stat.S_ISLNK(mode):
            self.found.problems.append(f"{readable(name)} is a link; links are not followed")
        elif not stat.S_ISREG(mode):
            self.found.problems.append(f"{readable(name)} is not a regular file, and is not read")
        elif is_leftover(name, folder):
            pass
        elif is_code(name):
            self.found.files.append(CodeFile(self.number, parts, readable(name)))
        else:
            self.found.others.append(readable(name))

    def _problem(self, name: str, error: OSError) -> None:
        self.found.problems.append(f"{readable(name)} cannot be read: {error.strerror}")


def _tell_apart(entries: list[str], files: list[CodeFile]) -> None:
    """Files of one name get the name of their folder before theirs, and a number where that is the same, too."""
    counts = Counter(file.shown for file in files)
    seen: Counter[str] = Counter()
    for file in files:
        if counts[file.shown] > 1:
            path = os.path.join(entries[file.entry], *file.parts)
            file.shown = f"{readable(os.path.basename(os.path.dirname(path)))}/{file.shown}"
        seen[file.shown] += 1
        if seen[file.shown] > 1:
            file.shown = f"{file.shown} ({seen[file.shown]})"


def _say_others(found: Listing) -> None:
    meant = [name for name in found.others if _MEANT.search(name)] if found.files else found.others
    some = ", ".join(meant[:5]) + (f" and {len(meant) - 5} more" if len(meant) > 5 else "")
    if not found.files and (found.others or not found.problems):
        found.problems.insert(0, "no .py or .ipynb file was handed in" + (f"; found: {some}" if some else ""))
    elif found.files and meant:
        found.problems.append(f"not read, since only .py and .ipynb files are: {some}")
