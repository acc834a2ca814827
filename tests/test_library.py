"""The package as a whole: what it offers, what it costs to import, what its README promises."""

import importlib
import inspect
import pkgutil
import re
import subprocess
import sys

import pytest
import tomllib
import torch

import course_grade
import course_kit
import course_lib
from tools.publisher import ROOT

PACKAGES = (course_lib, course_kit, course_grade)
MODULES = [
    module.name
    for package in PACKAGES
    for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
    if "._" not in module.name
]
# The kit offers exercises by `find`, and not what a chapter's are made of.
MODULES = [name for name in MODULES if not name.startswith("course_kit.exercises.")]


@pytest.mark.parametrize("name", ["course_lib", "course_kit", *MODULES])
def test_all_names_exist_and_are_documented(name):
    module = importlib.import_module(name)
    exported = getattr(module, "__all__", [])
    assert module.__doc__
    assert len(set(exported)) == len(exported)
    assert exported or hasattr(module, "__path__")  # only a room's own file may just say what is in it
    for thing in (getattr(module, each) for each in exported):
        if inspect.isclass(thing) or inspect.isfunction(thing):
            assert thing.__doc__, thing
        if inspect.isclass(thing):
            for each, method in inspect.getmembers(thing, inspect.isfunction):
                if not each.startswith("_") and method.__module__.startswith("course_"):
                    assert method.__doc__, (thing, each)


def test_importing_the_package_draws_in_nothing_heavy():
    """Torch is there already; plotting and shape checking come when somebody asks for them."""
    code = (
        "import torch, sys; before = set(sys.modules); import course_lib, course_kit.nn.attention as a;"
        "a.broadcasts_to((2, 3), (4, 3)); print(*set(sys.modules) - before)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    new = {name.split(".")[0] for name in done.stdout.split()}
    assert not new & {
        "matplotlib",
        "seaborn",
        "pandas",
        "scipy",
        "sympy",
        "jaxtyping",
        "beartype",
        "PIL",
        "transformers",
    }


def test_requirements_are_light_and_wide():
    requirements = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    names = {re.match(r"[\w-]+", r)[0] for r in requirements}
    assert names == {"torch", "numpy", "matplotlib", "seaborn", "tqdm"}
    assert all(name in (ROOT / "README.md").read_text() for name in names)
    assert not any("==" in r or "<" in r for r in requirements)


def test_the_readmes_example_runs(capsys):
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    assert blocks
    for block in blocks:
        exec(compile(block, "README.md", "exec"), {})
    expected = re.findall(r"# (torch\.Size.*|causal_mask: .*?)(?: …)?$", "".join(blocks), re.MULTILINE)
    assert len(expected) == 2
    printed = capsys.readouterr().out.split("\n")
    assert [line for line in printed if line in expected] == expected


def test_annotations_are_checked_in_the_tests():
    """Otherwise the shapes of what is returned would be decoration: `checked` compares arguments only."""
    with pytest.raises(Exception, match="Type-check error"):
        course_lib.split_heads.__wrapped__(torch.randn(3, 4), "two")
