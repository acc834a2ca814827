"""A page's source as blocks: nothing is lost, and what only looks like a block is none."""

import pytest

from tools.myst import blocks, in_line, replaced, titled
from tools.pages import all_pages


def kinds(source):
    return [(block.kind, block.name) for block in blocks(source) if block.source.strip()]


@pytest.mark.parametrize("page", all_pages(), ids=lambda page: page.name)
def test_the_blocks_of_a_page_are_the_page(page):
    source = page.source.read_text(encoding="utf-8")
    assert "\n".join(block.source for block in blocks(source)) == source
    assert "\n".join(block.source for block in blocks(page.text)) == page.text


def test_each_kind_of_block():
    source = (
        "---\na: 1\n---\n# Title\n\n(here)=\n## Part\n\n$$\nx\n$$ (eq-x)\n\n% said to authors\n\n```python\n1\n```\n"
    )
    assert kinds(source) == [
        ("header", ""), ("text", ""), ("label", "here"), ("text", ""), ("math", "eq-x"), ("comment", ""),
        ("code", "python"),
    ]  # fmt: skip


def test_a_directive_is_taken_apart():
    (block,) = blocks("````{dropdown} The `code`\n:class: wide\n\n```python\n1\n```\n````")
    assert (block.name, block.argument, block.options) == ("dropdown", "The `code`", {"class": "wide"})
    assert block.body == "\n```python\n1\n```"


def test_options_may_be_yaml():
    (block,) = blocks(
        "```{code-cell} ipython3\n---\ntags: [hide-input]\nmystnb:\n  image: {alt: text}\n---\nx = 1\n```"
    )
    assert block.options == {"tags": ["hide-input"], "mystnb": {"image": {"alt": "text"}}}
    assert block.body == "x = 1"


def test_a_question_may_have_code_in_its_line():
    """CommonMark says that a fence of backticks has none there."""
    (block,) = blocks("```{question} What is `x`?\n+ `1`\n```")
    assert (block.name, block.argument, block.body) == ("question", "What is `x`?", "+ `1`")


@pytest.mark.parametrize(
    "source",
    [
        "```python\n```{exercise} softmax\n```",  # shown, as code
        "- in a list\n\n  ```{exercise} softmax\n  ```",
        "    ```{exercise} softmax\n    ```",
        "Words ```{exercise} softmax``` and words",
    ],
)
def test_what_only_looks_like_a_directive(source):
    assert not any(block.kind == "directive" for block in blocks(source))


def test_a_fence_that_is_never_closed():
    with pytest.raises(ValueError, match="never closed"):
        blocks("```{note}\nwords")
    with pytest.raises(ValueError, match="never closed"):
        blocks(":::{note}\nwords\n")


def test_one_directive_is_replaced_and_the_rest_stays():
    source = "One\n\n```{a} x\n```\n\n```{b} y\n```\ntwo\n"
    assert replaced(source, "a", lambda block: block.argument.upper()) == "One\n\nX\n\n```{b} y\n```\ntwo\n"


def test_what_stands_in_a_line():
    kinds = [(token.type, token.content) for token in in_line("A {doc}`b <c>` and $d$ `e`")]
    assert kinds == [
        ("text", "A "), ("myst_role", "b <c>"), ("text", " and "), ("math_inline", "d"), ("text", " "),
        ("code_inline", "e"),
    ]  # fmt: skip
    assert titled("b <c>") == ("b", "c")
    assert titled("c") == (None, "c")
