"""Figures: what the heat map of an attention shows, and what it refuses."""

import matplotlib as mpl
import matplotlib.pyplot as plt
import pytest
import torch

from course_lib.viz import PALETTE, WEIGHTS, attention_map, use_style


@pytest.fixture(autouse=True)
def drawing():
    with mpl.rc_context({"backend": "Agg"}):
        use_style()
        yield
        plt.close("all")


def weights_of(*shape, dtype=torch.float32):
    return torch.randn(shape).softmax(-1).to(dtype)


def test_a_cell_has_the_colour_of_its_weight_on_the_scale_from_0_to_1():
    ax = attention_map(torch.tensor([[0.25, 0.75, 0.0]]))
    (mesh,) = ax.collections
    assert mesh.get_clim() == (0.0, 1.0)
    assert mesh.get_array().tolist() == [[0.25, 0.75, 0.0]]
    assert mesh.get_cmap() is WEIGHTS


def test_queries_are_rows_and_keys_are_columns():
    ax = attention_map(weights_of(2, 3), ["a", "b"], ["x", "y", "z"], title="who looks where")
    assert [t.get_text() for t in ax.get_yticklabels()] == ["a", "b"]
    assert [t.get_text() for t in ax.get_xticklabels()] == ["x", "y", "z"]
    assert ax.yaxis_inverted()  # the first query on top
    assert (ax.get_ylabel(), ax.get_xlabel()) == ("query", "key")
    assert ax.xaxis.label.get_color() == PALETTE["key"]
    assert ax.get_title("left") == "who looks where"


@pytest.mark.parametrize(("shape", "printed"), [((8, 8), 64), ((2, 8), 16), ((9, 3), 0), ((3, 9), 0)])
def test_values_are_printed_up_to_eight_by_eight(shape, printed):
    assert len(attention_map(weights_of(*shape)).texts) == printed


def test_it_draws_where_it_is_told_to():
    _, (left, right) = plt.subplots(1, 2)
    assert attention_map(weights_of(2, 3), ax=right) is right
    assert not left.collections


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_every_dtype_can_be_drawn(dtype):
    weights = weights_of(3, 5, dtype=dtype).requires_grad_()
    assert attention_map(weights).collections[0].get_array().shape == (3, 5)


@pytest.mark.parametrize(
    ("weights", "labels", "message"),
    [
        (torch.ones(2, 3, 3), {}, r"matrix \(L_q, L_k\).*got \(2, 3, 3\).*weights\[batch, head\]"),
        (torch.ones(0, 3), {}, r"at least one entry, got \(0, 3\)"),
        (torch.tensor([[-2.0, 3.0]]), {}, r"\[0, 1\], got -2.000 … 3.000; are these scores"),
        (torch.tensor([[float("nan"), 0.5]]), {}, r"\[0, 1\], got nan"),
        (torch.ones(1, 2), {"keys": ["a"]}, r"keys must have a label for each of the 2, got 1"),
        (torch.ones(1, 2), {"queries": ["a", "b"]}, r"queries must have a label for each of the 1, got 2"),
    ],
)
def test_what_are_no_weights_is_refused(weights, labels, message):
    with pytest.raises(ValueError, match=message):
        attention_map(weights, **labels)
