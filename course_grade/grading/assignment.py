"""What an instructor asks for: exercises, points, due date, seed, limits; written as YAML."""

from __future__ import annotations

import dataclasses
import secrets
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timezone
from fractions import Fraction
from pathlib import Path
from typing import Any

from course_grade.sandbox.walls import WALLS, Limits
from course_kit._files import read_whole
from course_kit.checker.points import exact
from course_kit.exercises import all_exercises, find

__all__ = ["AssignedExercise", "Assignment", "chosen", "draw_seed", "read_assignment", "tasks_for"]

EXAMPLE = """\
title: Week 3
seed: 4711                      # the random cases; a short one can be guessed: leave it out, and one of 128 bits
                                # is drawn and written down
due: 2026-11-30 23:59 +0100     # later files are marked as late
late_penalty: 10%               # of the points, for each day begun; 0 if left out
exercises:
  softmax: 2                    # points; 0.5 and 1/3 are exact
  attend: 3
  scaled_dot_product_attention:
    points: 5
    allow_twins: true           # count PyTorch's own function as a solution
limits:
  seconds: 5                    # one call
  memory_mb: 1024
"""


@dataclass(frozen=True)
class AssignedExercise:
    """An exercise in an assignment.

    Args:
        name: of the exercise.
        points: for a right solution; an exact fraction.
        allow_twins: whether a solution that calls PyTorch's own function for the whole exercise counts.
    """

    name: str
    points: Fraction = Fraction(1)
    allow_twins: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "points", exact(self.points))


@dataclass(frozen=True)
class Assignment:
    """What is graded, and how.

    Args:
        tasks: exercises in order; empty for all that any submission defines.
        seed: of the random cases.
        title: for reports.
        due: when submissions had to be in, or None.
        late_penalty: share of the points lost for each day begun after that.
        limits: for each submission.
        walls: which walls of the sandbox to put up where the machine has them.
    """

    tasks: tuple[AssignedExercise, ...] = ()
    seed: int = 0
    title: str = ""
    due: datetime | None = None
    late_penalty: Fraction = Fraction()
    limits: Limits = field(default_factory=Limits)
    walls: tuple[str, ...] = tuple(WALLS)

    def __post_init__(self) -> None:
        object.__setattr__(self, "late_penalty", exact(self.late_penalty))

    @property
    def points(self) -> Fraction:
        """All that can be earned."""
        return sum((task.points for task in self.tasks), Fraction())

    def as_dict(self) -> dict[str, Any]:
        """For reports, and to see whether an earlier run graded the same."""
        return {
            "title": self.title,
            "seed": self.seed,
            "due": self.due.isoformat() if self.due else None,
            "late_penalty": _written(self.late_penalty),
            "exercises": [{**dataclasses.asdict(task), "points": _written(task.points)} for task in self.tasks],
            "limits": dataclasses.asdict(self.limits),
            "walls": list(self.walls),
        }


def _written(number: Fraction) -> int | float | str:
    """A number as YAML and JSON can hold it without loss: a number where that is exact, else text such as "1/3"."""
    if number.denominator == 1:
        return int(number)
    return float(number) if exact(float(number)) == number else str(number)


def draw_seed() -> int:
    """A seed of 128 random bits, which cannot be guessed, nor found from the cases that submissions see."""
    return secrets.randbits(128)


def read_assignment(path: Path, seed: Callable[[], int] = draw_seed) -> Assignment:
    """An assignment from a YAML file.

    Args:
        path: of the file.
        seed: gives the seed where the file has none, and is called only then, when all else is in order.

    Raises:
        ValueError: something in the file is not as it should be; the message says where, and what was expected.
    """
    import yaml

    try:
        given = yaml.load(read_whole(path).decode("utf-8"), _loader()) or {}
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ValueError(f"{path} is not YAML: {error}") from None
    except ValueError as error:  # 2026-02-30 looks like a date, and is none
        raise ValueError(f"{path}: an impossible date or number: {error}") from None
    try:
        return assignment_from(given, seed)
    except (ValueError, KeyError) as error:
        raise ValueError(f"{path}: {error.args[0]}") from None


def _loader() -> type:
    """YAML without code, and without a name that is given twice, of which YAML would keep the last one."""
    import yaml

    class Loader(yaml.SafeLoader):
        pass

    def mapping(loader: Loader, node: yaml.MappingNode) -> dict:
        names = [loader.construct_object(key, deep=True) for key, _ in node.value]
        for key, (place, _) in zip(names, node.value, strict=True):
            if isinstance(key, str | int | float | bool) and names.count(key) > 1:
                raise yaml.constructor.ConstructorError(None, None, f"{key!r} is given twice", place.start_mark)
        return loader.construct_mapping(node, deep=True)

    Loader.add_constructor(yaml.resolver.BaseResolver.DEFAULT_MAPPING_TAG, mapping)
    return Loader


def assignment_from(given: Any, seed: Callable[[], int] = draw_seed) -> Assignment:
    """An assignment from what a YAML file holds; see `read_assignment`."""
    known = {"title", "seed", "due", "late_penalty", "exercises", "limits"}
    _only(given, known, "the file")
    limits = given.get("limits") or {}
    _only(limits, {f.name for f in dataclasses.fields(Limits)}, "limits")
    for name, value in limits.items():
        if (
            type(value) not in (int, float)
            or not 0 < value < 10**9
            or (name.endswith("_mb") and type(value) is not int)
        ):
            raise ValueError(f"limits: {name} must be a number above 0, got {value!r}")
    written_seed = given.get("seed")
    if type(written_seed) not in (int, type(None)):
        raise ValueError(f"seed must be an integer, got {written_seed!r}")
    return Assignment(
        tasks=_tasks(given.get("exercises") or {}),
        title=_title(given.get("title")),
        due=_moment(given.get("due")),
        late_penalty=_share(given.get("late_penalty", 0)),
        limits=Limits(**limits),
        seed=seed() if written_seed is None else written_seed,
    )


def _title(given: Any) -> str:
    if isinstance(given, list | dict):
        raise ValueError(f"title must be text, got {given!r}; quotes keep brackets and colons as they are")
    return "" if given is None else str(given)


def _only(given: Any, known: set[str], where: str) -> None:
    if not isinstance(given, dict):
        raise ValueError(f"{where}: expected names and values, got {given!r}; for example:\n{EXAMPLE}")
    if unknown := set(given) - known:
        raise ValueError(
            f"{where}: expected {', '.join(sorted(known))}, got {', '.join(map(repr, sorted(map(str, unknown))))}"
        )


def _tasks(given: Any) -> tuple[AssignedExercise, ...]:
    if isinstance(given, list):
        given = dict.fromkeys(map(str, given), 1)
    if not isinstance(given, dict):
        raise ValueError(f"exercises: expected names with points, got {given!r}")
    tasks = []
    for name, value in given.items():
        if not isinstance(name, str):
            raise ValueError(f"exercises: expected names of exercises, got {name!r}; `course-lib list` shows them")
        options = value if isinstance(value, dict) else {"points": value}
        _only(options, {"points", "allow_twins"}, f"exercises: {name}")
        points, allow = options.get("points", 1), options.get("allow_twins", False)
        try:
            worth = exact(points)
        except ValueError:
            worth = Fraction(-1)
        if not 0 <= worth < 10**9:
            raise ValueError(f"exercises: {name}: points must be a number of at least 0, got {points!r}")
        if type(allow) is not bool:
            raise ValueError(f"exercises: {name}: allow_twins must be true or false, got {allow!r}")
        tasks.append(AssignedExercise(find(name).name, worth, allow))
    return tuple(tasks)


def tasks_for(names: set[str]) -> tuple[AssignedExercise, ...]:
    """A point for each exercise among these names, in reading order."""
    return tuple(AssignedExercise(name) for name in all_exercises() if name in names)


def chosen(assignment: Assignment, names: list[str]) -> Assignment:
    """The assignment with these exercises, and their points where it gives them; all of it if none is named.

    Raises:
        KeyError: an exercise does not exist.
    """
    if not names:
        return assignment
    wanted = {find(name).name for name in names}
    given = {task.name for task in assignment.tasks}
    tasks = [task for task in assignment.tasks if task.name in wanted]
    return dataclasses.replace(assignment, tasks=(*tasks, *tasks_for(wanted - given)))


def _moment(given: Any) -> datetime | None:
    if given is None:
        return None
    if isinstance(given, datetime):
        moment = given
    else:
        text = str(given).strip()
        for form in ("%Y-%m-%d %H:%M %z", "%Y-%m-%dT%H:%M%z", "%Y-%m-%d %H:%M:%S %z", "%Y-%m-%dT%H:%M:%S%z"):
            try:
                moment = datetime.strptime(text, form)
                break
            except ValueError:
                continue
        else:
            try:
                moment = datetime.fromisoformat(text)
            except ValueError:
                raise ValueError(
                    f"due: expected a date and time such as 2026-11-30 23:59 +0100, got {given!r}"
                ) from None
            if len(text) <= 10:
                moment = moment.replace(hour=23, minute=59, second=59)
    # YAML's own dates and times without a zone are UTC.
    return moment if moment.tzinfo else moment.replace(tzinfo=timezone.utc)


def _share(given: Any) -> Fraction:
    try:
        percent = isinstance(given, str) and given.strip().endswith("%")
        share = exact(given.strip()[:-1].strip()) / 100 if percent else exact(given)
    except ValueError:
        share = Fraction(-1)
    if not 0 <= share <= 1:
        raise ValueError(f"late_penalty: expected a share such as 10% or 0.1, got {given!r}")
    return share
