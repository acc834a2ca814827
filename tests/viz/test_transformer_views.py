"""The views of the chapter on the transformer: what is drawn and said before anybody touches them."""

import re

import pytest
import torch
from shown import as_shown

from course_kit.viz import block_stepper, norm_switch, three_attentions
from tests.viz.drawn import drawings, parts, written

STACK = torch.ones(1, 2), torch.ones(1)
SOURCE, TARGET = ["a", "b", "c", "<eos>"], ["x", "y", "z"]


def number(node, name="height"):
    return float(node.get(name))


def states():
    return {"embedding": torch.randn(5, 8), "linear1": torch.randn(5, 32), "norm1": torch.randn(5, 8)}


def weights(*shape):
    return torch.randn(shape).softmax(-1)


def attentions(heads=2):
    return weights(heads, 4, 4), weights(heads, 3, 3), weights(heads, 3, 4)


def test_a_token_is_shown_after_the_first_step():
    given = states()
    given["norm1"][3, 2] = -50.0  # one scale for all tokens, the largest among them is another's
    view = block_stepper(given, code={"norm1": "x = self.norm1(x + y)"}, tokens=list("abcde"))
    drawn, row = parts(view), given["embedding"][0].tolist()
    boxes = re.findall(r'<button[^>]*data-k="box(\d)" aria-pressed="(\w+)"[^>]*>([^<]*)<svg', view.body)
    assert boxes == [("0", "true", "1. embedding"), ("1", "false", "2. linear1"), ("2", "false", "3. norm1")]
    assert drawn["numbers"].text == "[" + ", ".join(as_shown(x, 2) for x in row[:4]).replace("−0.00", "0.00") + ", …]"
    assert drawn["shape"].text == "shape of all tokens (5, 8)"
    assert drawn["norm"].text == f"length of this vector {given['embedding'][0].norm().item():.3f}"
    heights = [number(drawn[f"bar{i}"]) for i in range(32)]
    assert heights == pytest.approx([60 * abs(x) / 50 for x in row] + [0] * 24, abs=1e-3)
    for i, x in enumerate(row):
        assert (number(drawn[f"bar{i}"], "y") < 70) == (x > 0)  # positive features upwards
    assert view.data["steps"][2]["code"] == "x = self.norm1(x + y)"
    assert "linear1 (5, 32)" in view.description


def test_the_lengths_of_all_tokens_are_small_bars_that_wait_for_their_step():
    given = states()
    small = [svg for svg in drawings(block_stepper(given)) if svg.get("aria-hidden")]
    assert ["hidden" in svg.get("style") for svg in small] == [False, True, True]
    longest = max(state.norm(dim=-1).max().item() for state in given.values())
    for bars, state in zip(small, given.values(), strict=True):
        assert [number(bar) for bar in bars] == pytest.approx((28 * state.norm(dim=-1) / longest).tolist(), rel=1e-4)
        assert [bar.get("fill-opacity") for bar in bars] == ["1", "0.4", "0.4", "0.4", "0.4"]  # the first is chosen


def test_equal_lengths_are_told_as_one():
    state = torch.nn.functional.layer_norm(torch.randn(3, 8), (8,))
    assert block_stepper({"norm": state}).status == "Step 1, norm: all tokens have length 2.828."
    lengths = torch.tensor([[2.0], [3.0], [1.0]])
    assert block_stepper({"x": lengths}, tokens=["play", "b", "c"]).status == (
        "Step 1, x: lengths go from 1.000 to 3.000, and “play” has 2.000."
    )


def test_three_maps_show_the_average_of_the_heads():
    given = dict(zip(("encoder", "decoder", "cross"), attentions(3), strict=True))
    view = three_attentions(*given.values(), SOURCE, TARGET)
    drawn, best = parts(view), given["cross"].mean(0).argmax(-1).tolist()
    for name, heads in given.items():
        for i, row in enumerate(heads.mean(0).tolist()):
            shades = [number(drawn[f"{name}{i},{j}"][0], "fill-opacity") for j in range(len(row))]
            assert shades == pytest.approx(row, abs=1e-5)
        looked_at = best[0] if name == "encoder" else 0
        assert drawn[f"{name}-row"].get("y") == drawn[f"{name}{looked_at},0"][0].get("y")
    assert f"“y” looks most at “{SOURCE[best[1]]}”" in view.description
    options = re.findall(r'<option value="(-?\d)"[^>]*>([^<]+)<', view.body)
    assert options == [("-1", "average of the heads"), ("0", "head 1"), ("1", "head 2"), ("2", "head 3")]
    words = [f"word{i}" for i in range(14)]
    assert len(three_attentions(*[weights(8, 14, 14)] * 3, words, words).html()) < 200_000


@pytest.mark.parametrize(
    ("best", "pattern"),
    [([0, 1, 2], 0), ([3, 2, 0], 1), ([3, 2, 2], 1), ([1, 3, 1], 2), ([2, 2, 2], 2), ([0, 2, 1], 2)],
)
def test_a_reader_who_predicts_which_way_cross_attention_moves_is_not_told_the_answer(best, pattern):
    cross = torch.eye(4)[best].expand(2, 3, 4)
    view = three_attentions(*attentions()[:2], cross, SOURCE, TARGET, predict=True)
    drawn = parts(view)
    assert view.data["pattern"] == pattern
    assert "looks most" not in view.status
    assert drawn["encoder-row"].get("y") == drawn["encoder0,0"][0].get("y")
    assert view.data["guesses"] == ["forwards", "backwards", "neither way"]
    assert re.findall(r'data-k="guess\d" aria-pressed="false">([^<]+)<', view.body) == view.data["guesses"]
    assert "guess" not in three_attentions(*attentions(), SOURCE, TARGET).body


def trained(*rows, loss=(2.0, 1.0)):
    """What norm_switch is given of one stack: a row of layers for each of the steps, and the losses."""
    return torch.tensor(rows), torch.tensor(loss)


def test_bars_of_both_wirings_share_one_logarithmic_scale():
    post, pre = {3: trained([0.01, 0.1, 1.0], loss=[2.0])}, {3: trained([0.1, 0.1, 1.0], loss=[2.0])}
    drawn = parts(norm_switch(post, pre))
    heights = [[number(drawn[f"{name}-bar{i}"]) for i in range(3)] for name in ("post", "pre")]
    assert heights == [pytest.approx([10, 55, 100]), pytest.approx([55, 55, 100])]
    places = [number(drawn[f"post-bar{i}"], "x") for i in range(3)]
    assert places == sorted(places)


def test_the_deepest_stacks_are_drawn_as_they_are_before_training_and_the_answer_is_not():
    post = {1: trained([0.7], [0.6]), 3: trained([0.011, 0.12, 1.3], [0.0001, 5.0, 6.0], loss=[2.4, 2.31])}
    pre = {1: trained([0.9], [0.8]), 3: trained([2.4, 0.25, 0.026], [7.0, 8.0, 9.0], loss=[2.2, 0.04])}
    view = norm_switch(post, pre, steps=[0, 80], guessing=2.3)
    drawn = parts(view)
    for name, ends, loss in (("post", ("0.011", "1.300"), 2.4), ("pre", ("2.400", "0.026"), 2.2)):
        assert drawn[f"{name}-first"].text == f"first layer {ends[0]}"
        assert drawn[f"{name}-last"].text == f"last layer {ends[1]}"
        assert drawn[f"{name}-loss"].text == f"loss {loss:.2f}"
        width = number(drawn[f"{name}-loss-bar"], "width")
        assert width == pytest.approx(318 * loss / 2.4, rel=1e-4)  # 318 is the largest loss of all
    assert "Post-norm, loss after 80 steps: 1 layers 1.00, 3 layers 2.31." in view.description
    assert "Pre-norm, loss after 80 steps: 1 layers 1.00, 3 layers 0.04." in view.description
    assert re.search(r'<input disabled [^>]*data-k="step"', view.body)
    assert re.findall(r'<option value="(\w*)"[^>]*>', view.body) == ["", "none", "post", "pre", "both"]
    assert "2.31" not in view.body
    assert "0.04" not in view.body


def test_trained_numbers_are_kept_with_few_digits():
    layers, loss = torch.tensor([[0.123456789, 12345.6]]), torch.tensor([2.34567])
    view = norm_switch({2: (layers, loss)}, {2: (layers.double(), loss.double())})
    for name in ("post", "pre"):
        assert view.data[name] == [{"layers": [[0.123, 12300.0]], "loss": [2.35]}]


def test_norm_and_sum_stand_where_the_wiring_has_them():
    texts = written(norm_switch({2: STACK}, {2: STACK}))
    assert [text for text in texts if text in ("sublayer", "norm", "+") or "norm(" in text] == [
        "sublayer", "+", "norm", "post-norm: norm(x + sublayer(x))",
        "norm", "sublayer", "+", "pre-norm: x + sublayer(norm(x))",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: block_stepper({}), "states must be 1 to 14 steps, got 0"),
        (lambda: block_stepper({"x": torch.ones(2, 3, 4)}), r"\(L, d_model\), got \(2, 3, 4\); choose one"),
        (lambda: block_stepper({"x": torch.ones(2, 3), "y": torch.ones(3, 3)}), r"same 1 to 16 tokens, got \[2, 3\]"),
        (lambda: block_stepper({"x": torch.ones(2, 65)}), "states must have 1 to 64 features, got 65"),
        (lambda: block_stepper(states(), code={"norm9": ""}), r"code is given for \['norm9'\], which are no steps"),
        (lambda: three_attentions(None, *attentions()[1:], SOURCE, TARGET), "encoder is None.*need_weights=True"),
        (lambda: three_attentions(*attentions(), SOURCE[1:], TARGET), r"encoder must be \(H, 3, 3\).*got \(2, 4, 4\)"),
        (lambda: three_attentions(*attentions()[:2], weights(3, 3, 4), SOURCE, TARGET), "cross .* one H for all"),
        (lambda: three_attentions(*attentions()[:2], torch.randn(2, 3, 4) * 9, SOURCE, TARGET), "cross must lie in"),
        (lambda: three_attentions(*attentions(), [], TARGET), "source and target must have 1 to 14 .* got 0 and 3"),
        (lambda: norm_switch({2: STACK}, {3: STACK}), r"the same 1 to 6 depths, got \[2\] and \[3\]"),
        (lambda: norm_switch({25: STACK}, {25: STACK}), "depth must be at most 24, got 25"),
        (lambda: norm_switch({3: STACK}, {3: STACK}), r"post\[3\] must be \(1, 3\) and .* got \(1, 2\) and \(1,\)"),
        (lambda: norm_switch({2: STACK[0]}, {2: STACK}), r"post\[2\] must be a pair \(measured, loss\), got Tensor"),
        (lambda: norm_switch({2: STACK}, {2: (0 * STACK[0], STACK[1])}), r"pre\[2\] must be positive, got 0"),
        (lambda: norm_switch({2: STACK}, {2: STACK}, steps=[5, 0]), r"rising numbers .* got \[5, 0\]"),
        (lambda: norm_switch({2: STACK}, {2: STACK}, steps=5), "steps must be a list of numbers .* got 5"),
        (lambda: norm_switch({2: STACK}, {2: STACK}, guessing=0.0), "guessing must be above 0 and below 1000, got 0.0"),
    ],
)  # fmt: skip
@pytest.mark.usefixtures("unchecked")
def test_what_cannot_be_shown_is_refused(call, message):
    with pytest.raises((TypeError, ValueError), match=message):
        call()
