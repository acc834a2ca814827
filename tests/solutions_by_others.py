"""Solutions by other people, kept as Markdown: right ones, and wrong ones that the authors of the named mistakes had
not seen.

`exercises/solutions/<exercise>.md` has one section per solution:

    ## held_out: divides by the number of keys
    judge: The mean is taken over the keys. → mean_of_keys any/factor
    ```python
    def …
    ```

The heading gives the set (`right`, `held_out`, `held_out_2`) and the author's description. For a wrong solution, the
line `judge:`, by a third person, says what the mistake is and lists the names that are right for it.
"""

from __future__ import annotations

import inspect
import linecache
import re
import sys
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import ModuleType

from course_kit.exercises import Exercise, all_exercises

FOLDER = Path(__file__).parent / "exercises/solutions"
_SECTION = re.compile(r"^## (\w+): (.*)\n(?:judge: (.*) →(.*)\n)?```python\n((?:.*\n)*?)```$", re.MULTILINE)


@dataclass(frozen=True)
class Cell:
    """A solution.

    Args:
        kind: the set that it belongs to.
        stem: chapter.
        exercise: which it answers.
        number: in the set, counted from 1 for each exercise.
        message: what its author says of it.
        code: source.
        names: of its mistake, those that are right for it.
    """

    kind: str
    stem: str
    exercise: str
    number: int
    message: str
    code: str
    names: tuple[str, ...] = ()

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
    """All cells of a set, in the order of the exercises."""
    return [cell for exercise in all_exercises().values() for cell in _cells_of(exercise) if cell.kind == kind]


@cache
def _cells_of(exercise: Exercise) -> tuple[Cell, ...]:
    file = FOLDER / f"{Path(inspect.getfile(exercise.properties[0].cases)).stem}.md"
    text = file.read_text(encoding="utf-8") if file.exists() else ""
    return tuple(cells_in(text, exercise.stem, exercise.name))


def cells_in(text: str, stem: str, exercise: str) -> Iterator[Cell]:
    """The cells of a file's text.

    Raises:
        ValueError: a section is not as expected.
    """
    found = list(_SECTION.finditer(text))
    heads = re.findall(r"^## \w+: .*\n(?:judge: .*\n)?```python$", text, re.MULTILINE)
    if len(found) != len(heads) or len(found) != text.count("\n```python\n"):
        expected = "'## set: words', 'judge: words → names', '```python' and code"
        raise ValueError(f"solutions of {exercise}: expected {expected}")
    numbers: dict[str, int] = {}
    for kind, message, judged, names, code in (section.groups() for section in found):
        if (kind == "right") != (judged is None):
            raise ValueError(f"solutions of {exercise}: expected 'judge: words → names' below a wrong solution only")
        numbers[kind] = numbers.get(kind, 0) + 1
        yield Cell(kind, stem, exercise, numbers[kind], message, code, tuple((names or "").split()))
