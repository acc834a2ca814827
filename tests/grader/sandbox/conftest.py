"""Fork servers with chosen walls. They serve all tests of this folder, because each takes a second to start."""

import os

import pytest
from sandboxes import HASTY, SMALL

from course_grade.sandbox.session import ForkServer

if not hasattr(os, "fork"):  # grading needs it
    collect_ignore_glob = ["test_*"]


def with_walls(*walls: str):
    """A fixture: a fork server with these walls only; skips where the machine has not all of them."""

    @pytest.fixture(scope="package")
    def server():
        with ForkServer(SMALL, walls) as server:
            if set(server.walls.up) != set(walls):
                pytest.skip(str(server.walls))
            yield server

    return server


full = with_walls("limits", "namespaces", "landlock", "seccomp")
bare = with_walls()
limits_only = with_walls("limits")
namespaces_only = with_walls("namespaces")
landlock_only = with_walls("landlock")
seccomp_only = with_walls("seccomp")


@pytest.fixture(params=["full", "bare"])
def server(request):
    return request.getfixturevalue(request.param)


@pytest.fixture
def hasty(server, monkeypatch):
    """The same, with little time for each answer."""
    monkeypatch.setattr(server, "limits", HASTY)
    return server


@pytest.fixture
def neighbour(tmp_path):
    path = tmp_path / "neighbour.py"
    path.write_text("secret")
    path.chmod(0o666)
    return path
