"""course_lib.translator.search: batched writing, against no cache, lists, exhaustive search and `transformers`."""

from __future__ import annotations

import copy
import dataclasses
import itertools
import math

import pytest
import torch
from oracles import CLOSE, no_side_effects, randomise
from torch.testing import assert_close

from course_lib.attention import softmax
from course_lib.cache import KeyValueCache
from course_lib.decoding import beam_search, greedy_decode
from course_lib.models import LanguageModel, Transformer, TransformerConfig
from course_lib.multi_head import MultiHeadAttention, record_attention
from course_lib.positional_encoding import AlibiPosition, RotaryPosition
from course_lib.translator.search import Hypotheses, beam, greedy, next_token_distribution, sample
from course_lib.workshop.assemble import assemble

BOS, PAD, EOS = 0, 1, 2
IDS = {"bos_id": BOS, "eos_id": EOS}
SMALL = TransformerConfig(
    vocab_size=11, d_model=20, num_heads=2, num_layers=2, d_ff=13, dropout=0.0, max_length=11, pad_id=PAD
)
SOURCE = torch.tensor([[3, 4, 5, 6, 7, 8, 9], [9, 8, 7, 6, 5, PAD, PAD], [10, 3, PAD, PAD, PAD, PAD, PAD]])
POSITIONS = pytest.mark.parametrize("positions", ["sinusoidal", "learned", "rotary", "alibi", "none"])
NORMS = pytest.mark.parametrize("norm", ["post", "pre"])
TIED = pytest.mark.parametrize("tied", [True, False], ids=["tied", "untied"])
WAYS = {
    "greedy": greedy,
    "beam": lambda *args, **options: beam(*args, beam_size=3, num_best=3, length_penalty=1.0, **options),
    "sample": lambda *args, **options: sample(
        *args, num_samples=3, temperature=0.8, generator=torch.Generator().manual_seed(5), **options
    ),
}
EACH_WAY = pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)


def build(seed=0, **changes):
    """A tiny model with large weights, above all in attention: peaked distributions that change from step to step."""
    torch.manual_seed(seed)
    model = randomise(Transformer(dataclasses.replace(SMALL, **changes))).double().eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "norm" in name:
                parameter.mul_(0.2).add_(name.endswith("weight"))  # gains about 1, biases about 0
            elif "attention" in name:
                parameter.mul_(2.0)
    return model


# With these sentences end, at all lengths; the others mostly go on to the limit.
ENDING = {"norm": "pre", "tie_embeddings": False}


def alone(row):
    """A row of a batch as a batch of its own, without its padding."""
    return row[row != PAD][None]


def assert_same(ours: Hypotheses, theirs: Hypotheses, tolerance=1e-10):
    assert ours.tokens == theirs.tokens
    assert ours.finished == theirs.finished
    for mine, other in ((ours.log_probs, theirs.log_probs), (ours.scores, theirs.scores)):
        for a, b in zip(mine, other, strict=True):
            assert a == pytest.approx(b, rel=0, abs=tolerance)


def log_probs_of(model, source, text, finished):
    """Sum of log-probabilities by one call of the whole model."""
    target = torch.tensor([[BOS, *text, EOS] if finished else [BOS, *text]])
    steps = model(source, target[:, :-1]).log_softmax(-1)
    return steps.gather(-1, target[:, 1:, None]).sum().item()


class Told(Transformer):
    """A transformer whose next-token probabilities are told by a table: a row for each last token."""

    def __init__(self, table):
        super().__init__(
            TransformerConfig(vocab_size=len(table), d_model=2, num_heads=1, num_layers=1, d_ff=3, pad_id=PAD)
        )
        self.logits = torch.tensor(table, dtype=torch.float64).log()

    def decode(self, target, memory, source):
        return self.logits[target]


# --- by hand ----------------------------------------------------------------------------------------------------------

#            bos  pad  eos   a    b
TABLE = [
    [0.00, 0.00, 0.10, 0.60, 0.30],  # after bos
    [0.20, 0.20, 0.20, 0.20, 0.20],
    [0.20, 0.20, 0.20, 0.20, 0.20],
    [0.05, 0.05, 0.30, 0.35, 0.25],  # after a
    [0.00, 0.00, 0.90, 0.05, 0.05],  # after b
]
A, B = 3, 4
ONE = torch.tensor([[A]])


def test_greedy_by_hand():
    # a (0.6), then a again and again (0.35), never the end (0.30).
    result = greedy(Told(TABLE), ONE, **IDS, max_length=3, use_cache=False)
    assert result.tokens == [[[A, A, A]]]
    assert result.finished == [[False]]
    assert result.log_probs == result.scores == [[pytest.approx(math.log(0.6 * 0.35 * 0.35))]]


def test_a_beam_of_two_by_hand():
    # b (0.3) then the end (0.9) has 0.27; everything that begins with a has at most 0.6 · 0.35 = 0.21.
    result = beam(Told(TABLE), ONE, **IDS, beam_size=2, num_best=2, max_length=3, use_cache=False)
    # Step 1 keeps a and b, step 2 "b end" (0.27) and "a a" (0.21), step 3 "a a a" (0.0735) and "a a end" (0.063).
    assert result.tokens == [[[B], [A, A, A]]]
    assert result.finished == [[True, False]]
    assert result.log_probs[0] == [pytest.approx(math.log(0.27)), pytest.approx(math.log(0.0735))]
    assert result.scores == result.log_probs


def test_the_length_penalty_divides_by_the_tokens_with_the_end():
    options = dict(IDS, beam_size=2, num_best=2, max_length=3, use_cache=False)
    result = beam(Told(TABLE), ONE, **options, length_penalty=1.0)
    assert result.scores[0] == [pytest.approx(math.log(0.27) / 2), pytest.approx(math.log(0.0735) / 3)]
    # With a penalty of 3 the longer ones, divided by 27 and not by 8, come first: "a a end" has 0.063.
    assert beam(Told(TABLE), ONE, **options, length_penalty=3.0).tokens == [[[A, A, A], [A, A]]]


def test_a_beam_goes_on_while_a_longer_text_can_still_win():
    table = [row[:] for row in TABLE]
    table[BOS] = [0.0, 0.0, 0.2, 0.8, 0.0]
    table[A] = [0.1, 0.1, 0.45, 0.1, 0.25]
    table[B] = [0.0, 0.0, 0.0, 0.0, 1.0]
    # "a end" has ln 0.36 / 2 = -0.51, "a b" ln 0.2 / 2 = -0.80 and with one token more still -0.54, but with four more
    # ln 0.2 / 5 = -0.32.
    options = dict(IDS, beam_size=2, max_length=5, use_cache=False)
    result = beam(Told(table), ONE, **options, length_penalty=1.0)
    assert (result.tokens, result.scores) == ([[[A, B, B, B, B]]], [[pytest.approx(math.log(0.2) / 5)]])
    # A negative penalty makes long texts worse: "end" has ln 0.3 = -1.2, "a end" 2 · ln 0.6 = -1.02.
    table[BOS] = [0.0, 0.0, 0.3, 0.6, 0.1]
    table[A] = [0.0, 0.0, 1.0, 0.0, 0.0]
    result = beam(Told(table), ONE, **options, length_penalty=-1.0)
    assert (result.tokens, result.scores) == ([[[A]]], [[pytest.approx(2 * math.log(0.6))]])


def test_of_equal_candidates_the_smaller_id_and_the_better_hypothesis_come_first():
    table = [[1.0] * 7 for _ in range(7)]  # all equally probable, so that only the order of ties decides
    options = dict(IDS, use_cache=False)
    assert greedy(Told(table), ONE, **options, max_length=3).tokens == [[[]]]  # of 2 … 6 the smallest is the end
    result = beam(Told(table), ONE, **options, beam_size=3, num_best=3, max_length=2)
    assert result.tokens == [[[], [3], [3, 3]]]


# --- the cache --------------------------------------------------------------------------------------------------------


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
    for row, texts, sums, ends in zip(SOURCE, result.tokens, result.log_probs, result.finished, strict=True):
        for text, total, finished in zip(texts, sums, ends, strict=True):
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
    cache = KeyValueCache(abreast=True)
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
    memory, cache = torch.randn(3, 7, 20), KeyValueCache(grows=False)
    with torch.no_grad():
        assert not cache.complete
        for _ in range(2):
            x = torch.randn(3, 2, 20)
            output, _ = attention(x, memory, memory, cache=cache)
            assert cache.complete
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
    with pytest.raises(ValueError, match=r"2 hypotheses per sentence follow 1, so parents .* \(3, 2\), got None"):
        model.step(torch.full((3, 2), 5), cache)
    with pytest.raises(ValueError, match=r"parents must be one for each token, \(3, 2\), got \(3, 1\)"):
        model.step(torch.full((3, 2), 5), cache, parents=torch.zeros(3, 1, dtype=torch.long))
    with pytest.raises(ValueError, match=r"parents must lie in 0 … 0, the last step's hypotheses, got 0 … 1"):
        model.step(torch.full((3, 2), 5), cache, parents=torch.tensor([[0, 0], [0, 1], [0, 0]]))
    with pytest.raises(ValueError, match="a row for each of the cache's 3 sentences, got 2"):
        model.step(torch.full((2, 1), 5), cache)


def test_a_step_may_begin_with_several_hypotheses():
    model = build()
    cache = model.begin(SOURCE)
    first = model.step(torch.tensor([[3, 4], [5, 6], [7, 8]]), cache)
    again = model.step(torch.tensor([[4, 3], [6, 5], [8, 7]]), cache)  # each goes on from its own
    for w, target in enumerate((torch.tensor([[3, 4], [5, 6], [7, 8]]), torch.tensor([[4, 3], [6, 5], [8, 7]]))):
        logits = model.decode(target, model.encode(SOURCE), SOURCE)
        assert_close(torch.stack((first[:, w], again[:, w]), dim=1), logits, **CLOSE)


def test_a_model_with_a_decode_of_its_own_is_written_with_all_the_same():
    model = assemble(softmax, vocab_size=11, d_model=12, num_heads=2, d_ff=13, pad_id=PAD)
    with pytest.raises(TypeError, match=r"got AssembledTransformer, which overrides it, .* decode it without a cache"):
        greedy(model, SOURCE, **IDS, max_length=4)
    twin = Transformer(model.config).eval()
    twin.load_state_dict(model.state_dict())
    uncached = greedy(model, SOURCE, **IDS, max_length=4, use_cache=False)
    assert_same(uncached, greedy(twin, SOURCE, **IDS, max_length=4), tolerance=1e-4)


# --- batches ----------------------------------------------------------------------------------------------------------


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


@pytest.mark.parametrize("use_cache", [True, False], ids=["cached", "uncached"])
@EACH_WAY
def test_many_sentences_end_at_different_times(way, use_cache):
    # So many that rows are left out on the way, several times.
    model, source = build(6, **ENDING), torch.randint(3, 11, (53, 5), generator=torch.Generator().manual_seed(0))
    result = way(model, source, **IDS, max_length=[1 + i % 11 for i in range(53)], use_cache=use_cache)
    assert len({len(each[0]) for each in result.tokens}) > 5
    for i, row in enumerate(source):
        for text, total, finished in zip(result.tokens[i], result.log_probs[i], result.finished[i], strict=True):
            assert len(text) + finished <= 1 + i % 11
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


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@EACH_WAY
def test_less_precision_gives_nearly_the_same_sums(way, dtype):
    model = build().to(dtype)
    result = way(model, SOURCE, **IDS, max_length=6)
    for row, texts, sums, ends in zip(SOURCE, result.tokens, result.log_probs, result.finished, strict=True):
        for text, total, finished in zip(texts, sums, ends, strict=True):
            expected = log_probs_of(copy.deepcopy(model).double(), row[None], text, finished)
            # bfloat16 has 8 bits: logits of up to about 30 are off by up to 0.1, and more inside the model.
            assert total == pytest.approx(expected, abs=1e-4 if dtype == torch.float32 else 0.4 * len(text) + 1.0)


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
    for steps, texts, sums in zip(expected, result.tokens, result.log_probs, strict=True):
        assert sums == pytest.approx([steps[text[0] if text else EOS].item() for text in texts], abs=1e-5)


# --- beam -------------------------------------------------------------------------------------------------------------


def by_lists(next_log_probs, beam_size, max_length, penalty):
    """Every hypothesis that ends, or is cut at the limit, as `(score, sum, tokens)`, the best first; no early stop."""
    opened, done = [(0.0, [])], []
    for n in range(1, max_length + 1):
        candidates = [
            (total + step, [*text, token])
            for total, text in opened
            for token, step in enumerate(next_log_probs(text))
            if step > -math.inf
        ]
        survivors = sorted(candidates, key=lambda c: -c[0])[:beam_size]
        done += [(total / n**penalty, total, text) for total, text in survivors if text[-1] == EOS]
        opened = [(total, text) for total, text in survivors if text[-1] != EOS]
    done += [(total / max_length**penalty, total, text) for total, text in opened]
    return sorted(done, key=lambda d: -d[0])


def next_log_probs_of(model, row):
    memory, source, known = model.encode(row[None]), row[None], {}

    def next_log_probs(text):
        if tuple(text) not in known:
            logits = model.decode(torch.tensor([[BOS, *text]]), memory, source)[0, -1]
            steps = logits.log_softmax(-1)
            steps[[PAD, BOS]] = -math.inf
            known[tuple(text)] = steps.tolist()
        return known[tuple(text)]

    return next_log_probs


@pytest.mark.parametrize("penalty", [0.0, 0.6, 1.0, 2.0, -0.7])
@pytest.mark.parametrize("beam_size", [1, 2, 3, 5])
@torch.no_grad()
def test_a_beam_of_a_batch_is_the_beam_of_each_by_lists(beam_size, penalty):
    lengths = set()
    for seed in range(1, 5):
        model = build(seed, **ENDING)
        limits = [8, 5, 3]
        options = dict(IDS, beam_size=beam_size, num_best=beam_size, max_length=limits, length_penalty=penalty)
        result = beam(model, SOURCE, **options)
        for i, row in enumerate(SOURCE):
            expected = by_lists(next_log_probs_of(model, row), beam_size, limits[i], penalty)[:beam_size]
            ours = [text + [EOS] * end for text, end in zip(result.tokens[i], result.finished[i], strict=True)]
            assert ours == [text for _, _, text in expected]
            assert result.scores[i] == pytest.approx([score for score, _, _ in expected], abs=1e-10)
            assert result.log_probs[i] == pytest.approx([total for _, total, _ in expected], abs=1e-10)
            lengths |= {len(text) for text in result.tokens[i]}
    assert len(lengths) > 4


@pytest.mark.parametrize("penalty", [0.0, 1.0])
@torch.no_grad()
def test_the_best_is_that_of_the_short_functions_of_the_chapter(penalty):
    for seed in (1, 2, 3):
        model = build(seed, **ENDING)
        ours = beam(model, SOURCE, **IDS, beam_size=3, max_length=7, length_penalty=penalty)
        greedily = greedy(model, SOURCE, **IDS, max_length=7)
        for i, row in enumerate(SOURCE):
            steps = next_log_probs_of(model, row)

            def next_log_probs(ids, steps=steps):
                return torch.tensor(steps(ids[1:]), dtype=torch.float64)

            assert ours.tokens[i][0] == beam_search(next_log_probs, BOS, EOS, 3, 7, penalty)
            assert greedily.tokens[i][0] == greedy_decode(next_log_probs, BOS, EOS, 7)


@pytest.mark.parametrize("penalty", [0.0, 0.6, 1.0, 2.0, -0.7])
@torch.no_grad()
def test_a_beam_that_is_wide_enough_finds_the_best_of_all_texts(penalty):
    words, limit = (3, 4, 5), 4
    for seed in range(3):
        model = build(seed, vocab_size=6, **ENDING)
        source = torch.tensor([[3, 4, 5, 3]])
        next_log_probs, every = next_log_probs_of(model, source[0]), []
        for n in range(1, limit + 1):
            for text in itertools.product(words, repeat=n - 1):
                ends = [EOS] if n < limit else [EOS, *words]
                for last in ends:
                    whole = [*text, last]
                    total = sum(next_log_probs(whole[:i])[whole[i]] for i in range(n))
                    every.append((total / n**penalty, whole))
        every.sort(reverse=True)
        result = beam(model, source, **IDS, beam_size=121, num_best=7, max_length=limit, length_penalty=penalty)
        ours = [text + [EOS] * end for text, end in zip(result.tokens[0], result.finished[0], strict=True)]
        assert ours == [text for _, text in every[:7]]
        assert result.scores[0] == pytest.approx([score for score, _ in every[:7]], abs=1e-10)


@POSITIONS
def test_a_beam_of_one_is_greedy(positions):
    for seed in range(5):
        model = build(seed, positions=positions, **ENDING)
        assert_same(beam(model, SOURCE, **IDS, beam_size=1, max_length=9), greedy(model, SOURCE, **IDS, max_length=9))


@pytest.mark.parametrize("penalty", [0.0, 1.0, 2.0])
def test_the_n_best_are_different_and_in_order(penalty):
    result = beam(build(2, **ENDING), SOURCE, **IDS, beam_size=7, num_best=5, max_length=9, length_penalty=penalty)
    for texts, sums, scores, ends in zip(result.tokens, result.log_probs, result.scores, result.finished, strict=True):
        assert len(texts) == 5
        assert len({(*text, end) for text, end in zip(texts, ends, strict=True)}) == 5
        assert scores == sorted(scores, reverse=True)
        for text, total, score, end in zip(texts, sums, scores, ends, strict=True):
            assert score == pytest.approx(total / (len(text) + end) ** penalty)
    fewer = beam(build(2, **ENDING), SOURCE, **IDS, beam_size=7, num_best=2, max_length=9, length_penalty=penalty)
    assert fewer.tokens == [texts[:2] for texts in result.tokens]


def test_there_may_be_fewer_hypotheses_than_asked_for():
    model = build(vocab_size=4)  # one word and the end
    result = beam(model, torch.tensor([[3, 3]]), **IDS, beam_size=5, num_best=5, max_length=2)
    assert sorted(map(len, result.tokens[0])) == [0, 1, 2]  # end; word end; word word
    assert sum(result.finished[0]) == 2


def test_a_sentence_stops_when_nothing_can_get_better():
    calls = []
    model = build()
    model.decoder.register_forward_hook(lambda *_: calls.append(1))
    with torch.no_grad():
        model.decoder.layers[-1].norm3.bias.fill_(3.0)
        model.output.weight[EOS] = 2.0  # the end is nearly certain at once
    beam(model, SOURCE, **IDS, beam_size=3, max_length=11)
    assert len(calls) == 1


# --- drawing ----------------------------------------------------------------------------------------------------------


def test_the_distribution_by_hand():
    logits = torch.tensor([0.5, 0.3, 0.15, 0.05], dtype=torch.float64).log()
    for options, expected in (
        ({}, [0.5, 0.3, 0.15, 0.05]),
        ({"top_k": 2}, [0.625, 0.375, 0, 0]),
        ({"top_p": 0.5}, [1, 0, 0, 0]),  # the first alone reaches it
        ({"top_p": 0.51}, [0.625, 0.375, 0, 0]),
        ({"top_k": 3, "top_p": 0.85}, [10 / 19, 6 / 19, 3 / 19, 0]),  # of the three, two have 0.842
        ({"top_k": 3, "top_p": 0.8}, [0.625, 0.375, 0, 0]),  # of all, two would have 0.8 just so
        ({"temperature": 0.5}, [0.25 / 0.365, 0.09 / 0.365, 0.0225 / 0.365, 0.0025 / 0.365]),
    ):
        ours = next_token_distribution(logits, **options)
        assert_close(ours, torch.tensor(expected, dtype=torch.float64), **CLOSE)


@pytest.mark.parametrize("temperature", [0.3, 1.0, 2.5])
@pytest.mark.parametrize("top_k", [None, 1, 5, 17, 40])
@pytest.mark.parametrize("top_p", [None, 0.01, 0.6, 0.95, 1.0])
def test_the_distribution_is_that_of_transformers(temperature, top_k, top_p):
    from transformers import TemperatureLogitsWarper, TopKLogitsWarper, TopPLogitsWarper

    logits = 3 * torch.randn(29, 17, dtype=torch.float64)
    theirs = TemperatureLogitsWarper(temperature)(None, logits)
    if top_k is not None:
        theirs = TopKLogitsWarper(top_k)(None, theirs)
    if top_p is not None:
        theirs = TopPLogitsWarper(top_p)(None, theirs)
    with no_side_effects(logits):
        ours = next_token_distribution(logits, temperature=temperature, top_k=top_k, top_p=top_p)
    assert_close(ours, theirs.softmax(-1), **CLOSE)


def test_the_distribution_has_any_leading_axes_and_a_useful_dtype():
    logits = torch.randn(2, 3, 5, 7)
    each = torch.stack([next_token_distribution(row, top_k=3, top_p=0.9) for row in logits.flatten(0, 2)])
    assert_close(next_token_distribution(logits, top_k=3, top_p=0.9).flatten(0, 2), each)
    assert next_token_distribution(logits.bfloat16(), top_p=0.9).dtype == torch.float32


def test_a_low_temperature_is_greedy_and_a_high_one_even():
    logits = 100 * torch.randn(5, 17)  # a hundred divided by the temperature below is out of range
    logits[:, 3] = -math.inf
    for cut in ({}, {"top_k": 4}, {"top_p": 0.9}):
        cold = next_token_distribution(logits, temperature=2e-38, **cut)
        assert_close(cold, torch.nn.functional.one_hot(logits.argmax(-1), 17).float())
    hot = next_token_distribution(logits, temperature=1e30)
    assert_close(hot, (logits > -math.inf) / 16.0)


def test_of_equally_probable_tokens_the_smaller_ids_are_kept():
    assert next_token_distribution(torch.zeros(5), top_k=2).tolist() == [0.5, 0.5, 0, 0, 0]
    assert next_token_distribution(torch.zeros(4), top_p=0.5).tolist() == [0.5, 0.5, 0, 0]


@pytest.mark.parametrize("bad", [-math.inf, math.nan, math.inf])
def test_a_row_that_leaves_nothing_to_draw_is_refused(bad):
    with pytest.raises(ValueError, match=f"each row of logits must have a finite largest entry, got {bad}"):
        next_token_distribution(torch.tensor([[0.0, 1.0], [bad, bad]]))


@pytest.mark.parametrize("cut", [{}, {"temperature": 1.7, "top_k": 5}, {"temperature": 0.6, "top_p": 0.9}])
@pytest.mark.parametrize("use_cache", [True, False], ids=["cached", "uncached"])
def test_tokens_are_drawn_from_the_stated_distribution(cut, use_cache):
    model, draws = build(4), 4000
    with torch.no_grad():
        model.output.weight *= 0.3  # so that more than one token has a chance
    result = sample(
        model, SOURCE[:2], **IDS, max_length=2, num_samples=draws, use_cache=use_cache,
        generator=torch.Generator().manual_seed(7), **cut,
    )  # fmt: skip
    for row, texts, ends in zip(SOURCE[:2], result.tokens, result.finished, strict=True):
        whole = [text + [EOS] * end for text, end in zip(texts, ends, strict=True)]
        for first in (None, max(range(3, 11), key=lambda t: sum(text[0] == t for text in whole))):
            prefix = [BOS] if first is None else [BOS, first]
            logits = model(alone(row), torch.tensor([prefix]))[0, -1].detach()
            logits[[PAD, BOS]] = -math.inf
            stated = next_token_distribution(logits, **cut)
            drawn = [text[len(prefix) - 1] for text in whole if first is None or text[0] == first]
            counts = torch.bincount(torch.tensor(drawn), minlength=11)
            assert not counts[stated == 0].any()
            expected = stated * len(drawn)
            often = expected >= 5  # the rest goes into one cell, as is usual
            cells = [*zip(counts[often], expected[often], strict=True), (counts[~often].sum(), expected[~often].sum())]
            chi_square = sum(float((c - e) ** 2 / e) for c, e in cells if e > 0)
            freedom = sum(e > 0 for _, e in cells) - 1
            assert freedom >= 1
            assert chi_square < freedom + 4 * math.sqrt(2 * freedom)  # mean and four standard deviations


def test_the_generator_decides():
    model = build()

    def draw(seed):
        options = dict(IDS, max_length=9, num_samples=5)
        return sample(model, SOURCE, **options, generator=torch.Generator().manual_seed(seed))

    state = torch.get_rng_state()
    assert draw(1) == draw(1)
    assert draw(1) != draw(2)
    assert torch.equal(torch.get_rng_state(), state)
    sample(model, SOURCE, **IDS, max_length=2)  # PyTorch's own generator, if none is given
    assert not torch.equal(torch.get_rng_state(), state)


def test_drawing_cold_or_from_one_token_is_greedy():
    model = build()
    expected = greedy(model, SOURCE, **IDS, max_length=9)
    for cut in ({"temperature": 1e-30}, {"top_k": 1}, {"top_p": 1e-9}):
        assert_same(sample(model, SOURCE, **IDS, max_length=9, **cut), expected)


# --- errors -----------------------------------------------------------------------------------------------------------


@EACH_WAY
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
        ({"eos_id": PAD}, r"three different tokens"),
        ({"bos_id": PAD}, r"three different tokens"),
        ({"source": SOURCE[0]}, r"\(batch, length\), got torch.int64 \(7,\); for one sentence add a batch axis"),
        ({"source": SOURCE.double()}, r"integer ids .* got torch.float64 \(3, 7\)"),
        ({"source": torch.full((7, 3), PAD)}, r"not padding \(1\), got none in row 0, 1, 2, 3, 4 …; leave"),
        ({"source": SOURCE[:, :0]}, r"not padding \(1\), got none in row 0, 1, 2; leave"),
        ({"source": SOURCE + 1}, r"token ids must lie in 0 … 10"),
    ],
)
def test_bad_arguments_are_refused(way, changes, message, unchecked):
    options = {"source": SOURCE, **IDS, "max_length": 5} | changes
    with pytest.raises(ValueError, match=message):
        way(build(), options.pop("source"), **options)


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
    with pytest.raises(TypeError, match=r"model must be a course_lib Transformer.* got LanguageModel"):
        way(LanguageModel(SMALL), SOURCE, **IDS, max_length=5)


@pytest.mark.parametrize("way", [WAYS["greedy"], WAYS["beam"]], ids=["greedy", "beam"])
def test_logits_that_are_no_numbers_are_refused(way):
    model = build()
    model.encoder.layers[0].norm1.bias.data[3] = math.nan
    with pytest.raises(ValueError, match="expected logits that are numbers, got NaN"):
        way(model, SOURCE, **IDS, max_length=5)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"beam_size": 0}, "beam_size must be at least 1, got 0"),
        ({"beam_size": 3, "num_best": 0}, "num_best must be at least 1, got 0"),
        ({"beam_size": 3, "num_best": 4}, "num_best must be at most beam_size, got num_best = 4 for beam_size = 3"),
        (
            {"beam_size": 3, "length_penalty": math.inf},
            "length_penalty must be a finite number between -10 and 10, got inf",
        ),
    ],
)
def test_a_bad_beam_is_refused(options, message):
    with pytest.raises(ValueError, match=message):
        beam(build(), SOURCE, **IDS, max_length=5, **options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"temperature": 0.0}, "temperature must be a finite number above 0 and below 1e38, got 0.0; .* use greedy"),
        ({"temperature": -1.0}, "above 0 and below 1e38, got -1.0"),
        ({"temperature": math.inf}, "finite number above 0 and below 1e38, got inf"),
        ({"temperature": math.nan}, "finite number above 0 and below 1e38, got nan"),
        ({"top_k": 0}, "top_k must be at least 1, got 0; None draws from all"),
        ({"top_p": 0.0}, r"top_p must be a probability in \(0, 1\], got 0.0; None draws from all"),
        ({"top_p": 1.1}, r"in \(0, 1\], got 1.1"),
    ],
)
def test_bad_cuts_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        next_token_distribution(torch.randn(7), **options)
    with pytest.raises(ValueError, match=message):
        sample(build(), SOURCE, **IDS, max_length=5, **options)


def test_at_least_one_sample_is_drawn():
    with pytest.raises(ValueError, match="num_samples must be at least 1, got 0"):
        sample(build(), SOURCE, **IDS, max_length=5, num_samples=0)
