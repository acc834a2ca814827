"""Self-check questions: from a page's source to choices that open their explanations."""

import re

import nbformat
import pytest

from tools.page_to_notebook import RAW_MYST, to_notebook
from tools.pages import Page
from tools.questions import Choice, expand_questions, questions

SOURCE = """\
before

```{question} Which axis has length $L_k$?
- The queries.
  They are
  the rows.
+ The `keys`.
  They are the columns.
- Both.
  Only in self-attention.
```

after
"""


def test_a_question_is_read():
    (question,) = questions(SOURCE)
    assert question.text == "Which axis has length $L_k$?"
    assert question.choices[0] == Choice("The queries.", False, "They are\nthe rows.")
    assert [choice.right for choice in question.choices] == [False, True, False]


def test_the_book_gets_a_dropdown_for_each_choice():
    text = expand_questions(SOURCE)
    assert text.startswith("before\n\n::::{admonition} Check yourself\n:class: question\n\nWhich axis")
    assert text.rstrip().endswith("after")
    assert text.count(":::{dropdown}") == 3
    assert ":::{dropdown} The `keys`.\n:class-container: choice right\n**Right.** They are the columns.\n:::" in text
    assert text.count("**No.**") == 2


def test_a_notebook_gets_the_same_as_plain_html(tmp_path):
    (tmp_path / "book").mkdir()
    (tmp_path / "book/x.md").write_text(
        "---\nkernelspec:\n  name: python3\n  display_name: Python 3\n---\n\n# X\n\n" + SOURCE, encoding="utf-8"
    )
    notebook = to_notebook(Page("book/x", tmp_path), None)
    assert nbformat.validate(notebook) is None
    text = notebook.cells[0].source + notebook.cells[-1].source
    assert "**Check yourself.** Which axis has length $L_k$?" in text
    assert "<details><summary><b>The <code>keys</code>.</b></summary>\n\n**Right.** They are the columns." in text
    assert text.count("<details>") == text.count("</details>") == 3
    assert not re.search(r"^>", text, re.MULTILINE)  # nothing folds inside a quotation
    assert not RAW_MYST.search(text)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("Which axis has length $L_k$?", ""), "a question has no text"),
        (("+ The `keys`.\n  They are the columns.\n", ""), "expected three choices or more, got 2"),
        (("+ The", "- The"), "expected one right choice, marked \\+, got 0"),
        (("- Both", "+ Both"), "expected one right choice, marked \\+, got 2"),
        (("- Both.", "- The queries."), "two choices say the same"),
        (("- Both.", "- See {eq}`eq-x`."), "holds a link"),
        (("- Both.", "- See [x](y.md)."), "holds a link"),
        (("  Only in self-attention.\n", ""), "the choice 'Both.' has no explanation"),
        (("- Both.", "Both."), "expected '\\+ choice', '- choice' or an indented explanation, got 'Both.'"),
        (("$L_k$?\n", "$L_k$?\n  Early.\n"), "an explanation stands before the first choice: 'Early.'"),
    ],
)
def test_what_is_no_question_is_refused(change, message):
    with pytest.raises(ValueError, match=message):
        expand_questions(SOURCE.replace(*change))
