"""The static figures look as they did when somebody last looked at them; renew with `python -m tests.viz.renew`."""

import sys

import matplotlib as mpl
import pytest
import torch
from matplotlib.colors import LinearSegmentedColormap
from tests.viz import renew
from tests.viz.figures import BASELINE, FIGURES, WORDS, as_text, picture, weights

from course_lib.viz import attention_map, heads_map
from tools.pictures import decode, same_picture, unexplained


def kept(name):
    return as_text((BASELINE / f"{name}.png").read_bytes())


@pytest.mark.parametrize("name", FIGURES)
def test_a_figure_looks_as_it_did(name):
    fresh = as_text(picture(FIGURES[name]))
    share = unexplained(decode(kept(name)), decode(fresh))
    assert same_picture(kept(name), fresh), (
        f"{name}: {share:.2%} of the pixels differ; look at it, and renew it with `python -m tests.viz.renew {name}`"
    )


def test_there_is_a_picture_for_each_figure_and_no_other():
    assert {path.stem for path in BASELINE.iterdir()} == set(FIGURES)


def test_pictures_are_small():
    assert max(path.stat().st_size for path in BASELINE.iterdir()) < 15_000


def changed_words(weights_, queries=WORDS, keys=WORDS):
    return lambda: attention_map(weights_, queries, keys, title="who looks where").figure


def test_a_changed_colour_scale_is_seen(monkeypatch):
    lighter = LinearSegmentedColormap.from_list("lighter", ["#ffffff", "#c9c6e6", "#7d76b8"])
    monkeypatch.setattr(sys.modules["course_lib.viz.attention_map"], "WEIGHTS", lighter)
    for name in FIGURES:
        assert not same_picture(kept(name), as_text(picture(FIGURES[name]))), name


def test_a_scale_that_follows_the_data_is_seen(monkeypatch):
    import seaborn

    heatmap = seaborn.heatmap
    monkeypatch.setattr(seaborn, "heatmap", lambda *a, **k: heatmap(*a, **{**k, "vmin": None, "vmax": None}))
    for name in ("words", "wide", "odd_rows", "heads"):
        assert not same_picture(kept(name), as_text(picture(FIGURES[name]))), name


def test_swapped_axes_are_seen():
    fresh = picture(changed_words(weights(5, 5).T.contiguous()))
    assert not same_picture(kept("words"), as_text(fresh))
    labels = picture(changed_words(weights(5, 5), WORDS[::-1]))
    assert not same_picture(kept("words"), as_text(labels))


def test_shifted_values_are_seen():
    rolled = weights(5, 5).roll(1, dims=-1)
    assert not same_picture(kept("words"), as_text(picture(changed_words(rolled))))
    other = weights(5, 5)
    other[3, 2] += 0.1
    assert not same_picture(kept("words"), as_text(picture(changed_words(other))))


def test_a_moved_diagonal_of_a_long_map_is_seen():
    diagonal = 6 * torch.eye(200, dtype=torch.float64).roll(8, dims=-1)
    moved = (diagonal + weights(200, 200)).softmax(-1)
    fresh = picture(lambda: attention_map(moved, [f"word {i}" for i in range(200)]).figure)
    assert not same_picture(kept("long"), as_text(fresh))


def test_exchanged_heads_are_seen():
    fresh = picture(lambda: heads_map(weights(5, 3, 4)[[1, 0, 2, 3, 4]], columns=3)[0].figure)
    assert not same_picture(kept("heads"), as_text(fresh))


def test_another_smoothing_of_text_is_not_a_change():
    with mpl.rc_context({"text.hinting": "none"}):
        fresh = picture(FIGURES["words"])
    assert fresh != picture(FIGURES["words"])
    assert same_picture(kept("words"), as_text(fresh))


def test_baselines_are_renewed_only_where_they_show_something_else(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(renew, "BASELINE", tmp_path / "baseline")
    renew.main(["one_token", "wide"])
    assert capsys.readouterr().out.count("written") == 2
    (tmp_path / "baseline/wide.png").write_bytes((BASELINE / "one_token.png").read_bytes())
    renew.main(["one_token", "wide"])
    assert capsys.readouterr().out.startswith("one_token: as it was\nwide: written")
    assert same_picture(kept("wide"), as_text((tmp_path / "baseline/wide.png").read_bytes()))
    with pytest.raises(SystemExit, match="no figure is called sheep; there are words"):
        renew.main(["sheep"])
