"""The view of activation patching, without a browser: shares, words and errors."""

import re

import torch

from course_kit.viz import patching_view
from course_kit.viz.view_numbers import fixed
from tests.viz.drawn import parts

HUND, KATZE = ["Ein", "Hund", "."], ["Eine", "Katze", "."]


def cells(view):
    """Row by row from the top: place, position and share in the name of a cell, and the text in it."""
    found = re.findall(r'aria-label="([^"]+) at (\S+): share (−?[\d.]+)" aria-selected="\w+"><span>([^<]+)<', view.body)
    assert [text for *_, text in found] == [share for *_, share, _ in found]
    return [" ".join(cell[:3]) for cell in found]


def test_shares_computed_by_hand():
    # from 4 to −4: 3 is an eighth of the way, −4 all of it, 5 an eighth the wrong way, −5 nine eighths
    view = patching_view(torch.tensor([[4.0, 3.0, 5.0], [4.0, -4.0, -5.0]]), 4, torch.tensor(-4), ["bottom", "top"])
    assert cells(view) == [
        *("top 0 0.000", "top 1 1.000", "top 2 1.125"),
        *("bottom 0 0.000", "bottom 1 0.125", "bottom 2 −0.125"),
    ]
    assert re.findall(r'class="below" style="--p:([\d.]+)"', view.body) == ["0.125"]
    assert re.findall(r'style="--p:([\d.]+)"', view.body) == ["0", "1", "1", "0", "0.125", "0.125"]
    # the line goes from −0.125 to 1.125, 240 units long from 50
    assert re.findall(r'<path class="line" d="M([\d.]+) 55v14"', view.body) == ["74", "266"]
    assert 'style="transform:translate(290px)"' in view.body  # the largest share is chosen first
    assert view.description == (
        "2 places and 3 positions. In the patched run, the measured output is 4.000; in the other run, it is −4.000. "
        "Largest shares of the way: top at 2 1.125, top at 1 1.000, bottom at 1 0.125. "
        "Patches that go at least half of the way: 2 of 6, all at 1, 2. Smallest: bottom at 2 −0.125."
    )
    told = "In the patched run, the output of top at “2” is replaced by what the other run computes there."
    assert told in view.body  # without names


def test_shares_are_those_of_torch():
    patched, clean, other = torch.randn(4, 3), -1.3, 0.4
    view = patching_view(patched, clean, other, tokens=HUND)
    shares = (patched.double() - clean) / (other - clean)
    assert [cell.split()[-1] for cell in cells(view)] == [fixed(x) for x in shares.flip(0).flatten().tolist()]
    assert torch.equal(torch.tensor(view.data["patched"], dtype=torch.float64), patched.double())
    assert (view.data["clean"], view.data["other"]) == (clean, other)


def test_the_sentence_says_what_was_put_where():
    for chosen, there, now in (
        (None, "“Hund” is replaced by what the run on “Eine Katze.” computes at “Katze”.", "2.000"),
        ((0, 2), "“.” is replaced by what the run on “Eine Katze.” computes there.", "0.250"),
    ):
        settings = {"other_tokens": KATZE, "runs": ("Ein Hund.", "Eine Katze."), "measure": "d", "chosen": chosen}
        view = patching_view(torch.tensor([[0.5, 2.0, 0.25]]), 0, 2, ["layer 2"], HUND, **settings)
        assert f"In the run on “Ein Hund.”, the output of layer 2 at {there}" in view.body
        assert parts(view)["now"].text == now
    heads = re.findall(r'role="columnheader" class="ends"><span>([^<]+)<', view.body)
    assert heads == ["Ein\nEine", "Hund\nKatze", "."]
    assert [cell.split()[2] for cell in cells(view)] == ["Ein/Eine", "Hund/Katze", "."]
    assert "of the way: layer 2 at Hund/Katze 1.000, layer 2 at Ein/Eine 0.250" in view.description


def test_names_are_text():
    view = patching_view(torch.randn(1, 1), 0, 1, ["<b>"], ["<i>"], runs=("<u>", "<s>"), measure="<em>")
    assert not re.search("<(b|i|u|s|em)>", view.body)
