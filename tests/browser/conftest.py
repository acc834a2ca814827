"""A browser without a network, and the built book on a local server."""

from __future__ import annotations

import http.server
import os
import shutil
import threading
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest
from driving import clean
from visiting import READY, Visit, built

from tools.publisher import Publisher

FLAGS = [
    "--no-sandbox",  # Chromium refuses to run as root otherwise, and CI runs in a container as root
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@dataclass(frozen=True)
class Site:
    """The built book on a local server.

    Args:
        address: where it is served, without a slash at the end.
        html: folder that it was built into.
        publisher: whose build it is, or None.
    """

    address: str
    html: Path
    publisher: Publisher | None


@pytest.fixture(scope="session", params=["local", pytest.param("published", marks=pytest.mark.thorough)])
def site(request):
    """Both builds of the book, each on a server."""
    html, publisher = built(request.param)
    handler = partial(_QuietHandler, directory=str(html))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield Site(f"http://127.0.0.1:{server.server_address[1]}", html, publisher)
        server.shutdown()


class _QuietHandler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        """Say nothing."""


@pytest.fixture(scope="session")
def browser():
    """Headless Chromium; where there is none the tests are skipped, but not in CI."""
    executable = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if executable is None:
        message = "Chromium is not installed (Debian: apt install chromium), so the book was not tried in a browser"
        if os.environ.get("CI"):
            pytest.fail(message)
        pytest.skip(message)
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=executable, args=FLAGS)
        yield chromium
        chromium.close()


@pytest.fixture
def new_page(browser):
    """A function that opens a page in a fresh context, which is closed after the test."""
    contexts = []

    def open_(width, height, scheme, **settings):
        viewport = {"width": width, "height": height}
        contexts.append(browser.new_context(viewport=viewport, color_scheme=scheme, **settings))
        return contexts[-1].new_page()

    yield open_
    for context in contexts:
        context.close()


@pytest.fixture
def visit(new_page, site):
    """A function that opens an address in a fresh context: `visit("book/attention.html", width=390, scheme="dark")`."""

    def open_(address, *, width=1280, height=900, scheme="light"):
        return Visit(new_page(width, height, scheme), site.address).open(address)

    return open_


@pytest.fixture
def show(new_page, tmp_path):
    """A function that opens a view, saved as a file, without a network: `show(view, width=390, touch=True)`."""

    def open_(view, *, width=1000, height=900, scheme="light", touch=False):
        seen = Visit(new_page(width, height, scheme, has_touch=touch, offline=True), "file://")
        return seen.open(view.save(tmp_path / "view.html").as_uri(), until=READY)

    return open_


@pytest.fixture
def page_of(show):
    """A function that opens a view like `show` and returns its page, which has to be clean after the test."""
    opened = []

    def open_(view, **settings):
        opened.append(show(view, **settings))
        return opened[-1].page

    yield open_
    for seen in opened:
        clean(seen)
