"""The book's figures: with their texts, a link to their full size, room kept for them, and a version for phones."""

from __future__ import annotations

import hashlib
from binascii import a2b_base64
from pathlib import Path, PurePosixPath

import nbformat
from docutils import nodes
from PIL import Image
from sphinx.application import Sphinx
from sphinx.util.osutil import relative_uri
from sphinx.writers.html5 import HTML5Translator

from tools.pages import Page
from tools.stacked_pictures import least_width, stacked

PHONE = "screen and (max-width: 600px)"  # as in book.css
SMALL = 9.0  # points; text of a figure that does not say how small its text is


def said_of_pictures(notebook: nbformat.NotebookNode) -> dict[str, dict]:
    """What each picture of an executed notebook says of itself, by its checksum (SHA-256): alt, points, panels."""
    return {
        hashlib.sha256(a2b_base64(png)).hexdigest(): output.get("metadata", {}).get("image/png", {})
        for cell in notebook.cells
        for output in cell.get("outputs", ())
        if (png := output.get("data", {}).get("image/png"))
    }


def _give_texts_and_layouts(app: Sphinx, doctree: nodes.document) -> None:
    """Pictures without a text written by hand get the one that came with the output, such as of `attention_map`.

    Each picture learns how small its text is and where its panels are.
    """
    path = Page(app.env.docname).notebook
    if not path.exists():
        return
    pictures = said_of_pictures(nbformat.read(path, as_version=4))
    for image in doctree.findall(nodes.image):
        said = pictures.get(PurePosixPath(image["uri"]).stem, {})
        image["points"], image["panels"] = said.get("points", SMALL), said.get("panels", ())
        if not image.get("alt") and (alt := said.get("alt")):
            image["alt"] = alt


def _link_pictures(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """A tap on a figure opens it in full size."""
    if app.builder.format != "html":
        return
    folder = relative_uri(app.builder.get_target_uri(docname), app.builder.imagedir)
    for image in list(doctree.findall(nodes.image)):
        _, name = app.env.images.get(image["uri"], (None, ""))
        if name.endswith(".png") and not isinstance(image.parent, nodes.reference):
            link = nodes.reference(
                internal=True, refuri=f"{folder}/{name}", reftitle="full size", classes=["full-size"]
            )
            image.replace_self(link)
            link += image


def _visit_image(self: HTML5Translator, node: nodes.image) -> None:
    """As Sphinx does, with the size in pixels, so that text does not jump when a picture comes, which it does late.

    On a narrow screen the page shows the stacked picture, if there is one, and no picture narrower than `--least`.
    """
    path = Path(self.builder.srcdir, node["uri"])
    HTML5Translator.visit_image(self, node)
    if path.suffix != ".png" or not path.exists():
        return
    with Image.open(path) as picture:
        width, height = picture.size
        points, dpi = node.get("points", SMALL), picture.info.get("dpi", (100, 100))[0]
        narrow = stacked(picture, points, dpi, node.get("panels", ()))
    least = least_width(narrow.width if narrow else width, points, dpi)
    self.body[-1] = self.body[-1].replace(
        "<img ",
        f'<img width="{width}" height="{height}" style="--least: {least}px" loading="lazy" decoding="async" ',
        1,
    )
    if narrow:
        address = PurePosixPath(node["uri"])  # by now that of the built page
        name = f"{address.stem}-stacked.png"
        folder = Path(self.builder.outdir, self.builder.imagedir)
        folder.mkdir(parents=True, exist_ok=True)
        narrow.save(folder / name, compress_level=6)
        size = f'width="{narrow.width}" height="{narrow.height}"'
        source = f'<source media="{PHONE}" srcset="{address.with_name(name)}" {size}>'
        self.body[-1] = f"<picture>{source}{self.body[-1].rstrip()}</picture>\n"


def _depart_image(self: HTML5Translator, node: nodes.image) -> None:
    HTML5Translator.depart_image(self, node)


def setup(app: Sphinx) -> None:
    """Called by the book's Sphinx extension."""
    app.add_node(nodes.image, override=True, html=(_visit_image, _depart_image))
    app.connect("doctree-read", _give_texts_and_layouts)
    app.connect("doctree-resolved", _link_pictures)
