"""One fork server for many tests: it takes seconds to start, and never runs the code of a submission itself.

Within a class, too, all submissions are forked from one. Tests in which a server is started, stopped, killed or looked
into have one of their own.
"""

from __future__ import annotations

import contextlib
import subprocess

from course_grade.sandbox.session import ForkServer, ServerGone
from course_grade.sandbox.walls import WALLS, Limits


class Lender:
    """Lends fork servers, one behind each choice of walls, and keeps them until it is closed."""

    def __init__(self) -> None:
        self._servers: dict[tuple[str, ...], ForkServer] = {}

    def lend(self, limits: Limits, walls: tuple[str, ...] = tuple(WALLS)) -> Lent:
        """In place of `ForkServer(limits, walls)`."""
        server = self._servers.get(walls)
        if server is None or server.gone:
            server = self._servers[walls] = ForkServer(Limits(), walls)
        return Lent(server, limits)

    def close(self) -> None:
        """End all of them; the next borrower gets a new one."""
        while self._servers:
            self._servers.popitem()[1].close()


class Lent(ForkServer):
    """A fork server that others use as well: when it is closed, only the processes that were started here end.

    Args:
        server: that starts the processes.
        limits: for the submissions of this borrower.
    """

    def __init__(self, server: ForkServer, limits: Limits):
        self.limits, self.walls, self.folder, self.gone = limits, server.walls, server.folder, False
        self._server = server
        self._running: set[int] = set()

    @property
    def _process(self) -> subprocess.Popen:
        raise AssertionError("this server is lent to many tests: take the fixture own_fork_server")

    def _ask(self, command, fds=()):
        try:
            if self.gone:
                raise ServerGone("it was given back")
            answer = self._server._ask(command, fds)
        except ServerGone:
            self.gone = True
            raise
        if command["do"] == "start":
            self._running.add(answer["pid"])
        elif command["do"] == "end":
            self._running.discard(command["pid"])
        return answer

    def close(self) -> None:
        with contextlib.suppress(ServerGone):
            for pid in list(self._running):
                self._ask({"do": "end", "pid": pid, "patience": 0.0})
        self.gone = True
