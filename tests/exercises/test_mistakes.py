"""Mistakes as patches of the solution: what their files may say, and what is made of it."""

import re

import pytest
import torch

from course_kit.exercises import find
from course_kit.exercises._mistakes import OverlapError, built, mistakes_in, parts_in, patched

SOLUTION = """\
def attend(query, key, mask=None):
    scores = query @ key.mT / math.sqrt(query.shape[-1])  # (..., L_q, L_k)
    if mask is not None:
        scores = scores.masked_fill(~mask, -math.inf)
    return scores.softmax(-1)
"""

FILE = """\
# Mistakes in `attend`

## no_root  (see: notation: Conventions)

The scores are not divided by the
root of d_k.

- / math.sqrt(query.shape[-1])

## over_{axis}  (for axis: -2 0)

The softmax runs over axis {axis}.

- softmax(-1)
+ softmax({axis})

## always_hidden

The mask is used where there is none.

- if mask is not None:
-     scores = scores.masked_fill(~mask, -math.inf)
+ mask = torch.ones(1).bool() if mask is None else mask
+ if True:
+     scores = scores.masked_fill(mask, -math.inf)

# Inherited

## softmax
called: softmax
without: unstable float32_*

- scores.softmax(-1)
+ softmax(scores, -1)

## whole
from: attend
whole: yes

# Two at once

- no_root: the scores
  are not divided
- over_-2: the softmax runs over the queries
- over_0: it runs over the first axis
- always_hidden: the mask is turned round
- without no_root+always_hidden
"""


MISTAKES = {mistake.key: (mistake, code) for mistake, code in mistakes_in(FILE, "attend.md", SOLUTION).items()}


def test_a_mistake_has_key_message_and_options():
    first, second = MISTAKES["no_root"][0], MISTAKES["over_-2"][0]
    assert first.message == "The scores are not divided by the root of d_k."
    assert first.see == "notation: Conventions"
    assert (second.message, second.see) == ("The softmax runs over axis -2.", "")


def test_what_stands_in_the_solution_once_is_exchanged():
    assert "scores = query @ key.mT   # (" in MISTAKES["no_root"][1]
    assert MISTAKES["over_0"][1] == SOLUTION.replace("softmax(-1)", "softmax(0)")
    assert MISTAKES["always_hidden"][1] == SOLUTION.replace(
        "    if mask is not None:\n        scores = scores.masked_fill(~mask, -math.inf)\n",
        "    mask = torch.ones(1).bool() if mask is None else mask\n"
        "    if True:\n        scores = scores.masked_fill(mask, -math.inf)\n",
    )


def test_pairs_are_composed_except_those_left_out_and_those_that_change_one_place():
    assert [*MISTAKES][4:] == ["no_root+over_-2", "no_root+over_0", "over_-2+always_hidden", "over_0+always_hidden"]
    pair, code = MISTAKES["no_root+over_0"]
    assert "math.sqrt" not in code
    assert "softmax(0)" in code
    told = "the scores are not divided, and it runs over the first axis. Correct them one at a time."
    assert pair.message == f"There are two mistakes here: {told}"


def test_an_empty_line_ends_a_change():
    changes = "## x\n\nX.\n\n- a = 1\n\n- c = 3\n+ c = 4\n"
    ((mistake, code),) = mistakes_in(f"# T\n\n{changes}", "x.md", "a = 1\nb = 2\nc = 3").items()
    assert mistake.changes == (("a = 1", ""), ("c = 3", "c = 4"))
    assert code == "\nb = 2\nc = 4"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("- softmax(-1)\n", "- scores\n", "attend.md: over_-2: expected 'scores' once in the solution, found it 4"),
        ("- softmax(-1)\n", "- max(-2)\n", "found it 0 times"),
        ("## over_{axis}  (for axis: -2 0)", "## over_-2  (for axis: -2 0)", "two mistakes are called 'over_-2'"),
        ("The mask is used where there is none.\n", "", "expected a message and at least one change in"),
        ("- / math.sqrt(query.shape[-1])\n", "", "expected a message and at least one change in 'no_root'"),
        ("+ softmax({axis})\n", "+ softmax({axis})\nand so on\n", "expected lines that begin with '- ' and then '+ '"),
        ("see: notation", "look: notation", "expected '## key' or '## key  (see: page: heading)'"),
        ("# Two at once", "# Three at once", "expected a title and some of Inherited, Two at once, Written out"),
        ("- without no_root+", "- without no_rot+", "no mistake is called no_rot"),
        ("- without no_root+", "- wthout no_root+", "expected '- key: words' or '- without a+b'"),
        ("(see: notation: Conventions)", "(see)", "expected '## key' or '## key  (see: page: heading)'"),
        ("## no_root", "- lost\n\n## no_root", "expected '## key', got '- lost'"),
        ("# Mistakes in `attend`\n", "", "expected a title and some of Inherited, Two at once, Written out"),
        ("# Two at once", "# Inherited", "expected a title and some of Inherited, Two at once, Written out"),
        ("- softmax(-1)\n+ softmax({axis})", "-     softmax(-1)\n+     x\n+ y", "indented less than its first"),
    ],
)
def test_a_file_that_is_not_as_expected_is_an_error_that_names_it(old, new, message):
    assert old in FILE
    with pytest.raises(ValueError, match=rf"attend\.md.*{re.escape(message.removeprefix('attend.md'))}"):
        mistakes_in(FILE.replace(old, new), "attend.md", SOLUTION)


def test_changes_of_one_place_and_passages_that_stand_there_twice_are_errors():
    with pytest.raises(OverlapError, match="two changes overlap at"):
        patched("a + b", (("a + b", "a"), ("+ b", "- b")))
    with pytest.raises(ValueError, match="found it 2 times"):  # once within the other
        patched("1, 1, 1", (("1, 1", "2"),))


def test_parts_say_whose_mistakes_are_inherited():
    softmax, whole = parts_in(FILE, "attend.md")
    assert (softmax.prefix, softmax.exercise, softmax.called, softmax.known_as) == ("softmax",) * 4
    assert [softmax.takes(key) for key in ("unstable", "float32_inside", "wrong_axis")] == [False, False, True]
    assert softmax.changes == (("scores.softmax(-1)", "softmax(scores, -1)"),)
    assert (whole.exercise, whole.whole, whole.called) == ("attend", True, "`attend`")
    for old, new, message in (
        ("called:", "named:", "softmax has an unknown option named"),
        ("called: softmax\n", "called softmax\n", "softmax: expected 'option: value', each once"),
        ("whole: yes", "whole: no", "whole: expected 'option: value', each once, and 'whole: yes' without a change"),
    ):
        with pytest.raises(ValueError, match=rf"attend\.md: {re.escape(message)}"):
            parts_in(FILE.replace(old, new), "attend.md")


def test_a_part_says_what_of_it_has_no_effect():
    softmax, _ = parts_in(FILE, "attend.md")
    keys, code = ["unstable", "float32_inside"], patched(SOLUTION, softmax.changes)
    assert softmax.useless(keys, code) == ""
    assert softmax.useless(["unstable"], code) == "no mistake of softmax is called float32_*"
    assert softmax.useless(keys, SOLUTION) == "the solution with this change does not call softmax"


def test_code_sees_the_names_of_its_module_and_others():
    assert built("def f(x):\n    return helper(x) + math.pi", "f", __name__, helper=lambda x: x)(1) > 4
    assert built("def f():\n    return SOLUTION", "f", __name__)() is SOLUTION


def test_an_inherited_mistake_is_made_inside_the_solution():
    exercise = find("self_attention")
    own = {mistake.key: mistake for mistake in exercise.misconceptions}
    inherited = own["scaled_dot_product_attention/no_scale"]
    assert inherited.inherited_from == ("attention",)
    assert inherited.message.startswith("In your attention: ")
    x, matrices = torch.randn(5, 4), torch.randn(3, 4, 9)
    _, weights = inherited.solution(x, *matrices)
    assert torch.allclose(weights, ((x @ matrices[0]) @ (x @ matrices[1]).mT).softmax(-1))
