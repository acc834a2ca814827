"""A sentence is decoded in a batch as if it were alone."""

from __future__ import annotations

import copy
import dataclasses

import pytest
import torch
from oracles import no_side_effects
from searching import (
    BOS,
    EACH_WAY,
    ENDING,
    EOS,
    IDS,
    PAD,
    POSITIONS,
    SOURCE,
    WAYS,
    alone,
    assert_same,
    build,
    each_with_its_source,
    log_probs_of,
)

from course_kit.translator.search import Hypotheses


@POSITIONS
@pytest.mark.parametrize("way", [WAYS["greedy"], WAYS["beam"]], ids=["greedy", "beam"])
@pytest.mark.parametrize("use_cache", [True, False], ids=["cached", "uncached"])
def test_a_sentence_is_written_as_if_it_were_alone(positions, way, use_cache):
    for seed in (1, 2):
        model = build(seed, positions=positions, **ENDING)
        limits = [9, 4, 11]
        together = way(model, SOURCE, **IDS, max_length=torch.tensor(limits), use_cache=use_cache)
        for i, row in enumerate(SOURCE):
            by_itself = way(model, alone(row), **IDS, max_length=limits[i], use_cache=use_cache)
            assert_same(Hypotheses(*([getattr(together, f.name)[i]] for f in dataclasses.fields(together))), by_itself)


@pytest.mark.thorough
@pytest.mark.parametrize("use_cache", [True, False], ids=["cached", "uncached"])
@EACH_WAY
def test_many_sentences_end_at_different_times(way, use_cache):
    # So many that rows are left out on the way, several times.
    model, source = build(6, **ENDING), torch.randint(3, 11, (53, 5), generator=torch.Generator().manual_seed(0))
    result = way(model, source, **IDS, max_length=[1 + i % 11 for i in range(53)], use_cache=use_cache)
    assert len({len(each[0]) for each in result.tokens}) > 5
    assert all(len(text) <= 1 + i % 11 for i, texts in enumerate(result.tokens) for text in texts)
    for row, text, total, finished in each_with_its_source(result, source):
        assert total == pytest.approx(log_probs_of(model, row[None], text, finished), abs=1e-10)


@EACH_WAY
def test_padding_and_beginning_are_never_written(way):
    model = build(tie_embeddings=False)
    with torch.no_grad():  # both far more probable than all others
        model.decoder.layers[-1].norm3.bias.fill_(3.0)
        model.output.weight[[PAD, BOS]] = 1.0
    result = way(model, SOURCE, **IDS, max_length=5)
    assert not {PAD, BOS, EOS} & {token for texts in result.tokens for text in texts for token in text}
    assert all(total < -30 for sums in result.log_probs for total in sums)  # of the model, not renormalised


@EACH_WAY
def test_no_source_no_text(way):
    assert way(build(), SOURCE[:0], **IDS, max_length=5) == Hypotheses([], [], [], [])


@EACH_WAY
def test_arguments_and_model_are_left_as_they_were(way):
    model = build(dropout=0.5)
    model.train()
    model.encoder.eval()
    modes, graphs = [module.training for module in model.modules()], []
    limits, twin = torch.tensor([5, 6, 7]), copy.deepcopy(model)
    model.decoder.register_forward_hook(lambda _module, _args, x: graphs.append(x.requires_grad))
    with no_side_effects(SOURCE, limits, *model.parameters()):
        first = way(model, SOURCE, **IDS, max_length=limits)
        assert_same(first, way(model, SOURCE.int(), **IDS, max_length=[5, 6, 7]))
    assert [module.training for module in model.modules()] == modes
    assert_same(first, way(twin.eval(), SOURCE, **IDS, max_length=limits))  # nothing was dropped
    with pytest.raises(ValueError, match="empty sentences"):
        way(model, torch.full((1, 3), PAD), **IDS, max_length=5)
    assert [module.training for module in model.modules()] == modes
    assert graphs
    assert not any(graphs)  # no memory is spent on gradients


@pytest.mark.parametrize("use_cache", [True, False], ids=["cached", "uncached"])
@EACH_WAY
def test_log_probs_of_logits_of_less_precision_are_computed_in_float32(way, use_cache):
    model = build(**ENDING).bfloat16()
    with torch.no_grad():
        start = torch.full((3, 1), BOS)
        logits = (
            model.step(start, model.begin(SOURCE)) if use_cache else model.decode(start, model.encode(SOURCE), SOURCE)
        )
    expected = logits[:, 0].float().log_softmax(-1)
    result = way(model, SOURCE, **IDS, max_length=1, use_cache=use_cache)
    for steps, text, total, _ in each_with_its_source(result, expected):
        assert total == pytest.approx(steps[text[0] if text else EOS].item(), abs=1e-5)
