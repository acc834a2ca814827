"""Shared by all tests: shapes of every annotated call are checked, and no test depends on another's random draws."""

from __future__ import annotations

from pathlib import Path

import jaxtyping  # before course_lib: its annotations become checkable
import pytest
import torch

# Every call of the library in the tests is checked against its shape annotation. Where a test hands in wrong shapes on
# purpose, to read the library's own error, it takes the fixture `unchecked`.
# The grader meets whatever people write, so its own calls are not checked this way.
_ROOT = Path(__file__).parents[1]
_ROOMS = ("bert", "costs", "diagnosing", "interpret", "language_model", "nn", "translator", "viz", "workshop")
_CHECKED = [
    *(
        f"{p}.{file.stem}"
        for p in ("course_lib", "course_kit")
        for file in (_ROOT / p).glob("*.py")
        if file.stem not in ("__init__", "_checks")  # the checks are called with what they refuse
    ),
    *(f"course_kit.{room}" for room in _ROOMS),
]
_HOOK = jaxtyping.install_import_hook(_CHECKED, "typechecker.checked")


# Coverage doubles the time of what computes in Python, and 95 % are reached without these: thorough tests, the built
# book, the tests of tools, those that train for long, and those that call the same lines thousands of times.
_UNTRACED = {
    "tests/toolchain",
    "tests/test_pages.py",
    "tests/test_arguments_of_chapters.py",
    "tests/test_arguments_of_models.py",
    "tests/translator/test_arguments.py",
    "tests/translator/search",
    "tests/translator/test_trainer.py",
    "tests/translator/test_run_folder.py",
    "tests/data/test_grammar.py",
    "tests/costs/test_arguments_of_costs.py",
    "tests/diagnosing/test_arguments_of_diagnosing.py",
    "tests/viz/test_arguments.py",
    "tests/viz/test_baselines.py",
    "tests/grader/test_harmless.py",
    "tests/grader/test_random_trees.py",
    "tests/grader/test_attacks.py",
    "tests/grader/test_dask.py",
    "tests/grader/test_degraded.py",
    "tests/grader/test_right_solutions.py",
}


def pytest_collection_modifyitems(items):
    """Tests in which coverage is not counted."""
    for item in items:
        place = item.path.relative_to(_ROOT)
        untraced = _UNTRACED & {place.as_posix(), place.parent.as_posix()}
        if untraced or item.get_closest_marker("thorough") or item.get_closest_marker("site"):
            item.add_marker(pytest.mark.no_cover)


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
