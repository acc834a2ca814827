"""Sphinx extension of the book: where outputs are cached, exercises and questions in full, no Thebe, a Colab button
where a publisher is known. Figures, formulas, the title page and search have modules of their own."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pybtex.plugin
from sphinx.application import Sphinx
from sphinx.config import Config
from sphinx.util import logging

from course_kit.exercises import Exercise
from tools import figures, formulas, live_translator, navigation, site_search, title_page
from tools.api_reference import anchor, api_sources
from tools.exercise_sections import fold, sources_of
from tools.notebooks import OutOfStepError, render, write_notebook
from tools.page_to_notebook import to_notebook
from tools.pages import Page, in_full
from tools.publisher import the_publisher

LOGGER = logging.getLogger(__name__)

# It looks through all installed packages at each citation: two seconds of a build.
pybtex.plugin._load_entry_point = cache(pybtex.plugin._load_entry_point)


def _configure(app: Sphinx, config: Config) -> None:
    if cache := os.environ.get("COURSE_BOOK_CACHE"):
        config.nb_execution_cache_path = cache
    publisher = the_publisher()
    if publisher is None:
        return
    config.html_baseurl = publisher.book_url
    config.html_theme_options.update(
        repository_url=publisher.repository_url,
        repository_branch="main",
        use_repository_button=True,
        use_issues_button=True,
    )


def _put_in_exercises(app: Sphinx, docname: str, source: list[str]) -> None:
    # A page is read again when its exercises or docstrings change, or when its notebook was executed again.
    for path in {*sources_of(source[0]), *api_sources(source[0]), Page(docname).notebook}:
        if path.exists():
            app.env.note_dependency(str(path))
    source[0] = fold(in_full(source[0], Page(docname)), _where(Page(docname)))


def _where(page: Page) -> Callable[[Exercise], str]:
    """A line for each exercise of a page: a button that opens its cell in Colab, the notebook, and a box to tick."""
    notebook = f"{'../' * page.name.count('/')}_sources/{page.name}.ipynb"
    publisher = the_publisher()

    @cache
    def cells() -> dict[str, str]:
        return {cell.source: cell.id for cell in to_notebook(page, publisher).cells}

    def line(exercise: Exercise) -> str:
        jupyter = f'in Jupyter, with <a href="{notebook}" download>the notebook of this page</a>'
        done = f'<label hidden><input type="checkbox" data-exercise="{anchor(exercise.name)}"> solved</label>'
        if publisher is None:
            return f'<p class="do-it"><span>Do this exercise {jupyter}.</span> {done}</p>'
        address = f"{publisher.colab_url(page.name)}#scrollTo={cells()[exercise.stub.rstrip()]}"
        return (
            f'<p class="do-it"><a href="{address}">Do this exercise in Colab</a> <span>or {jupyter}.</span> {done}</p>'
        )

    return line


def _add_colab_button(app: Sphinx, pagename: str, templatename: str, context: dict, doctree) -> None:
    publisher = the_publisher()
    page = Page(pagename)
    if publisher is None or doctree is None or not page.source.exists() or not page.has_code:
        return
    context["header_buttons"].insert(
        0,
        {
            "type": "link",
            "text": "Colab",
            "tooltip": "Open this chapter in Colab",
            "icon": "_static/images/logo_colab.png",
            "url": publisher.colab_url(page.name),
            "label": "colab-button",
        },
    )


def _add_notebook_download(app: Sphinx, pagename: str, templatename: str, context: dict, doctree) -> None:
    """The page's notebook, to keep: executed, without MyST, and with the publisher's links."""
    page = Page(pagename)
    if doctree is None or not page.source.exists() or not page.has_code:
        return
    try:
        notebook = render(page, the_publisher())
    except OutOfStepError:
        return  # the build has said so; an old notebook would not be this page's
    except ValueError as error:  # something that notebooks cannot show
        LOGGER.warning(str(error))
        return
    write_notebook(notebook, Path(app.outdir) / "_sources" / f"{pagename}.ipynb")
    menu = next(group for group in context["header_buttons"] if group.get("label") == "download-buttons")
    menu["buttons"].insert(
        0,
        {
            "type": "link",
            "text": ".ipynb",
            "tooltip": "Download the notebook",
            "icon": "fas fa-code",
            "url": context["pathto"](f"_sources/{pagename}.ipynb", 1),
            "label": "download-notebook-button",
        },
    )


UNUSED = ("thebe", "togglebutton", "design-tabs", "toggleHint")


def _remove_unused(app: Sphinx, pagename: str, templatename: str, context: dict, doctree) -> None:
    """What Jupyter Book loads on every page although nothing here uses it; Thebe's scripts twice, and from a CDN."""

    def is_used(file) -> bool:
        described = f"{file.filename} {file.attributes.get('body', '')}"
        return not any(name.lower() in described.lower() for name in UNUSED)

    for kind in ("script_files", "css_files"):
        context[kind] = list(filter(is_used, context[kind]))


def _mend_roles(app: Sphinx, pagename: str, templatename: str, context: dict, doctree) -> None:
    """docutils calls a bibliography a list, and gives its entries a role that no list has: assistive software then
    finds a list without entries. Folded code is called by the words that are seen, and not by others."""
    if body := context.get("body"):
        body = body.replace('<div role="list" class="citation-list">', '<div class="citation-list">')
        context["body"] = body.replace(' role="doc-biblioentry"', "").replace(' aria-label="Toggle hidden content"', "")


def _name_toggles(app: Sphinx, pagename: str, templatename: str, context: dict, doctree) -> None:
    """The arrow beside a chapter that opens its deeper pages is a picture; assistive software needs words."""
    generate = context.get("generate_toctree_html")
    if generate is None:
        return
    arrow, words = '<summary><span class="toctree-toggle"', "Pages that go deeper"
    named = arrow.replace("<summary>", f'<summary aria-label="{words}">')
    context["generate_toctree_html"] = lambda *args, **options: str(generate(*args, **options)).replace(arrow, named)


def setup(app: Sphinx) -> dict:
    """Called by Sphinx."""
    figures.setup(app)
    formulas.setup(app)
    live_translator.setup(app)
    navigation.setup(app)
    title_page.setup(app)
    site_search.setup(app)
    app.connect("config-inited", _configure, priority=100)  # before the theme and myst-nb read their settings
    app.connect("source-read", _put_in_exercises)
    app.connect("html-page-context", _add_colab_button, priority=900)  # after the theme has made its buttons
    app.connect("html-page-context", _add_notebook_download, priority=900)
    app.connect("html-page-context", _remove_unused, priority=900)
    app.connect("html-page-context", _mend_roles, priority=900)
    app.connect("html-page-context", _name_toggles, priority=900)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
