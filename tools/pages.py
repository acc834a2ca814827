"""The pages of the book, as the table of contents lists them."""

from __future__ import annotations

import posixpath
import re
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import yaml

from course_kit.exercises import STEMS
from tools.api_reference import expand_api
from tools.exercise_sections import expand
from tools.myst import blocks
from tools.publisher import ROOT
from tools.questions import expand_questions
from tools.reading import with_times


@dataclass(frozen=True)
class Page:
    """A MyST source and, if it has code cells, its executed twin."""

    name: str  # "book/attention", relative to the root, without suffix
    root: Path = ROOT

    @property
    def source(self) -> Path:
        return self.root / f"{self.name}.md"

    @property
    def notebook(self) -> Path:
        return self.root / f"{self.name}.ipynb"

    @property
    def text(self) -> str:
        """The source with its exercises and questions in full."""
        return in_full(self.source.read_text(encoding="utf-8"), self)

    @property
    def has_code(self) -> bool:
        return any(block.is_directive("code-cell") for block in blocks(self.text))

    @property
    def is_deeper(self) -> bool:
        """Whether the page stands under a chapter, for readers who want to know more."""
        return self.name.startswith("book/deeper/")

    @property
    def is_lesson(self) -> bool:
        """Whether the page teaches: a chapter, or a deeper page of one."""
        return self.is_deeper or posixpath.basename(self.name) in (*STEMS, "one_sentence")

    @property
    def standing(self) -> str:
        """Of a lesson, where it stands in the course: "Chapter 3 of 13", or "Optional"."""
        if self.is_deeper:
            return "Optional"
        if not self.is_lesson:
            return ""
        lessons = [page.name for page in all_pages(self.root) if page.is_lesson and not page.is_deeper]
        return f"Chapter {lessons.index(self.name) + 1} of {len(lessons)}"

    @property
    def title(self) -> str:
        match = re.search(r"^# (.+)$", self.text, re.MULTILINE)
        if match is None:
            raise ValueError(f"{self.source} has no title: expected a line that starts with '# '")
        return match[1].strip()

    def named(self, target: str) -> Page:
        """The page that a link of this page means, relative to this page's folder."""
        return Page(posixpath.normpath(posixpath.join(posixpath.dirname(self.name), target)), self.root)

    def labels(self) -> dict[str, str]:
        """Labels of headings on this page, `(label)=` in the line before, and the headings' texts."""
        return dict(_labels(self.text))


# A build asks for each page's text and headings thousands of times, once for each link. What is remembered here depends
# on the text of a file alone, so a file that changes is read anew.


def in_full(source: str, page: Page) -> str:
    """A page's source with its exercises, questions and API entries written out, and on a lesson its minutes."""
    return _in_full(source, page.standing)


@lru_cache(maxsize=512)
def _in_full(source: str, standing: str) -> str:
    return expand_questions(expand_api(expand(with_times(source, standing) if standing else source)))


@lru_cache(maxsize=512)
def _labels(text: str) -> dict[str, str]:
    pairs = zip(found := blocks(text), found[1:], strict=False)
    headings = {a.name: re.match(r"\n*#+ (.+)", b.source) for a, b in pairs if a.kind == "label"}
    return {label: heading[1] for label, heading in headings.items() if heading}


def all_pages(root: Path = ROOT) -> list[Page]:
    """Every page of `_toc.yml`, in reading order."""
    return [Page(name, root) for name in _names((root / "_toc.yml").read_text(encoding="utf-8"))]


@lru_cache(maxsize=8)
def _names(toc: str) -> list[str]:
    contents = yaml.safe_load(toc)
    names = [contents["root"]]
    for part in contents.get("parts") or [contents]:
        names += _files(part.get("chapters", []))
    return names


def _files(entries: list[dict]) -> list[str]:
    """Each entry's page, followed by the deeper pages that stand under it."""
    return [name for entry in entries for name in (entry["file"], *_files(entry.get("sections", [])))]


def notebook_pages(root: Path = ROOT) -> list[Page]:
    """The pages that have code cells, and so a notebook."""
    return [page for page in all_pages(root) if page.has_code]
