"""The book as PDFs: contents, numbers, bookmarks, and links that lead to places in it."""

import shutil

import pytest
from pypdf import PdfReader

from tools import pdf
from tools.pages import Page, all_pages

pytestmark = [
    pytest.mark.site,
    pytest.mark.thorough,
    pytest.mark.browser,
    pytest.mark.skipif(not any(map(shutil.which, pdf.BROWSERS)), reason="needs Chromium"),
]
STYLE = "<meta charset=utf-8><style>h2{break-before:page}</style>"
PAGES = {
    "book/index": '<h1>Title</h1><p><a href="one.html#far">far</a> <a href="https://example.org/">out</a></p>',
    "book/one": '<h1>One<a class="headerlink">#</a></h1><p>begin</p><h2 id="near">near</h2><h2 id="far">far away</h2>',
    "book/two": '<h1>Two</h1><p><a href="one.html">one</a> <a href="one.html#far">far</a> <a href="#here">here</a></p>'
    '<h2 id="here">here</h2>',
}
LISTED = [("book/index", 0, ""), ("book/one", 0, "Part"), ("book/two", 1, "Part")]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("html")
    (folder / "book").mkdir()
    for name, article in PAGES.items():
        (folder / f"{name}.html").write_text(f"{STYLE}<article>{article}</article>")
    sheets = pdf.make_pdf(folder, LISTED, folder / "book.pdf")
    reader = PdfReader(folder / "book.pdf")
    assert sheets == len(reader.pages)
    return reader


def test_sheets_come_in_order_with_their_numbers(made):
    texts = [page.extract_text().split() for page in made.pages]
    assert texts[0] == ["Title", "far", "out"]  # the first sheet has no number
    assert texts[1][0] == "Contents"
    assert [text[:1] + text[-1:] for text in texts[2:]] == [
        *(["One#", "3"], ["near", "4"], ["far", "5"]),
        *(["Two", "6"], ["here", "7"]),
    ]


def test_the_contents_have_titles_and_numbers(made):
    lines = made.pages[1].extract_text()
    assert lines.split() == ["Contents", "Part", "One", "3", "Two", "6", "2"]


def _targets(made, number):
    """Sheets, counted from 1, to which the links of a sheet lead; addresses outside as they are."""
    found = []
    for annotation in made.pages[number - 1].get("/Annots", ()):
        entry = annotation.get_object()
        destination = entry.get("/Dest")
        if isinstance(destination, str):
            destination = made.named_destinations[destination].dest_array
        if destination is not None:
            sheet = next(i for i, page in enumerate(made.pages, 1) if page.indirect_reference == destination[0])
            found.append(sheet)
        else:
            found.append(entry["/A"].get("/URI"))
    return found


def test_links_lead_into_the_pdf(made):
    assert _targets(made, 1) == [5, "https://example.org/"]
    assert _targets(made, 2) == [3, 6]
    assert _targets(made, 6)[:3] == [3, 5, 7]


def test_bookmarks_follow_the_table_of_contents(made):
    title, part, below = made.outline
    assert (title.title, part.title) == ("Title", "Part")
    assert below[0].title == "One"
    assert below[1][0].title == "Two"
    assert made.get_destination_page_number(below[1][0]) == 5
    assert made.metadata.title == "Attention, Proven"


def test_every_page_of_the_book_is_printed():
    chapters, deeper = ([name for name, *_ in pages] for pages in pdf.volumes().values())
    assert sorted([*chapters, *deeper[1:], *pdf.ON_SCREEN]) == sorted(page.name for page in all_pages())
    assert not any(Page(name).is_deeper for name in chapters)
    assert deeper[0] == chapters[0]


def test_without_a_browser_it_says_what_to_install(monkeypatch):
    monkeypatch.setattr(pdf, "BROWSERS", ("no-such-browser",))
    with pytest.raises(RuntimeError, match=r"expected one of no-such-browser .* found none; install Chromium"):
        pdf.find_browser()
