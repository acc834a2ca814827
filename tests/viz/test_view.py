"""What all interactive views share: one piece of HTML that needs nothing, exact numbers, a file that is whole."""

import json
import re
from html.parser import HTMLParser
from xml.etree import ElementTree

import pytest
import torch

from course_kit.viz import view as module
from course_kit.viz.view import View
from course_kit.viz.view_elements import HIGH, cell, drawing, element, labels_for, words
from course_kit.viz.view_numbers import _DIGITS, fixed, numbers, packed

KINDS = sorted(path.stem for path in module._SCRIPTS.glob("*.js") if path.stem != "core")


def a_view(**changes):
    svg = drawing(100, 40, cell(0, 0, 50, 40, 0.75, "0.75", key="first"), label="two <cells>")
    settings = {"kind": "query_plane", "title": "A & B", "description": "Two cells.", "body": svg, "data": {"x": [1.5]}}
    return View(**{**settings, **changes})


class _Tags(HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.opened, self.attributes = [], []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.opened.append(tag)
        self.attributes += attributes


def test_the_scripts_are_small_and_use_nothing_from_elsewhere():
    # 26 KB for those of the chapters, in which readers predict before they see; 20 KB for those that inspect a model;
    # 8 KB for those of the chapters on costs and on debugging
    inspection = {"head_view", "neuron_view", "pair_view", "contextual_words", "logit_lens_view", "patching_view"}
    efficiency = {"layer_costs", "tile_walk", "loss_curves"}
    core = len(module._lean((module._SCRIPTS / "core.js").read_text()).encode())
    own = {kind: len(module.script(kind).encode()) - core for kind in KINDS}
    for kinds, limit in ((set(KINDS) - inspection - efficiency, 26_000), (inspection, 20_000), (efficiency, 8_000)):
        assert core + sum(own[kind] for kind in kinds) <= limit, {"core": core, **own}
    for kind in KINDS:
        for forbidden in ("eval(", "Function(", "import(", "fetch(", "http", "require", "jQuery", "innerHTML", "</"):
            assert forbidden not in module.script(kind), kind


def test_a_notebook_gets_html_and_words():
    bundle = a_view()._repr_mimebundle_()
    assert set(bundle) == {"text/html", "text/plain"}
    assert bundle["text/plain"] == "A & B. Two cells."
    tags = _Tags(bundle["text/html"])
    assert tags.opened.count("attention-view") == tags.opened.count("svg") == 1
    assert ("aria-label", "A & B") in tags.attributes
    assert not [value for name, value in tags.attributes if name in {"src", "href"}]


def test_words_are_text_not_markup_and_data_cannot_end_the_script_they_stand_in():
    html = a_view(title="<i>", hint="<u>", body=words(1, 2, "<b>"), data={"names": ["</script><b>", "<!--"]}).html()
    body = re.search(r'<script type="application/json">(.*?)</script>', html)[1]
    assert json.loads(body) == {"names": ["</script><b>", "<!--"]}
    assert "<!--" not in html
    assert not re.search("<[iub]>", html.replace(body, ""))
    assert element("g", class_="x", data_k='"', aria_label=None) == '<g class="x" data-k="&quot;"></g>'


def test_a_saved_view_is_a_page_written_whole_or_not_at_all(tmp_path, monkeypatch):
    path = a_view().save(tmp_path / "view.html")
    before = path.read_text(encoding="utf-8")
    assert before.startswith("<!doctype html>")
    assert "<details><summary>Description</summary><p>Two cells.</p>" in before  # folded: it may give the answer away

    def full(*_):
        raise OSError("disk full")

    monkeypatch.setattr(module.os, "replace", full)
    with pytest.raises(OSError, match="disk full"):
        a_view(title="new").save(path)
    assert path.read_text(encoding="utf-8") == before
    assert list(tmp_path.iterdir()) == [path]


def channels(colour):
    """Of "#rgb" or "#rrggbb", from 0 to 1."""
    digits = colour[1:] if len(colour) == 7 else "".join(2 * c for c in colour[1:])
    return [int(digits[i : i + 2], 16) / 255 for i in (0, 2, 4)]


def luminance(parts):
    """As WCAG 2.2 defines it."""
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return sum(share * c for share, c in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


@pytest.mark.parametrize("page", module._PAGES, ids=["light", "dark"])
def test_the_text_of_a_cell_has_a_contrast_of_four_and_a_half(page):
    colours = {name: channels(colour) for name, colour in page[1].items()}
    for shade in [n / 100 for n in range(101)]:
        text = luminance(colours["on" if 'class="cell high"' in cell(0, 0, 9, 9, shade, "1") else "off"])
        pairs = zip(colours["weight"], colours["paper"], strict=True)
        ground = luminance([shade * weight + (1 - shade) * paper for weight, paper in pairs])
        assert (max(text, ground) + 0.05) / (min(text, ground) + 0.05) >= 4.5, shade
    script = f'classList.toggle("high",shade>{HIGH:g})'.replace("0.", ".")
    assert script in module.script("query_plane")  # which changes the text at the same shade


def test_the_card_begins_with_what_to_do_and_ends_with_how_to_read_it():
    html = a_view(hint="Do this.", status="Said first.", note="Read it so.").html()
    order = [
        html.index(part) for part in (">A &amp; B<", ">Do this.<", "<svg", ">Said first.<", ">Reset<", ">Read it so.<")
    ]
    assert order == sorted(order)
    assert ">Reset<" not in a_view(reset=False).html()


def test_an_svg_is_well_formed_and_named():
    svg = ElementTree.fromstring(a_view().body)
    assert (svg.get("aria-label"), svg.get("viewBox")) == ("two <cells>", "0 0 100 40")
    assert (svg[0].get("class"), svg[0][0].get("fill-opacity")) == ("cell high", "0.75")


@pytest.mark.parametrize(
    ("number", "digits", "text"),
    [
        (0.0625, 3, "0.063"),
        (-0.0625, 3, "−0.063"),
        (0.0005, 3, "0.001"),
        (-0.0001, 3, "0.000"),
        (2.5, 0, "3"),
        (1e-9, 2, "0.00"),
    ],
)
def test_numbers_are_written_as_the_script_writes_them(number, digits, text):
    assert fixed(number, digits) == text


def test_numbers_are_exact():
    for tensor in (torch.rand(7, 11), torch.rand(3, dtype=torch.float64)):
        assert torch.equal(torch.tensor(json.loads(json.dumps(numbers(tensor))), dtype=tensor.dtype), tensor)
    assert numbers(torch.tensor([True, False])) == [True, False]
    assert numbers(torch.tensor(2.0, requires_grad=True)) == 2.0


def unpacked(text):
    digits = [_DIGITS.index(c) for c in text]
    return [(a * 64 + b) / 4000 for a, b in zip(digits[::2], digits[1::2], strict=True)]


def test_packed_weights_keep_their_third_decimal():
    weights = torch.cat(
        [torch.randn(40, 100).softmax(-1).flatten(), torch.rand(4000), torch.tensor([0.0, 1.0, 0.0005, 0.9995])]
    )
    back = unpacked(packed(weights))
    assert [fixed(x) for x in back] == [fixed(x) for x in weights.double().tolist()]
    assert max(abs(a - b) for a, b in zip(back, weights.tolist(), strict=True)) <= 0.00026


def test_labels_are_positions_or_one_for_each():
    assert labels_for(None, 3, "tokens") == ["0", "1", "2"]
    assert labels_for(("a", "5"), 2, "tokens") == ["a", "5"]
    with pytest.raises(ValueError, match="tokens must have a label for each of the 3, got 2"):
        labels_for(["a", "b"], 3, "tokens")
