"""Wrong arguments of the search, and models that it cannot use."""

from __future__ import annotations

import math

import pytest
import torch
from searching import BOS, EACH_WAY, IDS, PAD, SMALL, SOURCE, WAYS, build

from course_kit.nn import LanguageModel
from course_kit.translator.search import beam, sample


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"max_length": 0}, r"max_length must be a whole number of at least 1 and at most 1000000, got 0; the end"),
        ({"max_length": [5, 0, 5]}, r"at least 1 and at most 1000000, got 0"),
        ({"max_length": [5, 5]}, r"one for each of the 3 sources, got 2"),
        ({"max_length": torch.tensor([5.0, 5.5, 6.0])}, r"whole number of at least 1 and at most 1000000, got 5\.0"),
        ({"bos_id": 11}, r"bos_id must be a token of the vocabulary, 0 … 10, got 11"),
        ({"eos_id": -1}, r"eos_id must be a token of the vocabulary, 0 … 10, got -1"),
        ({"eos_id": BOS}, r"three different tokens, got bos_id = 0, eos_id = 0, model\.config\.pad_id = 1"),
        ({"bos_id": PAD}, r"three different tokens"),
        ({"source": SOURCE[0]}, r"\(batch, length\), got torch.int64 \(7,\); for one sentence add a batch axis"),
        ({"source": SOURCE.double()}, r"integer ids .* got torch.float64 \(3, 7\)"),
        ({"source": torch.full((7, 3), PAD)}, r"not padding \(1\), got none in row 0, 1, 2, 3, 4 …; leave"),
        ({"source": SOURCE[:, :0]}, r"not padding \(1\), got none in row 0, 1, 2; leave"),
        ({"source": SOURCE + 1}, r"tokens must be ids in 0 … 10"),
    ],
)
def test_bad_arguments_are_refused_in_every_way(changes, message, unchecked):
    options = {"source": SOURCE, **IDS, "max_length": 5} | changes
    source = options.pop("source")
    for way in WAYS.values():
        with pytest.raises(ValueError, match=message):
            way(build(), source, **options)


@EACH_WAY
def test_learned_positions_end_before_decoding_begins(way):
    model, calls = build(positions="learned"), []
    model.encoder.register_forward_hook(lambda *_: calls.append(1))
    with pytest.raises(
        ValueError, match=r"max_length must be at most 11, the positions .* got 12; generate fewer tokens"
    ):
        way(model, SOURCE, **IDS, max_length=[5, 12, 5])
    assert not calls
    way(model, SOURCE, **IDS, max_length=11)


@EACH_WAY
def test_another_kind_of_model_is_refused(way, unchecked):
    with pytest.raises(TypeError, match=r"model must be a course_kit.nn.Transformer.* got LanguageModel"):
        way(LanguageModel(SMALL), SOURCE, **IDS, max_length=5)


@pytest.mark.parametrize("way", [WAYS["greedy"], WAYS["beam"]], ids=["greedy", "beam"])
def test_logits_that_are_no_numbers_are_refused(way):
    model = build()
    model.encoder.layers[0].norm1.bias.data[3] = math.nan
    with pytest.raises(ValueError, match="expected logits that are numbers, got NaN"):
        way(model, SOURCE, **IDS, max_length=5)


@pytest.mark.parametrize(
    ("way", "options", "message"),
    [
        (beam, {"beam_size": 0}, "beam_size must be at least 1, got 0"),
        (
            beam,
            {"beam_size": 3, "num_best": 4},
            "num_best must be at most beam_size, got num_best = 4 for beam",
        ),
        (sample, {"temperature": 0.0}, "temperature must be a finite number above 0 .*, got 0.0; .* use greedy"),
        (sample, {"temperature": math.inf}, "finite number above 0 and below 1e38, got inf"),
        (sample, {"top_k": 0}, "top_k must be at least 1, got 0; None draws from all"),
        (sample, {"top_p": 0.0}, r"top_p must be a probability in \(0, 1\], got 0.0; None draws from all"),
        (sample, {"top_p": 1.1}, r"in \(0, 1\], got 1.1"),
        (sample, {"num_samples": 0}, "num_samples must be at least 1, got 0"),
    ],
)
def test_a_bad_beam_and_bad_cuts_are_refused(way, options, message):
    with pytest.raises(ValueError, match=message):
        way(build(), SOURCE, **IDS, max_length=5, **options)
