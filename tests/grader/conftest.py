"""No run-time check of shapes here: solutions are wrong on purpose, and fail as they do for a learner."""

import os

import pytest
from lending import Lender

from course_grade.cli import doctor
from course_grade.grading import grade as grading
from course_grade.sandbox.session import ForkServer


@pytest.fixture(scope="session", autouse=True)
def _a_key_of_their_own(tmp_path_factory):
    """The key to stored results lies where the tests put it, not in the home folder of the person who runs them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        yield


@pytest.fixture(autouse=True)
def _as_for_learners(unchecked, tmp_path, monkeypatch):
    monkeypatch.setenv("COURSE_LIB_PROGRESS", str(tmp_path / "progress.json"))


@pytest.fixture(scope="session")
def lender():
    lender = Lender()
    yield lender
    lender.close()


@pytest.fixture(scope="module")
def lent_fork_servers(lender):
    """Tests in this module borrow a fork server for grading; starting one for each test would take seconds."""
    if not hasattr(os, "fork"):
        pytest.skip("grading needs fork")
    with pytest.MonkeyPatch.context() as patch:
        for grades in (grading, doctor):
            patch.setattr(grades, "ForkServer", lender.lend)
        yield


@pytest.fixture
def own_fork_server(lent_fork_servers, monkeypatch):
    """But who grades in this test starts one."""
    for grades in (grading, doctor):
        monkeypatch.setattr(grades, "ForkServer", ForkServer)
