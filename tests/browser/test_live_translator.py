"""The live translator in the built book: what a reader does with it, by mouse, touch and keyboard."""

from functools import cache

import pytest
from axe import faults
from driving import large_enough, part, press

from course_kit.translator import pretrained

pytestmark = [pytest.mark.browser, pytest.mark.site]

PAGE, SENTENCE = "book/translate.html", "Ein Hund springt über den Zaun."
MODEL = ("worker.js", "engine.js", "model.json", "weights.bin")


@cache
def translator():
    return pretrained()


def text_of(page, key="target"):
    """The words of a row, without the numbers below them."""
    return [chip.text_content() for chip in part(page, key).locator(".chip > span:first-child").all()]


def translated(page, sentence=None):
    """Translate what is in the field, and wait for the end."""
    if sentence is not None:
        part(page, "text").fill(sentence)
    part(page, "form").locator(".go").click()
    finished(page)


def finished(page):
    page.wait_for_function("document.querySelector('.live-translator').ready")
    page.wait_for_function("!document.querySelector('.live-translator').hasAttribute('aria-busy')", timeout=60_000)


def asked_for(seen):
    return {name for name in MODEL if any(name in address for address in seen.sizes)}


def test_nothing_of_the_model_is_loaded_before_a_reader_types(visit):
    seen = visit("book/index.html")
    assert [address for address in seen.sizes if "/translator/" in address and not address.endswith(".css")] == []
    part(seen.page, "text").hover()
    part(seen.page, "text").focus()
    seen.page.wait_for_function("document.querySelector('.live-translator').ready")
    assert asked_for(seen) == set()
    part(seen.page, "text").press_sequentially("!")
    finished(seen.page)
    seen.page.wait_for_function("document.querySelector('.live-translator progress').value == 1")
    assert asked_for(seen) == set(MODEL)
    assert (seen.errors, seen.outside, seen.failed) == ([], [], [])


def test_the_title_page_translates_and_shows_where_the_model_looked(visit):
    page = visit("book/index.html", width=390, height=844, scheme="dark").page
    assert "".join(text_of(page)).startswith("Twodogsplay")  # before any script
    translated(page, SENTENCE)
    (expected,) = translator().translate([SENTENCE], beam_size=1)
    assert part(page, "say").text_content() == f"Translation: {expected}"
    source, target, weights = translator().attention(SENTENCE, expected)
    assert text_of(page, "source") == [token.lstrip("▁") for token in source]
    at = target.index("▁dog")
    part(page, "target").locator(".chip").nth(at).click()
    shown = [float(chip.text_content()) for chip in part(page, "source").locator("small").all()]
    assert shown == pytest.approx(weights.mean(0)[at].tolist(), abs=0.011)
    assert max(shown) > 0.5
    assert "“dog” attends most to “Hund”" in part(page, "told").text_content()
    assert part(page, "link").get_attribute("href").endswith("translate.html#s=Ein+Hund+springt+%C3%BCber+den+Zaun.")


def test_another_word_is_taken_and_the_rest_is_written_anew(visit):
    page = visit(PAGE).page
    translated(page, SENTENCE)
    before = text_of(page)
    other = part(page, "next-list").locator("button[aria-pressed=false]:not(:disabled)").first
    word = other.locator("span").first.text_content()
    assert word != before[0]
    other.click()
    finished(page)
    page.wait_for_function("w => document.querySelector('[data-k=target] .chip').textContent.startsWith(w)", arg=word)
    assert text_of(page)[0] == word
    assert part(page, "target").locator(".given").count() == 1
    assert "f=" in page.url
    # What the address says is shown again, elsewhere.
    again = page.context.new_page()
    again.goto(page.url)  # this browser has the model, so it translates at once
    again.wait_for_function("document.querySelector('[data-k=panels]').checkVisibility()")
    assert text_of(again) == text_of(page)


def test_the_maps_and_one_head_show_what_python_computes(visit):
    page = visit(PAGE, width=390, height=844).page
    translated(page, SENTENCE)
    words, _, weights = translator().attention(SENTENCE, translator().translate([SENTENCE], beam_size=1)[0], layer=1)
    part(page, "tab-maps").click()
    maps = part(page, "maps").locator("button")
    assert maps.count() == 16
    maps.nth(6).click()  # layer 2, head 3; the words stay in sight above the map that was chosen
    assert (
        part(page, "target")
        .locator(".chosen")
        .evaluate("n => { const r = n.getBoundingClientRect(); return r.top >= 0 && r.bottom <= innerHeight }")
    )
    part(page, "tab-head").click()
    page.wait_for_function("document.querySelector('[data-k=head-title]').textContent.includes('layer 2, head 3')")
    first = part(page, "head-title").text_content()
    part(page, "target").locator(".chip").nth(1).click()  # the title and the rows change together, a moment later
    page.wait_for_function("t => document.querySelector('[data-k=head-title]').textContent != t", arg=first)
    page.wait_for_function("n => document.querySelectorAll('[data-k=head-rows] tr').length == n", arg=len(words))
    keys = translator().model.decoder.layers[1].cross_attention.k_proj
    d_k = keys.out_features // translator().model.config.num_heads
    assert f"query · key / √{d_k};" in part(page, "panel-head").text_content()
    assert f"shows {d_k} numbers" in " ".join(part(page, "panel-head").text_content().split())
    shown = [float(cell.text_content()) for cell in part(page, "head-rows").locator("td.weight").all()]
    assert shown == pytest.approx(weights[2, 1].tolist(), abs=0.011)
    assert "k=cross&l=2&h=3&t=2&v=head" in page.url
    part(page, "kind").select_option("decoder")
    page.wait_for_function("document.querySelectorAll('[data-k=head-rows] tr').length == 2")
    assert part(page, "target").locator(".chip").first.text_content().startswith("<bos>")


def test_it_works_by_keyboard_alone_and_axe_finds_nothing(visit):
    page = visit(PAGE).page
    part(page, "text").focus()
    page.wait_for_function("document.querySelector('.live-translator').ready")
    press(page, "Enter")
    page.wait_for_function("document.querySelector('[data-k=panels]').checkVisibility()")
    for _ in range(12):
        if page.evaluate("document.activeElement.parentElement.dataset.k") == "target":
            break
        press(page, "Tab")
    press(page, "ArrowRight", "ArrowRight")
    assert page.evaluate("document.activeElement.querySelector('span').textContent") == text_of(page)[2]
    assert "After “Two dogs”" in part(page, "next-title").text_content()
    press(page, "Tab", "ArrowRight")
    assert part(page, "panel-maps").is_visible()
    for tab in ("next", "maps", "head"):
        part(page, f"tab-{tab}").click()
        assert faults(page) == []


def test_a_shared_address_shows_the_find_in_a_new_tab_and_in_this_one(visit):
    state = "&k=encoder&l=2&h=2&t=3&v=maps"
    seen = visit(f"{PAGE}#s=Ein+Hund+l%C3%A4uft+nicht.{state}")
    page = seen.page
    assert text_of(page) == []  # of no other sentence
    part(page, "form").locator(".go").click()
    page.wait_for_function("document.querySelector('[data-k=panels]').checkVisibility()")
    assert "Press" not in part(page, "note").text_content()
    assert [part(page, key).input_value() for key in ("kind", "layer", "which")] == ["encoder", "1", "1"]
    assert part(page, "source").locator(".chosen span").first.text_content() == "läuft"
    assert part(page, "panel-maps").is_visible()
    page.evaluate(f"location.hash = '#s=Zwei+Katzen.{state}'")
    page.wait_for_function(
        "document.querySelector('[data-k=say]').textContent.includes('cats')"
    )  # it has the model now
    assert (seen.errors, seen.outside, seen.failed) == ([], [], [])


def test_on_a_phone_the_translation_comes_into_sight(visit):
    page = visit("book/index.html", width=390, height=844).page
    part(page, "form").locator(".go").evaluate(
        "n => scrollTo(0, n.getBoundingClientRect().bottom + scrollY - innerHeight)"
    )
    translated(page)
    assert part(page, "target").evaluate("n => n.getBoundingClientRect().bottom <= innerHeight")


@pytest.mark.parametrize(
    ("typed", "words"),
    [
        ("", "Type a German sentence first."),
        ("🐶🐶 \U0001f469‍\U0001f469‍\U0001f467", "does not know"),
        ("Two dogs play in the snow.", ""),
        ("Hund " * 1000, "only its first 255 tokens"),
    ],
    ids=["empty", "emoji", "English", "5,000 characters"],
)
def test_any_text_is_answered(visit, typed, words):
    seen = visit(PAGE, width=390, height=844)
    translated(seen.page, "Ein Hund.")
    translated(seen.page, typed)
    assert words in part(seen.page, "note").text_content()
    assert seen.errors == []
    assert seen.page.evaluate("document.documentElement.scrollWidth") <= 390


def test_the_newest_wish_counts(visit):
    page = visit(PAGE).page
    translated(page)
    page.evaluate(
        """([first, second]) => { const field = document.querySelector("[data-k=text]"), form = field.form;
        for (const text of [first, second]) { field.value = text; form.requestSubmit() } }""",
        ["Ein kleines Mädchen mit roter Mütze füttert die Enten am See.", SENTENCE],
    )
    finished(page)
    (expected,) = translator().translate([SENTENCE], beam_size=1)
    page.wait_for_function("w => document.querySelector('[data-k=say]').textContent.includes(w)", arg=expected)


def test_each_search_gives_what_it_says(visit):
    page = visit(PAGE).page
    translated(page, SENTENCE)
    part(page, "search").select_option("beam")
    finished(page)
    page.wait_for_function("!document.querySelector('[data-k=beams-title]').hidden")
    (best,) = translator().translate([SENTENCE], beam_size=5)
    assert part(page, "beams").locator("li").first.text_content().startswith(best)
    part(page, "search").select_option("sample")
    finished(page)
    part(page, "temperature").fill("1.8")
    finished(page)
    drawn = set()
    for _ in range(4):
        part(page, "again").click()
        finished(page)
        drawn.add(part(page, "say").text_content())
    assert len(drawn) > 1


def test_without_scripts_a_prepared_view_is_there(new_page, site):
    page = new_page(1280, 900, "light", java_script_enabled=False)
    page.goto(f"{site.address}/book/index.html")
    assert page.locator(".live-translator form").is_hidden()
    assert "".join(text_of(page)).startswith("Twodogsplay")
    assert page.locator("attention-view svg").first.is_visible()


def test_from_a_file_it_says_what_it_needs(new_page, site):
    page = new_page(1280, 900, "light")
    page.goto((site.html / "book/translate.html").as_uri())
    part(page, "form").locator(".go").click()
    page.wait_for_function("document.querySelector('[data-k=note]').textContent.includes('make serve')")


def test_buttons_are_large_enough_for_a_finger(visit):
    page = visit(PAGE, width=390, height=844).page
    translated(page)
    for chip in page.locator(".live-translator button:visible").all():
        assert large_enough(chip)
