"""A view of the attention between two sentences that were read together."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from course_kit._checks import check_texts, check_whole
from course_kit.viz.inspection_inputs import DELIMITERS, Attention, attention_of, thousandths
from course_kit.viz.inspection_lines import facts, strongest
from course_kit.viz.map_axes import WIDTH, axis_labels, frame
from course_kit.viz.view import View
from course_kit.viz.view_elements import button, choice, controls, drawing, element, panels, words
from course_kit.viz.view_numbers import fixed, packed

__all__ = ["pair_view"]

MOST_TOKENS = 64
AVERAGE = "average over all heads"
FINGER = 25  # side of a cell that a finger can hit

_STYLE = """<style>
attention-view .pair rect{width:1px;height:1px;fill:var(--weight);stroke:var(--grid);vector-effect:non-scaling-stroke}
attention-view .pair rect:focus{outline:none;stroke:var(--output);stroke-width:4}
attention-view .pair.across .within{opacity:.12}
attention-view .band{fill:var(--muted);fill-opacity:.16;pointer-events:none}
attention-view .border{stroke:currentColor;stroke-width:1.5;fill:none;pointer-events:none}
attention-view .wide{overflow-x:auto}
</style>"""


def pair_view(
    attentions: Tensor | Sequence[Tensor] | dict[str, Tensor],
    tokens: Sequence[str],
    *,
    part: str | None = None,
    second: int | None = None,
    layer: int | None = None,
    head: int | None = None,
) -> View:
    """Attention within and across two sentences as one map, with [CLS] and [SEP] marked, for each head.

    Beside the map: of the weight of a sentence's words, how much goes to words of A, to words of B, and to delimiters;
    these are means over the queries and add up to 1. Heads are listed by the weight that crosses, which is the mean of
    A → B and B → A.

    Args:
        attentions: `(num_layers, H, L, L)`, with an axis of one pair or without; a tuple with one tensor per layer, as
            `transformers` returns it; or a dictionary from `record_attention`.
        tokens: one per position.
        part: which attention of a dictionary is meant, where it holds several.
        second: position at which sentence B starts; found from two [SEP] or </s> if not given.
        layer: index of the layer to begin with.
        head: index of the head to begin with. If neither is given, it is the head with the most weight across.

    Raises:
        TypeError: attentions has none of these forms.
        ValueError: there are no weights (a fused path), they are not the attention weights of one pair, there is one
            sentence only or one without words, the labels do not fit, there are too many tokens, or a layer or head
            does not exist.
    """
    attention = attention_of(attentions, check_texts(tokens=tokens), part=part, second=second, most_tokens=MOST_TOKENS)
    if attention.second is None or not attention.own:
        raise ValueError(
            "expected two sentences in self-attention, with a [SEP] or </s> after each; pass second=, the position at "
            "which sentence B starts"
        )
    num_heads = attention.num_heads
    maps = torch.cat([attention.weights.flatten(0, 1).mean(0)[None], attention.weights.flatten(0, 1)])  # (1 + N, L, L)
    shares = _shares(maps, attention)  # (1 + N, 2, 3)
    across = (shares[:, 0, 1] + shares[:, 1, 0]) / 2
    names = [AVERAGE, *(attention.name(n) for n in range(len(maps) - 1))]
    order = [0, *(n + 1 for n in across[1:].argsort(descending=True, stable=True).tolist())]
    chosen = _chosen(attention, layer, head, order[1])
    best = ", ".join(f"{names[n]} ({fixed(across[n].item())})" for n in order[1:4])
    across_ = [fixed(share / 1000) for share in thousandths(shares[chosen])[1:4:2]]
    return View(
        kind="pair_view",
        title="Attention between two sentences",
        description=f"{len(maps) - 1} heads ({len(attention.weights)} layers of {num_heads}), "
        f"{len(attention.queries)} tokens, sentence B from token {attention.second}. On average over all heads "
        f"{_told(shares[0])} The heads with most weight across the sentences: {best}. "
        f"{names[chosen][:1].upper()}{names[chosen][1:]}: {_told(shares[chosen])}",
        body=_STYLE
        + controls(
            choice(
                "head", "head (weight across)",
                [(str(n), f"{names[n]} ({fixed(across[n].item())})") for n in order], str(chosen),
            ),
            button("across", "only across the sentences", pressed=False),
        )
        + panels(_map(maps[chosen], attention), _facts(maps[chosen], shares[chosen], attention, names[chosen])),
        data={
            "tokens": attention.queries,
            "second": attention.second,
            "marks": _marks(attention),
            "names": names,
            "packed": packed(maps),
            "shares": [thousandths(share) for share in shares],
        },
        hint="Point at a cell, or tap it, to read one weight; choose a head to see which words look at the "
        "other sentence.",
        status=f"{'In' if chosen else 'On'} {names[chosen]}, "
        f"words of A put {across_[0]} of their weight on words of B, "
        f"and words of B {across_[1]} on words of A.",
        note="Rows are queries, columns are keys; the strength of a cell is √weight. Grey bands mark delimiters such "
        "as [CLS] and [SEP]; lines divide the sentences. With the keyboard: Tab to the map, arrow keys between cells.",
    )  # fmt: skip


def _marks(attention: Attention) -> list[int]:
    return [i for i, token in enumerate(attention.queries) if token in DELIMITERS]


def _shares(maps: Tensor, attention: Attention) -> Tensor:
    """`(maps, 2, 3)`: from words of A and of B, to words of A, to words of B, and to delimiters."""
    marks = _marks(attention)
    sentences = [range(attention.second), range(attention.second, len(attention.queries))]
    a, b = ([i for i in sentence if i not in marks] for sentence in sentences)
    if not a or not b:
        raise ValueError(
            f"expected words in both sentences, got {len(a)} in A and {len(b)} in B beside the delimiters; check second"
        )
    return torch.stack(
        [
            torch.stack([maps[:, queries][:, :, keys].sum(-1).mean(-1) for keys in (a, b, marks)], -1)
            for queries in (a, b)
        ],
        1,
    )


def _chosen(attention: Attention, layer: int | None, head: int | None, best: int) -> int:
    if layer is None and head is None:
        return best
    layer, head = (0 if number is None else number for number in (layer, head))
    num_layers, num_heads = attention.weights.shape[:2]
    check_whole(layer=layer, least=0, most=num_layers - 1)
    check_whole(head=head, least=0, most=num_heads - 1)
    return 1 + layer * num_heads + head


def _told(share: Tensor) -> str:
    (aa, ab, am), (ba, bb, bm) = ([fixed(x) for x in row] for row in share.tolist())
    return (
        f"words of A put {aa} of their weight on words of A, {ab} on words of B and {am} on delimiters; "
        f"words of B put {ba} on A, {bb} on B and {bm} on delimiters."
    )


def _map(weights: Tensor, attention: Attention) -> str:
    """One cell per weight, bands over delimiters, lines between the sentences."""
    tokens, second = attention.queries, attention.second
    length = len(tokens)
    left, top, size = frame(tokens, tokens)
    top, size = top + 16, max(size, FINGER)
    width = max(WIDTH, left + size * length + 3)
    rows = []
    for i, row in enumerate(weights.tolist()):
        cells = "".join(
            f'<rect x="{j}"{_within(i, j, second)} fill-opacity="{w**0.5:.3g}"/>' for j, w in enumerate(row)
        )
        rows.append(f'<g transform="translate(0 {i})">{cells}</g>')
    marks = _marks(attention)
    bands = "".join(f"M{i} 0h1v{length}h-1zM0 {i}h{length}v1h-{length}z" for i in marks)
    border = f"M{left + size * second:g} {top:g}v{size * length:g}M{left:g} {top + size * second:g}h{size * length:g}"
    middle = [size * second / 2, size * (second + length) / 2]
    map_ = drawing(
        width, top + size * length + 4,
        *(words(left + x, 10, f"to {name}", class_="small key") for name, x in zip("AB", middle, strict=True)),
        *axis_labels(tokens, tokens, left, top, size),
        element("g", *rows, f'<path class="band" d="{bands}"/>', class_="pair", data_k="map",
                transform=f"translate({left:g} {top:g})scale({size:.4g})"),
        element("path", d=border, class_="border"),
        label="The chosen map: queries on rows, keys on columns, sentence A before sentence B",
    ).replace("style=\"", f"style=\"min-width:{width:g}px;", 1)  # fmt: skip
    # where the page is narrower, the map is moved sideways; on a wide one it stands above the facts
    return element("div", map_, class_="wide", style=f"flex-basis:{width:g}px" if width > WIDTH else None)


def _within(i: int, j: int, second: int) -> str:
    return ' class="within"' if (i < second) == (j < second) else ""


_SHARES = ("A → A", "A → B", "A → delimiters", "B → A", "B → B", "B → delimiters")


def _facts(weights: Tensor, share: Tensor, attention: Attention, name: str) -> str:
    """Bars of the shares, and the strongest links between words across."""
    tokens, second, marks = attention.queries, attention.second, set(_marks(attention))
    length = len(tokens)
    crossing = [
        p
        for p in range(length**2)
        if (p // length < second) != (p % length < second) and not {p // length, p % length} & marks
    ]
    named = [f"“{token}” ({'AB'[i >= second]})" for i, token in enumerate(tokens)]
    bars = enumerate(zip(_SHARES, share.flatten().tolist(), strict=True))
    return facts(
        name,
        [(42 + 24 * n + 10 * (n > 2), label, x) for n, (label, x) in bars],
        strongest(weights, crossing, named, named),
        key="share", height=188, label="Where the weight of the words of A and of B goes",
        about="between words across", held_back=True,
    )  # fmt: skip
