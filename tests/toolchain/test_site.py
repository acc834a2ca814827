"""What the built book's formulas are made of, and what its search finds."""

import pytest

from tools.formulas import mathml
from tools.site_search import sections


def test_a_formula_becomes_mathml():
    assert "<mfrac>" in mathml(r"\frac{1}{2}")
    assert "<math>" in mathml("x")
    assert 'display="block"' in mathml("x", display=True)


def test_a_formula_that_is_none_says_what_is_wrong():
    with pytest.raises(ValueError, match=r"expected a formula in LaTeX, got .*Unsupported function name: .nosuch"):
        mathml(r"\nosuch{1}")


def test_a_section_is_found_with_its_own_text(tmp_path):
    page = tmp_path / "a.html"
    page.write_text(
        "<html><body><article><section id='top'><h1>Top<a class='headerlink'>#</a></h1><p>First words.</p>"
        "<pre>code</pre>"
        "<section id='sub'><h2>Sub</h2><p>Other <b>bold</b> words "
        "<math><msqrt><msub><mi>d</mi><mi>k</mi></msub></msqrt></math>.</p>"
        "</section></section></article></body></html>"
    )
    assert list(sections(page)) == [
        ("top", "Top", "First words."),
        ("sub", "Sub", "Other bold words √d_k."),
    ]


def test_what_tells_nothing_is_not_searched(tmp_path):
    page = tmp_path / "a.html"
    page.write_text(
        "<html><body><article><section id='top'><h1>Top</h1><details><summary>"
        "<p class='collapsed'>Show the code</p></summary><p>Before.</p></details>"
        "<div class='course-lib-report'>Not attempted</div>"
        "<p><strong>Chapter</strong> One <strong>Used in</strong> two</p><p><strong>Source:</strong> three</p>"
        "</section></article></body></html>"
    )
    assert list(sections(page)) == [("top", "Top", "Before. Source: three")]
