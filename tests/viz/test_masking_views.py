"""Views of the chapter `masking`, without a browser: the pictures as they stand, their data, words and errors."""

import re

import pytest
import torch

from course_kit.viz import leak_detector, mask_painter
from course_kit.viz.style import DARK, PALETTE
from course_kit.viz.view import _variables
from course_lib.masking import causal_mask, sliding_window_mask
from tests.viz.drawn import classed, drawings, parts

TOKENS = ["the", "cat", "sat"]
SCORES = torch.tensor([[1.0, -0.5, 2.0], [0.0, 0.25, -1.0], [3.0, 1.5, 0.125]])


def presets_of(view):
    """Name -> mask as text, row by row."""
    return {name: bits for bits, name in re.findall(r'<option value="([01]+)"[^>]*>([^<]+)<', view.body)}


def bits(mask):
    return "".join(str(int(x)) for x in mask.flatten().tolist())


# mask_painter ---------------------------------------------------------------------------------------------------------


def test_the_mask_is_painted_as_given_and_the_weights_are_hidden():
    view = mask_painter(SCORES, causal_mask(3), tokens=TOKENS)
    cells = [cell for row in classed(view, "paint") for cell in row]
    assert [cell.get("aria-label") for cell in cells] == [
        f"Query “{q}”, key “{k}”, score {SCORES[i, j].item() + 1e-9:.2f}".replace("-", "−")
        for i, q in enumerate(TOKENS)
        for j, k in enumerate(TOKENS)
    ]
    assert [cell.get("aria-pressed") == "true" for cell in cells] == causal_mask(3).flatten().tolist()
    assert [[cell[1].text for cell in row] for row in classed(view, "weights")] == [["?"] * 3] * 3
    assert "3 of 9 cells are closed" in view.description


@pytest.mark.parametrize("tokens", [None, ["a longer word", "b", "c"]])
def test_rows_are_queries_and_columns_are_keys_in_both_panels(tokens):
    view = mask_painter(SCORES, tokens=tokens)
    assert [node.text for node in classed(view, "small", "key")].count("key") == 2
    titles = [node for node in classed(view, "small", "end", "query") if node.text == "query"]
    assert len(titles) == 2
    assert all(float(title.get("x")) >= 33 for title in titles)  # as wide as the word, which ends here


def test_the_presets_are_the_masks_of_the_library_and_the_last_is_ones_own():
    body = mask_painter(torch.zeros(5, 5)).body
    presets = presets_of(mask_painter(torch.zeros(5, 5)))
    padding = torch.tensor([True, True, True, False, False]).expand(5, 5)
    wanted = {
        "all open": torch.ones(5, 5),
        "causal": causal_mask(5),
        "padding: last 2 keys": padding,
        "causal and padding: last 2 keys": padding & causal_mask(5),
        "window of 3": sliding_window_mask(5, 3),
    }
    assert presets.items() >= {name: bits(mask) for name, mask in wanted.items()}.items()
    assert len(set(presets.values())) == len(presets)
    options = re.findall(r'<option value="(\d*)"( selected)?>([^<]+)<', body)
    assert options[-1] == ("", "", "my own")
    assert [name for _, chosen, name in options if chosen] == ["all open"]


def test_another_mask_is_a_choice_of_its_own():
    mask = torch.tensor([[True, False, True]])  # for every query
    assert presets_of(mask_painter(SCORES, mask))["as given"] == "101" * 3
    assert "as given" not in presets_of(mask_painter(SCORES, causal_mask(3)))


def test_with_fewer_queries_the_last_stands_at_the_last_key():
    view = mask_painter(torch.zeros(2, 4), tokens=["y", "z"], keys=list("abcd"))
    assert presets_of(view)["causal"] == "1110" + "1111"
    assert view.data["scores"] == [[0.0] * 4] * 2
    assert view.data["queries"] == ["“y”", "“z”"]


@pytest.mark.parametrize("shape", [(1, 1), (1, 10), (10, 1), (10, 10)])
def test_a_painter_of_every_size_fits_a_phone(shape):
    view = mask_painter(torch.zeros(shape), tokens=[f"longer {i}" for i in range(shape[0])], keys=["k"] * shape[1])
    for picture in drawings(view):
        assert picture.get("viewBox").startswith("0 0 340 ")
        assert min(float(node.get("width")) for node in picture.iter("rect")) >= 24
    assert view.data["digits"] == (3 if shape[1] <= 6 else 2)


@pytest.mark.parametrize(
    ("scores", "mask", "error", "message"),
    [
        (None, None, TypeError, r"scores must be a tensor \(L_q, L_k\), got None"),
        (torch.zeros(2, 3, 3), None, ValueError, r"got \(2, 3, 3\); choose one sentence and one head"),
        (torch.zeros(11, 3), None, ValueError, r"1 to 10 rows and columns, .* got \(11, 3\)"),
        (SCORES / 0, None, ValueError, "give the scores before masking"),
        (SCORES, torch.ones(3, 3), TypeError, r"mask must be a bool tensor, .* got torch.float32"),
        (SCORES, "causal", TypeError, "got str"),
        (SCORES, torch.ones(1, 1, 3, 3).bool(), ValueError, r"broadcast to \(3, 3\), .* mask\[0, 0\]"),
    ],
)
def test_what_a_painter_refuses(unchecked, scores, mask, error, message):
    with pytest.raises(error, match=message):
        mask_painter(scores, mask)


# leak_detector --------------------------------------------------------------------------------------------------------

CLEAN = torch.tensor([[0.5, 0.0, 0.0], [0.25, 1.5, 0.0], [0.125, 0.0, 2.0]])
LEAKY = torch.tensor([[0.5, 0.75, 0.0], [0.25, 1.5, 0.0001], [0.125, 0.0, 2.0]])
MODELS = {"good": CLEAN, "leaky": LEAKY}


def test_every_output_is_said_to_move_to_leak_or_to_be_still():
    view = leak_detector(MODELS, tokens=TOKENS)
    drawn = parts(view)
    for m, matrix in enumerate(MODELS.values()):
        for (i, j), x in zip(
            torch.cartesian_prod(*[torch.arange(3)] * 2).tolist(), matrix.flatten().tolist(), strict=True
        ):
            kind = "still" if x == 0 else "LEAK" if j > i else "moves"
            assert drawn[f"out{m}.{i}.{j}"].text == f"{kind} {'< 0.001' if 0 < x < 0.0005 else f'{x:.3f}'}"
        assert torch.equal(torch.tensor(view.data["moves"][m]), matrix.T > 1e-6)  # of each token its outputs


def test_leaks_are_said_in_words():
    view = leak_detector(MODELS, tokens=TOKENS)
    first = "No leak when “the” is changed: “the”, “cat”, “sat” may move, and do."
    assert view.data["said"] == [
        [
            first,
            "No leak when “cat” is changed: “cat” may move, and does.",
            "No leak when “sat” is changed: “sat” may move, and does.",
        ],
        [
            first,
            "Leak: “the” must not move when “cat” is changed, and yet does.",
            "Leak: “cat” must not move when “sat” is changed, and yet does.",
        ],
    ]
    assert "Of 3 forbidden pairs, “good” leaks in 0, “leaky” leaks in 2." in view.description
    assert view.data["counts"] == [
        "Of 3 forbidden pairs, “good” leaks in 0.",
        "Of 3 forbidden pairs, “leaky” leaks in 2.",
    ]


def test_no_answer_is_seen_before_it_is_asked_for():
    view = leak_detector(MODELS, tokens=TOKENS)
    told = classed(view, "told")
    assert all(node.get("style") == "display:none" for node in told)
    # an arrow picture and a column of the map for each model and token
    pairs = [f"{m}.{j}" for m in range(2) for j in range(3)]
    for stays in (None, "1"):
        assert [node.get("data-s") for node in told if node.get("data-stays") == stays] == pairs
    unknown = [node for node in drawings(view)[1].iter("g") if node.get("data-u")]
    assert [[cell[1].text for cell in node] for node in unknown] == [["?"] * 3] * 3
    assert [(node.get("aria-label"), node.get("aria-pressed")) for node in classed(view, "guess")] == [
        (f"output “{name}” will move", "false") for name in TOKENS
    ]


def test_the_token_in_the_middle_is_chosen_or_the_one_given():
    for token, settings in ((1, {}), (2, {"token": 2}), (0, {"token": 0})):
        view = leak_detector(MODELS, tokens=TOKENS, **settings)
        assert view.data["token"] == token
        assert [node.get("aria-pressed") == "true" for node in classed(view, "input")].index(True) == token


def test_a_leak_has_a_colour_an_arrow_and_a_mark_of_its_own():
    view = leak_detector(LEAKY)
    arrows, column = (node for node in classed(view, "told") if node.get("data-s") == "0.1")
    shafts = [node for node in arrows.iter("path") if node.get("d").startswith("M84 ")]
    assert {(s.get("class"), s.get("stroke-width"), s.get("stroke-dasharray")) for s in shafts} == {
        ("line", "1.5", None),
        ("line leak", "3.5", "7 4"),
    }
    assert [node.get("class") for node in column] == ["cell leak", "cell", "cell"]
    assert [node.text for node in column.iter("text")] == ["✗", "•"]
    assert [node.text for node in classed(view, "small", "leak")] == ["LEAK 0.750", "LEAK < 0.001"]
    assert "attention-view .leak rect{fill:var(--leak)" in view.body
    for dark, colours in enumerate((PALETTE, DARK)):  # in both modes it is the colour of no role
        variables = dict(re.findall(r"--(\w+):(#\w+)", _variables(bool(dark))))
        assert variables["leak"] not in {*colours.values(), variables["weight"]}


def test_what_is_allowed_and_what_is_rounding_can_be_told():
    def first_said(influence, allowed=None):
        return leak_detector(influence, allowed).data["said"][0][0]

    none = torch.zeros(3, 3, dtype=torch.bool)
    assert "LEAK" not in leak_detector(LEAKY, ~none).body
    assert "LEAK" not in leak_detector(CLEAN + 1e-4, tolerance=1e-3).body
    assert first_said(torch.zeros(3, 3), none) == "No leak when “0” is changed: no output may move."
    assert first_said(torch.zeros(2, 2)) == "No leak when “0” is changed: no output that may move does."
    leaks = "Leak: “0”, “1”, “2” must not move when “0” is changed, and yet do."
    assert first_said(torch.ones(3, 3), none) == leaks
    assert "Allowed here is the causal mask" in leak_detector(CLEAN).note
    assert "judged by the one allowed mask that this view was given" in leak_detector(CLEAN, causal_mask(3)).note


def test_outputs_may_differ_from_the_tokens():
    view = leak_detector(torch.rand(2, 4), torch.ones(2, 4).bool(), tokens=list("abcd"), outputs=["left", "right"])
    assert "“left”, “right” may move" in view.data["said"][0][3]
    names = [f"a token whose name is much longer than a word is {i}" for i in range(10)]
    assert len(leak_detector({f"a model {i}": torch.rand(10, 10) for i in range(6)}, tokens=names).description) <= 600


@pytest.mark.parametrize(
    ("influence", "settings", "error", "message"),
    [
        ({}, {}, ValueError, "1 to 6 models, got 0"),
        ({str(i): CLEAN for i in range(7)}, {}, ValueError, "1 to 6 models, got 7"),
        ({"a": None}, {}, TypeError, r"influence of a must be a tensor \(L, L\), got NoneType; measure it"),
        (torch.zeros(11, 11), {}, ValueError, r"with 1 to 10 tokens, got \(11, 11\); row i is the output"),
        ({"a": CLEAN, "b": torch.zeros(2, 2)}, {}, ValueError, r"influence of b must be \(3, 3\), got \(2, 2\)"),
        (-CLEAN, {}, ValueError, "distances ≥ 0, got -2; take the norm"),
        (torch.zeros(2, 3), {}, ValueError, r"allowed must be given .* got \(2, 3\)"),
        (CLEAN, {"allowed": torch.ones(2, 3).bool()}, ValueError, r"allowed must broadcast to \(3, 3\)"),
        (CLEAN, {"token": 3}, ValueError, "token must be at most 2, got 3"),
    ],
)
def test_what_a_detector_refuses(unchecked, influence, settings, error, message):
    with pytest.raises(error, match=message):
        leak_detector(influence, **settings)
