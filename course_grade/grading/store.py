"""Results of an earlier run, kept on disk as soon as they are there, and used again only where they are genuine."""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import hmac
import json
import os
import secrets
import stat
from pathlib import Path

from course_grade.grading.assignment import Assignment
from course_grade.grading.results import Result, TaskResult
from course_grade.submission.submissions import Submission
from course_kit._files import write_whole
from course_lib._version import __version__

__all__ = ["Store", "key_file"]

KEY_BYTES = 32
LARGEST = 50 * 2**20  # bytes of a stored result
_HEAD, _MIDDLE, _TAIL = b'{"mac": "', b'", "content": ', b"}\n"


class Store:
    """Results on disk, one file per submission, so that a grader that was killed resumes where it stopped.

    A result is used again only where this user's grader wrote it on this machine for this very student, submission,
    assignment and version: each file has a message authentication code (HMAC-SHA256) whose key lies elsewhere, in
    `key_file()`. Where the key cannot be read or made, results are kept, and graded again by the next run.

    Args:
        folder: where; made if it is not there.
        assignment: results of another one are not used.

    Attributes:
        distrusted: students with a stored result that is not genuine.
        trouble: why no result can be used again, or "".
    """

    def __init__(self, folder: Path, assignment: Assignment):
        self.folder = folder
        # Settings that do not affect a verdict may change: lateness is judged again in every run.
        asked = {k: v for k, v in assignment.as_dict().items() if k not in {"title", "due", "late_penalty"}}
        self.key = json.dumps({"version": __version__, **asked}, sort_keys=True)
        folder.mkdir(parents=True, exist_ok=True)
        self.distrusted: list[str] = []
        self.trouble = ""
        try:
            path = key_file()
            if Path(os.path.realpath(path)).is_relative_to(os.path.realpath(folder.parent)):
                raise OSError(f"{path} is in the folder of the results")
            self._secret = _key(path)
        except (OSError, RuntimeError) as error:  # RuntimeError: there is no home folder
            self.trouble = f"the key to stored results cannot be used ({error}), so this run grades everything again"
            self._secret = secrets.token_bytes(KEY_BYTES)

    def path(self, submission: Submission) -> Path:
        """The file of a submission; what is not safe in a name is replaced, and a hash keeps names apart."""
        safe = "".join(c if c.isalnum() or c in "-_ " else "_" for c in submission.student)
        safe = safe.encode()[:60].decode("utf-8", "ignore")  # file systems limit the bytes of a name
        return self.folder / f"{safe}-{_short_hash(submission.student)}.json"

    def load(self, submission: Submission) -> Result | None:
        """The genuine result of an earlier run on the same files, or None."""
        path = self.path(submission)
        try:
            if not path.is_file() or path.stat().st_size > LARGEST:
                return None
            raw = path.read_bytes()
        except OSError:
            return None
        payload = self._genuine(raw)
        stored = json.loads(payload) if payload is not None else None
        if stored is None or stored["student"] != submission.student:
            self.distrusted.append(submission.student)
            return None
        if stored["key"] != self.key or stored["digest"] != submission.digest:
            return None
        content = stored["result"]
        return Result(**{**content, "tasks": [TaskResult(**task) for task in content["tasks"]]})

    def _genuine(self, raw: bytes) -> bytes | None:
        """What was stored, if it was stored with this key; it is not parsed before that is known."""
        code, payload = raw[len(_HEAD) : len(_HEAD) + 64], raw[len(_HEAD) + 64 + len(_MIDDLE) : -len(_TAIL)]
        return payload if hmac.compare_digest(raw, self._sealed(payload)) and len(code) == 64 else None

    def _sealed(self, payload: bytes) -> bytes:
        code = hmac.new(self._secret, b"a graded submission\0" + payload, hashlib.sha256).hexdigest()
        return _HEAD + code.encode() + _MIDDLE + payload + _TAIL

    def save(self, submission: Submission, result: Result) -> None:
        """Write a result, all of it or nothing."""
        content = {"student": submission.student, "digest": submission.digest, "key": self.key}
        content["result"] = dataclasses.asdict(result)
        payload = json.dumps(content, default=str).encode()  # points are fractions, as text
        write_whole(self.path(submission), self._sealed(payload))


def key_file() -> Path:
    """Where the key lies that tells this user's own results from others: in the folder for a program's state.

    Raises:
        RuntimeError: the user has no home folder.
    """
    state = os.environ.get("XDG_STATE_HOME", "")
    folder = Path(state) if os.path.isabs(state) else Path.home() / ".local" / "state"
    return folder / "course-lib" / "results.key"


def _key(path: Path) -> bytes:
    """The key, made where there is none. Of two graders that start at once, both use the key of the first.

    Raises:
        OSError: it cannot be read or written, or others may have read or written it.
    """
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    if not os.path.lexists(path):
        partial = path.with_name(f"{path.name}.{secrets.token_hex(8)}")
        handle = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(secrets.token_bytes(KEY_BYTES))
                file.flush()
                os.fsync(file.fileno())
            with contextlib.suppress(FileExistsError):
                os.link(partial, path)  # unlike a rename, it never replaces a key that is in use
        finally:
            os.unlink(partial)
    handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    with os.fdopen(handle, "rb") as file:
        about = os.fstat(file.fileno())
        if not stat.S_ISREG(about.st_mode) or about.st_uid != os.geteuid() or about.st_mode & 0o077:
            raise PermissionError(f"{path} must be a file of this user that others cannot read (mode 600)")
        key = file.read(KEY_BYTES + 1)
    if len(key) != KEY_BYTES:
        raise OSError(f"{path} must have {KEY_BYTES} bytes; remove it, and a new one is made")
    return key


def _short_hash(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]
