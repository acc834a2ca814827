"""Views of the chapter `attention`, without a browser: the picture as it stands, its data, its words, its errors."""

import json
import re

import pytest
import torch
from shown import as_shown

from course_kit.viz import alignment, query_plane

KEY = torch.tensor([[2.0, 0.5], [-1.0, 1.5], [1.0, -2.0]])
VALUE = torch.tensor([1.0, 3.0, -2.0])
WEIGHTS = torch.tensor([[0.7, 0.2, 0.1], [0.125, 0.375, 0.5]])


def texts(view):
    return re.findall(r"<text[^>]*>([^<]*)</text>", view.body)


# query_plane ----------------------------------------------------------------------------------------------------------


def test_the_plane_shows_the_numbers_of_torch():
    query = torch.tensor([0.5, -0.25])
    view = query_plane(KEY, VALUE, query, labels=["sun", "rain", "wind"])
    weights = torch.softmax(KEY @ query, 0)
    shown = dict(re.findall(r'data-k="(weight\d|output)"[^>]*>([^<]+)<', view.body))
    assert shown == {
        **{f"weight{i}": f"{w:.3f}" for i, w in enumerate(weights.tolist())},
        "output": as_shown((weights @ VALUE).item()),
    }
    assert view.data["key"] == KEY.tolist()
    assert view.data["query"] == [0.5, -0.25]
    assert all(f"{name} {w:.3f}" in view.description for name, w in zip(("sun", "rain", "wind"), weights, strict=True))


def test_keys_and_query_are_drawn_where_their_features_are():
    """The first feature to the right, the second upwards, both in one scale from the middle; larger weights larger."""
    query = torch.tensor([0.5, -0.25])
    body = query_plane(KEY, VALUE, query).body
    (side,) = re.findall(r'viewBox="0 0 (\d+) \1"', body)
    disc = r'<circle cx="([\d.]+)" cy="([\d.]+)" r="([\d.]+)" class="{}"'
    discs = [tuple(map(float, found)) for found in re.findall(disc.format("key"), body)]
    (at,) = re.findall(disc.format("query"), body)
    arrow = re.search(r'd="M(\S+) (\S+)L(\S+) ([^"]+)"[^>]*data-k="arrow"', body).groups()
    middle = int(side) / 2
    scale = (discs[0][0] - middle) / KEY[0, 0].item()
    assert scale > 0

    def place(point):
        return [middle + scale * point[0].item(), middle - scale * point[1].item()]

    assert len(discs) == 6  # of each key the weight, and its place
    for i, point in enumerate(KEY):
        for x, y, _ in discs[2 * i : 2 * i + 2]:
            assert [x, y] == pytest.approx(place(point), abs=1e-3)
    assert [float(at[0]), float(at[1])] == pytest.approx(place(query), abs=1e-3)
    assert [float(x) for x in arrow] == pytest.approx([middle, middle, *place(query)], abs=1e-3)
    assert all(0 < x < int(side) and 0 < y < int(side) for x, y, _ in discs)
    radii = [r for _, _, r in discs[::2]]
    assert sorted(range(3), key=radii.__getitem__) == torch.softmax(KEY @ query, 0).argsort().tolist()
    names = [
        (float(x), float(y))
        for x, y in re.findall(r'<text x="([\d.]+)" y="([\d.]+)" data-k="name\d" class="key small">k\d<', body)
    ]
    assert [x for x, _ in names] == pytest.approx([x for x, _, _ in discs[::2]], abs=1e-3)
    assert [y for _, y in names] == pytest.approx([y - r - 8 for _, y, r in discs[::2]], abs=1e-3)


def test_bars_are_as_long_as_the_weights_and_each_value_stands_beside_its_key():
    query = torch.tensor([0.5, -0.25])
    body = query_plane(KEY, VALUE, query, labels=["sun", "rain", "wind"]).body
    bars = dict(re.findall(r'<rect [^>]*y="([\d.]+)"[^>]*width="([\d.]+)"[^>]*data-k="bar', body))
    weights = torch.softmax(KEY @ query, 0).tolist()
    assert [float(width) for width in bars.values()] == pytest.approx([100 * w for w in weights], abs=1e-3)
    written = re.findall(r'<text x="[\d.]+" y="([\d.]+)"[^>]*>([^<]+)<', body)
    for name, value, top in zip(("sun", "rain", "wind"), VALUE.tolist(), map(float, bars), strict=True):
        row = [text for y, text in written if float(y) == top + 7]
        assert row[0] == name
        assert row[-1] == as_shown(value, 2)


def test_all_keys_with_the_largest_weight_are_named():
    status = query_plane(torch.tensor([[1.0, 1.0], [-1.0, 0.0], [1.0, 1.0]]), VALUE, torch.tensor([0.5, 0.25])).status
    assert status.startswith("With the query at 0.50, 0.25, “k0”, “k2” each get 0.")
    assert "“k0” gets 0." in query_plane(KEY, VALUE).status


def test_the_query_starts_on_the_way_to_the_first_key():
    assert query_plane(KEY, VALUE).data["query"] == pytest.approx([1.2, 0.3])
    assert "k0" in texts(query_plane(KEY, VALUE))


@pytest.mark.parametrize(
    "key",
    [
        [[2.0, 0.5], [1.2, 0.3], [1.0, -2.0]],
        [[1.0, 1.0], [0.6, 0.6], [0.5, 0.5], [0.2, 0.3]],
        [[0.1, 0.0], [3.0, 3.0], [-3.0, 1.0]],
    ],
)
def test_the_disc_of_the_query_starts_beside_every_key(key):
    view = query_plane(torch.tensor(key), torch.ones(len(key)))
    distances = (torch.tensor(view.data["query"]) - torch.tensor(key)).norm(dim=-1) * view.data["scale"]
    if key[0] == [0.1, 0.0]:  # no room on the way to it
        assert view.data["query"] == pytest.approx([0.05, 0.0])
    else:
        assert distances.min() >= 26


def test_a_key_below_the_query_is_seen_through_it():
    body = query_plane(KEY, VALUE, KEY[0]).body
    opacity = re.search(r'r="13" class="query" fill-opacity="([\d.]+)"', body).group(1)
    assert float(opacity) <= 0.5


def test_one_key_takes_all():
    view = query_plane(torch.zeros(1, 2), torch.tensor([4.0]))
    assert "1 key in a plane" in view.description
    assert "k0 1.000" in view.description


def test_the_plane_holds_whole_numbers_and_long_words():
    view = query_plane(torch.tensor([[1, 2]]), torch.tensor([3]), labels=["<incomprehensibilities>"])
    assert "&lt;incomprehensib…" in view.body
    assert json.loads(json.dumps(view.data))["value"] == [3]


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((torch.ones(3), VALUE), r"key must be a tensor \(L_k, 2\).*got torch.float32 \(3,\); choose two features"),
        ((torch.ones(3, 4), VALUE), r"got torch.float32 \(3, 4\)"),
        ((torch.ones(0, 2), torch.ones(0)), r"1 to 12 keys.*got torch.float32 \(0, 2\)"),
        ((torch.ones(13, 2), torch.ones(13)), r"1 to 12 keys.*got torch.float32 \(13, 2\)"),
        (([[1.0, 2.0]], VALUE), "key must be a tensor.*got list"),
        ((KEY, torch.ones(2)), r"value must be a tensor \(3,\).*got torch.float32 \(2,\)"),
        ((KEY, None), "value must be a tensor.*got NoneType"),
        ((KEY, VALUE, torch.ones(3)), r"query must be a tensor \(2,\).*got torch.float32 \(3,\)"),
        ((KEY * float("nan"), VALUE), "must be finite"),
        ((KEY, VALUE, torch.tensor([float("inf"), 0.0])), "must be finite"),
    ],
)
def test_what_fits_no_plane_is_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        query_plane(*arguments)


def test_labels_of_the_plane_must_fit():
    with pytest.raises(ValueError, match="labels must have a label for each of the 3, got 1"):
        query_plane(KEY, VALUE, labels=["a"])


# alignment ------------------------------------------------------------------------------------------------------------


def test_lines_are_as_thick_as_weights_and_cells_as_dark():
    view = alignment(WEIGHTS, ["je", "sais"], ["I", "do", "know"])
    for i, row in enumerate(WEIGHTS.tolist()):
        lines = re.search(rf'<g [^>]*data-k="l{i}">(.*?)</g>', view.body)[1]
        assert [float(w) for w in re.findall(r'stroke-width="([\d.]+)"', lines)] == pytest.approx([12 * w for w in row])
        cells = re.search(rf'<g [^>]*data-k="r{i}">(.*?)</g>', view.body)[1]
        assert [float(w) for w in re.findall(r'fill-opacity="([\d.]+)"', cells)] == pytest.approx(row)
    assert view.data["weights"] == [[0.7, 0.2, 0.1], [0.125, 0.375, 0.5]]
    assert {"je", "sais", "I", "do", "know", "0.70"} <= set(texts(view))
    assert "“je”: “I” (0.70)" in view.description


def test_lines_join_the_words_of_their_weights():
    view = alignment(WEIGHTS, ["je", "sais"], ["I", "do", "know"])
    picture = re.search(r"<svg.*?</svg>", view.body, re.DOTALL).group()
    heights = {text: float(y) for y, text in re.findall(r'<text x="[\d.]+" y="([\d.]+)"[^>]*>([^<]+)<', picture)}
    assert len({heights[name] for name in ("I", "do", "know")}) == 3
    for i, query in enumerate(("je", "sais")):
        lines = re.search(rf'data-k="l{i}">(.*?)</g>', picture)[1]
        ends = [(float(a), float(b)) for a, b in re.findall(r'd="M\S+ (\S+)L\S+ ([^"]+)"', lines)]
        assert ends == [(heights[query], heights[key]) for key in ("I", "do", "know")]


def test_a_third_decimal_is_that_of_the_tensor():
    weights = torch.rand(7, 11, generator=torch.Generator().manual_seed(0))
    for shown, exact in zip(alignment(weights).data["weights"], weights.tolist(), strict=True):
        assert [f"{x:.3f}" for x in shown] == [f"{x:.3f}" for x in exact]


def test_lines_too_thin_to_see_are_left_out():
    view = alignment(torch.tensor([[0.995, 0.005]]))
    assert len(re.findall("stroke-width", re.search(r'data-k="l0">(.*?)</g>', view.body)[1])) == 1


@pytest.mark.parametrize("shape", [(1, 1), (1, 40), (40, 1), (8, 8), (9, 3), (40, 40)])
def test_it_takes_one_token_to_forty(shape):
    weights = torch.softmax(torch.randn(shape, generator=torch.Generator().manual_seed(1)), -1)
    view = alignment(weights)
    assert len(re.findall('data-k="q', view.body)) == shape[0]
    assert len(re.findall('<rect[^>]*fill-opacity="[01]', view.body)) == weights.numel() + sum(shape)
    assert len(view.html()) < 225_000
    values = [text for text in texts(view) if re.fullmatch(r"\d\.\d\d", text)]
    assert len(values) == (weights.numel() if max(shape) <= 8 else 0)


def test_where_columns_are_narrow_only_some_are_named():
    view = alignment(torch.full((2, 40), 0.025))
    turned = re.findall(r"rotate\(-45\)", view.body)
    assert 10 <= len(turned) < 40


def test_rows_that_do_not_sum_to_one_are_named():
    assert "sum to 0.60, not to 1" in alignment(torch.tensor([[0.5, 0.5], [0.5, 0.1]]), ["a", "b"]).description


def test_words_are_escaped():
    view = alignment(torch.ones(1, 1), ["<b>&"], ["</script>"], title="<i>")
    assert "&lt;b&gt;&amp;" in view.body
    assert "<b>" not in view.body + view.html()[: view.html().index("<script")]
    assert view.html().count("</script>") == 2


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ((None,), TypeError, "need_weights=True"),
        (((torch.ones(1), WEIGHTS),), TypeError, "take the second"),
        ((torch.ones(2, 3, 4),), ValueError, "one head"),
        ((torch.ones(0, 3),), ValueError, "at least one entry"),
        ((torch.full((1, 2), float("nan")),), ValueError, "fully masked row"),
        ((torch.tensor([[2.0, -1.0]]),), ValueError, "Apply a softmax"),
        ((torch.full((41, 2), 0.5),), ValueError, r"at most 40 rows.*got \(41, 2\).*weights\[:40, :40\]"),
        ((torch.full((2, 200), 0.005),), ValueError, r"got \(2, 200\)"),
        ((WEIGHTS, ["a"]), ValueError, "queries must have a label for each of the 2, got 1"),
        ((WEIGHTS, None, ["a"]), ValueError, "keys must have a label for each of the 3, got 1"),
    ],
)
def test_what_are_no_weights_is_refused(arguments, error, message):
    with pytest.raises(error, match=message):
        alignment(*arguments)


def test_a_weight_is_written_in_the_light_colour_above_seven_tenths_only():
    body = alignment(torch.tensor([[0.7, 0.3], [0.29, 0.71]])).body
    groups = re.findall(r'<g class="(cell(?: high)?)"[^>]*pointer-events[^>]*>(.*?)</g>', body, re.DOTALL)
    written = [(name, re.findall(r">([^<]+)</text>", inside)) for name, inside in groups]
    assert written == [("cell", ["0.70", "0.30"]), ("cell high", []), ("cell", ["0.29"]), ("cell high", ["0.71"])]


def chosen(view):
    return view.data["start"], view.status


def test_an_alignment_starts_with_the_query_whose_lines_cross_most():
    weights = torch.tensor([[1.0, 0, 0, 0], [0, 0, 0, 1.0], [0, 1.0, 0, 0], [0, 0, 1.0, 0]])
    assert chosen(alignment(weights)) == (1, "“q1” looks most at “k3” (1.000), “k0” (0.000), “k1” (0.000).")


def test_without_crossings_it_starts_with_the_most_spread_query():
    weights = torch.tensor([[1.0, 0, 0], [0.5, 0.5, 0], [0, 0, 1.0]])
    assert alignment(torch.eye(3)).data["start"] == 0
    weights[0], weights[1] = torch.tensor([1.0, 0, 0]), torch.tensor([0.4, 0.6, 0])
    assert alignment(weights).data["start"] == 1


def test_one_clear_crossing_counts_for_more_than_many_faint_ones():
    weights = torch.tensor(
        [[0.9, 0.1, 0, 0, 0], [0, 0, 0, 0.7, 0.3], [0, 0, 0.9, 0.1, 0], [0.1, 0.3, 0.2, 0.2, 0.2], [0, 0.1, 0, 0, 0.9]]
    )
    assert alignment(weights).data["start"] == 1


def test_an_end_token_is_chosen_last():
    weights = torch.tensor([[0, 1.0, 0], [0, 0.8, 0.2], [0, 1.0, 0], [1.0, 0, 0]])
    assert alignment(weights).data["start"] == 3
    assert alignment(weights, ["a", "b", ".", "<eos>"]).data["start"] == 1
    assert alignment(weights, [".", ".", ".", "<eos>"]).data["start"] in range(4)


def test_every_word_on_either_side_can_be_chosen():
    body = alignment(WEIGHTS, ["a", "b"], ["x", "y", "z"], start=1).body
    shades = re.findall(r'fill-opacity="([\d.]+)"[^>]*></rect><text[^>]*>(\w)</text></g>', body)
    assert shades == [("0.1", "a"), ("0.4", "b"), ("0.1", "x"), ("0.1", "y"), ("0.1", "z")]
    assert re.findall(r'role="button" aria-label="(\w+ \w)"', body) == ["query a", "query b", "key x", "key y", "key z"]


def test_an_alignment_starts_where_it_is_told_to():
    view = alignment(torch.eye(3), start=2)
    assert chosen(view) == (2, "“q2” looks most at “k2” (1.000), “k0” (0.000), “k1” (0.000).")
    with pytest.raises(ValueError, match="start must be at most 2, got 3; it is the index of a query"):
        alignment(torch.eye(3), start=3)
