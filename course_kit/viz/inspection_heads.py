"""Views of attention heads: all heads of a model as small maps, and single heads as lines between tokens."""

from __future__ import annotations

import base64
import hashlib
import io
from collections.abc import Sequence

import numpy as np
from PIL import Image
from torch import Tensor

from course_kit._checks import check_sequence, check_whole
from course_kit.viz.describing import describe
from course_kit.viz.inspection_inputs import Attention, attention_of, thousandths
from course_kit.viz.inspection_lines import CROWD, CROWDED_LEAST, lines_data, lines_panel
from course_kit.viz.inspection_patterns import SIGNS, STRONG, Patterns, patterns_of
from course_kit.viz.view import View
from course_kit.viz.view_elements import choice, controls, element, slider
from course_kit.viz.view_numbers import fixed

__all__ = ["head_view", "model_view"]

MOST_COLUMNS = 12  # small maps per row: on a phone each is then still wide enough to be tapped
LEVELS = 16  # strengths of a small map
MOST_NAMED = 3  # heads named for each pattern

_MAPS_STYLE = """<style>
attention-view .maps{display:grid;grid-template-columns:repeat(var(--n),minmax(24px,1fr));gap:2px}
attention-view .maps{max-width:calc(var(--n)*60px);overflow-x:auto;padding:2px}
attention-view .maps button{padding:1px;min-height:0;border:1px solid var(--grid);border-radius:3px;line-height:1.15}
/* Maps that are left out keep their room, behind the others, so that nothing below moves. */
attention-view .maps button[hidden]{display:block!important;visibility:hidden;order:1}
attention-view .maps button::after{content:attr(data-t);white-space:pre;font-size:10px;display:block;overflow:hidden}
attention-view .maps [aria-pressed=true]{background:none;color:inherit;border-color:var(--output)}
attention-view .maps [aria-pressed=true]{box-shadow:0 0 0 2px var(--output)}
attention-view .maps:not(:has(button:not([hidden])))::before{content:"no head";position:absolute;padding:1rem 0}
attention-view .maps i{display:block;background:var(--weight);image-rendering:pixelated;aspect-ratio:var(--a)}
</style>"""


def head_view(
    attentions: Tensor | Sequence[Tensor] | dict[str, Tensor],
    tokens: Sequence[str] | None = None,
    *,
    keys: Sequence[str] | None = None,
    part: str | None = None,
    second: int | None = None,
    layer: int | None = None,
    heads: Sequence[int] | None = None,
) -> View:
    """Heads of one layer as lines from queries to keys: several at once by colour, filtered by token or by sentence.

    A line is as strong as its weight; weights below 0.025 have no line, but are in the numbers. Labels count from 1, as
    the text does: layer 1, head 2 is `attentions[0, 1]`.

    Args:
        attentions: `(num_layers, H, L_q, L_k)`, with an axis of one sentence or without; a tuple with one tensor per
            layer, as `transformers` returns it; or a dictionary from `record_attention`.
        tokens: one per query, and per key too in self-attention; positions if not given.
        keys: one per key, where they differ (cross-attention).
        part: which attention of a dictionary is meant, where it holds several, such as "cross".
        second: position at which sentence B starts; found from two [SEP] or </s> if not given.
        layer: index of the layer to begin with.
        heads: indices of the heads to begin with. If neither is given, it is the head that follows a pattern most.

    Raises:
        TypeError: attentions has none of these forms.
        ValueError: there are no weights (a fused path), they are not the attention weights of one sentence, the labels
            do not fit, there are too many tokens, or a layer or head does not exist.
    """
    attention = attention_of(attentions, tokens, keys, part=part, second=second)
    patterns = patterns_of(attention)
    layer, heads = _chosen(attention, patterns, layer, heads)
    shown = attention.weights[layer, heads[0]]
    return View(
        kind="head_view",
        title="Where a head looks",
        description=describe(
            shown, attention.queries, attention.keys, title=attention.name(layer * attention.num_heads + heads[0])
        ),
        body=lines_panel(attention, patterns, layer, heads, held_back=True),
        data=lines_data(attention, patterns, layer, heads),
        hint="Point at a token to see where it looks, or tap it to keep it; then choose another head by its number.",
        note=_LINES_NOTE,
        status=_status(attention, patterns, layer, heads),
    )


LEAST_PATTERN = 150  # thousandths: a head with lower scores does something that no pattern describes; head_view.js, too


def _status(attention: Attention, patterns: Patterns, layer: int, heads: Sequence[int]) -> str:
    """What the script says of the chosen heads."""
    numbers = [str(head + 1) for head in sorted(heads)]
    number = layer * attention.num_heads + heads[0]
    if len(numbers) > 1:
        few = (
            f"; lines start at {fixed(CROWDED_LEAST / 1000, 1)} until a token is chosen" if len(numbers) > CROWD else ""
        )
        return f"Layer {layer + 1} shows heads {', '.join(numbers)}, and the bars of head {heads[0] + 1}{few}."
    scores = thousandths(patterns.scores[number])
    name, score = max(zip(patterns.names, scores, strict=True), key=lambda pair: pair[1])
    head = f"Layer {layer + 1}, head {heads[0] + 1}"
    if score < LEAST_PATTERN:
        return f"{head} follows none of the patterns; the highest score is {fixed(score / 1000)}, “{name}”."
    return f"{head} follows the pattern “{name}” most ({fixed(score / 1000)})."


_LINES_NOTE = (
    "A query on the left shows where it looks; a key on the right shows which queries look at it. The shade of a token "
    "is its weight, averaged over the chosen heads. Press “several” to show a further head beside the first. With the "
    "keyboard: Tab to a column of tokens, arrow keys along it, Enter keeps a token or releases it."
)


def model_view(
    attentions: Tensor | Sequence[Tensor] | dict[str, Tensor],
    tokens: Sequence[str] | None = None,
    *,
    keys: Sequence[str] | None = None,
    part: str | None = None,
    second: int | None = None,
) -> View:
    """All heads of all layers as small maps, sorted and filtered by what they do; the chosen one as lines below.

    Every head is scored by five patterns: the mean weight on the previous token, on the next token, on keys with the
    query's own word (itself included, over ordinary tokens), on delimiters such as [CLS] and [SEP]; and "broad", the
    mean entropy of a row divided by ln L_k. Small maps are drawn with strength √weight, so that 0.05 is visible.

    Args:
        attentions: `(num_layers, H, L_q, L_k)`, with an axis of one sentence or without; a tuple with one tensor per
            layer, as `transformers` returns it; or a dictionary from `record_attention`.
        tokens: one per query, and per key too in self-attention; positions if not given.
        keys: one per key, where they differ (cross-attention).
        part: which attention of a dictionary is meant, where it holds several, such as "cross".
        second: position at which sentence B starts; found from two [SEP] or </s> if not given.

    Raises:
        TypeError: attentions has none of these forms.
        ValueError: there are no weights (a fused path), they are not the attention weights of one sentence, the labels
            do not fit, or there are too many tokens.
    """
    attention = attention_of(attentions, tokens, keys, part=part, second=second)
    patterns = patterns_of(attention)
    num_heads = attention.num_heads
    layer, heads = _chosen(attention, patterns, None, None)
    order = [("", "in the order of layers"), *((str(p), f"by {name}") for p, name in enumerate(patterns.names))]
    legend = ", ".join(f"{SIGNS[name]} {name}" for name in patterns.names)
    return View(
        kind="head_view",
        title="All heads of a model",
        description=_description(attention, patterns),
        body=_MAPS_STYLE
        + controls(choice("by", "sort heads", order, ""), slider("least", "with a score of at least", 0, 1, 0, 0.05))
        + _maps(attention, patterns, layer * num_heads + heads[0])
        + lines_panel(attention, patterns, layer, heads),
        data=lines_data(attention, patterns, layer, heads)
        | {"signs": [SIGNS.get(patterns.main(n), " ") for n in range(len(patterns.scores))]},
        hint="Sort the heads by what they do, and choose a small map to open that head below.",
        note="Each small map has queries as rows and keys as columns; under it are layer and head, and what the head "
        f"mostly does: {legend}. Arrow keys move between maps and Enter opens one. " + _LINES_NOTE,
        status=_status(attention, patterns, layer, heads),
    )  # fmt: skip


def _chosen(
    attention: Attention, patterns: Patterns, layer: int | None, heads: Sequence[int] | None
) -> tuple[int, list[int]]:
    """The layer and heads to begin with."""
    num_layers, num_heads = attention.weights.shape[:2]
    if layer is None and heads is None:
        number = patterns.first()
        return number // num_heads, [number % num_heads]
    layer = 0 if layer is None else layer
    heads = [0] if heads is None else heads
    check_sequence(heads=heads)
    check_whole(layer=layer, least=0, most=num_layers - 1)
    for head in heads:
        check_whole(heads=head, least=0, most=num_heads - 1)
    if not heads:
        raise ValueError("heads must hold at least one head, got none; leave it out to begin with the first")
    return layer, list(heads)


def _maps(attention: Attention, patterns: Patterns, pressed: int) -> str:
    """A button for each head, with its part of one picture of all maps."""
    num_layers, num_heads, len_q, len_k = attention.weights.shape
    columns = next((c for c in range(min(num_heads, MOST_COLUMNS), 5, -1) if num_heads % c == 0), 0)
    columns = columns or min(num_heads, MOST_COLUMNS)
    picture = _sprite(attention.weights.numpy())
    name = "s" + hashlib.sha256(picture).hexdigest()[:8]
    url = f"data:image/png;base64,{base64.b64encode(picture).decode()}"
    buttons = []
    for n in range(num_layers * num_heads):
        layer, head = divmod(n, num_heads)
        main = patterns.main(n)
        buttons.append(
            f'<button type="button" data-t="{layer + 1}·{head + 1}\n{SIGNS.get(main, " ")}" '
            f'aria-label="{attention.name(n)}, {patterns.told(n)}" aria-pressed="{str(n == pressed).lower()}">'
            f'<i style="mask-position:{_percent(head, num_heads)} {_percent(layer, num_layers)}"></i></button>'
        )
    style = (
        f"<style>attention-view .{name} i{{mask-image:url({url});"
        f"mask-size:{num_heads * 100}% {num_layers * 100}%}}</style>"
    )
    return style + element(
        "div", *buttons, class_=f"maps {name}", role="group", aria_label="all heads", data_c=columns,
        style=f"--n:{columns};--a:{len_k}/{len_q}",
    )  # fmt: skip


def _percent(place: int, of: int) -> str:
    return f"{100 * place / (of - 1):.6g}%" if place else "0"


def _sprite(weights: np.ndarray) -> bytes:
    """All maps as one picture, layers down and heads across, whose opacity is the square root of the weight."""
    num_layers, num_heads, len_q, len_k = weights.shape
    levels = np.rint((LEVELS - 1) * np.sqrt(weights.clip(0, 1))).astype(np.uint8)
    pixels = levels.transpose(0, 2, 1, 3).reshape(num_layers * len_q, num_heads * len_k)
    image = Image.fromarray(pixels, "L").convert("P")
    image.putpalette([0] * 3 * LEVELS)
    file = io.BytesIO()
    image.save(
        file, "png", optimize=True, bits=4, transparency=bytes(round(255 * n / (LEVELS - 1)) for n in range(LEVELS))
    )
    return file.getvalue()


def _description(attention: Attention, patterns: Patterns) -> str:
    """Which heads follow which pattern, and how strongly."""
    num_layers, num_heads, len_q, len_k = attention.weights.shape
    said = [f"{num_layers * num_heads} heads ({num_layers} layers of {num_heads}), {len_q} queries over {len_k} keys."]
    for p, name in enumerate(patterns.names):
        scores = patterns.scores[:, p]
        order = scores.argsort(descending=True, stable=True).tolist()
        if name == "broad":
            ends = [f"{attention.name(n)} ({fixed(scores[n].item())}" for n in (order[0], order[-1])]
            said.append(f"Entropy is largest in {ends[0]} of ln L_k) and smallest in {ends[1]}).")
            continue
        strong = [n for n in order if scores[n] >= STRONG]
        best = ", ".join(f"{attention.name(n)} ({fixed(scores[n].item())})" for n in (strong or order)[:MOST_NAMED])
        where = "the same word" if name == "same word" else f"the {name}"
        if strong:
            count = f"{len(strong)} {'head puts' if len(strong) == 1 else 'heads put'}"
            said.append(
                f"{count} at least half of the weight on {where}: {best}{' and others' * (len(strong) > MOST_NAMED)}."
            )
        else:
            said.append(f"No head puts half of its weight on {where}; most: {best.split(', layer')[0]}.")
    return " ".join(said)
