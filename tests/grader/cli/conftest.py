"""Submissions to grade, in an empty folder."""

from pathlib import Path

import pytest
from commands import CAUSAL, IMPORT, NOT_STABLE, SOFTMAX, WEEK


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path, monkeypatch):
    """In an empty folder, with a wide terminal."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")


@pytest.fixture
def ada():
    path = Path("ada.py")
    path.write_text(IMPORT + SOFTMAX + CAUSAL)
    return "ada.py"


@pytest.fixture
def half():
    path = Path("half.py")
    path.write_text(IMPORT + NOT_STABLE)
    return "half.py"


@pytest.fixture
def week():
    Path("week3.yaml").write_text(WEEK)
    return "week3.yaml"
