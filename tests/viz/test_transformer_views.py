"""The views of the chapter on the transformer: what is drawn and said before anybody touches them."""

import re
from xml.etree import ElementTree

import pytest
import torch

from course_lib import transformer_parameter_count
from course_lib.viz import block_stepper, norm_switch, parameter_calculator, three_attentions

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
    view = block_stepper(given, code={"norm1": "x = self.norm1(x + y)"}, tokens=list("abcde"))
    drawn = parts(view)
    assert [drawn[f"box{i}"][1].text for i in range(3)] == list(given)
    assert drawn["shape"].text == "shape of all tokens (5, 8)"
    assert drawn["norm"].text == f"length of this vector {given['embedding'][0].norm().item():.3f}"
    top = max(state.abs().max().item() for state in given.values())
    heights = [float(drawn[f"bar{i}"].get("height")) for i in range(32)]
    assert heights == pytest.approx([60 * abs(x) / top for x in given["embedding"][0].tolist()] + [0] * 24, abs=1e-3)
    for i, x in enumerate(given["embedding"][0].tolist()):
        assert (float(drawn[f"bar{i}"].get("y")) < 70) == (x > 0)  # positive features upwards
    assert view.data["steps"][2]["code"] == "x = self.norm1(x + y)"
    assert "linear1 (5, 32)" in view.description


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
    framed = float(drawn["encoder-row"].get("y")) - 62  # the row of what the first target token looks at
    assert framed / float(drawn["encoder-row"].get("height")) == int(cross.mean(0)[0].argmax())
    assert float(drawn["cross-row"].get("y")) == float(drawn["decoder-row"].get("y")) == 62


def test_heads_are_offered_by_numbers_from_one():
    body = three_attentions(*attentions(3), SOURCE, TARGET).body
    options = re.findall(r'<option value="(-?\d)"[^>]*>([^<]+)<', body)
    assert options == [("-1", "average of the heads"), ("0", "head 1"), ("1", "head 2"), ("2", "head 3")]


def test_a_long_sentence_is_still_small():
    words = [f"word{i}" for i in range(14)]
    view = three_attentions(weights(8, 14, 14), weights(8, 14, 14), weights(8, 14, 14), words, words)
    assert len(view.html()) < 200_000


def test_bars_of_both_wirings_share_one_logarithmic_scale():
    post, pre = torch.tensor([0.01, 0.1, 1.0]), torch.tensor([0.1, 0.1, 1.0])
    drawn = parts(norm_switch(post, pre, what="gradient"))
    height = {key: float(node.get("height")) for key, node in drawn.items() if re.fullmatch("(post|pre)[0-9]", key)}
    assert height["post0"] == pytest.approx(10)
    assert height["post1"] == height["pre0"] == height["pre1"] == pytest.approx(65)
    assert height["post2"] == height["pre2"] == pytest.approx(120)


def test_each_panel_has_the_numbers_of_its_own_wiring():
    post, pre = torch.tensor([0.011, 0.12, 1.3]), torch.tensor([2.4, 0.25, 0.026])
    body = norm_switch(post, pre).body
    first, second = re.split('data-k="pre-panel"', body)
    for panel, measured in ((first, post), (second, pre)):
        said = re.findall(r">(first|last) layer ([\d.]+)<", panel)
        assert said == [("first", f"{measured[0].item():.3f}"), ("last", f"{measured[-1].item():.3f}")]
    assert 'data-k="post-panel"' in first
    assert "post-norm: norm(x + sublayer(x))" in first
    assert "pre-norm: x + sublayer(norm(x))" in second
    described = norm_switch(post, pre).description
    assert "Post-norm: 0.011, 0.120, 1.300. Pre-norm: 2.400, 0.250, 0.026." in described
    bars = {key: float(node.get("x")) for key, node in parts(norm_switch(post, pre)).items() if key[-1].isdigit()}
    for name in ("post", "pre"):
        assert bars[f"{name}0"] < bars[f"{name}1"] < bars[f"{name}2"]


def test_norm_and_sum_stand_where_the_wiring_has_them():
    body = norm_switch(torch.ones(2), torch.ones(2)).body
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


def test_untied_embeddings_count_three_times():
    tied, untied = (parts(parameter_calculator(100, 8, 2, 16, tied=tied))["total"].text for tied in (True, False))
    assert int(untied.replace(",", "")) - int(tied.replace(",", "")) == 2 * 100 * 8


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: block_stepper({}), "expected 1 to 14 steps, got 0"),
        (lambda: block_stepper({"x": torch.ones(2, 3, 4)}), r"\(L, d_model\), got \(2, 3, 4\); choose one"),
        (lambda: block_stepper({"x": torch.ones(2, 3), "y": torch.ones(3, 3)}), r"same 1 to 16 tokens, got \[2, 3\]"),
        (lambda: block_stepper({"x": torch.ones(2, 65)}), "expected 1 to 64 features, got 65"),
        (lambda: block_stepper(states(), code={"norm9": ""}), r"code is given for \['norm9'\], which are no steps"),
        (lambda: block_stepper({"x": torch.full((2, 2), torch.nan)}), "expected finite numbers"),
        (lambda: three_attentions(None, *attentions()[1:], SOURCE, TARGET), "encoder is None.*need_weights=True"),
        (lambda: three_attentions(*attentions(), SOURCE[1:], TARGET), r"encoder must be \(H, 3, 3\).*got \(2, 4, 4\)"),
        (lambda: three_attentions(*attentions()[:2], weights(3, 3, 4), SOURCE, TARGET), "cross .* one H for all"),
        (lambda: three_attentions(*attentions()[:2], torch.randn(2, 3, 4) * 9, SOURCE, TARGET), "cross must lie in"),
        (lambda: three_attentions(*attentions(), [], TARGET), "expected 1 to 14 source and target tokens, got 0 and 3"),
        (lambda: norm_switch(torch.ones(3), torch.ones(2)), r"the same 1 to 24 layers, got \(3,\), \(2,\)"),
        (lambda: norm_switch(torch.zeros(3), torch.ones(3)), "must be positive"),
        (lambda: parameter_calculator(0), "vocab_size must be a whole number of at least 1, got 0"),
        (lambda: parameter_calculator(d_ff=2.5), "d_ff must be a whole number"),
    ],
)  # fmt: skip
@pytest.mark.usefixtures("unchecked")
def test_what_cannot_be_shown_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()
