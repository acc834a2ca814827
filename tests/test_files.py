"""Files are written as a whole or not at all, and replace nothing but files."""

import errno
import os
import socket
import stat
from pathlib import Path

import pytest

from course_kit._files import check_output, read_whole, why, write_together, write_whole

posix = pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="pipes have names on POSIX systems only")


def bound_socket(path):
    with socket.socket(socket.AF_UNIX) as one:
        one.bind(str(path))


def device(path):
    """A null device of the test's own."""
    try:
        os.mknod(path, stat.S_IFCHR | 0o666, os.makedev(1, 3))
    except PermissionError:
        pytest.skip("making a device takes root")


KINDS = (
    {"a pipe": os.mkfifo, "a folder": os.mkdir, "a socket": bound_socket, "a device": device}
    if os.name == "posix"
    else {}
)


@posix
@pytest.mark.parametrize("kind", KINDS)
def test_what_is_not_a_file_is_refused_and_stays(kind, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # paths of sockets are short
    thing, link = Path("thing"), Path("link")
    KINDS[kind](thing)
    link.symlink_to(thing)
    before = os.lstat(thing)
    for path in (thing, link):
        for act in (check_output, lambda p: write_whole(p, "new")):
            with pytest.raises(FileExistsError, match=f"{path} cannot be written: expected a file .* it is {kind}"):
                act(path)
    after = os.lstat(thing)
    assert (before.st_ino, before.st_mode) == (after.st_ino, after.st_mode)
    assert {p.name for p in tmp_path.iterdir()} == {"thing", "link"}


@posix
def test_none_of_several_files_is_written_where_one_cannot_be(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "first").write_text("before")
    with pytest.raises(OSError, match="a pipe"):
        write_together({tmp_path / "first": "after", tmp_path / "pipe": "after"})
    assert (tmp_path / "first").read_text() == "before"


@posix
def test_a_link_stays_and_the_file_that_it_points_to_is_replaced(tmp_path):
    (tmp_path / "far").mkdir()
    for name in ("there", "new"):
        (tmp_path / name).symlink_to(tmp_path / "far" / name)
    (tmp_path / "far" / "there").write_text("before")
    for name in ("there", "new"):
        check_output(tmp_path / name)
        write_whole(tmp_path / name, "after")
        assert (tmp_path / name).is_symlink()
        assert (tmp_path / "far" / name).read_text() == "after"


@posix
def test_links_that_lead_in_a_circle_are_an_error_that_says_so(tmp_path):
    (tmp_path / "a").symlink_to(tmp_path / "b")
    (tmp_path / "b").symlink_to(tmp_path / "a")
    with pytest.raises(OSError, match="circle"):
        write_whole(tmp_path / "a", "x")


def test_the_folder_is_made_or_missed_before_the_work(tmp_path):
    with pytest.raises(NotADirectoryError, match="make it first"):
        check_output(tmp_path / "new" / "x.csv", make_folder=False)
    check_output(tmp_path / "new" / "deep" / "x.csv")
    assert list((tmp_path / "new" / "deep").iterdir()) == []
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match="file"):
        check_output(tmp_path / "file" / "x.csv")


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_cannot_be_written_to_is_missed_before_the_work(tmp_path):
    tmp_path.chmod(0o500)
    with pytest.raises(PermissionError, match="cannot be written"):
        check_output(tmp_path / "x.csv")


@posix
def test_a_long_name_is_written_for_this_user_only_if_wanted(tmp_path):
    path = tmp_path / ("𝔸" * 60)
    write_whole(path, "x", private=True)
    assert path.read_text() == "x"
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600


def test_a_missing_folder_and_a_missing_file_are_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"none/a\.txt cannot be written: .* in .*none; choose another place"):
        write_whole(tmp_path / "none" / "a.txt", "text")
    with pytest.raises(FileNotFoundError, match=r"none: there is no such file or folder; check the path"):
        read_whole(tmp_path / "none")
    with pytest.raises(IsADirectoryError, match="it is a folder, but a file is expected; name a file in it"):
        read_whole(tmp_path)


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (OSError("one of our own"), "one of our own"),
        (PermissionError(errno.EACCES, "Permission denied", "a"), "a: this user may not read or write it; change its"),
        (OSError(errno.ENOSPC, "No space left on device"), "No space left on device; choose another place, or try"),
    ],
)
def test_an_error_of_the_system_is_a_sentence(error, message):
    assert why(error).startswith(message)
    assert "Errno" not in why(error)
