"""What counts as prose, by hand."""

import pytest

from tools.reading import prose_words


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
