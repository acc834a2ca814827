"""The directive `live-translator`: a field in which a reader's own sentence is translated, in the page itself.

    ```{live-translator} full one_sentence alignment
    ```

`short` is for the title page: the field, the words, and where the model looked. `full` adds what lies behind. What is
written here shows a prepared sentence; `book/_static/translator/view.js` moves it. The script is asked for once a reader
touches the field, and the model's weights once something is typed or translated.
"""

from __future__ import annotations

import html
import json
from functools import cache
from typing import Any

from docutils import nodes
from docutils.parsers.rst import Directive
from sphinx.application import Sphinx

from tools.pages import Page
from tools.title_page import view_of

# Sentences to try, each with a line on what to look for. Counts are of the 29,000 training captions.
EXAMPLES = {
    "Zwei Hunde spielen im Schnee.": "The sentence that runs through this course.",
    "Im Schnee spielen zwei Hunde.": "The German begins with the snow and the English with the dogs. Where does the decoder look first?",
    "Ein kleines Mädchen mit roter Mütze füttert die Enten am See.": "Nearly right: how many ducks are there?",
    "Eine Frau sitzt auf einer Bank im Park.": "“Bank” means bench or bank. Here the model gets it right.",
    "Eine Frau steht vor einer Bank und holt Geld.": "Goes wrong: of 245 training captions with “Bank”, only two are about a bank.",
    "Den Mann beißt der Hund.": "Goes wrong: “den” says that the man is bitten, but no training caption begins with “Den”.",
    "Ein Hund läuft nicht.": "Goes wrong: captions say what a photo shows, and only 64 of 29,000 contain “nicht”.",
    "Drei Männer und zwei Frauen und vier Kinder sitzen an einem Tisch.": "Goes wrong: one of the groups is lost. Ten of 29,000 captions name three numbers.",
    "Ein Astronaut reitet auf einem Pferd.": "Goes wrong: no training caption contains the word “Astronaut”. Which tokens is it cut into?",
    "Ich liebe dich.": "Goes wrong: the model has only ever read captions of photos, and none of them contains “dich”.",
}
SECTIONS = {
    "next": ("Next word", "decoding", "Decoding"),
    "maps": ("Where it looks", "inspection", "Inside a trained encoder"),
    "head": ("One head", "scaled_dot_product", "Scaled dot-product attention"),
}


@cache
def prepared() -> dict[str, Any]:
    """What the page shows before the model is loaded: the first example, translated here."""
    import torch

    from course_kit.translator import pretrained

    translator, sentence = pretrained(), next(iter(EXAMPLES))
    text = translator.translate([sentence], beam_size=1)[0]
    layers = translator.model.config.num_layers
    found = [translator.attention(sentence, text, layer=layer) for layer in range(layers)]
    source, target, weights = found[0][0], found[0][1], torch.stack([weights for *_, weights in found])
    layers, heads, len_q, len_k = weights.shape
    flat = [round(x, 3) for x in weights.flatten().tolist()]
    cross = {"layers": layers, "heads": heads, "len_q": len_q, "len_k": len_k, "weights": flat}
    words = {"source": {"tokens": source}, "target": {"tokens": target}}
    return {"sentence": sentence, "text": text, **words, "cross": cross, "start": target.index("▁snow")}


def live_translator(mode: str, static: str = "_static/", book: str = "") -> str:
    """The elements of the field and of what surrounds it.

    Args:
        mode: "short" or "full".
        static: address of the folder with the scripts, relative to the page.
        book: address of the folder with the chapters, relative to the page.

    Raises:
        ValueError: another mode.
    """
    if mode not in ("short", "full"):
        raise ValueError(f"expected live-translator short or full, got {mode!r}")
    example = prepared()
    data = {"prepared": example, "examples": [{"text": text, "why": why} for text, why in EXAMPLES.items()]}
    start, row = example["start"], _mean_row(example["cross"], example["start"])
    source = "".join(_chip(token, weight) for token, weight in zip(example["source"]["tokens"], row, strict=True))
    target = "".join(_chip(token, chosen=i == start) for i, token in enumerate(example["target"]["tokens"]))
    told = f"“snow” attends most to “Schnee” {max(row):.2f} (mean of the heads, layer {example['cross']['layers']})."
    options = "".join(f'<option value="{n}">{html.escape(text)}</option>' for n, text in enumerate(EXAMPLES))
    more = _PANELS if mode == "full" else f'<p data-k="more"><a data-k="link" href="{book}translate.html">Look inside: every word, layer and head of this translation</a></p>'
    for one, (title, page, chapter) in SECTIONS.items():
        more = more.replace(f"[{one}]", f'<p class="taught">Taught in <a href="{book}{page}.html">{chapter}</a>.</p>').replace(f"<{one}>", title)
    address = json.dumps(static + "translator/view.js")
    data = json.dumps(data, ensure_ascii=False).replace("<", "\\u003c")
    return (
        f'<link rel="stylesheet" href="{static}translator/translator.css"><div class="live-translator" data-mode="{mode}">'
        f'<form data-k="form"><label for="live-text">German</label>'
        f'<textarea id="live-text" data-k="text" rows="2" lang="de" spellcheck="false" autocomplete="off" enterkeyhint="go">'
        f'{html.escape(example["sentence"])}</textarea><div class="line">'
        f'<select data-k="examples" aria-label="Examples"><option value="">Ten examples …</option>{options}</select>'
        f'{_SEARCH if mode == "full" else ""}<button type="submit" class="go">Translate</button></div>'
        f'{_SAMPLING if mode == "full" else ""}</form>'
        f'<p class="note" data-k="note" aria-live="polite">The model (6 MB) is loaded when you type. What you type stays in your browser.</p>'
        f'<progress data-k="bar" max="1" value="0" hidden aria-label="Loading the model"></progress>'
        f'<div class="words"><p class="label">German</p><div data-k="source" class="chips" role="group" aria-label="German tokens" lang="de">{source}</div>'
        f'<p class="label">English</p><div data-k="target" class="chips" role="group" aria-label="English tokens" lang="en">{target}</div>'
        f'<p class="told" data-k="told">{told}</p><p class="hidden" data-k="say" role="status"></p></div>'
        f'{more}<script type="application/json" data-k="data">{data}</script></div>'
        f"<script>{_LOADER.replace('ADDRESS', address)}</script>"
    )


def _mean_row(maps: dict[str, Any], query: int) -> list[float]:
    """Weights of one query in the last layer, as the mean of its heads."""
    heads, len_q, len_k = maps["heads"], maps["len_q"], maps["len_k"]
    rows = [((maps["layers"] - 1) * heads + h) * len_q + query for h in range(heads)]
    return [sum(maps["weights"][row * len_k + key] for row in rows) / heads for key in range(len_k)]


def _chip(token: str, weight: float | None = None, *, chosen: bool = False) -> str:
    """A token as the script draws it, until the script draws it."""
    look = "chip first" + " chosen" * chosen + " strong" * (weight is not None and weight > 0.6)
    share, number = ("0%", "") if weight is None else (f"{weight:.0%}", f"{weight:.2f}")
    word = html.escape(token.lstrip("▁"))
    return f'<span class="{look}" style="--weight:{share}"><span>{word}</span><small>{number}</small></span>'


# Asks for the script when the field is first touched, or when the address names a sentence.
_LOADER = """(() => {
const root = document.currentScript.previousElementSibling, form = root.querySelector("form");
let asked;
const begin = event => {
  if (event?.type == "submit") { event.preventDefault(); begin.submit = true }
  asked ??= import(new URL(ADDRESS, document.baseURI)).then(module => {
    module.start(root);
    if (begin.submit) form.requestSubmit();
  }, () => {
    asked = null;
    root.querySelector("[data-k=note]").textContent = location.protocol == "file:"
      ? "A browser runs the translator only from a web address, not from a file: type `make serve` and open what it says."
      : "The translator could not be loaded; check your connection and try again.";
  });
};
for (const type of ["pointerover", "focusin", "submit"]) root.addEventListener(type, event => root.ready || begin(event));
if (location.hash.startsWith("#s=")) begin();
})()"""

_SEARCH = (
    '<label>Search <select data-k="search"><option value="greedy">greedy</option><option value="beam">beam of 5</option>'
    '<option value="sample">sampling</option></select></label>'
)
_SAMPLING = (
    '<div class="line" data-k="sampling" hidden>'
    '<label>Temperature <input type="range" data-k="temperature" min="0.1" max="2" step="0.05" value="1"> <output data-k="temperature-value">1.00</output></label>'
    '<label>Top-p <input type="range" data-k="top_p" min="0.05" max="1" step="0.05" value="1"> <output data-k="top_p-value">1.00</output></label>'
    '<button type="button" data-k="again">Draw again</button></div>'
)
_PANELS = (
    '<div data-k="more"></div><div data-k="panels" hidden>'
    '<div class="tabs" role="tablist" aria-label="What lies behind the translation">'
    + "".join(f'<button type="button" role="tab" id="live-tab-{one}" aria-controls="live-{one}" data-k="tab-{one}"><{one}></button>' for one in SECTIONS)
    + '</div><div class="line" data-k="where" hidden>'
    '<label>Attention <select data-k="kind"><option value="cross">cross-attention</option><option value="encoder">encoder self-attention</option>'
    '<option value="decoder">decoder self-attention</option></select></label>'
    '<label>Layer <select data-k="layer"><option value="0">1</option><option value="1">2</option><option value="2">3</option></select></label>'
    '<label>Head <select data-k="which"><option value="-1">mean</option><option value="0">1</option><option value="1">2</option><option value="2">3</option><option value="3">4</option></select></label></div>'
    '<div role="tabpanel" id="live-next" aria-labelledby="live-tab-next" data-k="panel-next"><p data-k="next-title"></p><ol class="bars" data-k="next-list"></ol>'
    '<p>Choose another word, and the model writes the rest anew.</p><p data-k="beams-title" hidden>The beam\'s finished hypotheses, by mean log-probability:</p><ol data-k="beams"></ol>[next]</div>'
    '<div role="tabpanel" id="live-maps" aria-labelledby="live-tab-maps" data-k="panel-maps" hidden><div class="maps" data-k="maps"></div>'
    '<p>A row per query, a column per key; the frame is the chosen word. Choose a map, and the words above show its weights.</p>[maps]</div>'
    '<div role="tabpanel" id="live-head" aria-labelledby="live-tab-head" data-k="panel-head" hidden><p data-k="head-title"></p>'
    '<div class="strip-row"><span class="query">query</span><span data-k="head-query"></span></div>'
    '<div class="scroll"><table><thead><tr><th scope="col">token</th><th scope="col" class="key">key</th><th scope="col">score</th><th scope="col">weight</th><th scope="col" class="value">value</th></tr></thead>'
    '<tbody data-k="head-rows"></tbody></table></div>'
    '<div class="strip-row"><span class="output-role">output</span><span data-k="head-output"></span></div>'
    '<p>Score = query · key / √64; the softmax of the scores gives the weights; the output is the sum of weight × value. Each strip shows 64 numbers, negative ones in <span class="query">blue</span>, positive ones in <span class="key">vermilion</span>.</p>[head]</div></div>'
)


_NO_SCRIPT = (
    "<style>.live-translator :is(form, .note) { display: none }</style>"
    "<p>Translating needs JavaScript. This is one of the book's pictures:</p>"
)


class LiveTranslator(Directive):
    """See the module's docstring. Without scripts, readers have the view that is named after it: a page and a kind."""

    required_arguments = 3

    def run(self) -> list[nodes.Node]:
        mode, page, kind = self.arguments
        self.state.document.settings.env.note_dependency(str(Page(f"book/{page}").notebook))
        # All pages that have one lie in book/: scripts are one folder up, chapters beside it.
        live = live_translator(mode, static="../_static/")
        return [nodes.raw("", f"{live}<noscript>{_NO_SCRIPT}{view_of(page, kind)}</noscript>", format="html")]


def setup(app: Sphinx) -> None:
    """Called by the book's Sphinx extension."""
    app.add_directive("live-translator", LiveTranslator)
