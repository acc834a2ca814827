"""The losses of training: the same as PyTorch's cross-entropy and as the readable one, values and gradients."""

import pytest
import torch
import torch.nn.functional as F

from course_kit.translator.fast_loss import ROWS, chunked_label_smoothing_loss, masked_label_smoothing_loss
from course_lib.training import label_smoothing_loss

PAD = 0
FAST = pytest.mark.parametrize("fast", [chunked_label_smoothing_loss, masked_label_smoothing_loss])


def case(rows, classes=13, dtype=torch.float64, pad_id=PAD):
    logits = torch.randn(rows, classes, dtype=dtype, requires_grad=True)
    targets = torch.randint(1, classes - 1, (rows,))
    targets[::3] = pad_id
    return logits, targets


@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.7])
@pytest.mark.parametrize("rows", [2, ROWS - 1, ROWS, ROWS + 1, 2 * ROWS + 7])
def test_it_is_pytorchs(rows, smoothing):
    logits, targets = case(rows)
    ours = chunked_label_smoothing_loss(logits, targets, smoothing, PAD)
    theirs = F.cross_entropy(logits, targets, ignore_index=PAD, label_smoothing=smoothing)
    torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-12)
    gradients = (torch.autograd.grad(3 * loss, logits)[0] for loss in (ours, theirs))
    torch.testing.assert_close(*gradients, rtol=0, atol=1e-12)


@FAST
@pytest.mark.parametrize("smoothing", [0.0, 0.1, 1.0])
@pytest.mark.parametrize("pad_id", [PAD, 12, 13, 1000, -100])
def test_they_are_the_readable_one(fast, smoothing, pad_id):
    """Padding may be a class (0 … 12), or lie below or above them."""
    logits, targets = case(31, pad_id=pad_id)
    losses = [loss(logits, targets, smoothing, pad_id) for loss in (fast, label_smoothing_loss)]
    torch.testing.assert_close(*losses, rtol=0, atol=1e-12)
    torch.testing.assert_close(*(torch.autograd.grad(loss, logits)[0] for loss in losses), rtol=0, atol=1e-12)


def test_bfloat16_logits_lose_only_what_bfloat16_loses():
    logits, targets = case(31, dtype=torch.float32)
    half = logits.detach().bfloat16().requires_grad_()
    options = {"ignore_index": PAD, "label_smoothing": 0.1}
    ours = chunked_label_smoothing_loss(half, targets, 0.1, PAD)
    assert ours.dtype == torch.float32
    torch.testing.assert_close(ours, F.cross_entropy(half.float(), targets, **options))
    (grad,) = torch.autograd.grad(ours, half)
    (expected,) = torch.autograd.grad(F.cross_entropy(logits, targets, **options), logits)
    # bfloat16 has 8 bits: logits rounded on the way in, the gradient on the way out.
    torch.testing.assert_close(grad.float(), expected, rtol=2**-5, atol=2e-4)


@FAST
def test_a_class_that_is_ruled_out_does_no_harm_without_smoothing(fast):
    logits = torch.tensor([[1.0, -float("inf"), 0.0]], requires_grad=True)
    loss = fast(logits, torch.tensor([2]), 0.0, PAD)
    torch.testing.assert_close(loss, F.cross_entropy(logits, torch.tensor([2])))


@FAST
def test_padding_only_is_refused(fast):
    with pytest.raises(ValueError, match=r"got padding \(0\) only"):
        fast(torch.zeros(2, 3), torch.tensor([0, 0]), 0.1, PAD)


def test_huge_logits_stay_finite_and_the_argument_stays_as_it_was():
    logits = torch.tensor([[1e4, -1e4, 0.0]], requires_grad=True)
    loss = chunked_label_smoothing_loss(logits, torch.tensor([1]), 0.1, PAD)
    loss.backward()
    assert torch.isfinite(loss)
    assert torch.isfinite(logits.grad).all()
    assert logits.tolist() == [[1e4, -1e4, 0.0]]


def test_off_the_cpu_no_value_is_waited_for():
    # Tensors on "meta" have no values: whatever would make a host wait for a GPU raises here.
    logits = torch.empty(6, 5, device="meta", requires_grad=True)
    loss = masked_label_smoothing_loss(logits, torch.empty(6, dtype=torch.long, device="meta"), 0.1, PAD)
    assert loss.shape == ()
    loss.backward()
    assert logits.grad.shape == (6, 5)


def test_off_the_cpu_a_batch_of_padding_gives_nan():
    class Elsewhere(torch.Tensor):
        """A tensor with values, which says of itself that it lies on a GPU."""

        device = property(lambda self: torch.device("cuda"))

    nothing = torch.full((11,), PAD).as_subclass(Elsewhere)
    assert bool(masked_label_smoothing_loss(torch.randn(11, 7), nothing, 0.1, PAD).isnan())
