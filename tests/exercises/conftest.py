"""No run-time check of shapes here: solutions are wrong on purpose, and fail as they do for a learner."""

import pytest

from course_lib.exercises import Exercise


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """One worker runs all tests of an exercise (`--dist loadgroup`): it draws the cases and runs the mistakes once."""
    for item in items:
        for value in item.callspec.params.values() if hasattr(item, "callspec") else ():
            name = value.name if isinstance(value, Exercise) else getattr(value, "exercise", None)
            if isinstance(name, str):
                item.add_marker(pytest.mark.xdist_group(name))


@pytest.fixture(autouse=True)
def _as_for_learners(unchecked, tmp_path, monkeypatch):
    monkeypatch.setenv("COURSE_LIB_PROGRESS", str(tmp_path / "progress.json"))
