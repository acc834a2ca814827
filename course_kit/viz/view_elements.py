"""What views are drawn with: elements of HTML and SVG, cells, buttons, sliders, lists and fields."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence
from typing import Any

from course_kit._checks import check_texts
from course_kit.viz.labels import readable_labels

__all__ = [
    "HIGH",
    "button",
    "cell",
    "choice",
    "controls",
    "drawing",
    "element",
    "labels_for",
    "number_box",
    "panels",
    "sentence",
    "slider",
    "text_of",
    "words",
]

# Up to this shade the text of a cell is black on white paper and white on black paper, above it the other way round:
# at this shade both have the same contrast, 4.5 or more, with the colours of the weights that are in `view`.
HIGH = 0.7


def sentence(words: str) -> str:
    """These words with a capital letter at the beginning; a quoted token stays as it is."""
    return words[:1].upper() + words[1:]


def element(tag: str, *children: str, **attributes: Any) -> str:
    """An element of HTML or SVG: `class_`, `data_k`, `aria_label` become class, data-k, aria-label; None is left out.

    Children are markup; escape text with `text_of`.
    """
    written = "".join(
        f' {name.rstrip("_").replace("_", "-") if name not in _CAMEL else name}="{html.escape(_plain(value))}"'
        for name, value in attributes.items()
        if value is not None
    )
    return f"<{tag}{written}>{''.join(children)}</{tag}>"


_CAMEL = {"viewBox"}


def _plain(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def text_of(words: object) -> str:
    """Text, escaped for HTML."""
    return html.escape(str(words))


def drawing(width: float, height: float, *parts: str, label: str, class_: str = "") -> str:
    """An SVG that fills the width it is given. `label` names it for those who hear the page."""
    return element(
        "svg", *parts, viewBox=f"0 0 {width:g} {height:g}", role="group", aria_label=label, class_=class_ or None,
        style=f"max-width:{width:g}px",
    )  # fmt: skip


def words(x: float, y: float, text: object, *, key: str | None = None, class_: str | None = None) -> str:
    """A word or number in an SVG, centred at a point (classes `start`, `end`, `small`, and the roles' names)."""
    return element("text", text_of(text), x=float(x), y=float(y), data_k=key, class_=class_)


def cell(
    x: float, y: float, width: float, height: float, shade: float, text: str = "", *, key: str | None = None,
    label: str | None = None, role: str | None = None, tabindex: int | None = None, pressed: bool | None = None,
) -> str:  # fmt: skip
    """A cell of a map: its colour is as strong as its shade in [0, 1] says, its text stays readable on it."""
    return element(
        "g",
        element("rect", x=float(x), y=float(y), width=float(width), height=float(height), fill_opacity=float(shade)),
        words(x + width / 2, y + height / 2, text) if text else "",
        class_="cell high" if shade > HIGH else "cell", data_k=key, role=role, aria_label=label, tabindex=tabindex,
        aria_pressed=pressed,
    )  # fmt: skip


def panels(*parts: str) -> str:
    """Pictures side by side, or one below the other where the page is narrow: each at most 340 units wide, so that its
    text is legible on a phone."""
    return element("div", *parts, class_="panels")


def controls(*parts: str) -> str:
    """A row of controls, which breaks where the page is narrow."""
    return element("div", *parts, class_="controls")


def slider(key: str, label: str, low: float, high: float, value: float, step: float = 1) -> str:
    """A labelled slider with its value behind it (key `<key>-value`)."""
    return element(
        "label", text_of(label), " ",
        f'<input type="range" data-k="{key}" min="{low:g}" max="{high:g}" step="{step:g}" value="{value:g}">', " ",
        element("output", text_of(f"{value:g}"), data_k=f"{key}-value"),
    )  # fmt: skip


def button(key: str, label: str, *, pressed: bool | None = None) -> str:
    """A button; with `pressed` one that stays in."""
    return element("button", text_of(label), type="button", data_k=key, aria_pressed=pressed)


def choice(key: str, label: str, options: Iterable[tuple[str, str]], chosen: str | None = None) -> str:
    """A labelled list of options (value, words) of which one is chosen."""
    marked = "".join(
        f'<option value="{html.escape(value)}"{" selected" if value == chosen else ""}>{text_of(said)}</option>'
        for value, said in options
    )
    return element("label", text_of(label), " ", element("select", marked, data_k=key))


def number_box(key: str, label: str, value: float) -> str:
    """A field for one number, named for those who hear the page."""
    return (
        f'<input type="number" inputmode="decimal" data-k="{key}" aria-label="{html.escape(label)}" '
        f'value="{value:g}" step="0.5">'
    )


def labels_for(labels: Sequence[str] | None, length: int, name: str, default: str = "") -> list[str]:
    """The labels given, as pictures show them, or positions.

    Raises:
        TypeError: labels is not a list of texts.
        ValueError: as many labels as there are entries are needed.
    """
    if labels is None:
        return [f"{default}{i}" for i in range(length)]
    texts = check_texts(**{name: labels})
    if len(texts) != length:
        raise ValueError(f"{name} must have a label for each of the {length}, got {len(texts)}; pass that many labels")
    return readable_labels(texts)
