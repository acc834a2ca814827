"""course_kit.speculative: exactly the target's distribution, by enumeration and by drawing; and the work, counted."""

from __future__ import annotations

import math
from collections import Counter

import pytest
import torch
from oracles import no_side_effects

from course_kit import speculative
from course_kit.speculative import expected_tokens_per_step, speculative_sample
from course_lib.decoding import greedy_decode
from course_lib.efficiency import speculative_acceptance

BOS, EOS = 3, 2  # the vocabulary is 0, 1, 2; bos lies outside it
LENGTH = 3


def random_model(seed: int, vocab: int = 3, spread: float = 1.5):
    """A model whose answer depends on every token so far, in their order."""
    table = spread * torch.randn(97, vocab, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)

    def next_log_probs(tokens: list[int]) -> torch.Tensor:
        assert tokens[0] == BOS
        assert EOS not in tokens
        state = 0
        for token in tokens:
            state = (state * 31 + token + 1) % 97
        return table[state].log_softmax(-1)

    return next_log_probs


def unigram(*probabilities: float):
    """A model that ignores what has been written."""
    log_probs = torch.tensor(probabilities, dtype=torch.float64).log()
    return lambda tokens: log_probs


class Target:
    """The target's interface, one row for each of the last `number` tokens; its calls are noted."""

    def __init__(self, next_log_probs):
        self.next_log_probs, self.calls = next_log_probs, []

    def __call__(self, tokens: list[int], number: int) -> torch.Tensor:
        assert 1 <= number <= len(tokens)
        # What is before the last tokens has been scored by earlier calls, so that a cache can hold it.
        assert len(tokens) - number <= (len(self.calls[-1][0]) if self.calls else 0)
        self.calls.append((list(tokens), number))
        return torch.stack([self.next_log_probs(tokens[:end]) for end in range(len(tokens) + 1)[-number:]])


TARGET, DRAFT = random_model(seed=1, spread=0.7), random_model(seed=51)


def sample(num_draft, target=TARGET, draft=DRAFT, max_length=LENGTH, **options):
    return speculative_sample(Target(target), draft, BOS, EOS, max_length, num_draft, **options)


def counts_of(result):
    return result.target_calls, result.drafted, result.compared, result.accepted


# --- what the distribution has to be, and what it is -----------------------------------------------------------------


def wanted(next_log_probs, temperature=1.0) -> Counter:
    """Sequence to probability, by multiplying the target's probabilities."""
    found, open_ = Counter(), {(): 1.0}
    for _ in range(LENGTH):
        extended = {}
        for tokens, mass in open_.items():
            row = (next_log_probs([BOS, *tokens]) / temperature).softmax(-1).tolist()
            for token, p in enumerate(row):
                (found if token == EOS else extended)[(*tokens, token)] = mass * p
        open_ = extended
    return Counter({**found, **open_})


def outcome(result):
    return (*result.tokens, EOS) if result.finished else tuple(result.tokens)


def enumerated(run) -> Counter:
    """Sequence to probability, by running through every possible outcome of every draw."""
    found: Counter = Counter()
    scripts = [()]
    while scripts:
        script, path, mass = scripts.pop(), [], 1.0

        def drawn(probabilities, generator, script=script, path=path):
            nonlocal mass
            if len(path) < len(script):
                choice = script[len(path)]
            else:
                choice, *others = probabilities.nonzero()[:, 0].tolist()
                scripts.extend((*path, other) for other in others)
            path.append(choice)
            mass *= probabilities[choice].item()
            return choice

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(speculative, "_drawn", drawn)
            found[outcome(run())] += mass
    return found


def largest_difference(first, second):
    return max(abs(first[key] - second[key]) for key in {*first, *second})


@pytest.mark.parametrize("num_draft", [0, 1, 2, 3])
def test_every_sequence_has_exactly_the_probability_that_the_target_gives_it(num_draft):
    assert largest_difference(enumerated(lambda: sample(num_draft)), wanted(TARGET)) < 1e-12


def test_the_distribution_is_exact_at_other_temperatures_and_for_drafts_that_never_draw_a_token():
    hot = enumerated(lambda: sample(2, temperature=1.7))
    assert largest_difference(hot, wanted(TARGET, temperature=1.7)) < 1e-12
    for target, draft in ((TARGET, unigram(0.0, 0.6, 0.4)), (unigram(0.0, 0.3, 0.7), unigram(0.5, 0.3, 0.2))):
        found = enumerated(lambda target=target, draft=draft: sample(2, target, draft))
        assert largest_difference(found, wanted(target)) < 1e-12


# --- by drawing: this includes the random numbers, which the enumeration replaces ------------------------------------

DRAWS = 1000


def tail(counts: Counter, probabilities: Counter) -> float:
    """How probable a χ² of the counts at least as large is; rare sequences are pooled."""
    common = [key for key, p in probabilities.items() if p * DRAWS >= 5]
    expected, seen = [probabilities[key] * DRAWS for key in common], [counts[key] for key in common]
    if len(common) < len(probabilities):
        expected.append(DRAWS - sum(expected))
        seen.append(DRAWS - sum(seen))
    chi_square = sum((s - e) ** 2 / e for s, e in zip(seen, expected, strict=True))
    return torch.special.gammaincc(torch.tensor((len(seen) - 1) / 2), torch.tensor(chi_square / 2)).item()


def drawn_counts():
    generator = torch.Generator().manual_seed(5)
    return Counter(outcome(sample(2, generator=generator)) for _ in range(DRAWS))


def test_drawn_sequences_are_as_frequent_as_the_target_says():
    assert tail(drawn_counts(), wanted(TARGET)) > 1e-3


@pytest.mark.parametrize(
    "fault",
    [
        lambda target, draft: (torch.ones_like(target), target),  # always accepted
        lambda target, draft: (speculative_acceptance(target, draft)[0], target),  # replaced by the target
        lambda target, draft: ((draft / target).clamp(max=1.0), speculative_acceptance(target, draft)[1]),
    ],
)
def test_wrong_rules_are_seen_by_the_enumeration_and_in_the_draws(monkeypatch, fault):
    monkeypatch.setattr(speculative, "speculative_acceptance", fault)
    assert largest_difference(enumerated(lambda: sample(2)), wanted(TARGET)) > 0.01
    assert tail(drawn_counts(), wanted(TARGET)) < 1e-6


# --- greedy, and equal models ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("num_draft", "temperature"), [(1, 1e-320), (4, 1e-3)])
def test_at_a_temperature_towards_zero_it_is_greedy_decoding(num_draft, temperature):
    lengths = set()
    for seed in range(20):
        target, draft = random_model(seed, vocab=7, spread=3.0), random_model(seed + 100, vocab=7, spread=3.0)
        greedy = greedy_decode(target, BOS, EOS, max_length=9)
        assert sample(num_draft, target, draft, max_length=9, temperature=temperature).tokens == greedy
        lengths.add(len(greedy))
    assert len(lengths) > 3


@pytest.mark.parametrize("num_draft", [1, 2, 5])
def test_a_draft_model_equal_to_the_target_is_always_accepted(num_draft):
    generator = torch.Generator().manual_seed(0)
    for _ in range(50):
        result = sample(num_draft, TARGET, TARGET, max_length=11, generator=generator)
        assert result.accepted == result.compared == result.drafted
        assert result.target_calls == math.ceil(result.generated / (num_draft + 1))


# --- counts ----------------------------------------------------------------------------------------------------------


def test_counts_by_hand():
    """The draft always writes 0 0; the target wants 0 1 after bos, then 1 until the end."""
    zero, one = unigram(1.0, 0.0, 0.0), unigram(0.0, 1.0, 0.0)
    target = Target(lambda tokens: (zero if len(tokens) == 1 else one)(tokens))
    result = speculative_sample(target, zero, BOS, EOS, max_length=4, num_draft=2)
    assert (result.tokens, result.finished, result.generated) == ([0, 1, 1, 1], False, 4)
    # Step 1 keeps the first of two drafts; step 2 has room for one draft, which is replaced; step 3 for none.
    assert target.calls == [([BOS, 0, 0], 3), ([BOS, 0, 1, 0], 2), ([BOS, 0, 1, 1], 1)]
    assert counts_of(result) == (3, 3, 3, 1)


def test_nothing_is_drafted_after_the_end_nor_called_for_no_tokens():
    ends = unigram(0.0, 0.0, 1.0)
    target = Target(ends)
    result = speculative_sample(target, ends, BOS, EOS, max_length=9, num_draft=4)
    assert target.calls == [([BOS], 1)]
    assert (result.tokens, result.finished, result.generated) == ([], True, 1)
    assert counts_of(result) == (1, 1, 1, 1)
    result = sample(3, max_length=0)
    assert (result.tokens, result.finished, *counts_of(result)) == ([], False, 0, 0, 0, 0)


def test_a_bos_that_is_also_eos_does_not_end_the_sequence():
    model, generator = unigram(0.5, 0.2, 0.3), torch.Generator().manual_seed(0)
    results = [speculative_sample(Target(model), model, EOS, EOS, 5, 2, generator=generator) for _ in range(40)]
    assert {len(result.tokens) for result in results} >= {0, 1, 2, 5}


def test_tokens_per_call_are_those_of_the_formula():
    """With models that ignore the past, acceptances are independent, each with probability Σ min(p, q)."""
    p, q = (0.5, 0.4, 0.1), (0.2, 0.5, 0.3)
    alpha = 0.2 + 0.4 + 0.1
    generator = torch.Generator().manual_seed(3)
    for num_draft in (1, 4):
        result = speculative_sample(Target(unigram(*p)), unigram(*q), BOS, -1, 2500, num_draft, generator=generator)
        # Mean and variance of the tokens of a step: P(at least i + 1 tokens) = α^i.
        mean = expected_tokens_per_step(alpha, num_draft)
        square = sum((2 * i + 1) * alpha**i for i in range(num_draft + 1))
        spread = math.sqrt((square - mean**2) / result.target_calls)
        assert abs(result.generated / result.target_calls - mean) < 4 * spread < 0.2 * mean
        rate = result.accepted / result.compared
        assert abs(rate - alpha) < 4 * math.sqrt(alpha * (1 - alpha) / result.compared)


@pytest.mark.parametrize("alpha", [0, 0.0, 0.25, 0.9, 1 - 1e-12, 1.0, 1])
def test_the_formula_is_the_sum_of_its_terms(alpha):
    assert expected_tokens_per_step(0.5, 2) == 1.75  # by hand: 1 + 1/2 + 1/4
    for num_draft in (0, 1, 2, 7):
        found = expected_tokens_per_step(alpha, num_draft)
        assert abs(found - sum(alpha**i for i in range(num_draft + 1))) < 1e-11
        assert type(found) is float


# --- random numbers, dtypes, errors ----------------------------------------------------------------------------------


def test_the_generator_decides_everything():
    before = torch.get_rng_state()
    first, again, other = (
        [sample(2, max_length=8, generator=torch.Generator().manual_seed(seed)) for _ in range(9)] for seed in (1, 1, 2)
    )
    assert first == again != other
    assert torch.equal(torch.get_rng_state(), before)
    results = []
    for _ in range(2):
        torch.manual_seed(4)
        results.append(sample(2, max_length=30))
    assert results[0] == results[1]


@pytest.mark.parametrize(("level", "index"), [(0.0, 1), (0.2499, 1), (0.25, 3), (1 - 2**-53, 3)])
def test_draws_at_the_edges_never_take_a_token_of_probability_zero(monkeypatch, level, index):
    monkeypatch.setattr(torch, "rand", lambda *size, **options: torch.tensor(level, dtype=torch.float64))
    probabilities = torch.tensor([0.0, 0.25, 0.0, 0.75, 0.0], dtype=torch.float64)
    assert speculative._drawn(probabilities, None) == index


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_models_may_answer_in_any_precision_with_gradients_and_unnormalised(monkeypatch, dtype):
    drawn, seen = speculative._drawn, []
    monkeypatch.setattr(speculative, "_drawn", lambda p, generator: seen.append(p) or drawn(p, generator))
    logits = torch.tensor([1.0, 2.0, 0.5], dtype=dtype, requires_grad=True)
    generator = torch.Generator().manual_seed(0)
    with no_side_effects(logits):
        result = sample(2, lambda tokens: logits.double(), lambda tokens: logits, 5, generator=generator)
    assert result.accepted == result.compared > 0
    assert {(p.dtype, p.requires_grad) for p in seen} == {(torch.float64, False)}


NAN = float("nan")


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"temperature": 0}, "temperature must be above 0, got 0"),
        ({"draft_log_probs": lambda tokens: torch.zeros(1, 3)}, r"\(V,\), got torch.float32 \(1, 3\)"),
        ({"draft_log_probs": lambda tokens: torch.zeros(0)}, r"\(V,\), got torch.float32 \(0,\)"),
        ({"draft_log_probs": lambda tokens: [0.5, 0.5]}, r"\(V,\), got list"),
        ({"draft_log_probs": unigram(NAN, 0.5, 0.5)}, "draft_log_probs must .* without NaN"),
        ({"draft_log_probs": unigram(0.0, 0.0, 0.0)}, "draft_log_probs must .* largest is -inf"),
        ({"target_log_probs": lambda tokens, n: torch.zeros(n + 1, 3)}, r"\(3, 3\), got .* \(4, 3\)"),
        ({"target_log_probs": lambda tokens, n: torch.zeros(n, 4)}, r"\(3, 3\), got .* \(3, 4\)"),
    ],
)
@pytest.mark.usefixtures("unchecked")
def test_wrong_answers_of_a_model_are_named(changed, message):
    right = {"target_log_probs": Target(unigram(0.5, 0.5, 0.0)), "draft_log_probs": unigram(0.5, 0.5, 0.0)}
    sizes = {"bos_id": BOS, "eos_id": EOS, "max_length": 5, "num_draft": 2}
    with pytest.raises(ValueError, match=message):
        speculative_sample(**{**right, **sizes, **changed})
