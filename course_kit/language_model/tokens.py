"""The tokenizer of a language model, from `tokenizer.json` or the vocabulary of a GGUF file, and its chat format."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tokenizers import Tokenizer

__all__ = ["ChatFormat", "tokenizer_of_folder", "tokenizer_of_gguf"]

# How texts are cut before byte-pair encoding; GGUF files name the way, and Hugging Face's have it as a pattern.
_QWEN2 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
_CUTS = ("gpt-2", "qwen2", "smollm")
_CONTROL, _USER_DEFINED = 3, 4  # types of tokens that are not cut; those of control are left out of decoded text

# The template of ChatML without spaces; most have a first message of the system with a text of their own.
_DEFAULT = "{%ifloop.firstandmessages[0]['role']!='system'%}{{'<|im_start|>system\nTEXT<|im_end|>\n'}}{%endif%}"
_TEMPLATE = (
    "{%formessageinmessages%}DEFAULT{{'<|im_start|>'+message['role']+'\n'+message['content']+'<|im_end|>'+'\n'}}"
    "{%endfor%}{%ifadd_generation_prompt%}{{'<|im_start|>assistant\n'}}{%endif%}"
)
_OPTIONAL = re.escape(_DEFAULT).replace("TEXT", "[^'{}<>]*")
_CHATML = re.compile(re.escape(_TEMPLATE).replace("DEFAULT", f"({_OPTIONAL})?"))


def tokenizer_of_folder(folder: Path, vocab_size: int) -> Tokenizer:
    """The tokenizer in a `tokenizer.json`.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: it is damaged, or has more tokens than the model.
    """
    from tokenizers import Tokenizer

    path = folder / "tokenizer.json"
    if not path.is_file():
        raise FileNotFoundError(f"{path} is missing; fetch it, or write it with save_pretrained of the fast tokenizer")
    try:
        tokenizer = Tokenizer.from_file(str(path))
    except Exception as error:  # the library raises nothing more specific
        raise ValueError(f"{path} is damaged or of an unknown kind ({error}); fetch it again") from None
    tokenizer.no_padding()
    tokenizer.no_truncation()
    largest = max(tokenizer.get_vocab().values(), default=-1)
    if not 0 <= largest < vocab_size:
        raise ValueError(f"{path} must have ids below {vocab_size}, got {largest}; take that of the model")
    return tokenizer


def tokenizer_of_gguf(metadata: Mapping[str, Any], name: str) -> Tokenizer:
    """The byte-level tokenizer that the metadata of a GGUF file describe.

    Raises:
        ValueError: they are incomplete or damaged, or the tokenizer is of another kind.
    """
    from tokenizers import AddedToken, Regex, Tokenizer, decoders, normalizers, pre_tokenizers, processors
    from tokenizers.models import BPE

    kind, cut = metadata.get("tokenizer.ggml.model"), metadata.get("tokenizer.ggml.pre")
    if kind != "gpt2" or cut not in _CUTS:
        raise ValueError(
            f"{name}: the tokenizer must be gpt2 with texts cut as {', '.join(_CUTS)}, got {kind!r:.60} and "
            f"{cut!r:.60}; take the model as a folder with tokenizer.json"
        )
    tokens, merges, types = (metadata.get(f"tokenizer.ggml.{part}") for part in ("tokens", "merges", "token_type"))
    lists = all(isinstance(each, list) for each in (tokens, merges, types))
    pairs = [tuple(merge.split(" ")) if isinstance(merge, str) else () for merge in merges] if lists else []
    if not lists or len(types) != len(tokens) or len(set(tokens)) != len(tokens) or {*map(len, pairs)} - {2}:
        raise ValueError(
            f"{name} is damaged: expected different tokens with a type each, and merges of two; fetch it again"
        )
    try:
        tokenizer = Tokenizer(BPE({token: i for i, token in enumerate(tokens)}, pairs))
    except Exception as error:  # the library raises nothing more specific
        raise ValueError(f"{name}: tokens and merges do not make a tokenizer ({error}); fetch it again") from None
    bytes_ = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=cut != "qwen2")
    before = {
        "smollm": [pre_tokenizers.Digits(individual_digits=True)],
        "qwen2": [pre_tokenizers.Split(Regex(_QWEN2), "isolated")],
    }
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([*before.get(cut, []), bytes_])
    tokenizer.decoder = decoders.ByteLevel()
    if cut == "qwen2":
        tokenizer.normalizer = normalizers.NFC()
    for token, its_type in zip(tokens, types, strict=True):
        if its_type in (_CONTROL, _USER_DEFINED):
            tokenizer.add_tokens([AddedToken(token, special=its_type == _CONTROL, normalized=False)])
    bos = metadata.get("tokenizer.ggml.bos_token_id")
    if metadata.get("tokenizer.ggml.add_bos_token") and type(bos) is int and 0 <= bos < len(tokens):
        template = {"single": f"{tokens[bos]} $A", "special_tokens": [(tokens[bos], bos)]}
        tokenizer.post_processor = processors.TemplateProcessing(**template)
    return tokenizer


class ChatFormat:
    """ChatML: each message between `<|im_start|>` with a role and `<|im_end|>`, and a first message of the system.

    Files bring their format as a template for the library Jinja, which is not run here: it is compared with those of
    ChatML, and others are refused.

    Args:
        template: of the file; None where it has none.

    Source: the model cards of SmolLM2 and Qwen.
    """

    def __init__(self, template: object):
        self.template = template
        text = template.replace("\\n", "\n") if isinstance(template, str) else ""
        self.is_known = _CHATML.fullmatch(re.sub("[ \t]", "", text)) is not None
        found = re.search(r"<\|im_start\|>system\n(.*?)<\|im_end\|>", text) if self.is_known else None
        self.system = found[1] if found else None

    def prompt(self, messages: str | Sequence[Mapping[str, str]]) -> str:
        """The text that a model continues with its answer to a question, or to the last of several messages.

        Args:
            messages: a question, or {"role": "system", "user" or "assistant", "content": text} for each message.

        Raises:
            TypeError: a message is something else.
            ValueError: the format of the model is unknown, or there is no message.
        """
        if not self.is_known:
            came = "none" if self.template is None else f"{self.template!r:.80} …"
            raise ValueError(
                f"the chat template must be ChatML, got {came}; write the prompt in the model's own format"
            )
        messages = [{"role": "user", "content": messages}] if isinstance(messages, str) else list(messages)
        if not messages:
            raise ValueError("messages must have at least one, got none; pass a question")
        for message in messages:
            if not isinstance(message, Mapping) or not all(
                isinstance(message.get(k), str) for k in ("role", "content")
            ):
                raise TypeError(f"messages must have a role and a content each, got {message!r:.60}")
        if self.system is not None and messages[0]["role"] != "system":
            messages = [{"role": "system", "content": self.system}, *messages]
        written = [f"<|im_start|>{message['role']}\n{message['content']}<|im_end|>\n" for message in messages]
        return "".join(written) + "<|im_start|>assistant\n"
