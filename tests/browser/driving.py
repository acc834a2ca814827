"""What the tests of all views share: screens to try, what a view has just said, and that nothing went wrong."""

import pytest

SCREENS = [(1000, "light"), (390, "light"), (1000, "dark"), (390, "dark")]
everywhere = pytest.mark.parametrize(("width", "scheme"), SCREENS, ids=[f"{w} {s}" for w, s in SCREENS])


def said(page, words):
    """What the view says, as soon as these words are in it."""
    page.wait_for_function("w => document.querySelector('.say').textContent.includes(w)", arg=words, timeout=15_000)
    return page.locator(".say").text_content()


def clean(seen):
    """No error, nothing asked of a network, no sideways scroll."""
    assert seen.errors == []
    assert seen.outside == []
    assert seen.page.evaluate("document.documentElement.scrollWidth <= innerWidth")
