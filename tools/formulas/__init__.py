"""Formulas of the book: LaTeX becomes MathML while the book is built, so that a page shows them without a script.

Temml, vendored beside this file, does the translation; V8 (mini-racer) runs it.
"""

from __future__ import annotations

from functools import cache, lru_cache
from html import escape
from pathlib import Path

from docutils import nodes
from py_mini_racer import JSEvalException, MiniRacer
from sphinx.application import Sphinx
from sphinx.util import logging
from sphinx.util.math import get_node_equation_number
from sphinx.writers.html import HTML5Translator

LOGGER = logging.getLogger(__name__)


@lru_cache(maxsize=1)
def _temml() -> MiniRacer:
    engine = MiniRacer()
    engine.eval((Path(__file__).parent / "temml.min.js").read_text(encoding="utf-8"))
    return engine


@cache
def mathml(latex: str, *, display: bool = False) -> str:
    r"""The `<math>` element that shows `latex`, for example `"\\frac{1}{2}"`.

    Long formulas may break before a relation or a sum where the page is narrow, as TeX would break them.

    Raises:
        ValueError: `latex` is not a formula that Temml knows; the message is Temml's, with the place.
    """
    options = {"displayMode": display, "throwOnError": True, "wrap": "tex"}
    try:
        return _temml().call("temml.renderToString", latex, options)
    except JSEvalException as error:
        problem = str(error).split("ParseError:")[-1].split("\n    at ")[0]
        raise ValueError(
            f"expected a formula in LaTeX, got {latex!r}: {' '.join(problem.split())}"
        ) from None  # V8's message ends with all of Temml's source


def _shown(translator: HTML5Translator, node: nodes.Element, *, display: bool = False) -> str:
    try:
        return mathml(node.astext().strip(), display=display)
    except ValueError as error:
        LOGGER.warning(str(error), location=node)
        return f"<code>{escape(node.astext())}</code>"


def _inline(translator: HTML5Translator, node: nodes.math) -> None:
    translator.body.append(translator.starttag(node, "span", "", CLASS="math") + _shown(translator, node) + "</span>")
    raise nodes.SkipNode


def _block(translator: HTML5Translator, node: nodes.math_block) -> None:
    translator.body.append(translator.starttag(node, "div", "", CLASS="math"))
    translator.body.append(_shown(translator, node, display=True))
    if node["number"]:
        translator.body.append(f'<span class="eqno">({get_node_equation_number(translator, node)})')
        translator.add_permalink_ref(node, "Link to this equation")
        translator.body.append("</span>")
    translator.body.append("</div>\n")
    raise nodes.SkipNode


def setup(app: Sphinx) -> None:
    """Called by the book's Sphinx extension."""
    app.add_html_math_renderer("mathml", (_inline, None), (_block, None))
