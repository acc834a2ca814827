"""The reference of the API: every public name with its signature, its docstring and its place in the book."""

import ast
import inspect
import re
from importlib import import_module

import pytest

import course_lib as cl
from course_kit.exercises import STEMS, all_exercises
from tools.api_reference import anchor, api_sources, entries, expand_api
from tools.myst import blocks
from tools.pages import Page, all_pages

PAGE = Page("book/reference/api")
SOURCE = PAGE.source.read_text(encoding="utf-8")
SHOWN = [(block.argument, entries(block.argument, block.body.split() or None))
         for block in blocks(SOURCE) if block.is_directive("api")]  # fmt: skip
ENTRIES = [entry for _, found in SHOWN for entry in found]
HEADINGS = re.findall(r"^\(api-(.+)\)=\n###+ `(.+)`$", PAGE.text, re.MULTILINE)


def entry_of(name):
    return next(entry for entry in ENTRIES if entry.name == name)


def shown_as(name):
    """The part of the page between an entry's heading and the next one."""
    return re.search(rf"^###+ `{re.escape(name)}`$(.*?)(?=^\(api-|^## |\Z)", PAGE.text, re.MULTILINE | re.DOTALL)[1]


def test_every_public_name_has_an_entry():
    names = [name for _, name in HEADINGS]
    assert sorted(set(cl.__all__) - set(names)) == []
    for stem in STEMS:
        assert sorted(set(import_module(f"course_lib.{stem}").__all__) - set(names)) == []


def test_every_entry_has_an_address_of_its_own():
    addresses = [address for address, _ in HEADINGS]
    assert len(addresses) == len(set(addresses)) == len(ENTRIES)
    others = {anchor(heading) for heading in re.findall(r"^## (.+)$", PAGE.text, re.MULTILINE)}
    assert others.isdisjoint(addresses)  # else Sphinx would give the second of them a number
    assert anchor("causal_mask") == "causal-mask"
    assert anchor("MultiHeadAttention.from_torch") == "multiheadattention-from-torch"


@pytest.mark.parametrize("module", [module for module, _ in SHOWN])
def test_signatures_are_those_of_the_package(module):
    for entry in next(found for name, found in SHOWN if name == module):
        it = import_module(module)
        for part in entry.name.removeprefix("ck.nn.").split("."):
            it = inspect.getattr_static(it, part)
        it = getattr(it, "__func__", it)
        if isinstance(it, property) or getattr(it, "_is_protocol", False):
            continue
        parameters = list(inspect.signature(it).parameters)
        inside = entry.signature.removeprefix(entry.name)
        written = re.findall(r"(?:^\(|^    |, )\**(\w+)(?=:|,| =|\)|$)", inside.split(" -> ")[0], re.MULTILINE)
        expected = [name for name in parameters if name not in {"self", "cls"}]
        assert [name for name in written if name in expected] == expected, entry.name


def test_an_entry_shows_the_docstring_and_what_it_documents():
    text = shown_as("padding_mask")
    assert "Allow every key that is not padding, for all heads and all queries" in text
    assert '-> Bool[Tensor, "batch 1 1 length"]' in text
    assert "`ValueError`\n: `num_heads` does not divide `d_model`." in shown_as("split_heads")


def test_what_an_argument_has_to_be_is_in_the_signature():
    """Docstrings leave it out where the annotation says it."""
    text = shown_as("MultiHeadAttention.forward")
    assert '    query: Float[Tensor, "batch len_q d_model"],\n' in text
    assert '    mask: Mask["batch num_heads len_q len_k"] | None = None,\n' in text
    assert "MultiHeadAttention(d_model: Size, num_heads: Size)" in shown_as("MultiHeadAttention")
    assert "checked" not in shown_as("split_heads")


def test_the_fuller_layers_have_names_of_their_own():
    both = [name.removeprefix("ck.nn.") for _, name in HEADINGS if name.startswith("ck.nn.") and name.count(".") == 2]
    assert "MultiHeadAttention" in both
    assert set(both) <= set(cl.__all__)
    assert "(max_length: " in shown_as("ck.nn.LearnedPositionalEmbedding")  # the __init__ of the plain class


def test_every_sentence_of_a_docstring_is_on_the_page():
    letters = re.compile(r"\w+")
    # Links have addresses, and citations keys in place of names; parts are titled.
    plain = re.sub(r"\]\(#api-[^)]*\)|[\\`*]", "", PAGE.text)
    there = " ".join(letters.findall(plain))
    for entry in ENTRIES:
        for line in entry.docstring.split("\n"):
            if line.strip() and not re.match(r"\s*(Args|Returns|Raises|Yields|Source|Attributes):", line):
                line = re.sub(r"[`*]", "", line)
                if not re.search(r"\(\d{4}\)", line):
                    assert " ".join(letters.findall(line)) in there, (entry.name, line)


def test_every_exercise_that_is_a_public_name_is_linked():
    for name, exercise in all_exercises().items():
        if name in cl.__all__:
            assert f"{{ref}}`{exercise.title} <exercise-{anchor(name)}>`" in shown_as(name), name


def test_an_entry_names_its_chapter_and_the_pages_that_use_it():
    text = shown_as("padding_mask")
    assert "**Chapter** {doc}`/book/masking`" in text
    assert "**Used in** {doc}`/book/deeper/find_the_leak`" in text
    lessons = {page.name for page in all_pages() if page.is_lesson}
    named = set(re.findall(r"\{doc\}`/(book/[\w/]+)`", PAGE.text))
    assert named <= lessons
    assert {f"book/{stem}" for stem in STEMS} <= named


def test_a_name_in_a_sentence_is_set_as_code():
    assert "`num_heads` does not divide `d_model`" in shown_as("MultiHeadAttention")
    prose = re.sub(r"```.*?```|`[^`]*`|\]\([^)]*\)", "", PAGE.text.split("## Attention:")[1], flags=re.DOTALL)
    assert re.findall(r".*\w\\_\w.*", prose) == []


def test_sources_are_cited():
    assert "**Source:** {cite:t}`vaswani2017`, section 3.2.3." in shown_as("causal_mask")


def test_names_of_a_module_come_in_the_order_of_the_index():
    index = re.findall(r"\[`(\w+)`\]\(#api-", PAGE.text.split("## Attention:")[0])
    assert index == sorted(index, key=str.lower)
    for stem in STEMS:
        names = [entry.name for entry in entries(f"course_lib.{stem}") if not entry.is_method]
        assert names == [name for name in index if name in names], stem


@pytest.mark.parametrize("name", [entry.name for entry in ENTRIES if "**Fields**" in shown_as(entry.name)])
def test_a_list_of_fields_has_all_of_them(name):
    fields = {item.target.id for item in entry_of(name).node.body if isinstance(item, ast.AnnAssign)}
    assert set(re.findall(r"^`(\w+)`\n: ", shown_as(name).split("**Fields**")[1], re.MULTILINE)) == fields


def test_long_signatures_are_broken_into_lines():
    for entry in ENTRIES:
        assert max(map(len, entry.signature.split("\n"))) <= 88, entry.name
    signature = "broadcasts_to(shape: tuple[int, ...], target: tuple[int, ...]) -> bool"
    assert entry_of("broadcasts_to").signature == signature
    assert entry_of("RotaryPosition").signature == "RotaryPosition(base: Positive = 10_000.0)"


def test_the_page_is_read_again_when_a_docstring_changes():
    assert {file.name for file in api_sources(SOURCE)} >= {f"{stem}.py" for stem in STEMS}
    assert api_sources("```{note}\n```") == set()


def test_what_is_not_there_is_an_error():
    with pytest.raises(ValueError, match=r"no module 'course_lib\.nothing'"):
        expand_api("```{api} course_lib.nothing\n```")
    with pytest.raises(ValueError, match="was expected to define nothing"):
        expand_api("```{api} course_lib.masking\nnothing\n```")
