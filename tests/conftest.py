"""Shared by all tests: shapes of every annotated call are checked, and no test depends on another's random draws."""

from __future__ import annotations

import jaxtyping  # before course_lib: its annotations become checkable
import pytest
import torch

# Every call of the library in the tests is checked against its shape annotation. Where a test hands in wrong shapes on
# purpose, to read the library's own error, it takes the fixture `unchecked`.
_HOOK = jaxtyping.install_import_hook("course_lib", "beartype.beartype")


@pytest.fixture(autouse=True)
def _seed():
    torch.manual_seed(20_17)


@pytest.fixture
def unchecked():
    """Switch the run-time check of shapes off, so that the library's own errors are reached."""
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)
