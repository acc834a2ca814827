"""course_lib.attention: weights by softmax, scores by dot product and by a network, regression with a kernel."""

from __future__ import annotations

import math

import pytest
import torch
from oracles import CLOSE, DTYPES, assert_same, leaf, no_side_effects
from torch.testing import assert_close

from course_lib.attention import AdditiveScore, additive_score, attend, dot_product_score, kernel_regression, softmax

LEADING = [(), (2,), (2, 3)]

# --- by hand ----------------------------------------------------------------------------------------------------------


def test_softmax_by_hand():
    # exp(ln 1), exp(ln 2), exp(ln 5) = 1, 2, 5; their sum is 8.
    scores = torch.tensor([1.0, 2.0, 5.0], dtype=torch.float64).log()
    assert_close(softmax(scores), torch.tensor([0.125, 0.25, 0.625], dtype=torch.float64), **CLOSE)


def test_dot_product_score_by_hand():
    # (1, 2)·(3, 4) = 3 + 8 = 11; (1, 2)·(5, 6) = 5 + 12 = 17; (1, 2)·(0, -1) = -2.
    key = torch.tensor([[3.0, 4.0], [5.0, 6.0], [0.0, -1.0]])
    assert dot_product_score(torch.tensor([[1.0, 2.0]]), key).tolist() == [[11.0, 17.0, -2.0]]


def test_additive_score_by_hand():
    # tanh(ln 2) = (2 - 1/2) / (2 + 1/2) = 0.6 and tanh(ln 3) = (3 - 1/3) / (3 + 1/3) = 0.8.
    # Hidden layer: (1 · ln 2 + 0, 0 + 1 · ln 3), so the score is 5 · 0.6 + 10 · 0.8 = 11.
    query = torch.tensor([[math.log(2.0)]], dtype=torch.float64)
    key = torch.tensor([[math.log(3.0), 7.0]], dtype=torch.float64)  # the second feature gets no weight
    w_query = torch.tensor([[1.0], [0.0]], dtype=torch.float64)
    w_key = torch.tensor([[0.0, 0.0], [1.0, 0.0]], dtype=torch.float64)
    v = torch.tensor([5.0, 10.0], dtype=torch.float64)
    assert additive_score(query, key, w_query, w_key, v).item() == pytest.approx(11.0, abs=1e-12)


def test_attend_by_hand():
    # Weights 1 : 3 = 0.25, 0.75; output 0.25 · 4 + 0.75 · 8 = 7 and 0.25 · 0 + 0.75 · 4 = 3.
    scores = torch.tensor([[0.0, math.log(3.0)]], dtype=torch.float64)
    value = torch.tensor([[4.0, 0.0], [8.0, 4.0]], dtype=torch.float64)
    output, weights = attend(scores, value)
    assert_close(weights, torch.tensor([[0.25, 0.75]], dtype=torch.float64), **CLOSE)
    assert_close(output, torch.tensor([[7.0, 3.0]], dtype=torch.float64), **CLOSE)


def test_kernel_regression_by_hand():
    # bandwidth 2, distances 0 and 2 √(2 ln 3): kernel exp(0) = 1 and exp(-(4 · 2 ln 3) / (2 · 4)) = 1/3,
    # weights 3/4 and 1/4, prediction 0.75 · 4 + 0.25 · 8 = 5.
    x_key = torch.tensor([1.0, 1.0 + 2.0 * math.sqrt(2.0 * math.log(3.0))], dtype=torch.float64)
    y_key = torch.tensor([4.0, 8.0], dtype=torch.float64)
    prediction = kernel_regression(torch.tensor([1.0], dtype=torch.float64), x_key, y_key, bandwidth=2.0)
    assert prediction.tolist() == pytest.approx([5.0], abs=1e-12)


# --- softmax ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dim", [0, 1, 2, -1, -2, -3])
def test_softmax_and_its_gradient_are_those_of_torch_along_any_axis(dim):
    scores = leaf(3, 5, 7)
    assert_same(softmax(scores, dim), torch.softmax(scores, dim), scores)


def test_softmax_normalises_the_last_axis_by_default():
    assert_close(softmax(torch.randn(3, 5, 7)).sum(-1), torch.ones(3, 5))


@pytest.mark.parametrize("scores", [[1e4, -1e4, 0.0], [1e4, 1e4, 1e4 - 1.0], [-1e4, -1e4, -1e4]])
def test_softmax_survives_extreme_scores(scores):
    scores = torch.tensor(scores, requires_grad=True)
    weights = softmax(scores)
    assert_close(weights, torch.softmax(scores, -1))
    weights[0].backward()
    assert scores.grad.isfinite().all()


def test_rows_of_very_different_size_do_not_disturb_each_other():
    """Each row is shifted by its own largest score; shifted by the largest of all, the second would be 0 / 0."""
    scores = torch.tensor([[900.0, 901.0, 899.0], [-900.0, -901.0, -899.0]])
    assert_close(softmax(scores), torch.softmax(scores, -1))
    assert_close(softmax(scores.T, dim=0), torch.softmax(scores.T, 0))


@pytest.mark.parametrize("dtype", DTYPES)
def test_softmax_keeps_the_dtype_and_is_as_exact_as_it_allows(dtype):
    scores = torch.randn(3, 5, 101).to(dtype)
    weights = softmax(scores)
    assert weights.dtype == dtype
    # Four roundings a weight (difference, exp, sum, quotient). The difference is at most about 8, and its rounding
    # becomes a relative error after exp: (8 + 3) · eps / 2 < 8 eps, relative to weights of at most 1.
    assert_close(weights.double(), torch.softmax(scores.double(), -1), rtol=8 * torch.finfo(dtype).eps, atol=1e-7)


# --- scores and averages ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("leading", LEADING)
def test_dot_product_score_and_its_gradients_are_those_of_a_loop_over_pairs(leading):
    query, key = leaf(*leading, 5, 11), leaf(*leading, 7, 11)
    pairs = [[(query[..., i, :] * key[..., j, :]).sum(-1) for j in range(7)] for i in range(5)]
    expected = torch.stack([torch.stack(row, -1) for row in pairs], -2)
    assert_same(dot_product_score(query, key), expected, (query, key))


@pytest.mark.parametrize("leading", LEADING)
def test_additive_score_and_its_gradients_are_those_of_a_loop(leading):
    leaves = leaf(*leading, 5, 11), leaf(*leading, 7, 13), leaf(17, 11), leaf(17, 13), leaf(17)
    query, key, w_query, w_key, v = leaves

    def score(q, k):
        return sum(v[a] * torch.tanh((w_query[a] * q).sum(-1) + (w_key[a] * k).sum(-1)) for a in range(17))

    pairs = [[score(query[..., i, :], key[..., j, :]) for j in range(7)] for i in range(5)]
    expected = torch.stack([torch.stack(row, -1) for row in pairs], -2)
    assert_same(additive_score(*leaves), expected, leaves)


@pytest.mark.parametrize("leading", LEADING)
def test_attend_and_its_gradients_are_torch_softmax_times_values(leading):
    scores, value = leaf(*leading, 5, 7), leaf(*leading, 7, 11)
    output, weights = attend(scores, value)
    assert_same(output, torch.softmax(scores, -1) @ value, (scores, value))
    assert_same(weights, torch.softmax(scores, -1), scores)


def test_kernel_regression_and_its_gradients_are_those_of_a_loop_over_queries_and_keys():
    leaves = x_query, x_key, y_key = leaf(5), leaf(7), leaf(7)
    expected = []
    for x in x_query:
        kernel = [torch.exp(-((x - x_k) ** 2) / (2 * 0.7**2)) for x_k in x_key]
        expected.append(sum(k * y for k, y in zip(kernel, y_key, strict=True)) / sum(kernel))
    assert_same(kernel_regression(*leaves, bandwidth=0.7), torch.stack(expected), leaves)


def test_far_from_every_key_kernel_regression_predicts_the_nearest_value():
    x_query, x_key, y_key = torch.tensor([1e4, -1e4]), torch.tensor([-1.0, 0.0, 1.0]), torch.tensor([2.0, 3.0, 5.0])
    assert kernel_regression(x_query, x_key, y_key, bandwidth=0.1).tolist() == [5.0, 2.0]


# --- the module -------------------------------------------------------------------------------------------------------


def test_the_module_computes_the_function_with_its_own_parameters():
    score = AdditiveScore(d_query=11, d_key=13, d_attn=17)
    query, key = torch.randn(2, 5, 11), torch.randn(2, 7, 13)
    assert_close(score(query, key), additive_score(query, key, score.w_query, score.w_key, score.v))
    shapes = {name: tuple(parameter.shape) for name, parameter in score.named_parameters()}
    assert shapes == {"w_query": (17, 11), "w_key": (17, 13), "v": (17,)}


def test_the_module_starts_xavier_uniform():
    score = AdditiveScore(d_query=101, d_key=103, d_attn=107)
    for weight, fan in ((score.w_query, 101 + 107), (score.w_key, 103 + 107), (score.v, 107 + 1)):
        bound = math.sqrt(6.0 / fan)
        assert 0.8 * bound < weight.abs().max() <= bound


# --- all of them ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("function", "shapes"),
    [
        (softmax, [(5, 7)]),
        (dot_product_score, [(5, 11), (7, 11)]),
        (additive_score, [(5, 11), (7, 13), (17, 11), (17, 13), (17,)]),
        (attend, [(5, 7), (7, 11)]),
        (lambda *xs: kernel_regression(*xs, bandwidth=0.5), [(5,), (7,), (7,)]),
    ],
    ids=["softmax", "dot_product_score", "additive_score", "attend", "kernel_regression"],
)
@pytest.mark.parametrize("dtype", DTYPES)
def test_arguments_and_random_state_stay_and_the_dtype_is_kept(function, shapes, dtype):
    inputs = [torch.randn(shape).to(dtype) for shape in shapes]
    with no_side_effects(*inputs):
        result = function(*inputs)
    for tensor in result if isinstance(result, tuple) else (result,):
        assert tensor.dtype == dtype


def test_an_error_says_which_axes_disagree_and_what_to_do(unchecked):
    def t(*shape):
        return torch.randn(shape)

    for call, words in (
        (lambda: dot_product_score(t(5, 11), t(7, 13)), r"query and key must agree in d_k, .*project"),
        (lambda: attend(t(5, 7), t(3, 11)), r"scores and value must agree in len_k, .*each key has"),
        (
            lambda: additive_score(t(5, 11), t(7, 13), t(17, 2), t(17, 13), t(17)),
            r"query and w_query must agree in d_q, .*w_query multiplies",
        ),
        (
            lambda: additive_score(t(5, 11), t(7, 13), t(17, 11), t(13, 17), t(17)),
            r"w_query and w_key must agree in d_attn, .*the hidden layer",
        ),
        (lambda: kernel_regression(t(2), t(3), t(2), 1.0), "one y for each known x"),
        (lambda: kernel_regression(t(2), t(3), t(3), math.nan), "bandwidth must be positive and .*width of the kernel"),
        (lambda: softmax(t(5, 7), 2), r"dim must be an axis of scores \(5, 7\), got 2; -1 is the last one"),
        (lambda: softmax(t(5, 0)), r"scores must have an entry along dim = -1, got \(5, 0\); pass some keys"),
    ):
        with pytest.raises(ValueError, match=words):
            call()
