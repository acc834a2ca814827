"""Files that are there as a whole or not at all, and that replace nothing but files."""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Mapping
from pathlib import Path

__all__ = ["check_output", "make_folder", "read_whole", "why", "write_together", "write_whole"]

_KINDS = {
    stat.S_IFDIR: "a folder",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
}


def check_output(path: Path, *, make_folder: bool = True) -> None:
    """Find out before the work whether a file can be written when it is done.

    Args:
        path: of the file; it may be a link to one.
        make_folder: make the folder that it is to lie in, where there is none.

    Raises:
        OSError: something that is not a regular file has this name, or its folder is missing or cannot be written to.
    """
    target = _target(path)
    if make_folder:
        _make_folder(target.parent)
    if not target.parent.is_dir():
        raise NotADirectoryError(f"{path} cannot be written, since {target.parent} is not a folder; make it first")
    try:
        tempfile.TemporaryFile(dir=target.parent).close()
    except OSError as error:
        raise _unwritable(path, error) from None


def make_folder(path: Path) -> None:
    """Make a folder, where it is not there.

    Raises:
        NotADirectoryError: a file has its name, or lies in its path.
        OSError: it cannot be made.
    """
    try:
        path.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        raise NotADirectoryError(
            f"expected a folder or a new name, got {path}, where a file is in the way; choose another name"
        ) from None
    except OSError as error:
        raise type(error)(why(error)) from None


_make_folder = make_folder  # `check_output` has an argument of this name


def read_whole(path: Path) -> bytes:
    """The content of a file that somebody named.

    Raises:
        OSError: it cannot be read; the message says why and what to do.
    """
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise type(error)(why(error)) from None


_WHY = {
    FileNotFoundError: "there is no such file or folder; check the path",
    IsADirectoryError: "it is a folder, but a file is expected; name a file in it",
    NotADirectoryError: "a part of this path is a file, but a folder is expected; check the path",
    FileExistsError: "it is there already; choose another name",
    PermissionError: "this user may not read or write it; change its permissions, or choose another place",
}


def why(error: OSError) -> str:
    """An error of the operating system as a sentence that says what to do."""
    if error.errno is None:  # one of our own, which says it already
        return str(error)
    place = f"{error.filename}: " if error.filename is not None else ""
    return place + _WHY.get(type(error), f"{error.strerror}; choose another place, or try again")


def write_whole(path: Path, content: str | bytes, *, private: bool = False) -> None:
    """Write a file so that a reader finds all of it or what was there before, even if the disk is full half-way.

    Args:
        path: of the file; its folder exists. Where it is a link, the file that it points to is replaced.
        content: text is written as UTF-8 with newlines as they are.
        private: whether only this user may read it.

    Raises:
        OSError: it could not be written, or something that is not a regular file has this name; what was there before
            is still there.
    """
    write_together({path: content}, private=private)


def write_together(contents: Mapping[Path, str | bytes], *, private: bool = False) -> None:
    """Write files that belong together: none of them is replaced before all are on the disk.

    Args:
        contents: of each file, in the order in which they are put in place; their folders exist.
        private: whether only this user may read them.

    Raises:
        OSError: one could not be written, or something that is not a regular file has its name; what was there before
            is still there.
    """
    temporaries: list[str] = []
    targets = [_target(path) for path in contents]
    try:
        for target, content in zip(targets, contents.values(), strict=True):
            prefix = os.fsdecode(b"." + os.fsencode(target.name)[:100])  # file systems limit the bytes of a name
            try:
                handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=f"{prefix}.", suffix=".partial")
            except OSError as error:
                raise _unwritable(target, error) from None
            temporaries.append(temporary)
            with os.fdopen(handle, "wb") as file:
                file.write(content.encode() if isinstance(content, str) else content)
                file.flush()
                os.fsync(file.fileno())
            os.chmod(temporary, 0o600 if private else 0o666 & ~_UMASK)
        for temporary, target in zip(temporaries, targets, strict=True):
            _target(target)  # once more: it may have been made meanwhile
            os.replace(temporary, target)
    finally:
        for temporary in temporaries:
            Path(temporary).unlink(missing_ok=True)


def _unwritable(path: Path, error: OSError) -> OSError:
    return type(error)(f"{path} cannot be written: {error.strerror} in {path.parent}; choose another place")


def _target(path: Path) -> Path:
    """Where a path leads when links are followed: to a regular file, or to nothing.

    Raises:
        OSError: it leads to something else, such as a device, which a file of the same name would replace.
    """
    target = Path(os.path.realpath(path))
    try:
        mode = os.lstat(target).st_mode
    except (FileNotFoundError, NotADirectoryError):
        return target
    if stat.S_ISLNK(mode):  # what realpath leaves of links that lead to each other
        raise OSError(f"{path} cannot be written: its links lead in a circle")
    if not stat.S_ISREG(mode):
        kind = _KINDS.get(stat.S_IFMT(mode), "not a regular file")
        raise FileExistsError(f"{path} cannot be written: expected a file or a new name, but it is {kind}")
    return target


# The value can be read only by setting it; do so once, before there are threads.
_UMASK = os.umask(0)
os.umask(_UMASK)
