"""The views of the chapter `masking`, in a browser without a network: by mouse, keyboard and touch."""

import pytest
import torch
from driving import clean, everywhere, said

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


# mask_painter ---------------------------------------------------------------------------------------------------------


def cell_at(page, i, j):
    return page.locator(".paint").nth(i).locator("> g").nth(j)


def painted(page):
    """The mask as it is on the page."""
    states = page.locator(".paint > g").evaluate_all("nodes => nodes.map(n => n.getAttribute('aria-pressed'))")
    assert set(states) <= {"true", "false"}
    return torch.tensor([state == "true" for state in states]).view(5, 5)


def is_drawn(page):
    """Open cells are filled and show a score, closed ones are empty and show a cross."""
    filled = page.locator(".paint > g > rect").evaluate_all("nodes => nodes.map(n => +getComputedStyle(n).fillOpacity)")
    assert [x > 0 for x in filled] == painted(page).flatten().tolist()
    assert max(filled) <= 0.5
    shown = page.locator(".paint text:visible").all_text_contents()
    assert ["×" not in text for text in shown] == painted(page).flatten().tolist()


def inside(page):
    """No text of a picture crosses the picture's edges."""
    cut = page.locator("svg text:visible").evaluate_all(
        """nodes => nodes.filter(n => {
          const text = n.getBoundingClientRect(), picture = n.ownerSVGElement.getBoundingClientRect();
          return text.left < picture.left - .5 || text.right > picture.right + .5;
        }).map(n => n.textContent)"""
    )
    assert cut == []


def rule(page):
    """The mask that the list names."""
    return page.locator("select").evaluate("node => node.selectedOptions[0].textContent")


def weights(page):
    return page.locator(".weights text").all_text_contents()


def agree(page):
    """The weights shown are torch's for the mask shown."""
    expected = masked_softmax(SCORES.double(), painted(page)).flatten()
    assert [float(w) for w in weights(page)] == pytest.approx(expected.tolist(), abs=0.000501)
    shades = page.locator(".weights rect").evaluate_all("nodes => nodes.map(n => +n.getAttribute('fill-opacity'))")
    assert shades == pytest.approx(expected.tolist(), abs=1e-6)


@everywhere
def test_a_mask_is_painted_with_the_mouse_after_a_prediction(show, width, scheme):
    seen = show(mask_painter(SCORES, causal_mask(5), tokens=TOKENS), width=width, scheme=scheme)
    page = seen.page
    assert weights(page) == ["?"] * 25
    cell_at(page, 2, 1).click()
    assert said(page, "Query “sat”, key “cat”, score 1.500: closed.").endswith("closed.")
    assert weights(page) == ["?"] * 25  # painting does not give them away
    page.locator('[data-k="show"]').click()
    assert not painted(page)[2, 1]
    said(page, "11 of 25 cells are closed. Query “sat” has the weights " + ", ".join(weights(page)[10:15]) + ".")
    is_drawn(page)
    agree(page)
    cell_at(page, 1, 4).click()
    assert painted(page)[1, 4]
    agree(page)
    said(page, "Query “cat”, key “it”, score 1.000: open. Query “cat” has the weights " + weights(page)[5])
    page.locator('[data-k="show"]').click()
    assert weights(page) == ["?"] * 25
    clean(seen)


def test_presets_paint_the_masks_of_the_library(show):
    seen = show(mask_painter(SCORES, tokens=TOKENS))
    page = seen.page
    page.locator('[data-k="show"]').click()
    agree(page)
    page.locator("select").select_option(label="window of 2")
    assert torch.equal(painted(page), sliding_window_mask(5, 2))
    agree(page)
    page.locator("select").select_option(label="causal and padding: last 2 keys")
    assert torch.equal(painted(page), causal_mask(5) & torch.tensor([True] * 3 + [False] * 2))
    agree(page)
    assert rule(page) == "causal and padding: last 2 keys"
    cell_at(page, 0, 4).click()
    assert rule(page) == "my own"
    mine = painted(page)
    page.locator("select").select_option(label="causal")
    assert torch.equal(painted(page), causal_mask(5))
    page.locator("select").select_option(label="my own")  # comes back
    assert torch.equal(painted(page), mine)
    is_drawn(page)
    agree(page)
    cell_at(page, 0, 4).click()
    assert rule(page) == "causal and padding: last 2 keys"  # it is that mask again
    clean(seen)


def test_my_own_mask_begins_with_the_one_shown_first(show):
    seen = show(mask_painter(SCORES, causal_mask(5), tokens=TOKENS))
    seen.page.locator("select").select_option(label="my own")
    assert torch.equal(painted(seen.page), causal_mask(5))
    assert rule(seen.page) == "my own"
    clean(seen)


@everywhere
@pytest.mark.parametrize("tokens", [None, TOKENS], ids=["positions", "words"])
def test_no_title_or_label_is_cut(show, width, scheme, tokens):
    for view in (mask_painter(SCORES, tokens=tokens), leak_detector(MODELS, tokens=tokens)):
        seen = show(view, width=width, scheme=scheme)
        inside(seen.page)
        for role in ("query", "key") if view.kind == "mask_painter" else ():
            title = seen.page.locator(f"svg text.{role}").get_by_text(role, exact=True)
            assert title.count() == 2
            colour = title.first.evaluate("n => getComputedStyle(n).fill")
            assert colour != seen.page.locator("svg text.score").first.evaluate("n => getComputedStyle(n).fill")
        clean(seen)


def test_a_closed_row_gets_zeros_and_is_told_of_nan(show):
    seen = show(mask_painter(SCORES, causal_mask(5), tokens=TOKENS))
    page = seen.page
    cell_at(page, 0, 0).click()
    assert page.locator('[data-k="empty"]').inner_text() == ""  # not before the weights are shown
    page.locator('[data-k="show"]').click()
    assert weights(page)[:5] == ["0.000"] * 5
    agree(page)
    told = page.locator('[data-k="empty"]').inner_text()
    assert "“the”" in told
    assert "NaN" in told
    assert torch.softmax(torch.full((5,), float("-inf")), 0).isnan().all()
    cell_at(page, 0, 3).click()
    assert page.locator('[data-k="empty"]').inner_text() == ""
    clean(seen)


@everywhere
def test_a_mask_is_painted_with_the_keyboard(show, width, scheme):
    seen = show(mask_painter(SCORES, tokens=TOKENS), width=width, scheme=scheme)
    page = seen.page
    for _ in range(3):  # the list, the button, the cells
        page.keyboard.press("Tab")
    for key in ("ArrowDown", "ArrowDown", "ArrowRight"):
        page.keyboard.press(key)
    focused = page.evaluate("getComputedStyle(document.activeElement.querySelector('rect')).strokeWidth")
    assert focused == "4px"
    page.keyboard.press(" ")
    assert (~painted(page)).nonzero().tolist() == [[2, 1]]
    said(page, "Query “sat”, key “cat”, score 1.500: closed.")
    page.locator('[data-k="show"]').focus()
    page.keyboard.press("Enter")
    agree(page)
    clean(seen)


def test_a_mask_is_painted_by_touch(show):
    seen = show(mask_painter(SCORES, tokens=TOKENS), width=390, touch=True)
    page = seen.page
    page.locator('[data-k="show"]').tap()
    for i, j in ((0, 1), (4, 4), (0, 1), (3, 2)):
        box = cell_at(page, i, j).bounding_box()
        assert min(box["width"], box["height"]) >= 24
        cell_at(page, i, j).tap()
    assert (~painted(page)).nonzero().tolist() == [[3, 2], [4, 4]]
    agree(page)
    clean(seen)


# leak_detector --------------------------------------------------------------------------------------------------------


def as_torch(page, model, token):
    """The outputs' words are torch's, and only this token's are seen."""
    matrix = MODELS[model]
    visible = page.locator('[data-k^="out"]:visible').all_text_contents()
    words = {
        (True, True): "moves",
        (True, False): "LEAK",
        (False, True): "still",
        (False, False): "still",
    }
    assert visible == [f"{words[bool(x > 0), i >= token]} {x:.3f}" for i, x in enumerate(matrix[:, token].tolist())]


def unseen(page):
    """No arrow and no word of an answer is seen."""
    assert page.locator('[data-k^="out"]:visible').count() == 0
    assert page.locator("[data-s]:not([data-stays]) path:visible").count() == 0


def columns(page):
    """Of each column of the map, what its cells show."""
    known = page.locator("[data-u]").evaluate_all("nodes => nodes.map(n => n.style.display == 'none')")
    shown = page.locator("[data-stays]:visible").evaluate_all("nodes => nodes.map(n => +n.dataset.s.split('.')[1])")
    assert [j for j, x in enumerate(known) if x] == shown
    return shown


def marked(page):
    return page.locator(".guess").evaluate_all("nodes => nodes.map(n => n.getAttribute('aria-pressed') == 'true')")


@everywhere
def test_a_leak_is_predicted_and_found_with_the_mouse(show, width, scheme):
    seen = show(leak_detector(MODELS, tokens=TOKENS), width=width, scheme=scheme)
    page = seen.page
    unseen(page)
    page.locator(".input").nth(3).click()
    said(page, "If “on” is changed, which outputs move? Marked: none.")
    for i in (2, 3, 4):
        page.locator(".guess").nth(i).click()
    said(page, "Marked: “sat”, “on”, “it”.")
    unseen(page)  # marking gives nothing away
    page.locator('[data-k="change"]').click()
    as_torch(page, "good", 3)
    assert said(page, "You were wrong about “sat”.").startswith("No leak when “on” is changed: ")
    assert page.locator(".judged").all_text_contents() == ["✓", "✓", "✗", "✓", "✓"]
    before = marked(page)
    page.locator(".guess").nth(2).click()  # a prediction stays as it was once the answer is shown
    assert marked(page) == before == [False, False, True, True, True]
    page.locator("select").select_option(label="off by one")
    unseen(page)  # another model is another question
    assert marked(page) == [False] * 5
    assert page.locator(".judged").all_text_contents() == [""] * 5
    for i in (2, 3, 4):
        page.locator(".guess").nth(i).click()
    page.locator('[data-k="change"]').click()
    as_torch(page, "off by one", 3)
    text = said(page, "Leak: “sat” must not move when “on” is changed, and yet does.")
    assert text.endswith("You were right about every output.")
    assert page.locator(".judged").all_text_contents() == ["✓"] * 5
    pressed = page.locator(".input").evaluate_all("nodes => nodes.map(n => n.getAttribute('aria-pressed'))")
    assert pressed == ["false", "false", "false", "true", "false"]
    assert page.locator("path[stroke-dasharray]:visible").count() == 1
    assert columns(page) == [3]
    clean(seen)


@everywhere
def test_a_leak_does_not_look_like_what_is_allowed(show, width, scheme):
    seen = show(leak_detector(MODELS, tokens=TOKENS), width=width, scheme=scheme)
    page = seen.page
    page.locator("select").select_option(label="off by one")
    page.locator('[data-k="change"]').click()
    assert said(page, "Leak").endswith("and yet does.")  # nothing was ticked, so nothing is said of it
    assert page.locator(".judged").all_text_contents() == [""] * 5
    leak, allowed = (
        page.locator(f"[data-s='1.2']:not([data-stays]) path{which}").first.evaluate("n => getComputedStyle(n).stroke")
        for which in (".leak", ":not(.leak)")
    )
    assert leak != allowed
    cells = page.locator("[data-s='1.2'][data-stays] rect").evaluate_all(
        "list => list.map(n => getComputedStyle(n).fill)"
    )
    assert cells[1] == leak
    assert leak not in {cells[0], *cells[2:]}
    assert page.locator("[data-s='1.2'] text.leak").evaluate("n => getComputedStyle(n).fill") == leak


def test_the_whole_map_is_shown_and_all_begins_again(show):
    seen = show(leak_detector(MODELS, tokens=TOKENS))
    page = seen.page
    page.locator("select").select_option(label="off by one")
    page.locator('[data-k="all"]').click()
    assert said(page, "forbidden") == "Of 10 forbidden pairs, “off by one” leaks in 4."
    assert columns(page) == [0, 1, 2, 3, 4]
    assert page.locator("[data-stays] text:visible").filter(has_text="✗").count() == 4
    page.locator(".guess").nth(0).click()
    assert marked(page) == [False] * 5  # it is too late for a prediction
    page.locator("select").select_option(label="good")
    assert columns(page) == []
    page.locator("select").select_option(label="off by one")
    page.locator(".input").nth(4).click()
    assert said(page, "“it” is changed").endswith("and yet does.")  # nothing was predicted
    page.locator('[data-k="reset"]').click()
    said(page, "If “sat” is changed, which outputs move? Marked: none.")
    unseen(page)
    assert columns(page) == []
    assert page.locator(".input[aria-pressed=true]").text_content() == "sat"
    clean(seen)


def test_a_leak_is_found_with_the_keyboard(show):
    seen = show(leak_detector(MODELS, tokens=TOKENS))
    page = seen.page
    page.keyboard.press("Tab")
    page.keyboard.press("ArrowDown")  # the list of models
    for _ in range(3):
        page.keyboard.press("Tab")
    page.keyboard.press("ArrowDown")
    unseen(page)
    assert page.locator(".input[aria-pressed=true]").text_content() == "sat"  # walking alone changes nothing
    page.keyboard.press("Enter")
    assert page.locator(".input[aria-pressed=true]").text_content() == "cat"
    page.keyboard.press("Tab")
    page.keyboard.press(" ")
    page.keyboard.press("ArrowDown")
    page.keyboard.press(" ")
    assert marked(page) == [True, True, False, False, False]
    page.locator('[data-k="change"]').focus()
    page.keyboard.press("Enter")
    as_torch(page, "off by one", 1)
    said(page, "Leak: “the” must not move")
    clean(seen)


def test_a_leak_is_found_by_touch(show):
    seen = show(leak_detector(MODELS, tokens=TOKENS), width=390, touch=True)
    page = seen.page
    for name in (".input", ".guess"):
        box = page.locator(name).nth(4).bounding_box()
        assert min(box["width"], box["height"]) >= 24
        page.locator(name).nth(4).tap()
    page.locator('[data-k="change"]').tap()
    as_torch(page, "good", 4)
    text = said(page, "No leak when “it” is changed: “it” may move, and does.")
    assert text.endswith("You were right about every output.")
    clean(seen)
