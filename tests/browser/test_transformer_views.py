"""The views of the chapter on the transformer, driven as readers drive them: mouse, keyboard, touch."""

import math

import pytest
import torch
from driving import choose, large_enough, part, press, said
from shown import as_shown

from course_kit.viz import block_stepper, norm_switch, three_attentions

pytestmark = [pytest.mark.browser, pytest.mark.site, pytest.mark.thorough]

layouts = pytest.mark.parametrize(("width", "scheme", "touch"), [(1000, "light", False), (390, "dark", True)])


def number(node, name):
    return float(node.get_attribute(name))


# block_stepper --------------------------------------------------------------------------------------------------------

STATES = {"embedding": torch.randn(4, 8), "linear1": torch.randn(4, 24), "norm1": torch.randn(4, 3)}


def stepper():
    return block_stepper(STATES, code={"linear1": "hidden = self.linear1(x)"}, tokens=["a", "b", "c", "<d>"])


def step_shown(page, name, token=0):
    """Box, shape, numbers and bars are those of this step and token."""
    boxes = page.locator("[data-k^=box]").evaluate_all("list => list.map(n => n.ariaPressed)")
    assert boxes == [str(other == name).lower() for other in STATES]
    row = STATES[name][token].tolist()
    assert part(page, "shape").text_content() == f"shape of all tokens {tuple(STATES[name].shape)}"
    few = ", ".join(as_shown(x, 2) for x in row[:4]).replace("−0.00", "0.00")
    assert part(page, "numbers").text_content() == f"[{few}{', …' if len(row) > 4 else ''}]"
    top = max(state.abs().max().item() for state in STATES.values())
    heights = page.locator("[data-k^=bar]").evaluate_all("list => list.map(n => +n.getAttribute('height'))")
    assert heights == pytest.approx([60 * abs(x) / top for x in row] + [0] * (24 - len(row)), abs=1e-3)


def small_bars(page):
    """For each step whether the lengths of all tokens are seen, and which token is marked in them."""
    marked = "[...n.querySelectorAll('rect')].findIndex(bar => bar.getAttribute('fill-opacity') == 1)"
    look = f"list => list.map(n => [getComputedStyle(n).visibility, {marked}])"
    return page.locator("[data-k^=box] svg").evaluate_all(look)


def test_equal_lengths_are_said_as_one(page_of):
    even = {"x": STATES["embedding"], "norm": torch.nn.functional.layer_norm(STATES["embedding"], (8,))}
    page = page_of(block_stepper(even))
    part(page, "box1").click()
    assert said(page, "Step 2") == "Step 2, norm: all tokens have length 2.828."
    heights = page.locator("[data-k=box1] rect").evaluate_all("list => list.map(n => n.getBoundingClientRect().height)")
    assert heights == pytest.approx([heights[0]] * 4, abs=0.02)  # a browser rounds boxes to 1/64 of a pixel


@layouts
def test_a_step_is_pressed(page_of, width, scheme, touch):
    page = page_of(stepper(), width=width, scheme=scheme, touch=touch)
    step_shown(page, "embedding")
    assert large_enough(part(page, "box1"))
    choose(part(page, "box1"), touch)
    lengths = STATES["linear1"].norm(dim=-1)
    span = f"Step 2, linear1: lengths go from {lengths.min():.3f} to {lengths.max():.3f}, and"
    assert said(page, "Step 2") == f"{span} “a” has {lengths[0]:.3f}."
    step_shown(page, "linear1")
    assert small_bars(page) == [["visible", 0], ["visible", 0], ["hidden", 0]]
    part(page, "token").select_option("3")
    assert said(page, "“<d>”") == f"{span} “<d>” has {lengths[3]:.3f}."
    assert small_bars(page) == [["visible", 3], ["visible", 3], ["hidden", 3]]
    assert part(page, "code").text_content() == "hidden = self.linear1(x)"
    part(page, "box1").focus()
    page.keyboard.press("ArrowDown")
    step_shown(page, "linear1", 3)  # walking alone changes nothing
    page.keyboard.press("Enter")
    said(page, "Step 3, norm1")
    step_shown(page, "norm1", 3)
    choose(part(page, "reset"), touch)
    said(page, "Step 1, embedding: ")
    assert small_bars(page) == [["visible", 0], ["hidden", 0], ["hidden", 0]]


def test_the_steps_are_played_and_paused(page_of):
    page = page_of(stepper(), width=390, touch=True)
    play = part(page, "play")
    page.clock.install(time=0)
    page.clock.pause_at(60)  # from here on, time passes in `run_for` only
    for pressed, waited, on, name in (
        (play, 1300, "true", "linear1"),
        (play, 5000, "false", "linear1"),  # paused
        (play, 1300, "false", "norm1"),  # the end is reached
        (play, 0, "true", "embedding"),  # from the beginning
        (part(page, "box2"), 5000, "false", "norm1"),  # a press on a step ends the playing
    ):
        pressed.tap()
        page.clock.run_for(waited)
        step_shown(page, name)
        assert play.get_attribute("aria-pressed") == on


# three_attentions -----------------------------------------------------------------------------------------------------

SOURCE, TARGET = ["a", "b", "c", "d"], ["x", "y", "z"]


def attentions():
    return [torch.randn(2, *shape).softmax(-1) for shape in ((4, 4), (3, 3), (3, 4))]


@layouts
def test_three_attentions_are_linked_by_their_words(page_of, width, scheme, touch):
    encoder, decoder, cross = attentions()
    page = page_of(three_attentions(encoder, decoder, cross, SOURCE, TARGET), width=width, scheme=scheme, touch=touch)
    chosen = part(page, "cross2,1")
    choose(chosen, touch)
    weight = f"{cross.mean(0)[2, 1]:.3f}"
    said(page, f"In row “z”, cross-attention reads “b” ({weight}); row “b” of the encoder is outlined.")
    for name, row in (("encoder", 1), ("decoder", 2), ("cross", 2)):
        y = page.locator(f"[data-k='{name}{row},0'] rect").get_attribute("y")
        assert part(page, f"{name}-row").get_attribute("y") == y
    frame, cell = part(page, "cross-cell").bounding_box(), chosen.bounding_box()
    assert all(abs(frame[side] - cell[side]) < 4 for side in cell)
    assert large_enough(chosen)
    choose(part(page, "decoder1,0"), touch)
    said(page, "In row “y”, the decoder reads “x”")
    assert part(page, "cross-cell").get_attribute("width") == "0"
    part(page, "head").select_option(label="head 2")
    best = sorted(((x, t, s) for t, x, s in zip(TARGET, *map(torch.Tensor.tolist, cross[1].max(-1)), strict=True)))[
        ::-1
    ]
    told = ", ".join(f"“{t}” looks most at “{SOURCE[s]}” ({x:.3f})" for x, t, s in best)
    assert said(page, "In head 2 of") == f"In head 2 of cross-attention, {told}."
    chosen.focus()
    for keys, i, j in (([], 2, 1), (["ArrowRight"], 2, 2), (["ArrowUp"], 1, 2)):
        press(page, *keys)
        said(page, f"In row “{TARGET[i]}”, cross-attention reads “{SOURCE[j]}” ({cross[1, i, j]:.3f});")
    shade = number(page.locator("[data-k='encoder3,0'] rect"), "fill-opacity")
    assert shade == pytest.approx(encoder[1, 3, 0].item(), abs=1e-6)


@layouts
def test_cross_attention_is_covered_until_the_reader_has_said_which_way_it_moves(page_of, width, scheme, touch):
    cross = torch.eye(4)[[3, 2, 1]].expand(2, 3, 4)
    view = three_attentions(*attentions()[:2], cross, SOURCE, TARGET, predict=True)
    page = page_of(view, width=width, scheme=scheme, touch=touch)
    cell = part(page, "cross0,3")
    assert not cell.is_visible()
    assert part(page, "decoder0,0").is_visible()
    part(page, "head").select_option("1")
    said(page, "Choose first what you expect of cross-attention.")
    for guess, verdict in (("forwards", "Not as"), ("backwards", "As")):
        choose(page.get_by_role("button", name=guess, exact=True), touch)
        said(page, f"{verdict} you expected: from row to row, the largest weight moves backwards.")
        assert cell.is_visible()
        assert page.locator("[aria-pressed=true]").all_text_contents() == [guess]
    choose(part(page, "reset"), touch)
    said(page, "stays covered")
    assert not cell.is_visible()


def test_the_three_maps_of_seven_steps_share_a_screen(page_of):
    own, source, target = torch.eye(7).expand(2, 7, 7), list("1234567"), ["start", *"234567"]
    page = page_of(three_attentions(own, own, own, source, target), width=390, height=844, touch=True)
    assert sum(page.locator(which).bounding_box()["height"] for which in (".three", ".foot")) <= 844
    page = page_of(three_attentions(own, own, own, source, target), width=1000)
    assert len({round(box.bounding_box()["y"]) for box in page.locator(".three > div").all()}) == 1
    sizes = page.locator(".three text").evaluate_all("list => list.map(n => 12 * n.ownerSVGElement.getScreenCTM().a)")
    assert min(sizes) >= 10


# norm_switch ----------------------------------------------------------------------------------------------------------


def stacks():
    """With 2 layers both learn, with 3 only pre-norm: 1.9 is more than half of the loss of guessing."""
    post = {2: ([[0.5, 0.6], [0.7, 0.8], [0.9, 1.0]], [2.4, 1.5, 0.3])}
    post[3] = ([[0.011, 0.102, 1.0], [0.0001, 0.2, 2.0], [0.012, 0.3, 3.0]], [2.4, 2.35, 1.9])
    pre = {2: ([[0.4, 0.3], [0.2, 0.1], [1.1, 1.2]], [2.2, 1.0, 0.1])}
    pre[3] = ([[0.5, 0.603, 1.0], [0.6, 0.7, 0.8], [1.3, 1.4, 1.5]], [2.2, 1.2, 0.2])
    made = [{n: tuple(map(torch.tensor, pair)) for n, pair in kind.items()} for kind in (post, pre)]
    return norm_switch(*made, steps=[0, 10, 80], guessing=2.3, what="gradient")


def trained(page, guess, waited=3000):
    part(page, "guess").select_option(guess)
    part(page, "train").click()
    page.clock.run_for(waited)


@layouts
def test_it_is_predicted_and_trained(page_of, width, scheme, touch):
    page = page_of(stacks(), width=width, scheme=scheme, touch=touch)
    train, step, verdict = (part(page, key) for key in ("train", "step", "verdict"))
    page.clock.install(time=0)
    assert step.is_disabled()
    choose(train, touch)
    page.clock.run_for(3000)
    said(page, "First choose what you expect.")
    assert part(page, "post-loss").text_content() == "loss 2.40"  # nothing has been given away
    page.clock.pause_at(600)  # now time passes in `run_for` only
    part(page, "guess").select_option("both")
    choose(train, touch)
    page.clock.run_for(900)
    assert train.get_attribute("aria-pressed") == "true"
    losses = [part(page, f"{name}-loss").text_content() for name in ("post", "pre")]
    assert [part(page, "step-value").text_content(), *losses] == ["10", "loss 2.35", "loss 1.20"]
    page.clock.run_for(900)
    page.clock.resume()
    assert verdict.text_content() == "Only pre-norm learns; you predicted: both learn."
    assert said(page, "3 layers, 80 training steps").startswith(verdict.text_content())
    assert -1 <= verdict.bounding_box()["y"] - train.bounding_box()["y"] < 100  # beside it, or in the next line
    assert train.get_attribute("aria-pressed") == "false"
    heights = [number(part(page, f"post-bar{i}"), "height") for i in range(3)]
    low, span = math.log10(0.0001), math.log10(3.0 / 0.0001)
    assert heights == pytest.approx([10 + 90 * (math.log10(x) - low) / span for x in (0.012, 0.3, 3.0)], abs=1e-3)
    assert number(part(page, "pre-loss-bar"), "width") == pytest.approx(318 * 0.2 / 2.4, rel=1e-4)
    step.focus()
    page.keyboard.press("ArrowLeft")
    page.clock.run_for(900)
    said(page, "3 layers, 10 training steps: post-norm loss 2.35")


def test_another_depth_is_another_question(page_of):
    page = page_of(stacks())
    step, guess = part(page, "step"), part(page, "guess")
    page.clock.install()
    trained(page, "pre")
    assert said(page, "3 layers, 80 training steps").startswith("Only pre-norm learns, as you predicted. ")
    part(page, "depth").focus()
    page.keyboard.press("ArrowLeft")
    page.clock.run_for(900)
    said(page, "2 layers, 0 training steps: post-norm loss 2.40, pre-norm loss 2.20.")
    assert part(page, "depth-value").text_content() == "2"
    assert part(page, "verdict").text_content() == guess.input_value() == ""
    assert step.is_disabled()
    assert number(part(page, "post-bar2"), "height") == 0  # there is no third layer
    trained(page, "none")
    assert said(page, "2 layers, 80 training steps").startswith("Both learn; you predicted: neither learns. ")
    part(page, "depth").fill("1")
    page.clock.run_for(900)
    assert guess.input_value() == "pre"  # the answer given before
    assert step.is_enabled()
    part(page, "reset").click()
    page.clock.run_for(900)
    assert step.is_disabled()
    assert guess.input_value() == ""
