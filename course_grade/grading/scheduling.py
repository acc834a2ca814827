"""Who may run beside whom: submissions side by side, and one alone where something has to be certain."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator

__all__ = ["SharedOrExclusiveLock"]


class SharedOrExclusiveLock:
    """A lock that many threads share, and that one of them may have to itself."""

    def __init__(self):
        self._changed = threading.Condition()
        self._beside = 0  # threads that share it
        self._waiting = 0  # threads that wait to be alone; no other begins before them
        self._alone = False

    @contextlib.contextmanager
    def beside(self) -> Iterator[None]:
        """Run beside others; waits while one is alone."""
        with self._changed:
            self._changed.wait_for(lambda: not self._alone and not self._waiting)
            self._beside += 1
        try:
            yield
        finally:
            with self._changed:
                self._beside -= 1
                self._changed.notify_all()

    @contextlib.contextmanager
    def alone(self, *, from_beside: bool = False) -> Iterator[None]:
        """Run alone; waits for all others.

        Args:
            from_beside: the thread is within `beside`, which it leaves meanwhile. It must have nothing running.
        """
        with self._changed:
            self._beside -= from_beside
            self._waiting += 1
            self._changed.notify_all()
            self._changed.wait_for(lambda: not self._alone and not self._beside)
            self._waiting -= 1
            self._alone = True
        try:
            yield
        finally:
            with self._changed:
                self._alone = False
                self._beside += from_beside
                self._changed.notify_all()
