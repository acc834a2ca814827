"""Time two ways of doing the same thing, in turn, so that a slow moment of the machine meets both."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass

import torch


@dataclass(frozen=True)
class Comparison:
    """Times of ours and theirs, pair by pair, in seconds."""

    ours: list[float]
    theirs: list[float]

    @property
    def ratio(self) -> float:
        """Median of the pairs' ratios, ours to theirs: below 1 we are faster."""
        return statistics.median(a / b for a, b in zip(self.ours, self.theirs, strict=True))

    @property
    def spread(self) -> tuple[float, float]:
        """Quartiles of the pairs' ratios."""
        ratios = [a / b for a, b in zip(self.ours, self.theirs, strict=True)]
        low, _, high = statistics.quantiles(ratios, n=4)
        return low, high


def compare(
    ours: Callable[[], object], theirs: Callable[[], object], *, pairs: int = 30, warm_up: int = 3
) -> Comparison:
    """Call both `pairs` times after some calls to warm up, changing who goes first."""
    times: dict[Callable, list[float]] = {ours: [], theirs: []}
    for call in (ours, theirs) * warm_up:
        call()
    for number in range(pairs):
        for call in (ours, theirs) if number % 2 else (theirs, ours):
            _wait()
            start = time.perf_counter()
            call()
            _wait()
            times[call].append(time.perf_counter() - start)
    return Comparison(times[ours], times[theirs])


def matmul_peak(size: int = 1536, repeats: int = 12, dtype: torch.dtype = torch.float32) -> float:
    """Operations a second of a large matrix product on this machine: the best of several runs."""
    a, b = torch.randn(2, size, size).to(dtype).unbind(0)
    best = float("inf")
    for _ in range(repeats):
        start = time.perf_counter()
        a @ b
        best = min(best, time.perf_counter() - start)
    return 2 * size**3 / best


def _wait() -> None:
    if torch.cuda.is_available():
        torch.cuda.synchronize()
