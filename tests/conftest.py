"""Shared by all tests: shapes of every annotated call are checked, and no test depends on another's random draws."""

from __future__ import annotations

from pathlib import Path

import jaxtyping  # before course_lib: its annotations become checkable
import pytest
import torch

# Every call of the library in the tests is checked against its shape annotation. Where a test hands in wrong shapes on
# purpose, to read the library's own error, it takes the fixture `unchecked`.
# The grader meets whatever people write, so its own calls are not checked this way.
_LIBRARY = Path(__file__).parents[1] / "course_lib"
_CHECKED = [f"course_lib.{path.stem}" for path in _LIBRARY.glob("*.py") if path.stem != "__init__"] + [
    f"course_lib.{room}" for room in ("bert", "interpret", "translator", "viz", "workshop")
]
_HOOK = jaxtyping.install_import_hook(_CHECKED, "typechecker.checked")


@pytest.fixture(autouse=True)
def _seed():
    if torch.cuda.is_available():
        torch.manual_seed(20_17)
    else:  # as above, without the stack trace that PyTorch keeps at every call, for GPUs that may be used later
        torch.default_generator.manual_seed(20_17)


@pytest.fixture
def unchecked():
    """Switch the run-time check of shapes off, so that the library's own errors are reached."""
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)
