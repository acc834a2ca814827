"""course_kit.interpret.readouts: the logit lens, and labels by the nearest centroid of the others."""

from __future__ import annotations

import pytest
import torch
from oracles import CLOSE, no_side_effects, randomise
from torch import nn
from torch.testing import assert_close

from course_kit.interpret.readouts import leave_one_out_labels, logit_lens
from course_kit.nn import LanguageModel, Transformer, TransformerConfig

SIZES = {"vocab_size": 17, "d_model": 22, "num_heads": 2, "num_layers": 3, "d_ff": 13, "dropout": 0.0}
SOURCE, TARGET = torch.tensor([[3, 4, 5, 6, 7], [8, 9, 10, 0, 0]]), torch.tensor([[1, 3, 5, 7], [1, 2, 4, 0]])

# --- logit lens -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("norm", ["pre", "post"])
def test_the_lens_on_an_encoder_decoder(norm):
    model = randomise(Transformer(TransformerConfig(**SIZES, norm=norm))).double().eval()
    lens = logit_lens(model, SOURCE, TARGET)
    assert lens.shape == (4, 2, 4, 17)
    assert_close(lens[-1], model(SOURCE, TARGET), **CLOSE)
    # Layer by layer, each read by the model's last norm and its output projection.
    x, memory = model.target_embedding(TARGET), model.encode(SOURCE)
    mask = torch.ones(4, 4).tril().bool() & (TARGET != 0)[:, None, None]
    for layer in range(4):
        assert_close(lens[layer], model.output(model.decoder.norm(x)), **CLOSE)
        if layer < 3:
            x = model.decoder.layers[layer](x, memory, mask, (SOURCE != 0)[:, None, None])


@pytest.mark.parametrize("norm", ["pre", "post"])
def test_a_model_cut_after_a_layer_says_what_the_lens_says_of_it(norm):
    """The lens at layer l is the model whose later layers are gone: the oracle is such a model."""
    model = randomise(LanguageModel(TransformerConfig(**SIZES, norm=norm))).double().eval()
    lens = logit_lens(model, TARGET)
    for number in range(3, -1, -1):
        model.layers.layers = model.layers.layers[:number]
        assert_close(lens[number], model(TARGET), **CLOSE)


def test_gradients_flow_through_the_lens_and_nothing_stays_behind(unchecked):
    model = randomise(LanguageModel(TransformerConfig(**SIZES))).eval()
    logit_lens(model, TARGET)[1].sum().backward()
    assert model.layers.layers[0].feed_forward.linear1.weight.grad.abs().sum() > 0
    assert model.layers.layers[1].feed_forward.linear1.weight.grad.abs().sum() == 0  # it comes after
    with pytest.raises(ValueError, match="tokens must be integer ids"):
        logit_lens(model, TARGET.float())
    assert not any(m._forward_hooks or m._forward_pre_hooks for m in model.modules())
    with pytest.raises(TypeError, match=r"model must be a LanguageModel or a Transformer, .* got Linear"):
        logit_lens(nn.Linear(2, 3), TARGET)


# --- nearest centroid -------------------------------------------------------------------------------------------------


def test_nearest_centroids_by_hand():
    # Label 4 at 0 and 2, label 9 at 3 and 5. Left out: 0 → 4 (2 against 4); 2 → without itself, 4 is at 0 and 9 at 4,
    # as far: 4, the first; 3 → 4 (at 1, 2 away) against 9 (at 5, 2 away): 4, wrong; 5 → 9 (at 3).
    vectors = torch.tensor([[0.0], [2.0], [3.0], [5.0]])
    assert leave_one_out_labels(vectors, torch.tensor([4, 4, 9, 9])).tolist() == [4, 4, 4, 9]


def test_vectors_of_a_fold_are_left_out_together_by_hand():
    # 2 against 4 at 0 alone and 9 at 5 alone (3 is of its fold): 4. With each alone, 9 were at 4 and as far as 4.
    vectors, labels, folds = torch.tensor([[0.0], [2.0], [3.0], [5.0]]), torch.tensor([4, 4, 9, 9]), [7, 8, 8, 7]
    assert leave_one_out_labels(vectors, labels, torch.tensor(folds)).tolist() == [4, 4, 9, 9]


@pytest.mark.parametrize("folds", [None, torch.tensor([0, 1, 2, 0, 0, 1, 2, 2, 3, 1, 1, 2])])
def test_each_vector_is_compared_with_the_centroids_of_the_others(folds):
    vectors, labels = torch.randn(3, 2, 12, 7, dtype=torch.float64), torch.tensor([0, 5, 2]).repeat(4)
    with no_side_effects(vectors, labels):
        found = leave_one_out_labels(vectors, labels, folds)
    apart = torch.arange(12) if folds is None else folds
    for k in range(12):
        centroids = [vectors[:, :, (apart != apart[k]) & (labels == y)].mean(2) for y in (0, 2, 5)]
        distances = torch.stack([(vectors[:, :, k] - centroid).norm(dim=-1) for centroid in centroids])
        assert torch.equal(found[:, :, k], torch.tensor([0, 2, 5])[distances.argmin(0)])


def test_rounding_does_not_decide_between_centroids_that_are_equally_near():
    place = torch.randn(7) * 30
    vectors = torch.stack([place * scale for scale in (1, 1 + 1e-7, 1 - 1e-7, 1, 1 - 1e-7, 1)])
    for shuffled in (vectors, vectors.flip(0)):
        assert leave_one_out_labels(shuffled, torch.tensor([4, 9, 4, 9, 4, 9])).tolist() == [4] * 6


def test_what_counts_as_equally_near_does_not_depend_on_the_rest_of_the_batch():
    """Vectors of another layer may be a million times longer; those of this one are told apart as before."""
    vectors, labels = torch.randn(2, 12, 5), torch.arange(3).repeat(4)
    vectors[1] *= 1e6
    alone = [leave_one_out_labels(layer, labels) for layer in vectors]
    assert torch.equal(leave_one_out_labels(vectors, labels), torch.stack(alone))
    assert not torch.equal(alone[0], torch.zeros_like(labels))


@pytest.mark.parametrize(
    ("labels", "folds", "message"),
    [
        ([1, 1, 7], None, r"at least two vectors, .* got only one of \[7\]"),
        ([1, 1, 7, 7], [0, 1, 2, 2], r"in different folds, .* got only one of \[7\]"),
        ([1, 1, 1], [0, 1], r"folds must be one for each of the 3 vectors, got \(2,\)"),
    ],
)
def test_labels_that_cannot_be_left_out_are_errors(unchecked, labels, folds, message):
    with pytest.raises(ValueError, match=message):
        leave_one_out_labels(torch.randn(len(labels), 2), torch.tensor(labels), folds and torch.tensor(folds))
    with pytest.raises(ValueError, match=r"labels must be one for each of the 3 vectors, got labels \(2,\)"):
        leave_one_out_labels(torch.randn(3, 2), torch.tensor([1, 1]))
