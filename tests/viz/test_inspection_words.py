"""The view of a word in its contexts, without a browser: planes, cosines, words and errors."""

import re

import numpy as np
import pytest
import torch

from course_kit.viz import contextual_words

SENTENCES = ["s0", "s1", "s2", "s3", "s4"]
SENSES = ["x", "y", "x", "y", "y"]
MIDDLE = torch.tensor([170.0, 150.0])


def test_figures_computed_by_hand():
    layer = torch.tensor([[1.0, 0.0], [0.0, 1.0], [3.0, 0.0], [0.0, 2.0], [3.0, 4.0]])
    view = contextual_words(layer[None], SENTENCES, SENSES, word="flies")
    # within: (0, 2) 1; (1, 3) 1; (1, 4) 0.8; (3, 4) 0.8. across: 0, 0, 0.6 for each of the two of sense x
    assert view.data["told"] == [
        "Layer 0: mean cosine 0.900 within a sense and 0.200 across senses; the nearest one has the same sense for 5 "
        "of 5; the plane shows 1.000 of the variance."
    ]
    assert view.data["near"][0][0] == [2, "1.000"]
    assert view.data["near"][0][4][1] == "0.800"
    about = "“flies” in 5 sentences, 2 senses (x, y), from the embedding (layer 0) to layer 0."
    assert view.description.startswith(f"{about} {view.data['told'][0]}")


def test_the_plane_is_that_of_numpy_and_fills_the_picture():
    vectors = torch.randn(3, 5, 7)
    data = contextual_words(vectors, SENTENCES, SENSES).data
    for layer, places, told in zip(vectors.double().numpy(), data["places"], data["told"], strict=True):
        centred = layer - layer.mean(0)
        values, axes = np.linalg.eigh(centred.T @ centred)
        plane = np.abs(centred @ axes[:, [-1, -2]])  # up to the signs
        shown = np.abs(np.array(places) - [170, 150])
        assert shown.max() == pytest.approx(124, abs=0.06)
        np.testing.assert_allclose(shown, shown.max() / plane.max() * plane, atol=0.06)
        assert f"the plane shows {values[-2:].sum() / values.sum():.3f} of the variance" in told


def test_signs_follow_the_largest_loading_above_and_agree_below():
    vectors = torch.randn(1, 5, 7).expand(4, -1, -1).clone() + 0.02 * torch.randn(4, 5, 7)
    places = torch.tensor(contextual_words(vectors).data["places"])
    assert (places - places[-1]).abs().max() < 25  # nothing turns over from layer to layer
    mirrored = torch.tensor(contextual_words(-vectors).data["places"])
    torch.testing.assert_close(mirrored[-1] - places[-1], 2 * (MIDDLE - places[-1]), atol=0.2, rtol=0)
    centred = vectors[-1].double() - vectors[-1].double().mean(0)
    loadings = torch.linalg.eigh(centred.T @ centred).eigenvectors
    across, up = (loadings[:, i] * loadings[:, i][loadings[:, i].abs().argmax()].sign() for i in (-1, -2))
    assert torch.equal(centred @ across > 0, places[-1, :, 0] > 170)
    assert torch.equal(centred @ up > 0, places[-1, :, 1] < 150)  # the picture counts from above


def test_equal_vectors_lie_in_the_middle():
    vectors = torch.randn(2, 5, 7)
    vectors[0] = vectors[0, 0]
    data = contextual_words(vectors, SENTENCES, SENSES).data
    assert data["places"][0] == [[170.0, 150.0]] * 5
    assert "mean cosine 1.000 within a group and 1.000 across groups" in data["told"][0]


def test_marks_that_would_cover_each_other_are_drawn_apart():
    vectors = torch.randn(2, 40, 7)
    vectors[0, :9], vectors[0, 9:12] = vectors[0, 0], vectors[0, 9]
    data = contextual_words(vectors).data
    drawn = torch.tensor(data["drawn"])
    assert (torch.cdist(drawn, drawn) + 99 * torch.eye(40)).min() >= 25
    assert (drawn >= 13).all()
    assert (drawn <= torch.tensor([327.0, 287.0])).all()
    assert data["told"][0].endswith(" and 12 points in it coincide with others.")
    assert "coincide" not in data["told"][1]


def test_marks_that_are_clear_of_others_stay_in_their_place():
    vectors = torch.tensor([[[0.0, 5.0], [5.0, 0.0], [-5.0, 0.0], [-5.0, 0.0], [0.0, -5.0]]])
    view = contextual_words(vectors)
    places, drawn = torch.tensor(view.data["places"][0]), torch.tensor(view.data["drawn"][0])
    assert (drawn != places).any(1).tolist() == [False, False, True, True, False]
    leaders = re.findall(r'class="leader" d="M([\d.]+) ([\d.]+)L([\d.]+) ([\d.]+)"', view.body)
    ends = torch.tensor([[float(x) for x in leader] for leader in leaders])
    assert ends == pytest.approx(torch.cat([drawn, places], 1), abs=0.051)


def test_one_feature_is_a_line():
    assert (torch.tensor(contextual_words(torch.randn(2, 5, 1)).data["places"])[..., 1] == 150).all()


def test_the_picture_begins_with_the_embedding_and_names_all():
    view = contextual_words(torch.randn(3, 5, 4), SENTENCES, SENSES, word="<b>")
    assert "<b>" not in view.body
    shown = re.findall(r'aria-label="(\d): (s\d)" style="transform:translate\(([\d.]+)px,([\d.]+)px\)"', view.body)
    assert [[float(x), float(y)] for *_, x, y in shown] == view.data["drawn"][0]
    assert view.status == view.data["told"][0]
    assert 'max="2" step="1" value="0"' in view.body
    assert [int(n) for n, *_ in shown] == [1, 2, 3, 4, 5]
    assert re.findall(r"(s\d) \((\w)\)</li>", view.body) == list(zip(SENTENCES, SENSES, strict=True))
    assert view.data["senses"] == SENSES


def test_without_senses_there_is_nothing_across():
    view = contextual_words(torch.randn(3, 5, 4))
    assert "across" not in view.data["told"][0]
    assert 'data-k="across"' not in view.body
    assert "sentence 0" in view.body
    assert "within" not in contextual_words(torch.randn(3, 3, 4), senses=list("abc")).data["told"][0]
