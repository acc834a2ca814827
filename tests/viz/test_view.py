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


INSPECTION = {"head_view", "neuron_view", "pair_view", "contextual_words", "logit_lens_view", "patching_view"}
EFFICIENCY = {"layer_costs", "tile_walk", "loss_curves"}


@pytest.mark.parametrize(
    ("kinds", "limit"),
    [
        (set(KINDS) - INSPECTION - EFFICIENCY, 26_000),
        (INSPECTION & set(KINDS), 20_000),
        (EFFICIENCY & set(KINDS), 8_000),
    ],
    ids=["first", "inspection", "efficiency"],
)
def test_the_scripts_are_small(kinds, limit):
    # 26 KB for those of the chapters, in which readers predict before they see; 20 KB for those that inspect a model;
    # 8 KB for those of the chapters on costs and on debugging
    core = len(module._lean((module._SCRIPTS / "core.js").read_text()).encode())
    own = {kind: len(module.script(kind).encode()) - core for kind in kinds}
    assert core + sum(own.values()) <= limit, {"core": core, **own}


@pytest.mark.parametrize("kind", KINDS)
def test_a_script_uses_nothing_from_elsewhere(kind):
    source = module.script(kind)
    for forbidden in ("eval(", "Function(", "import(", "fetch(", "http", "require", "jQuery", "innerHTML", "</"):
        assert forbidden not in source


def test_a_notebook_gets_html_and_words():
    bundle = a_view()._repr_mimebundle_()
    assert set(bundle) == {"text/html", "text/plain"}
    assert bundle["text/plain"] == "A & B. Two cells."
    tags = _Tags(bundle["text/html"])
    assert tags.opened.count("attention-view") == 1
    assert ("aria-label", "A & B") in tags.attributes
    assert "<svg" in bundle["text/html"]
    assert not [value for name, value in tags.attributes if name in {"src", "href"}]


def test_data_cannot_end_the_script_they_stand_in():
    html = a_view(data={"names": ["</script><b>", "<!--"]}).html()
    body = re.search(r'<script type="application/json">(.*?)</script>', html)[1]
    assert json.loads(body) == {"names": ["</script><b>", "<!--"]}


def test_titles_and_words_are_text_not_markup():
    html = a_view(title="<i>", hint="<u>", body=words(1, 2, "<b>")).html()
    assert "<i>" not in html
    assert "<u>" not in html
    assert "<b>" not in html


def test_a_saved_view_is_a_page(tmp_path):
    path = a_view().save(tmp_path / "view.html")
    text = path.read_text(encoding="utf-8")
    assert text.startswith("<!doctype html>")
    assert "<details><summary>Description</summary><p>Two cells.</p>" in text  # folded: it may give the answer away
    assert [p.name for p in tmp_path.iterdir()] == ["view.html"]


def test_a_view_that_cannot_be_saved_leaves_the_old_file(tmp_path, monkeypatch):
    path = a_view().save(tmp_path / "view.html")
    before = path.read_text()

    def full(*_):
        raise OSError("disk full")

    monkeypatch.setattr(module.os, "replace", full)
    with pytest.raises(OSError, match="disk full"):
        a_view(title="new").save(path)
    assert path.read_text() == before
    assert [p.name for p in tmp_path.iterdir()] == ["view.html"]


def luminance(colour):
    """Of "#rgb" or "#rrggbb", as WCAG 2.2 defines it."""
    digits = colour[1:] if len(colour) == 7 else "".join(2 * c for c in colour[1:])
    parts = [int(digits[i : i + 2], 16) / 255 for i in (0, 2, 4)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return sum(share * c for share, c in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def contrast(a, b):
    low, high = sorted((luminance(a), luminance(b)))
    return (high + 0.05) / (low + 0.05)


def mixed(colour, paper, shade):
    """The colour with this opacity on paper."""
    wide = [c if len(c) == 7 else "#" + "".join(2 * d for d in c[1:]) for c in (colour, paper)]
    pairs = [(int(wide[0][i : i + 2], 16), int(wide[1][i : i + 2], 16)) for i in (1, 3, 5)]
    return "#" + "".join(f"{round(shade * c + (1 - shade) * p):02x}" for c, p in pairs)


@pytest.mark.parametrize("page", module._PAGES, ids=["light", "dark"])
@pytest.mark.parametrize("shade", [n / 100 for n in range(101)])
def test_the_text_of_a_cell_has_a_contrast_of_four_and_a_half(page, shade):
    colours = page[1]
    text = colours["on" if 'class="cell high"' in cell(0, 0, 9, 9, shade, "1") else "off"]
    assert contrast(text, mixed(colours["weight"], colours["paper"], shade)) >= 4.5


def test_the_scripts_change_the_text_of_a_cell_at_the_same_shade():
    assert f'classList.toggle("high",shade>{HIGH:g})'.replace("0.", ".") in module.script("query_plane")


def test_the_card_begins_with_what_to_do_and_ends_with_how_to_read_it():
    html = a_view(hint="Do this.", status="Said first.", note="Read it so.").html()
    order = [
        html.index(part) for part in (">A &amp; B<", ">Do this.<", "<svg", ">Said first.<", ">Reset<", ">Read it so.<")
    ]
    assert order == sorted(order)
    assert ">Reset<" not in a_view(reset=False).html()


def test_an_svg_is_well_formed_and_named():
    svg = ElementTree.fromstring(a_view().body)
    assert svg.attrib["aria-label"] == "two <cells>"
    assert svg.attrib["viewBox"] == "0 0 100 40"
    group = svg[0]
    assert group.attrib["class"] == "cell high"
    assert group[0].attrib["fill-opacity"] == "0.75"


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
    tensor = torch.rand(7, 11)
    assert torch.equal(torch.tensor(json.loads(json.dumps(numbers(tensor)))), tensor)
    exact = torch.rand(3, dtype=torch.float64)
    assert torch.equal(torch.tensor(json.loads(json.dumps(numbers(exact))), dtype=torch.float64), exact)
    assert numbers(torch.tensor([True, False])) == [True, False]
    assert numbers(torch.tensor(2.0, requires_grad=True)) == 2.0


def test_numbers_that_are_none_are_refused():
    with pytest.raises(ValueError, match=r"numbers must be finite, got NaN.*fully masked row"):
        numbers(torch.tensor([0.5, float("nan")]))


def unpacked(text):
    digits = [_DIGITS.index(c) for c in text]
    return [(a * 64 + b) / 4000 for a, b in zip(digits[::2], digits[1::2], strict=True)]


def test_packed_weights_keep_their_third_decimal():
    weights = torch.cat(
        [torch.randn(40, 100).softmax(-1).flatten(), torch.rand(4000), torch.tensor([0.0, 1.0, 0.0005, 0.9995])]
    )
    back = unpacked(packed(weights))
    assert [fixed(x) for x in back] == [fixed(x) for x in weights.double().tolist()]
    assert len(packed(weights)) == 2 * weights.numel()
    assert max(abs(a - b) for a, b in zip(back, weights.tolist(), strict=True)) <= 0.00026


def test_labels_are_positions_or_one_for_each():
    assert labels_for(None, 3, "tokens") == ["0", "1", "2"]
    assert labels_for(("a", "5"), 2, "tokens") == ["a", "5"]
    with pytest.raises(ValueError, match="tokens must have a label for each of the 3, got 2"):
        labels_for(["a", "b"], 3, "tokens")


def test_attributes_are_escaped_and_none_is_left_out():
    assert element("g", class_="x", data_k='"', aria_label=None) == '<g class="x" data-k="&quot;"></g>'
