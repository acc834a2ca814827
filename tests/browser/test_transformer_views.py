"""The views of the chapter on the transformer, driven as readers drive them: mouse, keyboard, touch."""

import pytest
import torch
from driving import clean, said

from course_lib import transformer_parameter_count
from course_lib.viz import block_stepper, norm_switch, parameter_calculator, three_attentions

pytestmark = [pytest.mark.browser, pytest.mark.slow]

LAYOUTS = [(1000, "light", False), (390, "dark", True)]
layouts = pytest.mark.parametrize(("width", "scheme", "touch"), LAYOUTS)


def press(locator, touch):
    locator.tap() if touch else locator.click()


@layouts
def test_a_token_is_stepped_through_the_blocks(show, width, scheme, touch):
    states = {"embedding": torch.randn(4, 8), "linear1": torch.randn(4, 24), "norm1": torch.randn(4, 8)}
    view = block_stepper(states, code={"linear1": "hidden = self.linear1(x)"}, tokens=["a", "b", "c", "<d>"])
    seen = show(view, width=width, scheme=scheme, touch=touch)
    page = seen.page
    page.locator("[data-k=step]").focus()
    page.keyboard.press("ArrowRight")
    said(page, f"Step 2, linear1: token a has length {states['linear1'][0].norm():.3f}; all tokens together (4, 24).")
    page.locator("[data-k=token]").select_option("3")
    said(page, f"token <d> has length {states['linear1'][3].norm():.3f}")
    assert page.locator("[data-k=code]").text_content() == "hidden = self.linear1(x)"
    assert "high" in page.locator("[data-k=box1]").get_attribute("class")
    assert "high" not in page.locator("[data-k=box0]").get_attribute("class")
    top = max(state.abs().max().item() for state in states.values())
    heights = [float(bar.get_attribute("height")) for bar in page.locator("[data-k^=bar]").all()]
    assert heights == pytest.approx([60 * abs(x) / top for x in states["linear1"][3].tolist()], abs=1e-3)
    clean(seen)


def attentions():
    return [torch.randn(2, *shape).softmax(-1) for shape in ((4, 4), (3, 3), (3, 4))]


@layouts
def test_three_attentions_are_linked_by_their_words(show, width, scheme, touch):
    encoder, decoder, cross = attentions()
    view = three_attentions(encoder, decoder, cross, ["a", "b", "c", "d"], ["x", "y", "z"])
    seen = show(view, width=width, scheme=scheme, touch=touch)
    page = seen.page
    press(page.locator("[data-k='cross2,1']"), touch)
    said(page, f"cross: “z” looks at “b” with {cross.mean(0)[2, 1]:.3f}.")
    rows = {
        name: float(page.locator(f"[data-k={name}-row]").get_attribute("y")) for name in ("encoder", "decoder", "cross")
    }
    sizes = {name: float(page.locator(f"[data-k={name}-row]").get_attribute("height")) for name in rows}
    assert {name: (rows[name] - 62) / sizes[name] for name in rows} == {"encoder": 1, "decoder": 2, "cross": 2}
    page.locator("[data-k=head]").select_option(label="head 2")
    page.keyboard.press("Tab")
    page.locator("[data-k='cross2,1']").focus()
    said(page, f"with {cross[1, 2, 1]:.3f}.")
    page.keyboard.press("ArrowRight")
    said(page, f"“z” looks at “c” with {cross[1, 2, 2]:.3f}.")
    page.keyboard.press("ArrowUp")
    said(page, f"“y” looks at “c” with {cross[1, 1, 2]:.3f}.")
    shade = page.locator("[data-k='encoder3,0'] rect").get_attribute("fill-opacity")
    assert float(shade) == pytest.approx(encoder[1, 3, 0].item(), abs=1e-6)
    clean(seen)


@layouts
def test_both_wirings_or_one(show, width, scheme, touch):
    post, pre = torch.tensor([0.011, 0.102, 1.0]), torch.tensor([0.5, 0.603, 1.0])
    seen = show(norm_switch(post, pre, what="gradient"), width=width, scheme=scheme, touch=touch)
    page = seen.page
    page.locator("[data-k=layer]").focus()
    page.keyboard.press("ArrowRight")
    said(page, "Layer 2, gradient: post-norm 0.102, pre-norm 0.603.")
    page.locator("[data-k=shown]").select_option("pre")
    assert said(page, "Layer 2, gradient: pre-norm").endswith("pre-norm 0.603.")
    assert not page.locator("[data-k=post-panel]").is_visible()
    assert page.locator("[data-k=pre-panel]").is_visible()
    page.locator("[data-k=shown]").select_option("both")
    assert page.locator("[data-k=post-panel]").is_visible()
    clean(seen)


@layouts
def test_parameters_are_counted_anew(show, width, scheme, touch):
    seen = show(parameter_calculator(), width=width, scheme=scheme, touch=touch)
    page = seen.page
    for name, value in (("vocab_size", 8000), ("d_model", 96), ("num_layers", 3), ("d_ff", 200)):
        page.locator(f"[data-k={name}]").fill(str(value))
    wanted = transformer_parameter_count(8000, 96, 3, 200)
    said(page, f"{wanted:,} parameters.")
    assert page.locator("[data-k=total]").text_content() == f"{wanted:,}"
    press(page.locator("[data-k=tied]"), touch)
    said(page, f"{wanted + 2 * 8000 * 96:,} parameters.")
    page.locator("[data-k=d_model]").fill("")
    said(page, "Each size must be a whole number of at least 1.")
    assert page.locator("[data-k=total]").text_content() == f"{wanted + 2 * 8000 * 96:,}"
    clean(seen)
