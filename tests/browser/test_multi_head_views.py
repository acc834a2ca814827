"""The views of the chapter `multi_head`, in a browser without a network: by mouse, keyboard and touch."""

import re

import pytest
import torch
from driving import clean, everywhere, said
from shown import number_in

from course_kit.nn import MultiHeadAttention
from course_kit.viz import head_grid, head_split
from course_lib.multi_head import split_heads
from course_lib.scaled_dot_product import scaled_dot_product_attention

pytestmark = [pytest.mark.browser, pytest.mark.site, pytest.mark.thorough]

TOKENS = ["the", "cat", "sat"]


def attended(num_heads=4, d_model=8):
    """A layer, the values of its heads, the heads, their weights, and the output of torch."""
    torch.manual_seed(5)
    layer = MultiHeadAttention(d_model, num_heads).requires_grad_(False)
    torch.nn.init.normal_(layer.out_proj.bias)
    x = 2 * torch.randn(1, 3, d_model)
    q, k, v = (split_heads(p(x), num_heads) for p in (layer.q_proj, layer.k_proj, layer.v_proj))
    heads, weights = scaled_dot_product_attention(q, k, v)
    return layer, layer.v_proj(x)[0], heads[0], weights[0], layer(x, x, x)[0][0]


def numbers_shown(page, kind):
    """The visible numbers of one column of the table of outputs."""
    return [number_in(x) for x in page.locator(f'[data-k^="{kind}"]:visible').all_text_contents()]


def numbers_in(text):
    return [number_in(n) for n in re.findall(r"−?\d+\.\d{3}", text)]


# head_split -----------------------------------------------------------------------------------------------------------


def split_view():
    layer, values, heads, _, _ = attended()
    return head_split(values, heads, layer.out_proj.weight, layer.out_proj.bias, tokens=TOKENS)


def lit(page):
    """The heads whose blocks are outlined, one for each picture."""
    return page.locator('rect[data-h][stroke-width="2"]').evaluate_all("nodes => nodes.map(n => +n.dataset.h)")


def additions(page):
    """The last table: what each head adds to the output, the bias, and the output."""
    return torch.tensor([number_in(x) for x in page.locator('[data-k^="n"]:visible').all_text_contents()]).view(8, 6)


def marked(page):
    """Which numbers are outlined as changed: of the concatenation (token, feature), of the last table (row, column)."""
    keys = page.locator("rect[data-z]:visible").evaluate_all("nodes => nodes.map(n => n.dataset.z)")
    return tuple({tuple(map(int, re.findall(r"\d+", key))) for key in keys if key.startswith("m") == m} for m in (1, 0))


def adds_up(page, head, token):
    """What is said, and the table, are torch's."""
    layer, _, heads, _, output = attended()
    parts = heads @ layer.out_proj.weight.T.unflatten(0, (4, -1))
    owned = f"Head {head + 1} owns features {2 * head} to {2 * head + 1}, and adds "
    said(page, owned)
    spoken = said(page, f" to output feature 0 of “{TOKENS[token]}”.")
    assert spoken.startswith(owned)
    assert numbers_in(spoken) == pytest.approx([parts[head, token, 0].item()], abs=0.000501)
    how = page.locator('[data-k="how"]').inner_text()
    assert f"feature 0 of “{TOKENS[token]}” head {head + 1} adds" in how
    assert number_in(re.findall(r"≈ (−?\d+\.\d+)", how)[0]) == pytest.approx(parts[head, token, 0].item(), abs=0.00501)
    rows = additions(page)
    torch.testing.assert_close(rows[:, :4], parts[:, token].T, atol=0.00501, rtol=0)
    torch.testing.assert_close(rows[:, 5], output[token], atol=0.00501, rtol=0)
    torch.testing.assert_close(rows[:, :5].sum(1), rows[:, 5], atol=0.03, rtol=0)


@everywhere
def test_a_head_is_followed_with_the_mouse(show, width, scheme):
    seen = show(split_view(), width=width, scheme=scheme)
    page = seen.page
    assert lit(page) == [0] * 4
    page.get_by_role("button", name="head 3").click()
    assert lit(page) == [2] * 4
    adds_up(page, 2, 0)
    page.locator('[data-k="token"]').select_option(label="sat")
    adds_up(page, 2, 2)
    page.locator('rect[data-h="3"]').nth(2).click(position={"x": 3, "y": 3})  # its rows of W_O
    assert lit(page) == [3] * 4
    adds_up(page, 3, 2)
    pressed = page.locator("button[data-h]").evaluate_all("nodes => nodes.map(n => n.ariaPressed)")
    assert pressed == ["false", "false", "false", "true"]
    clean(seen)


def test_a_head_is_followed_with_the_keyboard(show):
    seen = show(split_view())
    page = seen.page
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    assert lit(page) == [1] * 4
    for _ in range(4):  # two heads, zero, the token
        page.keyboard.press("Tab")
    page.keyboard.press("ArrowDown")
    adds_up(page, 1, 1)
    clean(seen)


@everywhere
def test_a_head_is_set_to_zero_and_the_cells_that_change_are_outlined(show, width, scheme):
    layer, _, heads, _, _ = attended()
    seen = show(split_view(), width=width, scheme=scheme)
    page = seen.page
    zero = page.locator("[data-k=zero]")
    assert marked(page) == (set(), set())

    def is_without(head, token):
        kept = heads.clone()
        kept[head] = 0.0
        rows = additions(page)
        assert rows[:, head].tolist() == [0.0] * 8
        torch.testing.assert_close(
            rows[:, 5], layer.out_proj(kept.transpose(0, 1).flatten(1))[token], atol=0.00501, rtol=0
        )
        merged = torch.tensor([number_in(x) for x in page.locator('[data-k^="m"]').all_text_contents()]).view(3, 8)
        torch.testing.assert_close(merged, kept.transpose(0, 1).flatten(1), atol=0.00501, rtol=0)
        own = {(t, 2 * head + j) for t in range(3) for j in range(2)}
        assert marked(page) == (own, {(f, c) for f in range(8) for c in (head, 5)})

    page.get_by_role("button", name="head 2").click()
    zero.click()
    assert said(page, "zero") == (
        "Head 2 at zero changes 2 of 8 cells of each token in 2, and 8 of 8 output features of “the”."
    )
    is_without(1, 0)
    page.get_by_role("button", name="head 4").click()
    said(page, "Head 4 at zero")
    is_without(3, 0)
    page.locator('[data-k="token"]').select_option(label="sat")
    said(page, "output features of “sat”")
    is_without(3, 2)
    zero.click()
    adds_up(page, 3, 2)
    assert marked(page) == (set(), set())
    page.locator('[data-k="token"]').select_option(label="the")
    adds_up(page, 3, 0)
    clean(seen)


def test_a_wide_head_at_zero_is_outlined_where_no_numbers_are(show):
    layer, values, heads, _, _ = attended(num_heads=2, d_model=12)
    page = show(head_split(values, heads, layer.out_proj.weight, layer.out_proj.bias)).page
    page.locator("[data-k=zero]").click()
    said(page, "Head 1 at zero changes 6 of 12 cells")
    assert marked(page)[0] == {(t, j) for t in range(3) for j in range(6)}
    assert page.locator('[data-k="n0.3.0"]').text_content() == "0.000"


def test_a_feature_that_was_zero_already_is_outlined_with_its_head(show):
    layer, values, heads, _, _ = attended()
    heads[0, 1, 0] = 0.0
    page = show(head_split(values, heads, layer.out_proj.weight, layer.out_proj.bias)).page
    page.locator("[data-k=zero]").click()
    said(page, "Head 1 at zero")
    assert marked(page)[0] == {(t, j) for t in range(3) for j in range(2)}


def test_on_a_phone_the_heads_stay_in_sight_beside_the_last_table(show):
    page = show(split_view(), width=390, height=700, touch=True).page
    page.locator('[data-k="n0.7.5"]').scroll_into_view_if_needed()
    page.get_by_role("button", name="head 2").tap()
    last, button, line = (
        page.locator(part).bounding_box() for part in ('[data-k="n0.7.5"]', "button[data-h='1']", ".say")
    )
    assert 0 <= button["y"] < last["y"] < line["y"] < 700


def test_a_head_is_followed_by_touch(show):
    seen = show(split_view(), width=390, touch=True)
    page = seen.page
    page.locator('rect[data-h="1"]').first.tap()
    assert lit(page) == [1] * 4
    box = page.get_by_role("button", name="head 4").bounding_box()
    assert min(box["width"], box["height"]) >= 24
    page.get_by_role("button", name="head 4").tap()
    adds_up(page, 3, 0)
    clean(seen)


# head_grid ------------------------------------------------------------------------------------------------------------


def head(page, number):
    return page.locator(".heads rect").nth(number)


def large(page):
    """The names of the cells of the large map, and their shades."""
    cells = page.locator('.panels > [data-k="map"] .map rect')
    return cells.evaluate_all(
        "nodes => nodes.map(n => [n.getAttribute('aria-label'), +n.getAttribute('fill-opacity')])"
    )


def is_map(page, matrix, digits=3, kept=None):
    """Every cell of the large map says the weight of torch and shows it; beside a kept map, the larger of the two."""
    shown = large(page)
    exact = matrix.flatten().tolist()
    spoken = [number_in(re.findall(r"−?\d\.\d+", label)[0]) for label, _ in shown]
    assert spoken == pytest.approx(exact, abs=0.501 * 10**-digits)
    shades = exact if kept is None else torch.maximum(matrix, kept).flatten().tolist()
    assert [shade for _, shade in shown] == pytest.approx(shades, abs=3e-4)


def grid_view():
    layer, _, heads, weights, _ = attended()
    parts = heads @ layer.out_proj.weight.T.unflatten(0, (4, -1))
    return head_grid(weights, TOKENS, contributions=parts, bias=layer.out_proj.bias), weights


@everywhere
def test_heads_are_chosen_averaged_and_compared_with_the_mouse(show, width, scheme):
    view, weights = grid_view()
    seen = show(view, width=width, scheme=scheme)
    page = seen.page
    is_map(page, weights[0])
    head(page, 2).click()
    is_map(page, weights[2])
    assert head(page, 2).get_attribute("aria-pressed") == "true"
    page.locator('.panels > [data-k="map"] .map rect').nth(4).hover()
    assert said(page, "cat to cat,") == f"cat to cat, head 3: {weights[2, 1, 1]:.3f}"

    page.locator('[data-k="mean"]').click()
    is_map(page, weights.mean(0))
    assert page.locator('.panels > [data-k="map"] [data-k="name"]').text_content() == "average of 4 heads"
    page.locator('[data-k="mean"]').click()
    is_map(page, weights[2])

    page.locator('[data-k="keep"]').click()
    head(page, 0).click()
    is_map(page, weights[0], kept=weights[2])
    kept = page.locator('[data-k="kept"] .map rect').evaluate_all(
        "nodes => nodes.map(n => +n.getAttribute('fill-opacity'))"
    )
    assert kept == pytest.approx(weights[2].flatten().tolist(), abs=1e-6)
    assert page.locator('[data-k="kept"] text').first.text_content() == "head 3"
    both = [[float(x) for x in re.findall(r": (\d\.\d{3})", label)] for label, _ in large(page)]
    assert torch.tensor(both) == pytest.approx(torch.stack([weights[0], weights[2]], -1).view(-1, 2), abs=0.000501)
    more = page.locator('.panels > [data-k="map"] .map rect').evaluate_all("nodes => nodes.map(n => n.dataset.more)")
    more = [number_in(text) for text in more]
    assert more == pytest.approx((weights[0] - weights[2]).flatten().tolist(), abs=0.0501)
    colours = page.locator('.panels > [data-k="map"] .map rect').evaluate_all(
        "nodes => nodes.map(n => getComputedStyle(n).fill)"
    )
    assert len({(colour, (m > 0) - (m < 0)) for colour, m in zip(colours, more, strict=True)}) == len(set(colours)) >= 2
    page.locator('[data-k="keep"]').click()
    assert page.locator('[data-k="kept"] svg').count() == 0
    is_map(page, weights[0])
    clean(seen)


def test_the_outlined_keys_lie_on_their_cells(show):
    """In the large map, and in the kept one beside it."""
    seen = show(head_grid(torch.full((2, 3, 3), 1 / 3), TOKENS, outlined=[[2], [0], [1]]), width=390)
    page = seen.page
    page.locator('[data-k="keep"]').click()
    head(page, 1).click()
    assert page.locator(".outlined").count() == 2
    for part in ("map", "kept"):
        cells = [node.bounding_box() for node in page.locator(f'.panels > [data-k="{part}"] .map rect').all()]
        corners = page.locator(f'.panels > [data-k="{part}"] .outlined').evaluate(
            """node => node.getAttribute("d").match(/M\\d+ \\d+/g).map(start => {
                const [x, y] = start.slice(1).split(" ").map(Number);
                const at = new DOMPoint(x + .5, y + .5).matrixTransform(node.getScreenCTM());
                return [at.x, at.y];
            })"""
        )
        middles = [(cells[n]["x"] + cells[n]["width"] / 2, cells[n]["y"] + cells[n]["height"] / 2) for n in (2, 3, 7)]
        for corner, middle in zip(corners, middles, strict=True):
            assert corner == pytest.approx(middle, abs=1.5)
    page.locator('.panels > [data-k="map"] .map rect').nth(2).hover()
    said(page, "the to sat, head 2: ")
    clean(seen)


def test_a_head_is_removed_and_the_output_moves_as_in_torch(show):
    layer, _, heads, _, output = attended()
    view, _ = grid_view()
    seen = show(view, width=390)
    page = seen.page

    def shown(kind):
        return numbers_shown(page, kind)

    assert shown("moved") == []
    assert shown("length") == pytest.approx(output.norm(dim=-1).tolist(), abs=0.000501)
    page.locator('[data-k="remove"]').click()
    for number in (3, 1):
        head(page, number).click()
        kept = heads.clone()
        kept[number] = 0.0
        without = layer.out_proj(kept.transpose(0, 1).flatten(1))
        assert shown("length") == pytest.approx(without.norm(dim=-1).tolist(), abs=0.000501)
        assert shown("moved") == pytest.approx((without - output).norm(dim=-1).tolist(), abs=0.000501)
        far = sorted(shown("moved"))
        assert said(page, f"Without head {number + 1}") == (
            f"Without head {number + 1} the 3 outputs move by {far[0]:.3f} to {far[2]:.3f}."
        )
    page.locator('[data-k="remove"]').click()
    said(page, "head 2: ")
    assert shown("moved") == []
    clean(seen)


def test_an_average_and_a_removed_head_exclude_each_other(show):
    view, weights = grid_view()
    seen = show(view)
    page = seen.page

    def pressed(key):
        return page.locator(f'[data-k="{key}"]').get_attribute("aria-pressed")

    def moved():
        return numbers_shown(page, "moved")

    head(page, 2).click()
    page.locator('[data-k="remove"]').click()
    assert min(moved()) > 0
    page.locator('[data-k="mean"]').click()
    assert (pressed("mean"), pressed("remove")) == ("true", "false")
    assert moved() == []
    is_map(page, weights.mean(0))
    said(page, "average of 4 heads: ")
    page.locator('[data-k="remove"]').click()
    assert (pressed("mean"), pressed("remove")) == ("false", "true")
    is_map(page, weights[2])
    said(page, "Without head 3 the 3 outputs move by")
    page.locator('[data-k="remove"]').click()
    assert (pressed("mean"), pressed("remove")) == ("false", "false")  # leaving one does not enter the other
    clean(seen)


@everywhere
def test_heads_and_cells_are_reached_with_the_keyboard(show, width, scheme):
    view, weights = grid_view()
    seen = show(view, width=width, scheme=scheme)
    page = seen.page
    for _ in range(4):  # three buttons, the heads
        page.keyboard.press("Tab")
    page.keyboard.press("ArrowRight")
    is_map(page, weights[0])
    page.keyboard.press("Enter")
    is_map(page, weights[1])
    page.keyboard.press("ArrowDown")
    page.keyboard.press(" ")
    is_map(page, weights[3])
    page.keyboard.press("Tab")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowRight")
    assert said(page, "cat to cat,") == f"cat to cat, head 4: {weights[3, 1, 1]:.3f}"
    assert page.evaluate("getComputedStyle(document.activeElement).strokeWidth") == "4px"
    clean(seen)


def test_heads_and_cells_are_tapped(show):
    view, weights = grid_view()
    seen = show(view, width=390, touch=True)
    page = seen.page
    for number in (3, 1):
        box = head(page, number).bounding_box()
        assert min(box["width"], box["height"]) >= 24
        head(page, number).tap()
        is_map(page, weights[number])
    page.locator('.panels > [data-k="map"] .map rect').nth(5).tap()
    assert said(page, "cat to sat, ") == f"cat to sat, head 2: {weights[1, 1, 2]:.3f}"
    page.locator('[data-k="mean"]').tap()
    is_map(page, weights.mean(0))
    clean(seen)


@pytest.mark.parametrize("width", [390, 1000])
def test_twelve_by_twelve_heads(show, width):
    torch.manual_seed(3)
    weights = (2 * torch.randn(12, 12, 16, 16)).softmax(-1)
    seen = show(head_grid(weights, [f"t{i}" for i in range(16)]), width=width, touch=True)
    page = seen.page
    for number in (0, 77, 143):
        head(page, number).tap()
        is_map(page, weights.flatten(0, 1)[number])
    box = head(page, 143).bounding_box()
    assert min(box["width"], box["height"]) >= 24
    page.locator('[data-k="mean"]').tap()
    is_map(page, weights.flatten(0, 1).mean(0), digits=2)
    said(page, "about the average of 144")
    # the small maps: a stroke for each weight, at its place, as long as it says
    strokes = re.findall(r"M(\d+) (\d+)h([\d.e-]+)", page.locator('[data-k="small"]').get_attribute("d"))
    drawn = torch.zeros(192, 192)
    for x, y, length in strokes:
        drawn[int(y), int(x)] = float(length)
    expected = weights.permute(0, 2, 1, 3).reshape(192, 192)  # layer and query down, head and key across
    assert len(strokes) == expected.numel()
    torch.testing.assert_close(drawn, expected, atol=3e-4, rtol=0)
    clean(seen)


def test_a_map_for_queries_and_keys_of_different_number(show):
    weights = torch.rand(3, 2, 4)  # rows need not sum to one
    seen = show(head_grid(weights, ["a", "b"], keys=list("wxyz")))
    head(seen.page, 2).click()
    is_map(seen.page, weights[2])
    assert large(seen.page)[7][0].startswith("b to z, head 3: ")
    clean(seen)


def test_what_a_head_has_less_is_as_visible_as_it_was(show):
    """A weight of 0.9 that fell to nothing is a green disc of that strength."""
    weights = torch.tensor([[[0.9, 0.1], [0.5, 0.5]], [[0.0, 1.0], [0.5, 0.5]]])
    page = show(head_grid(weights, ["a", "b"])).page
    page.locator("[data-k=keep]").click()
    head(page, 1).click()
    said(page, "head 2: a to b 1.000, b to a 0.500, b to b 0.500.")
    cells = page.locator('.panels > [data-k="map"] .map rect')
    lost = cells.nth(0)
    assert lost.get_attribute("data-more").startswith("−")
    assert float(lost.get_attribute("fill-opacity")) == pytest.approx(0.9, abs=1e-6)
    assert float(cells.nth(1).get_attribute("fill-opacity")) == 1


def test_an_average_of_one_head_has_one_head(show):
    page = show(head_grid(torch.full((1, 2, 2), 0.5), ["a", "b"])).page
    page.locator("[data-k=mean]").click()
    assert said(page, "average of 1").startswith("Largest weights, average of 1 head: ")
