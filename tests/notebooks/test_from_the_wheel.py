"""What the plugin for nbval refuses: a notebook with one fault a cell, and one cell without."""

import base64
import io
import re
import subprocess
import sys

import matplotlib.pyplot as plt
import nbformat
import pytest
import torch

from course_kit.viz import alignment
from tools.publisher import ROOT

pytestmark = pytest.mark.site

BARS = "import matplotlib.pyplot as plt\nplt.bar(range(3), [1, 2, 3]);"
VIEW = """
import torch
from course_kit.viz import alignment
alignment(torch.tensor([[0.25, 0.75], [0.4, 0.6]]), ["a", "b"], ["x", "y"])
"""


def picture(*heights):
    """The bars as a notebook keeps them."""
    figure, axes = plt.subplots()
    axes.bar(range(3), heights)
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", bbox_inches="tight", dpi=figure.dpi)
    plt.close(figure)
    return nbformat.v4.new_output("display_data", {"image/png": base64.b64encode(buffer.getvalue()).decode()})


def view(weights):
    html = alignment(torch.tensor(weights), ["a", "b"], ["x", "y"]).html()
    return nbformat.v4.new_output("execute_result", {"text/html": html, "text/plain": "ignored"}, execution_count=1)


def prints(text):
    return nbformat.v4.new_output("stream", text=text + "\n")


CELLS = {
    "as it was": ("print(0.25)", [prints("0.25")], []),
    "another number": ("print(0.25)", [prints("0.26")], []),
    "another picture": (BARS, [picture(1, 3, 2)], ["nbval-ignore-output"]),
    "no picture": ("1;", [picture(1, 2, 3)], ["nbval-ignore-output"]),
    "the same view": (VIEW, [view([[0.25, 0.75], [0.4, 0.6]])], ["nbval-ignore-output"]),
    "another view": (VIEW, [view([[0.25, 0.75], [0.402, 0.598]])], ["nbval-ignore-output"]),
    "a module of the checkout": ("import tools", [], []),
    "a file of the checkout": ("open('pyproject.toml').close()", [], []),
    "a warning": ("import warnings; warnings.warn('careful')", [], []),
    "a folder that is empty": ("import os; print(os.listdir())", [prints("[]")], []),
}
PASS = {"as it was", "the same view", "a folder that is empty"}
REASONS = {
    "another number": "Cell outputs differ",
    "another picture": "Another picture than the notebook's: number 1 of this cell",
    "no picture": "The notebook has 1 pictures here, this run 0",
    "another view": "Another view than the notebook's: number 1 of this cell",
    "a module of the checkout": "ModuleNotFoundError",
    "a file of the checkout": "FileNotFoundError",
    "a warning": "Unexpected output fields from running code: {'stderr'}",
}


def test_each_fault_is_refused_and_nothing_else(runtime, tmp_path):
    cells = [
        nbformat.v4.new_code_cell(source, outputs=outputs, metadata={"tags": tags}, execution_count=1)
        for source, outputs, tags in CELLS.values()
    ]
    notebook = nbformat.v4.new_notebook(cells=cells, metadata={"kernelspec": {"name": "python3", "display_name": ""}})
    nbformat.write(notebook, tmp_path / "faults.ipynb")
    command = [sys.executable, "-m", "pytest", "-c", "tests/notebooks/nbval.ini", "--rootdir", ".", "--color=no", "-q"]
    command += ["--runtime", str(runtime.folder), str(tmp_path / "faults.ipynb")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    reports = re.split(r"^_+ .*Cell (\d+) _+$", done.stdout, flags=re.MULTILINE)[1:]
    failed = {list(CELLS)[int(number)]: text for number, text in zip(reports[::2], reports[1::2], strict=True)}
    assert set(failed) == set(CELLS) - PASS, done.stdout
    for name, reason in REASONS.items():
        assert reason in failed[name], failed[name]


def test_a_notebook_that_was_never_run_is_refused(runtime, tmp_path):
    cell = nbformat.v4.new_code_cell("1 + 1")
    nbformat.write(nbformat.v4.new_notebook(cells=[cell]), tmp_path / "new.ipynb")
    command = [sys.executable, "-m", "pytest", "-c", "tests/notebooks/nbval.ini", "--rootdir", ".", "-q"]
    command += ["--runtime", str(runtime.folder), str(tmp_path / "new.ipynb")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert "run `make notebooks`" in done.stdout
    assert done.returncode == 1
