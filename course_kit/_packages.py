"""Where the course's packages lie, for what treats their code differently from a learner's."""

from pathlib import Path

__all__ = ["PACKAGES"]

PACKAGES = {name: Path(__file__).parents[1] / name for name in ("course_lib", "course_kit", "course_grade")}
