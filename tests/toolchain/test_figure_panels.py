"""The panels of a figure are found where matplotlib has put them, with all that belongs to them."""

import io

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pytest
from PIL import Image

from course_kit.viz import use_style
from tools.figure_panels import find_panels, longest, runs

matplotlib.use("Agg")
MATRIX = np.array([[0.1, 0.9, 0.4], [0.5, 0.3, 0.2], [0.8, 0.6, 0.7]])


@pytest.fixture(autouse=True)
def style():
    with matplotlib.rc_context():
        use_style()
        yield
        plt.close("all")


def ink(fig):
    buffer = io.BytesIO()
    fig.savefig(buffer, format="png")
    return np.asarray(Image.open(buffer).convert("L")) < 245


def curves(rows, columns, **options):
    fig, grid = plt.subplots(rows, columns, squeeze=False, figsize=(4.1 * columns, 2.9 * rows), **options)
    for ax in grid.flat:
        ax.plot([0, 1, 2], [3, 1, 2])
        ax.set(title="a title", xlabel="steps")
        ax.label_outer() if options else ax.set_ylabel("loss")
    return fig, grid


def assert_panels(fig, found, expected):
    """Whether each panel is as wide as its axes with labels and colour bars are in the figure, to within 3 pixels."""
    renderer = fig.canvas.get_renderer()
    for row, axes_of_row in zip([row for row in found if row.panels], expected, strict=True):
        for panel, parts in zip(row.panels, axes_of_row, strict=True):
            boxes = [ax.get_tightbbox(renderer) for ax in parts]
            left, right = min(box.x0 for box in boxes), max(box.x1 for box in boxes)
            assert panel.columns == pytest.approx((left, right), abs=3)


def test_spans_of_true():
    line = np.array([0, 1, 1, 0, 1, 0, 0, 0, 1], bool)
    assert runs(line) == [(1, 3), (4, 5), (8, 9)]
    assert runs(line, gap=3) == [(1, 5), (8, 9)]
    assert runs(np.zeros(4, bool)) == []


def test_the_longest_line_down():
    assert longest(np.array([[1, 0], [1, 1], [0, 0], [1, 1]], bool)).tolist() == [2, 1]


def test_two_panels_keep_their_labels():
    fig, grid = curves(1, 2)
    found = find_panels(ink(fig))
    assert_panels(fig, found, [[[ax] for ax in grid[0]]])
    assert all(panel.labelled for panel in found[0].panels)


def test_a_colour_bar_stays_with_the_panel_before_it():
    fig, (left, right) = plt.subplots(1, 2, figsize=(8, 3))
    picture = left.imshow(MATRIX, aspect="auto")
    bar = fig.colorbar(picture, ax=left, label="weight")
    right.plot([0, 1, 2])
    right.set_ylabel("loss")
    assert_panels(fig, find_panels(ink(fig)), [[[left, bar.ax], [right]]])


def test_a_title_and_a_legend_of_the_whole_figure_are_strips():
    fig, grid = curves(1, 2)
    fig.suptitle("what both panels show together, in a long line")
    lines = [grid[0, 0].plot([0, 2], [0, end])[0] for end in (1, 2, 3)]
    fig.legend(lines, ["first curve", "second", "third curve"], loc="outside lower center", ncols=3)
    found = find_panels(ink(fig))
    assert [len(row.panels) for row in found] == [0, 2, 0]
    assert_panels(fig, found, [[[ax] for ax in grid[0]]])


def test_a_grid_is_taken_row_by_row_with_titles_and_labels_in_place():
    fig, grid = curves(2, 2)
    found = find_panels(ink(fig))
    assert_panels(fig, found, [[[ax] for ax in row] for row in grid])
    renderer = fig.canvas.get_renderer()
    for row, (ax, _) in zip(found, grid, strict=True):
        box = ax.get_tightbbox(renderer)
        assert row.rows == pytest.approx((fig.bbox.height - box.y1, fig.bbox.height - box.y0), abs=6)


def test_shared_axes_are_known_by_their_missing_labels():
    fig, _ = curves(2, 2, sharex=True, sharey=True)
    above, below = find_panels(ink(fig))
    for row in (above, below):
        assert [panel.labelled for panel in row.panels] == [True, False]
        assert row.panels[1].shares(row.panels[0])
        assert not row.panels[0].shares(row.panels[1])
    assert above.below
    assert below.rows[0] < above.below[0] < above.below[1] == below.rows[1]
    assert below.below is None


def test_a_frame_beside_a_heat_map_does_not_share_its_labels():
    fig, (left, right) = plt.subplots(1, 2, figsize=(8, 3), width_ratios=[3, 2])
    left.imshow(MATRIX, aspect="auto")
    left.tick_params(length=0)
    right.plot([0.2, 0.7], [0.4, 0.1], "o")
    right.set(xticks=[], yticks=[])
    (row,) = find_panels(ink(fig))
    assert [panel.labelled for panel in row.panels] == [True, False]
    assert not row.panels[1].shares(row.panels[0])


def test_one_panel_is_none():
    fig, ax = plt.subplots()
    ax.plot([0, 1, 2])
    assert find_panels(ink(fig)) is None


def test_a_blank_picture_has_no_panels():
    assert find_panels(np.zeros((80, 120), bool)) is None


def test_a_diagram_of_boxes_is_not_taken_apart():
    fig, ax = plt.subplots(figsize=(8, 3))
    ax.axis("off")
    ax.set(xlim=(-1, 7), ylim=(0, 2))
    ax.text(-0.2, 1, "boxes", ha="right")
    for place in range(7):
        ax.add_patch(plt.Rectangle((place + 0.1, 0.2), 0.8, 1.6, fill=False))
    assert find_panels(ink(fig)) is None
