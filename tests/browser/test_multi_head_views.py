"""The view of the chapter `multi_head`, in a browser without a network: by mouse, keyboard and touch."""

import re

import pytest
import torch
from driving import everywhere, large_enough, part, press, said
from shown import number_in

from course_kit.nn import MultiHeadAttention
from course_kit.viz import head_split
from course_kit.viz.view_numbers import fixed
from course_lib.multi_head import split_heads
from course_lib.scaled_dot_product import scaled_dot_product_attention

pytestmark = [pytest.mark.browser, pytest.mark.site, pytest.mark.thorough]

TOKENS = ["the", "cat", "sat"]


def attended(num_heads=4, d_model=8):
    """A layer, the values of its heads, the heads, and the output of torch."""
    torch.manual_seed(5)
    layer = MultiHeadAttention(d_model, num_heads).requires_grad_(False)
    torch.nn.init.normal_(layer.out_proj.bias)
    x = 2 * torch.randn(1, 3, d_model)
    q, k, v = (split_heads(p(x), num_heads) for p in (layer.q_proj, layer.k_proj, layer.v_proj))
    heads, _ = scaled_dot_product_attention(q, k, v)
    return layer, layer.v_proj(x)[0], heads[0], layer(x, x, x)[0][0]


def view_of(layer, values, heads, *_):
    return head_split(values, heads, layer.out_proj.weight, layer.out_proj.bias, tokens=TOKENS)


def lit(page):
    """The heads whose blocks are outlined, one for each picture."""
    return page.locator('rect[data-h][stroke-width="2"]').evaluate_all("nodes => nodes.map(n => +n.dataset.h)")


def numbers(page, which):
    return torch.tensor([number_in(text) for text in page.locator(which).all_text_contents()])


def additions(page):
    """The last table: what each head adds to the output, the bias, and the output."""
    return numbers(page, '[data-k^="n"]:visible').view(8, 6)


def marked(page):
    """Which numbers are outlined as changed: of the concatenation (token, feature), of the last table (row, column)."""
    keys = page.locator("rect[data-z]:visible").evaluate_all("nodes => nodes.map(n => n.dataset.z)")
    return tuple({tuple(map(int, re.findall(r"\d+", key))) for key in keys if key.startswith("m") == m} for m in (1, 0))


def adds_up(page, head, token):
    """What is said, and the table, are torch's."""
    layer, _, heads, output = attended()
    parts = heads @ layer.out_proj.weight.T.unflatten(0, (4, -1))
    number = parts[head, token, 0].item()
    owned = f"Head {head + 1} owns features {2 * head} to {2 * head + 1}"
    said(page, f"{owned}, and adds {fixed(number)} to output feature 0 of “{TOKENS[token]}”.")
    how = part(page, "how").inner_text()
    assert f"feature 0 of “{TOKENS[token]}” head {head + 1} adds" in how
    assert f"≈ {fixed(number, 2)}." in how
    assert lit(page) == [head] * 4
    rows = additions(page)
    torch.testing.assert_close(rows[:, :4], parts[:, token].T, atol=0.00501, rtol=0)
    torch.testing.assert_close(rows[:, 5], output[token], atol=0.00501, rtol=0)
    torch.testing.assert_close(rows[:, :5].sum(1), rows[:, 5], atol=0.03, rtol=0)
    assert marked(page) == (set(), set())


@everywhere
def test_a_head_is_followed_and_set_to_zero_with_the_mouse(page_of, width, scheme):
    layer, _, heads, _ = attended()
    page = page_of(view_of(*attended()), width=width, scheme=scheme)
    zero, token = part(page, "zero"), part(page, "token")

    def is_without(head, token):
        said(page, f"Head {head + 1} at zero changes 2 of 8 cells of each token in 2, and 8 of 8 output features of "
             f"“{TOKENS[token]}”.")  # fmt: skip
        kept = heads.clone()
        kept[head] = 0.0
        merged, rows = kept.transpose(0, 1).flatten(1), additions(page)
        assert rows[:, head].tolist() == [0.0] * 8
        torch.testing.assert_close(rows[:, 5], layer.out_proj(merged)[token], atol=0.00501, rtol=0)
        torch.testing.assert_close(numbers(page, '[data-k^="m"]').view(3, 8), merged, atol=0.00501, rtol=0)
        own = {(t, 2 * head + j) for t in range(3) for j in range(2)}
        assert marked(page) == (own, {(f, c) for f in range(8) for c in (head, 5)})

    assert lit(page) == [0] * 4
    assert large_enough(page.get_by_role("button", name="head 4"))
    page.get_by_role("button", name="head 3").click()
    adds_up(page, 2, 0)
    token.select_option(label="sat")
    adds_up(page, 2, 2)
    page.locator('rect[data-h="3"]').nth(2).click(position={"x": 3, "y": 3})  # its rows of W_O
    adds_up(page, 3, 2)
    pressed = page.locator("button[data-h]").evaluate_all("nodes => nodes.map(n => n.ariaPressed)")
    assert pressed == ["false", "false", "false", "true"]
    zero.click()
    is_without(3, 2)
    page.get_by_role("button", name="head 2").click()
    is_without(1, 2)
    token.select_option(label="the")
    is_without(1, 0)
    zero.click()
    adds_up(page, 1, 0)


def test_a_head_is_followed_with_the_keyboard(page_of):
    page = page_of(view_of(*attended()))
    press(page, "Tab", "Tab", "Enter", "Tab", "Tab", "Tab", "Tab", "ArrowDown")  # two more heads, zero, the token
    adds_up(page, 1, 1)


@pytest.mark.parametrize(("num_heads", "d_model"), [(2, 12), (4, 8)], ids=["no numbers in a wide table", "a zero"])
def test_a_head_at_zero_is_outlined_where_no_number_changes(page_of, num_heads, d_model):
    layer, values, heads, _ = attended(num_heads, d_model)
    heads[0, 1, 0] = 0.0
    page = page_of(view_of(layer, values, heads))
    part(page, "zero").click()
    said(page, f"Head 1 at zero changes {d_model // num_heads} of {d_model} cells")
    assert marked(page)[0] == {(t, j) for t in range(3) for j in range(d_model // num_heads)}
    assert number_in(part(page, "n0.3.0").text_content()) == 0


def test_on_a_phone_the_heads_stay_in_sight_beside_the_last_table(page_of):
    page = page_of(view_of(*attended()), width=390, height=700, touch=True)
    part(page, "n0.7.5").scroll_into_view_if_needed()
    page.get_by_role("button", name="head 2").tap()
    parts = ("button[data-h='1']", '[data-k="n0.7.5"]', ".say")
    button, last, line = (page.locator(part).bounding_box()["y"] for part in parts)
    assert 0 <= button < last < line < 700
