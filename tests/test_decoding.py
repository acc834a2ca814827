"""course_lib.decoding: two searches, a filter, a score, and one step of attention with a cache."""

from __future__ import annotations

import itertools
import math

import pytest
import sacrebleu
import torch
from next_token_models import BOS, EOS, TRAP, model_of, random_model
from oracles import DTYPES, assert_same, leaf, no_side_effects
from transformers import TopPLogitsWarper

from course_lib.decoding import beam_search, cached_attention, corpus_bleu, greedy_decode, top_p_filter
from course_lib.masking import causal_mask
from course_lib.scaled_dot_product import scaled_dot_product_attention

# --- by hand ----------------------------------------------------------------------------------------------------------


def test_greedy_by_hand():
    # 2 (0.5), then 2 (0.4), then eos (0.4).
    assert [greedy_decode(TRAP, BOS, EOS, max_length=length) for length in (3, 2, 1, 0)] == [[2, 2], [2, 2], [2], []]


def test_a_model_that_changes_its_ids_does_not_disturb_the_search():
    def model(ids):
        known = list(ids)
        ids.append(EOS)
        return TRAP(known)

    assert greedy_decode(model, BOS, EOS, max_length=3) == [2, 2]
    assert beam_search(model, BOS, EOS, 2, 3) == beam_search(TRAP, BOS, EOS, 2, 3)


def test_beam_search_by_hand():
    # Greedy's sentence has 0.5 · 0.4 · 0.4 = 0.08. The beam keeps 3 as well: 0.4 · 0.9 = 0.36.
    assert [beam_search(TRAP, BOS, EOS, 2, length) for length in (3, 0)] == [[3], []]
    assert beam_search(TRAP, BOS, EOS, 1000, 3) == [3]  # wider than the vocabulary; bos has log-probability −inf


def test_length_penalty_by_hand():
    # eos at once has log 0.5. 2 then eos has log 0.45: less as a sum, more as a mean of two.
    model = model_of({(): [0.0, 0.5, 0.5, 0.0], (2,): [0.0, 0.9, 0.1, 0.0], (2, 2): [0.0, 1.0, 0.0, 0.0]})
    assert beam_search(model, BOS, EOS, 2, 2, length_penalty=0.0) == []
    assert beam_search(model, BOS, EOS, 2, 2, length_penalty=1.0) == [2]


def test_top_p_by_hand():
    logits = torch.tensor([0.1, 0.5, 0.15, 0.25]).log()
    inf = math.inf
    # 0.5, then 0.75, then 0.9: the token that reaches p belongs to the set.
    assert top_p_filter(logits, 0.7).tolist() == [-inf, logits[1], -inf, logits[3]]
    assert top_p_filter(logits, 0.8).tolist() == [-inf, logits[1], logits[2], logits[3]]
    assert top_p_filter(logits, 0.4).tolist() == [-inf, logits[1], -inf, -inf]
    assert top_p_filter(logits, 0.0).tolist() == [-inf, logits[1], -inf, -inf]
    assert torch.equal(top_p_filter(logits, 1.0), logits)


def test_bleu_by_hand():
    # Against a b c d e: 5 of 6 tokens match, 3 of 5 pairs (ab, bc, cd … of a b c d d e: ab bc cd de, dd not): 4 of 5;
    # triples abc bcd cdd dde: 2 of 4; fours abcd bcdd cdde: 1 of 3. No brevity penalty, the hypothesis is longer.
    hypothesis, reference = list("abcdde"), list("abcde")
    expected = 100 * (5 / 6 * 4 / 5 * 2 / 4 * 1 / 3) ** 0.25
    assert corpus_bleu([hypothesis], [reference]) == pytest.approx(expected, abs=1e-10)
    # Four of eight tokens, all n-grams right: only the brevity penalty exp(1 − 8/4) is left.
    assert corpus_bleu([list("abcd")], [list("abcdefgh")]) == pytest.approx(100 * math.exp(-1), abs=1e-10)


def test_cached_attention_by_hand():
    # d = 4 halves the scores: (ln 9, 0) / 2 = (ln 3, 0), weights 3/4 and 1/4, output 0.75 · 4 + 0.25 · 8 = 5.
    def four(*numbers):
        return torch.tensor(numbers, dtype=torch.float64).view(1, 1, 1, 4)

    old_key, new_key = four(math.log(9.0), 0, 0, 0), four(0, 1, 0, 0)
    old_value, new_value = four(4, 0, 0, 0), four(8, 0, 0, 0)
    query = four(1, 0, 0, 0)
    output, cache = cached_attention(query, old_key, old_value)
    assert torch.equal(output, old_value)
    output, (keys, values) = cached_attention(query, new_key, new_value, cache)
    assert output[0, 0, 0, 0].item() == pytest.approx(5.0, abs=1e-12)
    assert torch.equal(keys, torch.cat((old_key, new_key), -2))
    assert torch.equal(values, torch.cat((old_value, new_value), -2))


# --- the searches -----------------------------------------------------------------------------------------------------


def every_sequence(model, vocab: int, max_length: int):
    """All sequences that end in eos or have max_length tokens, with the sum of their log-probabilities."""
    tokens = [token for token in range(vocab) if token != EOS]
    for length in range(max_length + 1):
        for body in itertools.product(tokens, repeat=length):
            total, prefix = 0.0, [BOS]
            for token in body:
                total += model(list(prefix))[token].item()
                prefix.append(token)
            if length == max_length:
                yield body, total, length
            else:
                yield body, total + model(list(prefix))[EOS].item(), length + 1


def test_a_beam_as_wide_as_everything_finds_the_best_of_all():
    vocab, max_length, lengths = 4, 4, set()
    for seed, penalty in itertools.product(range(3), (0.0, 0.6, 1.0, 1.5)):
        model = random_model(vocab, seed)
        best, _, _ = max(every_sequence(model, vocab, max_length), key=lambda s: s[1] / s[2] ** penalty)
        assert beam_search(model, BOS, EOS, vocab**max_length, max_length, penalty) == list(best), (seed, penalty)
        lengths.add(len(best))
    assert len(lengths) >= 3


@pytest.mark.parametrize("penalty", [0.0, 1.0])
def test_a_beam_of_one_is_greedy(penalty):
    lengths = set()
    for seed in range(30):
        model = random_model(6, seed)
        greedy = greedy_decode(model, BOS, EOS, 8)
        assert beam_search(model, BOS, EOS, 1, 8, penalty) == greedy
        lengths.add(len(greedy))
    assert {0, 8} < lengths  # some end at once, some never


def test_eos_that_does_not_survive_does_not_compete():
    # eos at once (0.3) would be the best sequence of all, but two candidates are better in its step.
    after = [0.0, 0.1, 0.5, 0.4]
    model = model_of({(): [0.0, 0.3, 0.36, 0.34], (2,): after, (3,): after})
    assert beam_search(model, BOS, EOS, 2, 2) == [2, 2]
    assert beam_search(model, BOS, EOS, 3, 2) == []


def test_what_has_not_ended_at_max_length_competes_as_it_stands():
    model = model_of({(): [0.0, 0.1, 0.9, 0.0], (2,): [0.0, 0.1, 0.9, 0.0]})
    assert beam_search(model, BOS, EOS, 2, 2) == [2, 2]  # 0.81 against 0.1 and 0.09, which have ended
    model = model_of({(): [0.0, 0.6, 0.4, 0.0], (2,): [0.0, 0.1, 0.9, 0.0]})
    assert beam_search(model, BOS, EOS, 2, 2) == []  # 0.6 against 0.36


def test_the_search_ends_when_nothing_is_open():
    assert beam_search(model_of({(): [0.0, 0.9, 0.06, 0.04]}), BOS, EOS, 1, 50) == []


# --- top-p ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("p", [0.05, 0.3, 0.7, 0.9, 0.99])
def test_top_p_is_that_of_transformers(p):
    logits = 2 * torch.randn(60, 40, dtype=torch.float64)
    theirs = TopPLogitsWarper(p)(None, logits)
    assert torch.equal(top_p_filter(logits, p), theirs)
    assert torch.equal(top_p_filter(logits[1], p), theirs[1])


@pytest.mark.parametrize("dtype", DTYPES)
def test_top_p_keeps_the_smallest_set_that_reaches_p(dtype):
    for p in (0.2, 0.5, 0.8, 0.95):
        logits = (2 * torch.randn(30)).to(dtype)
        probs, kept = logits.double().softmax(-1), top_p_filter(logits, p)
        chosen = kept.isfinite()
        assert torch.equal(kept[chosen], logits[chosen])  # in the same dtype
        assert probs[chosen].min() >= probs[~chosen].max()
        assert probs[chosen].sum() - probs[chosen].min() - 1e-6 < p <= probs[chosen].sum() + 1e-6


def test_top_p_with_ties_keeps_as_many_as_are_needed():
    # A quarter, a half and three quarters are reached exactly, by one, two and three tokens.
    for p, count in ((0.1, 1), (0.25, 1), (0.3, 2), (0.5, 2), (0.6, 3), (0.75, 3), (0.9, 4), (1.0, 4)):
        assert int(top_p_filter(torch.zeros(4), p).isfinite().sum()) == count


def test_top_p_of_one_keeps_even_the_least_probable_and_what_is_out_stays_out():
    for logits in (torch.tensor([0.0, -60.0, 3.0, -80.0, -math.inf]), 5 * torch.randn(3000)):
        assert torch.equal(top_p_filter(logits, 1.0), logits)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_probabilities_of_many_tokens_add_up_in_half_precision(dtype):
    kept = int(top_p_filter(torch.zeros(5000, dtype=dtype), 0.5).isfinite().sum())
    assert abs(kept - 2500) <= 1  # a sum in bfloat16 gets stuck long before


def test_top_p_leaves_its_input_alone_and_lets_gradients_through():
    logits = leaf(6)
    with no_side_effects(logits):
        kept = top_p_filter(logits, 0.6)
    chosen = kept.isfinite().double()
    assert 0 < chosen.sum() < 6
    kept[chosen.bool()].sum().backward()
    assert torch.equal(logits.grad, chosen)


def test_what_no_search_and_no_filter_takes_is_refused():
    for call, words in (
        (lambda: beam_search(TRAP, BOS, EOS, 0, 3), "beam_size must be at least 1, got 0; with 1"),
        (
            lambda: greedy_decode(lambda ids: torch.full((5,), math.nan), BOS, EOS, 3),
            "with NaN; look for NaN in the mo",
        ),
        (lambda: top_p_filter(torch.zeros(3), 90), r"p must be in \[0, 1\], got 90; for 90 % pass 0.9"),
        (lambda: top_p_filter(torch.tensor([0.0, math.nan]), 0.5), r"must be \(..., V\) without NaN, got \(2,\)"),
    ):
        with pytest.raises(ValueError, match=words):
            call()


# --- BLEU -------------------------------------------------------------------------------------------------------------


def random_corpus(seed: int, sentences: int = 12):
    generator = torch.Generator().manual_seed(seed)

    def integer(low, high):
        return int(torch.randint(low, high + 1, (), generator=generator))

    references = [[f"w{integer(0, 6)}" for _ in range(integer(4, 14))] for _ in range(sentences)]
    hypotheses = []
    for reference in references:  # a word dropped, doubled or exchanged here and there
        words = []
        for word in reference:
            words += [[word], [word], [word], [word, word], [], [f"w{integer(0, 6)}"]][integer(0, 5)]
        hypotheses.append(words)
    return hypotheses, references


def their_bleu(hypotheses, references) -> float:
    lines, wanted = ([" ".join(tokens) for tokens in side] for side in (hypotheses, references))
    return sacrebleu.corpus_bleu(lines, [wanted], tokenize="none", smooth_method="none", force=True).score


@pytest.mark.parametrize("seed", range(8))
def test_bleu_is_that_of_sacrebleu(seed):
    hypotheses, references = random_corpus(seed)
    short = [hypothesis[: len(hypothesis) * 2 // 3] for hypothesis in hypotheses]
    long = [hypothesis + hypothesis for hypothesis in hypotheses]
    # Even an empty hypothesis costs by its missing length only.
    for changed in (hypotheses, short, long, [*short[:6], *long[6:]], [*hypotheses[:2], [], *hypotheses[3:]]):
        expected = their_bleu(changed, references)
        assert 3 < expected < 95
        assert corpus_bleu(changed, references) == pytest.approx(expected, abs=1e-9)


def test_the_best_score_is_100_and_an_order_without_a_match_gives_0():
    assert corpus_bleu([[5, 6, 7, 8, 9]], [[5, 6, 7, 8, 9]]) == pytest.approx(100.0, abs=1e-12)  # needs no strings
    assert corpus_bleu([list("abcxefg")], [list("abcdefg")]) == 0.0
    assert corpus_bleu([list("abc")], [list("abc")]) == 0.0  # there is no 4-gram to match
    assert corpus_bleu([[]], [list("abcd")]) == 0.0


def test_each_hypothesis_needs_its_reference_as_a_list_of_tokens(unchecked):
    for hypotheses, references in (([], []), ([["a"]], []), ([["a"]], [["a"], ["b"]])):
        got = f"got {len(hypotheses)} hypotheses and {len(references)} references; pass two lists"
        with pytest.raises(ValueError, match=f"expected as many references as hypotheses, and at least one, {got}"):
            corpus_bleu(hypotheses, references)
    for hypotheses, references, words in (
        (["a b"], [["a", "b"]], r"hypotheses.*the string 'a b'; pass sentence.split\(\)"),
        ([["a"]], [3], r"each sentence of references must be a list, got 3"),
        ([[["a"]]], [["a"]], r"the tokens of hypotheses must be strings or ids, got \[\['a'\]\]; tokenise"),
    ):
        with pytest.raises(TypeError, match=words):
            corpus_bleu(hypotheses, references)


# --- attention with a cache -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("batch", [(2, 3), (2,), ()])
def test_step_by_step_is_causal_attention_in_values_and_gradients(batch):
    length, d_k, d_v = 6, 5, 4
    leaves = query, key, value = leaf(*batch, length, d_k), leaf(*batch, length, d_k), leaf(*batch, length, d_v)
    outputs, cache = [], None
    for q, k, v in zip(*(x.split(1, -2) for x in leaves), strict=True):
        output, cache = cached_attention(q, k, v, cache)
        outputs.append(output)
    expected, _ = scaled_dot_product_attention(query, key, value, causal_mask(length))
    assert_same(torch.cat(outputs, dim=-2), expected, leaves)
    assert torch.equal(cache[0], key)
    assert torch.equal(cache[1], value)


def test_two_hypotheses_can_go_on_from_one_cache():
    new = [[leaf(2, 3, 1, 4) for _ in range(3)] for _ in range(3)]
    _, cache = cached_attention(*new[0])
    with no_side_effects(*cache):
        one, _ = cached_attention(*new[1], cache)
        cached_attention(*new[2], cache)
    again, (keys, _) = cached_attention(*new[1], cache)
    assert torch.equal(one, again)
    assert keys.shape == (2, 3, 2, 4)


def test_more_than_one_token_and_the_cache_of_another_batch_are_refused(unchecked):
    one, two, past = torch.randn(2, 3, 1, 4), torch.randn(2, 3, 2, 4), torch.randn(2, 3, 5, 4)
    for args in ((two, one, one), (one, two, one), (one, one, two), (two, two, two)):
        with pytest.raises(ValueError, match=r"(query|key|value).* 1.*; pass the newest token alone"):
            cached_attention(*args)
    for cache in ((past[:1], past), (past, past[:, :2]), (past[..., :3], past), (past, past.half())):
        with pytest.raises(ValueError, match=r"must agree with the new .* start the next one with None"):
            cached_attention(one, one, one, cache)
    with pytest.raises(
        TypeError, match=r"cache must be a pair \(keys, values\), got Tensor; at the first step pass None"
    ):
        cached_attention(one, one, one, past)
