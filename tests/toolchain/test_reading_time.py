"""How long a page takes: what counts as prose and as code, by hand."""

import pytest

from tools.reading import code_lines, exercise_minutes, prose_words, reading_minutes, with_times


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("---\nkernelspec:\n  name: python3\n---\n\n# A title\n\nTwo words.", 4),
        ("One.\n\n```{code-cell}\nnot = read\n```\n\nTwo.", 2),
        ("One.\n\n```{exercise} softmax\n```\n\nTwo.", 2),
        ("One.\n\n````{dropdown} Folded\nnot\n```python\nread\n```\n````\n\nTwo.", 2),
        (":::{note}\n:class: small\nThis is read.\n:::", 3),
        ("```{admonition} Why\n:class: dropdown\nNot read.\n```", 0),
        ("```{admonition} Look here\n:class: takeaway\nThis is read.\n```", 5),
        ("The sum $a + b$ is three.\n\n$$\na + b\n$$ (eq-sum)\n\nDone.", 6),
        ("(label)=\n## See {doc}`the page <page>` and {cite:p}`one`", 5),
        ("Don't count 0.25 or layer-norm twice.", 6),
    ],
)
def test_prose_is_counted(source, words):
    assert prose_words(source) == words


CELL = "```{code-cell} ipython3\nx = 1\n\nprint(x)\n```\n"
FOLDED = "```{code-cell} ipython3\n:tags: [hide-input]\nx = 1\n```\n"
FIGURE = (
    "```{code-cell} ipython3\n---\ntags: [hide-input, trained]\nmystnb:\n  image:\n    alt: words\n---\nx = 1\n```\n"
)
TAGGED = "```{code-cell} ipython3\n:tags: [trained, nbval-ignore-output]\n\nx = 1\n```\n"


@pytest.mark.parametrize(
    ("source", "lines"),
    [("Words.", 0), (CELL, 2), (FOLDED, 0), (FIGURE, 0), (TAGGED, 1), (f"{CELL}\n{FOLDED}\n{TAGGED}", 3)],
)
def test_code_is_counted_where_it_is_seen(source, lines):
    assert code_lines(source) == lines


def test_the_minutes_of_a_page_by_hand():
    """260 words at 130 a minute, 2 lines at 10 a minute, a figure and a view: 6.7; `softmax` takes 10 minutes."""
    figure = "```{code-cell}\n:tags: [hide-input]\nplt.show()\n```\n\n*Before you touch the view: why?*\n"
    source = "# A title\n\n" + "word " * 252 + f"\n\n{CELL}\n{figure}\n```{{exercise}} softmax\n```\n"
    assert prose_words(source) == 260
    assert (reading_minutes(source), exercise_minutes(source)) == (7, 10)
    line = "# A title\n\n*Optional: 7 minutes to read, 10 minutes of exercises*\n\nword"
    assert with_times(source, "Optional").startswith(line)
    assert with_times("# A title\n\nTwo words.", "Optional").startswith("# A title\n\n*Optional: 1 minute to read*\n")
