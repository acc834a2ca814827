"""The views of the chapter on the transformer, driven as readers drive them: mouse, keyboard, touch."""

import math

import pytest
import torch
from driving import clean, said
from shown import as_shown

from course_kit.viz import block_stepper, norm_switch, parameter_calculator, three_attentions
from course_lib import transformer_parameter_count

pytestmark = [pytest.mark.browser, pytest.mark.site, pytest.mark.thorough]

LAYOUTS = [(1000, "light", False), (390, "dark", True)]
layouts = pytest.mark.parametrize(("width", "scheme", "touch"), LAYOUTS)


def press(locator, touch):
    locator.tap() if touch else locator.click()


STATES = {"embedding": torch.randn(4, 8), "linear1": torch.randn(4, 24), "norm1": torch.randn(4, 3)}


def stepper():
    return block_stepper(STATES, code={"linear1": "hidden = self.linear1(x)"}, tokens=["a", "b", "c", "<d>"])


def step_shown(page, name, number, token=0):
    """Box, shape, numbers and bars are those of this step and token."""
    boxes = page.locator("[data-k^=box]").evaluate_all("list => list.map(n => n.ariaPressed)")
    assert boxes == [str(i == number).lower() for i in range(3)]
    state = STATES[name]
    row = state[token].tolist()
    assert page.locator("[data-k=shape]").text_content() == f"shape of all tokens {tuple(state.shape)}"
    few = ", ".join(as_shown(x, 2) for x in row[:4]).replace("−0.00", "0.00")
    assert page.locator("[data-k=numbers]").text_content() == f"[{few}{', …' if len(row) > 4 else ''}]"
    top = max(state.abs().max().item() for state in STATES.values())
    heights = [float(bar.get_attribute("height")) for bar in page.locator("[data-k^=bar]").all()]
    assert heights == pytest.approx([60 * abs(x) / top for x in row] + [0] * (24 - len(row)), abs=1e-3)


def small_bars(page):
    """For each step whether the lengths of all tokens are seen, and which token is marked in them."""
    return [
        (chart.evaluate("n => getComputedStyle(n).visibility"), chart.locator("rect").evaluate_all(
            "list => list.findIndex(n => n.getAttribute('fill-opacity') == 1)"
        ))
        for chart in page.locator("[data-k^=box] svg").all()
    ]  # fmt: skip


def test_equal_lengths_are_said_as_one(show):
    even = {"x": STATES["embedding"], "norm": torch.nn.functional.layer_norm(STATES["embedding"], (8,))}
    page = show(block_stepper(even)).page
    page.locator("[data-k=box1]").click()
    assert said(page, "Step 2") == "Step 2, norm: all tokens have length 2.828."
    heights = page.locator("[data-k=box1] rect").evaluate_all("list => list.map(n => n.getBoundingClientRect().height)")
    assert heights == pytest.approx([heights[0]] * 4, abs=0.02)  # a browser rounds boxes to 1/64 of a pixel


@layouts
def test_a_step_is_pressed(show, width, scheme, touch):
    seen = show(stepper(), width=width, scheme=scheme, touch=touch)
    page = seen.page
    step_shown(page, "embedding", 0)
    box = page.locator("[data-k=box1]").bounding_box()
    assert min(box["width"], box["height"]) >= 24
    press(page.locator("[data-k=box1]"), touch)
    lengths = STATES["linear1"].norm(dim=-1)
    span = f"Step 2, linear1: lengths go from {lengths.min():.3f} to {lengths.max():.3f}, and"
    assert said(page, "Step 2") == f"{span} “a” has {lengths[0]:.3f}."
    step_shown(page, "linear1", 1)
    assert small_bars(page) == [("visible", 0), ("visible", 0), ("hidden", 0)]
    page.locator("[data-k=token]").select_option("3")
    assert said(page, "“<d>”") == f"{span} “<d>” has {lengths[3]:.3f}."
    assert small_bars(page) == [("visible", 3), ("visible", 3), ("hidden", 3)]
    assert page.locator("[data-k=code]").text_content() == "hidden = self.linear1(x)"
    page.locator("[data-k=box1]").focus()
    page.keyboard.press("ArrowDown")
    step_shown(page, "linear1", 1, 3)  # walking alone changes nothing
    page.keyboard.press("Enter")
    said(page, "Step 3, norm1")
    step_shown(page, "norm1", 2, 3)
    press(page.locator("[data-k=reset]"), touch)
    said(page, "Step 1, embedding: ")
    assert small_bars(page) == [("visible", 0), ("hidden", 0), ("hidden", 0)]
    step_shown(page, "embedding", 0)
    clean(seen)


def test_the_steps_are_played_and_paused(show):
    seen = show(stepper(), width=390, touch=True)
    page = seen.page
    page.clock.install()
    play = page.locator("[data-k=play]")
    play.tap()
    assert play.get_attribute("aria-pressed") == "true"
    page.clock.run_for(1300)
    step_shown(page, "linear1", 1)
    play.tap()
    assert play.get_attribute("aria-pressed") == "false"
    page.clock.run_for(5000)
    step_shown(page, "linear1", 1)
    play.tap()
    page.clock.run_for(1300)
    step_shown(page, "norm1", 2)
    assert play.get_attribute("aria-pressed") == "false"  # the end is reached
    play.tap()
    step_shown(page, "embedding", 0)  # from the beginning
    page.locator("[data-k=box2]").tap()
    page.clock.run_for(5000)
    step_shown(page, "norm1", 2)  # a press on a step ends the playing
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
    said(
        page, f"In row “z”, cross-attention reads “b” ({cross.mean(0)[2, 1]:.3f}); row “b” of the encoder is outlined."
    )
    for name, row in (("encoder", 1), ("decoder", 2), ("cross", 2)):
        y = page.locator(f"[data-k='{name}{row},0'] rect").get_attribute("y")
        assert page.locator(f"[data-k={name}-row]").get_attribute("y") == y
    where = page.locator("[data-k=cross-cell]").bounding_box(), page.locator("[data-k='cross2,1']").bounding_box()
    assert all(abs(where[0][side] - where[1][side]) < 4 for side in where[0])
    assert min(where[1]["width"], where[1]["height"]) >= 24
    press(page.locator("[data-k='decoder1,0']"), touch)
    said(page, "In row “y”, the decoder reads “x”")
    assert page.locator("[data-k=cross-cell]").get_attribute("width") == "0"
    page.locator("[data-k=head]").select_option(label="head 2")
    page.keyboard.press("Tab")
    page.locator("[data-k='cross2,1']").focus()
    said(page, f"“b” ({cross[1, 2, 1]:.3f});")
    page.keyboard.press("ArrowRight")
    said(page, f"In row “z”, cross-attention reads “c” ({cross[1, 2, 2]:.3f});")
    page.keyboard.press("ArrowUp")
    said(page, f"In row “y”, cross-attention reads “c” ({cross[1, 1, 2]:.3f});")
    shade = page.locator("[data-k='encoder3,0'] rect").get_attribute("fill-opacity")
    assert float(shade) == pytest.approx(encoder[1, 3, 0].item(), abs=1e-6)
    clean(seen)


@layouts
def test_cross_attention_is_covered_until_the_reader_has_said_which_way_it_moves(show, width, scheme, touch):
    cross = torch.eye(4)[[3, 2, 1]].expand(2, 3, 4)
    view = three_attentions(*attentions()[:2], cross, ["a", "b", "c", "d"], ["x", "y", "z"], predict=True)
    seen = show(view, width=width, scheme=scheme, touch=touch)
    page = seen.page
    cell = page.locator("[data-k='cross0,3']")
    assert not cell.is_visible()
    assert page.locator("[data-k='decoder0,0']").is_visible()
    page.locator("[data-k=head]").select_option("1")
    said(page, "Choose first what you expect of cross-attention.")
    press(page.get_by_role("button", name="forwards", exact=True), touch)
    said(page, "Not as you expected: from row to row, the largest weight moves backwards.")
    assert cell.is_visible()
    press(page.get_by_role("button", name="backwards"), touch)
    said(page, "As you expected: from row to row, the largest weight moves backwards.")
    pressed = page.locator("[aria-pressed=true]").all_text_contents()
    assert pressed == ["backwards"]
    press(page.locator("[data-k=reset]"), touch)
    said(page, "stays covered")
    assert not cell.is_visible()
    clean(seen)


def test_the_three_maps_of_seven_steps_share_a_screen(show):
    own, source, target = torch.eye(7).expand(2, 7, 7), list("1234567"), ["start", *"234567"]
    page = show(three_attentions(own, own, own, source, target), width=390, height=844, touch=True).page
    foot = page.locator(".foot").bounding_box()["height"]
    assert page.locator(".three").bounding_box()["height"] + foot <= 844
    page = show(three_attentions(own, own, own, source, target), width=1000).page
    assert len({round(box.bounding_box()["y"]) for box in page.locator(".three > div").all()}) == 1
    sizes = page.locator(".three text").evaluate_all("list => list.map(n => 12 * n.ownerSVGElement.getScreenCTM().a)")
    assert min(sizes) >= 10


def stacks():
    """With 2 layers both learn, with 3 only pre-norm."""
    post = {2: ([[0.5, 0.6], [0.7, 0.8], [0.9, 1.0]], [2.4, 1.5, 0.3])}
    post[3] = ([[0.011, 0.102, 1.0], [0.0001, 0.2, 2.0], [0.012, 0.3, 3.0]], [2.4, 2.35, 2.3])
    pre = {2: ([[0.4, 0.3], [0.2, 0.1], [1.1, 1.2]], [2.2, 1.0, 0.1])}
    pre[3] = ([[0.5, 0.603, 1.0], [0.6, 0.7, 0.8], [1.3, 1.4, 1.5]], [2.2, 1.2, 0.2])
    made = [{n: tuple(map(torch.tensor, pair)) for n, pair in kind.items()} for kind in (post, pre)]
    return norm_switch(*made, steps=[0, 10, 80], guessing=2.3, what="gradient")


@layouts
def test_it_is_predicted_and_trained(show, width, scheme, touch):
    seen = show(stacks(), width=width, scheme=scheme, touch=touch)
    page = seen.page
    page.clock.install()
    train, step = page.locator("[data-k=train]"), page.locator("[data-k=step]")
    assert step.is_disabled()
    press(train, touch)
    page.clock.run_for(3000)
    said(page, "First choose what you expect.")
    assert page.locator("[data-k=post-loss]").text_content() == "loss 2.40"  # nothing has been given away
    page.locator("[data-k=guess]").select_option("both")
    press(train, touch)
    page.clock.run_for(900)
    said(
        page,
        "3 layers, 10 training steps: post-norm loss 2.35, pre-norm loss 1.20.",
    )
    assert train.get_attribute("aria-pressed") == "true"
    page.clock.run_for(900)
    verdict = page.locator("[data-k=verdict]")
    assert verdict.text_content() == "Only pre-norm learns; you predicted: both learn."
    assert said(page, "3 layers, 80 training steps").startswith(verdict.text_content())
    button, answer = train.bounding_box(), verdict.bounding_box()
    assert -1 <= answer["y"] - button["y"] < 100  # beside the button, or in the next line
    assert train.get_attribute("aria-pressed") == "false"
    heights = [float(page.locator(f"[data-k=post-bar{i}]").get_attribute("height")) for i in range(3)]
    low, span = math.log10(0.0001), math.log10(3.0 / 0.0001)
    assert heights == pytest.approx([10 + 90 * (math.log10(x) - low) / span for x in (0.012, 0.3, 3.0)], abs=1e-3)
    width_of_loss = float(page.locator("[data-k=pre-loss-bar]").get_attribute("width"))
    assert width_of_loss == pytest.approx(318 * 0.2 / 2.4, rel=1e-4)
    step.focus()
    page.keyboard.press("ArrowLeft")
    page.clock.run_for(900)
    said(page, "3 layers, 10 training steps: post-norm loss 2.35")
    clean(seen)


def test_another_depth_is_another_question(show):
    seen = show(stacks())
    page = seen.page
    page.clock.install()
    page.locator("[data-k=guess]").select_option("pre")
    page.locator("[data-k=train]").click()
    page.clock.run_for(3000)
    assert said(page, "3 layers, 80 training steps").startswith("Only pre-norm learns, as you predicted. ")
    page.locator("[data-k=depth]").focus()
    page.keyboard.press("ArrowLeft")
    page.clock.run_for(900)
    said(page, "2 layers, 0 training steps: post-norm loss 2.40, pre-norm loss 2.20.")
    assert page.locator("[data-k=depth-value]").text_content() == "2"
    assert page.locator("[data-k=verdict]").text_content() == ""
    assert page.locator("[data-k=step]").is_disabled()
    assert page.locator("[data-k=guess]").input_value() == ""
    assert float(page.locator("[data-k=post-bar2]").get_attribute("height")) == 0  # there is no third layer
    page.locator("[data-k=guess]").select_option("none")
    page.locator("[data-k=train]").click()
    page.clock.run_for(3000)
    assert said(page, "2 layers, 80 training steps").startswith("Both learn; you predicted: neither learns. ")
    page.keyboard.press("Tab")
    page.locator("[data-k=depth]").fill("1")
    page.clock.run_for(900)
    assert page.locator("[data-k=guess]").input_value() == "pre"  # the answer given before
    assert page.locator("[data-k=step]").is_enabled()
    page.locator("[data-k=reset]").click()
    page.clock.run_for(900)
    assert page.locator("[data-k=step]").is_disabled()
    assert page.locator("[data-k=guess]").input_value() == ""
    clean(seen)


@layouts
def test_parameters_are_counted_anew(show, width, scheme, touch):
    seen = show(parameter_calculator(), width=width, scheme=scheme, touch=touch)
    page = seen.page
    for name, value in (("vocab_size", 8000), ("d_model", 96), ("num_layers", 3), ("d_ff", 200)):
        page.locator(f"[data-k={name}]").fill(str(value))
    wanted = transformer_parameter_count(8000, 96, 3, 200)
    said(page, f"The model has {wanted:,} parameters,")
    assert page.locator("[data-k=total]").text_content() == f"{wanted:,}"
    press(page.locator("[data-k=tied]"), touch)
    said(page, f"{wanted + 2 * 8000 * 96:,} parameters,")
    times = (wanted + 2 * 8000 * 96) / transformer_parameter_count(37_000, 512, 6, 2048)
    assert page.locator("[data-k=times]").text_content() == f"{times:.2f} × as many as at first"
    field = page.locator("[data-k=d_model]")
    for typed in ("", "0", "-3", "2.5"):
        field.fill(typed)
        said(page, "Each size must be a whole number of at least 1; the counts are those of before.")
        assert field.get_attribute("aria-invalid") == "true"
        assert page.locator("[data-k=total]").text_content() == f"{wanted + 2 * 8000 * 96:,}"
        assert page.locator("svg").evaluate("n => +getComputedStyle(n).opacity") < 0.5  # counts of other sizes
    press(page.locator("[data-k=reset]"), touch)
    said(page, "The model has 63,082,496 parameters, 1.00 × as many as at first.")
    assert field.get_attribute("aria-invalid") != "true"
    assert field.input_value() == "512"
    assert page.locator("[data-k=tied]").get_attribute("aria-pressed") == "true"
    assert page.locator("svg").evaluate("n => getComputedStyle(n).opacity") == "1"
    clean(seen)


def bars(page):
    """Factor, pale bar and bar of each part."""
    widths = [page.locator(f"rect[data-k$={kind}]") for kind in ("-first", "-bar")]
    pale, full = [node.evaluate_all("list => list.map(n => +n.getAttribute('width'))") for node in widths]
    return page.locator("[data-k$=-times]").all_text_contents(), pale, full


def test_what_grows_has_a_bar_that_grows(show):
    page = show(parameter_calculator()).page
    _, pale, at_first = bars(page)
    assert pale == at_first
    page.locator("[data-k=d_model]").fill("1024")
    said(page, "2.60 ×")
    times, still, grown = bars(page)
    assert times == ["× 2.00", "× 4.00", "× 2.00", "× 4.00", "× 2.00", "× 2.00"]
    assert still == pytest.approx(pale, rel=1e-4)
    assert [b / a for a, b in zip(at_first, grown, strict=True)] == pytest.approx([2, 4, 2, 4, 2, 2], rel=2e-3)
    page.locator("[data-k=vocab_size]").fill("740000")  # longer than there is room for: all bars shrink together
    said(page, "The model has 883,")
    times, pale, grown = bars(page)
    assert max(grown) == pytest.approx(256)
    assert times[0] == "× 40.00"
    assert grown[0] / pale[0] == pytest.approx(40)
    assert all(full > first for first, full in zip(pale, grown, strict=True))


@pytest.mark.parametrize("width", [390, 1280])
def test_the_fields_of_the_sizes_are_aligned(show, width):
    page = show(parameter_calculator(), width=width).page
    boxes = [node.bounding_box() for node in page.locator("input").all()]
    assert len({(round(box["x"]), round(box["width"])) for box in boxes}) == 1


def test_choosing_a_head_says_where_it_looks(show):
    cross = torch.tensor([[[0.9, 0.1], [0.4, 0.6]], [[0.2, 0.8], [0.7, 0.3]]])
    own = torch.full((2, 2, 2), 0.5)
    page = show(three_attentions(own, own, cross, ["a", "b"], ["x", "y"])).page
    page.locator("[data-k=head]").select_option("1")
    assert said(page, "head 2") == (
        "In head 2 of cross-attention, “x” looks most at “b” (0.800), “y” looks most at “a” (0.700)."
    )
