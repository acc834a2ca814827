"""Where the course's packages lie, for what treats their code differently from a learner's."""

import os
from pathlib import Path

__all__ = ["OURS", "PACKAGES"]

PACKAGES = {name: Path(__file__).parents[1] / name for name in ("course_lib", "course_kit", "course_grade")}
# How the names of their files begin.
OURS = tuple(f"{folder}{os.sep}" for folder in PACKAGES.values())
