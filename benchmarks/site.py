"""What a page of the built book costs a browser: bytes, requests, tab stops, first paint, layout shift, long tasks.

    python -m benchmarks.site [--html _build/html] [PAGE …]     pages by name (attention); without one, the core pages

Times are those of a phone profile: 390 pixels wide, and a processor slowed down four times. They depend on the machine,
and everything else does not.
"""

from __future__ import annotations

import argparse
import functools
import http.server
import threading
from dataclasses import dataclass
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright

from course_kit.exercises import STEMS
from tools.pdf import find_browser
from tools.publisher import ROOT

_OBSERVE = """
window.__shift = 0; window.__tasks = [];
new PerformanceObserver(l => l.getEntries().forEach(e => { if (!e.hadRecentInput) window.__shift += e.value; }))
  .observe({type: 'layout-shift', buffered: true});
new PerformanceObserver(l => l.getEntries().forEach(e => window.__tasks.push(e.duration)))
  .observe({type: 'longtask', buffered: true});
"""
_TAB_STOPS = """() => [...document.querySelectorAll('a[href], button, input, select, textarea, summary, [tabindex]')]
  .filter(one => one.tabIndex >= 0 && !one.disabled && one.checkVisibility()).length"""
_PAINT = "performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? NaN"


@dataclass(frozen=True)
class Cost:
    """Of one page."""

    kilobytes: float  # uncompressed, all requests
    requests: int
    tab_stops: int  # at 1280 pixels, nothing opened
    first_paint: float  # ms
    shift: float  # cumulative layout shift while the page is scrolled through
    longest_task: float  # ms, the longest one on the main thread; 0 if none takes over 50


def cost(browser: Browser, address: str) -> Cost:
    """Load a page as on a slow phone, scroll through it, and count."""
    desk = browser.new_page(viewport={"width": 1280, "height": 900})
    sizes: dict[str, int] = {}
    desk.on("response", lambda r: sizes.update({r.url: int(r.headers.get("content-length", 0))}))
    desk.goto(address, wait_until="load")
    desk.wait_for_timeout(300)
    _scroll(desk)
    stops = desk.evaluate(_TAB_STOPS)
    desk.close()
    phone = browser.new_page(viewport={"width": 390, "height": 844}, has_touch=True)
    phone.context.new_cdp_session(phone).send("Emulation.setCPUThrottlingRate", {"rate": 4})
    phone.add_init_script(_OBSERVE)
    phone.goto(address, wait_until="load")
    phone.wait_for_timeout(1500)
    tasks = phone.evaluate("window.__tasks")
    _scroll(phone)
    found = Cost(
        sum(sizes.values()) / 1000,
        len(sizes),
        stops,
        phone.evaluate(_PAINT),
        phone.evaluate("window.__shift"),
        max(tasks, default=0.0),
    )
    phone.close()
    return found


def _scroll(page) -> None:
    """To the end, so that what comes late has come."""
    for _ in range(400):
        if page.evaluate(
            "scrollBy(0, innerHeight); scrollY + innerHeight >= document.documentElement.scrollHeight - 2"
        ):
            break
        page.wait_for_timeout(20)


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *args) -> None:
        pass


def main() -> None:
    """Command line; see the module's docstring."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pages", nargs="*", default=["index", *STEMS])
    parser.add_argument("--html", type=Path, default=ROOT / "_build/html")
    options = parser.parse_args()
    handler = functools.partial(_Quiet, directory=str(options.html))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(f"{'page':24} {'kB':>6} {'requests':>8} {'tab stops':>9} {'paint ms':>8} {'shift':>6} {'task ms':>7}")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find_browser(), args=["--no-sandbox"])
        for name in options.pages:
            one = cost(browser, f"http://127.0.0.1:{server.server_port}/book/{name}.html")
            print(
                f"{name:24} {one.kilobytes:6,.0f} {one.requests:8} {one.tab_stops:9} {one.first_paint:8.0f} "
                f"{one.shift:6.3f} {one.longest_task:7.0f}"
            )
        browser.close()
    server.shutdown()


if __name__ == "__main__":
    main()
