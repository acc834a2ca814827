"""What students hand in: Python files and notebooks, read without running them.

Of a file, only what an exercise needs is run: the last definition of its name, and what that definition uses, in an
order in which it works. Training loops, plots, magics and checks between the cells are left alone, and cells that were
copied, deleted or moved do no harm.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from course_grade.submission.finding import HandedIn, find_submissions, ignored_files
from course_grade.submission.isolated_reader import Reader
from course_grade.submission.parsing import read_notebook, read_python
from course_grade.submission.slicing import needed
from course_grade.submission.statements import Piece, Source
from course_kit.exercises import all_exercises

__all__ = ["HandedIn", "Piece", "Source", "Submission", "find_submissions", "ignored_files", "needed"]
__all__ += ["read_each", "read_notebook", "read_python", "read_submission", "read_submissions"]


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
        """Names that the submission defines, or seems to, among those that were looked for."""
        names = {name for source in self.sources for name in source.slices or ()}
        return names | {name for source in self.sources for *_, seems in source.broken for name in seems}

    def find(self, name: str, stem: str) -> Source | None:
        """The file whose definition of a name counts: the chapter's, else the last one by name."""
        having = [source for source in self.sources if source.defines(name)]
        chapters = [source for source in having if Path(source.name).stem == stem]
        return (chapters or having)[-1] if having else None

    def broken(self, name: str) -> str:
        """Why a name has no definition although there seems to be one, or ""."""
        for source in reversed(self.sources):
            for where, why, names in reversed(source.broken):
                if name in names:
                    return f"{where} could not be read: {why}"
        return ""

    def imports(self, name: str) -> str:
        """The module that a name is imported from, or "" if it is not."""
        return next((source.imports[name] for source in reversed(self.sources) if name in source.imports), "")

    def request(self, names: dict[str, str]) -> dict[str, Any]:
        """The code that these exercises need, for the process that runs it: each file becomes a module.

        Args:
            names: exercise to stem.
        """
        pieces: dict[int, dict[str, Any]] = {}
        for name, stem in names.items():
            source = self.find(name, stem)
            for piece in needed(source, name) if source is not None else []:
                new = {"path": source.path, "file": piece.file, "line": piece.line, "code": piece.code}
                new |= {"names": sorted(piece.binds | piece.changes), "exercises": []}
                pieces.setdefault(id(piece), new)["exercises"].append(name)
        used = {piece["file"] for piece in pieces.values()}
        return {
            "files": {place: text for source in self.sources for place, text in source.cells.items() if place in used},
            "siblings": {
                source.path: (source.name, source.cells[source.name])
                for source in self.sources
                if source.name in source.cells
            },
            "pieces": list(pieces.values()),
        }


def read_submissions(
    paths: Iterable[Path], *, as_one: bool = False, names: Iterable[str] | None = None
) -> Iterator[Submission]:
    """Every submission below the paths, in order of the students' names; the arguments are those of
    `find_submissions` and `read_each`."""
    yield from read_each(find_submissions(paths, as_one=as_one), names)


def read_each(handed_in: Iterable[HandedIn], names: Iterable[str] | None = None) -> Iterator[Submission]:
    """Read submissions, one after another, in processes of limited time and memory.

    Args:
        handed_in: what `find_submissions` found.
        names: definitions that are looked for; all exercises if None.
    """
    names = list(all_exercises()) if names is None else list(names)
    with Reader() as reader:
        for one in handed_in:
            read = reader.read(one.entries, names)
            yield Submission(one.student, read.sources, read.problems, read.digest, read.modified)


def read_submission(student: str, files: Iterable[Path], names: Iterable[str] | None = None) -> Submission:
    """One student's files; what cannot be read is among the problems."""
    (submission,) = read_each([HandedIn(student, tuple(files))], names)
    return submission
