"""course_kit.costs.activations: what autograd keeps, counted storage by storage, as the oracle."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

from course_kit.costs.activations import language_model_activations, transformer_activations
from course_kit.measuring import numbers_kept
from course_kit.nn import LanguageModel, Transformer, TransformerConfig

CHOICES = pytest.mark.parametrize(
    "choice",
    [
        {},
        {"norm": "pre"},
        {"positions": "learned"},
        {"positions": "none", "num_heads": 6},
        {"target_vocab_size": 37, "num_layers": 1},
        {"tie_embeddings": False},
    ],
)
ATTENTION = pytest.mark.parametrize(("dropout", "fused"), [(0.0, True), (0.0, False), (0.3, False)])


def small(**changes):
    sizes = {"vocab_size": 31, "d_model": 12, "num_heads": 3, "num_layers": 2, "d_ff": 23, "dropout": 0.0}
    return TransformerConfig(**{**sizes, **changes})


def tokens(batch_size, length):
    return torch.randint(1, 31, (batch_size, length))


def measured(model, *inputs, fused):
    labels = tokens(*inputs[-1].shape)
    with sdpa_kernel(SDPBackend.FLASH_ATTENTION if fused else SDPBackend.MATH):
        return numbers_kept(
            lambda: F.cross_entropy(model(*inputs).flatten(0, 1), labels.flatten()), without=model.parameters()
        )


def test_one_token_by_hand():
    # d = 2, H = 1, d_ff = 3, one layer, five tokens in the vocabulary, post-norm, one token without fused attention:
    # attention keeps its input 2, queries, keys, values 6, weight 1, output 2, mask 1, norm 2 + 2, matrices 12;
    # the feed-forward network its input 2, hidden features 3, norm 2 + 2; the ends two ids, 2 into the output, and
    # five log-probabilities; the loss one number.
    config = small(vocab_size=5, d_model=2, num_heads=1, num_layers=1, d_ff=3)
    by_hand = (2 + 6 + 1 + 2 + 1 + 4 + 12) + (2 + 3 + 4) + (2 + 2 + 5) + 1
    assert language_model_activations(config, 1, fused=False) == by_hand


@ATTENTION
@CHOICES
def test_a_language_model_keeps_what_the_formula_gives(choice, dropout, fused):
    config = small(dropout=dropout, **choice)
    for batch_size, length in ((2, 1), (3, 7), (2, 40)):
        kept = measured(LanguageModel(config), tokens(batch_size, length), fused=fused)
        assert kept == language_model_activations(config, length, batch_size, fused=fused)


@ATTENTION
@CHOICES
def test_a_transformer_keeps_what_the_formula_gives(choice, dropout, fused):
    config = small(dropout=dropout, **choice)
    for batch_size, *lengths in ((2, 1, 1), (3, 5, 7), (2, 13, 4)):
        kept = measured(Transformer(config), *(tokens(batch_size, length) for length in lengths), fused=fused)
        assert kept == transformer_activations(config, *lengths, batch_size, fused=fused)


@pytest.mark.parametrize(("batch_size", "num_heads"), [(1, 3), (2, 1)])
def test_of_one_sequence_or_one_head_explicit_attention_keeps_a_view(batch_size, num_heads):
    """The values are not copied then, and keep alive the queries and keys that were computed with them."""
    config = small(num_heads=num_heads)
    model, inputs = LanguageModel(config), tokens(batch_size, 7)
    views = config.num_layers * 2 * config.d_model * inputs.numel()
    by_formula = language_model_activations(config, 7, batch_size, fused=False)
    assert measured(model, inputs, fused=False) == by_formula + views
    assert measured(model, inputs, fused=True) == language_model_activations(config, 7, batch_size)


@pytest.mark.parametrize("function", [language_model_activations, transformer_activations])
def test_what_is_not_counted_is_refused(function):
    with pytest.raises(ValueError, match=r"positions must be added to the embedding, .* got 'rotary'"):
        function(small(positions="rotary"), 5, 7)
    with pytest.raises(ValueError, match=r"fused attention must be without dropout, got dropout = 0\.1"):
        function(small(dropout=0.1), 5, 7)
