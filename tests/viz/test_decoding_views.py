"""The views of the chapter on decoding: what is drawn and counted before anybody touches them."""

import re
from itertools import accumulate
from xml.etree import ElementTree

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from course_kit.nn import DecoderLayer, record_attention
from course_kit.viz import beam_tree, cache_work, next_token_bars
from course_kit.viz.view_numbers import fixed
from course_lib.decoding import top_p_filter
from course_lib.multi_head import merge_heads, split_heads
from course_lib.scaled_dot_product import scaled_dot_product_attention


def drawings(view):
    return [ElementTree.fromstring(svg) for svg in re.findall(r"<svg.*?</svg>", view.body, re.DOTALL)]


def parts(view):
    return {node.get("data-k"): node for svg in drawings(view) for node in svg.iter() if node.get("data-k")}


def classed(view, *names):
    """Nodes that have all these classes."""
    return [n for svg in drawings(view) for n in svg.iter() if set(names) <= set(n.get("class", "").split())]


# The next token -------------------------------------------------------------------------------------------------------


def test_bars_are_the_softmax_of_the_logits():
    logits = torch.tensor([0.0, 2.0, -1.0, 1.0])
    view = next_token_bars(logits, ["zero", "two", "minus", "one"], shown=2)
    rows = [[child.text for child in row if child.tag == "text"] for row in classed(view, "token")]
    p = logits.softmax(0)
    assert rows == [
        ["two", fixed(p[1].item())],
        ["one", fixed(p[3].item())],
        ["all 2 others", fixed((p[0] + p[2]).item())],
    ]
    widths = [[float(child.get("width")) for child in row if child.tag == "rect"] for row in classed(view, "token")]
    assert widths[0] == pytest.approx([140 * p[1].item()] * 2, abs=1e-3)
    assert widths[2] == pytest.approx([140 * (p[0] + p[2]).item()] * 2, abs=1e-3)
    entropy = fixed(torch.distributions.Categorical(logits=logits.double()).entropy().item())
    assert view.status.startswith(f"Of 4 tokens, 4 remain; the entropy is {entropy} nats, and “two” has ")
    assert f"“two” {fixed(p[1].item())}, “one”" in view.description
    assert f"Of 4 tokens, 4 remain; the entropy is {entropy} nats." in view.description


def test_it_starts_with_the_filter_it_is_given_and_its_scale_ends_above_the_longest_bar():
    logits = torch.tensor([0.31, 0.27, 0.22, 0.15, 0.05]).double().log()
    view = next_token_bars(logits, list("abcde"), top_p=0.7)
    assert 'value="0.7"' in view.body
    assert view.status.startswith("Of 5 tokens, 3 remain; ")
    rows = classed(view, "token")
    assert [row[-1].text for row in rows] == [fixed(x / 0.8) for x in (0.31, 0.27, 0.22)] + ["0.000"] * 2
    assert ["out" in row.get("class").split() for row in rows] == [False] * 3 + [True] * 2
    assert parts(view)["full"].text == "0.5"
    assert float(rows[0][1].get("width")) == pytest.approx(140 * 0.31 / 0.5, rel=1e-4)
    assert float(rows[0][2].get("width")) == pytest.approx(140 * 0.31 / 0.8 / 0.5, rel=1e-4)
    with pytest.raises(ValueError, match=r"top_p must be a multiple of 0\.05 from 0\.05 to 1"):
        next_token_bars(logits, top_p=0.93)


@pytest.mark.parametrize("top_p", [0.25, 0.5, 0.75, 0.8, 1.0])
def test_the_tokens_that_remain_are_those_of_top_p_filter(top_p):
    """Also where their probabilities sum to top_p exactly."""
    for logits in (torch.zeros(4).double(), torch.randn(7).double()):
        remain = int(top_p_filter(logits, top_p).isfinite().sum())
        assert next_token_bars(logits, top_p=top_p).status.startswith(f"Of {len(logits)} tokens, {remain} remain")


def test_no_bar_for_others_where_all_are_shown():
    view = next_token_bars(torch.randn(7))
    assert len(classed(view, "token")) == 7
    assert view.data["shown"] == 7
    assert view.data["sizes"] == [1, 2, 3, 4, 5, 6, "all"]


def test_one_token_is_certain():
    view = next_token_bars(torch.tensor([3.0]), ["only"])
    assert "Of 1 tokens, 1 remain; the entropy is 0.000 nats" in view.status
    assert view.data == {"gaps": [0], "sizes": ["all"], "shown": 1}


def test_of_a_large_vocabulary_top_k_goes_through_round_numbers():
    sizes = next_token_bars(torch.randn(3000)).data["sizes"]
    assert sizes == [*range(1, 21), 50, 100, 200, 500, 1000, 2000, "all"]


def test_the_data_give_the_logits_back_to_a_millionth():
    logits = torch.randn(997, dtype=torch.float64) * 3
    back = [-total / 1e6 for total in accumulate(next_token_bars(logits).data["gaps"])]
    wanted = logits.sort(descending=True).values - logits.max()
    assert back == pytest.approx(wanted.tolist(), abs=1.1e-6)


def test_equal_logits_stay_equal_and_different_ones_different():
    gaps = next_token_bars(torch.tensor([2.0, 2.0, 1e-9, 0.0, -5e3, -6e3], dtype=torch.float64)).data["gaps"]
    assert gaps == [0, 0, 2_000_000, 1, 197_999_999, 1]  # nothing is further away than 200


def test_ten_thousand_tokens_fit_into_100_kilobytes():
    names = [f"▁Straßenmusikerinnen{i}" for i in range(10_000)]
    for logits in (torch.randn(10_000) * 3, torch.linspace(0, 300, 10_000)):
        assert len(next_token_bars(logits, names, shown=20).html().encode()) <= 100 * 1024


# Beam search ----------------------------------------------------------------------------------------------------------

# Step 1: a -0.4, b -2.0, c -1.0 → a and c. Step 2, candidates mixed: a·x -1.9, c·<eos> -1.2, a·<eos> -2.4, c·y -1.7.
TOKENS = [["a", "b", "c"], ["x", "<eos>", "<eos>", "y"], ["<eos>", "z"]]
PARENTS = [[-1, -1, -1], [0, 2, 0, 2], [3, 3]]
LOGS = [[-0.4, -2.0, -1.0], [-1.5, -0.2, -2.0, -0.7], [-0.1, -3.0]]


def search(**changes):
    return beam_tree(**{"tokens": TOKENS, "parents": PARENTS, "log_probs": LOGS, "beam_size": 2, **changes})


def marked(view):
    """Per step what the picture says is kept: token and sum."""
    kept = []
    for svg in drawings(view)[:-1]:
        nodes = list(svg)
        for i, node in enumerate(nodes):
            if "pick" in node.get("class", "").split():
                won = "won" in node.get("class").split()
                assert won == (nodes[i + 2].text == "✓" if i + 2 < len(nodes) else False)
                assert won == ("won" in nodes[i + 1].get("class").split())
                assert won == ("won" in nodes[i - 1].get("class").split())  # the line to its parent
                if won:
                    kept.append((svg.get("aria-label")[5], node[2].text, nodes[i + 1].text))
    return kept


def test_the_largest_sums_survive():
    assert marked(search()) == [
        ("1", "a", "−0.400"),
        ("1", "c", "−1.000"),
        ("2", "<eos>", "−1.200"),
        ("2", "y", "−1.700"),
        ("3", "<eos>", "−1.800"),
        ("3", "z", "−4.700"),
    ]
    assert search().data["told"] == [
        "Step 1 keeps “a” and “c”.",
        "Step 2 keeps “c <eos>” and “c y”.",
        "Step 3 keeps “c y <eos>” and “c y z”.",
    ]


def test_candidates_stand_with_their_hypothesis_the_most_probable_first():
    labels = [node.get("aria-label") for node in classed(search(), "pick")]
    assert labels == [
        "“a”, log-probability −0.400",
        "“c”, log-probability −1.000",
        "“b”, log-probability −2.000",
        "“x” after “a”, log-probability −1.500",
        "“<eos>” after “a”, log-probability −2.000",
        "“<eos>” after “c”, log-probability −0.200",
        "“y” after “c”, log-probability −0.700",
        "“<eos>” after “c y”, log-probability −0.100",
        "“z” after “c y”, log-probability −3.000",
    ]


def test_finished_hypotheses_and_open_ones_compete_in_the_end():
    ends = search().data["ends"]
    assert [(text, n) for text, n, _ in ends] == [("c <eos>", 2), ("c y <eos>", 3), ("c y z", 3)]
    assert [total for *_, total in ends] == pytest.approx([-1.2, -1.8, -4.7], abs=1e-6)


@pytest.mark.parametrize(("penalty", "winner", "shown"), [(0.0, 0, "−1.200"), (0.5, 0, "−0.849"), (2.0, 1, "−0.200")])
def test_the_penalty_decides_who_wins(penalty, winner, shown):
    view = search(length_penalty=penalty)
    drawn = parts(view)
    assert [i for i in range(3) if "high" in drawn[f"end{i}"].get("class")] == [winner]
    assert drawn[f"end{winner}"][1].text == shown
    text = ["c <eos>", "c y <eos>"][winner]
    assert f"Best at length penalty {penalty:g}: “{text}”, score {shown}." in view.description


def test_a_likely_token_does_not_save_an_unlikely_hypothesis():
    view = beam_tree([["a", "b"], ["x", "y", "z"]], [[-1, -1], [0, 0, 1]], [[-0.1, -3.0], [-1.0, -1.5, -0.2]], 2)
    assert view.data["told"][1] == "Step 2 keeps “a x” and “a y”."


@pytest.mark.parametrize("seed", range(5))
def test_the_survivors_are_those_of_a_search_in_the_whole_vocabulary(seed):
    """Candidates: of each open hypothesis its two best tokens of eleven."""
    torch.manual_seed(seed)
    table = (torch.randn(11, 11, dtype=torch.float64) * 2).log_softmax(
        -1
    )  # next token given the last; 0 starts, 10 ends
    everything, tokens, parents, log_probs = {(0,): 0.0}, [], [], []
    alive, wanted = {-1: (0,)}, []
    for _ in range(3):
        tokens.append([])
        parents.append([])
        log_probs.append([])
        paths = []
        for parent, path in alive.items():
            best = table[path[-1]].topk(2)
            tokens[-1] += [str(i) for i in best.indices.tolist()]
            parents[-1] += [parent] * 2
            log_probs[-1] += best.values.tolist()
            paths += [(*path, i) for i in best.indices.tolist()]
        full = {
            (*path, i): total + table[path[-1], i].item()
            for path, total in everything.items()
            for i in range(11)
        }  # fmt: skip
        survivors = sorted(full, key=full.get, reverse=True)[:2]
        wanted.append([" ".join(map(str, path[1:])) for path in survivors])
        everything = {path: full[path] for path in survivors if path[-1] != 10}
        alive = {i: path for i, path in enumerate(paths) if path in everything}
    view = beam_tree(tokens, parents, log_probs, 2, eos="10")
    assert [re.findall("“(.*?)”", words) for words in view.data["told"]] == wanted


def test_parents_and_log_probabilities_may_be_tensors():
    as_tensors = search(
        parents=[torch.tensor(p) for p in PARENTS], log_probs=[torch.tensor(x, dtype=torch.double) for x in LOGS]
    )
    assert as_tensors == search(log_probs=LOGS)


def test_of_equal_sums_the_first_survives():
    view = beam_tree([["a", "b"]], [[-1, -1]], [[-1.0, -1.0]], 1)
    assert view.data["told"] == ["Step 1 keeps “a”."]


def test_fewer_candidates_than_beams_all_survive():
    view = beam_tree([["a", "<eos>"]], [[-1, -1]], [[-1.0, -0.5]], 4)
    assert len(classed(view, "pick", "won")) == 2
    assert view.data["ends"] == [["<eos>", 1, -0.5], ["a", 1, -1.0]]


def test_long_words_are_cut_where_they_would_not_fit():
    tokens = [["Donaudampfschiff", "b"], ["c", "<eos>"], ["d"]]
    view = beam_tree(tokens, [[-1, -1], [0, 0], [0]], [[-0.1, -3.0], [-0.2, -9.0], [-0.3]], 1)
    texts = [node.text for svg in drawings(view)[:3] for node in svg.iter() if node.tag.endswith("text")]
    assert "Donaudam…" in texts  # as a candidate
    assert "Donaudamp…" in texts  # as a hypothesis
    assert "… c" in texts  # of the last step's only the end fits
    assert view.data["ends"][0][0] == "Donaudampfschiff c d"
    long = beam_tree(
        [["a", "b"], ["Donaudampfschiff", "b"], ["c"]], [[-1, -1], [0, 0], [0]], [[-0.1, -3.0]] * 2 + [[-1.0]], 1
    )
    assert "… Donauda…" in [n.text for svg in drawings(long) for n in svg.iter()]


@pytest.mark.parametrize(
    ("first", "second", "shown"),
    [("abcd", "fghij", "abcd fghij"), ("abcde", "fghij", "… fghij"), ("a", "b", "a b")],
)
def test_a_hypothesis_of_ten_characters_is_shown_whole(first, second, shown):
    view = beam_tree(
        [[first, "x"], [second, "y"], ["z"]], [[-1, -1], [0, 0], [0]], [[-0.1, -3.0], [-0.2, -9.0], [-0.3]], 1
    )
    assert shown in [node.text for node in drawings(view)[2].iter() if node.tag.endswith("text")]


def test_a_large_tree_has_a_description_of_600_characters_or_fewer():
    tokens = [[f"token{i}" for i in range(16)]] * 6
    parents = [[-1] * 16] + [[0, 1, 2, 3] * 4] * 5
    log_probs = [[-0.1] * 4 + [-5.0] * 12] * 6
    view = beam_tree(tokens, parents, log_probs, 4)
    assert len(view.description) <= 600
    assert view.description.endswith("…")
    assert len(classed(view, "pick")) == 96


# Work with and without a cache ----------------------------------------------------------------------------------------

LEN_SOURCE, NUM_STEPS, D_MODEL, HEADS, D_FF = 7, 5, 12, 3, 17


def counted(run, *inputs):
    """What it returns, and its multiply-adds; PyTorch counts a product and a sum as two."""
    with torch.no_grad(), FlopCounterMode(display=False) as counter:
        result = run(*inputs)
    assert counter.get_total_flops() % 2 == 0
    return result, counter.get_total_flops() // 2


def cached_step(layer, x, memory, own, cross):
    """One position through a decoder layer; own and cross hold its keys and values, and are filled here."""

    def attend(module, query, new, cache):
        if new is not None:
            fresh = [split_heads(project(new), HEADS) for project in (module.k_proj, module.v_proj)]
            cache[:] = [torch.cat(both, 2) for both in zip(cache, fresh, strict=True)] if cache else fresh
        heads, _ = scaled_dot_product_attention(split_heads(module.q_proj(query), HEADS), *cache)
        return module.out_proj(merge_heads(heads))

    x = layer.norm1(x + attend(layer.self_attention, x, x, own))
    x = layer.norm2(x + attend(layer.cross_attention, x, None if cross else memory, cross))
    return layer.norm3(x + layer.feed_forward(x))


def counts(view, place):
    return [int(state[place].replace(",", "")) for state in view.data["states"]]


def test_both_counts_are_those_of_pytorchs_counter_on_a_decoder_layer():
    layer = DecoderLayer(D_MODEL, HEADS, D_FF).eval()
    target, memory = torch.randn(1, NUM_STEPS, D_MODEL), torch.randn(1, LEN_SOURCE, D_MODEL)
    without, cached, own, cross = [], [], [], []
    for t in range(1, NUM_STEPS + 1):
        causal = torch.ones(t, t, dtype=torch.bool).tril()
        with record_attention(layer):  # the explicit path, whose products the counter sees
            wanted, count = counted(layer, target[:, :t], memory, causal)
        without.append(count)
        output, count = counted(cached_step, layer, target[:, t - 1 : t], memory, own, cross)
        cached.append(count)
        torch.testing.assert_close(output, wanted[:, -1:])  # it is the same computation
    view = cache_work(LEN_SOURCE, NUM_STEPS, D_MODEL, 1, d_ff=D_FF)
    assert counts(view, 4) == without
    assert counts(view, 9) == cached
    assert counts(view, 5) == list(accumulate(without))
    assert counts(view, 10) == list(accumulate(cached))
    ratios = [fixed(a / b, 2) for a, b in zip(accumulate(without), accumulate(cached), strict=True)]
    assert [state[6] for state in view.data["states"]] == ratios
    assert ratios[0] == "1.00"
    numbers = sum(tensor.numel() for tensor in [*own, *cross])
    assert view.data["states"][-1][-1] == f"{numbers:,}; {fixed(numbers * 4 / 2**20)}"


def test_the_memory_of_a_cache_is_in_mebibytes():
    """2 · 6 layers · (40 + 50) positions · 512 features of four bytes each: 2.212 megabytes."""
    view = cache_work(50, 40, 512, 6)
    assert view.data["states"][-1][-1] == "552,960; 2.109"
    assert "The cache then holds 552,960 numbers, 2.109 MiB in float32." in view.description


def test_layers_multiply_all_counts():
    one, three = cache_work(7, 4, 8, 1), cache_work(7, 4, 8, 3)
    for place in (4, 5, 9, 10):
        assert counts(three, place) == [3 * count for count in counts(one, place)]
    assert [state[6] for state in one.data["states"]] == [state[6] for state in three.data["states"]]


def test_the_hidden_features_are_four_times_the_others_if_not_given():
    assert cache_work(7, 4, 8, 1).data == cache_work(7, 4, 8, 1, d_ff=32).data


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
        scores = [cell for cell in again | masked | new if cell[0] >= 0]
        assert len(scores) == t * t == int(view.data["states"][t - 1][2].split("= ")[1])


def test_the_picture_shows_the_step_in_the_middle():
    view = cache_work(7, 5, 8, 2)
    drawn, (paths, said, *texts) = parts(view), view.data["states"][2]
    assert [drawn[f"path{i}"].get("d") for i in range(5)] == paths
    assert [drawn[f"text{i}"].text for i in range(10)] == texts
    assert texts[0] == "3 × 3 = 9"
    assert texts[5] == "1 × 3 = 3"
    assert said == (
        f"So far {texts[4]} times as much work without a cache; step 3: {texts[2]} multiply-adds, with one {texts[7]}."
    )
    assert view.data["states"][-1][1] in view.description


def test_the_work_of_forty_steps_is_still_small():
    assert len(cache_work(50, 40, 512, 6).html().encode()) <= 100 * 1024


# What cannot be shown -------------------------------------------------------------------------------------------------


def a_step(log_probs, parents=(-1, -1), tokens=("a", "b")):
    return lambda: beam_tree([list(tokens)], [list(parents)], [log_probs], 2)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: next_token_bars(torch.randn(2, 3)), r"\(V,\) with 1 to 10,000 tokens, got \(2, 3\); take one"),
        (lambda: next_token_bars(torch.randn(0)), r"got \(0,\)"),
        (lambda: next_token_bars(torch.randn(10_001)), r"got \(10001,\).*topk\(10000\)"),
        (lambda: next_token_bars(torch.tensor([0.0, torch.nan])), "logits must be finite, got NaN or infinity"),
        (lambda: next_token_bars(torch.tensor([0.0, -torch.inf])), "as they are before a filter such as top_p_filter"),
        (lambda: next_token_bars(torch.randn(3), ["a"]), "tokens must have a label for each of the 3, got 1"),
        (lambda: next_token_bars(torch.randn(3), shown=0), "shown must be at least 1, got 0; the other tokens"),
        (lambda: next_token_bars(torch.randn(3), shown=2.0), r"shown must be a whole number, got 2\.0; pass an int"),
        (lambda: search(beam_size=0), "beam_size must be at least 1, got 0"),
        (lambda: search(beam_size=5), "beam_size must be at most 4, got 5; larger trees"),
        (lambda: search(length_penalty=2.5), r"length_penalty must be a finite number between 0 and 2, got 2\.5"),
        (lambda: search(length_penalty=0.33), r"length_penalty must be a multiple of 0.05 from 0 to 2.*got 0\.33"),
        (lambda: search(parents=PARENTS[:2]), "have the same 1 to 6 steps, got 3, 2 and 3; show the first"),
        (lambda: beam_tree([], [], [], 2), "have the same 1 to 6 steps, got 0, 0 and 0"),
        (lambda: beam_tree([["a"]] * 7, [[0]] * 7, [[-1.0]] * 7, 2), "the same 1 to 6 steps, got 7, 7 and 7"),
        (a_step([-1.0]), r"step 1 must have the same 1 to 16 candidates .* got 2, 2 and \(1,\); give each"),
        (a_step([-1.0, -1.0], parents=[-1]), r"got 2, 1 and \(2,\)"),
        (a_step([[-1.0, -1.0]] * 2), r"log_probs\[0\] must be a number, got \[-1\.0, -1\.0\]"),
        (a_step([-1.0] * 17, [-1] * 17, ["a"] * 17), r"got 17, 17 and \(17,\)"),
        (a_step([], [], []), r"got 0, 0 and \(0,\)"),
        (a_step([-1.0, 0.25]), r"log_probs of step 1 must be finite and at most 0, got \[-1\.0, 0\.25\]; log_softmax"),
        (a_step([-1.0, -torch.inf]), r"must be finite and at most 0, got \[-1\.0, -inf\]"),
        (a_step([-1.0, -1.0], parents=[-1, 0]), r"“b” of step 1 has parent 0, .*; possible are \[-1\]"),
        (lambda: search(parents=[*PARENTS[:2], [1, 3]]), r"“<eos>” of step 3 has parent 1, .*; possible are \[3\]"),
        (lambda: search(parents=[PARENTS[0], [0] * 4, [0, 0]]), r"step 2 has no candidate .* survivors \[2\]"),
        (lambda: cache_work(0, 5, 8, 1), "len_source must be at least 1, got 0"),
        (lambda: cache_work(7, 41, 8, 1), "num_steps must be at most 40, got 41; each step is a row"),
        (lambda: cache_work(7, 5, 8.5, 1), r"d_model must be a whole number, got 8\.5"),
        (lambda: cache_work(7, 5, 8, -1), "num_layers must be at least 1, got -1"),
        (lambda: cache_work(7, 5, 8, 1, d_ff=True), "d_ff must be a whole number, got True"),
    ],
)  # fmt: skip
@pytest.mark.usefixtures("unchecked")
def test_what_cannot_be_shown_is_refused(call, message):
    with pytest.raises((TypeError, ValueError), match=message):
        call()


@pytest.mark.usefixtures("unchecked")
def test_logits_are_a_tensor():
    with pytest.raises(TypeError, match=r"logits must be a tensor \(V,\), got list; a model's are logits\[batch, -1\]"):
        next_token_bars([0.1, 0.2])
