"""The folder of a translator: weights, vocabulary, config.json with their checksums, and a model card."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from course_kit._checks import check_instance, check_texts
from course_kit._files import make_folder, read_whole, write_together
from course_kit.data.vocabulary import Vocabulary
from course_kit.nn import Transformer, TransformerConfig

__all__ = ["CONFIG", "read_folder", "write_folder"]

WEIGHTS, CONFIG, VOCABULARY, CARD = "weights.safetensors", "config.json", "vocabulary.json", "README.md"
FORMAT = 1


def write_folder(
    folder: str | Path, model: Transformer, vocabulary: Vocabulary, *, card: str, about: dict[str, Any]
) -> None:
    """Write model and vocabulary into a folder, as documented in `Translator.save`."""
    from safetensors.torch import save

    check_instance((str, Path), folder=folder)
    check_instance(str, card=card)
    check_instance(Mapping, about=about)
    check_texts(about=about)
    folder = Path(folder)
    make_folder(folder)
    again = _tied_names(model)
    state = {name: tensor for name, tensor in model.state_dict().items() if name not in again}
    weights = save({name: tensor.detach().half().cpu().contiguous() for name, tensor in state.items()})
    vocabulary = vocabulary.to_json().encode()
    contents = {WEIGHTS: weights, VOCABULARY: vocabulary} | ({CARD: card.encode()} if card else {})
    config = {
        "format": FORMAT,
        "sha256": {name: _sum(contents[name]) for name in (WEIGHTS, VOCABULARY)},
        "model": dataclasses.asdict(model.config),
        **about,
    }
    contents[CONFIG] = (json.dumps(config, indent=1, ensure_ascii=False) + "\n").encode()
    write_together({folder / name: content for name, content in contents.items()})


def read_folder(folder: str | Path) -> tuple[Transformer, Vocabulary]:
    """Read a folder that `write_folder` wrote, as documented in `Translator.load`."""
    from safetensors import SafetensorError
    from safetensors.torch import load

    check_instance((str, Path), folder=folder)
    folder = Path(folder)
    if folder.is_file():
        raise NotADirectoryError(f"expected the folder of a translator, got the file {folder}; pass its folder")
    if not (folder / CONFIG).is_file():
        raise FileNotFoundError(
            f"expected the folder of a translator, got {folder} without {CONFIG}; pass one that Translator.save wrote"
        )
    try:
        config = json.loads(read_whole(folder / CONFIG))
        shape, sums = TransformerConfig(**config["model"]), config["sha256"]
        if set(sums) != {WEIGHTS, VOCABULARY}:
            raise ValueError(f"it must contain the checksums of {WEIGHTS} and {VOCABULARY}")
        if config["format"] != FORMAT:
            raise ValueError(f"format {FORMAT} is read here, got {config['format']}")
    except (KeyError, TypeError, AttributeError, ValueError, RecursionError) as error:
        raise ValueError(f"{folder / CONFIG} is not that of a translator: {error}") from None
    for name, expected in sums.items():
        found = _sum(read_whole(folder / name))
        if found != expected:
            raise ValueError(
                f"{folder / name} is damaged or was exchanged: expected SHA-256 {expected}, got {found}; fetch the "
                f"folder again"
            )
    model = Transformer(shape)
    try:
        state = {name: tensor.float() for name, tensor in load((folder / WEIGHTS).read_bytes()).items()}
    except SafetensorError as error:
        raise ValueError(f"{folder / WEIGHTS} is not a safetensors file: {error}; fetch the folder again") from None
    own = model.state_dict()
    expected_names = set(own) - _tied_names(model)
    wrong = [n for n in state if n in own and own[n].shape != state[n].shape]
    if set(state) != expected_names or wrong:
        raise ValueError(
            f"{folder / WEIGHTS} belongs to a model with other shapes than {CONFIG} describes: "
            f"{', '.join(sorted(set(state) ^ expected_names) or wrong)}"
        )
    model.load_state_dict(state, strict=False)  # what is missing is tied to what is there
    return model, Vocabulary.load(folder / VOCABULARY)


def _tied_names(model: Transformer) -> set[str]:
    """Names under which a parameter appears a second time."""
    first: dict[int, str] = {}
    again = set()
    for name, parameter in model.state_dict(keep_vars=True).items():
        if id(parameter) in first:
            again.add(name)
        first.setdefault(id(parameter), name)
    return again


def _sum(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
