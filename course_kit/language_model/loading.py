"""From a name, a folder or a GGUF file to a language model that is ready to write."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

from course_kit.bert.config import read_json
from course_kit.language_model.causal_lm import CausalLM
from course_kit.language_model.checkpoint import fill_from_folder, fill_from_gguf
from course_kit.language_model.config import config_of_folder, config_of_gguf
from course_kit.language_model.finding import DEFAULT, find_language_model
from course_kit.language_model.fused import empty_model
from course_kit.language_model.gguf import GGUFFile
from course_kit.language_model.tokens import ChatFormat, tokenizer_of_folder, tokenizer_of_gguf

__all__ = ["load_language_model"]


def load_language_model(source: str | Path = DEFAULT) -> CausalLM:
    """A published language model in the course's own blocks, in eval mode and float32, with its tokenizer.

    Needs the library tokenizers, and safetensors for a folder. Only JSON, safetensors and GGUF are read, so that no
    file can run code.

    Args:
        source: a folder with `config.json`, `model.safetensors` (or several files and their index) and
            `tokenizer.json`; a `.gguf` file; or a name, which `find_language_model` looks for. The architectures are
            llama (Llama, SmolLM2) and qwen2.

    Raises:
        ImportError: tokenizers or safetensors is not installed.
        LanguageModelUnavailable: no place has the name.
        FileNotFoundError: a file of the folder is missing.
        ValueError: a file is damaged, of another architecture or of another model, or has a tensor of an unknown kind.
    """
    path = find_language_model(source)
    for library in ("tokenizers", *(["safetensors"] if path.is_dir() else [])):
        try:
            import_module(library)
        except ImportError:
            raise ImportError(
                f'load_language_model needs {library}, which is not installed: pip install "{library}"'
            ) from None
    return _from_folder(path) if path.is_dir() else _from_gguf(path)


def _from_folder(folder: Path) -> CausalLM:
    content = read_json(folder / "config.json")
    config = config_of_folder(content, str(folder / "config.json"))
    tokenizer = tokenizer_of_folder(folder, config.vocab_size)
    options = {
        name: read_json(folder / f"{name}.json") if (folder / f"{name}.json").is_file() else {}
        for name in ("tokenizer_config", "generation_config")
    }
    template = options["tokenizer_config"].get("chat_template")
    if (file := folder / "chat_template.jinja").is_file():
        template = file.read_text(encoding="utf-8", errors="replace")
    ends = options["generation_config"].get("eos_token_id", content.get("eos_token_id"))
    model = empty_model(config)
    fill_from_folder(model, folder, config)
    return CausalLM(model.eval(), tokenizer, config, ChatFormat(template), _ids(ends))


def _from_gguf(path: Path) -> CausalLM:
    file = GGUFFile(path)
    config = config_of_gguf(file.metadata, file.tensors, str(path))
    tokenizer = tokenizer_of_gguf(file.metadata, str(path))
    model = empty_model(config)
    fill_from_gguf(model, file, config)
    chat = ChatFormat(file.metadata.get("tokenizer.chat_template"))
    return CausalLM(model.eval(), tokenizer, config, chat, _ids(file.metadata.get("tokenizer.ggml.eos_token_id")))


def _ids(ends: object) -> frozenset[int]:
    """One id, several, or none."""
    return frozenset(end for end in (ends if isinstance(ends, list) else [ends]) if type(end) is int)
