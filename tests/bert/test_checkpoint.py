"""Every damage to a folder is one clear error, before anything is loaded; whole ones load in each form they come in."""

import json
import math
import pickle
import sys

import pytest
import torch
from oracles import CLOSE
from safetensors.torch import load_file, save_file
from transformers import BertForMaskedLM

from course_kit.bert import load_encoder
from course_kit.bert.config import read_config

from .conftest import MODELS, WORDS, save_model, save_tokenizer

LAYER = "encoder.layer.1.attention.self.query.weight"


@pytest.fixture
def folder(tmp_path):
    """A small BERT."""
    return save_model(MODELS["bert"](), tmp_path)


def config(**changes):
    """Change options of config.json; None takes one out."""

    def change(folder):
        content = json.loads((folder / "config.json").read_text()) | changes
        content = {name: value for name, value in content.items() if value is not None}
        (folder / "config.json").write_text(json.dumps(content))

    return change


def tensors(change):
    """Change the tensors in model.safetensors."""

    def rewrite(folder):
        state = load_file(folder / "model.safetensors")
        state = {name: tensor.clone() for name, tensor in state.items()}
        change(state)
        save_file(state, folder / "model.safetensors")

    return rewrite


def file(name, content):
    """Replace a file's bytes; a number keeps so many of them, None removes the file."""

    def change(folder):
        path = folder / name
        if content is None:
            path.unlink()
        else:
            path.write_bytes(path.read_bytes()[:content] if isinstance(content, int) else content)

    return change


def tokenizer(**changes):
    """Change entries of tokenizer.json."""

    def change(folder):
        path = folder / "tokenizer.json"
        path.write_text(json.dumps(json.loads(path.read_text()) | changes))

    return change


def renamed(new):
    """Keep the weights under another file name only."""
    return lambda folder: (folder / "model.safetensors").rename(folder / new)


def relabel(old, new):
    return tensors(lambda state: state.__setitem__(new, state.pop(old)))


DAMAGED = {
    "config missing": (file("config.json", None), FileNotFoundError, "config.json is missing"),
    "config cut": (file("config.json", 40), ValueError, "config.json is damaged: expected JSON"),
    "config a list": (file("config.json", b"[]"), ValueError, "expected a JSON object, got list"),
    "config of lists in lists": (file("config.json", b"[" * 100_000), ValueError, "config.json is damaged"),
    "config with a long number": (
        file("config.json", b'{"a": ' + b"1" * 5000 + b"}"),
        ValueError,
        "config.json is damaged",
    ),
    "config binary": (file("config.json", b"\xff\xfe\x00"), ValueError, "config.json is damaged"),
    "another architecture": (
        config(model_type="gpt2"),
        ValueError,
        r"expected the architecture \(model_type\) bert, distilbert, roberta, got 'gpt2'",
    ),
    "an architecture in a list": (config(model_type=["bert"]), ValueError, r"got \['bert'\]"),
    "no architecture": (config(model_type=None), ValueError, "got None"),
    "size missing": (config(hidden_size=None), ValueError, "is incomplete: expected hidden_size"),
    "size a text": (config(hidden_size="21"), ValueError, "d_model must be an integer of at least 1, got '21'"),
    "size 0": (config(num_hidden_layers=0), ValueError, "num_layers must be an integer of at least 1, got 0"),
    "heads": (config(num_attention_heads=4), ValueError, "num_heads must divide d_model, got 4 for d_model = 21"),
    "activation": (config(hidden_act="swish9"), ValueError, "activation must be one of gelu, .*, got 'swish9'"),
    "activation a list": (config(hidden_act=[]), ValueError, r"activation must be one of gelu, .*, got \[\]"),
    "layers without end": (
        config(num_hidden_layers=10**9),
        ValueError,
        "num_layers must be an integer of at most 1000, got 1000000000",
    ),
    "a size beyond memory": (
        config(vocab_size=2**70),
        ValueError,
        "vocab_size must be an integer of at most 10000000, got",
    ),
    "eps infinite": (config(layer_norm_eps=math.inf), ValueError, "norm_eps must be positive and finite, got inf"),
    "eps": (config(layer_norm_eps=0), ValueError, "norm_eps must be positive and finite, got 0"),
    "dropout": (config(hidden_dropout_prob=1.5), ValueError, r"dropout must be a probability in \[0, 1\), got 1.5"),
    "padding": (config(pad_token_id=37), ValueError, "pad_id must be a token of the vocabulary, 0 … 36, got 37"),
    "positions inside attention": (
        config(position_embedding_type="relative_key"),
        ValueError,
        "position_embedding_type must be 'absolute', got 'relative_key'",
    ),
    "a decoder": (config(is_decoder=True), ValueError, "is_decoder must be False, got True"),
    "weights missing": (file("model.safetensors", None), FileNotFoundError, "has no model.safetensors; fetch it"),
    "weights empty": (file("model.safetensors", b""), ValueError, "model.safetensors is damaged"),
    "weights cut in the header": (file("model.safetensors", 100), ValueError, "not a whole safetensors file"),
    "weights cut at the end": (file("model.safetensors", -1), ValueError, "not a whole safetensors file"),
    "weights an error page": (file("model.safetensors", b"<html>Not found</html>"), ValueError, "is damaged"),
    "weights in parts": (
        renamed("model.safetensors.index.json"),
        FileNotFoundError,
        "has its weights in several files; expected all of them in one model.safetensors",
    ),
    "a tensor missing": (
        tensors(lambda state: state.pop(LAYER)),
        ValueError,
        f"bert encoder of 2 layers .* but it lacks {LAYER}; take both files from one model",
    ),
    "a layer missing": (config(num_hidden_layers=3), ValueError, r"lacks encoder\.layer\.2\..*, .* and 13 more"),
    "a layer too many": (config(num_hidden_layers=1), ValueError, r"has also encoder\.layer\.1\..* and 13 more"),
    "a tensor unexpected": (
        tensors(lambda state: state.update({"encoder.extra": torch.ones(1)})),
        ValueError,
        "has also encoder.extra;",
    ),
    "half a pooler": (tensors(lambda state: state.pop("pooler.dense.bias")), ValueError, "lacks pooler.dense.bias"),
    "renamed": (relabel(LAYER, "encoder.query"), ValueError, f"lacks {LAYER} and has also encoder.query"),
    "another shape": (
        tensors(lambda state: state.update({LAYER: state[LAYER][:-1].contiguous()})),
        ValueError,
        rf"{LAYER} must be floating-point \(21, 21\) after config.json, got F32 \(20, 21\)",
    ),
    "integers": (tensors(lambda state: state.update({LAYER: state[LAYER].int()})), ValueError, r"got I32 \(21, 21\)"),
    "other positions": (
        tensors(lambda state: state.update({"embeddings.position_ids": torch.arange(1, 24)[None]})),
        ValueError,
        "embeddings.position_ids must count from 0",
    ),
    "twice": (
        tensors(lambda state: state.update({"embeddings.LayerNorm.gamma": torch.ones(21)})),
        ValueError,
        "the same tensor twice",
    ),
    "tokenizer missing": (file("tokenizer.json", None), FileNotFoundError, "tokenizer.json is missing"),
    "tokenizer cut": (file("tokenizer.json", 200), ValueError, "tokenizer.json is damaged"),
    "tokenizer binary": (file("tokenizer.json", b"\xff\xfe\x00"), ValueError, "expected UTF-8"),
    "tokenizer without vocabulary": (tokenizer(model={}), ValueError, "expected a vocabulary in JSON"),
    "tokenizer of lists in lists": (file("tokenizer.json", b"[" * 100_000), ValueError, "tokenizer.json is damaged"),
    "tokenizer of nothing": (tokenizer(model={"vocab": {}}, added_tokens=[]), ValueError, "is damaged"),
    "tokenizer of another model": (
        lambda folder: save_tokenizer(folder, [*WORDS, "five", "words", "too", "many", "here"]),
        ValueError,
        "must have at most the model's 37 tokens, got 38",
    ),
    "tokenizer that adds nothing": (
        tokenizer(post_processor=None),
        ValueError,
        r"must add special tokens such as \[CLS\] and \[SEP\]",
    ),
}


@pytest.mark.parametrize(("damage", "kind", "message"), DAMAGED.values(), ids=DAMAGED)
def test_damage_is_one_clear_error(folder, damage, kind, message, unchecked):
    load_encoder(folder)  # it was whole
    damage(folder)
    with pytest.raises(kind, match=message) as error:
        load_encoder(folder)
    assert str(folder) in str(error.value)
    assert "\n" not in str(error.value)


def test_a_tokenizer_of_an_unknown_kind_is_found_out_at_the_first_sentence(folder):
    tokenizer(normalizer={"type": "FromTheFuture"})(folder)
    encoder = load_encoder(folder)
    with pytest.raises(ValueError, match=r"tokenizer\.json is not a tokenizer that can be read here"):
        encoder.tokenize(["a"])


class Trap:
    """A pickle that writes a file when it is opened."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return open, (str(self.path), "w")


@pytest.mark.parametrize("name", ["pytorch_model.bin", "model.pt", "model.ckpt"])
def test_a_pickle_is_never_opened(folder, name):
    (folder / "model.safetensors").unlink()
    with (folder / name).open("wb") as out:
        pickle.dump(Trap(folder / "opened"), out)
    with pytest.raises(FileNotFoundError, match=f"has no model.safetensors, only {name}, which is never opened here"):
        load_encoder(folder)
    assert not (folder / "opened").exists()


# Whole ones


def same(encoder, other):
    """Both give the same hidden states."""
    batch = other.tokenize(["a dog b", "c"])
    torch.testing.assert_close(encoder(batch).hidden, other(batch).hidden, rtol=0.0, atol=0.0)


def test_heads_are_left_out_and_a_missing_pooler_is_none(tmp_path):
    theirs = BertForMaskedLM(MODELS["bert"]().config)
    encoder = load_encoder(save_model(theirs, tmp_path)).double()
    assert any(name.startswith("cls.") for name in load_file(tmp_path / "model.safetensors"))
    batch = encoder.tokenize(["a dog b", "c"])
    ours = encoder(batch)
    expected = theirs.double().bert(batch.token_ids, batch.mask.long(), batch.segment_ids).last_hidden_state
    torch.testing.assert_close(ours.last, expected, **CLOSE)
    assert encoder.pooler is None
    assert ours.pooled is None


@pytest.mark.parametrize(
    "change",
    [
        relabel("embeddings.LayerNorm.weight", "embeddings.LayerNorm.gamma"),
        relabel("encoder.layer.1.output.LayerNorm.bias", "encoder.layer.1.output.LayerNorm.beta"),
        tensors(lambda state: state.update({"embeddings.position_ids": torch.arange(23)[None]})),
        tensors(lambda state: state.update({"embeddings.token_type_ids": torch.zeros(1, 23, dtype=torch.int64)})),
        tensors(lambda state: state.update({n: t.double() for n, t in list(state.items())})),
        config(pad_token_id=None, type_vocab_size=None, hidden_act=None, layer_norm_eps=None),
    ],
    ids=["gamma", "beta", "positions", "segments", "float64", "defaults"],
)
def test_forms_in_which_checkpoints_come(folder, change):
    before = load_encoder(folder)
    change(folder)
    encoder = load_encoder(folder)
    assert {p.dtype for p in encoder.parameters()} == {torch.float32}
    same(encoder, before)


def test_padding_that_config_leaves_out_is_the_familys_own(family, tmp_path):
    save_model(MODELS[family](), tmp_path)
    config(pad_token_id=None)(tmp_path)
    assert read_config(tmp_path / "config.json").pad_id == type(MODELS[family]().config)().pad_token_id


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_becomes_float32(folder, dtype):
    before = load_encoder(folder)
    tensors(lambda state: state.update({n: t.to(dtype) for n, t in list(state.items())}))(folder)
    encoder = load_encoder(folder)
    assert {p.dtype for p in encoder.parameters()} == {torch.float32}
    same(encoder, before.to(dtype).float())


def test_loading_draws_no_random_numbers_and_keeps_the_default_dtype(folder):
    state = torch.get_rng_state()
    load_encoder(folder)
    assert torch.equal(torch.get_rng_state(), state)
    assert all(p.requires_grad for p in load_encoder(folder).parameters())


@pytest.mark.parametrize("library", ["safetensors", "tokenizers"])
def test_a_missing_library_is_named(folder, monkeypatch, library):
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(ImportError, match=f'load_encoder needs {library}, .* pip install "{library}"'):
        load_encoder(folder)
