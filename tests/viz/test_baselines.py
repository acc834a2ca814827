"""The static figures look as they did when somebody last looked at them; renew with `python -m tests.viz.renew`."""

import sys

import matplotlib as mpl
import pytest
import seaborn
import torch
from matplotlib.colors import LinearSegmentedColormap

from course_kit.viz import attention_map
from tests.viz import renew
from tests.viz.figures import BASELINE, FIGURES, SHARE, WORDS, difference, picture, weights


def kept(name):
    return (BASELINE / f"{name}.png").read_bytes()


@pytest.mark.parametrize("name", FIGURES)
def test_a_figure_looks_as_it_did(name):
    share = difference(kept(name), picture(FIGURES[name]))
    assert share <= SHARE, (
        f"{name}: {share:.2%} of the pixels differ; look at it, and renew it with `python -m tests.viz.renew {name}`"
    )


def test_there_is_a_small_picture_for_each_figure_and_no_other():
    assert {path.stem for path in BASELINE.iterdir()} == set(FIGURES)
    assert max(path.stat().st_size for path in BASELINE.iterdir()) < 24_000


# Each change below is one that a test of the parts could miss, and is well beyond what is tolerated.


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["words", "long", "one_token"])
def test_a_changed_colour_scale_is_seen(monkeypatch, name):
    paler = LinearSegmentedColormap.from_list("paler", ["#ffffff", "#c9c6e6", "#7d76b8"])
    monkeypatch.setattr(sys.modules["course_kit.viz.attention_map"], "WEIGHTS", paler)
    assert difference(kept(name), picture(FIGURES[name])) > 2 * SHARE


@pytest.mark.parametrize("name", ["words", "wide", "odd_rows"])
def test_a_scale_that_follows_the_data_is_seen(monkeypatch, name):
    heatmap = seaborn.heatmap
    monkeypatch.setattr(seaborn, "heatmap", lambda *a, **k: heatmap(*a, **{**k, "vmin": None, "vmax": None}))
    assert difference(kept(name), picture(FIGURES[name])) > 4 * SHARE


def words_with(change):
    return lambda: attention_map(change(weights(5, 5)), WORDS, WORDS, title="who looks where")


ONE = torch.zeros(5, 5).index_put((torch.tensor(3), torch.tensor(2)), torch.tensor(0.1))
MOVED = (6 * torch.eye(200, dtype=torch.float64).roll(8, dims=-1)).softmax(-1)
OTHERS = {
    "the same": ("words", words_with(lambda w: w)),
    "swapped axes": ("words", words_with(lambda w: w.T.contiguous())),
    "shifted values": ("words", words_with(lambda w: w.roll(1, dims=-1))),
    "another entry": ("words", words_with(lambda w: w + ONE)),
    "moved diagonal": ("long", lambda: attention_map(MOVED, [f"word {i}" for i in range(200)])),
}


@pytest.mark.parametrize("change", OTHERS)
def test_another_content_is_seen(change):
    name, draw = OTHERS[change]
    share = difference(kept(name), picture(draw))
    assert share <= SHARE if change == "the same" else share > (SHARE if name == "long" else 4 * SHARE)


@pytest.mark.parametrize(("name", "hinting"), [("words", "none"), ("words", "force_autohint")])
def test_another_smoothing_of_text_is_not_a_change(name, hinting):
    with mpl.rc_context({"text.hinting": hinting}):
        fresh = picture(FIGURES[name])
    assert fresh != kept(name)
    assert difference(kept(name), fresh) <= SHARE


def test_baselines_are_renewed_only_where_they_show_something_else(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(renew, "BASELINE", tmp_path / "baseline")
    renew.main(["one_token", "wide"])
    assert capsys.readouterr().out.count("written") == 2
    (tmp_path / "baseline/wide.png").write_bytes(kept("one_token"))
    renew.main(["one_token", "wide"])
    assert capsys.readouterr().out.startswith("one_token: as it was\nwide: written")
    assert difference(kept("wide"), (tmp_path / "baseline/wide.png").read_bytes()) <= SHARE
    with pytest.raises(SystemExit, match="no figure is called sheep; there are words"):
        renew.main(["sheep"])
