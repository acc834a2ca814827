"""A view of the work of a decoder, step by step, with and without a cache of keys and values."""

from __future__ import annotations

from collections.abc import Sequence

from course_kit._checks import check_whole
from course_kit.viz.view import View
from course_kit.viz.view_elements import drawing, element, panels, slider, words
from course_kit.viz.view_numbers import fixed

__all__ = ["cache_work"]

WIDTH = 320  # units of a panel
_MOST_NEW = 40

_WORK_STYLE = """<style>
attention-view :is(.now,.again){stroke:var(--weight)}
attention-view .again{stroke-opacity:.4}
attention-view .reused{stroke:var(--key)}
attention-view .masked{stroke:var(--muted);stroke-dasharray:.1 .15}
attention-view .masked.swatch{stroke-dasharray:1.5 2.5}
attention-view .empty{stroke:var(--grid)}
</style>"""


def cache_work(len_source: int, num_steps: int, d_model: int, num_layers: int, *, d_ff: int | None = None) -> View:
    """The work of a decoder, step by step, with and without a cache of keys and values.

    Counted are the multiply-adds of all matrix products of the decoder's layers. With d = d_model, S = len_source, a
    layer that gets t target positions needs, without a cache,

        self-attention    4 t d² (projections) + 2 t² d (scores and weighted sum, masked ones too)
        cross-attention   2 t d² (query and output) + 2 S d² (keys, values of the source) + 2 t S d
        feed-forward      2 t d d_ff

    With a cache, step t computes one position: 4 d² + 2 t d, 2 d² + 2 S d, 2 d d_ff, and the 2 S d² of the source in
    the first step only. Not counted: embeddings, norms, softmax, biases, the output layer, the encoder. The cache
    holds 2 (t + S) d numbers a layer, for one sentence.

    Args:
        len_source: S, source tokens, padding included.
        num_steps: target tokens that are produced, 1 to 40.
        d_model: features of a position.
        num_layers: decoder layers.
        d_ff: hidden features of the feed-forward network; 4 · d_model if not given.

    Raises:
        ValueError: a size that is no positive whole number, or too large.
    """
    d_ff = 4 * d_model if d_ff is None and type(d_model) is int else d_ff
    sizes = {"len_source": len_source, "d_model": d_model, "num_layers": num_layers, "d_ff": d_ff}
    for name, size in sizes.items():
        check_whole(**{name: size}, most=100_000, hint="; the sizes of a real decoder fit")
    check_whole(num_steps=num_steps, most=_MOST_NEW, hint="; each step is a row of the picture")
    states = _states(len_source, num_steps, d_model, num_layers, d_ff)
    start = (num_steps + 1) // 2
    paths, _, *texts = states[start - 1]
    return View(
        kind="cache_work",
        title="Work with and without a cache",
        description=f"A decoder of {num_layers} {'layer' if num_layers == 1 else 'layers'}, d_model {d_model}, d_ff "
        f"{d_ff}, {len_source} source tokens. Step t computes t × t scores in each head without a cache, 1 × t with "
        f"one. {states[-1][1]} The cache then holds {states[-1][-1].replace('; ', ' numbers, ')} MiB in float32.",
        body=_WORK_STYLE
        + slider("step", "step t", 1, num_steps, start).replace("<input ", '<input style="width:12rem" ')
        + panels(
            _grid("without a cache", num_steps, list(enumerate(paths))[:3], texts[:5]),
            _grid("with a cache", num_steps, list(enumerate(paths))[3:], texts[5:]),
        ),
        data={"states": states},
        hint="Move the slider from step to step, and compare what has to be computed.",
        status=states[start - 1][1],
        note="Counted: multiply-adds of the matrix products of all decoder layers (projections, scores, weighted sums, "
        "cross-attention, feed-forward). Not counted: embeddings, norms, softmax, output layer, encoder.",
    )


_DRAWN = ("again", "masked", "now", "reused", "now")  # kinds of cells, three without a cache, two with one
_LEGEND = {
    "now": "computed: new",
    "again": "computed again",
    "masked": "masked, in vain",
    "reused": "from the cache",
    "empty": "not computed",
}
_COUNTED = (
    *("scores, each head", "positions computed", "multiply-adds", "all steps so far", "times that with a cache"),
    *("scores, each head", "positions computed", "multiply-adds", "all steps so far", "cache, numbers; MiB"),
)


def _states(len_source: int, num_steps: int, d: int, num_layers: int, d_ff: int) -> list[list[list[str] | str]]:
    """For each step the paths of all kinds of cells, what is said, and the text of all numbers."""
    states, without, cached = [], 0, 0
    for t in range(1, num_steps + 1):
        row = 6 * d * d + 2 * len_source * d + 2 * d * d_ff  # each position computed, whatever stands before it
        source = 2 * len_source * d * d
        now = num_layers * (t * row + 2 * t * t * d + source)
        one = num_layers * (row + 2 * t * d + (source if t == 1 else 0))
        without, cached = without + now, cached + one
        kept = 2 * num_layers * (t + len_source) * d
        mebibytes, ratio = fixed(4 * kept / 2**20), fixed(without / cached, 2)
        states.append(
            [
                _paths(t),
                f"So far {ratio} times as much work without a cache; "
                f"step {t}: {now:,} multiply-adds, with one {one:,}.",
                *(f"{t} × {t} = {t * t}", f"{t}", f"{now:,}", f"{without:,}", ratio),
                *(f"1 × {t} = {t}", "1", f"{one:,}", f"{cached:,}", f"{kept:,}; {mebibytes}"),
            ]
        )
    return states


def _paths(t: int) -> list[str]:
    """Cells of each kind as strokes along their rows, a cell wide; row -2 holds keys and values."""
    new, old = f"M0 {t - 1}h{t}M{t - 1}-2h1", f"M0-2h{t - 1}"
    again = "".join(f"M0 {i}h{i + 1}" for i in range(t - 1))
    masked = "".join(f"M{i + 1} {i}H{t}" for i in range(t - 1))
    return [old + again, masked, new, old, new]


def _grid(title: str, num_steps: int, paths: Sequence[tuple[int, str]], texts: Sequence[str]) -> str:
    """Queries on rows, keys on columns, above them keys and values, in units of a cell; below, the work in numbers."""
    size = 168 / (num_steps + 2)
    left, top, below = 24, 36, 222
    lines = "".join(f"M0 {i}h{num_steps}M{i} 0v{num_steps}" for i in range(num_steps + 1))
    lines += f"M0-2h{num_steps}v1H0z" + "".join(f"M{i}-2v1" for i in range(1, num_steps))
    drawn = [element("path", d=path, class_=_DRAWN[i], data_k=f"path{i}") for i, path in paths]
    grid = element(
        "g",
        element("g", *drawn, transform="translate(0 .5)"),
        element("path", d=lines, stroke="var(--grid)", fill="none", stroke_width=0.6 / size),
        transform=f"translate({left} {top + 2 * size:.6g})scale({size:.6g})",
    )
    side = left + size * num_steps + 12
    parts = [
        words(0, 9, title, class_="start"),
        words(left, 27, "keys and values", class_="start small key"),
        element("text", "queries", class_="small query", transform="translate(10 130)rotate(-90)"),
        grid,
    ]
    kinds = [_DRAWN[i] for i, _ in paths]
    for line, kind in enumerate([*kinds, "empty"]):
        y = top + 2 * size + 14 + 24 * line
        swatch = element("path", d=f"M{side:g} {y:g}h16", class_=f"{kind} swatch", stroke_width=12)
        parts += [swatch, words(side + 22, y, _LEGEND[kind], class_="start small")]
    first = 0 if paths[0][0] == 0 else 5
    for i, text in enumerate(texts):
        y = below + 21 * i
        parts += [
            words(0, y, _COUNTED[first + i], class_="start small"),
            words(WIDTH - 2, y, text, key=f"text{first + i}", class_="end"),
        ]
    return drawing(WIDTH, below + 21 * 4 + 12, *parts, label=f"Scores of one head {title}, and the work of the step")
