"""The views of the chapter on decoding: what is drawn and counted before anybody touches them."""

import re
from itertools import accumulate

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from course_kit.nn import DecoderLayer, record_attention
from course_kit.nn.cache import KeyValueCache
from course_kit.viz import beam_tree, cache_work, next_token_bars
from course_kit.viz.view_numbers import fixed
from course_lib.decoding import top_p_filter
from tests.viz.drawn import classed, parts, written

# The next token -------------------------------------------------------------------------------------------------------


def test_bars_are_the_softmax_of_the_logits():
    logits = torch.tensor([0.0, 2.0, -1.0, 1.0])
    view = next_token_bars(logits, ["zero", "two", "minus", "one"], shown=2)
    p = logits.softmax(0)
    bars = [p[1].item(), p[3].item(), (p[0] + p[2]).item()]
    name, pale, strong, number = zip(*classed(view, "token"), strict=True)
    assert [node.text for node in name] == ["two", "one", "all 2 others"]
    assert [node.text for node in number] == [fixed(x) for x in bars]
    for rects in (pale, strong):
        assert [float(rect.get("width")) for rect in rects] == pytest.approx([140 * x for x in bars], abs=1e-3)
    entropy = fixed(torch.distributions.Categorical(logits=logits.double()).entropy().item())
    assert view.status == f"Of 4 tokens, 4 remain; the entropy is {entropy} nats, and “two” has {fixed(bars[0])}."
    assert f"“two” {fixed(bars[0])}, “one”" in view.description
    assert f"Of 4 tokens, 4 remain; the entropy is {entropy} nats." in view.description


def test_it_starts_with_the_filter_it_is_given_and_its_scale_ends_above_the_longest_bar():
    logits = torch.tensor([0.31, 0.27, 0.22, 0.15, 0.05]).double().log()
    view = next_token_bars(logits, list("abcde"), top_p=0.7)
    assert 'value="0.7"' in view.body
    assert view.status.startswith("Of 5 tokens, 3 remain; ")
    rows = classed(view, "token")
    assert [row[-1].text for row in rows] == [fixed(x / 0.8) for x in (0.31, 0.27, 0.22)] + ["0.000"] * 2
    assert ["out" in row.get("class") for row in rows] == [False] * 3 + [True] * 2
    assert parts(view)["full"].text == "0.5"
    widths = [float(rect.get("width")) for rect in rows[0][1:3]]
    assert widths == pytest.approx([140 * 0.31 / 0.5, 140 * 0.31 / 0.8 / 0.5], rel=1e-4)


@pytest.mark.parametrize("top_p", [0.25, 0.5, 0.75, 0.8, 1.0])
def test_the_tokens_that_remain_are_those_of_top_p_filter(top_p):
    """Also where their probabilities sum to top_p exactly."""
    for logits in (torch.zeros(4).double(), torch.randn(7).double()):
        remain = int(top_p_filter(logits, top_p).isfinite().sum())
        assert next_token_bars(logits, top_p=top_p).status.startswith(f"Of {len(logits)} tokens, {remain} remain")


@pytest.mark.parametrize(
    ("vocabulary", "rows", "sizes"),
    [
        (1, 1, ["all"]),
        (7, 7, [1, 2, 3, 4, 5, 6, "all"]),
        (3000, 13, [*range(1, 21), 50, 100, 200, 500, 1000, 2000, "all"]),
    ],
)
def test_a_bar_for_all_others_and_round_numbers_for_top_k_where_they_are_needed(vocabulary, rows, sizes):
    view = next_token_bars(torch.randn(vocabulary))
    assert len(classed(view, "token")) == rows
    assert (view.data["sizes"], view.data["shown"]) == (sizes, min(vocabulary, 12))


def test_the_data_give_the_logits_back_to_a_millionth():
    logits = torch.randn(997, dtype=torch.float64) * 3
    back = [-total / 1e6 for total in accumulate(next_token_bars(logits).data["gaps"])]
    wanted = logits.sort(descending=True).values - logits.max()
    assert back == pytest.approx(wanted.tolist(), abs=1.1e-6)


def test_equal_logits_stay_equal_and_different_ones_different():
    gaps = next_token_bars(torch.tensor([2.0, 2.0, 1e-9, 0.0, -5e3, -6e3], dtype=torch.float64)).data["gaps"]
    assert gaps == [0, 0, 2_000_000, 1, 197_999_999, 1]  # nothing is further away than 200


def test_ten_thousand_tokens_and_forty_steps_fit_into_100_kilobytes():
    names = [f"▁Straßenmusikerinnen{i}" for i in range(10_000)]
    for logits in (torch.randn(10_000) * 3, torch.linspace(0, 300, 10_000)):
        assert len(next_token_bars(logits, names, shown=20).html().encode()) <= 100 * 1024
    assert len(cache_work(50, 40, 512, 6).html().encode()) <= 100 * 1024


# Beam search ----------------------------------------------------------------------------------------------------------

# Step 1: a -0.4, b -2.0, c -1.0 → a and c. Step 2, candidates mixed: a·x -1.9, c·<eos> -1.2, a·<eos> -2.4, c·y -1.7.
TOKENS = [["a", "b", "c"], ["x", "<eos>", "<eos>", "y"], ["<eos>", "z"]]
PARENTS = [[-1, -1, -1], [0, 2, 0, 2], [3, 3]]
LOGS = [[-0.4, -2.0, -1.0], [-1.5, -0.2, -2.0, -0.7], [-0.1, -3.0]]


def search(**changes):
    return beam_tree(**{"tokens": TOKENS, "parents": PARENTS, "log_probs": LOGS, "beam_size": 2, **changes})


def test_the_largest_sums_survive():
    view = search()
    assert view.data["told"] == [
        "Step 1 keeps “a” and “c”.",
        "Step 2 keeps “c <eos>” and “c y”.",
        "Step 3 keeps “c y <eos>” and “c y z”.",
    ]
    won = classed(view, "won")  # of each survivor the line from its parent, itself, its sum and a tick
    assert [node.tag for node in won] == ["path", "g", "text", "text"] * 6
    kept = [(pick[2].text, total.text) for pick, total in zip(won[1::4], won[2::4], strict=True)]
    assert kept[:4] == [("a", "−0.400"), ("c", "−1.000"), ("<eos>", "−1.200"), ("y", "−1.700")]
    assert kept[4:] == [("<eos>", "−1.800"), ("z", "−4.700")]
    assert {tick.text for tick in won[3::4]} == {"✓"}


def test_candidates_stand_with_their_hypothesis_the_most_probable_first():
    labels = [node.get("aria-label") for node in classed(search(), "pick")]
    assert labels[:6] == [
        "“a” −0.400, log-probability",
        "“c” −1.000, log-probability",
        "“b” −2.000, log-probability",
        "“x” −1.500, log-probability after “a”",
        "“<eos>” −2.000, log-probability after “a”",
        "“<eos>” −0.200, log-probability after “c”",
    ]


@pytest.mark.parametrize(("penalty", "winner", "shown"), [(0.0, 0, "−1.200"), (0.5, 0, "−0.849"), (2.0, 1, "−0.200")])
def test_finished_hypotheses_and_open_ones_compete_and_the_penalty_decides(penalty, winner, shown):
    view = search(length_penalty=penalty)
    texts, lengths, sums = zip(*view.data["ends"], strict=True)
    assert (texts, lengths) == (("c <eos>", "c y <eos>", "c y z"), (2, 3, 3))
    assert sums == pytest.approx((-1.2, -1.8, -4.7), abs=1e-6)
    drawn = parts(view)
    assert [i for i in range(3) if "high" in drawn[f"end{i}"].get("class")] == [winner]
    assert drawn[f"end{winner}"][1].text == shown
    assert f"Best at length penalty {penalty:g}: “{texts[winner]}”, score {shown}." in view.description


@pytest.mark.parametrize("seed", range(5))
def test_the_survivors_are_those_of_a_search_in_the_whole_vocabulary(seed):
    """Candidates: of each open hypothesis its two best tokens of eleven."""
    torch.manual_seed(seed)
    # the next token given the last; 0 starts, 10 ends
    table = (torch.randn(11, 11, dtype=torch.float64) * 2).log_softmax(-1)
    tokens, parents, log_probs, wanted = [], [], [], []
    everything, alive = {(0,): 0.0}, {-1: (0,)}
    for _ in range(3):
        best = {parent: table[path[-1]].topk(2) for parent, path in alive.items()}
        tokens.append([str(i) for two in best.values() for i in two.indices.tolist()])
        parents.append([parent for parent in best for _ in range(2)])
        log_probs.append([x for two in best.values() for x in two.values.tolist()])
        paths = [(*alive[parent], int(token)) for parent, token in zip(parents[-1], tokens[-1], strict=True)]
        full = {(*path, i): x + table[path[-1], i].item() for path, x in everything.items() for i in range(11)}
        survivors = sorted(full, key=full.get, reverse=True)[:2]
        wanted.append([" ".join(map(str, path[1:])) for path in survivors])
        everything = {path: full[path] for path in survivors if path[-1] != 10}
        alive = {i: path for i, path in enumerate(paths) if path in everything}
    view = beam_tree(tokens, parents, log_probs, 2, eos="10")
    assert [re.findall("“(.*?)”", words) for words in view.data["told"]] == wanted


def test_parents_and_log_probabilities_may_be_tensors():
    tensors = {"parents": map(torch.tensor, PARENTS), "log_probs": (torch.tensor(x, dtype=torch.double) for x in LOGS)}
    assert search(**{name: list(given) for name, given in tensors.items()}) == search()


def test_of_equal_sums_the_first_survives_and_few_candidates_all_do():
    assert beam_tree([["a", "b"]], [[-1, -1]], [[-1.0, -1.0]], 1).data["told"] == ["Step 1 keeps “a”."]
    view = beam_tree([["a", "<eos>"]], [[-1, -1]], [[-1.0, -0.5]], 4)
    assert len(classed(view, "pick", "won")) == 2
    assert view.data["ends"] == [["<eos>", 1, -0.5], ["a", 1, -1.0]]
    assert view.status == "2 more to pick."


@pytest.mark.parametrize(
    ("first", "second", "shown"),
    [
        ("abcd", "fghij", {"abcd fghij"}),
        ("abcde", "fghij", {"… fghij"}),
        ("Donaudampfschiff", "b", {"Donaudam…", "Donaudamp…", "… b"}),  # as a candidate, a hypothesis, and its end only
        ("a", "Donaudampfschiff", {"… Donauda…"}),
    ],
)
def test_words_are_cut_where_they_would_not_fit(first, second, shown):
    view = beam_tree(
        [[first, "x"], [second, "y"], ["z"]], [[-1, -1], [0, 0], [0]], [[-0.1, -3.0], [-0.2, -9.0], [-0.3]], 1
    )
    assert shown <= set(written(view))
    assert view.data["ends"][0][0] == f"{first} {second} z"


def test_a_large_tree_has_a_description_of_600_characters_or_fewer():
    tokens, log_probs = [[f"token{i}" for i in range(16)]] * 6, [[-0.1] * 4 + [-5.0] * 12] * 6
    view = beam_tree(tokens, [[-1] * 16] + [[0, 1, 2, 3] * 4] * 5, log_probs, 4)
    assert len(view.description) <= 600
    assert view.description.endswith("…")
    assert len(classed(view, "pick")) == 96


# Work with and without a cache ----------------------------------------------------------------------------------------

LEN_SOURCE, NUM_STEPS, D_MODEL, HEADS, D_FF = 7, 5, 12, 3, 17


def counted(layer, *inputs, **options):
    """What it returns, and the multiply-adds of the explicit path; PyTorch counts a product and a sum as two."""
    with torch.no_grad(), record_attention(layer), FlopCounterMode(display=False) as counter:
        result = layer(*inputs, **options)
    assert counter.get_total_flops() % 2 == 0
    return result, counter.get_total_flops() // 2


def counts(view, place):
    return [int(state[place].replace(",", "")) for state in view.data["states"]]


def test_both_counts_are_those_of_pytorchs_counter_on_a_decoder_layer():
    layer = DecoderLayer(D_MODEL, HEADS, D_FF).eval()
    target, memory = torch.randn(1, NUM_STEPS, D_MODEL), torch.randn(1, LEN_SOURCE, D_MODEL)
    without, cached, caches = [], [], (KeyValueCache(), KeyValueCache(is_static=True))
    for t in range(1, NUM_STEPS + 1):
        wanted, count = counted(layer, target[:, :t], memory, torch.ones(t, t, dtype=torch.bool).tril())
        without.append(count)
        output, count = counted(layer, target[:, t - 1 : t], memory, cache=caches)
        cached.append(count)
        torch.testing.assert_close(output, wanted[:, -1:])  # it is the same computation
    view = cache_work(LEN_SOURCE, NUM_STEPS, D_MODEL, 1, d_ff=D_FF)
    sums = [list(accumulate(work)) for work in (without, cached)]
    assert [counts(view, place) for place in (4, 9, 5, 10)] == [without, cached, *sums]
    ratios = [fixed(a / b, 2) for a, b in zip(*sums, strict=True)]
    assert [state[6] for state in view.data["states"]] == ratios
    assert ratios[0] == "1.00"
    numbers = sum(cache.keys.numel() + cache.values.numel() for cache in caches)
    assert view.data["states"][-1][-1] == f"{numbers:,}; {fixed(numbers * 4 / 2**20)}"
    three = cache_work(LEN_SOURCE, NUM_STEPS, D_MODEL, 3, d_ff=D_FF)
    assert [counts(three, place) for place in (4, 9)] == [[3 * n for n in work] for work in (without, cached)]
    assert cache_work(7, 4, 8, 1).data == cache_work(7, 4, 8, 1, d_ff=32).data  # four times as many if not given


def test_the_memory_of_a_cache_is_in_mebibytes():
    """2 · 6 layers · (40 + 50) positions · 512 features of four bytes each: 2.212 megabytes."""
    assert "The cache then holds 552,960 numbers, 2.109 MiB in float32." in cache_work(50, 40, 512, 6).description


def cells(path):
    """The cells (row, column) that a path of strokes covers."""
    covered = []
    for x, y, command, end in re.findall(r"M(\d+)[ ]?(-?\d+)([hH])(\d+)", path):
        covered += [(int(y), j) for j in range(int(x), int(end) + (int(x) if command == "h" else 0))]
    assert len(set(covered)) == len(covered)
    return set(covered)


def test_cells_of_each_kind_are_where_they_are_computed():
    view = cache_work(7, 6, 8, 1)
    for t, (paths, *_) in enumerate(view.data["states"], 1):
        again, masked, new, kept, new_with = map(cells, paths)
        assert new == new_with == {(t - 1, j) for j in range(t)} | {(-2, t - 1)}
        assert masked == {(i, j) for i in range(t) for j in range(i + 1, t)}
        assert again == {(i, j) for i in range(t - 1) for j in range(i + 1)} | {(-2, j) for j in range(t - 1)}
        assert kept == {(-2, j) for j in range(t - 1)}


def test_the_picture_shows_the_step_in_the_middle():
    view = cache_work(7, 5, 8, 2)
    drawn, (paths, said, *texts) = parts(view), view.data["states"][2]
    assert [drawn[f"path{i}"].get("d") for i in range(5)] == paths
    assert [drawn[f"text{i}"].text for i in range(10)] == texts
    assert (texts[0], texts[5]) == ("3 × 3 = 9", "1 × 3 = 3")
    assert view.status == said
    more = f"So far {texts[4]} times as much work without a cache"
    assert said == f"{more}; step 3: {texts[2]} multiply-adds, with one {texts[7]}."
    assert view.data["states"][-1][1] in view.description
