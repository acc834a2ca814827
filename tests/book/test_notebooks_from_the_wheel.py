"""What a learner does: install the package, open a notebook in an empty folder, run it. Outputs must be the book's."""

import copy
import os
import re
import subprocess
import zipfile

import nbformat
import pytest

from tests.book.runtime import KERNEL, build_wheel, make_environment
from tools.notebooks import code_cells, execute_notebook
from tools.pages import notebook_pages
from tools.pictures import same_picture, same_view

pytestmark = pytest.mark.slow

# The tests of a page run in one worker, which executes its notebook once.
each_page = pytest.mark.parametrize(
    "page", [pytest.param(page, id=page.name, marks=pytest.mark.xdist_group(page.name)) for page in notebook_pages()]
)


@pytest.fixture(scope="session")
def wheel(tmp_path_factory):
    return build_wheel(tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="session")
def python(wheel, tmp_path_factory):
    folder = tmp_path_factory.mktemp("runtime") / "env"
    interpreter = make_environment(folder, wheel)
    os.environ["JUPYTER_PATH"] = str(folder / "share/jupyter")
    yield interpreter
    del os.environ["JUPYTER_PATH"]


@pytest.fixture(scope="session")
def executed(python):
    """Every notebook, run in the environment of the wheel in an empty folder: committed and fresh."""
    results = {}

    def run(page):
        if page.name not in results:
            committed = nbformat.read(page.notebook, as_version=4)
            fresh = copy.deepcopy(committed)
            execute_notebook(fresh, page.name, kernel_name=KERNEL)
            results[page.name] = committed, fresh
        return results[page.name]

    return run


def test_the_environment_is_the_runtime_requirements_only(python, tmp_path):
    absent = ["jupyter_book", "pytest", "nbval", "jupytext", "jaxtyping", "transformers", "tools", "sphinx"]
    code = f"import importlib.util as u; print([m for m in {absent} if u.find_spec(m)])"
    done = subprocess.run([python, "-c", code], capture_output=True, text=True, check=True, cwd=tmp_path)
    assert done.stdout.strip() == "[]"


def test_the_wheel_holds_the_package_and_nothing_else(wheel):
    names = zipfile.ZipFile(wheel).namelist()
    assert {name.split("/")[0] for name in names if ".dist-info" not in name} == {"course_lib"}
    assert any(name.endswith("licenses/LICENSE") for name in names)


def test_the_package_comes_from_the_wheel(python, tmp_path):
    where = "import course_lib; print(course_lib.__file__, course_lib.__version__)"
    done = subprocess.run([python, "-c", where], capture_output=True, text=True, check=True, cwd=tmp_path)
    path, version = done.stdout.split()
    assert "site-packages" in path
    assert re.fullmatch(r"\d+\.\d+\.\d+", version)


@each_page
def test_a_notebook_says_the_same(executed, page):
    committed, fresh = executed(page)
    for old, new in zip(code_cells(committed), code_cells(fresh), strict=True):
        assert _texts(new) == _texts(old), old.source


@each_page
def test_a_notebook_shows_the_same(executed, page):
    committed, fresh = executed(page)
    for old, new in zip(code_cells(committed), code_cells(fresh), strict=True):
        trained = "trained" in old.metadata.get("tags", [])
        for kind, same in (("image/png", same_picture), ("text/html", same_view)):
            before, after = _shown(old, kind), _shown(new, kind)
            assert len(before) == len(after)
            for a, b in zip(before, after, strict=True):
                assert same(a, b, trained=trained), f"another {kind}: {old.source[:300]}"


def test_the_first_cell_says_what_to_do_where_the_package_is_missing(python, tmp_path):
    page = notebook_pages()[0]
    first = code_cells(nbformat.read(page.notebook, as_version=4))[0].source
    blocked = "import sys; sys.modules['course_lib'] = None; import importlib.util\n"
    hidden = blocked + "importlib.util.find_spec = lambda name: None\n" + first
    done = subprocess.run([python, "-c", hidden], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode != 0
    assert "course_lib is not installed" in done.stderr
    assert "pip install ." in done.stderr


def _texts(cell):
    if "nbval-ignore-output" in cell.metadata.get("tags", []):  # a view of a trained model; its words hold its numbers
        return []
    return [o.get("text") or o.get("data", {}).get("text/plain") for o in cell.outputs if "image/png" not in str(o)]


def _shown(cell, kind):
    shown = [o["data"][kind] for o in cell.outputs if kind in o.get("data", {})]
    return [one for one in shown if kind == "image/png" or "<attention-view" in one]
