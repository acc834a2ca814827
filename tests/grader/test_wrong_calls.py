"""Tips about exceptions of learners who know NumPy, or who pass something that a function does not take."""

import math

import numpy as np
import pytest
import torch

from course_kit.checker.notebook import self_check
from course_kit.checker.report.html_report import html_of
from course_kit.checker.report.plain_report import text_of
from course_kit.exercises import find


def tip(name: str, solution) -> str:
    found = self_check(find(name), solution).diagnosis
    return found.message if found else ""


def exponentials(scores, dim):
    return torch.exp(scores - scores.amax(dim, keepdim=True))


def np_sum(scores, dim=-1):
    e = exponentials(scores, dim)
    return e / np.sum(e, axis=dim, keepdims=True)


def np_max(scores, dim=-1):
    e = torch.exp(scores - np.max(scores, axis=dim, keepdims=True))
    return e / e.sum(dim, keepdim=True)


def np_exp(scores, dim=-1):
    e = np.exp(scores - scores.amax(dim, keepdim=True))
    return e / e.sum(dim, keepdim=True)


def array_returned(scores, dim=-1):
    x = scores.detach().numpy()
    e = np.exp(x - x.max(axis=dim, keepdims=True))
    return e / e.sum(axis=dim, keepdims=True)


def array_in_softmax(scores, dim=-1):
    return torch.log_softmax(np.where(True, scores.detach(), 0.0), dim).exp()


def array_added(scores, dim=-1):
    return np.zeros(scores.shape) + exponentials(scores, dim)


def copied(scores, dim=-1):
    return scores.copy()


def cast(scores, dim=-1):
    return exponentials(scores, dim).astype(float)


def misspelt(scores, dim=-1):
    return scores.sofmax(dim)


def of_one_number(scores, dim=-1):
    return math.exp(scores)


def without_dim(scores, dim=-1):
    return torch.log_softmax(scores).exp()


def turned_as_in_numpy(scores, dim=-1):
    return scores.transpose(0, 2, 1)


def not_stacked(scores, dim=-1):
    return torch.stack(scores, scores)


def capital(scores, dim=-1):
    return torch.Exp(scores)


def layer_for_function(scores, dim=-1):
    return torch.exp(torch.nn.ReLU(scores))


def pair(scores, dim=-1):
    return torch.cumsum(torch.sort(scores, dim), dim)


def into_too_few(scores, dim=-1):
    out = torch.zeros_like(scores)
    out[..., [0]] = torch.cat([scores, scores], dim)
    return out


def rows(scores, dim=-1):
    return [row.exp() for row in scores]


@pytest.mark.parametrize(
    ("solution", "message"),
    [
        (np_sum, "`np.sum` was given a tensor. Use `torch.sum` instead"),
        (np_max, "`np.max` was given a tensor. Use `torch.amax` instead"),
        (np_exp, "`np.exp` was given a tensor. Use `torch.exp` instead"),
        (
            array_returned,
            "a NumPy array, but a tensor is expected. Use PyTorch's functions throughout, here `torch.exp`.",
        ),
        (array_in_softmax, "This line expects a tensor, and there is a NumPy array."),
        (array_added, "This line expects a tensor, and there is a NumPy array."),
        (copied, "Tensors have no `copy`, which belongs to NumPy or to lists. PyTorch has `x.clone()`."),
        (cast, "PyTorch has `x.to(dtype)`."),
        (misspelt, "Tensors have no `sofmax`. Is `softmax` meant?"),
        (of_one_number, "`math.exp` takes one; `torch.exp` computes every entry."),
        (without_dim, 'This line calls `log_softmax` without "dim".'),
        (turned_as_in_numpy, "`permute` takes all of them."),
        (not_stacked, "`torch.stack([a, b], dim=…)`"),
        (capital, "`torch` has no `Exp`."),
        (layer_for_function, "`ReLU()(x)`"),
        (pair, "`sort` along an axis returns two tensors"),
        (into_too_few, "The right side has the shape (4), but the part that is assigned has the shape (1)."),
        (rows, "`torch.stack` joins them along a new axis"),
    ],
)
def test_what_a_numpy_user_writes_is_answered_with_the_counterpart(solution, message):
    text = tip("softmax", solution)
    assert message in text
    assert "signature" not in text


def test_a_plain_number_is_sent_to_math_only_where_math_has_the_function():
    def softmax(scores, dim=-1):
        return scores / torch.sqrt(4)

    def causal_mask(length):
        return torch.tril(length)

    assert "`math.sqrt`" in tip("softmax", softmax)
    assert "math" not in tip("causal_mask", causal_mask)


def test_the_signature_is_named_where_the_call_of_the_exercise_fails():
    assert "The exercise calls `softmax` with other arguments: compare" in tip("softmax", one_argument())
    text = tip("FeedForward", without_self())
    assert "The first argument of every method is `self`." in text


def one_argument():
    def softmax(scores):
        return scores

    return softmax


def without_self():
    class FeedForward(find("FeedForward").reference):
        def forward(x):  # noqa: N805 - the mistake
            return x

    return FeedForward


def test_none_is_named_where_a_mask_is_used_without_looking():
    def solution(query, key, value, mask=None):
        return query.masked_fill(mask == 0, 0.0), query

    assert "In this case `mask` is None." in tip("scaled_dot_product_attention", solution)


# Gradients


def summed_in_place(scores, dim=-1):
    e = exponentials(scores, dim)
    e /= e.sum(dim, keepdim=True)
    return e


def partly_detached(scores, dim=-1):
    e = exponentials(scores, dim)
    return e / e.sum(dim, keepdim=True).detach()


def test_a_change_in_place_that_the_gradient_needs_is_named_with_its_statement():
    text = tip("softmax", summed_in_place)
    assert "The values are right, but the call fails when gradients are computed. A tensor is changed in place" in text
    assert "In place here: `e /= e.sum(dim, keepdim=True)`." in text


def test_what_cuts_a_gradient_is_named():
    text = tip("softmax", partly_detached)
    assert text.endswith("No gradient passes `e.sum(dim, keepdim=True).detach()` in your code.")


# What is shown


def test_the_plain_case_is_shown_where_all_fail():
    report = self_check(find("scaled_dot_product_attention"), lambda query, key, value, mask=None: (value, key))
    assert report.example.heading.startswith("Smallest failing case: one query, two keys")
    report = self_check(find("apply_rotary"), lambda x, positions, base=10000.0: positions * x[..., 0::2])
    assert "5,000" not in report.example.heading


def test_the_learners_line_comes_before_the_arguments_and_the_weights_last():
    class FeedForward(find("FeedForward").reference):
        def forward(self, x):
            return self.linear3(x)

    report = self_check(find("FeedForward"), FeedForward)
    text = text_of(report, "")
    assert text.index("your line") < text.index("AttributeError:") < text.index("x = [") < text.index("weights: ")
    markup = html_of(report, "")
    assert markup.index("your line") < markup.index("x = [") < markup.index("<details><summary>weights</summary>")
