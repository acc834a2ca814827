"""From a name or a folder to an encoder that is ready to use."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import torch

from course_kit.bert.checkpoint import read_checkpoint
from course_kit.bert.config import read_config, read_pooling
from course_kit.bert.finding import HubModel, find_encoder
from course_kit.bert.model import BertEncoder
from course_kit.bert.tokens import SentenceTokenizer

__all__ = ["load_encoder"]


def load_encoder(source: str | Path | HubModel, *, download: bool = True) -> BertEncoder:
    """A trained BERT, MiniLM, DistilBERT or RoBERTa in the course's own blocks, in eval mode and float32.

    Needs the libraries safetensors and tokenizers, and huggingface_hub for a download. Nothing but JSON and safetensors
    is read, so that no file can run code.

    Args:
        source: a folder with `config.json`, `model.safetensors` and `tokenizer.json`; a name, such as
            "all-MiniLM-L6-v2", which `find_encoder` looks for; or a `HubModel`.
        download: False for what is on this machine.

    Raises:
        ImportError: safetensors or tokenizers is not installed.
        EncoderUnavailable: no place has the name; the message says where it was looked for.
        FileNotFoundError: a file of the folder is missing.
        ValueError: a file is damaged, of another architecture or of another model. A tokenizer that is whole, but of a
            kind unknown to the installed library, is found out at the first sentence.
    """
    for library in ("safetensors", "tokenizers"):
        try:
            import_module(library)
        except ImportError:
            raise ImportError(
                f'load_encoder needs {library}, which is not installed: pip install "{library}"'
            ) from None
    folder = find_encoder(source, download=download)
    config, pooling = read_config(folder / "config.json"), read_pooling(folder)
    tokenizer = SentenceTokenizer.load(folder / "tokenizer.json", config)
    with torch.device("meta"):  # no memory and no random numbers for weights that are replaced at once
        encoder = BertEncoder(config, tokenizer, pooler=config.family != "distilbert", pooling=pooling)
    state = read_checkpoint(folder, config, {name: tuple(p.shape) for name, p in encoder.named_parameters()})
    if "pooler.weight" not in state:
        encoder.pooler = None
    encoder.load_state_dict(state, assign=True)
    return encoder.eval()
