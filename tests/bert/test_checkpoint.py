"""Every damage to a folder is one clear error, before anything is loaded; whole ones load in each form they come in."""

import json
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


def relabel(old, new):
    return tensors(lambda state: state.__setitem__(new, state.pop(old)))


MISSING = {
    "config": (file("config.json", None), "config.json is missing"),
    "weights": (file("model.safetensors", None), "has no model.safetensors; fetch it"),
    "weights in parts": (
        lambda folder: (folder / "model.safetensors").rename(folder / "model.safetensors.index.json"),
        "has its weights in several files; expected all of them in one model.safetensors",
    ),
    "tokenizer": (file("tokenizer.json", None), "tokenizer.json is missing"),
}
SHORTER = tensors(lambda state: state.update({LAYER: state[LAYER][:-1].contiguous()}))
POSITIONS = tensors(lambda state: state.update({"embeddings.position_ids": torch.arange(1, 24)[None]}))
TOO_MANY = [*WORDS, "five", "words", "too", "many", "here"]
DAMAGED = {
    "config cut": (file("config.json", 40), "config.json is damaged: expected JSON"),
    "config a list": (file("config.json", b"[]"), "expected a JSON object, got list"),
    "config of lists in lists": (file("config.json", b"[" * 100_000), "config.json is damaged"),
    "an architecture in a list": (config(model_type=["bert"]), r"\(model_type\) bert, distilbert, .*, got \['bert'\]"),
    "another architecture": (config(model_type="gpt2"), "got 'gpt2'; only the BERT family is loaded here"),
    "size missing": (config(hidden_size=None), "is incomplete: expected hidden_size"),
    "size a text": (config(hidden_size="21"), "d_model must be an integer of at least 1, got '21'"),
    "positions inside attention": (
        config(position_embedding_type="relative_key"),
        "position_embedding_type must be 'absolute', got 'relative_key'",
    ),
    "a decoder": (config(is_decoder=True), "is_decoder must be False, got True"),
    "weights empty": (file("model.safetensors", b""), "model.safetensors is damaged"),
    "weights cut": (file("model.safetensors", -1), "model.safetensors is damaged: it is not a whole safetensors file"),
    "a tensor missing": (
        tensors(lambda state: state.pop(LAYER)),
        f"bert encoder of 2 layers .* but it lacks {LAYER}; take both files from one model",
    ),
    "a layer missing": (config(num_hidden_layers=3), r"lacks encoder\.layer\.2\..*, .* and 13 more"),
    "a layer too many": (config(num_hidden_layers=1), r"has also encoder\.layer\.1\..* and 13 more"),
    "half a pooler": (tensors(lambda state: state.pop("pooler.dense.bias")), "lacks pooler.dense.bias"),
    "renamed": (relabel(LAYER, "encoder.query"), f"lacks {LAYER} and has also encoder.query"),
    "another shape": (SHORTER, rf"{LAYER} must be floating-point \(21, 21\) after .*, got F32 \(20, 21\)"),
    "integers": (tensors(lambda state: state.update({LAYER: state[LAYER].int()})), r"got I32 \(21, 21\)"),
    "other positions": (POSITIONS, "embeddings.position_ids must count from 0"),
    "twice": (
        tensors(lambda state: state.update({"embeddings.LayerNorm.gamma": torch.ones(21)})),
        "the same tensor twice, as embeddings.LayerNorm.(gamma|weight) and",
    ),
    "tokenizer cut": (file("tokenizer.json", 200), "tokenizer.json is damaged"),
    "tokenizer binary": (file("tokenizer.json", b"\xff\xfe\x00"), "expected UTF-8"),
    "tokenizer without vocabulary": (tokenizer(model={}), "expected a vocabulary in JSON"),
    "tokenizer of lists in lists": (file("tokenizer.json", b"[" * 100_000), "tokenizer.json is damaged"),
    "tokenizer of nothing": (tokenizer(model={"vocab": {}}, added_tokens=[]), "is damaged"),
    "tokenizer of another model": (
        lambda folder: save_tokenizer(folder, TOO_MANY),
        "must have at most the model's 37 tokens, got 38",
    ),
    "tokenizer that adds nothing": (tokenizer(post_processor=None), r"must add special tokens such as \[CLS\] and"),
}


@pytest.mark.parametrize("name", [*MISSING, *DAMAGED])
def test_damage_is_one_clear_error(folder, name, unchecked):
    damage, message = MISSING.get(name) or DAMAGED[name]
    damage(folder)
    with pytest.raises(FileNotFoundError if name in MISSING else ValueError, match=message) as error:
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


def cast(dtype):
    return tensors(lambda state: state.update({n: t.to(dtype) for n, t in list(state.items())}))


@pytest.mark.parametrize(
    ("change", "dtype"),
    [
        (relabel("embeddings.LayerNorm.weight", "embeddings.LayerNorm.gamma"), torch.float32),
        (relabel("encoder.layer.1.output.LayerNorm.bias", "encoder.layer.1.output.LayerNorm.beta"), torch.float32),
        (tensors(lambda state: state.update({"embeddings.position_ids": torch.arange(23)[None]})), torch.float32),
        (tensors(lambda state: state.update({"embeddings.token_type_ids": torch.zeros(1, 23).long()})), torch.float32),
        (config(pad_token_id=None, type_vocab_size=None, hidden_act=None, layer_norm_eps=None), torch.float32),
        *((cast(dtype), dtype) for dtype in (torch.float64, torch.float16, torch.bfloat16)),
    ],
    ids=["gamma", "beta", "positions", "segments", "defaults", "float64", "float16", "bfloat16"],
)
def test_forms_in_which_checkpoints_come(folder, change, dtype):
    """All become float32, exactly, without drawing random numbers."""
    before = load_encoder(folder).to(dtype).float()
    change(folder)
    state = torch.get_rng_state()
    encoder = load_encoder(folder)
    assert torch.equal(torch.get_rng_state(), state)
    assert {(p.dtype, p.requires_grad) for p in encoder.parameters()} == {(torch.float32, True)}
    batch = encoder.tokenize(["a dog b", "c"])
    torch.testing.assert_close(encoder(batch).hidden, before(batch).hidden, rtol=0.0, atol=0.0)


def test_padding_that_config_leaves_out_is_the_familys_own(family, tmp_path):
    save_model(MODELS[family](), tmp_path)
    config(pad_token_id=None)(tmp_path)
    assert read_config(tmp_path / "config.json").pad_id == type(MODELS[family]().config)().pad_token_id


@pytest.mark.parametrize("library", ["safetensors", "tokenizers"])
def test_a_missing_library_is_named(folder, monkeypatch, library):
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(ImportError, match=f'load_encoder needs {library}, .* pip install "{library}"'):
        load_encoder(folder)
