"""The views of the chapter `masking`, in a browser without a network: by mouse, keyboard and touch."""

import pytest
import torch
from driving import everywhere, large_enough, part, press, said

from course_kit.viz import leak_detector, mask_painter
from course_lib.masking import causal_mask, masked_softmax, sliding_window_mask

pytestmark = [pytest.mark.browser, pytest.mark.site, pytest.mark.thorough]

TOKENS = ["the", "cat", "sat", "on", "it"]
SCORES = torch.tensor(
    [
        [1.0, -0.5, 2.0, 0.25, 0.0],
        [0.0, 0.25, -1.0, 3.0, 1.0],
        [3.0, 1.5, 0.125, -2.0, 0.5],
        [-1.0, 0.0, 0.75, 1.25, 2.5],
        [0.5, 2.0, -0.75, 0.0, 1.0],
    ]
)
MODELS = {
    "good": torch.rand(5, 5, generator=torch.Generator().manual_seed(0)).tril() + 0.01 * torch.ones(5, 5).tril(),
    "off by one": 0.5 * torch.ones(5, 5).tril(1),
}


def pressed(page, which):
    """Which of these buttons are pressed."""
    states = page.locator(which).evaluate_all("nodes => nodes.map(n => n.getAttribute('aria-pressed'))")
    assert set(states) <= {"true", "false"}
    return [state == "true" for state in states]


# mask_painter ---------------------------------------------------------------------------------------------------------


def painter(page_of, *mask, **settings):
    return page_of(mask_painter(SCORES, *mask, tokens=TOKENS), **settings)


def cell_at(page, i, j):
    return page.locator(".paint").nth(i).locator("> g").nth(j)


def painted(page):
    """The mask as it is on the page."""
    return torch.tensor(pressed(page, ".paint > g")).view(5, 5)


def choose(page, label):
    page.locator("select").select_option(label=label)


def rule(page):
    """The mask that the list names."""
    return page.locator("select").evaluate("node => node.selectedOptions[0].textContent")


def weights(page):
    return page.locator(".weights text").all_text_contents()


def agree(page):
    """The weights shown are torch's for the mask shown; open cells are filled and show a score, closed ones a cross."""
    expected = masked_softmax(SCORES.double(), painted(page)).flatten().tolist()
    assert [float(w) for w in weights(page)] == pytest.approx(expected, abs=0.000501)
    shades = page.locator(".weights rect").evaluate_all("nodes => nodes.map(n => +n.getAttribute('fill-opacity'))")
    assert shades == pytest.approx(expected, abs=1e-6)
    filled = page.locator(".paint > g > rect").evaluate_all("nodes => nodes.map(n => +getComputedStyle(n).fillOpacity)")
    assert [x > 0 for x in filled] == painted(page).flatten().tolist()
    assert max(filled) <= 0.5
    shown = page.locator(".paint text:visible").all_text_contents()
    assert ["×" not in text for text in shown] == painted(page).flatten().tolist()


@everywhere
def test_a_mask_is_painted_with_the_mouse_after_a_prediction(page_of, width, scheme):
    page = painter(page_of, causal_mask(5), width=width, scheme=scheme)
    assert weights(page) == ["?"] * 25
    assert large_enough(cell_at(page, 2, 1))
    cell_at(page, 2, 1).click()
    assert said(page, "Query “sat”, key “cat”, score 1.50: closed.").endswith("closed.")
    assert weights(page) == ["?"] * 25  # painting does not give them away
    part(page, "show").click()
    assert not painted(page)[2, 1]
    said(page, "11 of 25 cells are closed. Query “sat” has the weights " + ", ".join(weights(page)[10:15]) + ".")
    agree(page)
    cell_at(page, 1, 4).click()
    assert painted(page)[1, 4]
    agree(page)
    said(page, "Query “cat”, key “it”, score 1.00: open. Query “cat” has the weights " + weights(page)[5])
    part(page, "show").click()
    assert weights(page) == ["?"] * 25


def test_presets_paint_the_masks_of_the_library_and_ones_own_mask_comes_back(page_of):
    page = painter(page_of, causal_mask(5))
    causal = causal_mask(5)
    choose(page, "my own")  # begins with the one shown first
    assert torch.equal(painted(page), causal)
    part(page, "show").click()
    padded = "causal and padding: last 2 keys"
    for label, mask in (
        ("all open", torch.ones(5, 5).bool()),
        ("window of 2", sliding_window_mask(5, 2)),
        (padded, causal & torch.tensor([True] * 3 + [False] * 2)),
    ):
        choose(page, label)
        assert torch.equal(painted(page), mask)
        agree(page)
    assert rule(page) == padded
    cell_at(page, 0, 4).click()
    assert rule(page) == "my own"
    mine = painted(page)
    choose(page, "causal")
    assert torch.equal(painted(page), causal)
    choose(page, "my own")
    assert torch.equal(painted(page), mine)
    cell_at(page, 0, 4).click()
    assert rule(page) == padded  # it is that mask again


# What crosses the edges of its picture.
_CUT = """nodes => nodes.filter(n => {
  const text = n.getBoundingClientRect(), picture = n.ownerSVGElement.getBoundingClientRect();
  return text.left < picture.left - .5 || text.right > picture.right + .5;
}).map(n => n.textContent)"""


@everywhere
@pytest.mark.parametrize("tokens", [None, TOKENS], ids=["positions", "words"])
def test_no_title_or_label_is_cut(page_of, width, scheme, tokens):
    for view in (leak_detector(MODELS, tokens=tokens), mask_painter(SCORES, tokens=tokens)):
        page = page_of(view, width=width, scheme=scheme)
        assert page.locator("svg text:visible").evaluate_all(_CUT) == []
        fill = "n => getComputedStyle(n).fill"
    for role in ("query", "key"):
        title = page.locator(f"svg text.{role}").get_by_text(role, exact=True).first
        assert title.evaluate(fill) != page.locator("svg text.score").first.evaluate(fill)


def test_a_closed_row_gets_zeros_and_is_told_of_nan(page_of):
    page = painter(page_of, causal_mask(5))
    told = part(page, "empty")
    cell_at(page, 0, 0).click()
    assert told.inner_text() == ""  # not before the weights are shown
    part(page, "show").click()
    agree(page)
    assert told.inner_text().startswith("No key is open for “the”: the weights are zeros here; torch.softmax, ")
    cell_at(page, 0, 3).click()
    assert told.inner_text() == ""


@everywhere
def test_a_mask_is_painted_with_the_keyboard(page_of, width, scheme):
    page = painter(page_of, width=width, scheme=scheme)
    press(page, "Tab", "Tab", "Tab", "ArrowDown", "ArrowDown", "ArrowRight")  # the list, the button, the cells
    assert page.evaluate("getComputedStyle(document.activeElement.querySelector('rect')).strokeWidth") == "4px"
    press(page, " ")
    assert (~painted(page)).nonzero().tolist() == [[2, 1]]
    said(page, "Query “sat”, key “cat”, score 1.50: closed.")
    press(page, "Shift+Tab", "Enter")
    agree(page)
    press(page, "Tab", " ")  # one stop for all cells, where one was
    assert painted(page).all()


# leak_detector --------------------------------------------------------------------------------------------------------


def detector(page_of, **settings):
    return page_of(leak_detector(MODELS, tokens=TOKENS), **settings)


def as_torch(page, model, token):
    """The outputs' words are torch's, and only this token's are seen."""
    numbers = MODELS[model][:, token].tolist()
    words = ["still" if x == 0 else "moves" if i >= token else "LEAK" for i, x in enumerate(numbers)]
    visible = page.locator('[data-k^="out"]:visible').all_text_contents()
    assert visible == [f"{word} {x:.3f}" for word, x in zip(words, numbers, strict=True)]


def unseen(page):
    """No arrow and no word of an answer is seen."""
    assert page.locator('[data-k^="out"]:visible').count() == 0
    assert page.locator("[data-s]:not([data-stays]) path:visible").count() == 0


def columns(page):
    """The columns of the map whose cells are shown."""
    known = page.locator("[data-u]").evaluate_all("nodes => nodes.map(n => n.style.display == 'none')")
    shown = page.locator("[data-stays]:visible").evaluate_all("nodes => nodes.map(n => +n.dataset.s.split('.')[1])")
    assert [j for j, x in enumerate(known) if x] == shown
    return shown


def judged(page):
    return page.locator(".judged").all_text_contents()


@everywhere
def test_a_leak_is_predicted_and_found_with_the_mouse(page_of, width, scheme):
    page = detector(page_of, width=width, scheme=scheme)
    unseen(page)
    assert large_enough(page.locator(".input").nth(3))
    assert large_enough(page.locator(".guess").nth(3))
    page.locator(".input").nth(3).click()
    said(page, "If “on” is changed, which outputs move? Marked: none.")
    for model in MODELS:
        choose(page, model)
        unseen(page)  # another model is another question
        assert pressed(page, ".guess") == [False] * 5
        assert judged(page) == [""] * 5
        for i in (2, 3, 4):
            page.locator(".guess").nth(i).click()
        said(page, "Marked: “sat”, “on”, “it”.")
        unseen(page)  # marking gives nothing away
        part(page, "change").click()
        as_torch(page, model, 3)
        if model == "good":
            assert said(page, "You were wrong about “sat”.").startswith("No leak when “on” is changed: ")
            assert judged(page) == ["✓", "✓", "✗", "✓", "✓"]
            page.locator(".guess").nth(2).click()  # a prediction stays as it was once the answer is shown
            assert pressed(page, ".guess") == [False, False, True, True, True]
    text = said(page, "Leak: “sat” must not move when “on” is changed, and yet does.")
    assert text.endswith("You were right about every output.")
    assert judged(page) == ["✓"] * 5
    assert pressed(page, ".input") == [False, False, False, True, False]
    assert page.locator("path[stroke-dasharray]:visible").count() == 1
    assert columns(page) == [3]


@everywhere
def test_a_leak_does_not_look_like_what_is_allowed(page_of, width, scheme):
    page = detector(page_of, width=width, scheme=scheme)
    choose(page, "off by one")
    part(page, "change").click()
    assert said(page, "Leak").endswith("and yet does.")  # nothing was ticked, so nothing is said of it
    assert judged(page) == [""] * 5

    def styles(which, name):
        return page.locator(which).evaluate_all(f"list => list.map(n => getComputedStyle(n).{name})")

    arrows = "[data-s='1.2']:not([data-stays]) path"
    (leak, *_), allowed = styles(f"{arrows}.leak", "stroke"), styles(f"{arrows}:not(.leak)", "stroke")
    cells = styles("[data-s='1.2'][data-stays] rect", "fill")
    assert leak == cells[1]
    assert leak not in {*allowed, cells[0], *cells[2:]}
    assert styles("[data-s='1.2'] text.leak", "fill") == [leak]


def test_the_whole_map_is_shown_and_all_begins_again(page_of):
    page = detector(page_of)
    choose(page, "off by one")
    page.locator(".guess").nth(1).click()
    part(page, "all").click()
    assert said(page, "forbidden") == "Of 10 forbidden pairs, “off by one” leaks in 4."
    assert columns(page) == [0, 1, 2, 3, 4]
    assert page.locator("[data-stays] text:visible").filter(has_text="✗").count() == 4
    page.locator(".guess").nth(0).click()
    assert pressed(page, ".guess") == [False, True, False, False, False]  # it is too late for a prediction
    assert judged(page) == [""] * 5
    choose(page, "good")
    assert columns(page) == []
    choose(page, "off by one")
    page.locator(".input").nth(4).click()
    assert said(page, "“it” is changed").endswith("and yet does.")  # nothing was predicted
    part(page, "reset").click()
    said(page, "If “sat” is changed, which outputs move? Marked: none.")
    unseen(page)
    assert columns(page) == []
    assert pressed(page, ".input") == [False, False, True, False, False]


def test_a_leak_is_found_with_the_keyboard(page_of):
    page = detector(page_of)
    press(page, "Tab", "ArrowDown", "Tab", "Tab", "Tab", "ArrowDown")  # the list of models, two buttons, the tokens
    unseen(page)
    assert pressed(page, ".input").index(True) == 2  # walking alone changes nothing
    press(page, "Enter")
    assert pressed(page, ".input").index(True) == 1
    press(page, "Tab", " ", "ArrowDown", " ")
    assert pressed(page, ".guess") == [True, True, False, False, False]
    part(page, "change").focus()
    press(page, "Enter")
    as_torch(page, "off by one", 1)
    said(page, "Leak: “the” must not move")
