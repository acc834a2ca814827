"""A fork server that is lent behaves for each borrower as one of its own."""

import os

import pytest

from course_grade.sandbox.session import ServerGone, Session
from course_grade.sandbox.walls import Limits

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="grading needs fork")


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_giving_a_server_back_ends_what_was_started_and_nothing_of_others(lender):
    ours, theirs = lender.lend(Limits(), ()), lender.lend(Limits(), ())
    with Session(theirs) as other:
        session = Session(ours)
        pid = session.pid
        assert is_alive(pid)
        ours.close()
        assert not is_alive(pid)
        assert is_alive(other.pid)
        for use in (session.close, lambda: Session(ours)):
            with pytest.raises(ServerGone):
                use()
    theirs.close()


def test_limits_are_the_borrowers(lender):
    with lender.lend(Limits(seconds=0.5), ()) as short, lender.lend(Limits(seconds=7.0), ()) as long:
        assert (short.limits.seconds, long.limits.seconds) == (0.5, 7.0)


def test_walls_are_the_borrowers(lender):
    assert lender.lend(Limits(), ()).walls.up == ()
    assert lender.lend(Limits(), ("limits",)).walls.up == ("limits",)
