"""How soon the largest views show something, by Chromium's trace; `python -m benchmarks.views` has the table."""

import pytest

from benchmarks.views import first_paint, views

pytestmark = [pytest.mark.browser, pytest.mark.slow]

LIMIT = 800  # milliseconds; 200 on a laptop that does nothing else, and this runs beside other tests on few cores


@pytest.mark.parametrize("name", ["model view, 72 heads", "model view, 144 heads"])
def test_the_first_paint_comes_soon(browser, tmp_path, name):
    page = views()[name].save(tmp_path / "view.html")
    assert min(first_paint(browser, page, tmp_path) for _ in range(5)) <= LIMIT


def test_a_slow_page_would_be_found(browser, tmp_path):
    page = tmp_path / "slow.html"
    page.write_text("<script>const end = Date.now() + 900; while (Date.now() < end);</script><p>late")
    assert first_paint(browser, page, tmp_path) > LIMIT
