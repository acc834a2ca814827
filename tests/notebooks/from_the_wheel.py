"""nbval, as a learner's machine: every notebook runs once, on the installed wheel, in an empty folder.

nbval runs the cells and compares what they print with what the notebook says. This plugin chooses where they run, and
adds what nbval leaves out: pictures, the numbers of views, and views of trained models. One execution proves that a
notebook needs nothing but the package and what that requires, and that it still gives what the book shows.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

import pytest
from nbval.kernel import RunningKernel
from nbval.plugin import IPyNbCell, IPyNbFile

from course_kit.chapters import STEMS
from tests.notebooks.runtime import KERNEL, Runtime, make_runtime
from tools.pictures import same_picture, same_view

_FOLDER = pytest.StashKey[str]()
_SHARED = "folder_of_the_runtime"  # what the worker processes are told


def pytest_addoption(parser):
    """Add `--runtime`."""
    parser.addoption("--runtime", metavar="FOLDER", help="an environment that `make_runtime` has made")


def runtime_of(config: pytest.Config) -> Runtime:
    """The environment that the notebooks of this run use: made once, and shared by all workers."""
    if shared := getattr(config, "workerinput", {}).get(_SHARED) or config.option.runtime:
        return Runtime(Path(shared))
    if _FOLDER not in config.stash:
        config.stash[_FOLDER] = tempfile.mkdtemp(prefix="runtime-")
        make_runtime(Path(config.stash[_FOLDER]))
    return Runtime(Path(config.stash[_FOLDER]))


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node):
    """Tell a worker of pytest-xdist where the environment is."""
    node.workerinput[_SHARED] = str(runtime_of(node.config).folder)


def pytest_unconfigure(config):
    """Leave nothing behind; workers leave it to the process that made it."""
    if _FOLDER in config.stash:
        shutil.rmtree(config.stash[_FOLDER])


@pytest.fixture(scope="session")
def runtime(request):
    return runtime_of(request.config)


@pytest.hookimpl(wrapper=True)
def pytest_collect_file(file_path, parent):
    collected = yield
    return [Notebook.from_parent(parent, path=file_path) if type(file) is IPyNbFile else file for file in collected]


class Notebook(IPyNbFile):
    """A notebook whose kernel knows the wheel's environment only, and whose folder is empty."""

    folder = None

    def setup(self):
        os.environ["JUPYTER_PATH"] = str(runtime_of(self.config).jupyter_path)
        self.folder = tempfile.TemporaryDirectory()
        timeout = self.config.option.nbval_kernel_startup_timeout
        self.kernel = RunningKernel(KERNEL, cwd=self.folder.name, startup_timeout=timeout)
        self.setup_sanitize_files()

    def collect(self):
        for found in super().collect():
            cell = Cell.from_parent(
                self, name=found.name, cell_num=found.cell_num, cell=found.cell, options=found.options
            )
            if self.path.stem not in STEMS:
                cell.add_marker("thorough")
            yield cell

    def teardown(self):
        super().teardown()
        if self.folder is not None:
            self.folder.cleanup()


class Cell(IPyNbCell):
    """A cell that is compared by its pictures and views, too."""

    def runtest(self):
        if self.cell.execution_count is None:
            self.raise_cell_error("The notebook does not say what this cell gives: run `make notebooks`")
        super().runtest()
        for difference in self.differences():
            self.raise_cell_error(difference)

    def differences(self):
        """What the pictures and views of this run do not have in common with the notebook's, in words."""
        trained = "trained" in self.cell.metadata.get("tags", [])
        for kind, same in (("image/png", same_picture), ("text/html", same_view)):
            committed, fresh = _shown(self.cell.outputs, kind), _shown(self.test_outputs, kind)
            name = {"image/png": "picture", "text/html": "view"}[kind]
            if len(committed) != len(fresh):
                yield f"The notebook has {len(committed)} {name}s here, this run {len(fresh)}"
            for number, (old, new) in enumerate(zip(committed, fresh, strict=False), 1):
                if not same(old, new, trained=trained):
                    yield f"Another {name} than the notebook's: number {number} of this cell"


def _shown(outputs, kind):
    shown = [output["data"][kind] for output in outputs if kind in output.get("data", {})]
    return [one for one in shown if kind == "image/png" or "<attention-view" in one]
