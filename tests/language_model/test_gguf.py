"""GGUF files: each kind of tensor against numbers that the test packed itself, and every damage is one line."""

from __future__ import annotations

import random
import struct

import numpy as np
import pytest
import torch
from llama_oracle import llama
from torch.testing import assert_close

from course_kit.language_model import load_language_model
from course_kit.language_model.gguf import GGUFFile

from .conftest import KINDS, SIZES, entry, gguf_bytes, metadata_of, packed, tensors_of, text, write_gguf
from .test_loading import same_logits


@pytest.mark.parametrize("kind", KINDS)
def test_numbers_of_each_kind_are_those_that_were_packed(kind, tmp_path):
    rng = np.random.default_rng(11)
    packages = {f"t{n}": packed(kind, shape, rng) for n, shape in enumerate([(96,), (7, 32), (5, 64)])}
    shapes = [(96,), (7, 32), (5, 64)]
    tensors = {
        name: (KINDS[kind], shape, content)
        for (name, (content, _)), shape in zip(packages.items(), shapes, strict=True)
    }
    path = tmp_path / "a.gguf"
    path.write_bytes(gguf_bytes({"general.architecture": "none"}, tensors))
    file = GGUFFile(path)
    for (name, (_, numbers)), shape in zip(packages.items(), shapes, strict=True):
        found = file.read(name)
        assert (found.dtype, tuple(found.shape)) == (torch.float32, shape)
        assert_close(found, torch.from_numpy(np.ascontiguousarray(numbers)), rtol=1e-6, atol=1e-8)


def test_what_is_read_can_be_changed_and_the_file_stays(tmp_path):
    path = tmp_path / "a.gguf"
    path.write_bytes(gguf_bytes({}, {"t": (0, (3,), struct.pack("<3f", 1, 2, 3))}))
    before = path.read_bytes()
    GGUFFile(path).read("t").zero_()
    assert GGUFFile(path).read("t").tolist() == [1, 2, 3]
    assert path.read_bytes() == before


def test_metadata_of_all_types_are_read(tmp_path):
    wanted = {"a": "naïve", "b": 7, "c": 0.5, "d": True, "e": ["x", ""], "f": [3, -4], "g": [0.25]}
    path = tmp_path / "a.gguf"
    path.write_bytes(gguf_bytes(wanted, {}, version=2))
    assert GGUFFile(path).metadata == wanted


@pytest.mark.parametrize("kind", ["llama", "qwen2"])
@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize("quantised", ["Q4_0", "Q8_0"])
def test_a_file_gives_the_logits_of_transformers(kind, tied, quantised, tmp_path):
    theirs = write_gguf(tmp_path / "a.gguf", kind, quantised, tie_word_embeddings=tied)
    with torch.no_grad():
        same_logits(load_language_model(tmp_path / "a.gguf"), theirs)


# Damage


MODEL = llama(**SIZES)
METADATA = metadata_of("llama", "smollm", MODEL)
TENSORS = tensors_of("llama", MODEL, "Q8_0")
WHOLE = gguf_bytes(METADATA, TENSORS)
SMALL = {"t": (0, (2, 3), bytes(24))}


def with_metadata(**changes):
    changed = {**METADATA, **{name.replace("__", "."): value for name, value in changes.items()}}
    return gguf_bytes({name: value for name, value in changed.items() if value is not None}, TENSORS)


def raw(num_tensors=0, num_metadata=0, rest=b"", version=3):
    return b"GGUF" + struct.pack("<IQQ", version, num_tensors, num_metadata) + rest


def described(*axes, kind=0, offset=0, name="t"):
    return text(name) + struct.pack(f"<I{len(axes)}QIQ", len(axes), *axes, kind, offset)


HUGE = 2**60
DAMAGED = {
    "empty": (b"", "it ends after 0 bytes"),
    "three bytes": (b"GGU", "it ends after 3 bytes"),
    "another format": (b"PK\x03\x04" + bytes(60), "expected it to begin with GGUF"),
    "version 1": (raw(version=1), "expected version 2 or 3, got 1"),
    "big-endian": (b"GGUF" + struct.pack(">IQQ", 3, 0, 0), "expected version 2 or 3, got 50331648"),
    "cut in the head": (WHOLE[:4_000], "it ends after 4000 bytes"),
    "cut in the tensors": (WHOLE[:-1], r"the tensor .* does not fit \d+ bytes"),
    "tensors beyond all": (raw(HUGE), f"it announces {HUGE} entries"),
    "metadata beyond all": (raw(0, HUGE), f"it announces {HUGE} entries"),
    "a name beyond all": (raw(0, 1, struct.pack("<Q", HUGE) + bytes(20)), "in the middle of something longer"),
    "a list beyond all": (raw(0, 1, text("a") + struct.pack("<IIQ", 9, 4, HUGE)), f"it announces {HUGE} entries"),
    "texts beyond all": (raw(0, 1, text("a") + struct.pack("<IIQ", 9, 8, HUGE)), f"it announces {HUGE} entries"),
    "a list of lists": (raw(0, 1, text("a") + struct.pack("<IIQ", 9, 9, 1) + bytes(9)), "a list of the unknown type 9"),
    "a type beyond all": (raw(0, 1, text("a") + struct.pack("<I", 77) + bytes(9)), "a value of the unknown type 77"),
    "a name not in UTF-8": (raw(0, 1, struct.pack("<Q", 1) + b"\xff" + bytes(12)), "utf-8"),
    "axes beyond all": (raw(1, 0, text("t") + struct.pack("<I", 2**32 - 1) + bytes(32)), "it announces 4294967295"),
    "a tensor beyond all": (raw(1, 0, described(HUGE, HUGE) + bytes(64)), "does not fit"),
    "a tensor outside": (raw(1, 0, described(2, 3, offset=HUGE) + bytes(64)), "does not fit"),
    "a tensor without axes": (raw(1, 0, described() + bytes(64)), "does not fit"),
    "half a block": (raw(1, 0, described(33, kind=8) + bytes(64)), r"the tensor t of the axes \(33,\) does not fit"),
    "a kind that is known elsewhere": (
        raw(1, 0, described(256, kind=14) + bytes(256)),
        "the tensor t must be of the kind F32, F16, Q4_0, Q4_1, Q8_0, BF16, got Q6_K, which is unknown here",
    ),
    "a kind beyond all": (raw(1, 0, described(3, kind=99) + bytes(64)), "got number 99, which is unknown here"),
    "two of one name": (raw(2, 0, described(3) * 2 + bytes(64)), "two tensors of one name"),
    "an alignment of zero": (raw(0, 1, entry("general.alignment", 0)), "general.alignment must be at least 1, got 0"),
    "another architecture": (
        with_metadata(general__architecture="mamba"),
        "expected the architecture llama or qwen2, got 'mamba'",
    ),
    "no architecture": (with_metadata(general__architecture=None), "llama or qwen2, got None"),
    "a size missing": (with_metadata(llama__block_count=None), "is incomplete: expected llama.block_count"),
    "a size as text": (with_metadata(llama__block_count="two"), "num_layers must be a whole number"),
    "a layer too many": (with_metadata(llama__block_count=3), "lacks blk.2.attn_k.weight, .* and more"),
    "a layer too few": (with_metadata(llama__block_count=1), "has also blk.1.attn_k.weight"),
    "another width": (
        with_metadata(llama__feed_forward_length=32),
        r"must be floating-point \(32, 96\), got \(64, 96\)",
    ),
    "scaled positions": (with_metadata(llama__rope__scaling__type="yarn"), "scaling.type must be 'none' .* 'yarn'"),
    "narrow turns": (with_metadata(llama__rope__dimension_count=8), "rope.dimension_count must be 16 .* got 8"),
    "experts": (with_metadata(llama__expert_count=8), "llama.expert_count must be 0 or nothing, got 8"),
    "another tokenizer": (
        with_metadata(tokenizer__ggml__model="llama"),
        "the tokenizer must be gpt2 .* got 'llama' and 'smollm'; take the model as a folder",
    ),
    "texts cut otherwise": (with_metadata(tokenizer__ggml__pre="tekken"), "got 'gpt2' and 'tekken'"),
    "no tokens": (with_metadata(tokenizer__ggml__tokens=None), "is incomplete: expected"),
    "tokens a number": (with_metadata(tokenizer__ggml__tokens=7), "is incomplete: expected"),
    "no merges": (with_metadata(tokenizer__ggml__merges=None), "is damaged: expected different tokens"),
    "a merge of one": (with_metadata(tokenizer__ggml__merges=["ab"]), "is damaged: expected different tokens"),
    "a merge of unknown tokens": (with_metadata(tokenizer__ggml__merges=["中 文"]), "do not make a tokenizer"),
    "tokens of one name": (
        with_metadata(tokenizer__ggml__tokens=[*METADATA["tokenizer.ggml.tokens"][:-1], "a"]),
        "is damaged: expected different tokens",
    ),
    "types of fewer tokens": (with_metadata(tokenizer__ggml__token_type=[1]), "is damaged: expected different tokens"),
}


@pytest.mark.parametrize("name", DAMAGED)
def test_a_damaged_file_is_said_in_one_line(name, tmp_path, unchecked):
    content, message = DAMAGED[name]
    path = tmp_path / "a.gguf"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=message) as error:
        load_language_model(path)
    assert "\n" not in str(error.value)
    assert str(path) in str(error.value)


def test_a_file_cut_anywhere_or_with_any_byte_changed_is_read_or_refused(tmp_path):
    """What is announced is compared with what is there, so that nothing else is raised."""
    head = raw(1, 3, b"".join(entry(*e) for e in (("a", "text"), ("b", [1, 2]), ("c", ["x", "yz"]))))
    whole = head + described(2, 3) + bytes(64)
    path, rng = tmp_path / "a.gguf", random.Random(5)
    said = []
    for trial in range(400):
        content = bytearray(whole[:trial] if trial < len(whole) else whole)
        if trial >= len(whole):
            content[rng.randrange(len(whole))] = rng.randrange(256)
        path.write_bytes(content)
        try:
            GGUFFile(path)
        except ValueError as error:
            said.append(str(error))
    assert all("is not a GGUF file that can be read here" in sentence for sentence in said)
    assert len(said) > len(whole) - 65


def test_a_folder_or_a_missing_file_is_no_gguf_file(tmp_path):
    with pytest.raises(OSError, match="there is no such file"):
        GGUFFile(tmp_path / "none.gguf")
