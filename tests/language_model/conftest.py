"""Small random models as folders of `transformers` and as GGUF files, which are written here byte by byte."""

from __future__ import annotations

import json
import struct

import numpy as np
import pytest
import torch
from llama_oracle import llama
from tokenizers import AddedToken, Regex, Tokenizer, decoders, normalizers, pre_tokenizers
from tokenizers.models import BPE
from tokenizers.trainers import BpeTrainer

from course_kit.language_model.tokens import _QWEN2

SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
VOCABULARY = 307
# Heads of 16 features, and rows of whole blocks of 32 numbers.
SIZES = {"vocab_size": VOCABULARY, "hidden_size": 96, "intermediate_size": 64, "eos_token_id": 0}
KINDS = {"F32": 0, "F16": 1, "Q4_0": 2, "Q4_1": 3, "Q8_0": 8, "BF16": 30}
TEXT = "1984 cats sat on mats. It's 1984! Don't sit.\n\nA dog (1984 kg) ran\n\nafter 1984 cats, it's said!  A naïve cat"
CHATML = (
    "{% for message in messages %}{% if loop.first and messages[0]['role'] != 'system' %}{{ '<|im_start|>system\nYou "
    "are a cat<|im_end|>\n' }}{% endif %}{{'<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' "
    "+ '\n'}}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)
_NAMES = {
    "self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output", "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down", "input_layernorm": "attn_norm", "post_attention_layernorm": "ffn_norm",
    "model.embed_tokens": "token_embd", "model.norm": "output_norm", "lm_head": "output", "model.layers": "blk",
}  # fmt: skip


def byte_tokenizer(cut: str = "smollm") -> Tokenizer:
    """A byte-level tokenizer, cut as the families cut it; its merges do not respect any cut, so that each matters."""
    tokenizer = Tokenizer(BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    special = [AddedToken(token, special=True, normalized=False) for token in SPECIAL]
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = BpeTrainer(vocab_size=VOCABULARY, special_tokens=special, initial_alphabet=alphabet, show_progress=False)
    tokenizer.train_from_iterator([TEXT] * 3, trainer)
    before = {"smollm": [pre_tokenizers.Digits(individual_digits=True)], "gpt-2": []}
    before["qwen2"] = [pre_tokenizers.Split(Regex(_QWEN2), "isolated")]
    last = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=cut != "qwen2")
    tokenizer.pre_tokenizer, tokenizer.decoder = pre_tokenizers.Sequence([*before[cut], last]), decoders.ByteLevel()
    if cut == "qwen2":
        tokenizer.normalizer = normalizers.NFC()
    return tokenizer


def save(folder, kind="llama", *, template=CHATML, **changes):
    """A folder as `transformers` writes it, and the model."""
    model = llama(kind, **SIZES | changes)
    model.save_pretrained(folder)
    byte_tokenizer("qwen2" if kind == "qwen2" else "smollm").save(str(folder / "tokenizer.json"))
    if template:
        (folder / "chat_template.jinja").write_text(template)
    return model


def packed(kind: str, shape: tuple[int, ...], rng: np.random.Generator) -> tuple[bytes, np.ndarray]:
    """Random bytes of a tensor, and the numbers that they mean by ggml's definition of the kind."""
    if kind in ("F32", "F16"):
        numbers = rng.normal(0, 0.3, shape).astype("<f4" if kind == "F32" else "<f2")
        return numbers.tobytes(), numbers.astype(np.float32)
    if kind == "BF16":
        upper = rng.normal(0, 0.3, shape).astype("<f4").view("<u4") >> 16
        return upper.astype("<u2").tobytes(), (upper << 16).astype("<u4").view("<f4")
    n = int(np.prod(shape)) // 32
    scale = rng.uniform(0.01, 0.08, (n, 1)).astype("<f2")
    if kind == "Q8_0":
        scale = (scale / 16).astype("<f2")
        whole = rng.integers(-128, 128, (n, 32)).astype("i1")
        return np.hstack((scale.view("u1"), whole.view("u1"))).tobytes(), (scale.astype("f4") * whole).reshape(shape)
    whole = rng.integers(0, 16, (n, 32))
    halves = (whole[:, :16] + 16 * whole[:, 16:]).astype("u1")
    if kind == "Q4_0":
        numbers = scale.astype("f4") * (whole - 8).astype("f4")
        return np.hstack((scale.view("u1"), halves)).tobytes(), numbers.reshape(shape)
    least = rng.uniform(-0.6, 0, (n, 1)).astype("<f2")
    numbers = scale.astype("f4") * whole.astype("f4") + least.astype("f4")
    return np.hstack((scale.view("u1"), least.view("u1"), halves)).tobytes(), numbers.reshape(shape)


def text(value: str) -> bytes:
    """A text as the format has it: its length, then its bytes."""
    return struct.pack("<Q", len(value.encode())) + value.encode()


def entry(name: str, value) -> bytes:
    """A name, the type of its value, and the value."""

    def number(kind):
        return {str: 8, bool: 7, int: 5, float: 6}[kind]

    def written(value):
        return (
            text(value)
            if isinstance(value, str)
            else struct.pack({bool: "<?", int: "<i", float: "<f"}[type(value)], value)
        )

    if isinstance(value, list):
        start = struct.pack("<IIQ", 9, number(type(value[0])), len(value))
        return text(name) + start + b"".join(map(written, value))
    return text(name) + struct.pack("<I", number(type(value))) + written(value)


def gguf_bytes(metadata: dict, tensors: dict[str, tuple[int, tuple[int, ...], bytes]], version=3) -> bytes:
    """A whole file; a tensor is the number of its kind, its shape (rows first) and its bytes."""
    head = b"GGUF" + struct.pack("<IQQ", version, len(tensors), len(metadata))
    head += b"".join(entry(name, value) for name, value in metadata.items())
    data = b""
    for name, (kind, shape, content) in tensors.items():
        data += bytes(-len(data) % 32)
        head += text(name) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *reversed(shape), kind, len(data))
        data += content
    return head + bytes(-len(head) % 32) + data


def metadata_of(kind: str, cut: str, model) -> dict:
    """What a converter writes about a model and its tokenizer."""
    config, tokenizer = model.config, byte_tokenizer(cut)
    vocabulary = sorted(tokenizer.get_vocab(), key=tokenizer.get_vocab().get)
    merges = [" ".join(pair) for pair in json.loads(tokenizer.to_str())["model"]["merges"]]
    return {
        "general.architecture": kind,
        f"{kind}.block_count": config.num_hidden_layers,
        f"{kind}.context_length": config.max_position_embeddings,
        f"{kind}.embedding_length": config.hidden_size,
        f"{kind}.feed_forward_length": config.intermediate_size,
        f"{kind}.attention.head_count": config.num_attention_heads,
        f"{kind}.attention.head_count_kv": config.num_key_value_heads,
        f"{kind}.attention.layer_norm_rms_epsilon": config.rms_norm_eps,
        f"{kind}.rope.freq_base": 500.0,
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": cut,
        "tokenizer.ggml.tokens": vocabulary,
        "tokenizer.ggml.token_type": [3 if token in SPECIAL else 1 for token in vocabulary],
        "tokenizer.ggml.merges": merges,
        "tokenizer.ggml.eos_token_id": 0,
        "tokenizer.chat_template": CHATML,
    }


def tensors_of(kind: str, model, quantised: str) -> dict:
    """Random tensors of a kind (norms and biases in F32), whose numbers the model gets too."""
    rng, found = np.random.default_rng(7), {}
    for name, parameter in model.named_parameters():
        stored = quantised if parameter.dim() == 2 else "F32"
        content, numbers = packed(stored, tuple(parameter.shape), rng)
        ours = name
        for theirs, short in _NAMES.items():
            ours = ours.replace(theirs, short)
        found[ours] = KINDS[stored], tuple(parameter.shape), content
        values = torch.from_numpy(np.ascontiguousarray(numbers, np.float32))
        if kind == "llama" and ("q_proj" in name or "k_proj" in name):  # converters turn its rows for interleaved pairs
            values = values.unflatten(0, (-1, 8, 2)).transpose(1, 2).flatten(0, 2)
        parameter.data = values
    return found


def write_gguf(path, kind="llama", quantised="Q8_0", *, metadata=(), **changes):
    """A GGUF file, and the model of `transformers` with its numbers."""
    model = llama(kind, **SIZES | changes)
    cut = "qwen2" if kind == "qwen2" else "smollm"
    tensors = tensors_of(kind, model, quantised)
    path.write_bytes(gguf_bytes({**metadata_of(kind, cut, model), **dict(metadata)}, tensors))
    return model


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    """A small llama in Hugging Face form, not to be changed."""
    torch.manual_seed(5)
    folder = tmp_path_factory.mktemp("llama")
    save(folder)
    return folder
