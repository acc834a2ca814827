"""Mistakes in `tiled_attention`: what is returned, and how exact it is."""

from __future__ import annotations

import math

import torch

from course_lib.exercises._mistakes import Mistakes
from course_lib.exercises.efficiency.online_softmax_step_mistakes.parts import step_with
from course_lib.exercises.efficiency.tiled_attention_mistakes.parts import started, tiled_with

mistake = Mistakes()


@mistake
def never_divided(*args):
    """The output is not divided by the total. At the end of the loop it is a sum of exponentials times values; the
    weights have to sum to one."""
    return tiled_with(finish=lambda maximum, total, output: output)(*args)


@mistake
def divided_by_the_number_of_keys(query, key, value, block_size):
    """The output is divided by the number of keys. The weights sum to one if it is divided by the sum of the
    exponentials."""
    return tiled_with(finish=lambda maximum, total, output: output / key.shape[-2])(query, key, value, block_size)


@mistake
def divided_along_the_features(*args):
    """The total, one number per query, lines up with the last axis of the output, the features. It needs another axis
    at the end."""
    return tiled_with(finish=lambda maximum, total, output: output / total)(*args)


@mistake
def multiplied_by_the_total(*args):
    """The output is multiplied by the total instead of divided."""
    return tiled_with(finish=lambda maximum, total, output: output * total[..., None])(*args)


@mistake
def another_softmax(*args):
    """A softmax is applied to the output. The weights are a softmax over the keys; the output is an average of the
    values and may have any sign."""
    return tiled_with()(*args).softmax(-1)


@mistake
def state_returned(*args):
    """Maximum, total and output are returned. The exercise asks for the output alone, divided by the total."""
    return tiled_with(finish=lambda maximum, total, output: (maximum, total, output))(*args)


@mistake
def output_and_total(*args):
    """Output and total are returned as a pair. The exercise asks for the output alone, divided by the total."""
    return tiled_with(finish=lambda maximum, total, output: (output, total))(*args)


@mistake
def state_in_float32(query, key, value, block_size):
    """Maximum, total and output are float32, so float64 input loses half of its digits. Create them with the dtype of
    the query."""

    def step(maximum, total, output, scores, value):
        return step_with()(maximum, total, output, scores.float(), value.float())

    def start(query, value):
        return started(query.float(), value)

    return tiled_with(start=start, step=step)(query, key, value, block_size).to(query.dtype)


@mistake
def everything_in_float32(*args):
    """The numbers become float32 on the way, so float64 input loses half of its digits."""
    query, key, value, block_size = args
    return tiled_with()(query.float(), key.float(), value.float(), block_size).to(query.dtype)


@mistake
def result_in_float32(*args):
    """The numbers are right, but the dtype is not: the result is float32 for float64 input."""
    return tiled_with()(*args).float()


@mistake
def query_scaled_in_place(query, key, value, block_size):
    """The result is right, but the query is divided in place. It is an argument, and belongs to the caller."""
    query /= math.sqrt(query.shape[-1])
    return tiled_with(divisor=lambda query, key, value, b: 1.0)(query, key, value, block_size)


@mistake
def no_gradients(*args):
    """The values are right, but no gradient flows: `no_grad`, `detach` or `.data` cuts it off."""
    with torch.no_grad():
        return tiled_with()(*args)


@mistake
def one_state_for_the_batch(query, key, value, block_size):
    """Maximum and total have only the axis of the queries, or the output only two axes, so they do not fit a batch.
    Take the leading axes from the query."""

    def start(query, value):
        return (*started(query, value)[:2], query.new_zeros(query.shape[0], value.shape[1]))

    return tiled_with(start=start)(query, key, value, block_size)


@mistake
def output_as_wide_as_the_keys(*args):
    """The output starts with the shape of the query. It is as wide as the values, d_v."""

    def start(query, value):
        return (*started(query, value)[:2], torch.zeros_like(query))

    return tiled_with(start=start)(*args)
