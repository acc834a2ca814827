"""The mistakes in `multi_head_parameter_count`."""

from __future__ import annotations

from course_lib.exercises._mistakes import Mistakes

mistake = Mistakes()


def _count(weights=lambda d, h: 4 * d * d, biases=lambda d, h: 4 * d):
    return lambda d_model, num_heads, bias=True: (
        weights(d_model, num_heads) + (biases(d_model, num_heads) if bias else 0)
    )


@mistake
def biases_forgotten(d_model, num_heads, bias=True):
    """The biases are never counted. A Linear has one number for each feature that comes out, unless `bias` is False."""
    return _count(biases=lambda d, h: 0)(d_model, num_heads, bias)


@mistake
def biases_always(d_model, num_heads, bias=True):
    """The biases are counted even where `bias` is False."""
    return 4 * (d_model * d_model + d_model)


@mistake
def bias_turned_round(d_model, num_heads, bias=True):
    """The biases are counted exactly when there are none."""
    return 4 * d_model * d_model + (0 if bias else 4 * d_model)


@mistake
def three_projections(d_model, num_heads, bias=True):
    """Three projections are counted, but one is missing: what happens to the heads' results after they are merged?"""
    return _count(lambda d, h: 3 * d * d, lambda d, h: 3 * d)(d_model, num_heads, bias)


@mistake
def three_projections_with_bias_turned_off(d_model, num_heads, bias=True):
    """One projection is missing, and so are the biases: what follows after the heads are merged?"""
    return _count(lambda d, h: 3 * d * d, lambda d, h: 0)(d_model, num_heads, bias)


@mistake
def one_projection(d_model, num_heads, bias=True):
    """One projection is counted. Which others does the module have?"""
    return _count(lambda d, h: d * d, lambda d, h: d)(d_model, num_heads, bias)


@mistake
def times_heads(d_model, num_heads, bias=True):
    """The number grows with the number of heads. The heads share the features: how wide is one head's projection?"""
    return _count(lambda d, h: 4 * h * d * d, lambda d, h: 4 * h * d)(d_model, num_heads, bias)


@mistake
def inputs_times_heads(d_model, num_heads, bias=True):
    """The projections of the inputs are counted for every head at full width. More heads make narrower heads."""
    return _count(lambda d, h: 3 * h * d * d + d * d, lambda d, h: 3 * h * d + d)(d_model, num_heads, bias)


@mistake
def matrices_times_heads(d_model, num_heads, bias=True):
    """The biases are right, but the matrices are counted once per head, at full width. How many of the d_model features
    does the projection of one head give?"""
    return _count(lambda d, h: 4 * h * d * d)(d_model, num_heads, bias)


@mistake
def matrices_times_heads_biases_forgotten(d_model, num_heads, bias=True):
    """Two things: the matrices are counted once per head, at full width, while the heads share the features; and the
    biases are never counted."""
    return _count(lambda d, h: 4 * h * d * d, lambda d, h: 0)(d_model, num_heads, bias)


@mistake
def input_matrices_times_heads(d_model, num_heads, bias=True):
    """The biases and the output projection are right, but the matrices of the three other projections are counted once
    per head, at full width. How many of the d_model features does the projection of one head give?"""
    return _count(lambda d, h: 3 * h * d * d + d * d)(d_model, num_heads, bias)


@mistake
def input_matrices_times_heads_biases_forgotten(d_model, num_heads, bias=True):
    """Two things: the matrices of the inputs' projections are counted once per head, at full width, while more heads
    means narrower heads; and the biases are never counted."""
    return _count(lambda d, h: 3 * h * d * d + d * d, lambda d, h: 0)(d_model, num_heads, bias)


@mistake
def input_matrices_times_heads_without_output(d_model, num_heads, bias=True):
    """Two things: the matrices of the inputs' projections are counted once per head, at full width, while the heads
    share the features; and one layer is missing, the one after the heads are merged."""
    return _count(lambda d, h: 3 * h * d * d, lambda d, h: 3 * d)(d_model, num_heads, bias)


@mistake
def inputs_times_heads_without_output(d_model, num_heads, bias=True):
    """Two things: the projections of the inputs are counted for every head at full width, while more heads means
    narrower heads; and one layer is missing, the one after the heads are merged."""
    return _count(lambda d, h: 3 * h * d * d, lambda d, h: 3 * h * d)(d_model, num_heads, bias)


@mistake
def heads_as_wide_as_the_model(d_model, num_heads, bias=True):
    """Each head is counted as wide as the model, and the output projection as wide as all of them together. The heads
    share the d_model features."""
    return _count(lambda d, h: 4 * h * d * d, lambda d, h: 3 * h * d + d)(d_model, num_heads, bias)


@mistake
def one_head_only(d_model, num_heads, bias=True):
    """Only one head is counted. How many projections of that width are there?"""
    return _count(lambda d, h: 4 * d * (d // h), lambda d, h: 4 * (d // h))(d_model, num_heads, bias)


@mistake
def inputs_of_one_head(d_model, num_heads, bias=True):
    """The projections of the inputs are counted for one head, the output projection for all."""
    return _count(lambda d, h: 3 * d * (d // h) + d * d, lambda d, h: 3 * (d // h) + d)(d_model, num_heads, bias)


@mistake
def one_head_inputs_and_output(d_model, num_heads, bias=True):
    """Only one head is counted, and its part of the output projection. How many heads are there?"""
    return _count(lambda d, h: 4 * d * (d // h), lambda d, h: 3 * (d // h) + d)(d_model, num_heads, bias)


@mistake
def slices_projected(d_model, num_heads, bias=True):
    """Each head's projection is counted as d_head by d_head. It takes all d_model features of the input and produces
    d_head."""
    return _count(lambda d, h: 3 * h * (d // h) ** 2 + d * d, lambda d, h: 4 * d)(d_model, num_heads, bias)


@mistake
def slices_projected_everywhere(d_model, num_heads, bias=True):
    """All projections are counted as d_head by d_head, once per head. A head uses all d_model features of the input,
    not just a slice."""
    return _count(lambda d, h: 4 * h * (d // h) ** 2, lambda d, h: 4 * d)(d_model, num_heads, bias)


@mistake
def square_of_a_head(d_model, num_heads, bias=True):
    """The matrices are counted as d_head by d_head, for one head. The layers are `nn.Linear(d_model, d_model)`."""
    return _count(lambda d, h: 4 * (d // h) ** 2, lambda d, h: 4 * (d // h))(d_model, num_heads, bias)


@mistake
def one_bias_number_each(d_model, num_heads, bias=True):
    """A bias is counted as one number per layer. It is one number for each feature that comes out."""
    return _count(biases=lambda d, h: 4)(d_model, num_heads, bias)


@mistake
def one_bias_for_all(d_model, num_heads, bias=True):
    """The matrices are counted four times, but the bias once. Which of the four layers have one?"""
    return _count(biases=lambda d, h: d)(d_model, num_heads, bias)


@mistake
def three_biases(d_model, num_heads, bias=True):
    """Three biases are counted for four layers."""
    return _count(biases=lambda d, h: 3 * d)(d_model, num_heads, bias)


@mistake
def biases_of_one_head(d_model, num_heads, bias=True):
    """The biases are counted for one head. They are as wide as the layer, whatever the number of heads."""
    return _count(biases=lambda d, h: 4 * (d // h))(d_model, num_heads, bias)


@mistake
def input_biases_of_one_head(d_model, num_heads, bias=True):
    """The biases of the inputs are counted for one head. They are as wide as the layer, whatever the number of
    heads."""
    return _count(biases=lambda d, h: 3 * (d // h) + d)(d_model, num_heads, bias)


@mistake
def biases_times_heads(d_model, num_heads, bias=True):
    """The biases are counted once per head, at full width. All heads of a projection share one bias of d_model
    numbers."""
    return _count(biases=lambda d, h: 4 * d * h)(d_model, num_heads, bias)


@mistake
def input_biases_times_heads(d_model, num_heads, bias=True):
    """The biases of the inputs are counted once per head, at full width. The heads share them as they share the
    matrix."""
    return _count(biases=lambda d, h: 3 * d * h + d)(d_model, num_heads, bias)


@mistake
def bias_for_every_head(d_model, num_heads, bias=True):
    """The biases are counted as one number per head. It is one number for each feature that comes out."""
    return _count(biases=lambda d, h: 4 * h)(d_model, num_heads, bias)


@mistake
def bias_squared(d_model, num_heads, bias=True):
    """The biases are counted as large as the matrices. A bias is a vector."""
    return _count(biases=lambda d, h: 4 * d * d)(d_model, num_heads, bias)


@mistake
def width_not_squared(d_model, num_heads, bias=True):
    """A matrix from d_model to d_model features has d_model² entries."""
    return _count(lambda d, h: 4 * d)(d_model, num_heads, bias)


@mistake
def float_result(d_model, num_heads, bias=True):
    """The number is right, but its type is not: a count is an int. `/` and `**` with a fraction give floats, and for
    wide models those are not exact."""
    return 4.0 * d_model * d_model + (4 * d_model if bias else 0)


@mistake
def through_floats(d_model, num_heads, bias=True):
    """The number was converted to a float, which loses the last digits for wide models. `/`, `sqrt` and powers of
    floats are not exact; `//` and `*` of ints are."""
    return int(4.0 * d_model * d_model) + (4 * d_model if bias else 0)


@mistake
def default_without_bias(d_model, num_heads, bias=False):
    """A call without `bias` counts no biases. In the contract the default is True."""
    return 4 * d_model * d_model + (4 * d_model if bias else 0)


@mistake
def output_of_one_head(d_model, num_heads, bias=True):
    """The output projection is counted as if its input had the width of one head. It takes the features of all
    heads, side by side."""
    return _count(lambda d, h: 3 * d * d + d // h * d)(d_model, num_heads, bias)


@mistake
def two_biases_a_layer(d_model, num_heads, bias=True):
    """Each layer is given two biases, or the four of them are counted twice."""
    return _count(biases=lambda d, h: 8 * d)(d_model, num_heads, bias)
