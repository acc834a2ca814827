"""What `diagnose` returns: one finding per check, as text and in a notebook."""

from __future__ import annotations

import math
import textwrap
from dataclasses import dataclass, field
from typing import Literal

__all__ = ["MARKS", "Finding", "Report", "Status", "shown"]

Status = Literal["fine", "suspicious", "wrong", "not checked"]
MARKS = {"fine": "✓", "suspicious": "?", "wrong": "✗", "not checked": "–"}

_WIDTH = 80  # characters, which a page of the book shows without wrapping


@dataclass(frozen=True)
class Finding:
    """What one check has measured.

    Args:
        name: of the check.
        status: "fine", "suspicious" (there are models in which this is intended), "wrong", or "not checked".
        message: what the measurement means, in one or two sentences; why, where nothing could be measured.
        number: what was measured, or None.
        measured: what the number is.
    """

    name: str
    status: Status
    message: str
    number: float | None = None
    measured: str = ""

    def __str__(self) -> str:
        """Mark, name, status and number, then the meaning on lines of its own."""
        head = f"{MARKS[self.status]} {self.name}: {self.status}"
        if self.number is not None:
            head += f" ({self.measured}: {shown(self.number)})"
        meaning = textwrap.fill(self.message, _WIDTH, initial_indent="    ", subsequent_indent="    ")
        return textwrap.fill(head, _WIDTH, subsequent_indent="    ") + "\n" + meaning


@dataclass(frozen=True)
class Report:
    """All findings on one model. `report["causality"]` is one of them, `report.problems` those that need attention.

    Args:
        subject: the model and the batch, in one line.
        findings: one for each check.
    """

    subject: str
    findings: list[Finding] = field(default_factory=list)

    @property
    def problems(self) -> list[Finding]:
        """Findings that are wrong or suspicious; those that are wrong come first."""
        return [each for status in ("wrong", "suspicious") for each in self.findings if each.status == status]

    @property
    def verdict(self) -> str:
        """One sentence: how many checks found what."""
        count = {status: sum(each.status == status for each in self.findings) for status in MARKS}
        return ", ".join(f"{number} {status}" for status, number in count.items() if number or status == "wrong")

    def __getitem__(self, name: str) -> Finding:
        """The finding of this name.

        Raises:
            KeyError: no check has this name.
        """
        for each in self.findings:
            if each.name == name:
                return each
        raise KeyError(f"expected one of {', '.join(each.name for each in self.findings)}, got {name!r}")

    def __str__(self) -> str:
        """Problems first, then what is fine, then what was not checked."""
        rest = [each for status in ("fine", "not checked") for each in self.findings if each.status == status]
        return "\n".join([self.subject, self.verdict, "", *map(str, [*self.problems, *rest])])

    def _repr_html_(self) -> str:
        from course_kit.diagnosing.html import html_of

        return html_of(self)


def shown(number: float) -> str:
    """Three decimals, or the next power of ten above a small number; whole numbers as they are."""
    if number != number or number in (float("inf"), float("-inf")):
        return str(number)
    if number == int(number) and abs(number) < 1e6:
        return f"{int(number):,}"
    if 0 < number < 0.001:  # rounding errors are not the same on every machine
        return f"below 1e{max(math.ceil(math.log10(number)), -9)}"
    return f"{number:.3f}" if number < 1e4 else f"{number:.1e}"
