"""What students hand in: Python files and notebooks, read without running them.

Of a file, only what an exercise needs is run: the last definition of its name, and what that definition uses, in an
order in which it works. Training loops, plots, magics and checks between the cells are left alone, and cells that were
copied, deleted or moved do no harm.
"""

from __future__ import annotations

import hashlib
import os
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from course_lib.grader._finding import find_files, ignored_files, readable
from course_lib.grader._reading import LARGEST_FILE, read_notebook, read_python
from course_lib.grader._slicing import needed
from course_lib.grader._statements import Piece, Source

__all__ = ["Piece", "Source", "Submission", "ignored_files", "needed"]
__all__ += ["read_notebook", "read_python", "read_submission", "read_submissions"]


@dataclass
class Submission:
    """Everything that one student handed in.

    Args:
        student: name of the file or folder.
        sources: its files.
        problems: what could not be read at all, a sentence each.
        digest: of all bytes; a changed submission is graded again.
        modified: of the newest file, seconds since 1970.
    """

    student: str
    sources: list[Source] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    digest: str = ""
    modified: float = 0.0

    def defined(self) -> set[str]:
        """Names that the submission defines, or seems to."""
        names = {
            name for source in self.sources for piece in source.pieces if not piece.imported for name in piece.binds
        }
        return names | {name for source in self.sources for *_, seems in source.broken for name in seems}

    def find(self, name: str, stem: str) -> Source | None:
        """The file whose definition of a name counts: the chapter's, else the last one by name."""
        having = [source for source in self.sources if source.definition(name) is not None]
        chapters = [source for source in having if Path(source.name).stem == stem]
        return (chapters or having)[-1] if having else None

    def broken(self, name: str) -> str:
        """Why a name has no definition although there seems to be one, or ""."""
        for source in reversed(self.sources):
            for where, why, names in reversed(source.broken):
                if name in names:
                    return f"{where} could not be read: {why}"
        return ""

    def request(self, names: dict[str, str]) -> dict[str, Any]:
        """The code that these exercises need, for the process that runs it.

        Args:
            names: exercise to stem.
        """
        pieces: list[Piece] = []
        users: dict[int, list[str]] = {}  # which exercises need a piece
        for name, stem in names.items():
            source = self.find(name, stem)
            if source is not None:
                try:
                    new = needed(source, name)
                except ValueError as error:
                    self.problems.append(f"{name}: {error}")
                    continue
                for piece in new:
                    users.setdefault(id(piece), []).append(name)
                known = {id(piece) for piece in pieces}
                pieces += [piece for piece in new if id(piece) not in known]
        used = {piece.file for piece in pieces}
        files = {place: text for source in self.sources for place, text in source.cells.items() if place in used}
        siblings = {
            Path(source.name).stem: source.cells[source.name] for source in self.sources if source.name.endswith(".py")
        }
        return {
            "files": files,
            "siblings": siblings,
            "pieces": [
                {
                    "file": p.file,
                    "line": p.line,
                    "code": p.code,
                    "names": sorted(p.binds | p.changes),
                    "exercises": users[id(p)],
                }
                for p in pieces
            ],
        }


def read_submissions(
    paths: Iterable[Path], *, as_one: bool = False, results: Path | None = None
) -> Iterator[Submission]:
    """Every submission below the paths, in order of the students' names; the arguments are those of `find_files`."""
    for student, files in find_files(paths, as_one=as_one, results=results):
        yield read_submission(student, files)


def read_submission(student: str, files: list[Path]) -> Submission:
    """One student's files; what cannot be read is among the problems."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about the student's code; that is not the grader's to say
        return _read_submission(student, files)


def _read_submission(student: str, files: list[Path]) -> Submission:
    submission = Submission(student)
    digest = hashlib.sha256()
    counts = Counter(path.name for path in files)
    for path in files:
        # Two files of one name are told apart by the folder that they lie in.
        shown = path.name if counts[path.name] == 1 else f"{path.parent.name}/{path.name}"
        try:
            size = path.stat().st_size
            if size > LARGEST_FILE:
                text = (
                    f"{readable(path.name)} has {size / 2**20:.0f} MB; more than {LARGEST_FILE // 2**20} are not read"
                )
                submission.problems.append(text)
                digest.update(text.encode())
                continue
            with path.open("rb") as file:
                raw = file.read(LARGEST_FILE + 1)
            submission.modified = max(submission.modified, path.stat().st_mtime)
        except OSError as error:
            submission.problems.append(f"{readable(path.name)} cannot be read: {error.strerror}")
            continue
        digest.update(os.fsencode(path.name) + f" {len(raw)} ".encode() + raw)
        try:
            read = read_notebook if path.suffix.lower() == ".ipynb" else read_python
            source = read(readable(shown), raw)
            submission.sources.append(source)
        except ValueError as error:
            submission.problems.append(f"{readable(path.name)}: {error}")
        except Exception as error:  # whatever a file may hold, the others are read
            submission.problems.append(f"{readable(path.name)} cannot be read: {type(error).__name__}")
    if not files:
        submission.problems.append("no .py or .ipynb file was handed in")
    submission.digest = digest.hexdigest()
    return submission
