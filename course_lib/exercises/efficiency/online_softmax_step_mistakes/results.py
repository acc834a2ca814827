"""Mistakes in `online_softmax_step`: what is returned, and how exact it is."""

from __future__ import annotations

import math

import torch

from course_lib.exercises._mistakes import Mistakes
from course_lib.exercises.efficiency.online_softmax_step_mistakes.parts import step_with

mistake = Mistakes()


@mistake
def axis_left_over(*args):
    """Maximum and total are returned with a last axis of length one. They have the shape `(..., L_q)`."""
    return step_with(finish=lambda maximum, total, output: (maximum[..., None], total[..., None], output))(*args)


@mistake
def output_first(*args):
    """The results are in the wrong order. The contract asks for `(maximum, total, output)`."""
    return step_with(finish=lambda maximum, total, output: (output, maximum, total))(*args)


@mistake
def total_first(*args):
    """Maximum and total are exchanged. The contract asks for `(maximum, total, output)`."""
    return step_with(finish=lambda maximum, total, output: (total, maximum, output))(*args)


@mistake
def only_the_output(*args):
    """Only the output is returned. The next block also needs the maximum and the total."""
    return step_with(finish=lambda maximum, total, output: output)(*args)


@mistake
def logarithm_of_the_total(*args):
    """The logarithm of the total is returned. That is a useful number, but the contract asks for the sum itself."""
    return step_with(finish=lambda maximum, total, output: (maximum, total.log(), output))(*args)


@mistake
def small_number_added(*args):
    """A small number is added to the total. It is not needed, because the total is never below 1, and it changes the
    result."""
    return step_with(finish=lambda maximum, total, output: (maximum, total + 1e-6, output))(*args)


@mistake
def float32_inside(*args):
    """Somewhere inside, the numbers become float32, and float64 input loses half of its digits."""
    return tuple(x.to(args[0].dtype) for x in step_with()(*(arg.float() for arg in args)))


@mistake
def large_finite_start(maximum, total, output, scores, value):
    """A maximum of −∞ is replaced by −100. Scores may be lower than that, and then their exponentials vanish."""
    return step_with()(maximum.clamp(min=-100.0), total, output, scores, value)


@mistake
def infinity_minus_infinity(*args):
    """Before the first block, −∞ is subtracted from −∞ somewhere, which gives `nan`. Subtract the new maximum, which is
    finite, from the old one."""
    return step_with(correction=lambda old, new, scores: (old - new + (old - old)).exp())(*args)


@mistake
def base_two(*args):
    """The exponentials have base 2. The softmax has base e."""
    return step_with(
        correction=lambda old, new, scores: torch.exp2(old - new),
        weights=lambda scores, new, old: torch.exp2(scores - new[..., None]),
    )(*args)


@mistake
def zero_for_the_first_maximum(maximum, total, output, scores, value):
    """The maximum is never below 0, as if the first block came after a key with score 0. If all scores are far below,
    their exponentials vanish."""
    return step_with(larger=lambda maximum, scores: torch.maximum(maximum.clamp(min=0.0), scores.amax(-1)))(
        maximum, total, output, scores, value
    )


@mistake
def scores_scaled_again(maximum, total, output, scores, value):
    """The scores are divided by a root. They arrive as the softmax needs them; any scaling has been done before."""
    return step_with()(maximum, total, output, scores / math.sqrt(value.shape[-1]), value)
