"""The grader's side of reading: it asks a process of limited size, and checks and bounds the reply."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from course_grade.submission.statements import Piece, Source
from course_kit.checker.sanitize import clean

__all__ = ["Read", "Reader"]

SCRIPT = Path(__file__).with_name("isolated_reader_process.py")
CPU_SECONDS = 10  # of one process; a submission that needs more gets another one for its other files
MEMORY = 2**29  # bytes
WALL_SECONDS = 60.0
PROCESSES = 3  # for the files of one submission
LARGEST_ANSWER = 2**25  # bytes of all answers about one submission
MOST_PROBLEMS = 20
LONGEST_PROBLEM = 400


class Read:
    """What came out of reading the files of one student.

    Attributes:
        sources: what could be read, with the definitions that were asked for.
        problems: what could not be read, a sentence each.
        digest: of all bytes and all problems.
        modified: of the newest file, seconds since 1970.
    """

    def __init__(self) -> None:
        self.sources: list[Source] = []
        self.problems: list[str] = []
        self.digests: list[str] = []
        self.modified = 0.0
        self.skip = 0
        self.shown = "the submission"

    @property
    def digest(self) -> str:
        return hashlib.sha256("\n".join([*self.digests, *self.problems]).encode("utf-8", "replace")).hexdigest()

    def add(self, message: dict[str, Any]) -> None:
        """Take an answer in.

        Raises:
            ValueError, TypeError, KeyError, IndexError, AttributeError: it is not an answer.
        """
        if "file" in message:
            self.skip = int(message["file"]) + 1
            self.shown = clean(message["shown"], LONGEST_PROBLEM)
        elif "digest" in message:
            self.digests.append(clean(message["digest"], 64))
            self.modified = max(self.modified, float(message["modified"]))
        elif "problem" in message:
            self.problem(message["problem"])
        elif "source" in message:
            self.sources.append(_source(message))

    def problem(self, text: str) -> None:
        """Note what could not be read, once."""
        text = clean(text, LONGEST_PROBLEM)
        if text not in self.problems:
            self.problems.append(text)

    def done(self) -> Read:
        """The same, with problems cut to those that a person reads."""
        if len(self.problems) > MOST_PROBLEMS:
            self.problems[MOST_PROBLEMS:] = [f"and {len(self.problems) - MOST_PROBLEMS} more problems"]
        return self


class Reader:
    """A process that reads submissions, one after another, each in a child of limited time and memory."""

    def __init__(self) -> None:
        if not hasattr(os, "fork"):
            raise OSError(
                "grading needs a system with fork (Linux, macOS); on Windows run it in WSL, or grade in a Linux "
                "container"
            )
        self._start()

    def read(self, entries: Iterable[Path], names: Iterable[str]) -> Read:
        """Read what lies below files and folders that are one student's.

        Args:
            entries: the files and folders.
            names: definitions that are looked for.
        """
        read = Read()
        request = {"entries": [str(entry) for entry in entries], "names": list(names)}
        request |= {"seconds": CPU_SECONDS, "memory": MEMORY}
        for _ in range(PROCESSES):
            why = self._ask({**request, "skip": read.skip}, read)
            if not why:
                return read.done()
            read.problem(f"{read.shown} {why}, and is not read")
        read.problem("later files are not read either")
        return read.done()

    def _ask(self, request: dict[str, Any], read: Read) -> str:
        """Put one request and take the answers in; why the child did not come to its end, "" if it did."""
        deadline = time.monotonic() + WALL_SECONDS
        try:
            self._process.stdin.write(json.dumps(request).encode() + b"\n")
            self._process.stdin.flush()
            for line in self._lines(deadline):
                message = json.loads(line)
                if "ended" in message:
                    return _why(int(message["ended"]))
                read.add(message)
            why = "ended the process that reads it"
        except TimeoutError:
            why = f"takes longer than {WALL_SECONDS:g} s to read"
        except OverflowError:
            why = f"has more than {LARGEST_ANSWER // 2**20} MB of code"
        except (OSError, ValueError, TypeError, KeyError, IndexError, AttributeError):
            why = "disturbed the process that reads it"
        self._end()
        self._start()
        return why

    def _lines(self, deadline: float) -> Iterator[bytes]:
        fd = self._process.stdout.fileno()
        waiting = bytearray()
        left = LARGEST_ANSWER
        while True:
            ready, _, _ = select.select([fd], [], [], max(0.0, deadline - time.monotonic()))
            if not ready:
                raise TimeoutError
            chunk = os.read(fd, 2**20)
            if not chunk:
                return
            left -= len(chunk)
            if left < 0:
                raise OverflowError
            waiting += chunk
            if b"\n" in chunk:
                *lines, rest = bytes(waiting).split(b"\n")
                waiting = bytearray(rest)
                yield from lines

    def _start(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", str(SCRIPT)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd="/",
            bufsize=0,
            start_new_session=True,  # Ctrl-C is for the grader; and it is ended with its child
        )

    def _end(self) -> None:
        self._process.stdin.close()
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._process.stdout.close()

    def __enter__(self) -> Reader:
        return self

    def __exit__(self, *error) -> None:
        self._end()


def _why(status: int) -> str:
    if not status:
        return ""
    if status == -signal.SIGXCPU:
        return f"takes more than {CPU_SECONDS} s of computing to read"
    if status < 0:
        return f"ends the process that reads it with signal {-status} ({signal.strsignal(-status)})"
    return f"ends the process that reads it with exit status {status}"


def _source(message: dict[str, Any]) -> Source:
    """A source rebuilt from plain data, all of which is validated."""
    pieces = [
        Piece(_text(file), int(line), _text(code), frozenset(map(_text, names)), frozenset(), frozenset())
        for file, line, code, names in message["pieces"]
    ]
    return Source(
        _text(message["source"]),
        pieces,
        {_text(place): _text(text) for place, text in message["cells"].items()},
        [(_text(place), _text(why), frozenset(map(_text, names))) for place, why, names in message["broken"]],
        slices={_text(name): [pieces[number] for number in numbers] for name, numbers in message["slices"].items()},
        imports={_text(name): _text(module) for name, module in message["imports"].items()},
        path=_text(message["path"]),
    )


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"expected a text, got {type(value).__name__}")
    return value
