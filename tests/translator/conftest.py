"""A task of captions, and a run that was stopped."""

import shutil

import pytest
from tiny_runs import QUIET, REVERSAL, made_task

from course_kit.translator.trainer import train
from course_kit.workshop.tasks import reversal


@pytest.fixture(scope="module")
def captions():
    return made_task()


@pytest.fixture(scope="module")
def first_epoch(tmp_path_factory):
    folder = tmp_path_factory.mktemp("first")
    train(reversal(), REVERSAL, out=folder, stop_after=1, **QUIET)
    return folder


@pytest.fixture
def begun(first_epoch, tmp_path):
    """The folder of a run that was stopped after the first of its three epochs."""
    return shutil.copytree(first_epoch, tmp_path / "begun")
