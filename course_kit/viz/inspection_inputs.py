"""What the views of the chapter `inspection` accept: attention weights in every form in which models return them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal

import torch
from torch import Tensor

from course_kit._checks import check_instance, check_texts
from course_kit.viz.describing import checked
from course_kit.viz.view_elements import labels_for

__all__ = ["Attention", "attention_of", "encoded", "thousandths"]

MOST_TOKENS = 128
MOST_WEIGHTS = 400_000
DELIMITERS = frozenset(
    ("[CLS]", "[SEP]", "<s>", "</s>", "<bos>", "<eos>", "<|endoftext|>", "<|begin_of_text|>", "<|end_of_text|>")
)
_SEPARATORS = frozenset(("[SEP]", "</s>"))
_EAGER = 'load the model with attn_implementation="eager" and call it with output_attentions=True'


@dataclass(frozen=True)
class Attention:
    """The attention weights of one sentence or pair through all layers.

    Args:
        weights: `(num_layers, H, L_q, L_k)`, on the CPU in double precision.
        queries: one token per query.
        keys: one token per key.
        own: whether queries and keys are the same tokens (self-attention).
        second: position at which sentence B starts, or None where there is one sentence.
    """

    weights: Tensor
    queries: list[str]
    keys: list[str]
    own: bool
    second: int | None

    @property
    def num_heads(self) -> int:
        """Heads per layer."""
        return self.weights.shape[1]

    def name(self, number: int) -> str:
        """What a head is called; layers and heads count from 1."""
        return f"layer {number // self.num_heads + 1}, head {number % self.num_heads + 1}"


def attention_of(
    attentions: object,
    tokens: Sequence[str] | None,
    keys: Sequence[str] | None = None,
    *,
    part: str | None = None,
    second: int | None = None,
    most_tokens: int = MOST_TOKENS,
) -> Attention:
    """Check attention weights of any form and bring them into one.

    Args:
        attentions: a tensor `(num_layers, H, L_q, L_k)` or `(num_layers, 1, H, L_q, L_k)`; a tuple or list with one
            `(1, H, L_q, L_k)` or `(H, L_q, L_k)` per layer, as `transformers` returns it; or a dictionary from
            `record_attention`.
        tokens: one per query, and per key too in self-attention.
        keys: one per key, where they differ from the queries (cross-attention).
        part: which attention of a dictionary is meant, where it holds several: a piece of the name that all its layers
            have in common and the others do not, such as "cross".
        second: position at which sentence B starts. If not given, it is the position after the first separator where
            there are two.
        most_tokens: how many queries or keys the view can show.

    Raises:
        TypeError: none of these forms; a whole model output is one of these cases.
        ValueError: there are no weights (a fused path), several sentences, layers of different shapes, NaN, weights
            that are negative or whose rows do not sum to one, labels that do not fit, or too many tokens.
    """
    weights = _stacked(attentions, part)
    _, _, len_q, len_k = weights.shape
    if max(len_q, len_k) > most_tokens or weights.numel() > MOST_WEIGHTS:
        raise ValueError(
            f"expected at most {most_tokens} tokens and {MOST_WEIGHTS:,} weights, got {len_q} × {len_k} tokens and "
            f"{weights.numel():,} weights; show fewer layers or a shorter text"
        )
    for number, layer in enumerate(weights):
        try:
            checked(layer, None, None, heads=True)
        except (TypeError, ValueError) as error:
            raise type(error)(f"attentions of layer {number + 1} (index {number}): {error}") from None
    _check_rows(weights)
    queries = labels_for(tokens, len_q, "tokens")
    own = keys is None and len_q == len_k
    if keys is None and not own and tokens is not None:
        raise ValueError(
            f"expected tokens for the keys too, because there are {len_q} queries and {len_k} keys; pass keys=[…]"
        )
    names = queries if own else labels_for(keys, len_k, "keys")
    if second is not None and (not own or type(second) is not int or not 0 < second < len_q):
        raise ValueError(
            f"second must be the position at which sentence B starts, 1 to {len_q - 1}, in self-attention; got {second}"
        )
    if second is None and own:
        second = _second(queries)
    return Attention(weights.double(), queries, names, own, second)


def _stacked(attentions: object, part: str | None) -> Tensor:
    """`(num_layers, H, L_q, L_k)` from any of the forms."""
    if attentions is None:
        raise ValueError(f"attentions must be weights, got None: the fused path computes none; {_EAGER}")
    check_instance((str, type(None)), part=part)
    if isinstance(attentions, Mapping):
        check_texts(attentions=attentions)
        layers = _layers_of(attentions, part)
    elif part is not None:
        raise ValueError(
            f"part chooses from a dictionary of record_attention, got attentions of type {type(attentions).__name__}; "
            f"leave it out"
        )
    elif isinstance(attentions, tuple | list):
        layers = list(attentions)
    elif isinstance(attentions, Tensor):
        if attentions.dim() not in (4, 5) or 0 in attentions.shape:
            raise ValueError(
                f"attentions must be (num_layers, H, L_q, L_k), got {tuple(attentions.shape)}; "
                f"weights[None] adds the axis of layers to the weights of one layer"
            )
        layers = list(attentions)
    else:
        raise TypeError(
            f"attentions must be a tensor (num_layers, H, L_q, L_k), a tuple of layers or a dictionary of "
            f"record_attention, got {type(attentions).__name__}; pass outputs.attentions of a transformers model"
        )
    if not layers or any(layer is None for layer in layers):
        raise ValueError(
            f"attentions must hold weights of each layer, got none: the fused path computes none; {_EAGER}"
        )
    layers = [_one_sentence(layer, n) for n, layer in enumerate(layers)]
    shapes = sorted({tuple(layer.shape) for layer in layers})
    if len(shapes) > 1:
        raise ValueError(
            f"attentions must have layers of one shape (H, L_q, L_k), got {shapes}; pass one kind of attention"
        )
    return torch.stack(layers)


def _one_sentence(layer: object, number: int) -> Tensor:
    if not isinstance(layer, Tensor):
        raise TypeError(
            f"attentions of layer {number + 1} (index {number}) must be a tensor (1, H, L_q, L_k), got "
            f"{type(layer).__name__}; of a transformers model's output pass outputs.attentions"
        )
    if layer.dim() == 4 and layer.shape[0] == 1:
        layer = layer[0]
    if layer.dim() != 3 or 0 in layer.shape:
        raise ValueError(
            f"attentions of layer {number + 1} (index {number}) must be (1, H, L_q, L_k) of one sentence, got "
            f"{tuple(layer.shape)}; choose a sentence, for example [layer[i : i + 1] for layer in attentions]"
        )
    return layer.detach().cpu()


def _layers_of(maps: Mapping[str, object], part: str | None) -> list[object]:
    """The layers of one attention of a dictionary, in the order of the model."""
    if {"attentions", "last_hidden_state", "logits"} & maps.keys():
        raise TypeError("attentions must be weights, got the whole output of a model; pass outputs.attentions")
    found: dict[str, list[object]] = {}
    for name, weights in maps.items():
        found.setdefault(re.sub(r"(^|(?<=\.))\d+(?=\.|$)", "*", name), []).append(weights)
    if not found:
        raise ValueError(
            "attentions must hold at least one layer, got an empty dictionary; run the model inside the block"
        )
    chosen = [name for name in found if part is None or part in name]
    if len(chosen) != 1:
        raise ValueError(
            f"expected one kind of attention, got {', '.join(repr(name) for name in found)}; pass part=, a piece of "
            f"one of these names that the others do not have" + (f" (got part={part!r})" if part is not None else "")
        )
    return found[chosen[0]]


def _check_rows(weights: Tensor) -> None:
    """Rows sum to one, or to zero where every key is masked."""
    if weights.min() < -1e-6:
        raise ValueError(f"attentions must be 0 or more, got {weights.min().item():.3g}; are these scores? Use softmax")
    sums = weights.double().sum(-1)
    slack = max(1e-3, 2 * torch.finfo(weights.dtype).eps) if weights.is_floating_point() else 1e-3
    off = ((sums - 1).abs() > slack) & (sums != 0)
    if off.any():
        layer, head, row = (int(i) for i in off.nonzero()[0])
        raise ValueError(
            f"attentions must have rows that sum to 1, got {sums[layer, head, row].item():.3f} in row {row} of "
            f"layer {layer + 1}, head {head + 1} (indices {layer}, {head}); call model.eval(), since dropout "
            f"scales weights, and pass all keys"
        )


def _second(tokens: list[str]) -> int | None:
    """Where sentence B starts: after the first separator where another follows; two in a row count as one."""
    places = [i for i, token in enumerate(tokens) if token in _SEPARATORS]
    if len(places) < 2 or not places[0]:
        return None
    start = places[1] + 1 if places[1] == places[0] + 1 else places[0] + 1
    return start if start < len(tokens) else None


# Numbers for the scripts ----------------------------------------------------------------------------------------------


def thousandths(weights: Tensor) -> list[int]:
    """Each weight as a whole number of thousandths, halves rounded up: exactly the three decimals that are shown."""
    return [int(Decimal(x).scaleb(3).quantize(Decimal(1), ROUND_HALF_UP)) for x in weights.double().flatten().tolist()]


_SINGLE, _SYMBOLS, _RUN = 81, 92, 91  # 81 + 10 · 92 = 1001 values: one symbol up to 80, two from 81 to 1000


def encoded(weights: Tensor) -> str:
    """Weights in thousandths as text: one character up to 0.080, two above, two for up to 94 zeros in a row."""
    symbols: list[int] = []
    zeros = 0
    for value in [*(min(max(t, 0), 1000) for t in thousandths(weights)), -1]:
        if value == 0:
            zeros += 1
            continue
        while zeros:
            run = min(zeros, _SYMBOLS + 2)
            symbols += [_RUN, run - 3] if run > 2 else [0] * run
            zeros -= run
        if value >= _SINGLE:
            symbols += [_SINGLE + (value - _SINGLE) // _SYMBOLS, (value - _SINGLE) % _SYMBOLS]
        elif value > 0:
            symbols.append(value)
    # printable characters from "#" on; "<" and "\" would have to be escaped
    return "".join(map(chr, (s + 35 for s in symbols))).replace("<", "!").replace("\\", " ")
