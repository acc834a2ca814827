"""No run-time check of shapes here: solutions are wrong on purpose, and fail as they do for a learner."""

import pytest


@pytest.fixture(scope="session", autouse=True)
def _a_key_of_their_own(tmp_path_factory):
    """The key to stored results lies where the tests put it, not in the home folder of the person who runs them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        yield


@pytest.fixture(autouse=True)
def _as_for_learners(unchecked, tmp_path, monkeypatch):
    monkeypatch.setenv("COURSE_LIB_PROGRESS", str(tmp_path / "progress.json"))
