"""course_lib.training: what a decoder reads and predicts, the smoothed loss, the paper's rate, batches by tokens."""

from __future__ import annotations

import math
import random
from itertools import pairwise

import pytest
import torch
import torch.nn.functional as F
from oracles import CLOSE, assert_same, leaf, no_side_effects
from torch.testing import assert_close

from course_lib.training import label_smoothing_loss, teacher_forcing_pair, token_batches, warmup_rate

PAD = 2

# --- by hand ----------------------------------------------------------------------------------------------------------


def test_a_sentence_is_read_and_predicted_one_position_apart():
    # 1 starts, 2 ends, 0 pads.
    tokens = torch.tensor([[1, 7, 8, 9, 2], [1, 5, 2, 0, 0]])
    inputs, targets = teacher_forcing_pair(tokens)
    assert inputs.tolist() == [[1, 7, 8, 9], [1, 5, 2, 0]]
    assert targets.tolist() == [[7, 8, 9, 2], [5, 2, 0, 0]]


def test_smoothed_loss_by_hand():
    # Probabilities 1/2, 1/4, 1/4 and 1/8, 1/8, 3/4; the third position is padding. With smoothing 0.3 the label is 0.8
    # at the target and 0.1 at the two others.
    logits = torch.tensor([[2.0, 1.0, 1.0], [1.0, 1.0, 6.0], [5.0, 1.0, 9.0]]).double().log()
    targets = torch.tensor([0, 1, PAD])
    first = -(0.8 * math.log(1 / 2) + 0.2 * math.log(1 / 4))
    second = -(0.9 * math.log(1 / 8) + 0.1 * math.log(3 / 4))
    expected = torch.tensor((first + second) / 2, dtype=torch.float64)
    assert_close(label_smoothing_loss(logits, targets, 0.3, PAD), expected, **CLOSE)


def test_rate_by_hand():
    # d_model 4 gives a factor of 1/2; a warm-up of 16 steps rises by 1/64 a step and meets the fall at 1/4.
    assert [warmup_rate(step, 4, 16) for step in (1, 8, 16, 64)] == [1 / 128, 1 / 16, 1 / 8, 1 / 16]


def test_batches_by_hand():
    # In order of length: 2, 2 (4 cells with the third: 3 · 4 = 12 > 8), then 4 (2 · 5 > 8), then 5.
    assert token_batches([5, 2, 4, 2], 8) == [[1, 3], [2], [0]]


# --- teacher forcing --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("rows", "length"), [(1, 1), (1, 2), (3, 2), (4, 7)])
def test_pairs_are_views_of_all_but_one_column(rows, length):
    tokens = torch.randint(9, (rows, length))
    with no_side_effects(tokens):
        inputs, targets = teacher_forcing_pair(tokens)
    assert torch.equal(torch.cat([inputs, tokens[:, -1:]], 1), tokens)
    assert torch.equal(torch.cat([tokens[:, :1], targets], 1), tokens)


# --- the loss ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.5, 1.0])
@pytest.mark.parametrize("pad_id", [0, 3, 6, 7, 1000, -100])
def test_loss_and_gradient_are_pytorchs(smoothing, pad_id):
    logits, targets = leaf(11, 7), torch.randint(7, (11,))
    targets[2:5] = pad_id
    with no_side_effects(logits, targets):
        loss = label_smoothing_loss(logits, targets, smoothing, pad_id)
    expected = F.cross_entropy(logits, targets, label_smoothing=smoothing, ignore_index=pad_id)
    assert_same(loss, expected, logits)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_logits_of_ten_thousand_give_finite_losses_and_gradients(dtype, smoothing):
    logits = (torch.rand(9, 6, dtype=torch.float64) * 2e4 - 1e4).to(dtype)
    logits[0, :2] = torch.tensor([1e4, -1e4])
    targets = torch.tensor([1, 0, 3, 4, 5, PAD, 0, 1, 3])
    logits.requires_grad_()
    loss = label_smoothing_loss(logits, targets, smoothing, PAD)
    loss.backward()
    exact = label_smoothing_loss(logits.detach().double(), targets, smoothing, PAD)
    assert loss.dtype == dtype
    assert bool(loss.isfinite())
    assert bool(logits.grad.isfinite().all())
    assert_close(loss.double(), exact, rtol=1e-6, atol=0)


def test_an_error_says_what_to_do(unchecked):
    def loss(*shape, targets, smoothing=0.1):
        return label_smoothing_loss(torch.zeros(shape), torch.as_tensor(targets), smoothing, PAD)

    for call, words in (
        (lambda: loss(2, 3, 5, targets=[[0] * 3] * 2), r"logits must be \(count, vocab\), got .*; flatten"),
        (lambda: loss(6, 5, targets=[[0] * 3] * 2), r"targets must be \(count,\), got .*; flatten"),
        (lambda: loss(6, 5, targets=[0] * 5), r"agree in count, got .*; flatten"),
        (
            lambda: loss(2, 5, targets=[1, 3], smoothing=1.1),
            r"smoothing must be in \[0, 1\], got 1.1; the paper has 0\.1",
        ),
        (lambda: loss(3, 5, targets=[PAD] * 3), r"expected a target that is not pad_id, got padding \(2\) only"),
        (lambda: loss(3, 5, targets=[0, 5, PAD]), r"classes 0 … 4 or pad_id = 2, got 5; .*vocabulary"),
        (lambda: loss(3, 5, targets=[0, -1, PAD]), r"classes 0 … 4 or pad_id = 2, got -1; .*vocabulary"),
        (lambda: teacher_forcing_pair(torch.zeros(3, 0).long()), r"the start token in column 0, got \(3, 0\); put it"),
        (lambda: warmup_rate(0, 4, 9), r"step must be at least 1, got 0; count updates from 1"),
        (lambda: token_batches([3, 9, 4], 8), r"between 0 and max_tokens = 8, got 9 at index 1; drop or cut"),
        (lambda: token_batches([3, -1, 4], 8), r"between 0 and max_tokens = 8, got -1 at index 1; drop or cut"),
    ):
        with pytest.raises(ValueError, match=words):
            call()
    with pytest.raises(TypeError, match=r"lengths must be a whole number, got 2.0; pass an int at index 1"):
        token_batches([3, 2.0], 8)


# --- the rate ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("d_model", "warmup_steps"), [(128, 400), (1, 1)])
def test_the_rate_rises_in_a_straight_line_and_falls_with_the_root(d_model, warmup_steps):
    rates = [warmup_rate(step, d_model, warmup_steps) for step in range(1, 3 * warmup_steps + 1)]
    peak = (d_model * warmup_steps) ** -0.5
    rise = [peak * step / warmup_steps for step in range(1, warmup_steps + 1)]
    fall = [peak * math.sqrt(warmup_steps / step) for step in range(warmup_steps + 1, 3 * warmup_steps + 1)]
    assert rates == pytest.approx(rise + fall, rel=1e-12)


def test_the_papers_peak():
    # Base model: d_model 512, 4,000 steps of warm-up; 512 · 4000 = 2,048,000, one over its root.
    assert warmup_rate(4000, 512, 4000) == pytest.approx(6.98771e-4, rel=1e-6)


# --- batches ----------------------------------------------------------------------------------------------------------


def area(batch: list[int], lengths: list[int]) -> int:
    return len(batch) * max(lengths[index] for index in batch)


def fewest(lengths: list[int], max_tokens: int) -> int:
    """How many batches the best grouping has, by trying all."""

    def groupings(indices):
        if not indices:
            yield []
            return
        first, rest = indices[0], indices[1:]
        for others in groupings(rest):
            yield [[first], *others]
            for place, batch in enumerate(others):
                yield [*others[:place], [first, *batch], *others[place + 1 :]]

    every = groupings(list(range(len(lengths))))
    return min(len(batches) for batches in every if all(area(batch, lengths) <= max_tokens for batch in batches))


@pytest.mark.parametrize("seed", range(20))
def test_no_grouping_has_fewer_batches(seed):
    chance = random.Random(seed)
    lengths = [chance.randint(1, 9) for _ in range(6)]
    max_tokens = chance.randint(max(lengths), 30)
    assert len(token_batches(lengths, max_tokens)) == fewest(lengths, max_tokens)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("max_tokens", [60, 61, 200, 4096])
def test_each_sentence_once_within_the_bound_and_of_similar_length(seed, max_tokens):
    chance = random.Random(seed)
    lengths = [chance.randint(1, 60) for _ in range(500)]
    before = list(lengths)
    batches = token_batches(lengths, max_tokens)
    assert lengths == before
    assert sorted(index for batch in batches for index in batch) == list(range(500))
    assert all(area(batch, lengths) <= max_tokens for batch in batches)
    flat = [lengths[index] for batch in batches for index in batch]
    assert flat == sorted(flat)
    for batch, following in pairwise(batches):  # the next sentence would not have fitted
        assert (len(batch) + 1) * lengths[following[0]] > max_tokens


def test_edges_of_batching():
    assert token_batches([], 5) == []
    assert token_batches([5], 5) == [[0]]
    assert token_batches([3, 3, 3, 3], 6) == [[0, 1], [2, 3]]
    assert token_batches([6, 1, 6], 6) == [[1], [0], [2]]
    assert token_batches((2, 1), 100) == [[1, 0]]


def test_thirty_thousand_sentences_make_no_quadratic_work():
    # Comparisons are counted, no time: a length is looked at a few times each, log n of them for the sort.
    class Counted(list):
        looks = 0

        def __getitem__(self, index):
            Counted.looks += 1
            return super().__getitem__(index)

    lengths = Counted(random.Random(0).choices(range(3, 60), k=30_000))
    assert sum(map(len, token_batches(lengths, 4096))) == 30_000
    assert Counted.looks <= 3 * 30_000
