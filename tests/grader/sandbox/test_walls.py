"""Walls: their names and levels, and probing which of them the machine has."""

import errno
import os
import socket
import subprocess
import tempfile
from pathlib import Path

import pytest
from sandboxes import SMALL, linux

from course_grade.sandbox import walls as sandbox_walls
from course_grade.sandbox.walls import LEVELS, WALLS, Walls, probe

# Their names and level


@pytest.mark.parametrize(
    ("up", "level"),
    [
        ((), "process"),
        (("limits",), "process"),
        (("limits", "seccomp"), "process"),
        (("limits", "landlock"), "process"),
        (("user",), "process"),
        (("limits", "landlock", "seccomp"), "partial"),
        (("limits", "namespaces", "landlock"), "partial"),
        (("namespaces", "landlock", "seccomp"), "process"),
        (("limits", "namespaces", "seccomp"), "full"),
        (("limits", "namespaces", "landlock", "seccomp"), "full"),
        (tuple(WALLS), "full"),
    ],
)
def test_a_level_is_known_by_the_walls_that_stand_and_reached_by_those_above_it(up, level):
    walls, order = Walls(up), list(LEVELS)
    assert walls.level == level
    assert [walls.reach(other) for other in order] == [order.index(other) <= order.index(level) for other in order]
    # As root, only namespaces keep the rights of the machine's root away.
    as_root = Walls(up, {"user": "no"})
    assert as_root.level == (level if "namespaces" in up else "process")


def test_a_level_that_is_none_is_refused():
    with pytest.raises(ValueError, match=r"expected a level of walls .process, partial, full., got 'all'"):
        Walls().reach("all")


def test_the_level_is_said_with_what_stands_and_why_the_others_do_not():
    text = str(Walls(("limits",), {"landlock": "no such call", "seccomp": "switched off"}))
    assert text == "process (limits; not available: landlock: no such call; seccomp: switched off)"
    assert str(Walls()) == "process (a process of its own)"


# Probing


def processes() -> set[str]:
    """Children of this process, those that have ended but were not waited for included."""
    return {pid for task in Path("/proc/self/task").glob("*/children") for pid in task.read_text().split()}


@linux
def test_probing_says_of_every_wall_whether_it_can_stand_and_leaves_nothing_behind(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    others, descriptors = processes(), len(os.listdir("/proc/self/fd"))
    walls = probe()
    expected = set(WALLS) if os.geteuid() == 0 else set(WALLS) - {"user"}
    assert sorted([*walls.up, *walls.missing]) == sorted(expected)
    assert all(walls.missing.values())
    assert list(tmp_path.iterdir()) == []
    assert len(os.listdir("/proc/self/fd")) == descriptors
    assert processes() == others
    (tmp_path / "file").write_text("x")
    socket.socket().close()
    assert subprocess.run(["true"], check=False).returncode == 0


def test_walls_that_are_not_wanted_are_switched_off():
    walls = probe(("limits",))
    assert walls.up == ("limits",)
    assert set(walls.missing.values()) == {"switched off"}


@pytest.mark.parametrize("error", [OSError(errno.ENOSYS, "not in this kernel"), ValueError("what"), SystemExit("why")])
def test_a_wall_that_cannot_be_put_up_is_missing_with_the_reason(error, monkeypatch):
    def fail(**_):
        raise error

    monkeypatch.setattr(sandbox_walls, "seccomp", fail)
    walls = probe(("limits", "seccomp"))
    assert walls.up == ("limits",)
    assert str(error) in walls.missing["seccomp"]


def test_nothing_is_put_up_twice_or_left_out(monkeypatch):
    put_up = []
    for name in ("_limit", "_limit_threads", "landlock", "seccomp"):
        monkeypatch.setattr(sandbox_walls, name, lambda *_, name=name, **__: put_up.append(name))
    monkeypatch.setattr(sandbox_walls, "_become", lambda *_: put_up.append("user"))
    sandbox_walls.confine(Walls(("limits", "user", "landlock", "seccomp")), SMALL, "")
    assert put_up == ["_limit", "user", "_limit_threads", "landlock", "seccomp"]
    put_up.clear()
    sandbox_walls.confine(Walls(("limits", "landlock")), SMALL, "")
    assert put_up == ["_limit", "landlock"]
