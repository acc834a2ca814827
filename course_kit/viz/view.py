"""Interactive views: a picture drawn in Python that shows without any script, and a small script that moves it.

A view is one piece of HTML that needs nothing from elsewhere, so that it is the same in the built book, in JupyterLab,
VS Code and Colab, and in a file. The page's text for those who see no HTML is the view's description.

A view function builds its picture with the helpers of `view_elements` and `view_numbers`, names the parts that move by
keys (`data-k`), and hands the numbers over as data. The script of that kind, `js/<kind>.js`, finds the parts by their
keys; what all views share is in `js/core.js`.
"""

from __future__ import annotations

import hashlib
import html
import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from course_kit._checks import check_instance
from course_kit._files import write_whole
from course_kit.viz.style import DARK, PALETTE
from course_kit.viz.view_elements import button

__all__ = ["View"]

_SCRIPTS = Path(__file__).parent / "js"


@dataclass(frozen=True)
class View:
    """A picture that a reader can take hold of.

    Args:
        kind: name of the script that moves it, `js/<kind>.js`.
        title: a few words; the name of the picture for those who hear the page.
        description: what is to be seen, in plain words. It stands for the picture where no HTML is shown.
        body: HTML and SVG as they are before the reader touches anything.
        data: what the script computes with, as JSON.
        hint: what to do, in one line below the title.
        status: what the view says before the reader touches anything, as the script says it once something changes. A
            view without it says nothing until then.
        note: how to read the picture, below it.
        reset: whether there is a button that brings the beginning back.
    """

    kind: str
    title: str
    description: str
    body: str
    data: Mapping[str, Any]
    hint: str = ""
    status: str = ""
    note: str = ""
    reset: bool = True

    def __post_init__(self):
        check_instance(str, title=self.title)

    def html(self) -> str:
        """The view as a piece of HTML, to be put into any page."""
        title, hint, status, note = map(html.escape, (self.title, self.hint, self.status, self.note))
        name = f"{self.kind}-{_digest(self.kind)}"
        return (
            f"<style>{stylesheet()}</style>"
            f'<attention-view kind="{name}"><div role="group" aria-label="{title}"><p class="title">{title}</p>'
            + (f'<p class="hint">{hint}</p>' if hint else "")
            + f'{self.body}<div class="foot"><p class="say" role="status" aria-live="polite">{status}</p>'
            + (button("reset", "Reset") if self.reset else "")
            + "</div>"
            + (f'<p class="note">{note}</p>' if note else "")
            + f'</div><script type="application/json">{_json(self.data)}</script></attention-view>'
            f"<script>{script(self.kind)}</script>"
        )

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the view as a page of its own, which any browser opens without a network: all of it or nothing."""
        check_instance((str, os.PathLike), path=path)
        path = Path(path)
        page = (
            f'<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" '
            f'content="width=device-width, initial-scale=1"><title>{html.escape(self.title)}</title>'
            f"<style>body{{font-family:system-ui,sans-serif;max-width:46rem;margin:1rem auto;padding:0 .8rem}}"
            f":root{{color-scheme:light dark;background:Canvas;color:CanvasText}}h1{{font-size:1.3rem}}"
            f"attention-view .title{{display:none}}</style><main><h1>{html.escape(self.title)}</h1>{self.html()}"
            f"<style>{dark_stylesheet()}</style>"
            f"<details><summary>Description</summary><p>{html.escape(self.description)}</p></details></main></html>\n"
        )
        write_whole(path, page)
        return path

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        return {"text/html": self.html(), "text/plain": repr(self)}

    def __repr__(self) -> str:
        return f"{self.title}. {self.description}"


@cache
def script(kind: str) -> str:
    """The script of one kind of view, with what all share, without comments and indentation."""
    core, own = (_lean((_SCRIPTS / f"{name}.js").read_text(encoding="utf-8")) for name in ("core", kind))
    return f'(()=>{{{core}\nregister("{kind}-{_digest(kind)}",{own.rstrip().rstrip(";")})}})()'


def _lean(source: str) -> str:
    """JavaScript without lines of comment, indentation, and blanks beside punctuation; texts stay as they are."""
    lines = (line.strip() for line in source.split("\n"))
    text = "\n".join(line for line in lines if line and not line.startswith("//"))
    return _BLANK_OR_TEXT.sub(_without_blank, text)


# Blanks, or a whole text in quotes or backticks. No text may hold backticks of its own.
_BLANK_OR_TEXT = re.compile(r'"(?:\\.|[^"\\])*"|`(?:\\.|[^`\\])*`| +')
_PUNCTUATION = set("=+-*/%<>{}()[],;:?&|!\n")


def _without_blank(match: re.Match) -> str:
    if match[0][0] != " ":
        return match[0]
    before, after = match.string[match.start() - 1 : match.start()], match.string[match.end() : match.end() + 1]
    joined = before == after and before in "+-"  # a + +b is not a++b
    return "" if {before, after} & _PUNCTUATION and not joined else " "


@cache
def _digest(kind: str) -> str:
    """Short name of a script's version: an older view in the same notebook keeps its own script."""
    both = "".join((_SCRIPTS / f"{name}.js").read_text(encoding="utf-8") for name in ("core", kind))
    return hashlib.sha256(both.encode()).hexdigest()[:6]


# The two colours of the weights are chosen so that one shade (HIGH) does for light and dark. `leak` marks what must not
# happen.
_PAGES = (
    (PALETTE, {"weight": "#3b3480", "on": "#fff", "off": "#000", "paper": "#fff", "leak": "#b5003a"}),
    (DARK, {"weight": "#a09ad3", "on": "#000", "off": "#fff", "paper": "#121212", "leak": "#ff7094"}),
)


def _variables(dark: bool) -> str:
    palette, more = _PAGES[dark]
    return "".join(f"--{name}:{colour};" for name, colour in {**palette, **more}.items())


@cache
def stylesheet() -> str:
    """The look of all views, in light and dark, wherever they are shown."""
    dark = ",".join(
        f"{theme} attention-view"
        for theme in (
            "html[data-theme=dark]",  # the book
            "[data-jp-theme-light=false]",  # JupyterLab
            ".vscode-dark",  # VS Code
            "html[theme=dark]",  # Colab
        )
    )
    return f"attention-view{{{_variables(False)}}}{dark}{{{_variables(True)}}}" + _CSS.strip()


def dark_stylesheet() -> str:
    """Dark colours of all views in a page that follows the system's setting; comes after the views."""
    return f"@media(prefers-color-scheme:dark){{attention-view{{{_variables(True)}}}}}"


_CSS = """
attention-view{display:block;max-width:44rem;margin:.8rem 0;line-height:1.4;color:var(--ink);background:var(--paper)}
attention-view{border:1px solid var(--grid);border-radius:8px;padding:.5rem .7rem;box-sizing:border-box}
attention-view p{margin:.3rem 0}
attention-view .title{font-weight:600}
attention-view .note{color:var(--muted);font-size:.88em}
/* What is said stays in sight, once a view is used, while the picture above it is taller than the screen. */
attention-view .foot{display:flex;gap:.8rem;align-items:flex-start;bottom:0;z-index:1}
attention-view:is(:hover,:focus-within) .foot{position:sticky}
attention-view .foot{background:var(--paper);border-top:1px solid var(--grid);padding:.4rem 0}
/* It sticks no higher than its margin lets it: below what there is to do. */
attention-view .foot{margin-top:10rem}
attention-view :has(+.foot){margin-bottom:-9.4rem!important}
attention-view .say{flex:1;min-width:0;margin:0}
attention-view .say:not(:empty){min-height:2.8em}
attention-view svg{display:block;width:100%;height:auto;overflow:visible;font-family:inherit}
attention-view svg text{fill:currentColor;font-size:14px;font-weight:400!important;text-anchor:middle}
attention-view svg text{dominant-baseline:central}
attention-view svg text.start{text-anchor:start}
attention-view svg text.end{text-anchor:end}
attention-view svg text.small{font-size:12px}
attention-view .cell rect{fill:var(--weight);stroke:var(--grid)}
attention-view .cell text{fill:var(--off)}
attention-view .cell.high text{fill:var(--on)}
attention-view .line{stroke:var(--muted);fill:none}
attention-view .query{fill:var(--query)!important}
attention-view .key{fill:var(--key)!important}
attention-view .value{fill:var(--value)!important}
attention-view .output{fill:var(--output)!important}
attention-view .controls{display:flex;flex-wrap:wrap;gap:.5rem 1rem;align-items:center;margin:.4rem 0}
attention-view .panels{display:flex;flex-wrap:wrap;gap:.6rem 1.2rem;align-items:flex-start}
attention-view .panels>*{flex:1 1 300px;min-width:0}
attention-view :is(button,select,input){font:inherit;color:inherit;background:transparent;max-width:100%}
attention-view :is(button,select,input){border:1px solid var(--muted);border-radius:5px}
attention-view :is(button,select,input){min-height:32px;padding:2px 10px}
attention-view option{background:Canvas;color:CanvasText}
attention-view input[type=range]{padding:0;border:0;accent-color:var(--output);vertical-align:middle}
attention-view button[aria-pressed=true]{background:var(--weight);color:var(--on)}
attention-view [tabindex]{cursor:pointer}
/* A group of SVG is inline, and `touch-action` does nothing for what is inline. */
attention-view [data-drag]{cursor:grab;display:block;touch-action:none}
attention-view :focus-visible{outline:3px solid var(--output);outline-offset:2px}
attention-view svg :focus{outline:none}
attention-view svg :focus-visible>:is(rect,circle){stroke:var(--output);stroke-width:4;stroke-opacity:1}
"""


def _json(data: Any) -> str:
    """Compact JSON that may stand inside a <script> element."""
    return json.dumps(data, separators=(",", ":"), allow_nan=False).replace("</", "<\\/").replace("<!--", "<\\u0021--")
