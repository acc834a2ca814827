"""The view of activation patching, without a browser: shares, words and errors."""

import re

import pytest
import torch

from course_kit.viz import patching_view
from course_kit.viz.view_numbers import fixed

HUND, KATZE = ["Ein", "Hund", "."], ["Eine", "Katze", "."]


def cells(view):
    """Row by row from the top: place, position and share in the name of a cell, and the text in it."""
    found = re.findall(r'aria-label="([^"]+) at (\S+): share (−?[\d.]+)" aria-selected="\w+"><span>([^<]+)<', view.body)
    assert [text for *_, text in found] == [share for *_, share, _ in found]
    return [(place, position, share) for place, position, share, _ in found]


def test_shares_computed_by_hand():
    # from 4 to −4: 3 is an eighth of the way, −4 all of it, 5 an eighth the wrong way, −5 nine eighths
    view = patching_view(torch.tensor([[4.0, 3.0, 5.0], [4.0, -4.0, -5.0]]), 4, torch.tensor(-4), ["bottom", "top"])
    assert cells(view) == [
        ("top", "0", "0.000"),
        ("top", "1", "1.000"),
        ("top", "2", "1.125"),
        ("bottom", "0", "0.000"),
        ("bottom", "1", "0.125"),
        ("bottom", "2", "−0.125"),
    ]
    assert re.findall(r'class="below" style="--p:([\d.]+)"', view.body) == ["0.125"]
    assert re.findall(r'style="--p:([\d.]+)"', view.body) == ["0", "1", "1", "0", "0.125", "0.125"]
    # the line goes from −0.125 to 1.125, 240 units long from 50
    ends = [float(x) for x in re.findall(r'<path class="line" d="M([\d.]+) 55v14"', view.body)]
    assert ends == [74, 266]
    assert 'style="transform:translate(290px)"' in view.body  # the largest share is chosen first
    assert view.description == (
        "2 places and 3 positions. In the patched run, the measured output is 4.000; in the other run, it is −4.000. "
        "Largest shares of the way: top at 2 1.125, top at 1 1.000, bottom at 1 0.125. "
        "Patches that go at least half of the way: 2 of 6, all at 1, 2. Smallest: bottom at 2 −0.125."
    )


def test_shares_are_those_of_torch():
    patched, clean, other = torch.randn(4, 3), -1.3, 0.4
    view = patching_view(patched, clean, other, tokens=HUND)
    shares = (patched.double() - clean) / (other - clean)
    expected = [fixed(x) for x in shares.flip(0).flatten().tolist()]
    assert [share for *_, share in cells(view)] == expected
    assert torch.equal(torch.tensor(view.data["patched"], dtype=torch.float64), patched.double())
    assert (view.data["clean"], view.data["other"]) == (clean, other)


def test_the_sentence_says_what_was_put_where():
    patched = torch.tensor([[0.5, 2.0, 0.25]])
    settings = {"other_tokens": KATZE, "runs": ("Ein Hund.", "Eine Katze."), "measure": "d"}
    view = patching_view(patched, 0, 2, ["layer 2"], HUND, **settings)
    assert (
        "In the run on “Ein Hund.”, the output of layer 2 at “Hund” is replaced by what the run on “Eine Katze.” "
        "computes at “Katze”." in view.body
    )
    assert ">2.000</text>" in view.body
    view = patching_view(patched, 0, 2, ["layer 2"], HUND, **settings, chosen=(0, 2))
    assert "at “.” is replaced by what the run on “Eine Katze.” computes there." in view.body
    assert 'data-k="now"' in view.body
    assert re.search(r'data-k="now"[^>]*>0\.250<', view.body)
    assert re.findall(r'role="columnheader" class="ends"><span>([^<]+)<', view.body) == [
        "Ein\nEine",
        "Hund\nKatze",
        ".",
    ]
    assert [position for _, position, _ in cells(view)] == ["Ein/Eine", "Hund/Katze", "."]
    assert "of the way: layer 2 at Hund/Katze 1.000, layer 2 at Ein/Eine 0.250" in view.description


def test_without_names_the_runs_are_the_patched_and_the_other():
    body = patching_view(torch.tensor([[1.0, 0.0]]), 0, 1).body
    assert "In the patched run, the output of place 0 at “0” is replaced by what the other run computes there." in body


def test_names_are_text():
    view = patching_view(torch.randn(1, 1), 0, 1, ["<b>"], ["<i>"], runs=("<u>", "<s>"), measure="<em>")
    assert not re.search("<(b|i|u|s|em)>", view.body)


@pytest.mark.parametrize(
    ("patched", "clean", "other", "settings", "error", "message"),
    [
        ([[1.0]], 0, 1, {}, TypeError, r"must be a tensor \(num_places, L\), got list; torch.tensor makes one"),
        (torch.ones(3), 0, 1, {}, ValueError, r"got \(3,\); put parts and layers into one axis"),
        (torch.ones(2, 3, 4), 0, 1, {}, ValueError, r"got \(2, 3, 4\)"),
        (torch.ones(2, 0), 0, 1, {}, ValueError, r"got \(2, 0\)"),
        (torch.ones(2, 3) / 0, 0, 1, {}, ValueError, "patched must be finite, got NaN or infinity"),
        (torch.ones(2, 3), torch.nan, 1, {}, ValueError, "clean must be a finite number between .*, got nan"),
        (torch.ones(2, 3), 0, torch.inf, {}, ValueError, "other must be a finite number between .*, got inf"),
        (torch.ones(2, 3), torch.ones(2), 1, {}, ValueError, r"clean must be one number, .* got \(2,\)"),
        (torch.ones(2, 3), 0, None, {}, TypeError, "other must be a number, got None"),
        (torch.ones(2, 3), 1.5, 1.5, {}, ValueError, "clean and other must differ, got 1.5 and 1.5"),
        (torch.ones(2, 3), 0, 0, {}, ValueError, "clean and other must differ, got 0 and 0"),
        (1e13 * torch.ones(2, 3), 0, 1, {}, ValueError, r"below 1e\+12 in size, got 1e\+13"),
        (torch.ones(2, 3), 0, 1, {"places": ["a"]}, ValueError, "places must have a label for each of the 2, got 1"),
        (torch.ones(2, 3), 0, 1, {"tokens": ["a"]}, ValueError, "tokens must have a label for each of the 3, got 1"),
        (torch.ones(2, 3), 0, 1, {"other_tokens": ["a"]}, ValueError, "other_tokens must have a label for each of"),
        (torch.ones(2, 3), 0, 1, {"runs": ["a"]}, ValueError, r"runs must be two names, .* got \['a'\]"),
        (torch.ones(2, 3), 0, 1, {"runs": "ab"}, TypeError, "runs must be a list of texts, got 'ab'"),
        (torch.ones(2, 3), 0, 1, {"chosen": (2, 0)}, ValueError, "chosen must be at most 1, got 2"),
        (torch.ones(33, 32), 0, 1, {}, ValueError, "at most 1024 cells and 128 positions, got 33 × 32"),
    ],
)
def test_what_is_refused(unchecked, patched, clean, other, settings, error, message):
    with pytest.raises(error, match=message):
        patching_view(patched, clean, other, **settings)
