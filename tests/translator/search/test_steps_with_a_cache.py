"""A decoding step with a cache gives what the whole model gives."""

from __future__ import annotations

import copy
import dataclasses

import pytest
import torch
from oracles import CLOSE, randomise
from searching import (
    BOS,
    EACH_WAY,
    ENDING,
    IDS,
    NORMS,
    PAD,
    POSITIONS,
    SMALL,
    SOURCE,
    TIED,
    assert_same,
    build,
    each_with_its_source,
    log_probs_of,
)
from torch.testing import assert_close

from course_kit.nn import (
    AlibiPosition,
    KeyValueCache,
    LanguageModel,
    MultiHeadAttention,
    RotaryPosition,
    Transformer,
    record_attention,
)
from course_kit.translator.search import greedy
from course_kit.workshop.assemble import assemble
from course_lib.attention import softmax


@POSITIONS
@NORMS
@TIED
def test_each_step_gives_the_last_column_of_decode(positions, norm, tied):
    model = build(positions=positions, norm=norm, tie_embeddings=tied)
    target = torch.randint(3, 11, (3, 11))
    memory, cache = model.encode(SOURCE), model.begin(SOURCE)
    for n in range(1, 12):
        expected = model.decode(target[:, :n], memory, SOURCE)[:, -1]
        assert_close(model.step(target[:, n - 1 : n], cache)[:, 0], expected, **CLOSE)


@POSITIONS
@NORMS
def test_hypotheses_of_a_beam_see_their_own_past_only(positions, norm):
    # Widths that change, parents in any order, a hypothesis that several go on from, sentences that are left out.
    model, source = build(positions=positions, norm=norm), SOURCE
    cache = model.begin(source)
    tokens = torch.full((3, 1), BOS)
    written, parents = tokens[..., None], None
    for n, width in enumerate((1, 2, 5, 3, 3, 1, 1, 5)):
        if n:
            parents = torch.randint(written.shape[1], (len(source), width))
            tokens = torch.randint(3, 11, (len(source), width))
            past = torch.stack([each[chosen] for each, chosen in zip(written, parents, strict=True)])
            written = torch.cat((past, tokens[..., None]), dim=-1)
        logits = model.step(tokens, cache, parents=parents)
        assert logits.shape == (len(source), width, 11)
        for w in range(width):
            expected = model.decode(written[:, w], model.encode(source), source)[:, -1]
            assert_close(logits[:, w], expected, **CLOSE)
        if n == 3:
            rows = torch.tensor([2, 0])
            cache.select(rows)
            source, written = source[rows], written[rows]


@pytest.mark.thorough
@POSITIONS
@NORMS
@TIED
@EACH_WAY
def test_with_and_without_a_cache_the_same_is_written(positions, norm, tied, way):
    model = build(positions=positions, norm=norm, tie_embeddings=tied)
    cached, uncached = (way(model, SOURCE, **IDS, max_length=[9, 7, 11], use_cache=use) for use in (True, False))
    assert_same(cached, uncached)


@EACH_WAY
def test_log_probs_are_those_of_the_whole_model(way):
    model = build(10, **ENDING)
    result = way(model, SOURCE, **IDS, max_length=8)
    assert {True, False} == {done for each in result.finished for done in each}
    for row, text, total, finished in each_with_its_source(result):
        assert total == pytest.approx(log_probs_of(model, row[None], text, finished), abs=1e-10)
        assert finished or len(text) == 8


@POSITIONS
def test_a_language_model_goes_on_from_its_cache(positions):
    torch.manual_seed(1)
    model = randomise(LanguageModel(dataclasses.replace(SMALL, positions=positions))).double()
    tokens = torch.randint(2, 11, (3, 11))
    tokens[1, :2] = PAD
    cache = [KeyValueCache() for _ in model.layers.layers]
    with torch.no_grad():
        steps = [
            model.step(tokens[:, old:new], tokens[:, :old], cache) for old, new in ((0, 5), (5, 6), (6, 9), (9, 11))
        ]
        assert_close(torch.cat(steps, dim=1)[tokens != PAD], model(tokens)[tokens != PAD], **CLOSE)
    with pytest.raises(ValueError, match="past must be the 11 tokens that the cache has seen, got 10"):
        model.step(tokens[:, 10:], tokens[:, :10], cache)


@pytest.mark.parametrize("position", [None, RotaryPosition(), AlibiPosition()], ids=["none", "rotary", "alibi"])
def test_attention_with_a_cache_is_attention(position):
    attention = randomise(MultiHeadAttention(20, 2, position=position)).double().eval()
    x, cache = torch.randn(3, 7, 20).double(), KeyValueCache()
    causal = torch.ones(7, 7, dtype=torch.bool).tril()
    expected, weights = attention(x, x, x, causal)
    with torch.no_grad():
        for old, new in ((0, 1), (1, 2), (2, 5), (5, 7)):
            y = x[:, old:new]
            for need_weights in (True, False):  # the second time on a copy
                kept = copy.deepcopy(cache) if need_weights else cache
                output, seen = attention(y, y, y, causal[old:new, :new], need_weights=need_weights, cache=kept)
                assert_close(output, expected[:, old:new], **CLOSE)
                if need_weights:
                    assert_close(seen, weights[:, :, old:new, :new], **CLOSE)
                assert len(kept) == new
                assert kept.positions.tolist() == list(range(new))


def test_a_cache_knows_where_its_keys_stand():
    cache = KeyValueCache(parallel_hypotheses=True)
    for width in (1, 3, 2):
        assert cache.next_positions(2).tolist() == [len(cache._lengths)] * 2
        cache.append(torch.randn(2, 5, width, 7), torch.randn(2, 5, width, 7))
    assert cache.positions.tolist() == [0, 1, 1, 1, 2, 2]
    assert cache.keys.shape == cache.values.shape == (2, 5, 6, 7)
    with pytest.raises(ValueError, match="the cache holds keys of a batch of 2, got a batch of 1"):
        cache.append(torch.randn(1, 5, 1, 7), torch.randn(1, 5, 1, 7))


def test_a_cache_grows_without_copying_all_at_every_step():
    cache, moves, before = KeyValueCache(), 0, None
    keys, values = torch.randn(2, 2, 3, 100, 7)
    for i in range(100):
        cache.append(keys[:, :, i : i + 1], values[:, :, i : i + 1])
        moves += before is not None and cache.keys.data_ptr() != before
        before = cache.keys.data_ptr()
    assert torch.equal(cache.keys, keys)
    assert torch.equal(cache.values, values)
    assert moves <= 7


def test_cross_attention_looks_at_its_memory_once():
    attention = MultiHeadAttention(20, 2).eval()
    memory, cache = torch.randn(3, 7, 20), KeyValueCache(is_static=True)
    with torch.no_grad():
        assert not cache.is_full
        for _ in range(2):
            x = torch.randn(3, 2, 20)
            output, _ = attention(x, memory, memory, cache=cache)
            assert cache.is_full
            assert_close(output, attention(x, memory, memory)[0])
        assert_close(attention(x, memory * 0, memory * 0, cache=cache)[0], output)


def test_maps_of_the_last_step_can_be_recorded():
    model = build()
    with record_attention(model) as maps:
        text = greedy(model, SOURCE[:1], **IDS, max_length=6).tokens[0][0]
    with record_attention(model) as full:
        model(SOURCE[:1], torch.tensor([[BOS, *text]])[:, :6])
    steps = min(len(text) + 1, 6)
    for name in ("decoder.layers.0.self_attention", "decoder.layers.1.cross_attention"):
        assert_close(maps[name][:, :, -1], full[name][:, :, steps - 1], **CLOSE)


def test_a_step_says_what_is_wrong_with_parents_or_batch(unchecked):
    model = build()
    cache = model.begin(SOURCE)
    model.step(torch.full((3, 1), BOS), cache)
    for size, parents, message in (
        ((3, 2), None, r"2 hypotheses per sentence follow 1, so parents .* \(3, 2\), got None"),
        ((3, 2), torch.zeros(3, 1).long(), r"parents must be one for each token, \(3, 2\), got \(3, 1\)"),
        ((3, 2), torch.tensor([[0, 0], [0, 1], [0, 0]]), r"parents must lie in 0 … 0, the last .*, got 0 … 1"),
        ((2, 1), None, "a row for each of the cache's 3 sentences, got 2"),
    ):
        with pytest.raises(ValueError, match=message):
            model.step(torch.full(size, 5), cache, parents=parents)


def test_a_step_may_begin_with_several_hypotheses():
    model = build()
    cache, targets = model.begin(SOURCE), torch.tensor([[[3, 4], [5, 6], [7, 8]], [[4, 3], [6, 5], [8, 7]]])
    steps = [model.step(targets[:, :, n].T, cache) for n in (0, 1)]  # (3, 2, V); each goes on from its own
    for w, target in enumerate(targets):
        logits = model.decode(target, model.encode(SOURCE), SOURCE)
        assert_close(torch.stack([step[:, w] for step in steps], dim=1), logits, **CLOSE)


def test_a_model_with_a_decode_of_its_own_is_written_with_all_the_same():
    model = assemble(softmax, vocab_size=11, d_model=12, num_heads=2, d_ff=13, pad_id=PAD)
    with pytest.raises(TypeError, match=r"got AssembledTransformer, which overrides it, .* decode it without a cache"):
        greedy(model, SOURCE, **IDS, max_length=4)
    twin = Transformer(model.config).eval()
    twin.load_state_dict(model.state_dict())
    uncached = greedy(model, SOURCE, **IDS, max_length=4, use_cache=False)
    assert_same(uncached, greedy(twin, SOURCE, **IDS, max_length=4), tolerance=1e-4)
