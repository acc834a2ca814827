"""Mistakes that another exercise with the same contract already knows."""

from __future__ import annotations

from course_lib.exercises._exercise import Exercise
from course_lib.exercises._mistakes import Mistakes

__all__ = ["add_known"]


def add_known(mistake: Mistakes, exercise: Exercise, *, without: tuple[str, ...]) -> None:
    """Add the mistakes of an exercise under their own keys and messages.

    Args:
        mistake: what they are added to.
        exercise: whose mistakes they are; its arguments and results are the same.
        without: keys of mistakes that have another name here, or are none.

    Raises:
        ValueError: there is no mistake with a key in `without`.
    """
    unknown = set(without) - {known.key for known in exercise.misconceptions}
    if unknown:
        raise ValueError(f"expected keys of mistakes in {exercise.name}, got {', '.join(sorted(unknown))}")
    for known in exercise.misconceptions:
        if known.key not in without:
            mistake.named(known.key, known.says, look=known.look)(known.solution)
