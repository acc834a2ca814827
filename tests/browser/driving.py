"""What the tests of all views share: screens to try, what a view has just said, and that nothing went wrong."""

import pytest

SCREENS = [(1000, "light"), (390, "light"), (1000, "dark"), (390, "dark")]
everywhere = pytest.mark.parametrize(("width", "scheme"), SCREENS, ids=[f"{w} {s}" for w, s in SCREENS])


def part(page, key):
    """The part that the script moves by this key."""
    return page.locator(f"[data-k='{key}']")


def middle(node):
    """Where it is on the screen."""
    box = node.bounding_box()
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


def large_enough(node):
    """For a finger."""
    box = node.bounding_box()
    return min(box["width"], box["height"]) >= 24


def press(page, *keys):
    """One key after the other."""
    for key in keys:
        page.keyboard.press(key)


def choose(node, touch):
    """By a tap or a click."""
    node.tap() if touch else node.click()


def said(page, words):
    """What the view says, as soon as these words are in it and no other sentence is about to take their place.

    A view waits 120 ms before it speaks. A timer that begins later and is longer ends later, however busy the machine.
    """
    page.evaluate("new Promise(done => setTimeout(done, 130))")
    page.wait_for_function("w => document.querySelector('.say').textContent.includes(w)", arg=words, timeout=15_000)
    return page.locator(".say").text_content()


def drag_by_touch(page, start, by):
    """A finger that goes down at `start`, moves by (dx, dy) in steps, and is lifted: touch events of the browser's own,
    so that the page is panned where a view does not keep the gesture to itself."""
    client = page.context.new_cdp_session(page)
    x, y = start
    steps = 8

    def send(kind, *points):
        touches = [{"x": px, "y": py} for px, py in points]
        client.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": touches})

    send("touchStart", (x, y))
    for step in range(1, steps + 1):
        send("touchMove", (x + by[0] * step / steps, y + by[1] * step / steps))
    send("touchEnd")
    page.wait_for_timeout(300)  # a page that was set in motion goes on for a while


def clean(seen):
    """No error, nothing asked of a network, no sideways scroll."""
    assert seen.errors == []
    assert seen.outside == []
    assert seen.page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def assert_scrolls(page, wide):
    """Whether a map scrolls sideways and says so, with the names of the rows beside their rows."""
    page.wait_for_timeout(200)
    assert page.locator(".scroll").evaluate("n => n.scrollWidth > n.clientWidth") == wide
    assert page.locator(".cells").evaluate("n => getComputedStyle(n, '::before').content != 'none'") == wide
    name, row = page.locator(".places > div").first, page.locator("[role=row]").first
    assert abs(name.bounding_box()["y"] - row.bounding_box()["y"]) < 30
