"""Files that are there as a whole or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from pathlib import Path

__all__ = ["write_together", "write_whole"]


def write_whole(path: Path, content: str | bytes) -> None:
    """Write a file so that a reader finds all of it or what was there before, even if the disk is full half-way.

    Args:
        path: of the file; its folder exists.
        content: text is written as UTF-8 with newlines as they are.

    Raises:
        OSError: it could not be written; what stood there before still stands.
    """
    write_together({path: content})


def write_together(contents: Mapping[Path, str | bytes]) -> None:
    """Write files that belong together: none of them is replaced before all are on the disk.

    Args:
        contents: of each file, in the order in which they are put in place; their folders exist.

    Raises:
        OSError: one could not be written; what stood there before still stands.
    """
    temporaries: list[str] = []
    try:
        for path, content in contents.items():
            handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".partial")
            temporaries.append(temporary)
            with os.fdopen(handle, "wb") as file:
                file.write(content.encode() if isinstance(content, str) else content)
                file.flush()
                os.fsync(file.fileno())
            os.chmod(temporary, 0o666 & ~_UMASK)
        for temporary, path in zip(temporaries, contents, strict=True):
            os.replace(temporary, path)
    finally:
        for temporary in temporaries:
            Path(temporary).unlink(missing_ok=True)


# There is no way to read it but to set it; once, before there are threads.
_UMASK = os.umask(0)
os.umask(_UMASK)
