"""How soon the largest views show something, by Chromium's trace; `python -m benchmarks.views` has the table."""

import pytest

from benchmarks.views import first_paint, views

pytestmark = [pytest.mark.browser, pytest.mark.site, pytest.mark.thorough]

# Times a page with one word in the same browser. Measured: 2 to 3. A script that has to end before the page shows, or a
# picture drawn cell by cell, costs far more.
RATIO = 10


@pytest.mark.parametrize("name", ["model view, 72 heads", "model view, 144 heads"])
def test_the_first_paint_takes_a_few_times_that_of_a_page_with_one_word(browser, tmp_path, name):
    view, word = views()[name].save(tmp_path / "view.html"), tmp_path / "word.html"
    word.write_text("<!doctype html><p>word")
    both = [(first_paint(browser, view, tmp_path), first_paint(browser, word, tmp_path)) for _ in range(5)]
    assert min(view for view, _ in both) <= RATIO * min(word for _, word in both)


def test_what_keeps_a_page_from_showing_is_measured(browser, tmp_path):
    page = tmp_path / "slow.html"
    page.write_text("<script>const end = Date.now() + 900; while (Date.now() < end);</script><p>late")
    assert first_paint(browser, page, tmp_path) >= 900
