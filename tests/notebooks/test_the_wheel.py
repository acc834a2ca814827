"""What a learner installs: the wheel, what it holds, and what its first cell says where it is missing."""

import re
import subprocess
import zipfile

import nbformat
import pytest

from tools.notebooks import code_cells
from tools.pages import notebook_pages

pytestmark = pytest.mark.site


def test_the_environment_is_the_runtime_requirements_only(runtime, tmp_path):
    absent = ["jupyter_book", "pytest", "nbval", "jupytext", "jaxtyping", "transformers", "tools", "sphinx"]
    code = f"import importlib.util as u; print([m for m in {absent} if u.find_spec(m)])"
    assert said(runtime, code, tmp_path) == "[]"


def test_the_wheel_holds_the_package_and_nothing_else(runtime):
    names = zipfile.ZipFile(runtime.wheel).namelist()
    folders = {name.split("/")[0] for name in names if ".dist-info" not in name}
    assert folders == {"course_lib", "course_kit", "course_grade"}
    assert any(name.endswith("licenses/LICENSE") for name in names)


def test_the_package_comes_from_the_wheel(runtime, tmp_path):
    path, version = said(
        runtime, "import course_lib; print(course_lib.__file__, course_lib.__version__)", tmp_path
    ).split()
    assert path.startswith(str(runtime.site))
    assert re.fullmatch(r"\d+\.\d+\.\d+", version)


def test_the_first_cell_says_what_to_do_where_the_package_is_missing(runtime, tmp_path):
    page = notebook_pages()[0]
    first = code_cells(nbformat.read(page.notebook, as_version=4))[0].source
    blocked = "import sys; sys.modules['course_lib'] = None; import importlib.util\n"
    hidden = blocked + "importlib.util.find_spec = lambda name: None\n" + first
    done = run(runtime, hidden, tmp_path)
    assert done.returncode != 0
    assert "course_lib is not installed" in done.stderr
    assert "pip install ." in done.stderr


def run(runtime, code, folder):
    """`-I`: what the variable PYTHONPATH names is not looked at."""
    return subprocess.run([runtime.python, "-I", "-c", code], capture_output=True, text=True, check=False, cwd=folder)


def said(runtime, code, folder):
    done = run(runtime, code, folder)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()
