"""Pictures for phones: stacked panels lose nothing, and text keeps a legible size."""

import io

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pytest
from PIL import Image

from course_kit.viz import use_style
from tools.stacked_pictures import COLUMN, LEGIBLE, least_width, stacked
from tools.text_sizes import smallest_text

matplotlib.use("Agg")
DPI = 110


@pytest.fixture(autouse=True)
def style():
    with matplotlib.rc_context():
        use_style()
        yield
        plt.close("all")


def drawn(columns, width, **options):
    fig, axes = plt.subplots(1, columns, figsize=(width, 2.6), squeeze=False, **options)
    for ax in axes.flat:
        ax.plot([0, 1, 2], [3, 1, 2])
        ax.set_xlabel("steps")
    axes[0, 0].set_ylabel("loss")
    buffer = io.BytesIO()
    fig.savefig(buffer, format="png")
    return Image.open(buffer)


def ink(picture):
    return np.asarray(picture.convert("L")) < 245


def test_the_least_width_makes_text_legible():
    width = least_width(1000, 9, DPI)
    assert 9 / 72 * DPI * width / 1000 == pytest.approx(LEGIBLE, abs=0.02)


def test_two_panels_are_stacked_and_no_pixel_is_lost():
    whole = drawn(2, 8.5)
    narrow = stacked(whole, 10.5, DPI)
    assert narrow.width < 0.6 * whole.width
    assert narrow.height > 1.8 * whole.height
    assert ink(narrow).sum() == ink(whole).sum()


def test_a_figure_that_would_hardly_become_narrower_is_left_as_it_is():
    assert stacked(drawn(2, 8.5, width_ratios=[6, 1]), 10.5, DPI) is not None  # 83 % of the width
    assert stacked(drawn(2, 8.5, width_ratios=[8, 1]), 10.5, DPI) is None  # 86 %


def test_panels_that_fit_stay_beside_each_other():
    four = drawn(4, 9)
    narrow = stacked(four, 10.5, DPI)
    assert 0.45 * four.width < narrow.width < 0.6 * four.width
    assert least_width(narrow.width, 10.5, DPI) <= COLUMN


def test_labels_of_a_shared_axis_are_repeated():
    whole = drawn(2, 8.5, sharey=True)
    narrow = ink(stacked(whole, 10.5, DPI))
    assert narrow.sum() > ink(whole).sum()
    half = len(narrow) // 2
    labels = slice(0, 40)
    assert narrow[:half, labels].sum() == narrow[half:, labels].sum() > 100


def test_a_long_legend_is_wrapped():
    fig, axes = plt.subplots(1, 3, figsize=(10, 3))
    for ax in axes:
        lines = [ax.plot([0, 1], [start, 2])[0] for start in range(5)]
    fig.legend(lines, [f"curve number {i}" for i in range(5)], loc="outside lower center", ncols=5)
    buffer = io.BytesIO()
    fig.savefig(buffer, format="png")
    whole = Image.open(buffer)
    narrow = stacked(whole, 10.5, DPI)
    assert least_width(narrow.width, 10.5, DPI) <= COLUMN
    assert ink(narrow).sum() == ink(whole).sum()


@pytest.mark.parametrize(("columns", "width"), [(1, 8.5), (2, 3.2)], ids=["one panel", "narrow enough"])
def test_other_figures_stay_as_they_are(columns, width):
    assert stacked(drawn(columns, width), 10.5, DPI) is None


PAGE = """
def shown(ax, fontsize=9):
    ax.text(0, 0, "a", fontsize=fontsize)


def titled(ax):
    shown(ax)
    ax.set_title("a", fontsize=10)


%matplotlib inline
"""


@pytest.mark.parametrize(
    ("cell", "size"),
    [
        ("ax.plot(x)", 10.5),
        ("ax.legend(fontsize=8)", 8),
        ("ax.tick_params(labelsize=7.5)", 7.5),
        ("ax.text(0, 0, 'a', size=9.5)", 9.5),
        ("ax.title.set_fontsize(10)", 10),
        ("style = {'fontsize': 8.5}", 8.5),
        ("model(size=4)", 10.5),
        ("ax.set_title('a', fontsize=14)", 10.5),
        ("titled(ax)", 9),
        ("%time ax.legend(fontsize=3)\nax.plot(x)", 10.5),
        ("attention_map(weights)", 9),
    ],
)
def test_the_smallest_text_comes_from_the_code(cell, size):
    assert smallest_text(cell, PAGE) == size
