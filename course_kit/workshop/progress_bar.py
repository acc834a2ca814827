"""The bar that `train_on` and `train` show."""

from __future__ import annotations

import sys
from typing import Any

from tqdm import tqdm

__all__ = ["ProgressBar"]


class _Meter(tqdm):
    monitor_interval = 0  # no thread that would write at its own time


class ProgressBar:
    """A progress bar: in a terminal on standard error, in a notebook on standard output, elsewhere none.

    Of a notebook's bar one line stays, without times: the bar is overwritten by carriage returns, which notebooks,
    and those who run and compare them, take away.
    """

    def __init__(self, name: str, steps: int, show: bool):
        in_notebook = getattr(_shell(), "kernel", None) is not None
        self._file = sys.stdout if in_notebook else sys.stderr
        off = None if not in_notebook else False  # None: off if the file is not a terminal
        self._bar = _Meter(
            total=steps,
            desc=name,
            unit="step",
            file=self._file,
            disable=off if show else True,
            leave=False,
            ncols=88,
            mininterval=0.25,
        )
        self._shown = not self._bar.disable
        self._last = ""

    def __enter__(self) -> ProgressBar:
        return self

    def __exit__(self, *_) -> None:
        self._bar.close()
        if self._last and self._shown:
            print(self._last, file=self._file)

    def show(self, figures: str) -> None:
        """Set the figures beside the bar."""
        self._bar.set_postfix_str(figures, refresh=False)

    def advance(self, steps: int = 1) -> None:
        """Count steps as done."""
        self._bar.update(steps)

    def finish(self, line: str) -> None:
        """The line that stays."""
        self._last = line


def _shell() -> Any:
    # Without importing IPython: where it is not imported, this is not a notebook.
    return getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
