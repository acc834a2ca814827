"""Make two PDFs of the book, the chapters and the deeper pages: every page as Chromium prints it, with a table of
contents, numbers and bookmarks.

    python -m tools.pdf [--output DIR]     builds the book, then writes attention-proven*.pdf into _build/html

A link from page to page leads to its place in the PDF. Needs Chromium or Chrome.
"""

from __future__ import annotations

import argparse
import html
import io
import os
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import unquote, urldefrag, urlsplit

import yaml
from lxml import html as lxml_html
from playwright.sync_api import Browser, sync_playwright
from pypdf import PdfReader, PdfWriter
from pypdf.annotations import Link
from pypdf.generic import ArrayObject, Fit, NameObject, TextStringObject

from tools.build_book import BUILD, build
from tools.navigation import chapter_of
from tools.pages import Page, all_pages
from tools.publisher import ROOT
from tools.title_page import MAKING_PDF, PDFS

ON_SCREEN = ("book/teaching", "book/reference/api")
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
PAPER = {"format": "A4", "print_background": True, "prefer_css_page_size": False}
MARGINS = {"top": "18mm", "bottom": "20mm", "left": "18mm", "right": "18mm"}
# What is not for paper: links of the theme. And anchors, so that the printer notes where each one is.
_PREPARE = """anchors => {
  document.querySelectorAll('.prev-next-area, footer, .bd-header-article, .bd-sidebar-secondary, .whole-book')
    .forEach(one => one.remove());
  dispatchEvent(new Event('beforeprint'));
  for (const id of anchors) {
    const target = document.getElementById(id);
    if (!target) continue;
    const link = document.createElement('a');
    link.href = '#' + encodeURIComponent(id);
    link.textContent = '\\u00a0';
    link.style.cssText = 'position:absolute;font-size:1px;text-decoration:none';
    document.querySelector('article').append(link);
  }
}"""


@dataclass
class Printed:
    """A page of the book, on paper."""

    file: Path
    title: str
    level: int  # 0 for a chapter, 1 for a page below it
    part: str
    pdf: PdfReader = field(repr=False)
    start: int = 0  # its first sheet, counted from 0

    @property
    def length(self) -> int:
        return len(self.pdf.pages)


def find_browser() -> str:
    """The program that prints.

    Raises:
        RuntimeError: there is none.
    """
    found = next(filter(None, map(shutil.which, BROWSERS)), None)
    if found is None:
        raise RuntimeError(
            f"expected one of {', '.join(BROWSERS)} to print the pages, found none; install Chromium, for example with "
            "`apt-get install chromium`"
        )
    return found


def listed(root: Path = ROOT) -> Iterator[tuple[str, int, str]]:
    """Each page of the table of contents in order: its name, its level and its part."""
    contents = yaml.safe_load((root / "_toc.yml").read_text(encoding="utf-8"))
    yield contents["root"], 0, ""
    for part in contents.get("parts") or [contents]:
        yield from _below(part.get("chapters", []), 0, part.get("caption", ""))


def _below(entries: list[dict], level: int, part: str) -> Iterator[tuple[str, int, str]]:
    for entry in entries:
        yield entry["file"], level, part
        yield from _below(entry.get("sections", []), level + 1, part)


def volumes(root: Path = ROOT) -> dict[str, list[tuple[str, int, str]]]:
    """The pages of each PDF by its name; long tables for looking things up stay on the screen."""
    chapters, deeper = [], [(all_pages(root)[0].name, 0, "")]
    for name, level, part in listed(root):
        page = Page(name, root)
        if page.is_deeper:
            deeper.append((name, 0, chapter_of(page).title))
        elif name not in ON_SCREEN:
            chapters.append((name, level, part))
    return dict(zip(PDFS, (chapters, deeper), strict=True))


def make_pdf(folder: Path, pages: list[tuple[str, int, str]], output: Path) -> int:
    """Print the built pages of `folder` into `output`; returns the number of sheets."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find_browser(), args=["--no-sandbox"])
        printed = _print_all(browser, folder, pages)
        contents = _settle(browser, printed)
        last = printed[-1].start + printed[-1].length
        numbers = _print(browser, _numbers(last), dict.fromkeys(MARGINS, "0"))
        browser.close()
    writer = PdfWriter()
    writer.append(printed[0].pdf, import_outline=False)
    writer.append(contents, import_outline=False)
    for page in printed[1:]:
        writer.append(page.pdf, import_outline=False)
    for sheet, number in zip(writer.pages[1:], numbers.pages[1:], strict=True):
        sheet.merge_page(number)
    _link(writer, printed, len(contents.pages))
    _bookmarks(writer, printed)
    writer.add_metadata({"/Title": "Attention, Proven"})
    writer.root_object[NameObject("/Lang")] = TextStringObject("en")
    writer.compress_identical_objects(remove_duplicates=True, remove_unreferenced=True)
    whole = io.BytesIO()
    writer.write(whole)
    part = output.with_suffix(".part")
    part.write_bytes(whole.getvalue())
    part.replace(output)
    return len(writer.pages)


def _print_all(browser: Browser, folder: Path, pages: list[tuple[str, int, str]]) -> list[Printed]:
    wanted = _anchors(folder, [name for name, *_ in pages])
    tab, printed = browser.new_page(color_scheme="light", viewport={"width": 1000, "height": 1300}), []
    for name, level, part in pages:
        file = (folder / f"{name}.html").resolve()
        tab.goto(file.as_uri())
        tab.wait_for_load_state("load")
        tab.evaluate("document.fonts.ready.then(() => 0)")
        title = tab.locator("article h1").first.inner_text().removesuffix("#").strip()
        tab.evaluate(_PREPARE, sorted(wanted.get(file, ())))
        tab.evaluate("Promise.all([...document.images].map(i => i.decode().catch(() => 0))).then(() => 0)")
        pdf = PdfReader(io.BytesIO(tab.pdf(**PAPER, margin=MARGINS)))
        printed.append(Printed(file, title, level, part, pdf))
    return printed


def _anchors(folder: Path, names: list[str]) -> dict[Path, set[str]]:
    """The anchors of each page to which another page links."""
    found: dict[Path, set[str]] = {}
    for name in names:
        file = (folder / f"{name}.html").resolve()
        for address in lxml_html.parse(str(file)).xpath("//article//a/@href"):
            target, anchor = urldefrag(address)
            if anchor and "://" not in target:
                page = (file.parent / unquote(target)).resolve() if target else file
                found.setdefault(page, set()).add(unquote(anchor))
    return found


def _settle(browser: Browser, printed: list[Printed]) -> PdfReader:
    """The printed contents. How many sheets they take decides where the pages begin, which they print."""
    sheets = 1
    while True:
        start = printed[0].length + sheets
        for page in printed[1:]:
            page.start = start
            start += page.length
        contents = _print(browser, _contents(printed), MARGINS)
        if len(contents.pages) == sheets:
            return contents
        sheets = len(contents.pages)


_STYLE = (
    "<meta charset=utf-8><style>body{margin:0;font:11pt 'Source Sans 3',sans-serif}"
    "a{color:inherit;text-decoration:none}"
)


def _contents(printed: list[Printed]) -> str:
    rows, part = [], None
    for page in printed[1:]:
        if page.part != part:
            part = page.part
            rows.append(f"<h2>{html.escape(part)}</h2>")
        rows.append(
            f'<p class="level{page.level}"><a href="{page.file.as_uri()}">{html.escape(page.title)}</a>'
            f"<span></span>{page.start + 1}</p>"
        )
    return (
        f"{_STYLE}h2{{font-size:13pt;margin:14pt 0 4pt;break-after:avoid}}p{{display:flex;margin:2pt 0;gap:4pt}}"
        "span{flex:1;border-bottom:1px dotted #999;margin-bottom:3pt}.level1{padding-left:14pt;font-size:10pt}</style>"
        f"<h1>Contents</h1>{''.join(rows)}"
    )


def _numbers(count: int) -> str:
    """A sheet with nothing but its number, for each sheet."""
    sheets = "".join(f"<div>{number}</div>" for number in range(1, count + 1))
    return (
        f"{_STYLE}@page{{size:A4;margin:0}}div{{height:296mm;box-sizing:border-box;padding-top:281mm;"
        f"text-align:center;font-size:9pt;color:#566072;break-after:page}}</style>{sheets}"
    )


def _print(browser: Browser, source: str, margins: dict[str, str]) -> PdfReader:
    tab = browser.new_page()
    tab.set_content(source)
    pdf = tab.pdf(**PAPER, margin=margins)
    tab.close()
    return PdfReader(io.BytesIO(pdf))


def _link(writer: PdfWriter, printed: list[Printed], sheets_of_contents: int) -> None:
    """Let links to pages of the book lead to their sheets, at the height of the anchor where there is one."""
    places = {page.file: page for page in printed}
    heights = {page.file: page.pdf.named_destinations for page in printed}
    for sheet in writer.pages:
        kept = ArrayObject()
        for annotation in sheet.get("/Annots", ()):
            entry = annotation.get_object()
            address = entry.get("/A", {}).get("/URI", "")
            target, anchor = urldefrag(str(address))
            page = places.get(Path(unquote(urlsplit(target).path))) if target.startswith("file:") else None
            if page is None:
                if not target.startswith("file:"):
                    kept.append(annotation)
                continue
            number, fit = page.start, Fit.fit_horizontally(top=None)
            if (place := heights[page.file].get(f"/{anchor}") or heights[page.file].get(anchor)) is not None:
                number = page.start + page.pdf.get_destination_page_number(place)
                fit = Fit.xyz(left=0, top=place.top, zoom=0)
            link = Link(rect=tuple(map(float, entry["/Rect"])), target_page_index=number, fit=fit)
            link[NameObject("/Dest")] = ArrayObject(
                [writer.pages[number].indirect_reference, NameObject(fit.fit_type), *fit.fit_args]
            )
            kept.append(writer._add_object(link))
        if "/Annots" in sheet:
            sheet[NameObject("/Annots")] = kept


def _bookmarks(writer: PdfWriter, printed: list[Printed]) -> None:
    above, part, under_part = None, None, None
    for page in printed:
        if page.part != part:
            part = page.part
            under_part = writer.add_outline_item(title=part, page_number=page.start) if part else None
        parent = above if page.level else under_part
        item = writer.add_outline_item(title=page.title, page_number=page.start, parent=parent)
        above = above if page.level else item


def main() -> None:
    """Command line; see the module's docstring."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, help="a folder; default: _build/html")
    options = parser.parse_args()
    try:
        find_browser()
        os.environ[MAKING_PDF] = "1"  # the title page links to it
        folder = build(BUILD, quiet=True)
        for name, pages in volumes().items():
            output = (options.output or folder).resolve() / name
            sheets = make_pdf(folder, pages, output)
            print(f"{sheets} pages, {output.stat().st_size / 2**20:.1f} MB: {output}", flush=True)
    except RuntimeError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
