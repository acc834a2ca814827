"""The remark on a softmax whose rows without a key are covered only afterwards."""

import pytest

from course_kit.checker.verdict.style_notes import remarks_on
from course_kit.exercises import find

COVERED = (
    "def masked_softmax(scores, mask):\n"
    "    weights = scores.masked_fill(~mask, float('-inf')).softmax(-1)\n"
    "    return torch.where(mask, weights, 0.0)\n"
)


def test_a_nan_that_is_overwritten_after_the_softmax_gets_one_remark():
    (remark,) = remarks_on(find("masked_softmax"), [COVERED])
    assert "overwritten afterwards" in remark


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("~mask, float('-inf')", "~(mask | ~mask.any(-1, keepdim=True)), float('-inf')"),
        ("float('-inf')", "torch.finfo(scores.dtype).min"),
    ],
    ids=["rows opened before the softmax", "the lowest finite number"],
)
def test_a_row_that_gives_no_nan_gets_no_remark(old, new):
    assert old in COVERED
    assert remarks_on(find("masked_softmax"), [COVERED.replace(old, new)]) == ()
