"""Solutions by other people, kept as cells of files: right ones, and wrong ones that the authors of the misconceptions
had not seen."""

from __future__ import annotations

import linecache
import re
import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

FOLDER = Path(__file__).parent / "exercises"


@dataclass(frozen=True)
class Cell:
    """A solution: the exercise, its number there, what its author says of it, its source."""

    kind: str
    stem: str
    exercise: str
    number: int
    says: str
    code: str

    @property
    def key(self) -> str:
        return f"{self.stem}/{self.exercise}/{self.number}"

    def load(self) -> Callable:
        """What the cell defines under the exercise's name."""
        file = f"<{self.kind}/{self.key}>"
        linecache.cache[file] = (len(self.code), None, self.code.splitlines(keepends=True), file)
        module = sys.modules["student"] = ModuleType("student")  # dataclasses look their module up
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            exec(compile(self.code, file, "exec"), module.__dict__)
        return module.__dict__[self.exercise]


def cells(kind: str) -> list[Cell]:
    """All cells of one kind: "right", "unusual", "held_out" or "held_out_2"."""
    return [cell for path in sorted((FOLDER / kind).glob("*.py")) for cell in cells_in(path, kind)]


def cells_in(path: Path, kind: str) -> list[Cell]:
    """The cells of one file, each under a line `# %% exercise: what its author says of it`."""
    found: list[Cell] = []
    numbers: dict[str, int] = {}
    for text in re.split(r"^# %% ", path.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]:
        head, code = text.split("\n", 1)
        name, says = (part.strip() for part in head.split(":", 1))
        numbers[name] = numbers.get(name, 0) + 1
        found.append(Cell(kind, path.stem, name, numbers[name], says, code))
    return found
