"""course_kit.speculative: exactly the target's distribution, by enumeration and by drawing; and the work, counted."""

from __future__ import annotations

import math
from collections import Counter
from functools import cache

import pytest
import torch
from oracles import no_side_effects

from course_kit import speculative
from course_kit.nn import LanguageModel, TransformerConfig
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


def rows_of(next_log_probs):
    """The target's interface: one row for each of the last `number` tokens."""

    def target(tokens: list[int], number: int) -> torch.Tensor:
        assert 1 <= number <= len(tokens)
        ends = range(len(tokens) - number + 1, len(tokens) + 1)
        return torch.stack([next_log_probs(tokens[:end]) for end in ends])

    return target


TARGET, DRAFT = random_model(seed=1, spread=0.7), random_model(seed=51)


def sample(num_draft, target=TARGET, draft=DRAFT, max_length=LENGTH, **options):
    return speculative_sample(rows_of(target), draft, BOS, EOS, max_length, num_draft, **options)


def outcome(result):
    return (*result.tokens, EOS) if result.finished else tuple(result.tokens)


# --- what the distribution has to be, and what it is -----------------------------------------------------------------


def wanted(next_log_probs, max_length=LENGTH, temperature=1.0) -> dict[tuple[int, ...], float]:
    """Sequence to probability, by multiplying the target's probabilities."""
    found, open_ = {}, {(): 1.0}
    for _ in range(max_length):
        extended = {}
        for tokens, mass in open_.items():
            row = (next_log_probs([BOS, *tokens]) / temperature).softmax(-1).tolist()
            for token, p in enumerate(row):
                (found if token == EOS else extended)[(*tokens, token)] = mass * p
        open_ = extended
    return {**found, **open_}


def enumerated(monkeypatch, run) -> Counter:
    """Sequence to probability, by running through every possible outcome of every draw."""
    found: Counter = Counter()
    scripts = [()]
    while scripts:
        script, path, mass = scripts.pop(), [], 1.0

        def drawn(probabilities, generator):
            nonlocal mass
            assert generator is None
            if len(path) < len(script):  # noqa: B023
                choice = script[len(path)]  # noqa: B023
            else:
                choice, *others = probabilities.nonzero()[:, 0].tolist()
                scripts.extend((*path, other) for other in others)  # noqa: B023
            path.append(choice)  # noqa: B023
            mass *= probabilities[choice].item()
            return choice

        monkeypatch.setattr(speculative, "_drawn", drawn)
        found[outcome(run())] += mass
    monkeypatch.undo()
    return found


def largest_difference(first, second):
    return max(abs(first[key] - second[key]) for key in {*first, *second})


def always_accepted(target, draft):
    return torch.ones_like(target), target


def replaced_by_the_target(target, draft):
    return speculative_acceptance(target, draft)[0], target


def ratio_upside_down(target, draft):
    return (draft / target).clamp(max=1.0), speculative_acceptance(target, draft)[1]


FAULTS = [always_accepted, replaced_by_the_target, ratio_upside_down]


@pytest.mark.parametrize("num_draft", [0, 1, 2, 3])
def test_every_sequence_has_exactly_the_probability_that_the_target_gives_it(monkeypatch, num_draft):
    found = enumerated(monkeypatch, lambda: sample(num_draft))
    assert largest_difference(found, Counter(wanted(TARGET))) < 1e-12
    assert abs(sum(found.values()) - 1) < 1e-12


def test_the_distribution_is_exact_at_other_temperatures_and_for_drafts_that_never_draw_a_token(monkeypatch):
    hot = enumerated(monkeypatch, lambda: sample(2, temperature=1.7))
    assert largest_difference(hot, Counter(wanted(TARGET, temperature=1.7))) < 1e-12
    assert largest_difference(hot, Counter(wanted(TARGET))) > 0.01  # it is another one

    narrow = unigram(0.0, 0.6, 0.4)
    assert largest_difference(enumerated(monkeypatch, lambda: sample(2, draft=narrow)), Counter(wanted(TARGET))) < 1e-12
    proper, wide = unigram(0.0, 0.3, 0.7), unigram(0.5, 0.3, 0.2)
    found = enumerated(monkeypatch, lambda: sample(2, target=proper, draft=wide))
    assert largest_difference(found, Counter(wanted(proper))) < 1e-12
    assert not any(0 in tokens for tokens in found)


def test_the_distribution_is_exact_for_a_language_model(monkeypatch):
    config = TransformerConfig(vocab_size=4, d_model=8, num_heads=2, num_layers=1, d_ff=16, dropout=0.0, pad_id=2)
    model = LanguageModel(config).double().eval()  # padding is never passed: token 2 is eos here

    @cache
    def target(tokens: tuple[int, ...]) -> torch.Tensor:
        with torch.no_grad():
            return model(torch.tensor([tokens]))[0, :, :3].log_softmax(-1)  # bos is not drawn

    def rows(tokens, number):
        return target(tuple(tokens))[-number:]

    found = enumerated(monkeypatch, lambda: speculative_sample(rows, DRAFT, BOS, EOS, LENGTH, 2))
    assert largest_difference(found, Counter(wanted(lambda tokens: target(tuple(tokens))[-1]))) < 1e-12


@pytest.mark.parametrize("fault", FAULTS)
def test_the_enumeration_sees_wrong_rules(monkeypatch, fault):
    assert largest_difference(faulty(monkeypatch, fault), Counter(wanted(TARGET))) > 0.01


def faulty(monkeypatch, fault):
    """What a wrong rule gives: sequence to probability."""
    with monkeypatch.context() as patch:
        patch.setattr(speculative, "speculative_acceptance", fault)
        with pytest.MonkeyPatch.context() as inner:
            return enumerated(inner, lambda: sample(2))


# --- by drawing: this includes the random numbers, which the enumeration replaces ------------------------------------

DRAWS = 1000
LEVEL = 1e-6  # a right program fails for one seed in a million


def chi_square(counts, probabilities):
    """Σ (count − expected)² / expected; rare sequences are pooled."""
    common = [key for key, p in probabilities.items() if p * DRAWS >= 5]
    expected = [probabilities[key] * DRAWS for key in common]
    seen = [counts[key] for key in common]
    if len(common) < len(probabilities):
        expected.append(DRAWS - sum(expected))
        seen.append(DRAWS - sum(seen))
    return sum((s - e) ** 2 / e for s, e in zip(seen, expected, strict=True)), len(seen) - 1


def tail(x: float, degrees: float) -> float:
    """P(χ² > x) with so many degrees of freedom."""
    return torch.special.gammaincc(*torch.tensor([degrees / 2, x / 2], dtype=torch.float64)).item()


def power(fault_probabilities, probabilities):
    """Probability that the test rejects what a fault gives: a noncentral χ², a Poisson mixture of central ones."""
    shift, degrees = chi_square({key: DRAWS * fault_probabilities[key] for key in probabilities}, probabilities)
    low, high = 0.0, 1e4
    for _ in range(60):  # the critical value
        middle = (low + high) / 2
        low, high = (middle, high) if tail(middle, degrees) > LEVEL else (low, middle)
    return sum(
        math.exp(-shift / 2 + n * math.log(shift / 2) - math.lgamma(n + 1)) * tail(high, degrees + 2 * n)
        for n in range(int(shift + 100))  # far beyond its mean, shift / 2
    )


def drawn_counts():
    generator = torch.Generator().manual_seed(5)
    return Counter(outcome(sample(2, generator=generator)) for _ in range(DRAWS))


def test_drawn_sequences_are_as_frequent_as_the_target_says():
    assert tail(*chi_square(drawn_counts(), wanted(TARGET))) > 1e-3


@pytest.mark.parametrize("fault", FAULTS)
def test_the_draws_would_reveal_a_wrong_rule(monkeypatch, fault):
    assert power(faulty(monkeypatch, fault), wanted(TARGET)) > 0.9999
    monkeypatch.setattr(speculative, "speculative_acceptance", fault)
    assert tail(*chi_square(drawn_counts(), wanted(TARGET))) < LEVEL


def test_the_tail_of_chi_square_is_that_of_a_table():
    # The upper 5 % points with 1, 3 and 10 degrees of freedom, and P(χ²₂ > x) = exp(−x / 2).
    for degrees, x in ((1, 3.841), (3, 7.815), (10, 18.307)):
        assert abs(tail(x, degrees) - 0.05) < 1e-4
    assert abs(tail(5.0, 2) - math.exp(-2.5)) < 1e-12


# --- greedy, and equal models ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("num_draft", [1, 4])
@pytest.mark.parametrize("temperature", [1e-3, 1e-320])
def test_at_a_temperature_towards_zero_it_is_greedy_decoding(num_draft, temperature):
    lengths = set()
    for seed in range(20):
        target, draft = random_model(seed, vocab=7, spread=3.0), random_model(seed + 100, vocab=7, spread=3.0)
        greedy = greedy_decode(target, BOS, EOS, max_length=9)
        result = sample(num_draft, target, draft, max_length=9, temperature=temperature)
        assert result.tokens == greedy
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

    def target(tokens):
        return unigram(*((1.0, 0.0, 0.0) if len(tokens) == 1 else (0.0, 1.0, 0.0)))(tokens)

    calls = []

    def rows(tokens, number):
        calls.append((list(tokens), number))
        return rows_of(target)(tokens, number)

    result = speculative_sample(rows, unigram(1.0, 0.0, 0.0), BOS, EOS, max_length=4, num_draft=2)
    assert result.tokens == [0, 1, 1, 1]
    assert not result.finished
    # Step 1 keeps the first of two drafts; step 2 has room for one draft, which is replaced; step 3 for none.
    assert calls == [([BOS, 0, 0], 3), ([BOS, 0, 1, 0], 2), ([BOS, 0, 1, 1], 1)]
    assert (result.target_calls, result.drafted, result.compared, result.accepted) == (3, 3, 3, 1)
    assert result.generated == 4


def test_nothing_is_drafted_after_the_end():
    ends = unigram(0.0, 0.0, 1.0)
    calls = []

    def rows(tokens, number):
        calls.append((list(tokens), number))
        return rows_of(ends)(tokens, number)

    result = speculative_sample(rows, ends, BOS, EOS, max_length=9, num_draft=4)
    assert calls == [([BOS], 1)]
    assert (result.tokens, result.finished, result.generated) == ([], True, 1)
    assert (result.target_calls, result.drafted, result.compared, result.accepted) == (1, 1, 1, 1)


def test_a_bos_that_is_also_eos_does_not_end_the_sequence():
    model = unigram(0.5, 0.2, 0.3)
    results = [
        speculative_sample(rows_of(model), model, EOS, EOS, 5, 2, generator=torch.Generator().manual_seed(seed))
        for seed in range(20)
    ]
    assert {len(result.tokens) for result in results} >= {0, 1, 2, 5}


@pytest.mark.parametrize("num_draft", [0, 1, 2, 5])
def test_the_target_scores_each_position_that_is_kept_once(num_draft):
    """What is before the last n tokens has been scored by earlier calls, so that a cache can hold it."""
    scored = 0

    def rows(tokens, number):
        nonlocal scored
        assert len(tokens) - number <= scored
        scored = len(tokens)
        return rows_of(TARGET)(tokens, number)

    generator = torch.Generator().manual_seed(1)
    for _ in range(30):
        scored = 0
        result = speculative_sample(rows, DRAFT, BOS, EOS, 12, num_draft, generator=generator)
        assert result.generated <= 12
        assert result.accepted <= result.compared <= result.drafted <= num_draft * result.target_calls


def test_tokens_per_call_are_those_of_the_formula():
    """With models that ignore the past, acceptances are independent, each with probability Σ min(p, q)."""
    p, q = (0.5, 0.4, 0.1), (0.2, 0.5, 0.3)
    alpha = 0.2 + 0.4 + 0.1
    generator = torch.Generator().manual_seed(3)
    for num_draft in (1, 4):
        result = speculative_sample(
            rows_of(unigram(*p)), unigram(*q), BOS, -1, max_length=2500, num_draft=num_draft, generator=generator
        )
        # Mean and variance of the tokens of a step: P(at least i + 1 tokens) = α^i.
        mean = expected_tokens_per_step(alpha, num_draft)
        square = sum((2 * i + 1) * alpha**i for i in range(num_draft + 1))
        spread = math.sqrt((square - mean**2) / result.target_calls)
        assert abs(result.generated / result.target_calls - mean) < 4 * spread
        assert 4 * spread < 0.2 * mean  # the interval is narrow enough to tell one num_draft from the next
        rate = result.accepted / result.compared
        assert abs(rate - alpha) < 4 * math.sqrt(alpha * (1 - alpha) / result.compared)


@pytest.mark.parametrize("num_draft", [0, 1, 2, 7])
@pytest.mark.parametrize("alpha", [0, 0.0, 0.25, 0.9, 1 - 1e-12, 1.0, 1])
def test_the_formula_is_the_sum_of_its_terms(alpha, num_draft):
    found = expected_tokens_per_step(alpha, num_draft)
    assert abs(found - sum(alpha**i for i in range(num_draft + 1))) < 1e-11
    assert type(found) is float


def test_expected_tokens_by_hand():
    assert expected_tokens_per_step(0.5, 2) == pytest.approx(1.75)
    assert expected_tokens_per_step(0.8, 1) == pytest.approx(1.8)


# --- random numbers, dtypes, errors ----------------------------------------------------------------------------------


def test_the_generator_decides_everything():
    before = torch.get_rng_state()
    first, again, other = (
        [sample(2, max_length=8, generator=torch.Generator().manual_seed(seed)) for _ in range(9)] for seed in (1, 1, 2)
    )
    assert first == again
    assert first != other
    assert torch.equal(torch.get_rng_state(), before)
    torch.manual_seed(4)
    first = sample(2, max_length=30)
    torch.manual_seed(4)
    assert sample(2, max_length=30) == first


def test_a_token_of_probability_zero_is_never_drawn():
    generator = torch.Generator().manual_seed(0)
    probabilities = torch.tensor([0.0, 0.25, 0.0, 0.75, 0.0], dtype=torch.float64)
    counts = Counter(speculative._drawn(probabilities, generator) for _ in range(4000))
    assert set(counts) == {1, 3}
    assert abs(counts[1] / 4000 - 0.25) < 4 * math.sqrt(0.25 * 0.75 / 4000)


@pytest.mark.parametrize(("level", "index"), [(0.0, 1), (0.25, 3), (1 - 2**-53, 3)])
def test_draws_at_the_edges(monkeypatch, level, index):
    monkeypatch.setattr(torch, "rand", lambda *size, **options: torch.tensor(level, dtype=torch.float64))
    probabilities = torch.tensor([0.0, 0.25, 0.0, 0.75, 0.0], dtype=torch.float64)
    assert speculative._drawn(probabilities, None) == index


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_models_may_answer_in_any_precision_with_gradients_and_unnormalised(dtype):
    logits = torch.tensor([1.0, 2.0, 0.5], dtype=dtype, requires_grad=True)

    def target(tokens, number):
        return logits.expand(number, -1)

    with no_side_effects(logits):
        result = speculative_sample(
            target, lambda tokens: logits, BOS, EOS, 5, 2, generator=torch.Generator().manual_seed(0)
        )
    assert result.accepted == result.compared > 0


@pytest.mark.parametrize("dtype", [torch.float16, torch.float64])
def test_the_models_may_differ_in_precision_and_no_graph_is_kept(monkeypatch, dtype):
    drawn, seen = speculative._drawn, []
    monkeypatch.setattr(speculative, "_drawn", lambda p, generator: seen.append(p) or drawn(p, generator))
    draft = torch.tensor([1.0, 2.0, 0.5], dtype=dtype, requires_grad=True)
    sample(2, draft=lambda tokens: draft, target=lambda tokens: torch.zeros(3, requires_grad=True))
    assert {p.dtype for p in seen} == {torch.float64}
    assert not any(p.requires_grad for p in seen)


def test_max_length_zero_calls_nothing():
    def never(*arguments):
        raise AssertionError

    result = speculative_sample(never, never, BOS, EOS, 0, 3)
    assert (result.tokens, result.finished, result.target_calls, result.drafted) == ([], False, 0, 0)


NAN = float("nan")


@pytest.mark.parametrize(
    ("changed", "error", "message"),
    [
        ({"target_log_probs": None}, TypeError, "target_log_probs must be a function, got None"),
        ({"draft_log_probs": 3}, TypeError, "draft_log_probs must be a function, got 3"),
        ({"bos_id": 0.5}, TypeError, "bos_id must be a whole number, got 0.5"),
        ({"eos_id": "2"}, TypeError, "eos_id must be a whole number"),
        ({"max_length": -1}, ValueError, "max_length must be at least 0, got -1"),
        ({"num_draft": -1}, ValueError, "num_draft must be at least 0, got -1"),
        ({"num_draft": True}, TypeError, "num_draft must be a whole number, got True"),
        ({"temperature": 0}, ValueError, "temperature must be above 0, got 0"),
        ({"temperature": NAN}, ValueError, "temperature must be a finite number, got nan"),
        ({"temperature": "1"}, TypeError, "temperature must be a number"),
        ({"generator": 7}, TypeError, "generator must be of type Generator, got 7"),
        ({"draft_log_probs": lambda tokens: torch.zeros(1, 3)}, ValueError, r"\(V,\), got torch.float32 \(1, 3\)"),
        ({"draft_log_probs": lambda tokens: torch.zeros(0)}, ValueError, r"\(V,\), got torch.float32 \(0,\)"),
        ({"draft_log_probs": lambda tokens: [0.5, 0.5]}, ValueError, r"\(V,\), got list"),
        ({"draft_log_probs": unigram(NAN, 0.5, 0.5)}, ValueError, "draft_log_probs must .* without NaN"),
        ({"draft_log_probs": unigram(0.0, 0.0, 0.0)}, ValueError, "draft_log_probs must .* largest is -inf"),
        ({"target_log_probs": lambda tokens, n: torch.zeros(n + 1, 3)}, ValueError, r"\(3, 3\), got .* \(4, 3\)"),
        ({"target_log_probs": lambda tokens, n: torch.zeros(n, 4)}, ValueError, r"\(3, 3\), got .* \(3, 4\)"),
        ({"target_log_probs": lambda tokens, n: torch.zeros(3)}, ValueError, r"target_log_probs must return .*\(3,\)"),
        ({"target_log_probs": lambda tokens, n: torch.full((n, 3), NAN)}, ValueError, "target_log_probs .* without"),
    ],
)
@pytest.mark.usefixtures("unchecked")
def test_wrong_arguments_are_named(changed, error, message):
    right = {
        "target_log_probs": rows_of(unigram(0.5, 0.5, 0.0)),
        "draft_log_probs": unigram(0.5, 0.5, 0.0),
        "bos_id": BOS,
        "eos_id": EOS,
        "max_length": 5,
        "num_draft": 2,
    }
    with pytest.raises(error, match=message):
        speculative_sample(**{**right, **changed})


@pytest.mark.parametrize(
    ("alpha", "num_draft", "error", "message"),
    [
        (1.5, 2, ValueError, "alpha must be a finite number between 0 and 1, got 1.5"),
        (NAN, 2, ValueError, "alpha must be a finite number"),
        ("half", 2, TypeError, "alpha must be a number"),
        (0.5, -1, ValueError, "num_draft must be at least 0"),
        (0.5, 1.0, TypeError, "num_draft must be a whole number"),
    ],
)
@pytest.mark.usefixtures("unchecked")
def test_the_formula_refuses_what_is_no_rate(alpha, num_draft, error, message):
    with pytest.raises(error, match=message):
        expected_tokens_per_step(alpha, num_draft)
