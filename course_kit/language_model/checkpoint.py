"""The weights of a language model under the course's names, from safetensors or GGUF, whose names differ.

Rotary positions turn pairs of features. The course pairs 2i and 2i + 1, as GGUF does for llama; the others pair i and
i + d / 2, so the rows of their queries and keys come in another order.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path

from torch import Tensor, nn

from course_kit.bert.checkpoint import absent_weights
from course_kit.bert.config import read_json
from course_kit.language_model.config import LanguageModelConfig
from course_kit.language_model.gguf import GGUFFile
from course_lib._typing import Float
from course_lib.language_model import LanguageModel

__all__ = ["fill_from_folder", "fill_from_gguf", "half_split_to_pairs", "their_state"]

# Our name; that of a folder in Hugging Face form; that of a GGUF file. {n} is the number of a layer.
_MODULES = (
    ("embedding.weight", "model.embed_tokens.weight", "token_embd.weight"),
    ("norm.gain", "model.norm.weight", "output_norm.weight"),
    ("output.weight", "lm_head.weight", "output.weight"),
)
_LAYER = (
    ("attention.q_proj", "self_attn.q_proj", "attn_q"),
    ("attention.k_proj", "self_attn.k_proj", "attn_k"),
    ("attention.v_proj", "self_attn.v_proj", "attn_v"),
    ("attention.out_proj", "self_attn.o_proj", "attn_output"),
    ("feed_forward.gate", "mlp.gate_proj", "ffn_gate"),
    ("feed_forward.up", "mlp.up_proj", "ffn_up"),
    ("feed_forward.down", "mlp.down_proj", "ffn_down"),
    ("norm1", "input_layernorm", "attn_norm"),
    ("norm2", "post_attention_layernorm", "ffn_norm"),
)
_FLOATS = ("F16", "BF16", "F32", "F64")


def half_split_to_pairs(rows: Float[Tensor, "rows *rest"], num_heads: int) -> Float[Tensor, "rows *rest"]:
    """Rows of a projection whose heads pair feature i with i + d / 2, in the order that pairs 2i with 2i + 1."""
    heads = rows.unflatten(0, (num_heads, 2, -1))  # (H, 2, d / 2, …)
    return heads.transpose(1, 2).flatten(0, 2)


def their_state(model: LanguageModel, config: LanguageModelConfig) -> dict[str, Tensor]:
    """The parameters of a model under the names, and in the order, of `transformers`."""
    state = {}
    for ours, value in model.state_dict().items():
        if ".q_proj." in ours or ".k_proj." in ours:
            value = value.unflatten(0, (-1, config.d_head // 2, 2)).transpose(1, 2).flatten(0, 2)
        state[_theirs(ours, 1)] = value
    return state


def fill_from_folder(model: LanguageModel, folder: Path, config: LanguageModelConfig) -> None:
    """Give a model on the device "meta" its parameters from `model.safetensors`, whole or in several files.

    Raises:
        FileNotFoundError: a file is missing.
        ValueError: a file is damaged, or a tensor is missing, unexpected, or of another shape or type.
    """
    from safetensors import SafetensorError, safe_open

    with ExitStack() as stack:
        homes = {}
        for path in _files(folder):
            try:
                file = stack.enter_context(safe_open(path, framework="pt"))
            except (SafetensorError, OSError) as error:
                raise ValueError(f"{path} is damaged: it is not a whole safetensors file ({error})") from None
            homes |= dict.fromkeys(file.keys(), file)
        # Frequencies that old versions saved; and a second copy of a table that is shared.
        ignored = {name for name in homes if name.endswith("rotary_emb.inv_freq")}
        ignored |= {"lm_head.weight"} if config.tied else set()
        shapes = {}
        for name, file in homes.items():
            part = file.get_slice(name)
            kind = "" if part.get_dtype() in _FLOATS else f" {part.get_dtype()}"
            shapes[name] = (*part.get_shape(), *kind.split())  # a type that is no float fits no shape
        _fill(model, config, 1, {n: s for n, s in shapes.items() if n not in ignored}, folder,
              lambda name: homes[name].get_tensor(name).float(), True)  # fmt: skip


def fill_from_gguf(model: LanguageModel, file: GGUFFile, config: LanguageModelConfig) -> None:
    """Give a model on the device "meta" its parameters from a GGUF file, dequantised to float32.

    Raises:
        ValueError: a tensor is missing, unexpected, or of another shape.
    """
    shapes = {name: tensor.shape for name, tensor in file.tensors.items()}
    _fill(model, config, 2, shapes, file.path, file.read, config.family != "llama")


def _fill(
    model: LanguageModel,
    config: LanguageModelConfig,
    column: int,
    found: Mapping[str, tuple],
    path: Path,
    read: Callable[[str], Tensor],
    half_split: bool,
) -> None:
    wanted = {name: parameter.shape for name, parameter in model.named_parameters()}
    names = {ours: _theirs(ours, column) for ours in wanted}
    missing, unexpected = sorted(set(names.values()) - set(found)), sorted(set(found) - set(names.values()))
    if missing or unexpected:
        parts = [f"{which} {', '.join(those[:3])}{' and more' * (len(those) > 3)}"
                 for which, those in (("lacks", missing), ("has also", unexpected)) if those]  # fmt: skip
        raise ValueError(
            f"{path} must hold the tensors of a {config.family} model of {config.num_layers} layers, but it "
            f"{' and '.join(parts)}; take all files from one model, of an architecture without further tensors"
        )
    for ours, shape in wanted.items():
        if found[names[ours]] != tuple(shape):
            raise ValueError(
                f"{path}: {names[ours]} must be floating-point {tuple(shape)}, got {found[names[ours]]}; take all "
                f"files from one model"
            )
    for ours in wanted:
        value = read(names[ours])
        if half_split and (".q_proj." in ours or ".k_proj." in ours):
            value = half_split_to_pairs(value, config.num_heads if ".q_proj." in ours else config.num_kv_heads)
        owner, _, last = ours.rpartition(".")
        setattr(model.get_submodule(owner), last, nn.Parameter(value))


def _theirs(ours: str, column: int) -> str:
    for names in _MODULES:
        if ours == names[0]:
            return names[column]
    _, number, rest = ours.split(".", 2)
    module, _, last = rest.rpartition(".")
    theirs = next(names[column] for names in _LAYER if names[0] == module)
    return f"{('', 'model.layers', 'blk')[column]}.{number}.{theirs}.{'bias' if last == 'bias' else 'weight'}"


def _files(folder: Path) -> list[Path]:
    if (whole := folder / "model.safetensors").is_file():
        return [whole]
    index = folder / "model.safetensors.index.json"
    if not index.is_file():
        raise FileNotFoundError(absent_weights(folder))
    names = read_json(index).get("weight_map")
    if not isinstance(names, dict) or not all(isinstance(n, str) and Path(n).name == n for n in names.values()):
        raise ValueError(
            f"{index} is damaged: expected weight_map, from tensors to files of the folder; fetch it again"
        )
    files = [folder / name for name in sorted(set(names.values()))]
    for path in files:
        if not path.is_file():
            raise FileNotFoundError(f"{path} is missing, which {index.name} names; fetch it")
    return files
