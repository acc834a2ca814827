"""Mistakes in `MultiHeadAttention`: the constructor."""

from __future__ import annotations

from torch import nn

from course_lib.exercises._mistakes import Mistakes
from course_lib.exercises.multi_head.multi_head_attention import MultiHeadAttention
from course_lib.exercises.multi_head.multi_head_attention_mistakes.parts import Unchecked

mistake = Mistakes()


WIRING = "multi_head: One Linear for all heads"
FORMULA = "multi_head: The formula"


class _Made(MultiHeadAttention):
    """The module with parameters of other shapes or names; `forward` is not reached."""

    def __init__(self, d_model, num_heads):
        super().__init__(d_model, num_heads)
        self.make(d_model, num_heads)

    def make(self, d_model, num_heads):
        raise NotImplementedError


def _made(make):
    return type("Made", (_Made,), {"make": make})


@mistake(by=_made)
def no_biases(self, d_model, num_heads):
    """The projections lack their biases. `nn.Linear(d_model, d_model)` has one, and the contract's weights are
    loaded into it."""
    for name in ("q_proj", "k_proj", "v_proj", "out_proj"):
        setattr(self, name, nn.Linear(d_model, d_model, bias=False))


@mistake(by=_made)
def no_input_biases(self, d_model, num_heads):
    """`q_proj`, `k_proj` and `v_proj` lack their biases. `nn.Linear(d_model, d_model)` has one, and the contract's
    weights are loaded into it."""
    for name in ("q_proj", "k_proj", "v_proj"):
        setattr(self, name, nn.Linear(d_model, d_model, bias=False))


@mistake(look=WIRING, by=_made)
def linears_of_one_head(self, d_model, num_heads):
    """The projections give d_head features, enough for one head only. How many features do all heads together need?"""
    for name in ("q_proj", "k_proj", "v_proj"):
        setattr(self, name, nn.Linear(d_model, d_model // num_heads))


@mistake(look=WIRING, by=_made)
def linears_of_one_head_everywhere(self, d_model, num_heads):
    """All projections have the width of one head, including the last one. How many features do all heads together pass
    to it?"""
    for name in ("q_proj", "k_proj", "v_proj"):
        setattr(self, name, nn.Linear(d_model, d_model // num_heads))
    self.out_proj = nn.Linear(d_model // num_heads, d_model)


@mistake(look=WIRING, by=_made)
def linears_inside_a_head(self, d_model, num_heads):
    """The projections work on d_head features, within a slice that was cut first. A head should use all features of the
    input: first project, then split."""
    for name in ("q_proj", "k_proj", "v_proj"):
        setattr(self, name, nn.Linear(d_model // num_heads, d_model // num_heads))


@mistake(look=WIRING, by=_made)
def linears_inside_a_head_without_bias(self, d_model, num_heads):
    """The projections are d_head by d_head and without bias: they work within a slice that was cut first. A head should
    use all features of the input: first project, then split."""
    for name in ("q_proj", "k_proj", "v_proj"):
        setattr(self, name, nn.Linear(d_model // num_heads, d_model // num_heads, bias=False))


@mistake(look=WIRING, by=_made)
def heads_as_wide_as_the_model(self, d_model, num_heads):
    """Each head is d_model wide, so the projections are num_heads times too large. The heads share the features of the
    model."""
    for name in ("q_proj", "k_proj", "v_proj"):
        setattr(self, name, nn.Linear(d_model, d_model * num_heads))
    self.out_proj = nn.Linear(d_model * num_heads, d_model)


@mistake(look=WIRING, by=_made)
def a_linear_for_each_head(self, d_model, num_heads):
    """Every head has Linears of its own, in a ModuleList. That computes the same, but the contract stacks them: one
    Linear per projection, whose rows belong to one head after another."""
    for name in ("q_proj", "k_proj", "v_proj"):
        setattr(self, name, nn.ModuleList(nn.Linear(d_model, d_model // num_heads) for _ in range(num_heads)))


@mistake(look=WIRING, by=_made)
def one_layer_under_three_names(self, d_model, num_heads):
    """`q_proj`, `k_proj` and `v_proj` are one and the same layer. Queries, keys and values each need parameters of
    their own."""
    self.k_proj = self.v_proj = self.q_proj


@mistake(look=WIRING, by=_made)
def one_layer_under_four_names(self, d_model, num_heads):
    """The four names refer to the same layer (`[layer] * 4` repeats a reference, it does not copy). Each
    projection needs parameters of its own."""
    self.k_proj = self.v_proj = self.out_proj = self.q_proj


@mistake(look=FORMULA, by=_made)
def no_out_proj_made(self, d_model, num_heads):
    """There is no `out_proj`. Without it, the results of the heads are never mixed."""
    del self.out_proj


for _key, _names in (
    ("one_projection_for_three", "qkv_proj"),
    ("one_projection_named_in_proj", "in_proj"),
    ("one_projection_named_qkv", "qkv"),
):

    def _stack(self, d_model, num_heads, name=_names):
        del self.q_proj, self.k_proj, self.v_proj
        setattr(self, name, nn.Linear(d_model, 3 * d_model))

    mistake.named(
        _key,
        f"Queries, keys and values share one Linear, `{_names}`, three times as wide. That is the same computation, "
        f"but "
        f"the contract names three layers, so that weights can be loaded and the three inputs can differ.",
        look=WIRING,
    )(_made(_stack))


@mistake.built
def not_checked():
    """The constructor accepts a number of heads that does not divide d_model. It has to raise a ValueError immediately:
    an error in `forward` appears far from its cause."""
    return Unchecked


@mistake
class Assertion(Unchecked):
    """A number of heads that does not divide is detected by an `assert`. That raises an AssertionError, and is skipped
    under `python -O`. The contract asks for a ValueError."""

    def __init__(self, d_model, num_heads):
        if d_model % num_heads:
            raise AssertionError
        super().__init__(d_model, num_heads)


@mistake
class AssertionWithText(Unchecked):
    """The number of heads is checked by an `assert` with a message. That raises an AssertionError instead of a
    ValueError, and is skipped under `python -O`."""

    def __init__(self, d_model, num_heads):
        if d_model % num_heads:
            raise AssertionError("d_model must be divisible by num_heads")
        super().__init__(d_model, num_heads)


@mistake
class HeadsBeforeWidthInTheConstructor(Unchecked):
    """The constructor takes num_heads first. The contract has `d_model, num_heads`."""

    def __init__(self, num_heads, d_model):
        super().__init__(d_model, num_heads)
