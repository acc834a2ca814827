"""Build the image of an exported autograder, grade a submission in it without a network, and print what came out.

    python -m tools.gradescope ASSIGNMENT.yaml SUBMISSION [SUBMISSION …]

A container engine builds `Dockerfile`. Where none runs, the same steps are carried out in a fresh root (`debootstrap`,
`chroot`, and `unshare` for the run: no network, its own processes); that needs root on a Debian system. The output says
which of the two it was. The wheel is the one of this checkout.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from tools.publisher import ROOT

DOCKERFILE = Path(__file__).with_name("Dockerfile")
IMAGE = "course-lib-autograder"


def main() -> int:
    """Command line; see the module's docstring."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("assignment", type=Path)
    parser.add_argument("submissions", nargs="+", type=Path, help="a file or folder per trial")
    parser.add_argument("--root", type=Path, help="keep the fresh root here, and use it again")
    parser.add_argument("--bind", action="append", default=[], type=Path, help="visible in the fresh root (repeatable)")
    parser.add_argument("--mirror", default="http://deb.debian.org/debian", help="where debootstrap gets Debian from")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        context = Path(folder)
        _make_context(context, options.assignment)
        if _engine():
            print(f"in a container of {_engine()}")
            image = _Container(context)
        else:
            print(
                "no container engine runs here: the Dockerfile's steps in a fresh root (debootstrap, chroot, unshare)"
            )
            image = _FreshRoot(context, options.root or context / "root", options.bind, options.mirror)
        for submission in options.submissions:
            result = image.grade(submission.resolve())
            tests = ", ".join(f"{t['name']} {t.get('score', '–')} of {t['max_score']}" for t in result.get("tests", ()))
            print(f"{submission.name}: score {result.get('score')}; {tests or result.get('output')}")
            print(f"  sandbox: {result.get('extra_data', {}).get('sandbox')}")
    return 0


def _make_context(context: Path, assignment: Path) -> None:
    """The build context: the wheel of this checkout, and the exported autograder that installs it."""
    wheels = context / "wheels"
    build = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--wheel-dir", str(wheels), str(ROOT)]
    subprocess.run(build, check=True)
    (wheel,) = wheels.glob("*.whl")
    export = [sys.executable, "-m", "course_grade.command", "export", "-a", str(assignment.resolve())]
    export += ["--gradescope", str(context / "autograder.zip")]
    export += ["--install", f"course_lib[grading] @ file:///wheels/{wheel.name}"]
    subprocess.run(export, check=True, cwd=ROOT)


def _engine() -> str:
    for name in ("docker", "podman"):
        if shutil.which(name) and not subprocess.run([name, "info"], capture_output=True, check=False).returncode:
            return name
    return ""


class _Container:
    def __init__(self, context: Path):
        build = [_engine(), "build", "-q", "-t", IMAGE, "-f", str(DOCKERFILE), str(context)]
        subprocess.run(build, check=True)

    def grade(self, submission: Path) -> dict:
        with tempfile.TemporaryDirectory() as results:
            run = [
                _engine(),
                "run",
                "--rm",
                "--network",
                "none",
                "-v",
                f"{_folder(submission)}:/autograder/submission:ro",
            ]
            subprocess.run([*run, "-v", f"{results}:/autograder/results", IMAGE], check=True)
            return json.loads(Path(results, "results.json").read_text(encoding="utf-8"))


class _FreshRoot:
    """The Dockerfile's RUN and COPY lines in a root of their own."""

    def __init__(self, context: Path, root: Path, binds: list[Path], mirror: str):
        self.root, self.binds = root, binds
        if not (root / "usr").exists():
            subprocess.run(["debootstrap", "--variant=minbase", "bookworm", str(root), mirror], check=True, stdout=2)
        for line in DOCKERFILE.read_text(encoding="utf-8").splitlines():
            word, _, rest = line.partition(" ")
            if word == "RUN":
                self._run(rest, network=True)
            elif word == "COPY":
                source, target = rest.split()
                place = root / target.lstrip("/")
                if place.is_dir():
                    shutil.rmtree(place)
                place.parent.mkdir(parents=True, exist_ok=True)
                (shutil.copytree if (context / source).is_dir() else shutil.copy)(context / source, place)

    def grade(self, submission: Path) -> dict:
        inside = self.root / "autograder/submission"
        shutil.rmtree(inside)
        shutil.copytree(_folder(submission), inside)
        shutil.rmtree(self.root / "autograder/results")
        (self.root / "autograder/results").mkdir()
        self._run("/autograder/run_autograder", network=False)
        return json.loads((self.root / "autograder/results/results.json").read_text(encoding="utf-8"))

    def _run(self, command: str, *, network: bool) -> None:
        root = shlex.quote(str(self.root))
        mounts = [f"mount -t proc proc {root}/proc", f"mount --rbind /dev {root}/dev"]
        for path in [Path("/etc/resolv.conf"), *self.binds]:
            target = self.root / str(path).lstrip("/")
            target.parent.mkdir(parents=True, exist_ok=True)
            if path.is_dir():
                target.mkdir(exist_ok=True)
            else:
                target.touch()
            mounts.append(f"mount --bind {shlex.quote(str(path))} {shlex.quote(str(target))}")
        inner = f"chroot {root} /bin/bash -c {shlex.quote(command)}"
        unshare = ["unshare", "--mount", "--pid", "--fork", "--ipc", "--uts", *([] if network else ["--net"])]
        kept = {n: v for n, v in os.environ.items() if n.startswith("PIP_") or n.endswith(("_CERT_FILE", "_CA_BUNDLE"))}
        environment = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root", **kept}
        script = " && ".join([*mounts, inner])
        subprocess.run([*unshare, "bash", "-c", script], check=True, env=environment, stdout=2)


def _folder(submission: Path) -> Path:
    """Gradescope puts a student's files into a folder."""
    if submission.is_dir():
        return submission
    folder = Path(tempfile.mkdtemp())
    shutil.copy(submission, folder)
    return folder


if __name__ == "__main__":
    sys.exit(main())
