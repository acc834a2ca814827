"""What holds for every interactive view: it shows without a script, works in a sandboxed frame, is reached by keyboard,
and axe-core finds no fault."""

import html
import re

import pytest
import torch
from axe import faults

from course_kit import viz
from course_lib import causal_mask, sinusoidal_encoding

pytestmark = [pytest.mark.browser, pytest.mark.site]


def weights(*shape):
    return torch.randn(shape).softmax(-1)


WORDS = ["the", "cat", "sat", "on", "it"]
PAIR = ["[CLS]", "it", "sat", "[SEP]", "who", "sat", "[SEP]"]
VIEWS = {
    "query_plane": lambda: viz.query_plane(torch.randn(4, 2), torch.randn(4)),
    "alignment": lambda: viz.alignment(weights(4, 5), list("wxyz"), WORDS),
    "attention_calculator": lambda: viz.attention_calculator(torch.randn(2, 3), torch.randn(3, 3), torch.randn(3, 2)),
    "scale_explorer": lambda: viz.scale_explorer(torch.randn(64, 1024), torch.randn(64, 16, 1024)),
    "head_split": lambda: viz.head_split(torch.randn(3, 8), torch.randn(2, 3, 4), torch.randn(8, 8), tokens=WORDS[:3]),
    "mask_painter": lambda: viz.mask_painter(torch.randn(5, 5), causal_mask(5), tokens=WORDS),
    "leak_detector": lambda: viz.leak_detector({"good": torch.eye(5), "bad": torch.ones(5, 5)}, tokens=WORDS),
    "sinusoid_probe": lambda: viz.sinusoid_probe(sinusoidal_encoding(12, 8)),
    "rotary_pair": lambda: viz.rotary_pair(torch.randn(2), torch.randn(2)),
    "block_stepper": lambda: viz.block_stepper({"a": torch.randn(5, 8), "b": torch.randn(5, 8)}, tokens=WORDS),
    "three_attentions": lambda: viz.three_attentions(
        weights(2, 5, 5), weights(2, 3, 3), weights(2, 3, 5), WORDS, list("xyz")
    ),
    "norm_switch": lambda: viz.norm_switch(*[{6: (torch.rand(2, 6) + 0.01, torch.rand(2))}] * 2, steps=[0, 9]),
    "next_token": lambda: viz.next_token_bars(torch.randn(50), shown=5),
    "beam_tree": lambda: viz.beam_tree(
        [["a", "b", "<eos>"], ["a", "<eos>"]], [[-1, -1, -1], [0, 0]], [[-0.4, -2.0, -1.0], [-0.5, -1.0]], 2
    ),
    "cache_work": lambda: viz.cache_work(5, 4, 8, 2),
    "tile_walk": lambda: viz.tile_walk(torch.randn(4, 5), torch.randn(5), 2, queries_per_tile=2),
    "layer_costs": viz.layer_costs,
    "loss_curves": lambda: viz.loss_curves(
        {"healthy": [3.5, 2.0, 1.5], "dead": [3.5, 3.4, 3.4]}, {"leak": {"healthy": 0, "dead": 1}}, baseline=3.4
    ),
    "model_view": lambda: viz.model_view(weights(2, 3, 7, 7), PAIR),
    "neuron_view": lambda: viz.neuron_view(torch.randn(3, 4), torch.randn(7, 4), PAIR),
    "pair_view": lambda: viz.pair_view(weights(2, 3, 7, 7), PAIR),
    "contextual_words": lambda: viz.contextual_words(torch.randn(3, 5, 4), WORDS, list("xyxyx"), word="it"),
    "logit_lens_view": lambda: viz.logit_lens_view(torch.randn(3, 5, 11), WORDS, targets=[1, 2, 3, 4, 5]),
    "patching_view": lambda: viz.patching_view(4 * torch.randn(3, 5), -2, 2, tokens=WORDS, other_tokens=list("vwxyz")),
    "head_view": lambda: viz.head_view(weights(2, 3, 4, 7), list("wxyz"), keys=PAIR),
}
each_view = pytest.mark.parametrize("name", VIEWS)


def test_every_kind_of_view_is_here():
    from course_kit.viz.view import _SCRIPTS

    assert {path.stem for path in _SCRIPTS.glob("*.js")} - {"core"} == {make().kind for make in VIEWS.values()}


@each_view
@pytest.mark.parametrize(("width", "scheme"), [(1000, "light"), (390, "dark")])
def test_axe_finds_no_fault(show, name, width, scheme):
    seen = show(VIEWS[name](), width=width, scheme=scheme)
    assert faults(seen.page) == []
    assert seen.errors == []
    assert seen.outside == []
    assert seen.page.evaluate("document.documentElement.scrollWidth") <= width


@each_view
def test_it_shows_without_a_script(browser, tmp_path, name):
    context = browser.new_context(java_script_enabled=False, offline=True)
    page = context.new_page()
    page.goto(VIEWS[name]().save(tmp_path / "view.html").as_uri())
    for svg in page.locator("svg:not([aria-hidden])").all():
        if svg.is_visible():
            box = svg.bounding_box()
            assert box["width"] > 100
            assert box["height"] > 20
    assert page.locator("svg:visible").count() >= 1
    context.close()


@each_view
def test_all_that_can_be_moved_is_reached_by_tab(show, name):
    """Every button, slider, list, field, fold and handle; of a map of cells one cell, from which arrows go on."""
    page = show(VIEWS[name]()).page
    wanted = page.evaluate(
        "[...document.querySelectorAll('button,input,select,summary,[tabindex=\"0\"]')]"
        ".filter(n => n.checkVisibility({visibilityProperty: true}) && !n.disabled && n.tabIndex >= 0).length"
    )
    reached = set()
    for _ in range(wanted + 1):
        page.keyboard.press("Tab")
        reached.add(
            page.evaluate("(n => n == document.body ? '' : n.dataset.k || n.outerHTML)(document.activeElement)")
        )
    assert wanted > 0
    assert len(reached - {""}) == wanted


@pytest.mark.thorough
@each_view
def test_it_works_twice_on_a_page_and_in_a_sandboxed_frame(browser, tmp_path, name):
    """Colab and VS Code show an output in a frame that may run scripts and nothing else."""
    view = VIEWS[name]()
    twice = html.escape(view.html() + view.html())
    file = tmp_path / "frame.html"
    frame = f'<iframe sandbox="allow-scripts" width=900 height=900 srcdoc="{twice}"></iframe>'
    file.write_text(f'<!doctype html><meta charset="utf-8">{frame}')
    context = browser.new_context(offline=True)
    page = context.new_page()
    errors = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.goto(file.as_uri())
    frame = page.frames[-1]
    frame.wait_for_selector("attention-view")
    assert frame.evaluate("[...document.querySelectorAll('attention-view')].map(v => v.ready)") == [True, True]
    assert errors == []
    context.close()


def test_what_is_changed_is_said(show):
    """In a live region that is there from the beginning, so that it is announced."""
    page = show(VIEWS["rotary_pair"]()).page
    live = page.locator("[role=status][aria-live=polite]")
    assert live.count() == 1
    before = live.text_content()
    page.locator("[data-k=both]").click()
    page.wait_for_function("said => document.querySelector('.say').textContent != said", arg=before)


# What makes the script say the state that the view begins with: the part, and what is done to it.
INPUTS = {
    "select": ("leak_detector", "head_split", "mask_painter", "three_attentions"),
    "[data-k=step]": ("cache_work", "tile_walk", "loss_curves"),
    "[data-k=layer]": ("model_view", "contextual_words", "head_view"),
    "[data-k=depth]": ("norm_switch",),
    "[data-k=token]": ("block_stepper",),
    "[data-k=column]": ("sinusoid_probe",),
    "[data-k=d]": ("scale_explorer",),
    "[data-k=m]": ("rotary_pair",),
    "[data-k=t]": ("next_token",),
    "[data-k=length]": ("layer_costs",),
    "[data-k=head]": ("pair_view",),
}
FIRST = {name: (part, "input") for part, names in INPUTS.items() for name in names} | {
    "alignment": ("[tabindex='0']", "focus"),
    "attention_calculator": ("[data-k=c0]", "focus"),
    "neuron_view": (".row[aria-pressed=true]", "click"),
    "logit_lens_view": ("[aria-selected=true]", "focus"),
    "patching_view": ("[aria-selected=true]", "focus"),
}


@pytest.mark.parametrize("name", FIRST)
def test_the_status_line_begins_with_what_the_script_says(show, name):
    page = show(VIEWS[name]()).page
    page.wait_for_timeout(300)
    line, (part, what) = page.locator(".say"), FIRST[name]
    before = line.text_content()
    assert before
    line.evaluate("node => node.textContent = ''")
    page.locator(part).first.evaluate(
        """(node, what) => what == "focus" ? node.onfocus()
           : node.dispatchEvent(new Event(what, {bubbles: true}))""",
        what,
    )
    page.wait_for_function("document.querySelector('.say').textContent != ''")
    assert line.text_content() == before


@each_view
def test_what_is_said_begins_with_a_capital_letter(show, name):
    """Or with a number or a quoted token; at first, and after each control was operated."""
    page = show(VIEWS[name]()).page
    nodes = "attention-view :is(input,select,button):not([data-k=reset],:disabled)"
    heard = [page.locator(".say").text_content()]
    for i in range(min(page.locator(nodes).count(), 8)):
        page.locator(nodes).nth(i).evaluate(
            """node => {
                if (node.options) node.selectedIndex = node.options.length - 1;
                else if ("min" in node) node.value = node.min || 3;
                for (const kind of ["input", "change"]) node.dispatchEvent(new Event(kind, {bubbles: true}));
                node.onclick?.(new MouseEvent("click"));
            }"""
        )
        page.wait_for_timeout(150)
        heard.append(page.locator(".say").text_content())
    assert [text for text in heard if text and not re.match("[A-Z0-9“]", text)] == []


STATE = """[document.querySelector("attention-view").innerHTML,
    [...document.querySelectorAll("input,select")].map(node => node.value)]"""


@pytest.mark.thorough
@pytest.mark.parametrize("name", sorted(set(VIEWS) - {"alignment", "logit_lens_view", "patching_view"}))
def test_reset_brings_the_beginning_back(show, name):
    page = show(VIEWS[name]()).page
    page.wait_for_timeout(300)
    before = page.evaluate(STATE)
    for _ in range(2):  # the view that was put back can be changed and put back as well
        page.evaluate(
            """for (const node of document.querySelectorAll("attention-view input, attention-view select")) {
                if (node.options) node.selectedIndex = node.options.length - 1;
                else node.value = +node.value == +node.min ? node.max || 3 : node.min || 3;
                for (const kind of ["input", "change"]) node.dispatchEvent(new Event(kind, {bubbles: true}));
            }
            for (const node of document.querySelectorAll(
                "attention-view button:not([data-k=reset]), attention-view svg [role=button]"))
                node.onclick?.(new MouseEvent("click"));"""
        )
        page.wait_for_timeout(300)
        assert page.evaluate(STATE) != before
        page.locator("[data-k=reset]").click()
        page.wait_for_timeout(300)
        assert page.evaluate(STATE) == before
        assert page.evaluate("document.activeElement.dataset.k") == "reset"


def test_a_view_taller_than_the_screen_keeps_what_it_says_in_sight_once_it_is_used(show):
    page = show(VIEWS["contextual_words"](), width=390, height=500).page
    page.evaluate("document.querySelector('.controls').scrollIntoView()")
    assert page.locator(".say").bounding_box()["y"] > 500
    page.evaluate("document.querySelector('.controls :is(button,select,input)').focus({preventScroll: true})")
    box = page.locator(".say").bounding_box()
    assert box["y"] + box["height"] <= 500
    assert page.locator("svg").last.bounding_box()["y"] > 500
    page.evaluate("scrollTo(0, document.querySelector('.hint').getBoundingClientRect().bottom + scrollY - innerHeight)")
    hint = page.locator(".hint").bounding_box()
    assert page.locator(".foot").bounding_box()["y"] >= hint["y"] + hint["height"]  # what there is to do is not covered


def test_focus_is_visible(show):
    page = show(VIEWS["query_plane"]()).page
    page.keyboard.press("Tab")
    assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    page.keyboard.press("Tab")
    circle = "document.activeElement.querySelector('circle')"
    assert page.evaluate(f"getComputedStyle({circle}).strokeWidth") == "4px"
