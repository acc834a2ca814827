"""A view of one word in several sentences: its vectors through the layers, in the plane that shows most of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from course_kit._checks import check_instance
from course_kit.viz.view import View
from course_kit.viz.view_elements import controls, drawing, element, labels_for, panels, slider, text_of, words
from course_kit.viz.view_numbers import check_drawable, fixed

__all__ = ["contextual_words"]

WIDTH, HEIGHT, MARGIN = 340, 300, 26
MOST_WORDS, MOST_SENSES, MOST_LAYERS = 40, 4, 64
APART, STEPS = 26, 400  # least distance between marks, and how many steps are taken to reach it
CHART_TOP, CHART_HEIGHT, CHART_LEFT, CHART_WIDTH = 40, 110, 34, 296

_HUES = (265, 45, 155, 335)
_STYLE = """<style>
attention-view .point{transition:transform .35s}
@media(prefers-reduced-motion:reduce){attention-view .point{transition:none}}
attention-view .point text{fill:#fff;font-size:12px}
attention-view .point.chosen path{stroke:currentColor;stroke-width:3}
attention-view .words{list-style:none;margin:.4rem 0;padding:0;font-size:.92em}
attention-view .words svg{display:inline-block;width:26px;vertical-align:middle;margin-right:.4em}
attention-view .curve{fill:none;stroke-width:2.5}
attention-view .across{stroke-dasharray:5 4}
attention-view .leader{stroke:currentColor;stroke-opacity:.45;fill:none}
attention-view .at{stroke:currentColor;stroke-dasharray:2 3}
</style>"""
# around the origin: a circle, a square, a diamond, a triangle
_SHAPES = (
    "M-10 0a10 10 0 1 0 20 0a10 10 0 1 0-20 0z",
    "M-9-9h18v18h-18z",
    "M0-13l13 13l-13 13l-13-13z",
    "M0-14l14 23h-28z",
)


def contextual_words(
    vectors: Tensor, labels: Sequence[str] | None = None, senses: Sequence[str] | None = None, *, word: str = ""
) -> View:
    """One word in several sentences: where its vectors lie in each layer, and how far apart its senses are.

    Each layer is shown in the plane of its two largest principal components and scaled to fill the picture, so
    distances are comparable within a layer only. The sign of a component is that of its largest loading in the last
    layer; below, it is the sign that agrees with the layer above, so that the picture is reproducible and does not turn
    over between layers. All figures use the whole vectors, not the plane: cosines are means over pairs of words, and
    the nearest word is that of the largest cosine.

    Args:
        vectors: `(num_layers + 1, n, d_model)`, one vector per layer and sentence; index 0 is the embedding.
        labels: the n sentences; numbers if not given.
        senses: the sense of the word in each sentence, at most four different ones; one sense if not given.
        word: the word; without it the picture speaks of vectors in groups, not of a word in senses.

    Raises:
        TypeError: vectors is not a tensor.
        ValueError: another shape, fewer than three words or too many, NaN or infinity, labels or senses that do not
            fit, or more than four senses.
    """
    check_instance(str, word=word)
    layers = _checked(vectors)
    count = layers.shape[1]
    sentences = labels_for(labels, count, "labels", "sentence ")
    named = labels_for(senses, count, "senses") if senses is not None else ["one"] * count
    kinds = list(dict.fromkeys(named))
    if len(kinds) > MOST_SENSES:
        raise ValueError(f"expected at most {MOST_SENSES} senses, got {len(kinds)}: {', '.join(kinds[:6])}")
    numbers = [kinds.index(sense) for sense in named]
    places, explained = _planes(layers)
    drawn = _apart(places)
    figures = [_figures(layer, numbers) for layer in layers]
    last = len(layers) - 1
    noun = "sense" if word else "group"
    told = [_told(n, figures[n], explained[n], places[n], noun) for n in range(len(layers))]
    about = f"“{word}” in {count} sentences" if word else f"{count} vectors"
    return View(
        kind="contextual_words",
        title=f"A word in its contexts: {word}" if word else "Vectors through the layers",
        description=f"{about}, {len(kinds)} {noun}{'s' * (len(kinds) > 1)} ({', '.join(kinds)}), from the "
        f"embedding (layer 0) to layer {last}. {told[0]} {told[last]}",
        body=_STYLE
        + controls(slider("layer", "layer", 0, last, 0))
        + panels(
            _plane(drawn[0], places[0], numbers, sentences),
            element("div", _chart(figures, 0, noun), _list(sentences, numbers, kinds)),
        ),
        data={
            "places": _rounded(places),
            "drawn": _rounded(drawn),
            "near": [[[j, fixed(c)] for j, c in figure.nearest] for figure in figures],
            "told": told,
            "labels": sentences,
            "senses": named,
        },
        hint=f"Move the slider from the embedding up through the layers, and watch the {noun}s separate.",
        status=told[0],
        note=f"Shape and colour stand for the {noun}. Points that would cover each other are moved apart, and a thin "
        "line leads to the place of each. Choose a point to read its sentence and its nearest neighbour. "
        "With the keyboard: arrow keys move the slider, and walk through the points.",
    )


def _checked(vectors: Tensor) -> Tensor:
    if not isinstance(vectors, Tensor):
        raise TypeError(f"vectors must be a tensor (num_layers + 1, n, d_model), got {type(vectors).__name__}")
    if vectors.dim() != 3 or 0 in vectors.shape:
        raise ValueError(
            f"vectors must be (num_layers + 1, n, d_model), got {tuple(vectors.shape)}; take the word's position from "
            f"each sentence, torch.stack([hidden[:, b, position] for …], 1)"
        )
    if not 3 <= vectors.shape[1] <= MOST_WORDS or len(vectors) > MOST_LAYERS:
        raise ValueError(
            f"expected 3 to {MOST_WORDS} words and at most {MOST_LAYERS} layers, got {vectors.shape[1]} and "
            f"{len(vectors)}"
        )
    check_drawable(vectors=vectors)
    return vectors.detach().cpu().double()


def _planes(layers: Tensor) -> tuple[Tensor, list[float]]:
    """Places in the picture `(layers, n, 2)`, and the share of the variance that each plane shows."""
    found, explained, above = [], [], None
    for layer in layers.flip(0):
        centred = layer - layer.mean(0)
        left, sizes, right = torch.linalg.svd(centred, full_matrices=False)
        plane = F.pad(left * sizes, (0, 2))[:, :2]  # (n, 2), also where there is one component only
        loadings = F.pad(right, (0, 0, 0, 2))[:2]
        signs = loadings.gather(1, loadings.abs().argmax(1, keepdim=True)).squeeze(1).sign()
        if above is not None:
            agreement = (plane * above).sum(0)
            signs = torch.where(agreement.abs() > 1e-12, agreement.sign(), signs)
        total = sizes.square().sum().item()
        alike = total <= 1e-12 * max(layer.square().sum().item(), 1e-300)
        plane = plane * 0 if alike else plane * torch.where(signs == 0, 1.0, signs)
        above = plane if not alike else above
        radius = plane.abs().amax(0).max().item() or 1.0
        scale = min(WIDTH / 2, HEIGHT / 2) - MARGIN
        found.append(torch.tensor([WIDTH / 2, HEIGHT / 2]) + plane / radius * scale * torch.tensor([1.0, -1.0]))
        explained.append(1.0 if alike else sizes[:2].square().sum().item() / total)
    return torch.stack(found[::-1]), explained[::-1]


def _rounded(places: Tensor) -> list[list[list[float]]]:
    return [[[round(x, 1) for x in point] for point in layer.tolist()] for layer in places]


def _apart(places: Tensor) -> Tensor:
    """Where the marks are drawn: at their places, moved apart where they would cover each other."""
    count = places.shape[1]
    angles = torch.arange(count) * 2.4  # points in the same place leave it in different directions
    moved = places + 0.01 * torch.stack([angles.cos(), angles.sin()], -1)
    low, high = torch.tensor([15.0, 15.0]), torch.tensor([WIDTH - 15.0, HEIGHT - 15.0])
    touched = torch.zeros(places.shape[:2], dtype=torch.bool)
    for _ in range(STEPS):
        between = moved[:, :, None] - moved[:, None]  # (layers, n, n, 2)
        distance = between.norm(dim=-1).clamp(min=1e-6) + 1e9 * torch.eye(count)
        short = (APART + 0.1 - distance).clamp(min=0)
        if not (short > 0.1).any():
            break
        touched |= (short > 0).any(-1)
        step = (between / distance[..., None] * short[..., None]).sum(2)
        moved = (moved + 0.4 * step).clamp(low, high)
    return torch.where(touched[..., None], moved, places)


@dataclass(frozen=True)
class _Figures:
    """Of one layer: mean cosine within a sense and across senses (None without such pairs), each word's nearest word
    with the cosine, and how many of them have the same sense."""

    within: float | None
    across: float | None
    nearest: list[tuple[int, float]]
    right: int


def _figures(layer: Tensor, senses: list[int]) -> _Figures:
    unit = F.normalize(layer, dim=-1)
    cosines = unit @ unit.T  # (n, n)
    sense = torch.tensor(senses)
    same = sense[:, None] == sense
    other = ~torch.eye(len(senses), dtype=torch.bool)

    def mean(pairs: Tensor) -> float | None:
        return cosines[pairs].mean().item() if pairs.any() else None

    best = cosines.masked_fill(~other, -2.0).max(-1)
    nearest = list(zip(best.indices.tolist(), best.values.tolist(), strict=True))
    right = sum(senses[i] == senses[j] for i, (j, _) in enumerate(nearest))
    return _Figures(mean(same & other), mean(~same), nearest, right)


def _told(layer: int, figures: _Figures, explained: float, places: Tensor, noun: str) -> str:
    count = len(places)
    same = int(((torch.cdist(places, places) < 1).sum(1) > 1).sum())  # the point itself is one
    cosines = [
        f"{fixed(value)} {where}"
        for value, where in ((figures.within, f"within a {noun}"), (figures.across, f"across {noun}s"))
        if value is not None
    ]
    return (
        f"Layer {layer}: mean cosine {' and '.join(cosines)}; the nearest one has the same {noun} for {figures.right} "
        f"of {count}; the plane shows {fixed(explained)} of the variance"
        + (f", and {same} points in it coincide with others." if same else ".")
    )


def _mark(sense: int, number: int) -> str:
    return f'<path d="{_SHAPES[sense]}" style="fill:oklch(.5 .15 {_HUES[sense]})"/>' + words(0, 1, number + 1)


def _plane(drawn: Tensor, places: Tensor, senses: list[int], labels: list[str]) -> str:
    leaders = [
        f'<path class="leader" d="M{x:.1f} {y:.1f}L{to_x:.1f} {to_y:.1f}"/>'
        for (x, y), (to_x, to_y) in zip(drawn.tolist(), places.tolist(), strict=True)
    ]
    points = [
        element(
            "g", '<circle r="13" fill-opacity="0"/>', _mark(senses[i], i), class_="point", role="button",
            tabindex=-1 if i else 0, aria_label=f"{i + 1}: {labels[i]}",
            style=f"transform:translate({x:.1f}px,{y:.1f}px)",
        )
        for i, (x, y) in enumerate(drawn.tolist())
    ]  # fmt: skip
    frame = f'<rect x="1" y="1" width="{WIDTH - 2}" height="{HEIGHT - 2}" rx="6" fill="none" stroke="var(--grid)"/>'
    return drawing(
        WIDTH, HEIGHT, frame, element("g", *leaders, data_k="leaders"), element("g", *points, data_k="points"),
        label="The word's vectors in the plane",
    )  # fmt: skip


def _chart(figures: list[_Figures], chosen: int, noun: str) -> str:
    """Mean cosines within and across senses over the layers."""
    steps = max(len(figures) - 1, 1)
    at = [CHART_LEFT + CHART_WIDTH * n / steps for n in range(len(figures))]
    values = [x for figure in figures for x in (figure.within, figure.across) if x is not None]
    low = min(math.floor(10 * min(values)) / 10, 0.9)

    def height(x: float) -> float:
        return CHART_TOP + CHART_HEIGHT * (1 - (x - low) / (1 - low))

    parts = [
        words(0, 10, f"mean cosine: ── within a {noun}, ╌╌ across", class_="start small"),
        words(CHART_LEFT - 6, height(1), "1", class_="end small"),
        words(CHART_LEFT - 6, height(low), fixed(low, 1), class_="end small"),
        words(CHART_LEFT + CHART_WIDTH, CHART_TOP + CHART_HEIGHT + 30, "layer", class_="end small"),
        f'<path class="line" d="M{CHART_LEFT} {height(low):g}h{CHART_WIDTH}"/>',
    ]
    every = -(-len(figures) // 13)
    parts += [words(x, CHART_TOP + CHART_HEIGHT + 14, n, class_="small") for n, x in enumerate(at) if n % every == 0]
    for name in ("within", "across"):
        line = [(x, getattr(figure, name)) for x, figure in zip(at, figures, strict=True)]
        d = "L".join(f"{x:.4g} {height(y):.4g}" for x, y in line if y is not None)
        if d:
            parts.append(f'<path class="curve {name}" stroke="var(--weight)" data-k="{name}" d="M{d}"/>')
    line = f'<path class="at" d="M0 {CHART_TOP - 12}v{CHART_HEIGHT + 12}"/>'
    parts.append(element("g", line, data_k="at", style=f"transform:translate({at[chosen]:.4g}px)"))
    return drawing(
        WIDTH, CHART_TOP + CHART_HEIGHT + 40, *parts, label="Mean cosine within and across senses in each layer"
    )


def _list(labels: list[str], senses: list[int], kinds: list[str]) -> str:
    items = [
        element(
            "li",
            f'<svg viewBox="-15 -15 30 30" aria-hidden="true"><g class="point">{_mark(senses[i], i)}</g></svg>',
            text_of(f"{label} ({kinds[senses[i]]})" if len(kinds) > 1 else label),
        )
        for i, label in enumerate(labels)
    ]
    return element("ol", *items, class_="words")
