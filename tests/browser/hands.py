"""The two ways in which the tests drive a view, and whether it then shows what Python draws for that state."""

import re
from pathlib import Path

import pytest
from driving import said

# A wide page with a mouse, and a dark phone with a finger.
layouts = pytest.mark.parametrize(("width", "scheme", "touch"), [(1000, "light", False), (390, "dark", True)])

PICTURE = """[...document.querySelectorAll("svg *, [data-k=told], [aria-selected=true]")].map(n => {
    const [b, s] = [n, n.ownerSVGElement || n].map(node => node.getBoundingClientRect()), look = getComputedStyle(n);
    return [(n.ariaSelected ? n.ariaLabel : "") + (n.children.length ? "" : n.textContent),
        [+look.fillOpacity, +look.strokeOpacity, b.x - s.x, b.y - s.y, b.width, b.height]];
}).filter(([words, [, , , , width, height]]) => width || height)"""


def assert_drawn_as(page, view):
    """The page says and shows what Python draws for a view: words, and marks with their strength, place and size."""
    said(page, view.status)
    text = view.save(Path(page.url.removeprefix("file://"))).read_text()
    drawn = page.context.new_page()
    drawn.set_content(re.sub("<script>.*?</script>", "", text, flags=re.DOTALL))  # a script may draw anew at once
    found, wanted = page.evaluate(PICTURE), drawn.evaluate(PICTURE)
    drawn.close()
    assert [words for words, _ in found] == [words for words, _ in wanted]
    for (words, numbers), (_, expected) in zip(found, wanted, strict=True):
        assert numbers == pytest.approx(expected, abs=0.6), words
        assert numbers[:2] == pytest.approx(expected[:2], abs=0.01), words
