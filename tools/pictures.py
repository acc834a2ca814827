"""Do two pictures show the same? Tolerant to fonts and anti-aliasing, intolerant to changed data."""

from __future__ import annotations

import base64
import io
import re

import numpy as np
import torch
import torch.nn.functional as F
from PIL import Image
from torch import Tensor

# A pixel is explained if the other picture has its colour, give or take this much (of 1), within the radius. A line
# that is drawn one pixel further, or smoothed otherwise, is explained; one that runs elsewhere is not.
COLOUR = 0.08
RADIUS = 2
# Share of unexplained pixels that may remain: the size of a few specks.
SHARE = 5e-4
# Figures of trained models move a little with the processor: their curves may be this much off, and no more.
TRAINED_RADIUS, TRAINED_SHARE = 20, 0.003


def same_picture(committed: str, fresh: str, *, trained: bool = False) -> bool:
    """Whether two base64 PNGs show the same; `trained` for figures of what training made."""
    share = unexplained(decode(committed), decode(fresh), radius=TRAINED_RADIUS if trained else RADIUS)
    return share <= (TRAINED_SHARE if trained else SHARE)


# What a number in a view may be off, absolutely and as a share of it: a fifth of the third decimal, the last that is
# shown, and far more than sums in another order differ by.
VIEW_TOLERANCE = 2e-4
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e[+-]?\d+)?")
_DATA = re.compile(r'(<script type="application/json">)(.*?)(</script>)', re.DOTALL)


def same_view(committed: str, fresh: str, *, trained: bool = False) -> bool:
    """Whether two interactive views are the same: the same script, words and parts, and nearly the same numbers.

    Of views of trained models only script, title and parts are compared. Packed weights count as a text of the same
    length.
    """
    if not trained:
        committed, fresh = (_DATA.sub(_without_packed, view) for view in (committed, fresh))
        a, b = ([float(x) for x in _NUMBER.findall(view)] for view in (committed, fresh))
        if len(a) != len(b) or any(abs(x - y) > VIEW_TOLERANCE * max(1, abs(x)) for x, y in zip(a, b, strict=True)):
            return False
        return _NUMBER.sub("0", committed) == _NUMBER.sub("0", fresh)
    return _outline(committed) == _outline(fresh)


def _without_packed(match: re.Match) -> str:
    """The data of a view with long texts of packed weights replaced by their length."""
    packed = re.sub(r'"[A-Za-z0-9+/]{200,}"', lambda text: f'"packed {len(text[0])}"', match[2])
    return match[1] + packed + match[3]


def _outline(view: str) -> list[str]:
    """Script, kind, title and names of the parts."""
    script = view[view.rfind("<script>") :]
    return [script, *re.findall(r'kind="[^"]*"|<p class="title">.*?</p>|data-k="[^"]*"|<text|<select|<button', view)]


def decode(png: str) -> Tensor:
    """A base64 PNG as `(3, height, width)` in [0, 1]."""
    image = Image.open(io.BytesIO(base64.b64decode(png))).convert("RGB")
    return torch.from_numpy(np.asarray(image).copy()).permute(2, 0, 1).float() / 255


def unexplained(a: Tensor, b: Tensor, *, radius: int = RADIUS) -> float:
    """Share of pixels of either picture whose colour the other has nowhere within the radius; 1.0 for other sizes.

    Another font changes the size of a tightly cut figure by some pixels: up to 3 % is allowed and scaled away.
    """
    height, width = a.shape[1:]
    if abs(b.shape[1] - height) > 0.03 * height or abs(b.shape[2] - width) > 0.03 * width:
        return 1.0
    if a.shape != b.shape:
        b = F.interpolate(b[None], (height, width), mode="bilinear", antialias=True)[0]
    return max(_missing(a, b, radius), _missing(b, a, radius))


def _missing(a: Tensor, b: Tensor, radius: int) -> float:
    outside = torch.maximum(a - _brightest(b, radius), -_brightest(-b, radius) - a)  # of the colours that b has nearby
    return (outside.amax(0) > COLOUR).float().mean().item()


def _brightest(picture: Tensor, radius: int) -> Tensor:
    """Each pixel's maximum over the square around it: over rows first and then over columns, which is the same."""
    size = 2 * radius + 1
    rows = F.max_pool2d(picture[None], (1, size), stride=1, padding=(0, radius))
    return F.max_pool2d(rows, (size, 1), stride=1, padding=(radius, 0))[0]
