"""One colour a role, in figures and on pages, legible on both backgrounds."""

import pytest

from course_kit.viz import PALETTE
from course_kit.viz.style import INVERT, dark
from tools.palette import TARGET, stylesheet

ROLES = ("query", "key", "value", "output", "ink", "muted")


def luminance(colour):
    def linear(c):
        return c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4

    red, green, blue = (linear(int(colour[i : i + 2], 16) / 255) for i in (1, 3, 5))
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(a, b):
    """Ratio after WCAG 2.1; text needs 4.5."""
    light, dim = sorted((luminance(a), luminance(b)), reverse=True)
    return (light + 0.05) / (dim + 0.05)


def test_contrast_of_black_and_white_is_21():
    assert contrast("#000000", "#ffffff") == pytest.approx(21)


def test_the_pages_colours_are_the_figures_colours():
    assert TARGET.read_text() == stylesheet(), "run `python -m tools.palette`"


@pytest.mark.parametrize("role", ROLES)
def test_roles_are_legible_on_light_and_dark(role):
    assert contrast(PALETTE[role], "#ffffff") >= 4.5
    assert contrast(dark(PALETTE[role]), "#121212") >= 4.5


def test_the_filter_turns_white_paper_dark_and_keeps_hues():
    assert dark("#ffffff") == f"#{round(255 * (1 - INVERT)):02x}" * 1 + f"{round(255 * (1 - INVERT)):02x}" * 2
    red, green, blue = (int(dark(PALETTE["query"])[i : i + 2], 16) for i in (1, 3, 5))
    assert blue > green > red  # a blue stays a blue
