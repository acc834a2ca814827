"""What the tests of the views read from the HTML that is there before any script runs."""

from __future__ import annotations

import re
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

from course_kit.viz.view import View


def drawings(view: View) -> list[Element]:
    """The SVGs of a view."""
    return [ElementTree.fromstring(svg) for svg in re.findall(r"<svg.*?</svg>", view.body, re.DOTALL)]


def parts(view: View) -> dict[str, Element]:
    """The parts that the script moves, by their keys."""
    return {node.get("data-k"): node for svg in drawings(view) for node in svg.iter() if node.get("data-k")}


def classed(view: View, *names: str) -> list[Element]:
    """The nodes that have all these classes."""
    return [n for svg in drawings(view) for n in svg.iter() if set(names) <= set(n.get("class", "").split())]


def written(view: View) -> list[str]:
    """All words and numbers in the SVGs."""
    return [n.text for svg in drawings(view) for n in svg.iter("text")]
