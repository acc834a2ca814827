"""Pictures for phones: stacked panels lose nothing, and text keeps a legible size."""

import io

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pytest
import torch
from IPython.core.pylabtools import print_figure
from PIL import Image

from course_kit.viz import attention_map, use_style
from tools.stacked_pictures import COLUMN, LEGIBLE, least_width, stacked

matplotlib.use("Agg")
DPI = 110
MATRIX = np.array([[0.1, 0.9, 0.4], [0.5, 0.3, 0.2], [0.8, 0.6, 0.7]])


@pytest.fixture(autouse=True)
def style():
    with matplotlib.rc_context():
        use_style()
        yield
        plt.close("all")


def curves(rows, columns, width=8.5, **options):
    fig, axes = plt.subplots(rows, columns, figsize=(width, 2.6 * rows), squeeze=False, **options)
    for ax in axes.flat:
        ax.plot([0, 1, 2], [3, 1, 2])
        ax.set(title="a title", xlabel="steps", ylabel="loss")
        if {"sharex", "sharey"} & set(options):
            ax.label_outer()
    return fig, axes


def shown(fig):
    """The picture and what it says of itself, as in a notebook."""
    _, metadata = fig._repr_mimebundle_()
    return Image.open(io.BytesIO(print_figure(fig))), metadata["image/png"]


def cut(fig):
    """The picture, and the panels stacked."""
    picture, said = shown(fig)
    return picture, stacked(picture, said["points"], DPI, said.get("panels", ()))


def counts(fig):
    return [len(row) for row in shown(fig)[1].get("panels", ())]


def ink(picture):
    return (np.asarray(picture.convert("RGB")).min(axis=2) < 245).sum()


def test_the_least_width_makes_text_legible():
    width = least_width(1000, 9, DPI)
    assert 9 / 72 * DPI * width / 1000 == pytest.approx(LEGIBLE, abs=0.02)


def test_two_panels_are_stacked_and_no_pixel_is_lost():
    whole, narrow = cut(curves(1, 2)[0])
    assert narrow.width < 0.6 * whole.width
    assert narrow.height > 1.8 * whole.height
    assert ink(narrow) == ink(whole)


def test_a_figure_that_would_hardly_become_narrower_is_left_as_it_is():
    assert cut(curves(1, 2, width_ratios=[5, 1])[0])[1] is not None
    assert cut(curves(1, 2, width_ratios=[14, 1])[0])[1] is None


def test_panels_that_fit_stay_beside_each_other():
    four, narrow = cut(curves(1, 4, 9)[0])
    assert 0.45 * four.width < narrow.width < 0.6 * four.width
    assert least_width(narrow.width, 10.5, DPI) <= COLUMN
    assert ink(narrow) == ink(four)


def test_a_grid_is_taken_row_by_row():
    fig, _ = curves(2, 2)
    whole, narrow = cut(fig)
    assert counts(fig) == [2, 2]
    assert narrow.height > 1.8 * whole.height
    assert ink(narrow) == ink(whole)


def test_labels_of_shared_axes_are_repeated():
    fig, _ = curves(2, 2, sharex=True, sharey=True)
    (_, right), (_, last) = shown(fig)[1]["panels"]
    assert [len(panel) for panel in (right, last)] == [3, 2]  # itself, with labels of both axes or one
    assert right[1][4] == 0 > right[1][5], "the labels of the horizontal axis come up"
    whole, narrow = cut(fig)
    pixels = np.asarray(narrow.convert("L")) < 245
    quarters = [pixels[i * narrow.height // 4 : (i + 1) * narrow.height // 4, :50].sum() for i in range(4)]
    assert ink(narrow) > ink(whole)
    assert min(quarters) > 0.8 * max(quarters)


def test_panels_of_other_scales_borrow_no_labels():
    fig, (left, right) = plt.subplots(1, 2, figsize=(8, 3))
    left.imshow(MATRIX, aspect="auto")
    right.plot([0.2, 0.7], [0.4, 0.1], "o")
    right.set(xticks=[], yticks=[])
    assert [[len(panel) for panel in row] for row in shown(fig)[1]["panels"]] == [[1, 1]]


def test_a_colour_bar_stays_with_its_panel():
    fig, (left, right) = plt.subplots(1, 2, figsize=(8.5, 3))
    fig.colorbar(left.imshow(MATRIX, aspect="auto"), ax=left, label="weight")
    right.plot([0, 1, 2])
    right.set_ylabel("loss")
    whole, narrow = cut(fig)
    assert counts(fig) == [2]
    assert ink(narrow) == ink(whole)


def test_one_colour_bar_of_three_maps_stays_with_the_last():
    fig, axes = plt.subplots(1, 3, figsize=(10, 3), sharey=True)
    pictures = [ax.imshow(MATRIX) for ax in axes]
    fig.colorbar(pictures[0], ax=axes, label="weight")
    ((_, second, third),) = shown(fig)[1]["panels"]
    labels, bar = sorted(third[1:])
    assert second[1][:4] == labels[:4]
    assert bar[0] > third[0][2]
    assert bar[4:] == pytest.approx([0, 0], abs=0.002) or len(bar) == 4
    assert ink(cut(fig)[1]) > ink(cut(fig)[0])


def test_the_colour_bar_of_a_grid_comes_to_the_last_map():
    fig, axes = plt.subplots(2, 4, figsize=(7.8, 4), layout="constrained")
    for ax in axes.flat:
        attention_map(torch.full((20, 20), 0.05), ax=ax)
    fig.colorbar(axes[0, 0].collections[0], ax=axes, ticks=[0, 0.5, 1], label="weight", shrink=0.8)
    whole, narrow = cut(fig)
    panels = shown(fig)[1]["panels"]
    assert [len(row) for row in panels] == [4, 4]
    box, bar = panels[1][3][0], max(panels[1][3])
    assert bar[5] == pytest.approx((box[1] - panels[0][3][0][1]) / 2, abs=0.03), "it comes down to the last map"
    assert narrow.width < 0.7 * whole.width


def test_a_second_axis_on_the_right_is_no_second_panel():
    fig, axes = curves(1, 2)
    axes[0, 0].twinx().plot([0, 1, 2], [10, 30, 20])
    whole, narrow = cut(fig)
    assert counts(fig) == [2]
    assert ink(narrow) == ink(whole)


def test_a_title_and_a_long_legend_of_all_panels_keep_their_places():
    fig, axes = curves(1, 3, 10)
    fig.suptitle("what the panels show together")
    lines = [axes[0, 0].plot([0, 1], [start, 2])[0] for start in range(5)]
    fig.legend(lines, [f"curve number {i}" for i in range(5)], loc="outside lower center", ncols=5)
    whole, narrow = cut(fig)
    assert counts(fig) == [1, 3, 5]
    assert least_width(narrow.width, 10.5, DPI) <= COLUMN
    assert ink(narrow) == ink(whole)


def test_a_legend_beside_the_panels_comes_after_them():
    fig, axes = curves(1, 2)
    fig.legend(axes[0, 0].lines, ["a curve"], loc="outside right upper")
    whole, narrow = cut(fig)
    assert counts(fig) == [3]
    assert ink(narrow) == ink(whole)


def test_panels_that_overlap_or_are_tied_by_an_arrow_are_not_taken_apart():
    fig, axes = curves(1, 2)
    axes[0, 0].annotate("to the right", (4, 2), (0, 1), arrowprops={}, annotation_clip=False)
    assert counts(fig) == []
    fig, axes = curves(1, 2)
    fig.add_artist(plt.Line2D([0.2, 0.8], [0.5, 0.5]))
    assert counts(fig) == []


def test_a_diagram_of_panels_is_not_taken_apart():
    fig, axes = curves(3, 3)
    for corner in (axes[0, 0], axes[2, 0]):
        corner.remove()
    assert counts(fig) == []


def test_axes_with_nothing_in_them_are_no_panels():
    fig, axes = curves(1, 3)
    axes[0, 1].clear()
    axes[0, 1].axis("off")
    axes[0, 2].set_visible(False)
    assert counts(fig) == []


@pytest.mark.parametrize(("columns", "width"), [(1, 8.5), (2, 3.2)], ids=["one panel", "narrow enough"])
def test_other_figures_stay_as_they_are(columns, width):
    assert cut(curves(1, columns, width)[0])[1] is None


def test_a_picture_without_metadata_stays_as_it_is():
    assert stacked(shown(curves(1, 2)[0])[0], 10.5, DPI) is None


@pytest.mark.parametrize(
    ("change", "size"),
    [
        (lambda ax: None, 10.5),
        (lambda ax: ax.set_title("larger", fontsize=14), 10.5),
        (lambda ax: ax.tick_params(labelsize=7.5), 7.5),
        (lambda ax: ax.text(0, 0, "a", size=9), 9),
        (lambda ax: ax.text(0, 0, "", size=5), 10.5),
        (lambda ax: ax.text(0, 0, "a", size=5).set_visible(False), 10.5),
        (lambda ax: (ax.tick_params(labelsize=4), ax.axis("off")), 11),
        (lambda ax: ax.plot(1, 1, label="x$^2$") and ax.legend(fontsize=8), 8),
    ],
)
def test_the_smallest_text_is_the_smallest_that_is_drawn(change, size):
    fig, ax = plt.subplots()
    ax.set_title("a title")
    change(ax)
    assert shown(fig)[1] == {"points": size}


def test_a_map_says_what_it_shows_and_how_it_is_laid_out():
    fig, axes = plt.subplots(1, 2, figsize=(8.5, 3))
    for ax in axes:
        attention_map(torch.full((3, 3), 1 / 3), ax=ax)
    assert set(shown(fig)[1]) == {"alt", "points", "panels"}


def test_a_figure_without_text_says_nothing():
    assert plt.figure()._repr_mimebundle_() == ({}, {"image/png": {}})


def test_looking_does_not_change_the_picture():
    fig, _ = curves(1, 2, sharey=True, subplot_kw={"aspect": "equal"})
    looked_at = shown(fig)[0]
    assert all(ax.get_in_layout() for ax in fig.axes)
    again, _ = curves(1, 2, sharey=True, subplot_kw={"aspect": "equal"})
    assert np.array_equal(looked_at, Image.open(io.BytesIO(print_figure(again))))
