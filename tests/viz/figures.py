"""The static figures whose pictures are kept in `baseline`. Weights come from formulas, so that no draw can change."""

from __future__ import annotations

import base64
import io
from collections.abc import Callable
from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
import torch
from matplotlib.axes import Axes
from PIL import Image
from torch import Tensor

from course_kit.viz import attention_map, use_style
from tools.pictures import decode, unexplained

# Share of pixels that may differ. Another hinting of the font leaves up to 0.2 % unexplained, a weight that is off by
# 0.1 in one cell of 25 more than 1 %, a diagonal of 200 tokens that is off by four 0.3 %.
SHARE = 0.0025

BASELINE = Path(__file__).parent / "baseline"
WORDS = ["time", "flies", "like", "an", "arrow"]


def weights(*shape: int, sharpness: float = 2.0) -> Tensor:
    """Rows that sum to one, of which no two are alike and none is symmetric."""
    numbers = torch.arange(torch.Size(shape).numel(), dtype=torch.float64)
    return (sharpness * torch.sin(numbers**1.7)).view(shape).softmax(-1)


def long_map() -> Axes:
    """Two hundred tokens with a diagonal: thinned labels, a colour bar."""
    diagonal = 6 * torch.eye(200, dtype=torch.float64)
    return attention_map(diagonal.softmax(-1), [f"word {i}" for i in range(200)])


def odd_rows() -> Axes:
    """Rows that do not sum to one, one of them empty."""
    odd = weights(4, 4)
    odd[1] = 0.0
    odd[2] *= 0.5
    return attention_map(odd)


def side_by_side() -> Axes:
    """Two maps in axes that were there before."""
    _, axes = plt.subplots(1, 2, figsize=(6.4, 2.8))
    for ax, sharpness in zip(axes, (1.0, 4.0), strict=True):
        attention_map(weights(3, 4, sharpness=sharpness), ax=ax, title=f"sharpness {sharpness:g}")
    return axes[0]


FIGURES: dict[str, Callable[[], Axes]] = {
    "words": lambda: attention_map(weights(5, 5), WORDS, WORDS, title="who looks where"),  # printed values, a title
    "wide": lambda: attention_map(weights(3, 7)),  # more keys than queries, positions instead of words
    "long": long_map,
    "odd_rows": odd_rows,
    "one_token": lambda: attention_map(torch.ones(1, 1)),  # the smallest map
    "side_by_side": side_by_side,
}


def picture(draw: Callable[[], Axes]) -> bytes:
    """The figure of these axes in the style of the book as a small PNG."""
    with mpl.rc_context({"backend": "Agg"}):
        use_style()
        file = io.BytesIO()
        draw().figure.savefig(file, format="png", dpi=110)
        plt.close("all")
    # In 256 colours, each within the comparison's tolerance of its own, a file is half as large.
    few = Image.open(file).convert("RGB").quantize(256, dither=Image.Dither.NONE)
    file = io.BytesIO()
    few.save(file, format="png", optimize=True)
    return file.getvalue()


def difference(a: bytes, b: bytes) -> float:
    """Share of the pixels of two PNGs that font and smoothing do not explain."""
    return unexplained(*(decode(base64.b64encode(png).decode()) for png in (a, b)))
