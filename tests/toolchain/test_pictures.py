"""The comparison of pictures: blind to how a figure is drawn, not to what it shows."""

import base64
import io

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pytest
import torch

from course_kit.viz import WEIGHTS, alignment, use_style
from tools.pictures import same_picture, same_view

matplotlib.use("Agg")


@pytest.fixture(autouse=True)
def style():
    with matplotlib.rc_context():
        use_style()
        yield
        plt.close("all")


def png(fig):
    buffer = io.BytesIO()
    fig.savefig(buffer, format="png", bbox_inches="tight")  # as notebooks do
    return base64.b64encode(buffer.getvalue()).decode()


def curve(y_at_3=0.5, antialiased=True, font="DejaVu Sans", linewidth=2.0, title="a title"):
    with matplotlib.rc_context({"font.family": font}):
        fig, ax = plt.subplots()
        y = np.array([0.1, 0.9, 0.3, y_at_3, 0.7])
        ax.plot(range(5), y, "o-", antialiased=antialiased, linewidth=linewidth)
        ax.set(title=title, xlabel="x", ylabel="y", ylim=(0, 1))
        return png(fig)


def bars(third=0.5):
    fig, ax = plt.subplots()
    ax.bar(range(4), [0.2, 0.8, third, 0.1])
    ax.set_ylim(0, 1)
    return png(fig)


def heat(cell=0.3):
    matrix = np.array([[0.1, 0.9, 0.0], [0.5, cell, 0.2]])
    fig, ax = plt.subplots()
    ax.imshow(matrix, cmap=WEIGHTS, vmin=0, vmax=1)
    return png(fig)


def test_the_same_figure_is_the_same():
    assert same_picture(curve(), curve())
    assert same_picture(bars(), bars())
    assert same_picture(heat(), heat())


def test_the_way_of_drawing_does_not_matter():
    assert same_picture(curve(), curve(antialiased=False))
    assert same_picture(curve(), curve(linewidth=2.6))


def test_a_similar_font_does_not_matter():
    assert curve() != curve(font="DejaVu Serif")
    assert same_picture(curve(), curve(font="DejaVu Serif"))


@pytest.mark.parametrize("y", [0.56, 0.44, 0.9])
def test_a_moved_point_is_noticed(y):
    assert not same_picture(curve(), curve(y_at_3=y))


@pytest.mark.parametrize("height", [0.53, 0.47, 0.0])
def test_a_changed_bar_is_noticed(height):
    assert not same_picture(bars(), bars(third=height))


@pytest.mark.parametrize("value", [0.4, 0.2, 1.0])
def test_a_changed_cell_of_a_heat_map_is_noticed(value):
    assert not same_picture(heat(), heat(cell=value))


def test_another_figure_is_noticed_even_for_trained_ones():
    assert not same_picture(curve(), bars(), trained=True)
    assert not same_picture(curve(), heat(), trained=True)


def test_a_trained_curve_may_move_a_little_but_not_far():
    assert same_picture(curve(), curve(y_at_3=0.53), trained=True)
    assert not same_picture(curve(), curve(y_at_3=0.0), trained=True)


def a_view(weights=None, **changes):
    weights = torch.tensor([[0.25, 0.75], [0.4, 0.6]]) if weights is None else weights
    return alignment(weights, ["a", "b"], ["x", "y"], **changes).html()


def test_the_same_view_on_another_processor_is_the_same():
    weights = torch.tensor([[0.25, 0.75], [0.4, 0.6]])
    assert same_view(a_view(), a_view(weights * (1 + 1e-6)))
    assert same_view(a_view(), a_view(torch.tensor([[0.1, 0.9], [0.3, 0.7]])), trained=True)


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("0", "0.0001", True), ("0.0001", "0", True), ("0", "0.0003", False), ("-0.0002", "0.0002", False),
        ("1", "1.0001", True), ("1", "1.0003", False), ("1000", "1000.1", True), ("1000", "1000.3", False),
    ],
)  # fmt: skip
def test_numbers_may_differ_absolutely_where_they_are_small_and_by_a_share_where_they_are_large(one, other, same):
    assert same_view(f'<rect x="{one}"/>', f'<rect x="{other}"/>') == same


def test_a_view_that_shows_something_else_is_another():
    assert not same_view(a_view(), a_view(torch.tensor([[0.25, 0.75], [0.402, 0.598]])))
    for trained in (False, True):
        assert not same_view(a_view(), a_view(title="Other"), trained=trained)
        assert not same_view(a_view(), a_view().replace("register(", "register( "), trained=trained)
        assert not same_view(a_view(), a_view(torch.rand(2, 2) / 2).replace("<text", "<g", 1), trained=trained)


def test_packed_weights_are_compared_by_length():
    long = '<style>attention-view</style><script type="application/json">{"w":"%s"}</script><script>x</script>'
    assert same_view(long % ("A1" * 200), long % ("B2" * 200))
    assert not same_view(long % ("A1" * 200), long % ("B2" * 201))
