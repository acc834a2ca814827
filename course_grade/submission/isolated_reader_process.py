"""The process that reads submissions, one after another, in children of limited time and memory.

    python -I -S isolated_reader_process.py     started by the grader; it needs nothing but Python

A request is a line of JSON on standard input, the answer a row of them on standard output; what they hold is said in
`isolated_reader`, the other side. A file that is larger than it seems, or that Python's parser cannot bear, ends the
child and nothing else.
"""

from __future__ import annotations

import contextlib
import gc
import hashlib
import json
import math
import os
import resource
import signal
import sys
import time
import warnings
from pathlib import Path
from types import ModuleType

__all__ = ["main"]

if __name__ == "__main__":  # started with -I and -S, it has no path to the packages
    for _name in ("course_grade", "course_grade.submission", "course_kit", "course_kit.checker"):
        sys.modules[_name] = ModuleType(_name)
        sys.modules[_name].__path__ = [str(Path(__file__).parents[2].joinpath(*_name.split(".")))]

from course_grade.submission.folder_listing import LARGEST_FILE, listing, opened
from course_grade.submission.parsing import read_notebook, read_python
from course_grade.submission.slicing import needed
from course_grade.submission.statements import LONGEST_IDENTIFIER, Source
from course_kit.checker.sanitize import readable

LARGEST_SUBMISSION = 64 * 2**20  # bytes of all files of one student
MOST_REQUESTS = 100  # of one child, as long as they are cheap:
CHEAP_SECONDS = 0.1
CHEAP_MEMORY = 2**25  # bytes
CLOSED, USED_UP = 90, 91  # exit statuses of a child: there are no more requests, or it should be replaced


def main() -> None:
    """Answer requests until standard input is closed."""
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # where the grader has ended, so does this process
    warnings.simplefilter("ignore")  # about a student's code; that is not the grader's to say
    gc.disable()  # a child lives for a short time, and would copy what it shares with this process
    while True:
        pid = os.fork()
        if not pid:
            status = 1
            try:
                status = _serve()
            finally:
                os._exit(status)
        _, code = os.waitpid(pid, 0)
        status = os.waitstatus_to_exitcode(code)
        if status == CLOSED:
            return
        if status != USED_UP:
            _say({"ended": status})


def _serve() -> int:
    """Answer requests in a child, which is replaced after anything out of the ordinary; its exit status."""
    requests = os.dup(0)
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    os.dup2(null, 2)
    memory = _most_memory()
    for _ in range(MOST_REQUESTS):
        line = b""
        while not line.endswith(b"\n"):
            chunk = os.read(requests, 2**16)
            if not chunk:
                return CLOSED
            line += chunk
        request = json.loads(line)
        began = time.process_time()
        _limit(math.floor(began) + request["seconds"], request["memory"])
        _read(request)
        _say({"ended": 0})
        if time.process_time() - began > CHEAP_SECONDS or _most_memory() - memory > CHEAP_MEMORY:
            break
    return USED_UP


def _limit(seconds: int, memory: int) -> None:
    hardest = resource.getrlimit(resource.RLIMIT_CPU)[1]
    limits = {
        resource.RLIMIT_CPU: (seconds, hardest),
        resource.RLIMIT_AS: (memory, memory),
        resource.RLIMIT_CORE: (0, 0),
        resource.RLIMIT_FSIZE: (0, 0),
    }
    for limit, values in limits.items():
        with contextlib.suppress(OSError, ValueError):  # not every system has every limit
            resource.setrlimit(limit, values)


def _most_memory() -> int:
    """The most memory that this process has had so far, in bytes."""
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else most * 1024


def _say(message: dict) -> None:
    sys.stdout.buffer.write(json.dumps(message).encode() + b"\n")
    sys.stdout.buffer.flush()


def _read(request: dict) -> None:
    """Answer a request: the files, but for those that were answered before, with what is wrong with each."""
    entries = request["entries"]
    found = listing(entries)
    for problem in found.problems[:50]:
        _say({"problem": problem})
    left = LARGEST_SUBMISSION
    empty = bool(found.files) and not request["skip"]
    for number, file in enumerate(found.files[request["skip"] :], request["skip"]):
        _say({"file": number, "shown": file.shown})
        try:
            raw, state = opened(entries, file, LARGEST_FILE + 1)
            left -= len(raw)
            name = "/".join(file.parts) or os.path.basename(entries[file.entry])
            digest = hashlib.sha256(os.fsencode(name) + f" {state.st_size} ".encode() + raw).hexdigest()
            _say({"digest": digest, "modified": state.st_mtime})
            if state.st_size > LARGEST_FILE:
                size = f"{state.st_size / 2**20:.0f} MB; more than {LARGEST_FILE // 2**20} are not read"
                raise ValueError(f"it has {size}")
            if left < 0:
                raise ValueError(f"the files have more than {LARGEST_SUBMISSION // 2**20} MB; this one is not read")
            read = read_notebook if file.shown.lower().endswith(".ipynb") else read_python
            source = read(file.shown, raw)
            folders = [str(file.entry)] if len(entries) > 1 else []  # two may hold files of one name
            source.path = "/".join([*folders, *map(readable, file.parts)]) if file.parts else file.shown
            answer = _answer(source, request["names"])
            empty = empty and not source.pieces and not source.broken
            for place, why, _ in source.broken:
                if place == file.shown:  # all of it, and not a cell that may be a mere try
                    _say({"problem": f"{place} could not be read: {why}"})
            for remark in source.remarks:
                _say({"problem": f"{file.shown}: {remark}"})
            _say(answer)
        except OSError as error:
            _say({"problem": f"{file.shown} cannot be read: {error.strerror}"})
        except MemoryError:
            raw = source = answer = None
            _say({"problem": f"{file.shown}: reading it needs more than {request['memory'] // 2**20} MB of memory"})
        except ValueError as error:
            _say({"problem": f"{file.shown}: {error}"})
        except Exception as error:  # whatever a file may hold, the others are read
            _say({"problem": f"{file.shown} cannot be read: {type(error).__name__}"})
        else:
            continue
        empty = False  # it has a problem of its own
    if empty:
        _say({"problem": "the submission contains no code"})


def _answer(source: Source, names: list[str]) -> dict:
    """What the grader needs of a source: the code of the definitions that it asks for, and what could not be read."""
    slices = {}
    for name in names:
        try:
            if pieces := needed(source, name):
                slices[name] = pieces
        except ValueError as error:
            source.broken.append((f"{name} in {source.name}", str(error), frozenset([name])))
    pieces = {id(piece): piece for found in slices.values() for piece in found}
    numbers = {key: number for number, key in enumerate(pieces)}
    places = {piece.file for piece in pieces.values()} | {source.name}  # a file may be imported by another one
    modules = {name: module for piece in source.pieces for name, module in piece.modules}
    starred = next((module for piece in source.pieces for name, module in piece.modules if name == "*"), "")
    return {
        "source": source.name,
        "path": source.path,
        "pieces": [
            [p.file, p.line, p.code, sorted(n for n in p.binds | p.changes if len(n) <= LONGEST_IDENTIFIER)]
            for p in pieces.values()
        ],
        "slices": {name: [numbers[id(piece)] for piece in found] for name, found in slices.items()},
        "cells": {place: text for place, text in source.cells.items() if place in places},
        "broken": [[place, why, sorted(seems)[:200]] for place, why, seems in source.broken[:200]],
        "imports": {name: modules.get(name, starred) for name in names if modules.get(name, starred)},
    }


if __name__ == "__main__":
    main()
