"""Views of the chapter `masking`, without a browser: the pictures as they stand, their data, words and errors."""

import re

import pytest
import torch
from shown import number_in

from course_kit.viz import leak_detector, mask_painter
from course_kit.viz.style import DARK, PALETTE
from course_kit.viz.view import _variables
from course_lib.masking import causal_mask, sliding_window_mask

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
    cells = re.findall(
        r'aria-pressed="(true|false)" aria-label="Query “(\w+)”, key “(\w+)”, score ([−.\d]+)"', view.body
    )
    assert [(q, k) for _, q, k, _ in cells] == [(q, k) for q in TOKENS for k in TOKENS]
    assert [open_ == "true" for open_, *_ in cells] == causal_mask(3).flatten().tolist()
    assert [number_in(score) for *_, score in cells] == SCORES.flatten().tolist()
    weights = re.findall(r'<g class="weights">(.*?)</text></g></g>', view.body)
    assert len(weights) == 3
    assert all(re.findall(r">(\?)(?:<|$)", row) == ["?"] * 3 for row in weights)
    assert "3 of 9 cells are closed" in view.description


def test_open_cells_are_filled_and_closed_ones_are_empty_but_for_a_cross():
    view = mask_painter(SCORES, causal_mask(3), tokens=TOKENS)
    filled = dict(re.findall(r"\.paint>\[aria-pressed=(true|false)\]>rect\{fill-opacity:([.\d]+)\}", view.body))
    assert float(filled["false"]) == 0
    assert 0.2 <= float(filled["true"]) <= 0.5  # light enough for the score
    assert "[aria-pressed=true]>.shut,attention-view .paint>[aria-pressed=false]>.score{display:none}" in view.body
    assert ">the mask: filled = open (score), × = closed<" in view.body
    assert view.note.startswith("A filled cell is open")


@pytest.mark.parametrize("tokens", [None, ["a longer word", "b", "c"]])
def test_rows_are_queries_and_columns_are_keys_in_both_panels(tokens):
    pictures = re.findall(r"<svg.*?</svg>", mask_painter(SCORES, tokens=tokens).body)
    assert len(pictures) == 2
    for picture in pictures:
        assert re.findall(r'class="small key">(key)<', picture) == ["key"]
        (x,) = re.findall(r'<text x="([\d.]+)"[^>]*class="end small query">query<', picture)
        assert float(x) >= 33  # as wide as the word, which ends here


def test_a_mask_of_ones_own_is_the_last_choice():
    options = re.findall(r'<option value="(\d*)"( selected)?>([^<]+)<', mask_painter(SCORES).body)
    assert options[-1] == ("", "", "my own")
    assert [name for _, chosen, name in options if chosen] == ["all open"]


def test_the_presets_are_the_masks_of_the_library():
    view = mask_painter(torch.zeros(5, 5))
    presets = presets_of(view)
    padding = torch.tensor([True, True, True, False, False]).expand(5, 5)
    assert presets["all open"] == "1" * 25
    assert presets["causal"] == bits(causal_mask(5))
    assert presets["padding: last 2 keys"] == bits(padding)
    assert presets["causal and padding: last 2 keys"] == bits(padding & causal_mask(5))
    assert presets["window of 3"] == bits(sliding_window_mask(5, 3))
    assert len(set(presets.values())) == len(presets)
    assert re.findall(r'value="(\d+)" selected', view.body) == ["1" * 25]


def test_another_mask_is_a_choice_of_its_own():
    mask = torch.tensor([[True, False, True]])  # for every query
    presets = presets_of(mask_painter(SCORES, mask))
    assert presets["as given"] == "101" * 3
    assert "as given" not in presets_of(mask_painter(SCORES, causal_mask(3)))


def test_with_fewer_queries_the_last_stands_at_the_last_key():
    view = mask_painter(torch.zeros(2, 4), tokens=["y", "z"], keys=list("abcd"))
    assert presets_of(view)["causal"] == "1110" + "1111"
    assert view.data["scores"] == [[0.0] * 4] * 2
    assert len(view.data["empty"]) == 2
    assert "“z”" in view.data["empty"][1]
    assert "NaN" in view.data["empty"][1]


@pytest.mark.parametrize("shape", [(1, 1), (1, 10), (10, 1), (10, 10)])
def test_a_painter_of_every_size_fits_a_phone(shape):
    view = mask_painter(
        torch.zeros(shape), tokens=[f"longer token {i}" for i in range(shape[0])], keys=["k"] * shape[1]
    )
    assert re.findall(r'viewBox="0 0 (\d+) ', view.body) == ["340", "340"]
    sizes = {float(w) for w in re.findall(r'<rect [^>]*?width="([\d.]+)"', view.body)}
    assert min(sizes) >= 24
    assert view.data["digits"] == (3 if shape[1] <= 6 else 2)


@pytest.mark.parametrize(
    ("scores", "settings", "error", "message"),
    [
        (None, {}, TypeError, r"scores must be a tensor \(L_q, L_k\), got None"),
        ([[1.0]], {}, TypeError, "got list"),
        (torch.zeros(2, 3, 3), {}, ValueError, r"got \(2, 3, 3\); choose one sentence and one head"),
        (torch.zeros(11, 3), {}, ValueError, r"1 to 10 rows and columns, .* got \(11, 3\)"),
        (torch.zeros(0, 3), {}, ValueError, r"got \(0, 3\)"),
        (SCORES / 0, {}, ValueError, "give the scores before masking"),
        (SCORES, {"mask": torch.ones(3, 3)}, TypeError, r"mask must be a bool tensor, .* got torch.float32"),
        (SCORES, {"mask": "causal"}, TypeError, "got str"),
        (
            SCORES,
            {"mask": torch.ones(1, 1, 3, 3, dtype=torch.bool)},
            ValueError,
            r"broadcast to \(3, 3\), .* mask\[0, 0\]",
        ),
        (SCORES, {"tokens": ["a"]}, ValueError, "tokens must have a label for each of the 3, got 1"),
        (SCORES, {"keys": ["a"]}, ValueError, "keys must have a label for each of the 3, got 1"),
    ],
)
def test_what_a_painter_refuses(unchecked, scores, settings, error, message):
    with pytest.raises(error, match=message):
        mask_painter(scores, **settings)


# leak_detector --------------------------------------------------------------------------------------------------------

CLEAN = torch.tensor([[0.5, 0.0, 0.0], [0.25, 1.5, 0.0], [0.125, 0.0, 2.0]])
LEAKY = torch.tensor([[0.5, 0.75, 0.0], [0.25, 1.5, 0.0001], [0.125, 0.0, 2.0]])
MODELS = {"good": CLEAN, "leaky": LEAKY}


def words_of(view):
    """What is written beside each output, by model.output.token."""
    return dict(re.findall(r'data-k="out([\d.]+)"[^>]*>([^<]+)<', view.body))


def test_every_output_is_said_to_move_to_leak_or_to_be_still():
    words = words_of(leak_detector(MODELS, tokens=TOKENS))
    assert len(words) == 18
    for m, matrix in enumerate(MODELS.values()):
        for i in range(3):
            for j in range(3):
                x = matrix[i, j].item()
                number = "&lt; 0.001" if 0 < x < 0.0005 else f"{x:.3f}"
                kind = "still" if x == 0 else "LEAK" if j > i else "moves"
                assert words[f"{m}.{i}.{j}"] == f"{kind} {number}"


def test_leaks_are_said_in_words():
    view = leak_detector(MODELS, tokens=TOKENS)
    assert view.data["said"] == [
        [
            "No leak when “the” is changed: “the”, “cat”, “sat” may move, and do.",
            "No leak when “cat” is changed: “cat” may move, and does.",
            "No leak when “sat” is changed: “sat” may move, and does.",
        ],
        [
            "No leak when “the” is changed: “the”, “cat”, “sat” may move, and do.",
            "Leak: “the” must not move when “cat” is changed, and yet does.",
            "Leak: “cat” must not move when “sat” is changed, and yet does.",
        ],
    ]
    assert "Of 3 forbidden pairs, “good” leaks in 0, “leaky” leaks in 2." in view.description


def test_no_answer_is_seen_before_it_is_asked_for():
    view = leak_detector(MODELS, tokens=TOKENS)
    states = re.findall(r'<g class="told" data-s="([\d.]+)"( data-stays="1")?( style="display:none")?', view.body)
    assert all(hidden for *_, hidden in states)
    # an arrow picture and a column of the map for each model and token
    pairs = [f"{m}.{j}" for m in range(2) for j in range(3)]
    assert sorted(state for state, stays, _ in states if not stays) == pairs
    assert sorted(state for state, stays, _ in states if stays) == pairs
    unknown = re.findall(r'<g data-u="(\d)">(.*?)</g></g>', view.body)
    assert [j for j, _ in unknown] == ["0", "1", "2"]
    assert all(re.findall(r">([^<>])</text>", column) == ["?"] * 3 for _, column in unknown)
    assert re.findall(r'aria-label="output “(\w+)” will move" aria-pressed="(\w+)"', view.body) == [
        (name, "false") for name in TOKENS
    ]


def test_what_the_script_compares_with_is_what_moves():
    view = leak_detector(MODELS, tokens=TOKENS)
    for moves, matrix in zip(view.data["moves"], MODELS.values(), strict=True):
        assert torch.equal(torch.tensor(moves), matrix.T > 1e-6)  # of each token its outputs
    assert view.data["counts"] == [
        "Of 3 forbidden pairs, “good” leaks in 0.",
        "Of 3 forbidden pairs, “leaky” leaks in 2.",
    ]


def test_the_token_in_the_middle_is_chosen_or_the_one_given():
    for token, settings in ((1, {}), (2, {"token": 2}), (0, {"token": 0})):
        view = leak_detector(MODELS, tokens=TOKENS, **settings)
        assert view.data["token"] == token
        chosen = re.findall(r'aria-label="choose “(\w+)”" aria-pressed="true"', view.body)
        assert chosen == [TOKENS[token]]


def test_a_leak_has_a_colour_an_arrow_and_a_mark_of_its_own():
    body = leak_detector(LEAKY).body
    arrows = re.search(r'<g class="told" data-s="0.1" style[^>]*>(.*?)</g>', body).group(1)
    shafts = re.findall(r'<path d="M84 [^>]*class="([\w ]+)" stroke-width="([\d.]+)"( stroke-dasharray="7 4")?', arrows)
    assert sorted(shafts) == [("line", "1.5", ""), ("line leak", "3.5", ' stroke-dasharray="7 4"')]
    column = re.search(r'<g class="told" data-s="0.1" data-stays="1"[^>]*>(.*?)</g></g>', body).group(1)
    assert re.findall(r'class="(cell[ \w]*)"', column) == ["cell leak", "cell", "cell"]
    assert re.findall(r">(✗|•)<", column) == ["✗", "•"]
    assert re.findall(r'class="end small leak">([^<]+)<', body) == ["LEAK 0.750", "LEAK &lt; 0.001"]
    assert "attention-view .leak rect{fill:var(--leak)" in body
    for dark, colours in enumerate((PALETTE, DARK)):  # in both modes it is the colour of no role
        variables = dict(re.findall(r"--(\w+):(#\w+)", _variables(bool(dark))))
        assert variables["leak"] not in {*colours.values(), variables["weight"]}


def test_the_hint_says_by_which_mask_a_leak_is_judged():
    assert "Allowed here is the causal mask" in leak_detector(CLEAN).note
    assert "judged by the one allowed mask that this view was given" in leak_detector(CLEAN, causal_mask(3)).note


def test_what_is_allowed_and_what_is_rounding_can_be_told():
    everything = torch.ones(3, 3, dtype=torch.bool)
    assert "LEAK" not in leak_detector(LEAKY, everything).body
    assert "LEAK" not in leak_detector(CLEAN + 1e-4, tolerance=1e-3).body
    nothing = leak_detector(torch.zeros(2, 2), torch.eye(2, dtype=torch.bool) & False)
    assert nothing.data["said"][0][0] == "No leak when “0” is changed: no output may move."
    still = leak_detector(torch.zeros(2, 2))
    assert still.data["said"][0][0] == "No leak when “0” is changed: no output that may move does."
    both = leak_detector(torch.ones(3, 3), torch.zeros(3, 3, dtype=torch.bool)).data["said"][0][0]
    assert both == "Leak: “0”, “1”, “2” must not move when “0” is changed, and yet do."


def test_outputs_may_differ_from_the_tokens():
    view = leak_detector(
        torch.rand(2, 4), torch.ones(2, 4, dtype=torch.bool), tokens=list("abcd"), outputs=["left", "right"]
    )
    assert "“left”, “right” may move" in view.data["said"][0][3]
    names = [f"a token that is long {i}" for i in range(10)]
    assert len(leak_detector({f"a model {i}": torch.rand(10, 10) for i in range(6)}, tokens=names).description) <= 600


@pytest.mark.parametrize(
    ("influence", "settings", "error", "message"),
    [
        ({}, {}, ValueError, "1 to 6 models, got 0"),
        ({str(i): CLEAN for i in range(7)}, {}, ValueError, "1 to 6 models, got 7"),
        ({"a": None}, {}, TypeError, r"influence of a must be a tensor \(L, L\), got NoneType; measure it"),
        (torch.zeros(3), {}, ValueError, r"with 1 to 10 tokens, got \(3,\)"),
        (torch.zeros(11, 11), {}, ValueError, r"got \(11, 11\); row i is the output"),
        ({"a": CLEAN, "b": torch.zeros(2, 2)}, {}, ValueError, r"influence of b must be \(3, 3\), got \(2, 2\)"),
        (-CLEAN, {}, ValueError, "distances ≥ 0, got -2; take the norm"),
        (CLEAN / 0, {}, ValueError, "influence of the model must be finite, got NaN.*fully masked row"),
        (torch.zeros(2, 3), {}, ValueError, r"allowed must be given .* got \(2, 3\)"),
        (CLEAN, {"allowed": torch.ones(3, 3)}, TypeError, "allowed must be a bool tensor, .* got torch.float32"),
        (CLEAN, {"allowed": torch.ones(2, 3, dtype=torch.bool)}, ValueError, r"allowed must broadcast to \(3, 3\)"),
        (CLEAN, {"tokens": ["a"]}, ValueError, "tokens must have a label for each of the 3, got 1"),
        (CLEAN, {"token": 3}, ValueError, "token must be at most 2, got 3"),
        (CLEAN, {"token": -1}, ValueError, "token must be at least 0, got -1"),
        (CLEAN, {"token": 1.0}, TypeError, "token must be a whole number, got 1.0"),
        (CLEAN, {"outputs": ["a"]}, ValueError, "outputs must have a label for each of the 3, got 1"),
    ],
)
def test_what_a_detector_refuses(unchecked, influence, settings, error, message):
    with pytest.raises(error, match=message):
        leak_detector(influence, **settings)
