"""The directive `live-translator`: a field in which a reader's own sentence is translated, in the page itself.

    ```{live-translator} full one_sentence alignment
    ```

`short` is for the title page: the field, the words, and where the model looked. `full` adds what lies behind. Both show
a prepared sentence until `book/_static/translator/view.js` moves them. The script is asked for once a reader touches
the field, and the weights once something is typed or translated. Readers without scripts get the view that is named: a
page and a kind.
"""

from __future__ import annotations

import json
from functools import cache
from typing import Any

from docutils import nodes
from docutils.parsers.rst import Directive
from jinja2 import Template
from sphinx.application import Sphinx

from tools.pages import Page
from tools.publisher import ROOT
from tools.title_page import view_of

TEMPLATE = ROOT / "book/_templates/live_translator.html"
# Sentences to try, each with a line on what to look for. What is counted there are the 29,000 training captions.
EXAMPLES = ROOT / "book/_static/translator/examples.json"


@cache
def prepared() -> dict[str, Any]:
    """What the page shows before the model is loaded: the first example, translated here."""
    import torch

    from course_kit.translator import pretrained

    translator, sentence = pretrained(), json.loads(EXAMPLES.read_text(encoding="utf-8"))[0]["text"]
    text = translator.translate([sentence], beam_size=1)[0]
    found = [translator.attention(sentence, text, layer=n) for n in range(translator.model.config.num_layers)]
    source, target, weights = found[0][0], found[0][1], torch.stack([weights for *_, weights in found])
    sizes = dict(zip(("layers", "heads", "len_q", "len_k"), weights.shape, strict=True))
    cross = {**sizes, "weights": [round(x, 3) for x in weights.flatten().tolist()]}
    words = {"source": {"tokens": source}, "target": {"tokens": target}}
    d_k = translator.model.config.d_model // translator.model.config.num_heads
    return {"sentence": sentence, "text": text, **words, "cross": cross, "start": target.index("▁snow"), "d_k": d_k}


def live_translator(mode: str, view: str = "", static: str = "../_static/") -> str:
    """The elements of the field and of what surrounds it.

    Args:
        mode: "short" or "full".
        view: HTML for readers without scripts.
        static: address of the folder with the scripts, relative to the page.

    Raises:
        ValueError: another mode.
    """
    if mode not in ("short", "full"):
        raise ValueError(f"expected live-translator short or full, got {mode!r}")
    example, examples = prepared(), json.loads(EXAMPLES.read_text(encoding="utf-8"))
    data = json.dumps({"prepared": example, "examples": examples}, ensure_ascii=False).replace("<", "\\u003c")
    template = Template(TEMPLATE.read_text(encoding="utf-8"), autoescape=True, trim_blocks=True, lstrip_blocks=True)
    titles = {stem: Page(f"book/{stem}").title for stem in ("decoding", "inspection", "scaled_dot_product")}
    about = {"prepared": example, "examples": examples, "data": data, "row": _row(example), "titles": titles}
    return template.render(full=mode == "full", view=view, static=static, **about)


def _row(example: dict[str, Any]) -> list[float]:
    """Weights from which the chosen word was predicted: the mean of the heads of the last layer."""
    layers, heads, len_q, len_k, weights = example["cross"].values()
    starts = [(((layers - 1) * heads + h) * len_q + example["start"]) * len_k for h in range(heads)]
    return [sum(weights[start + key] for start in starts) / heads for key in range(len_k)]


class LiveTranslator(Directive):
    """See the module's docstring."""

    required_arguments = 3

    def run(self) -> list[nodes.Node]:
        mode, page, kind = self.arguments
        for path in (Page(f"book/{page}").notebook, TEMPLATE, EXAMPLES):
            self.state.document.settings.env.note_dependency(str(path))
        return [nodes.raw("", live_translator(mode, view_of(page, kind)), format="html")]


def setup(app: Sphinx) -> None:
    """Called by the book's Sphinx extension."""
    app.add_directive("live-translator", LiveTranslator)
