"""Files that are there as a whole or not at all."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

__all__ = ["write_whole"]


def write_whole(path: Path, content: str | bytes) -> None:
    """Write a file so that a reader finds all of it or what was there before, even if the disk is full half-way.

    Args:
        path: of the file; its folder exists.
        content: text is written as UTF-8 with newlines as they are.

    Raises:
        OSError: it could not be written; what stood there before still stands.
    """
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".partial")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content.encode() if isinstance(content, str) else content)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, 0o666 & ~_umask())
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def _umask() -> int:
    # There is no way to read it but to set it.
    mask = os.umask(0)
    os.umask(mask)
    return mask
