"""The views of attention heads, in a browser without a network: by mouse, keyboard and touch."""

import io
import re

import pytest
import torch
from driving import clean, drag_by_touch, everywhere, said
from PIL import Image

from course_kit.viz import head_view, model_view

pytestmark = [pytest.mark.browser, pytest.mark.site, pytest.mark.thorough]

TOKENS = ["[CLS]", "the", "cat", "sat", "[SEP]", "it", "ran", "[SEP]"]

WORDS = [1, 2, 3, 5, 6]


def given(num_layers=3, num_heads=4, *, len_q=8, len_k=8):
    torch.manual_seed(11)
    weights = (2 * torch.randn(num_layers, num_heads, len_q, len_k)).softmax(-1)
    if len_q == len_k:
        weights[1, 2] = (9 * torch.eye(len_q).roll(-1, 1)).softmax(-1)
    return weights


def column(page, side):
    return page.locator(f'[data-k="{side}"] g')


def numbers_of(page, side):
    return [text.lstrip() for text in column(page, side).locator("text:last-child").all_text_contents()]


def three(row):
    return [f"{x:.3f}" for x in row.tolist()]


def drawn(page):
    """The lines: query, key, strength and colour."""
    paths = page.locator('[data-k="lines"] path').evaluate_all(
        "nodes => nodes.map(n => [n.getAttribute('d'), +n.getAttribute('stroke-opacity'), getComputedStyle(n).stroke])"
    )
    return {
        ((int(a) - 58) // 24, (int(b) - 58) // 24, colour): strength
        for d, strength, colour in paths
        for a, b in re.findall(r"M118 (\d+)L222 (\d+)", d)
    }


def are_lines_of(page, *maps, keep=lambda i, j: True):
    """Every weight of 0.025 or more has a line as strong as it, in one colour per head."""
    lines = drawn(page)
    assert len({colour for *_, colour in lines}) == len(maps)
    by_head = [
        {(i, j): s for (i, j, c), s in lines.items() if c == colour} for colour in dict.fromkeys(c for *_, c in lines)
    ]
    for found, weights in zip(by_head, maps, strict=True):
        expected = {
            (i, j): w.item() for i, row in enumerate(weights) for j, w in enumerate(row) if w >= 0.0255 and keep(i, j)
        }
        assert {k: v for k, v in found.items() if v > 0.05 or k in expected} == pytest.approx(expected, abs=0.0256)
        assert all(keep(i, j) for i, j in found)


@everywhere
def test_a_small_map_opens_its_head_with_the_mouse(show, width, scheme):
    weights = given()
    seen = show(model_view(weights, TOKENS), width=width, scheme=scheme)
    page = seen.page
    are_lines_of(page, weights[1, 2])
    page.get_by_role("button", name="layer 3, head 2", exact=False).click()
    are_lines_of(page, weights[2, 1])
    assert page.locator('[data-k="name"]').text_content() == "layer 3, head 2"
    assert page.locator('[data-k="layer"]').input_value() == "2"
    assert page.locator('.maps [aria-pressed="true"]').get_attribute("aria-label").startswith("layer 3, head 2,")
    assert re.search(
        r"^Layer 3, head 2 follows the pattern “[a-z ]+” most \(0\.\d{3}\)\.$", said(page, "Layer 3, head 2")
    )
    assert page.locator('[data-k="score1"]').text_content() == f"{weights[2, 1].diagonal(1)[WORDS].mean():.3f}"
    column(page, "q").nth(5).click()
    assert numbers_of(page, "k") == three(weights[2, 1, 5])
    assert numbers_of(page, "q") == [""] * 8
    best = weights[2, 1, 5].argmax()
    said(page, f"Head 2: “it” looks most at “{TOKENS[best]}” {weights[2, 1, 5, best]:.3f}")
    column(page, "k").nth(3).click()
    assert numbers_of(page, "q") == three(weights[2, 1, :, 3])
    clean(seen)


@everywhere
def test_heads_are_sorted_and_filtered_by_what_they_do(show, width, scheme):
    weights = given()
    seen = show(model_view(weights, TOKENS), width=width, scheme=scheme)
    page = seen.page
    scores = weights.diagonal(1, 2, 3)[..., WORDS].mean(-1).flatten()  # next token
    page.locator('[data-k="by"]').select_option(label="by next token")
    labels = page.locator(".maps button").evaluate_all("nodes => nodes.map(n => n.dataset.t)")
    order = scores.argsort(descending=True).tolist()
    assert labels == [f"{n // 4 + 1}·{n % 4 + 1}\n{scores[n]:.3f}".replace("\n0", "\n") for n in order]
    first = order[0]
    said(page, f"12 of 12 heads; most: layer {first // 4 + 1}, head {first % 4 + 1} with {scores[first]:.3f}.")
    page.locator('[data-k="least"]').fill("0.15")
    left = page.locator(".maps button:visible")
    assert left.count() == (scores >= 0.15).sum() > 0
    page.locator('[data-k="by"]').select_option("")
    assert page.locator(".maps button:visible").count() == 12
    names = page.locator(".maps button").evaluate_all("nodes => nodes.map(n => n.dataset.t.split('\\n')[0])")
    assert names == [f"{n}·{h}" for n in (1, 2, 3) for h in (1, 2, 3, 4)]
    clean(seen)


def test_small_maps_and_tokens_are_reached_with_the_keyboard(show):
    weights = given()
    seen = show(model_view(weights, TOKENS))
    page = seen.page
    page.locator('[data-k="by"]').focus()
    page.keyboard.press("Tab")  # the slider is off while nothing is sorted
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowRight")
    assert "layer 2, head 2" in page.evaluate("document.activeElement.getAttribute('aria-label')")
    page.keyboard.press("Enter")
    are_lines_of(page, weights[1, 1])
    for _ in range(1 + 1 + 4 + 1 + 1 + 1):  # layer, sentences, heads, several, all, queries
        page.keyboard.press("Tab")
    page.keyboard.press("ArrowDown")
    assert numbers_of(page, "k") == three(weights[1, 1, 1])
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    assert page.locator(".token.chosen").get_attribute("aria-label") == "key [CLS], sentence A"
    page.keyboard.press("Tab")
    assert page.locator(".token.chosen").get_attribute("aria-label") == "query the, sentence A"  # it was kept
    assert numbers_of(page, "k") == three(weights[1, 1, 1])
    clean(seen)


def test_heads_and_tokens_are_tapped_and_the_page_still_scrolls(show):
    weights = given(12, 12)
    seen = show(model_view(weights, TOKENS), width=390, touch=True)
    page = seen.page
    for number in (0, 77, 143):
        box = page.locator(".maps button").nth(number).bounding_box()
        assert min(box["width"], box["height"]) >= 24
        page.locator(".maps button").nth(number).tap()
        are_lines_of(page, weights.flatten(0, 1)[number])
    for side in "qk":
        box = column(page, side).nth(2).bounding_box()
        assert min(box["width"], box["height"]) >= 23.5
    column(page, "q").nth(2).tap()
    assert numbers_of(page, "k") == three(weights[11, 11, 2])
    column(page, "q").nth(2).tap()
    assert numbers_of(page, "k") == [""] * 8
    page.evaluate("scrollTo(0, 0)")
    box = page.locator(".maps").bounding_box()
    drag_by_touch(page, (box["x"] + 60, box["y"] + 200), (0, -150))
    assert page.evaluate("scrollY") > 60
    clean(seen)


@everywhere
def test_several_heads_tokens_and_sentences_are_filtered(show, width, scheme):
    weights = given()
    seen = show(head_view(weights, TOKENS, layer=0, heads=[0]), width=width, scheme=scheme)
    page = seen.page
    are_lines_of(page, weights[0, 0])
    page.get_by_role("button", name="several").click()
    page.get_by_role("button", name="head 3").click()
    are_lines_of(page, weights[0, 2], weights[0, 0])
    said(page, "Layer 1 shows heads 1, 3, and the bars of head 3.")
    assert page.locator('[data-k="name"]').text_content() == "layer 1, head 3"
    colours = page.locator('[data-k="lines"] path').evaluate_all("nodes => nodes.map(n => getComputedStyle(n).stroke)")
    chips = page.locator('.chips [data-h][aria-pressed="true"]').evaluate_all(
        "nodes => nodes.map(n => getComputedStyle(n).borderLeftColor)"
    )
    assert set(colours) == set(chips)
    page.locator('[data-k="part"]').select_option(label="A → B")
    are_lines_of(page, weights[0, 2], weights[0, 0], keep=lambda i, j: i < 5 <= j)
    column(page, "q").nth(2).click()
    are_lines_of(page, weights[0, 2], weights[0, 0], keep=lambda i, j: i == 2 and j >= 5)
    mean = weights[0, [0, 2], 2].mean(0)
    shades = column(page, "k").locator("rect").evaluate_all("nodes => nodes.map(n => +n.getAttribute('fill-opacity'))")
    assert shades == pytest.approx([0.0] * 5 + mean[5:].tolist(), abs=0.00051)
    page.locator('[data-k="part"]').select_option("")
    page.get_by_role("button", name="head 1").click()
    are_lines_of(page, weights[0, 2], keep=lambda i, j: i == 2)
    page.locator('[data-k="layer"]').select_option(label="2")
    are_lines_of(page, weights[1, 2], keep=lambda i, j: i == 2)
    page.get_by_role("button", name="all", exact=True).click()
    assert len(page.locator('.chips [data-h][aria-pressed="true"]').all()) == 4
    page.get_by_role("button", name="head 3").click()
    assert page.get_by_role("button", name="all", exact=True).get_attribute("aria-pressed") == "false"
    clean(seen)


def test_a_click_on_a_head_replaces_and_with_shift_adds(show):
    weights = given()
    seen = show(head_view(weights, TOKENS, layer=0, heads=[0]))
    page = seen.page
    page.get_by_role("button", name="head 3").click()
    are_lines_of(page, weights[0, 2])
    page.get_by_role("button", name="head 2").click(modifiers=["Shift"])
    are_lines_of(page, weights[0, 1], weights[0, 2])
    page.get_by_role("button", name="several").click()
    page.get_by_role("button", name="head 1").click()
    assert page.locator('.chips [data-h][aria-pressed="true"]').count() == 3
    page.get_by_role("button", name="several").click()
    are_lines_of(page, weights[0, 0])
    clean(seen)


def test_of_many_heads_only_strong_lines_are_drawn_until_a_token_is_chosen(show):
    weights = given()
    page = show(head_view(weights, TOKENS, layer=1, heads=[2])).page
    page.get_by_role("button", name="all", exact=True).click()
    said(page, "Layer 2 shows heads 1, 2, 3, 4, and the bars of head 3; lines start at 0.5 until a token is chosen.")
    assert {(i, j) for i, j, _ in drawn(page)} == {(i, j) for _, i, j in (weights[1] >= 0.4995).nonzero().tolist()}
    column(page, "q").nth(2).click()
    assert len(drawn(page)) == (weights[1, :, 2] >= 0.0255).sum()


def test_the_strongest_links_wait_until_a_token_is_chosen(show):
    page = show(head_view(given(), TOKENS)).page
    links = page.locator('[data-k="links"]')
    page.get_by_role("button", name="head 3").click()
    assert not links.is_visible()
    column(page, "q").nth(2).hover()
    assert links.is_visible()
    page.locator("[data-k=reset]").click()
    assert not links.is_visible()
    assert show(model_view(given(), TOKENS)).page.locator('[data-k="links"]').is_visible()


def test_where_no_head_has_the_score_the_view_says_so(show):
    weights = given()
    page = show(model_view(weights, TOKENS)).page
    page.locator('[data-k="by"]').select_option(label="by previous token")
    page.locator('[data-k="least"]').fill("1")
    scores = weights.diagonal(-1, 2, 3)[..., [0, 1, 2, 4, 5]].mean(-1).flatten()
    layer, head = divmod(int(scores.argmax()), 4)
    said(
        page,
        "No head reaches 1 for “previous token”; the most has "
        f"layer {layer + 1}, head {head + 1} with {scores.max():.3f}.",
    )
    assert "no head" in page.locator(".maps").evaluate("n => getComputedStyle(n, '::before').content")


def test_the_last_head_cannot_be_switched_off(show):
    seen = show(head_view(given(), TOKENS, heads=[1]))
    seen.page.get_by_role("button", name="head 2").click()
    are_lines_of(seen.page, given()[0, 1])
    clean(seen)


def test_keys_that_are_not_the_queries(show):
    weights = given(2, 3, len_q=3, len_k=5)
    seen = show(model_view(weights, list("abc"), keys=list("vwxyz")), width=390)
    page = seen.page
    page.locator(".maps button").nth(4).click()
    are_lines_of(page, weights[1, 1])
    column(page, "q").nth(2).click()
    assert numbers_of(page, "k") == three(weights[1, 1, 2])
    column(page, "k").nth(4).click()
    assert numbers_of(page, "q") == three(weights[1, 1, :, 4])
    clean(seen)


def test_small_maps_show_their_weights(show):
    """A head that looks before it has its dark pixels on the diagonal below the main one."""
    seen = show(model_view(given(), TOKENS), width=1000)
    page = seen.page
    box = page.locator(".maps button").nth(6).locator("i").bounding_box()
    size = box["width"] / 8
    picture = Image.open(io.BytesIO(page.screenshot())).convert("L")

    def at(i, j):
        return picture.getpixel((int(box["x"] + (j + 0.5) * size), int(box["y"] + (i + 0.5) * size)))

    assert all(at(i, i - 1) < 100 for i in range(1, 8))
    assert all(at(i, i) > 200 for i in range(1, 8))
