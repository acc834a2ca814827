"""The way through the book, and what a link to a page shows where it is sent."""

import re

from tools.navigation import chapter_of, description, neighbours, preview
from tools.pages import Page, all_pages

BODY = "<section><h1>Title</h1><p><em>Optional: 4 minutes to read</em></p><p>{}</p></section>"


def test_next_leads_through_all_chapters_and_past_the_deeper_pages():
    page, seen = Page("book/index"), []
    while page:
        seen.append(page)
        before, page = neighbours(page)
        assert before == (seen[-2] if len(seen) > 1 else None)
    assert seen == [one for one in all_pages() if not one.is_deeper]


def test_a_deeper_page_leads_back_to_its_chapter():
    assert neighbours(Page("book/deeper/kernel_regression")) == (Page("book/attention"), None)
    assert chapter_of(Page("book/deeper/bleu")) == Page("book/decoding")
    assert all(chapter_of(page).standing.startswith("Chapter") for page in all_pages() if page.is_deeper)


def test_every_chapter_ends_with_where_to_go_next():
    """To the next chapter, and to each of its deeper pages."""
    for page in (page for page in all_pages() if page.standing.startswith("Chapter")):
        box = page.text.rpartition("```{admonition} Where to go next")[2]
        deeper = [f"deeper/{one.name.rpartition('/')[2]}" for one in all_pages() if chapter_of(one) == page]
        following = neighbours(page)[1]
        expected = [following.name.removeprefix("book/")] if following.standing else []
        assert re.findall(r"\{doc\}`([\w/]+)`", box) == [*expected, *deeper], page.name


def test_a_preview_begins_with_the_first_sentences_that_fit():
    short = "A sentence of more than forty characters. And another one."
    assert description(BODY.format(short)) == short
    long = "One sentence " + "with words " * 8 + "ends here. " + "Another " * 30
    assert description(BODY.format(long)).endswith("ends here.")
    assert description(BODY.format("word " * 100)).endswith("word …")


def test_a_preview_has_a_picture_where_the_book_is_published():
    body = BODY.format("x" * 50) + '<img alt="" src="../../_images/one.png">'
    found = preview("A & B", body, "https://a.b/book/c.html", "https://a.b/")
    assert '<meta property="og:title" content="A &amp; B">' in found
    assert '<meta property="og:image" content="https://a.b/_images/one.png">' in found
    assert "https://a.b/_static/cover.png" in preview("A", BODY.format("x"), "https://a.b/book/c.html", "https://a.b/")
    assert "og:image" not in preview("A", body, "", "")
