"""Who publishes this copy of the course: the one place that knows the repository's and the book's address.

A fork that publishes gets its own links without an edit. Looked for in this order: the environment variable
`GITHUB_REPOSITORY` (set in GitHub Actions), the git remote `origin`, `repository.url` in `_config.yml`. Where none of
them names a GitHub repository there is no publisher, and nothing may link to one or install from one.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parent.parent
NOTEBOOK_BRANCH = "notebooks"  # holds the notebooks as rendered for Colab, written by the publishing workflow

_GITHUB = re.compile(r"(?:^|//|@)github\.com[/:](?P<owner>[\w.-]+)/(?P<name>[\w.-]+?)(?:\.git)?/?$")


@dataclass(frozen=True)
class Publisher:
    """A GitHub repository that publishes the book on its Pages."""

    owner: str
    name: str
    commit: str | None  # what is being published; None outside a git checkout
    book_url: str  # ends with "/"

    @property
    def repository_url(self) -> str:
        return f"https://github.com/{self.owner}/{self.name}"

    def requirement(self, extra: str = "") -> str:
        """What pip installs `course_lib` from, with an extra or without: this repository at this commit."""
        at = f"@{self.commit}" if self.commit else ""
        return f"course_lib{f'[{extra}]' if extra else ''} @ git+{self.repository_url}{at}"

    def page_url(self, page: str, anchor: str = "") -> str:
        """Address of a page ("book/attention") in the published book."""
        return f"{self.book_url}{page}.html" + (f"#{anchor}" if anchor else "")

    def colab_url(self, page: str) -> str:
        """Address that opens the page's notebook in Colab."""
        return f"https://colab.research.google.com/github/{self.owner}/{self.name}/blob/{NOTEBOOK_BRANCH}/{page}.ipynb"


def find_publisher(root: Path = ROOT, environ: Mapping[str, str] = os.environ) -> Publisher | None:
    """The publisher of the checkout at `root`, or None where none is known."""
    config = yaml.safe_load((root / "_config.yml").read_text(encoding="utf-8"))
    candidates = (
        f"https://github.com/{environ['GITHUB_REPOSITORY']}" if environ.get("GITHUB_REPOSITORY") else "",
        _git(root, "remote", "get-url", "origin"),
        (config.get("repository") or {}).get("url") or "",
    )
    match = next(filter(None, (_GITHUB.search(url) for url in candidates)), None)
    if match is None:
        return None
    owner, name = match["owner"], match["name"]
    site = f"https://{owner.lower()}.github.io/"
    own_address = (config.get("html") or {}).get("baseurl") or ""
    book_url = own_address or (site if name.lower() == f"{owner.lower()}.github.io" else f"{site}{name}/")
    # What is checked out is what is published; GITHUB_SHA may be a later commit.
    commit = _git(root, "rev-parse", "--verify", "--quiet", "HEAD") or environ.get("GITHUB_SHA") or None
    return Publisher(owner, name, commit, book_url.rstrip("/") + "/")


@cache
def the_publisher() -> Publisher | None:
    """The same for all pages of a build; looking for it starts git."""
    return find_publisher()


def _git(root: Path, *arguments: str) -> str:
    """Output of a git command, empty where there is no git, no checkout, or nothing to say."""
    try:
        result = subprocess.run(["git", "-C", str(root), *arguments], capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return ""
    return result.stdout.strip() if result.returncode == 0 else ""
