"""No run-time check of shapes here: solutions are wrong on purpose, and fail as they do for a learner."""

from pathlib import Path

import pytest

from course_kit.exercises import Exercise

FOLDER = Path(__file__).parent


def pytest_collection_modifyitems(items):
    """An exercise's tests follow each other: the worker that has them draws cases and runs the mistakes once."""
    here = [number for number, item in enumerate(items) if FOLDER in item.path.parents]
    in_order = sorted((items[number] for number in here), key=_exercise_of)
    for number, item in zip(here, in_order, strict=True):
        items[number] = item


def _exercise_of(item) -> str:
    values = item.callspec.params.values() if hasattr(item, "callspec") else ()
    names = (value.name if isinstance(value, Exercise) else getattr(value, "exercise", None) for value in values)
    return next((name for name in names if isinstance(name, str)), "~")  # what sums up all exercises comes last


@pytest.fixture(autouse=True)
def _as_for_learners(unchecked, tmp_path, monkeypatch):
    monkeypatch.setenv("COURSE_LIB_PROGRESS", str(tmp_path / "progress.json"))
