"""`python -m benchmarks.views`: size and first paint of the views that inspect a model, as Chromium's trace has it."""

from __future__ import annotations

import json
import shutil
import statistics
import tempfile
from pathlib import Path

import torch
from playwright.sync_api import Browser, sync_playwright

from course_kit.viz import (
    contextual_words,
    head_view,
    logit_lens_view,
    model_view,
    neuron_view,
    pair_view,
    patching_view,
)
from course_kit.viz.view import View

FLAGS = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"]
TOKENS = ["[CLS]", *(f"word{i}" for i in range(8)), "[SEP]", *(f"word{i}" for i in range(8, 17)), "[SEP]"]


def views() -> dict[str, View]:
    """Every view at a usual size: 20 tokens; 72 and 144 heads, 64 features, 12 sentences, 13 layers."""
    torch.manual_seed(0)
    weights = (2 * torch.randn(12, 12, 20, 20)).softmax(-1)
    return {
        "model view, 72 heads": model_view(weights[:6], TOKENS),
        "model view, 144 heads": model_view(weights, TOKENS),
        "head view, 72 heads": head_view(weights[:6], TOKENS),
        "pair view, 72 heads": pair_view(weights[:6], TOKENS),
        "neuron view, 20 keys of 64 features": neuron_view(torch.randn(20, 64), torch.randn(20, 64), TOKENS),
        "contextual words, 12 sentences": contextual_words(torch.randn(7, 12, 384), senses=["a", "b"] * 6, word="word"),
        "logit lens, 13 layers of 20 tokens": logit_lens_view(3 * torch.randn(13, 20, 1000), TOKENS),
        "patching, 13 places of 20 tokens": patching_view(torch.randn(13, 20), -1.0, 1.0, tokens=TOKENS),
    }


def first_paint(browser: Browser, page: Path, traces: Path) -> float:
    """Milliseconds from the start of the navigation to the first contentful paint of a page in a file."""
    context = browser.new_context(viewport={"width": 1000, "height": 900}, offline=True)
    tab = context.new_page()
    browser.start_tracing(page=tab, path=traces / "trace.json", categories=["loading", "blink.user_timing"])
    tab.goto(page.as_uri())
    tab.wait_for_function("performance.getEntriesByName('first-contentful-paint').length")
    browser.stop_tracing()
    context.close()
    events = json.loads((traces / "trace.json").read_text())["traceEvents"]
    paints = [event for event in events if event["name"] == "firstContentfulPaint"]
    navigation = paints[-1]["args"]["data"]["navigationId"]
    starts = [
        event["ts"]
        for event in events
        if event["name"] == "navigationStart" and event["args"]["data"].get("navigationId") == navigation
    ]
    return (paints[-1]["ts"] - starts[-1]) / 1000


def rows(repeats: int = 5) -> list[tuple[str, int, float]]:
    """Name, bytes, and the median of some first paints; first that of a page with one word, the browser's own time."""
    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as folder:
        executable = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
        browser = playwright.chromium.launch(executable_path=executable, args=FLAGS)
        pages = {"a page with one word": "<!doctype html><p>word"} | {n: view.html() for n, view in views().items()}
        files = {name: Path(folder) / f"{number}.html" for number, name in enumerate(pages)}
        for name, file in files.items():
            file.write_text(f"<!doctype html><meta charset=utf-8>{pages[name]}", encoding="utf-8")
        times: dict[str, list[float]] = {name: [] for name in pages}
        for _ in range(repeats + 1):  # in turn, so that a slow moment of the machine meets all; the first warms up
            for name, file in files.items():
                times[name].append(first_paint(browser, file, Path(folder)))
        browser.close()
        found = [(name, len(pages[name].encode()), statistics.median(times[name][1:])) for name in pages]
    return found


def main() -> None:
    """Print the table."""
    for name, size, milliseconds in rows():
        print(f"  {name:40} {size / 1000:6.1f} kB  first paint {milliseconds:5.0f} ms", flush=True)


if __name__ == "__main__":
    main()
