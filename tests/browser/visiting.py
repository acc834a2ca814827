"""What the tests of the book's pages start from: the two builds, and a page as a browser opens it."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path

import pytest
from filelock import FileLock

from tools.build_book import BUILD, build
from tools.publisher import Publisher, find_publisher

READY = "[...document.querySelectorAll('attention-view')].every(view => view.ready)"


@cache
def built(kind: str) -> tuple[Path, Publisher | None]:
    """Folder of the book as `make book` builds it ("local"), or as it is published: the header and all links differ.

    Of tests that run side by side the first builds it. The second must not, not even what is out of date: a build
    writes style sheets that the first may be reading.
    """
    folder = BUILD if kind == "local" else BUILD / "published/_build"
    folder.mkdir(parents=True, exist_ok=True)
    stamp, run = folder / ".test-run", os.environ.get("PYTEST_XDIST_TESTRUNUID", str(os.getpid()))
    with pytest.MonkeyPatch.context() as patch, FileLock(BUILD / ".lock"):
        if kind == "published":
            patch.setenv("GITHUB_REPOSITORY", "me/repo")
        if not stamp.exists() or stamp.read_text() != run:
            stamp.unlink(missing_ok=True)
            build(folder, quiet=True)
            stamp.write_text(run)
        return folder / "html", find_publisher()


class Visit:
    """A page as opened in the browser, and all that went wrong while it was."""

    def __init__(self, page, site):
        self.page, self.site = page, site
        self.outside, self.failed, self.errors, self.sizes = [], [], [], {}
        page.route("**/*", self._only_inside)
        page.on("requestfailed", lambda request: self.failed.append(request.url))
        page.on("response", lambda r: self.failed.append(f"{r.status} {r.url}") if r.status >= 400 else None)
        page.on("response", lambda r: self.sizes.update({r.url: int(r.headers.get("content-length", 0))}))
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on("console", lambda message: self.errors.append(message.text) if message.type == "error" else None)

    def _only_inside(self, route):
        url = route.request.url
        if url.startswith((self.site, "data:", "blob:", "file:")):
            route.continue_()
        else:
            self.outside.append(url)
            route.abort()

    def open(self, address, *, until=None):
        """Go to an address, and wait until a script says true, or until nothing more is loaded."""
        self.page.goto(address if ":" in address else f"{self.site}/{address}")
        if until:
            self.page.wait_for_function(until)
        else:
            self.page.wait_for_load_state("networkidle")
        return self
