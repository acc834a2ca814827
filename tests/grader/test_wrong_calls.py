"""Tips about exceptions of learners who know NumPy, or who pass something that a function does not take."""

import textwrap

import pytest
from solutions_by_others import Cell

from course_kit.checker.notebook import self_check
from course_kit.checker.report.html_report import html_of
from course_kit.checker.report.plain_report import text_of
from course_kit.exercises import find

HEAD = "import math\nimport numpy as np\nimport torch\n"


def tip(code: str) -> str:
    """What is said about the function or class in this code."""
    name = code.split(None, 2)[1].partition("(")[0]
    found = self_check(find(name), Cell("tip", "", name, 0, "", HEAD + textwrap.dedent(code)).load()).diagnosis
    return found.message if found else ""


def softmax_tip(lines: str) -> str:
    """What is said about a softmax that ends in these lines, after the exponentials were computed as `e`."""
    return tip(f"def softmax(scores, dim=-1):\n    e = torch.exp(scores - scores.amax(dim, keepdim=True))\n    {lines}")


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ("return e / np.sum(e, axis=dim, keepdims=True)", "`np.sum` was given a tensor. Use `torch.sum` instead"),
        (
            "return e - np.max(scores, axis=dim, keepdims=True)",
            "`np.max` was given a tensor. Use `torch.amax` instead",
        ),
        ("return np.exp(scores - e)", "`np.exp` was given a tensor. Use `torch.exp` instead"),
        (
            "x = scores.detach().numpy(); x = np.exp(x); return x / x.sum(axis=dim, keepdims=True)",
            "a NumPy array, but a tensor is expected. Use PyTorch's functions throughout, here `torch.exp`.",
        ),
        (
            "return torch.log_softmax(np.where(True, scores.detach(), 0.0), dim).exp()",
            "This line expects a tensor, and there is a NumPy array.",
        ),
        ("return np.zeros(scores.shape) + e", "This line expects a tensor, and there is a NumPy array."),
        (
            "return scores.copy()",
            "Tensors have no `copy`, which belongs to NumPy or to lists. PyTorch has `x.clone()`.",
        ),
        ("return e.astype(float)", "PyTorch has `x.to(dtype)`."),
        ("return scores.sofmax(dim)", "Tensors have no `sofmax`. Is `softmax` meant?"),
        ("return math.exp(scores)", "`math.exp` takes one; `torch.exp` computes every entry."),
        ("return torch.log_softmax(scores).exp()", 'This line calls `log_softmax` without "dim".'),
        ("return scores.transpose(0, 2, 1)", "`permute` takes all of them."),
        ("return torch.stack(scores, scores)", "`torch.stack([a, b], dim=…)`"),
        ("return torch.Exp(scores)", "`torch` has no `Exp`."),
        ("return torch.exp(torch.nn.ReLU(scores))", "`ReLU()(x)`"),
        ("return torch.cumsum(torch.sort(scores, dim), dim)", "`sort` along an axis returns two tensors"),
        (
            "out = torch.zeros_like(e)\n    out[..., [0]] = torch.cat([e, e], dim)",
            "The right side has the shape (4), but the part that is assigned has the shape (1).",
        ),
        ("return [row.exp() for row in scores]", "`torch.stack` joins them along a new axis"),
        ("return scores / torch.sqrt(4)", "For a number, there is `math.sqrt`."),
        # Where only gradients are wrong
        (
            "e /= e.sum(dim, keepdim=True)\n    return e",
            "The values are right, but the call fails when gradients are computed. A tensor is changed in place "
            "although the gradient still needs its old value. In place here: `e /= e.sum(dim, keepdim=True)`.",
        ),
        (
            "return e / e.sum(dim, keepdim=True).detach()",
            "No gradient passes `e.sum(dim, keepdim=True).detach()` in your code.",
        ),
    ],
)
def test_a_call_that_goes_wrong_is_answered_with_what_to_write(lines, message):
    text = softmax_tip(lines)
    assert message in text
    assert "signature" not in text


@pytest.mark.parametrize(
    ("code", "message"),
    [
        (
            "def softmax(scores):\n    return scores",
            "The exercise calls `softmax` with other arguments: compare",
        ),
        (
            """\
            class FeedForward(torch.nn.Module):
                def __init__(self, d_model, d_ff):
                    super().__init__()
                    self.linear1, self.linear2 = torch.nn.Linear(d_model, d_ff), torch.nn.Linear(d_ff, d_model)
                def forward(x):
                    return x
            """,
            "The first argument of every method is `self`.",
        ),
        (
            """\
            def scaled_dot_product_attention(query, key, value, mask=None):
                return query.masked_fill(mask == 0, 0.0), query
            """,
            "In this case `mask` is None.",
        ),
        ("def causal_mask(length):\n    return torch.tril(length)", "PyTorch's `tril` takes a tensor, but was given"),
    ],
)
def test_what_the_exercise_passes_is_named_where_it_explains_the_error(code, message):
    text = tip(code)
    assert message in text
    assert "`math." not in text  # where math has no such function


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
