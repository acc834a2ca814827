"""Two columns of tokens with a line for every weight: the picture that the head view and the model view share."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from course_kit.viz.inspection_inputs import DELIMITERS, Attention, encoded, thousandths
from course_kit.viz.inspection_patterns import Patterns
from course_kit.viz.map_axes import short
from course_kit.viz.view_elements import choice, controls, drawing, element, panels, text_of, words
from course_kit.viz.view_numbers import fixed

__all__ = ["facts", "lines_data", "lines_panel", "strongest"]

WIDTH, ROW, TOP = 340, 24, 46
LEFT, RIGHT = 118, 222  # where lines begin and end
SHADES = 20
CROWD, CROWDED_LEAST = 3, 500  # with more heads than these, only lines of this many thousandths are drawn
LISTED = 6

_FACTS_STYLE = """<style>
attention-view .facts{margin:0;padding:0;list-style:none;font-size:.92em}
attention-view .track{fill:var(--grid)}
attention-view .fill{fill:var(--weight)}
attention-view [data-k=strongest][hidden]{display:block!important;visibility:hidden}
</style>"""

_STYLE = """<style>
attention-view .line{stroke-width:2.4;stroke-linecap:round;pointer-events:none}
attention-view .chips{display:flex;flex-wrap:wrap;gap:4px;align-items:center;margin:.4rem 0}
attention-view .chips button{border-left:7px solid var(--c);min-width:32px;padding:2px 6px}
attention-view .token rect{stroke:none}
attention-view .token.cell text.small{fill:currentColor}
attention-view .mark text{font-style:italic}
attention-view .token.chosen rect{stroke:currentColor;stroke-width:2}
</style>"""


def _colour(head: int, num_heads: int) -> str:
    """One hue per head, legible on light and dark pages."""
    return f"oklch(.62 .17 {360 * head / num_heads:.0f})"


def lines_panel(
    attention: Attention, patterns: Patterns, layer: int, heads: Sequence[int], *, held_back: bool = False
) -> str:
    """The controls, the two columns with their lines, and beside them what the first of the heads does."""
    num_layers, num_heads = attention.weights.shape[:2]
    chips = [
        f'<button type="button" data-h="{h}" aria-pressed="{str(h in heads).lower()}" aria-label="head {h + 1}" '
        f'style="--c:{_colour(h, num_heads)}">{h + 1}</button>'
        for h in range(num_heads)
    ]
    rows = [choice("layer", "layer", [(str(n), str(n + 1)) for n in range(num_layers)], str(layer))]
    if attention.second is not None:
        options = [("", "all"), ("AA", "A → A"), ("AB", "A → B"), ("BA", "B → A"), ("BB", "B → B")]
        rows.append(choice("part", "sentences", options, ""))
    several = element("button", "several", type="button", data_k="several", aria_pressed=str(len(heads) > 1).lower())
    every = element("button", "all", type="button", data_k="every", aria_pressed=str(len(heads) == num_heads).lower())
    return (
        _STYLE
        + controls(*rows)
        + element(
            "div", "heads ", *chips, several, every, class_="chips", role="group", aria_label="heads of this layer"
        )
        + panels(
            _columns(attention, layer, heads), _facts(attention, patterns, layer * num_heads + heads[0], held_back)
        )
    )


def lines_data(attention: Attention, patterns: Patterns, layer: int, heads: Sequence[int]) -> dict[str, object]:
    """What the script computes with."""
    return {
        "q": attention.queries,
        "k": attention.keys,
        "H": attention.num_heads,
        "w": encoded(attention.weights),
        "names": patterns.names,
        "scores": encoded(patterns.scores),
        "layer": layer,
        "on": list(heads),
        "second": attention.second or 0,
        "own": attention.own,
        "marks": [j for j, key in enumerate(attention.keys) if key in DELIMITERS],
    }


def _columns(attention: Attention, layer: int, heads: Sequence[int]) -> str:
    num_heads = attention.num_heads
    height = TOP + ROW * max(len(attention.queries), len(attention.keys)) + 4
    least = CROWDED_LEAST if len(heads) > CROWD else 0
    drawn = [_strokes(attention.weights[layer, h], _colour(h, num_heads), least) for h in heads]
    return drawing(
        WIDTH, height,
        words(LEFT, 12, "query", class_="end query"),
        words(RIGHT, 12, "key", class_="start key"),
        words(LEFT, 30, "looks from here …", class_="end small"),
        words(RIGHT, 30, "… to here", class_="start small"),
        element("g", *drawn, data_k="lines"),
        _tokens(attention.queries, "q", attention.second),
        _tokens(attention.keys, "k", attention.second),
        label="Tokens as queries on the left, as keys on the right, with a line for every weight",
    )  # fmt: skip


def _tokens(tokens: Sequence[str], side: str, second: int | None) -> str:
    x, anchor, outside = (38, "end", "start") if side == "q" else (RIGHT + 2, "start", "end")
    inner, number = (LEFT - 6, 0) if side == "q" else (RIGHT + 6, WIDTH)
    parts = []
    for i, token in enumerate(tokens):
        y = TOP + ROW * i
        what = "query" if side == "q" else "key"
        sentence = "" if second is None else f", sentence {'B' if i >= second else 'A'}"
        parts.append(
            element(
                "g",
                f'<rect x="{x}" y="{y}" width="{LEFT - 40}" height="{ROW}" rx="4" fill-opacity="0"/>',
                words(inner, y + ROW / 2, short(token), class_=anchor),
                words(number, y + ROW / 2, "", class_=f"{outside} small"),
                class_="cell token mark" if token in DELIMITERS else "cell token",
                role="button", aria_label=f"{what} {token}{sentence}", tabindex=-1 if i else 0,
            )
        )  # fmt: skip
    if second is not None:
        y = TOP + ROW * second
        parts.append(f'<path d="M{x} {y}h{LEFT - 40}" stroke="currentColor" stroke-dasharray="3 3"/>')
    return element("g", *parts, data_k=side)


def _strokes(weights: Tensor, hue: str, least: int) -> str:
    """The lines of one head: a path for each strength; weights below 0.025 or `least` thousandths have none."""
    found: dict[int, str] = {}
    for place, weight in enumerate(thousandths(weights)):
        i, j = divmod(place, weights.shape[1])
        if (shade := (weight * SHADES + 500) // 1000) and weight >= least:
            ends = f"M{LEFT} {TOP + ROW * i + ROW // 2}L{RIGHT} {TOP + ROW * j + ROW // 2}"
            found[shade] = found.get(shade, "") + ends
    return "".join(
        f'<path class="line" d="{d}" style="stroke:{hue}" stroke-opacity="{s / SHADES:g}"/>'
        for s, d in sorted(found.items())
    )


def _facts(attention: Attention, patterns: Patterns, head: int, held_back: bool) -> str:
    """Bars of the five patterns, and the links of one head between different positions, delimiters left out."""
    len_k = len(attention.keys)
    places = [
        place
        for place in range(len(attention.queries) * len_k)
        if attention.keys[place % len_k] not in DELIMITERS and not (attention.own and place % (len_k + 1) == 0)
    ]
    queries, keys = ([f"“{token}”" for token in tokens] for tokens in (attention.queries, attention.keys))
    scores = patterns.scores[head].tolist()
    return facts(
        attention.name(head),
        [(42 + 24 * p, name, score) for p, (name, score) in enumerate(zip(patterns.names, scores, strict=True))],
        strongest(attention.weights.flatten(0, 1)[head], places, queries, keys),
        key="score", height=30 + 24 * len(scores), label="What this head does: weight on each pattern",
        about="of this head", held_back=held_back,
    )  # fmt: skip


def facts(
    title: str, bars: Sequence[tuple[int, str, float]], links: Sequence[str], *, key: str, height: int, label: str,
    about: str, held_back: bool,
) -> str:  # fmt: skip
    """Bars at these heights with names and numbers, and a list of links that may wait until something is chosen."""
    drawn = [words(2, 12, title, key="name", class_="start")]
    for n, (y, name, share) in enumerate(bars):
        drawn += [
            words(2, y, name, class_="start small"),
            f'<rect class="track" x="112" y="{y - 7}" width="180" height="14"/>',
            f'<rect class="fill" data-k="bar{n}" x="112" y="{y - 7}" width="{180 * share:.4g}" height="14"/>',
            words(WIDTH - 2, y, fixed(share), key=f"{key}{n}", class_="end small"),
        ]
    listed = "".join(f"<li>{text_of(link)}</li>" for link in links)
    return element(
        "div",
        _FACTS_STYLE,
        drawing(WIDTH, height, *drawn, label=label),
        element(
            "div", element("p", f"Strongest links {about}:"), element("ol", listed, data_k="links", class_="facts"),
            data_k="strongest", hidden="" if held_back else None,
        ),
    )  # fmt: skip


def strongest(weights: Tensor, places: Sequence[int], queries: Sequence[str], keys: Sequence[str]) -> list[str]:
    """The largest of the weights at these places, counted row by row, with the names of query and key."""
    found = thousandths(weights)
    best = sorted(places, key=lambda place: -found[place])[:LISTED]
    return [f"{queries[p // len(keys)]} → {keys[p % len(keys)]} {fixed(found[p] / 1000)}" for p in best]
