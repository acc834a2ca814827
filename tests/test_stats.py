"""course_kit.stats: bootstrap intervals that cover what they promise, and rank correlation."""

from __future__ import annotations

import pytest
import torch
from oracles import no_side_effects
from torch.testing import assert_close
from torchmetrics.functional.regression import spearman_corrcoef

from course_kit.stats import Interval, bootstrap_interval, rank_correlation

# --- bootstrap --------------------------------------------------------------------------------------------------------


def test_an_interval_by_hand():
    # Of two units 0 and 1 the mean of a resample is 0, ½, ½ or 1, each of four draws alike: the middle half is ½ alone,
    # and 80 % reach from 0 to 1.
    for confidence, ends in ((0.4, (0.5, 0.5)), (0.8, (0.0, 1.0))):
        interval = bootstrap_interval(torch.tensor([0.0, 1.0]), confidence=confidence)
        assert tuple(map(float, interval)) == (0.5, *ends)
    assert str(Interval(torch.tensor(0.91239), torch.tensor(0.8744), torch.tensor(1.0))) == "0.912 [0.874, 1.000]"


def test_the_interval_of_a_mean_is_that_of_the_normal_distribution():
    values = torch.randn(997, dtype=torch.float64)
    _, low, high = bootstrap_interval(values, samples=4000)
    error = values.std() / 997**0.5
    ends = values.mean() + error * values.new_tensor([-1.96, 1.96])
    assert_close(torch.stack((low, high)), ends, rtol=0, atol=0.1 * error.item())


@pytest.mark.parametrize(("number", "least", "most"), [(50, 0.91, 0.97), (10, 0.86, 0.94)])
def test_how_often_the_interval_holds_the_truth(number, least, most):
    """The docstring's 90 % for ten units. The standard error of the share is 0.01."""
    experiments = torch.randn(number, 700, dtype=torch.float64)  # columns: experiments whose true mean is 0
    _, low, high = bootstrap_interval(experiments, samples=500)
    share = ((low < 0) & (high > 0)).double().mean()
    assert least < share < most


def test_the_statistic_gets_whole_units():
    pairs = torch.stack((torch.arange(1.0, 12), 3 * torch.arange(1.0, 12)), dim=1)
    interval = bootstrap_interval(pairs, lambda rows: rows[:, 1].sum() / rows[:, 0].sum())
    assert_close(torch.stack(interval), torch.full((3,), 3.0))


def test_the_same_seed_gives_the_same_interval_and_the_global_generator_is_left_alone():
    values = torch.randn(11, 3)
    with no_side_effects(values):
        first, again, other = (bootstrap_interval(values, seed=seed) for seed in (5, 5, 7))
    assert torch.equal(first.low, again.low)
    assert not torch.equal(first.low, other.low)
    assert torch.equal(first.estimate, values.mean(0))


@pytest.mark.parametrize(
    ("number", "confidence", "message"),
    [
        (1, 0.95, "at least two units, got 1"),
        (3, 1.0, "confidence must lie between 0 and 1, got 1.0"),
        (3, 0.0, "confidence must lie between 0 and 1, got 0.0"),
    ],
)
def test_bad_requests_for_an_interval(number, confidence, message):
    with pytest.raises(ValueError, match=message):
        bootstrap_interval(torch.ones(number), confidence=confidence)


# --- rank correlation -------------------------------------------------------------------------------------------------


def test_rank_correlation_by_hand():
    # Ranks 1 2 3 4 and 2 1 3 4: Σ d² = 2, so ρ = 1 − 6 · 2 / (4 · 15) = 0.8.
    x, y = torch.tensor([1.0, 10.0, 100.0, 1000.0]), torch.tensor([-3.0, -5.0, 0.0, 0.1])
    assert_close(rank_correlation(x, y), torch.tensor(0.8))
    assert_close(rank_correlation(x, -x), torch.tensor(-1.0))


def test_ties_share_the_mean_of_their_ranks():
    # Ranks 1½ 1½ 3 and 1 2 3, around their mean −½ −½ 1 and −1 0 1: 1.5 / √(1.5 · 2).
    assert_close(rank_correlation(torch.tensor([0.0, 0, 5]), torch.tensor([1.0, 2, 3])), torch.tensor(0.75**0.5))


@pytest.mark.parametrize("ties", [False, True])
def test_rank_correlation_is_that_of_torchmetrics(ties):
    x, y = torch.randn(2, 3, 5, 17, dtype=torch.float64)
    if ties:
        x, y = x.round(), y.round()
    with no_side_effects(x, y):
        ours = rank_correlation(x, y)
    theirs = [spearman_corrcoef(*rows) for rows in zip(x.flatten(0, 1), y.flatten(0, 1), strict=True)]
    # Theirs takes the ranks in single precision, and adds 1.2e-7 to the denominator.
    assert_close(ours.flatten().float(), torch.stack(theirs), rtol=0, atol=1e-6)


def test_without_an_order_there_is_no_correlation():
    assert rank_correlation(torch.ones(5), torch.arange(5.0)).isnan()


def test_rank_correlation_of_different_shapes_is_an_error(unchecked):
    with pytest.raises(ValueError, match=r"must rank the same things, got shapes \(1, 5\) and \(3, 5\)"):
        rank_correlation(torch.ones(1, 5), torch.ones(3, 5))
