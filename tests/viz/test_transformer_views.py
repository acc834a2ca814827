"""The views of the chapter on the transformer: what is drawn and said before anybody touches them."""

import re
from xml.etree import ElementTree

import pytest
import torch
from shown import as_shown

from course_kit.viz import block_stepper, norm_switch, parameter_calculator, three_attentions
from course_lib import transformer_parameter_count

STACK = torch.ones(1, 2), torch.ones(1)
SOURCE, TARGET = ["a", "b", "c", "<eos>"], ["x", "y", "z"]


def states():
    return {"embedding": torch.randn(5, 8), "linear1": torch.randn(5, 32), "norm1": torch.randn(5, 8)}


def weights(*shape):
    return torch.randn(shape).softmax(-1)


def attentions(heads=2):
    return weights(heads, 4, 4), weights(heads, 3, 3), weights(heads, 3, 4)


def parts(view):
    svgs = [ElementTree.fromstring(svg) for svg in re.findall(r"<svg.*?</svg>", view.body, re.DOTALL)]
    return {node.get("data-k"): node for svg in svgs for node in svg.iter() if node.get("data-k")}


def test_a_token_is_shown_after_the_first_step():
    given = states()
    given["norm1"][3, 2] = -50.0  # one scale for all tokens, the largest among them is another's
    view = block_stepper(given, code={"norm1": "x = self.norm1(x + y)"}, tokens=list("abcde"))
    drawn = parts(view)
    boxes = re.findall(r'<button[^>]*data-k="box(\d)" aria-pressed="(\w+)"[^>]*>([^<]*)<svg', view.body)
    assert boxes == [("0", "true", "1. embedding"), ("1", "false", "2. linear1"), ("2", "false", "3. norm1")]
    row = given["embedding"][0].tolist()
    assert drawn["numbers"].text == "[" + ", ".join(as_shown(x, 2) for x in row[:4]).replace("−0.00", "0.00") + ", …]"
    assert drawn["shape"].text == "shape of all tokens (5, 8)"
    assert drawn["norm"].text == f"length of this vector {given['embedding'][0].norm().item():.3f}"
    top = max(state.abs().max().item() for state in given.values())
    heights = [float(drawn[f"bar{i}"].get("height")) for i in range(32)]
    assert heights == pytest.approx([60 * abs(x) / top for x in given["embedding"][0].tolist()] + [0] * 24, abs=1e-3)
    for i, x in enumerate(given["embedding"][0].tolist()):
        assert (float(drawn[f"bar{i}"].get("y")) < 70) == (x > 0)  # positive features upwards
    assert view.data["steps"][2]["code"] == "x = self.norm1(x + y)"
    assert "linear1 (5, 32)" in view.description


def test_the_lengths_of_all_tokens_are_small_bars_that_wait_for_their_step():
    given = states()
    body = block_stepper(given, tokens=list("abcde")).body
    small = re.findall(r'<svg[^>]*aria-hidden="true" style="([^"]*)">(.*?)</svg>', body)
    assert ["hidden" in style for style, _ in small] == [False, True, True]
    longest = max(state.norm(dim=-1).max().item() for state in given.values())
    for (_, bars), state in zip(small, given.values(), strict=True):
        heights = [float(h) for h in re.findall(r'height="([\d.]+)"', bars)]
        assert heights == pytest.approx((28 * state.norm(dim=-1) / longest).tolist(), rel=1e-4)
        assert re.findall(r'fill-opacity="([\d.]+)"', bars) == ["1", "0.4", "0.4", "0.4", "0.4"]  # the first is chosen


def test_equal_lengths_are_told_as_one():
    state = torch.nn.functional.layer_norm(torch.randn(3, 8), (8,))
    assert block_stepper({"norm": state}).status == "Step 1, norm: all tokens have length 2.828."
    lengths = torch.tensor([[2.0], [3.0], [1.0]])
    assert block_stepper({"x": lengths}, tokens=["play", "b", "c"]).status == (
        "Step 1, x: lengths go from 1.000 to 3.000, and “play” has 2.000."
    )


def test_three_maps_show_the_average_of_the_heads():
    encoder, decoder, cross = attentions(3)
    view = three_attentions(encoder, decoder, cross, SOURCE, TARGET)
    drawn = parts(view)
    for name, given in (("encoder", encoder), ("decoder", decoder), ("cross", cross)):
        for i, row in enumerate(given.mean(0).tolist()):
            for j, weight in enumerate(row):
                assert float(drawn[f"{name}{i},{j}"][0].get("fill-opacity")) == pytest.approx(weight, abs=1e-5)
    best = SOURCE[cross.mean(0)[1].argmax()]
    assert f"“y” looks most at “{best}”" in view.description
    looked_at = int(cross.mean(0)[0].argmax())
    for name, row in (("encoder", looked_at), ("decoder", 0), ("cross", 0)):
        assert drawn[f"{name}-row"].get("y") == drawn[f"{name}{row},0"][0].get("y")


@pytest.mark.parametrize(
    ("best", "pattern"),
    [([0, 1, 2], 0), ([3, 2, 0], 1), ([3, 2, 2], 1), ([1, 3, 1], 2), ([2, 2, 2], 2), ([0, 2, 1], 2)],
)
def test_cross_attention_moves_forwards_backwards_or_neither_way(best, pattern):
    cross = torch.eye(4)[best].expand(2, 3, 4)
    view = three_attentions(*attentions()[:2], cross, SOURCE, TARGET, predict=True)
    assert view.data["pattern"] == pattern


def test_a_reader_who_predicts_is_not_told_the_answer():
    cross = torch.eye(4)[[3, 2, 1]].expand(2, 3, 4)
    view = three_attentions(*attentions()[:2], cross, SOURCE, TARGET, predict=True)
    drawn = parts(view)
    assert "looks most" not in view.status
    assert drawn["encoder-row"].get("y") == drawn["encoder0,0"][0].get("y")
    assert view.data["guesses"] == ["forwards", "backwards", "neither way"]
    assert re.findall(r'data-k="guess\d" aria-pressed="false">([^<]+)<', view.body) == view.data["guesses"]
    assert "guess" not in three_attentions(*attentions(), SOURCE, TARGET).body


def test_heads_are_offered_by_numbers_from_one():
    body = three_attentions(*attentions(3), SOURCE, TARGET).body
    options = re.findall(r'<option value="(-?\d)"[^>]*>([^<]+)<', body)
    assert options == [("-1", "average of the heads"), ("0", "head 1"), ("1", "head 2"), ("2", "head 3")]


def test_a_long_sentence_is_still_small():
    words = [f"word{i}" for i in range(14)]
    view = three_attentions(weights(8, 14, 14), weights(8, 14, 14), weights(8, 14, 14), words, words)
    assert len(view.html()) < 200_000


def trained(*rows, loss=(2.0, 1.0)):
    """What norm_switch is given of one stack: a row of layers for each of the steps, and the losses."""
    return torch.tensor(rows), torch.tensor(loss)


def test_bars_of_both_wirings_share_one_logarithmic_scale():
    post, pre = {3: trained([0.01, 0.1, 1.0], loss=[2.0])}, {3: trained([0.1, 0.1, 1.0], loss=[2.0])}
    drawn = parts(norm_switch(post, pre, what="gradient"))
    height = {key: float(node.get("height")) for key, node in drawn.items() if re.fullmatch("(post|pre)-bar[0-9]", key)}
    assert height["post-bar0"] == pytest.approx(10)
    assert height["post-bar1"] == height["pre-bar0"] == height["pre-bar1"] == pytest.approx(55)
    assert height["post-bar2"] == height["pre-bar2"] == pytest.approx(100)


def test_the_deepest_stacks_are_drawn_as_they_are_before_training():
    post = {1: trained([0.7], [0.6]), 3: trained([0.011, 0.12, 1.3], [0.0001, 5.0, 6.0], loss=[2.4, 2.31])}
    pre = {1: trained([0.9], [0.8]), 3: trained([2.4, 0.25, 0.026], [7.0, 8.0, 9.0], loss=[2.2, 0.04])}
    view = norm_switch(post, pre, steps=[0, 80], guessing=2.3)
    first, second = re.findall(r"<svg.*?</svg>", view.body, re.DOTALL)[1::2]
    for panel, ends, loss in ((first, ("0.011", "1.300"), "2.40"), (second, ("2.400", "0.026"), "2.20")):
        assert re.findall(r">(first|last) layer ([\d.]+)<", panel) == [("first", ends[0]), ("last", ends[1])]
        assert re.findall(r">loss ([\d.]+)<", panel) == [loss]
    drawn = parts(view)
    assert float(drawn["post-loss-bar"].get("width")) == pytest.approx(318)  # the largest loss of all
    assert float(drawn["pre-loss-bar"].get("width")) == pytest.approx(318 * 2.2 / 2.4, rel=1e-4)
    for name in ("post", "pre"):
        bars = [float(drawn[f"{name}-bar{i}"].get("x")) for i in range(3)]
        assert bars[0] < bars[1] < bars[2]
    assert "post-norm: norm(x + sublayer(x))" in view.body.split("pre-norm: x + sublayer(norm(x))")[0]
    assert "Post-norm, loss after 80 steps: 1 layers 1.00, 3 layers 2.31." in view.description
    assert "Pre-norm, loss after 80 steps: 1 layers 1.00, 3 layers 0.04." in view.description


def test_the_answer_is_not_shown_before_a_prediction():
    post = {2: trained([1.0, 2.0], [3.0, 4.0], loss=[2.4, 2.31])}
    body = norm_switch(post, {2: trained([1.0, 2.0], [3.0, 4.0], loss=[2.2, 0.04])}, steps=[0, 80], guessing=2.3).body
    assert re.search(r'<input disabled [^>]*data-k="step"', body)
    assert re.findall(r'<option value="(\w*)"[^>]*>', body) == ["", "none", "post", "pre", "both"]
    assert "2.31" not in body
    assert "0.04" not in body


def test_trained_numbers_are_kept_with_few_digits():
    layers, loss = torch.tensor([[0.123456789, 12345.6]]), torch.tensor([2.34567])
    view = norm_switch({2: (layers, loss)}, {2: (layers.double(), loss.double())})
    for name in ("post", "pre"):
        assert view.data[name] == [{"layers": [[0.123, 12300.0]], "loss": [2.35]}]


def test_norm_and_sum_stand_where_the_wiring_has_them():
    body = norm_switch(*[{2: (torch.ones(1, 2), torch.ones(1))}] * 2).body
    post, pre = (re.findall(r">(sublayer|norm|\+)<", part) for part in body.split("pre-norm: x + sublayer")[:2])
    assert post[:3] == ["sublayer", "+", "norm"]
    assert "pre-norm: x + sublayer(norm(x))" in body
    assert pre[-3:] != ["sublayer", "+", "norm"]


@pytest.mark.parametrize("sizes", [(37_000, 512, 6, 2048), (11, 7, 3, 5), (1, 1, 1, 1)])
def test_parameters_add_up_to_what_the_library_counts(sizes):
    drawn = parts(parameter_calculator(*sizes))
    total = transformer_parameter_count(*sizes)
    assert drawn["total"].text == f"{total:,}"
    keys = parameter_calculator(*sizes).data["keys"]
    assert sum(int(drawn[key].text.replace(",", "")) for key in keys) == total


def test_bars_begin_with_room_to_grow_and_lie_on_pale_ones():
    drawn = parts(parameter_calculator(37_000, 512, 6, 2048))
    widths = [float(node.get("width")) for key, node in drawn.items() if key.endswith("-bar")]
    assert max(widths) == pytest.approx(256 / 3, rel=1e-4)
    assert widths == [float(node.get("width")) for key, node in drawn.items() if key.endswith("-first")]


def test_untied_embeddings_count_three_times():
    tied, untied = (parts(parameter_calculator(100, 8, 2, 16, tied=tied))["total"].text for tied in (True, False))
    assert int(untied.replace(",", "")) - int(tied.replace(",", "")) == 2 * 100 * 8


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: block_stepper({}), "states must be 1 to 14 steps, got 0"),
        (lambda: block_stepper({"x": torch.ones(2, 3, 4)}), r"\(L, d_model\), got \(2, 3, 4\); choose one"),
        (lambda: block_stepper({"x": torch.ones(2, 3), "y": torch.ones(3, 3)}), r"same 1 to 16 tokens, got \[2, 3\]"),
        (lambda: block_stepper({"x": torch.ones(2, 65)}), "states must have 1 to 64 features, got 65"),
        (lambda: block_stepper(states(), code={"norm9": ""}), r"code is given for \['norm9'\], which are no steps"),
        (lambda: block_stepper({"x": torch.full((2, 2), torch.nan)}), "must be finite"),
        (lambda: three_attentions(None, *attentions()[1:], SOURCE, TARGET), "encoder is None.*need_weights=True"),
        (lambda: three_attentions(*attentions(), SOURCE[1:], TARGET), r"encoder must be \(H, 3, 3\).*got \(2, 4, 4\)"),
        (lambda: three_attentions(*attentions()[:2], weights(3, 3, 4), SOURCE, TARGET), "cross .* one H for all"),
        (lambda: three_attentions(*attentions()[:2], torch.randn(2, 3, 4) * 9, SOURCE, TARGET), "cross must lie in"),
        (lambda: three_attentions(*attentions(), [], TARGET), "source and target must have 1 to 14 .* got 0 and 3"),
        (lambda: norm_switch(torch.ones(3), torch.ones(2)), "post must be"),
        (lambda: norm_switch({2: STACK}, {3: STACK}), r"the same 1 to 6 depths, got \[2\] and \[3\]"),
        (lambda: norm_switch({}, {}), r"the same 1 to 6 depths, got \[\] and \[\]"),
        (lambda: norm_switch({25: STACK}, {25: STACK}), "depth must be at most 24, got 25"),
        (lambda: norm_switch({3: STACK}, {3: STACK}), r"post\[3\] must be \(1, 3\) and .* got \(1, 2\) and \(1,\)"),
        (lambda: norm_switch({2: STACK[0]}, {2: STACK}), r"post\[2\] must be a pair \(measured, loss\), got Tensor"),
        (lambda: norm_switch({2: STACK}, {2: (0 * STACK[0], STACK[1])}), r"pre\[2\] must be positive, got 0"),
        (lambda: norm_switch({2: STACK}, {2: STACK}, steps=[5, 0]), r"rising numbers .* got \[5, 0\]"),
        (lambda: norm_switch({2: STACK}, {2: STACK}, steps=5), "steps must be a list of numbers .* got 5"),
        (lambda: norm_switch({2: STACK}, {2: STACK}, guessing=0.0), "guessing must be above 0 and below 1000, got 0.0"),
        (lambda: parameter_calculator(0), "vocab_size must be at least 1, got 0"),
        (lambda: parameter_calculator(d_ff=2.5), "d_ff must be a whole number"),
    ],
)  # fmt: skip
@pytest.mark.usefixtures("unchecked")
def test_what_cannot_be_shown_is_refused(call, message):
    with pytest.raises((TypeError, ValueError), match=message):
        call()
