"""What the built book is made light and searchable by."""

import json
import re

import pytest
import yaml
from PIL import Image
from pygments.styles import get_style_by_name
from pygments.token import Token

from tools.formulas import mathml
from tools.publisher import ROOT
from tools.site_search import packed, sections
from tools.unused_css import pack_picture, plain_code, slim_sheet, words_in_use


def test_a_formula_becomes_mathml():
    assert "<mfrac>" in mathml(r"\frac{1}{2}")
    assert "<math>" in mathml("x")
    assert 'display="block"' in mathml("x", display=True)


def test_a_formula_that_is_none_says_what_is_wrong():
    with pytest.raises(ValueError, match=r"expected a formula in LaTeX, got .*Unsupported function name: .nosuch"):
        mathml(r"\nosuch{1}")


def test_rules_without_anything_to_match_go():
    css = "/*! licence */ .a{color:red} .a .gone,.b{top:0} "
    css += "@media print{.gone{left:0}} #gone{left:0} p:not(.gone){top:1px}"
    slim = slim_sheet(css, {"a", "b"})
    assert slim.split("\n") == ["/*! licence */", ".a{color:red}", ".b{top:0}", "p:not(.gone){top:1px}", ""]


def test_words_come_from_pages_and_scripts(tmp_path):
    (tmp_path / "a.html").write_text('<html><body><p class="one two" id="three">four</p></body></html>')
    (tmp_path / "b.js").write_text("x.classList.add('five')")
    used = words_in_use(tmp_path)
    assert {"one", "two", "three", "five"} <= used
    assert "four" not in used


def test_a_picture_loses_nothing(tmp_path):
    path = tmp_path / "a.png"
    picture = Image.effect_noise((60, 60), 40).convert("RGBA")
    picture.save(path, compress_level=0)
    before = path.stat().st_size
    pack_picture(path)
    assert path.stat().st_size < before
    assert Image.open(path).convert("RGBA").tobytes() == picture.tobytes()


def test_a_clear_picture_stays_clear(tmp_path):
    path = tmp_path / "a.png"
    picture = Image.new("RGBA", (50, 50), (1, 2, 3, 0))
    picture.save(path, compress_level=0)
    pack_picture(path)
    assert Image.open(path).convert("RGBA").getpixel((3, 3)) == (1, 2, 3, 0)


def test_a_picture_that_is_packed_well_is_not_written_again(tmp_path):
    path = tmp_path / "a.png"
    picture = Image.linear_gradient("L").convert("RGBA")
    picture.putalpha(128)
    picture.save(path, optimize=True)
    before = path.read_bytes()
    pack_picture(path)
    assert path.read_bytes() == before


def test_a_picture_that_is_clear_in_places_stays_so(tmp_path):
    path = tmp_path / "a.png"
    picture = Image.new("RGBA", (50, 50), (1, 2, 3, 255))
    picture.putpixel((3, 3), (1, 2, 3, 0))
    picture.save(path, compress_level=0)
    pack_picture(path)
    assert Image.open(path).convert("RGBA").tobytes() == picture.tobytes()


def test_a_section_is_found_with_its_own_text(tmp_path):
    page = tmp_path / "a.html"
    page.write_text(
        "<html><body><article><section id='top'><h1>Top<a class='headerlink'>#</a></h1><p>First words.</p>"
        "<pre>code</pre>"
        "<section id='sub'><h2>Sub</h2><p>Other <b>bold</b> words <math>x</math>.</p>"
        "</section></section></article></body></html>"
    )
    assert list(sections(page)) == [
        ("top", "Top", "First words."),
        ("sub", "Sub", "Other bold words ."),
    ]


def test_what_tells_nothing_is_not_searched(tmp_path):
    page = tmp_path / "a.html"
    page.write_text(
        "<html><body><article><section id='top'><h1>Top</h1><details><summary aria-label='Toggle hidden content'>"
        "<p>Show the code</p></summary><p>Before.</p></details><div class='course-lib-report'>Not attempted</div>"
        "<p><strong>Chapter</strong> One <strong>Used in</strong> two</p><p><strong>Source:</strong> three</p>"
        "</section></article></body></html>"
    )
    assert list(sections(page)) == [("top", "Top", "Before. Source: three")]


def test_frequent_words_are_packed_and_come_back():
    text = 'The "attention" of attention \\alpha; attention, the softmax ' * 9
    pages = [{"title": "attention", "address": "book/attention.html", "sections": [("a", "attention", text)]}]
    data = packed(pages)
    assert len(data.encode()) < 0.6 * len(json.dumps(pages))
    short, words = json.loads(f"[{data}]")
    assert set(short[0]) == {"title", "address", "sections"}

    def whole(packed_text):
        return re.sub("[\u0400-\u07ff]", lambda code: words[ord(code[0]) - 0x400], packed_text)

    assert [whole(x) for x in short[0]["sections"][0]] == list(pages[0]["sections"][0])
    assert whole(short[0]["address"]) == pages[0]["address"]


def test_a_page_with_a_character_that_stands_for_a_word_is_refused():
    with pytest.raises(ValueError, match="expected no page with Ж"):
        packed([{"title": "Ж", "address": "a.html", "sections": []}])


def test_code_has_no_spans_for_the_colour_that_it_has_anyway():
    one = '<span class="mi">1</span></pre>'
    code = '<pre><span></span><span class="n">x</span><span class="o">=</span><span class="p">(</span>\n' + one
    expected = '<pre><span></span>x<span class="o">=</span>(\n' + one
    text = '<p><span class="n">x</span></p>'
    assert plain_code(text + code + text + code) == text + expected + text + expected


@pytest.mark.parametrize("shade", ["light", "dark"])
def test_names_and_punctuation_have_the_colour_of_text(shade):
    config = yaml.safe_load((ROOT / "_config.yml").read_text())["sphinx"]["config"]["html_theme_options"]
    style = get_style_by_name(config[f"pygments_{shade}_style"])
    colours = {style.style_for_token(token)["color"] for token in (Token.Text, Token.Name, Token.Punctuation)}
    weights = {style.style_for_token(token)["bold"] for token in (Token.Text, Token.Name, Token.Punctuation)}
    assert len(colours) == len(weights) == 1
