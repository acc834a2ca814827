"""Static figures: what a map of attention shows, says and refuses."""

import os
import pickle
from itertools import pairwise

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pytest
import torch
from PIL import Image

from course_kit.viz import PALETTE, WEIGHTS, attention_map, describe, description_of, save_figure, use_style


@pytest.fixture(autouse=True)
def drawing():
    with mpl.rc_context({"backend": "Agg"}):
        use_style()
        yield
        plt.close("all")


def weights_of(*shape):
    return torch.randn(shape).softmax(-1)


def texts(labels):
    return [label.get_text() for label in labels]


def are_inside(ax):
    """Whether every label of the axes lies within the picture."""
    ax.figure.canvas.draw()
    labels = [t for t in (*ax.get_xticklabels(), *ax.get_yticklabels(), ax.xaxis.label, ax.yaxis.label) if t.get_text()]
    width, height = ax.figure.canvas.get_width_height()
    boxes = [label.get_window_extent() for label in labels]
    return all(b.x0 >= -1 and b.y0 >= -1 and b.x1 <= width + 1 and b.y1 <= height + 1 for b in boxes)


# The map.


def test_a_cell_has_the_colour_of_its_weight_on_the_scale_from_0_to_1():
    (mesh,) = attention_map(torch.tensor([[0.25, 0.75, 0.0]])).collections
    assert mesh.get_clim() == (0.0, 1.0)
    assert mesh.get_array().tolist() == [[0.25, 0.75, 0.0]]
    assert mesh.get_cmap() is WEIGHTS


def test_queries_are_rows_and_keys_are_columns():
    ax = attention_map(weights_of(2, 3), ["Donaudampf\nschifffahrtsgesellschaft", "b"], list("xyz"), title="who looks")
    assert texts(ax.get_yticklabels()) == ["Donaudampf schi…", "b"]
    assert texts(ax.get_xticklabels()) == ["x", "y", "z"]
    assert ax.get_yticks().tolist() == [0.5, 1.5]  # the middle of its row
    assert ax.yaxis_inverted()  # the first query on top
    assert (ax.get_ylabel(), ax.get_xlabel()) == ("query", "key")
    assert ax.xaxis.label.get_color() == PALETTE["key"]
    assert ax.get_title("left") == "who looks"


def test_values_are_printed_up_to_eight_by_eight_and_a_colour_bar_stands_in_for_them():
    for shape, printed in (((8, 8), 64), ((2, 8), 16), ((1, 1), 1), ((9, 3), 0), ((3, 9), 0)):
        ax = attention_map(weights_of(*shape))
        assert len(ax.texts) == printed
        assert len(ax.figure.axes) == (1 if printed else 2)
        assert are_inside(ax)


def test_it_draws_where_it_is_told_to():
    figure, (left, right) = plt.subplots(1, 2)
    assert attention_map(weights_of(2, 13), ax=right) is right
    assert not left.collections
    assert len(figure.axes) == 2  # and takes no room for a colour bar


def test_every_dtype_can_be_drawn():
    for dtype in (torch.float16, torch.bfloat16, torch.float64):
        ax = attention_map(weights_of(3, 5).to(dtype).requires_grad_())
        assert ax.collections[0].get_array().shape == (3, 5)
        assert "not to 1" not in description_of(ax)  # rounding is no missing weight


@pytest.mark.parametrize("shape", [(200, 200), (1, 200), (200, 2)])
def test_of_many_tokens_every_tenth_is_named_and_nothing_overlaps(shape):
    words = [f"a long word {i}" for i in range(200)]
    ax = attention_map(weights_of(*shape), words[: shape[0]], words[: shape[1]])
    assert are_inside(ax)
    box = ax.get_window_extent()
    assert min(box.width, box.height) > 50
    for axis, length, size in ((ax.xaxis, shape[1], box.width), (ax.yaxis, shape[0], box.height)):
        if length == 200:
            assert texts(axis.get_ticklabels()) == words[::10]
        assert all((b - a) * size / length >= 15 for a, b in pairwise(axis.get_ticklocs()))


def test_up_to_24_labels_stand_on_an_axis():
    for length, step in ((24, 1), (25, 2), (48, 2), (49, 5), (120, 5), (121, 10)):
        ax = attention_map(weights_of(length, 2))
        assert texts(ax.get_yticklabels()) == [str(i) for i in range(0, length, step)]


# What is refused.


@pytest.mark.parametrize(
    ("weights", "labels", "error", "message"),
    [
        (torch.ones(2, 3, 3, 3), {}, ValueError, r"a matrix \(L_q, L_k\).*got \(2, 3, 3, 3\).*weights\[batch, head\]"),
        (torch.ones(0, 3), {}, ValueError, r"at least one entry, got \(0, 3\)"),
        (torch.tensor([[-2.0, 3.0]]), {}, ValueError, r"\[0, 1\], got -2.000 … 3.000; are these scores"),
        (torch.tensor([[0.5, float("inf")]]), {}, ValueError, r"\[0, 1\], got 0.500 … inf"),
        (torch.ones(1, 2), {"keys": ["a"]}, ValueError, r"keys must have a label for each of the 2, got 1"),
        (torch.ones(1, 2), {"queries": ["a", "b"]}, ValueError, r"queries must have a label for each of the 1, got 2"),
        (None, {}, TypeError, r"got None; the fused path computes no weights.*need_weights=True"),
        ((torch.ones(1, 2), torch.ones(1, 2)), {}, TypeError, r"got tuple; attention returns \(output, weights\)"),
        (np.ones((1, 2)), {}, TypeError, r"got ndarray; torch.as_tensor"),
    ],
)
def test_what_are_no_weights_is_refused(unchecked, weights, labels, error, message):
    for function in (attention_map, describe):
        with pytest.raises(error, match=message):
            function(weights, **labels)


def test_nan_is_refused_with_its_row_and_its_usual_cause():
    masked = torch.tensor([[0.0], [-torch.inf], [0.0]]).expand(3, 2).softmax(-1)
    with pytest.raises(ValueError, match=r"NaN in row 1 \(“sat”\).*fully masked row.*masked_softmax"):
        attention_map(masked, ["cat", "sat", "mat"])
    with pytest.raises(ValueError, match=r"NaN in row 1 \(query 1\) of head 2 \(index 1\)"):
        describe(torch.stack([torch.ones(3, 2), masked]))


def test_no_heads_are_no_stack():
    with pytest.raises(ValueError, match=r"\(H, L_q, L_k\).*got \(0, 3, 3\); choose one sentence, weights\[batch\]"):
        describe(torch.ones(0, 3, 3))


# In words.


def test_the_description_by_hand():
    weights = torch.tensor([[0.7, 0.2, 0.1], [0.4, 0.4, 0.2]])
    # exp of the entropies: 2.23 for the first row, 2.87 for the second.
    assert describe(weights, ["the", "cat"], ["a", "b", "c"], title="Two words.") == (
        "Two words: Attention weights of 2 queries (rows) over 3 keys. Largest weight of each query: "
        "“the”: “a” (0.70); “cat”: “a” and “b” (0.40 each). A query spreads over 2.55 keys on average "
        "(1 to 3 are possible). Sharpest: “the”, 2.23 keys, most on “a” (0.70); flattest: “cat”, 2.87 keys."
    )


def sharp(length, key_of):
    """Weights with 0.9 at each query's key."""
    weights = torch.full((length, length), 0.1 / (length - 1), dtype=torch.float64)
    for query in range(length):
        weights[query, key_of(query) % length] = 0.9
    return weights


@pytest.mark.parametrize(
    ("key_of", "words"),
    [
        (lambda i: i, "All 7 queries look most at the same position (the diagonal)."),
        (lambda i: i - 1, "All 6 queries that have one look most at the position before it (one below the diagonal)."),
        (lambda i: i + 1, "All 6 queries that have one look most at the position after it (one above the diagonal)."),
        (lambda i: 6 - i, "All 7 queries look most along the other diagonal: the first at the last key, and so on."),
        (lambda i: 2, "All 7 queries look most at key 2, with 0.90 on average."),
        (lambda i: 2 if i else 5, "6 of 7 queries look most at key 2, with 0.77 on average."),
        (lambda i: 3 * i, ""),
    ],
)
def test_patterns_are_named_where_there_is_one(key_of, words):
    text = describe(sharp(7, key_of))
    assert words in text
    assert "look most" not in text.replace(words, "")


CAUSAL = torch.ones(5, 5).tril() / torch.arange(1, 6)[:, None]
ODD = torch.tensor([[0.5, 0.5], [0.0, 0.0], [0.3, 0.4], [0.5, 0.1]])
ONE_OF_14 = torch.full((14, 1, 2), 0.5).index_fill(0, torch.tensor(3), 0.0)


@pytest.mark.parametrize(
    ("weights", "said", "unsaid"),
    [
        ([[0.9, 0.1], [0.1, 0.9]], "", "look most"),  # two rows lie on a diagonal by chance
        (torch.full((5, 200), 1 / 200), "All weights are nearly equal, 0.00 each (one in 200).", "Sharpest"),
        (torch.full((5, 200), 1 / 200), "spreads over 200.00 keys", "Largest"),
        (CAUSAL, "no query looks at a later key", "not to 1"),
        (CAUSAL.T / CAUSAL.T.sum(-1, keepdim=True), "", "later key"),
        ([[1.0]], "", "later key"),
        (ODD, "Of the rows, query 1 is all zeros, as fully masked rows are.", "are all zeros"),
        (ODD, "The weights of query 2, query 3 sum to 0.60 … 0.70, not to 1.", "query 0 is"),
        (ODD, "query 1: none", "alike"),
        (torch.full((9, 2), 0.4), "The weights of 9 of 9 sum to 0.80, not to 1.", "all zeros"),
        (torch.zeros(2, 3), "All weights are 0.", "all zeros"),
        ([[1 / 3, 1 / 3, 1 / 3], [2 / 3, 1 / 3, 0]], "all keys alike (0.33 each)", "look most"),
        ([[0.3, 0.3, 0.3, 0.1]], "3 keys alike (0.30 each)", "all keys"),
        (CAUSAL.expand(3, 5, 5), "in every head. No query looks at a later key in any head.", "Sharpest"),
        (CAUSAL.expand(3, 5, 5), "All heads: no plain pattern.", "no query"),
        (torch.eye(2).flip(0).expand(1, 2, 2), "Head 1: no plain pattern", "All heads"),
        (ONE_OF_14, "13 heads: all weights are nearly equal", "later"),
    ],
)
def test_what_is_said_of_a_map(weights, said, unsaid):
    text = describe(torch.as_tensor(weights))
    assert said in text
    assert unsaid not in text


def test_words_that_occur_twice_are_told_apart():
    text = describe(torch.tensor([[0.0, 0.0, 0.0], [0.0, 0.0, 0.0], [0.1, 0.2, 0.7]]), list("aab"), list("xyx"))
    assert "Of the rows, “a” (query 0), “a” (query 1) are all zeros" in text
    assert "“b”: “x” (key 2) (0.70)" in text


def test_no_description_is_longer_than_600_characters():
    words = [f"Donaudampfschifffahrt{i}" for i in range(200)]
    for *heads, len_q, len_k in ((200, 200), (1, 200), (200, 1), (1, 1), (8, 8), (9, 3), (12, 16, 16), (144, 8, 9)):
        for labels in ((), (words[:len_q], words[:len_k])):
            text = describe(weights_of(*heads, len_q, len_k), *labels, title="A title that is very long indeed " * 9)
            assert 60 < len(text) <= 600
            assert text.endswith(".")


def test_numbers_of_a_long_map_are_those_of_the_tensor():
    weights = (torch.randn(200, 150) * 2).softmax(-1)
    weights[:, 17] += 0.5
    weights = weights / weights.sum(-1, keepdim=True)
    text = describe(weights)
    used = torch.special.entr(weights.double()).sum(-1).exp()
    mean = weights[:, 17].mean()
    assert f"look most at key 17, with {mean:.2f} on average" in text
    assert f"spreads over {used.mean():.2f} keys" in text
    assert f"Sharpest: query {used.argmin()}, {used.min():.2f} keys" in text
    assert f"flattest: query {used.argmax()}, {used.max():.2f} keys" in text
    assert f"Largest on average: key 17 ({mean:.2f})." in text


def test_a_stack_of_heads_is_described_by_pattern():
    diagonal, first = sharp(5, lambda i: i), sharp(5, lambda i: 0)
    assert describe(torch.stack([diagonal, first, diagonal, torch.full((5, 5), 0.2)])) == (
        "Attention weights of 4 heads, each 5 queries (rows) over 5 keys. Sharpest is head 1: a query spreads over "
        "1.59 keys on average; flattest is head 4: over 5.00. Heads 1 and 3: all 5 queries look most at the same "
        "position (the diagonal). Head 2: all 5 queries look most at key 0, with 0.90 on average. Head 4: all weights "
        "are nearly equal, 0.20 each (one in 5)."
    )


# What the figure carries.


def test_a_figure_carries_the_descriptions_of_its_maps():
    figure, (left, right) = plt.subplots(1, 2)
    a, b = weights_of(2, 3), weights_of(3, 2)
    assert description_of(figure) == description_of(left) == ""
    attention_map(a, ax=left)
    attention_map(b, ax=right, title="Right.")
    left.set_title("set later")
    assert description_of(left) == describe(a)
    text = description_of(figure)
    assert text.startswith("set later: Attention weights of 2 queries (rows) over 3 keys. ")
    assert " Right: Attention weights of 3 queries (rows) over 2 keys. " in text
    assert description_of(pickle.loads(pickle.dumps(figure))) == text
    right.clear()
    assert description_of(figure) == describe(a, title="set later")
    assert description_of(right) == ""
    left.clear()
    assert "alt" not in figure._repr_mimebundle_()[1]["image/png"]


def test_the_more_maps_the_shorter_the_description_of_each():
    figure, axes = plt.subplots(1, 4)
    for ax in axes:
        attention_map(weights_of(8, 8), ax=ax)
    assert len(description_of(axes[0])) > 200
    assert 200 < len(description_of(figure)) <= 603
    assert description_of(figure).count("Attention weights of") == 4


def test_a_map_in_a_sub_figure_is_carried_by_the_whole():
    figure = plt.figure()
    part = figure.subfigures(1, 2)[1]
    ax = attention_map(weights_of(2, 3), ax=part.subplots())
    assert description_of(figure) == description_of(part) == description_of(ax) != ""


def test_notebooks_get_the_description_as_alternative_text():
    """As IPython's own machinery publishes a figure."""
    from IPython.core.formatters import DisplayFormatter
    from IPython.core.pylabtools import print_figure

    formatter = DisplayFormatter()
    png = formatter.formatters["image/png"]
    png.enabled = True
    png.for_type(mpl.figure.Figure, lambda figure: print_figure(figure, fmt="png", base64=True))
    figure = attention_map(weights_of(2, 3)).figure
    data, metadata = formatter.format(figure)
    assert data["image/png"].startswith("iVBOR")
    assert data["text/plain"] == repr(figure)
    assert metadata["image/png"]["alt"] == description_of(figure)


@pytest.mark.parametrize(
    ("title", "given", "written"),
    [("who looks", "", "who looks"), ("", "", "Attention weights"), ("who looks", "b", "b")],
)
def test_saved_files_have_title_and_description(tmp_path, title, given, written):
    ax = attention_map(weights_of(2, 3), title=title)
    png = save_figure(ax, tmp_path / "map.png", title=given)
    svg = save_figure(ax.figure, tmp_path / "map.svg", title=given).read_text()
    expected = {"Title": written, "Description": description_of(ax.figure)}
    assert {name: Image.open(png).text[name] for name in expected} == expected
    assert f"<dc:title>{written}</dc:title>" in svg
    assert expected["Description"] in svg
    assert sorted(path.name for path in tmp_path.iterdir()) == ["map.png", "map.svg"]


def test_a_file_that_cannot_be_written_is_left_as_it_was(tmp_path, monkeypatch):
    path = tmp_path / "map.png"
    path.write_text("before")

    def fails(*_, **__):
        raise OSError("no space left")

    ax = attention_map(torch.ones(1, 1))
    for place, name in ((mpl.figure.Figure, "savefig"), (os, "fsync"), (os, "replace")):
        with monkeypatch.context() as patch:
            patch.setattr(place, name, fails)
            with pytest.raises(OSError, match="no space"):
                save_figure(ax, path)
        assert path.read_text() == "before"
        assert list(tmp_path.iterdir()) == [path]
    with pytest.raises(ValueError, match=r"must end in .png or .svg.*got 'map.jpg'"):
        save_figure(ax, tmp_path / "map.jpg")
