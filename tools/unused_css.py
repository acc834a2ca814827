"""Make the built book light: without rules and files of the theme that no page uses, and with pictures packed well.

The theme's style sheet is written for every site; four fifths of its rules match nothing in this book.
"""

from __future__ import annotations

import io
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import tinycss2
from lxml import html as lxml_html
from PIL import Image
from sphinx.application import Sphinx
from tinycss2.ast import AtRule, Node, QualifiedRule

UNUSED_FONT = "fontawesome/webfonts"  # icons.css draws the signs
NESTING = {"media", "supports", "container", "layer"}
UNUSED = ("scripts/fontawesome.js*", "vendor/fontawesome", "locales", "scripts/*.map", "styles/*.map", "sphinx-thebe.*",
          "styles/theme.css")  # fmt: skip
_COLOURLESS = re.compile(r'<span class="[np]">([^<]*)</span>')


def plain_code(body: str) -> str:
    """Code without spans for names and punctuation: they have the colour of the text around them, and are an eighth of
    the page that lists all functions."""
    return re.sub(r"<pre>.*?</pre>", lambda code: _COLOURLESS.sub(r"\1", code[0]), body, flags=re.DOTALL)


def words_in_use(folder: Path) -> set[str]:
    """Classes and ids on the pages of a built book, and every word of its scripts, which may set others."""
    words: set[str] = set()
    for page in folder.rglob("*.html"):
        for element in lxml_html.parse(str(page)).iter("*"):
            words.update(element.get("class", "").split())
            if name := element.get("id"):
                words.add(name)
            if element.tag == "script" and element.text:
                words.update(re.findall(r"[\w-]+", element.text))
    for script in folder.rglob("*.js"):
        words.update(re.findall(r"[\w-]+", script.read_text(encoding="utf-8")))
    return words


def slim_sheet(css: str, used: set[str]) -> str:
    """The rules of `css` that could match something, with comments left out; licences (`/*!`) stay."""
    licences = "".join(f"{comment}\n" for comment in re.findall(r"/\*!.*?\*/", css, re.DOTALL))
    rules = tinycss2.parse_stylesheet(css, skip_comments=True, skip_whitespace=True)
    return licences + "\n".join(_kept(rules, used)) + "\n"


def _kept(rules: list[Node], used: set[str]) -> Iterator[str]:
    for rule in rules:
        if isinstance(rule, QualifiedRule):
            selectors = [part for part in _selectors(rule.prelude) if _may_match(part, used)]
            if selectors and tinycss2.serialize(rule.content).strip():
                yield f"{','.join(selectors)}{{{tinycss2.serialize(rule.content).strip()}}}"
        elif isinstance(rule, AtRule) and rule.lower_at_keyword in NESTING and rule.content is not None:
            inner = tinycss2.parse_rule_list(rule.content, skip_comments=True, skip_whitespace=True)
            if kept := "\n".join(_kept(inner, used)):
                yield f"@{rule.at_keyword}{tinycss2.serialize(rule.prelude)}{{{kept}}}"
        elif not (
            isinstance(rule, AtRule) and rule.lower_at_keyword == "font-face" and UNUSED_FONT in rule.serialize()
        ):
            yield rule.serialize()


def _selectors(prelude: list[Node]) -> list[str]:
    """The selectors of a rule; commas inside brackets do not part them."""
    parts: list[list[Node]] = [[]]
    for node in prelude:
        if node.type == "literal" and node.value == ",":
            parts.append([])
        else:
            parts[-1].append(node)
    return [tinycss2.serialize(part).strip() for part in parts]


def _may_match(selector: str, used: set[str]) -> bool:
    """Whether every class and id that something must have is in use. Those in `:not()` and `:is()` need not be."""
    required = selector
    while (shorter := re.sub(r"\([^()]*\)|\[[^\]]*\]", "", required)) != required:
        required = shorter
    return all(name.replace("\\", "") in used for name in re.findall(r"[.#]((?:[\w-]|\\.)+)", required))


def pack_picture(path: Path) -> None:
    """Write a PNG smaller where that loses nothing: packed well, and without an alpha channel that says nothing.

    matplotlib writes an alpha channel. A picture without one was packed by an earlier build, or when it was stacked.
    """
    with Image.open(path) as picture:
        if picture.mode == "RGB":
            return
        picture.load()
        opaque = picture.mode == "RGBA" and picture.getextrema()[3] == (255, 255)
        packed = io.BytesIO()
        plain = picture.convert("RGB") if opaque else picture
        plain.save(packed, "PNG", compress_level=7, dpi=picture.info.get("dpi", (100, 100)))
    if packed.tell() < path.stat().st_size:
        path.write_bytes(packed.getvalue())


def _slim(app: Sphinx, error: Exception | None) -> None:
    if error is not None or app.builder.name != "html":
        return
    folder = Path(app.outdir)
    static = folder / "_static"
    for pattern in UNUSED:
        for path in static.glob(pattern):
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    for picture in (folder / "_images").glob("*.png"):
        pack_picture(picture)
    used = words_in_use(folder)
    for sheet in static.rglob("*.css"):
        text = sheet.read_text(encoding="utf-8")
        slim = slim_sheet(text, used)
        if len(slim) < len(text):
            sheet.write_text(slim, encoding="utf-8")


def setup(app: Sphinx) -> None:
    """Called by the book's Sphinx extension."""
    app.connect("build-finished", _slim)
