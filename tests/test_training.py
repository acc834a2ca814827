"""course_lib.training: what a decoder reads and predicts, the smoothed loss, the paper's rate, batches by tokens."""

from __future__ import annotations

import math
import random
from itertools import pairwise

import pytest
import torch
import torch.nn.functional as F
from oracles import CLOSE, leaf, no_side_effects
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
    assert inputs.shape == targets.shape == (rows, length - 1)
    assert torch.equal(torch.cat([inputs, tokens[:, -1:]], 1), tokens)
    assert torch.equal(torch.cat([tokens[:, :1], targets], 1), tokens)
    assert inputs.dtype == tokens.dtype


@pytest.mark.parametrize("shape", [(5,), (2, 3, 4), (3, 0)])
def test_a_pair_of_anything_else_is_refused(unchecked, shape):
    with pytest.raises(
        ValueError, match=r"tokens must (be \(batch, length\)|have the start token in column 0), got \(.*; "
    ):
        teacher_forcing_pair(torch.zeros(shape, dtype=torch.long))


# --- the loss ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.5, 1.0])
@pytest.mark.parametrize("pad_id", [0, 3, 6, 7, 1000, -100])
def test_loss_and_gradient_are_pytorchs(smoothing, pad_id):
    ours = leaf(11, 7)
    theirs = ours.detach().clone().requires_grad_()
    targets = torch.randint(7, (11,))
    targets[2:5] = pad_id
    with no_side_effects(ours, targets):
        loss = label_smoothing_loss(ours, targets, smoothing, pad_id)
    expected = F.cross_entropy(theirs, targets, label_smoothing=smoothing, ignore_index=pad_id)
    assert_close(loss, expected, **CLOSE)
    loss.backward()
    expected.backward()
    assert_close(ours.grad, theirs.grad, **CLOSE)
    assert bool((ours.grad[targets == pad_id] == 0).all())
    assert bool((ours.grad[targets != pad_id] != 0).any())


def test_gradients_are_those_of_finite_differences():
    targets = torch.tensor([0, 4, PAD, 1])
    assert torch.autograd.gradcheck(lambda logits: label_smoothing_loss(logits, targets, 0.2, PAD), leaf(4, 5))


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


def test_padding_does_not_change_the_loss_of_the_rest():
    logits, targets = leaf(6, 5), torch.tensor([0, 1, 3, 4, 0, 1])
    alone = label_smoothing_loss(logits, targets, 0.1, PAD)
    padded = label_smoothing_loss(
        torch.cat([logits, torch.randn(9, 5)]), torch.cat([targets, torch.full((9,), PAD)]), 0.1, PAD
    )
    assert_close(padded, alone, **CLOSE)


def test_a_single_target_is_enough():
    logits, targets = leaf(5, 4), torch.tensor([PAD, PAD, 3, PAD, PAD])
    assert_close(label_smoothing_loss(logits, targets, 0.0, PAD), -logits.log_softmax(-1)[2, 3], **CLOSE)


def test_the_least_loss_is_the_entropy_of_the_label():
    vocab, smoothing = 6, 0.3
    targets = torch.arange(vocab)
    label = F.one_hot(targets).double() * (1 - smoothing) + smoothing / vocab
    entropy = -(label * label.log()).sum(-1).mean()
    best = label.log().requires_grad_()  # softmax(log q) is q
    loss = label_smoothing_loss(best, targets, smoothing, -1)
    loss.backward()
    assert_close(loss, entropy, **CLOSE)
    assert_close(best.grad, torch.zeros_like(best), **CLOSE)
    assert label_smoothing_loss(best.detach() * 3, targets, smoothing, -1) > entropy


def test_loss_refuses_shapes_that_do_not_fit(unchecked):
    for logits, targets in (((2, 3, 5), (2, 3)), ((6, 5), (2, 3)), ((6, 5), (5,)), ((5,), ()), ((2, 3, 5), (2,))):
        with pytest.raises(
            ValueError,
            match=r"(logits must be \(count, vocab\)|targets must be \(count,\)|agree in count), got .*; flatten",
        ):
            label_smoothing_loss(torch.zeros(logits), torch.zeros(targets, dtype=torch.long), 0.1, 0)


@pytest.mark.parametrize("smoothing", [-0.1, 1.1, math.nan])
def test_loss_refuses_a_smoothing_that_is_no_share(smoothing):
    with pytest.raises(ValueError, match=r"smoothing must be in \[0, 1\], got .*; the paper has 0\.1"):
        label_smoothing_loss(torch.zeros(2, 5), torch.tensor([1, 3]), smoothing, 0)


def test_loss_refuses_padding_alone():
    with pytest.raises(ValueError, match=r"expected a target that is not pad_id, got padding \(2\) only"):
        label_smoothing_loss(torch.zeros(3, 5), torch.full((3,), PAD), 0.1, PAD)


@pytest.mark.parametrize("wrong", [5, -1])
def test_loss_refuses_targets_that_are_no_classes(wrong):
    with pytest.raises(ValueError, match=rf"classes 0 … 4 or pad_id = 2, got {wrong}; .*vocabulary"):
        label_smoothing_loss(torch.zeros(3, 5), torch.tensor([0, wrong, PAD]), 0.1, PAD)


# --- the rate ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("d_model", "warmup_steps"), [(512, 4000), (1024, 4000), (128, 400), (1, 1)])
def test_the_peak_is_at_the_end_of_the_warmup(d_model, warmup_steps):
    rates = [warmup_rate(step, d_model, warmup_steps) for step in range(1, 3 * warmup_steps + 1)]
    peak = max(rates)
    assert rates.index(peak) == warmup_steps - 1
    assert peak == pytest.approx(d_model**-0.5 * warmup_steps**-0.5, rel=1e-12)
    assert all(type(rate) is float and rate > 0 for rate in rates)


def test_the_rise_is_straight_and_the_fall_goes_with_the_root():
    rise = [warmup_rate(step, 64, 100) for step in range(1, 101)]
    assert rise == pytest.approx([step * rise[0] for step in range(1, 101)], rel=1e-12)
    for step in (100, 123, 5000):
        assert warmup_rate(4 * step, 64, 100) == pytest.approx(warmup_rate(step, 64, 100) / 2, rel=1e-12)


def test_the_papers_peak():
    # Base model: d_model 512, 4,000 steps of warm-up; 512 · 4000 = 2,048,000, one over its root.
    assert warmup_rate(4000, 512, 4000) == pytest.approx(6.98771e-4, rel=1e-6)


@pytest.mark.parametrize(("arguments", "name"), [((0, 4, 9), "step"), ((1, 0, 9), "d_model"), ((1, 4, 0), "warmup")])
def test_rate_refuses_what_is_below_one(arguments, name):
    with pytest.raises(ValueError, match=rf"{name}.* must be at least 1, got 0"):
        warmup_rate(*arguments)


# --- batches ----------------------------------------------------------------------------------------------------------


def area(batch: list[int], lengths: list[int]) -> int:
    return len(batch) * max(lengths[index] for index in batch)


def best(lengths: list[int], max_tokens: int) -> tuple[int, int]:
    """(batches, padding) of the best grouping: fewest batches first, then least padding; by trying all."""

    def groupings(indices):
        if not indices:
            yield []
            return
        first, rest = indices[0], indices[1:]
        for others in groupings(rest):
            yield [[first], *others]
            for place, batch in enumerate(others):
                yield [*others[:place], [first, *batch], *others[place + 1 :]]

    found = [g for g in groupings(list(range(len(lengths)))) if all(area(b, lengths) <= max_tokens for b in g)]
    return min((len(g), sum(area(b, lengths) for b in g) - sum(lengths)) for g in found)


@pytest.mark.parametrize("seed", range(20))
def test_no_grouping_has_fewer_batches(seed):
    chance = random.Random(seed)
    lengths = [chance.randint(1, 9) for _ in range(6)]
    max_tokens = chance.randint(max(lengths), 30)
    assert len(token_batches(lengths, max_tokens)) == best(lengths, max_tokens)[0]


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


def test_sorting_saves_padding():
    chance = random.Random(0)
    lengths = [chance.randint(3, 60) for _ in range(1000)]
    batches = token_batches(lengths, 1200)
    padding = sum(area(batch, lengths) for batch in batches) - sum(lengths)
    assert padding < 0.05 * sum(lengths)


def test_edges_of_batching():
    assert token_batches([], 5) == []
    assert token_batches([5], 5) == [[0]]
    assert token_batches([3, 3, 3, 3], 6) == [[0, 1], [2, 3]]
    assert token_batches([6, 1, 6], 6) == [[1], [0], [2]]
    assert token_batches((2, 1), 100) == [[1, 0]]


@pytest.mark.parametrize(("length", "says"), [(9, "got 9 at index 1"), (-1, "got -1 at index 1")])
def test_batching_refuses_lengths_out_of_range(length, says):
    with pytest.raises(ValueError, match=rf"between 0 and max_tokens = 8, {says}; drop or cut"):
        token_batches([3, length, 4], 8)


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
