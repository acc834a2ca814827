"""Mistakes in `attend`: what is returned, in which dtype, and what is changed."""

from __future__ import annotations

from course_lib.exercises._mistakes import Mistakes
from course_lib.exercises.attention.attend import attend
from course_lib.exercises.attention.attend_mistakes.parts import attend_with
from course_lib.exercises.attention.softmax import softmax
from course_lib.exercises.attention.steps_of_softmax import largest

mistake = Mistakes()


@mistake
def outputs_swapped(scores, value):
    """Weights and output are returned in the wrong order: the contract says `(output, weights)`."""
    return attend(scores, value)[::-1]


@mistake
def only_output(scores, value):
    """Only the output is returned. The contract asks for `(output, weights)`."""
    return attend(scores, value)[0]


@mistake
def only_weights(scores, value):
    """Only the weights are returned. The contract asks for `(output, weights)`."""
    return attend(scores, value)[1]


@mistake
def scores_returned(scores, value):
    """The second result is the unchanged scores; it should be the weights."""
    return (attend(scores, value)[0], scores)


@mistake
def scores_average(scores, value):
    """The weights are right, but the values are multiplied by the scores instead."""
    return (scores @ value, softmax(scores))


@mistake
def softmax_after_the_average(scores, value):
    """The softmax is applied to the output. It belongs before the average: it turns scores into weights."""
    return (softmax(scores @ value), softmax(scores))


@mistake
def softmax_at_the_end(scores, value):
    """The values are multiplied by the scores, and the softmax comes last. It belongs before the average: it turns
    scores into weights."""
    return (softmax(scores @ value), scores)


@mistake
def output_softmaxed(scores, value):
    """The finished output goes through a softmax once more. An average of values needs none."""
    return attend_with(average=lambda w, v: softmax(w @ v))(scores, value)


@mistake
def values_softmaxed(scores, value):
    """The values go through a softmax as well. Only scores do; values are averaged as they are."""
    return attend_with(average=lambda w, v: w @ softmax(v))(scores, value)


@mistake
def squeezed(scores, value):
    """`squeeze()` removes *every* axis of length 1: with a single query, or values of one feature, the output loses an
    axis that it should have."""
    return attend_with(average=lambda w, v: (w @ v).squeeze())(scores, value)


@mistake
def weights_returned_turned(scores, value):
    """The output is right, but the weights are returned with their axes exchanged. Rows belong to queries, columns to
    keys."""
    return (attend(scores, value)[0], attend(scores, value)[1].transpose(-2, -1))


@mistake
def sum_returned(scores, value):
    """The values are summed with the exponentials as weights, which do not sum to one; only the returned weights are
    divided by their sum."""
    return ((scores - largest(scores, -1)).exp() @ value, softmax(scores))


@mistake
def weights_detached(scores, value):
    """Output and weights are right, but no gradient reaches the scores through the weights, so a model could not learn
    where to attend."""
    return attend(scores.detach(), value)


@mistake
def returned_weights_detached(scores, value):
    """The returned weights are detached from the graph. A loss may depend on them as well as on the output."""
    return (attend(scores, value)[0], attend(scores, value)[1].detach())


@mistake
def float32_inside(scores, value):
    """Somewhere inside, the numbers become float32, so float64 input loses half of its digits."""
    return tuple(x.to(value.dtype) for x in attend(scores.float(), value.float()))


@mistake
def float32_weights(scores, value):
    """The weights are float32 whatever the input, so they cannot be combined with float64 values."""
    return attend_with(lambda s: softmax(s.float()))(scores, value)


@mistake
def caller_changed(scores, value):
    """The results are right, but the caller's scores are changed: `-=`, or a method whose name ends in `_`, works in
    place."""
    scores -= scores.amax(-1, keepdim=True)
    return attend(scores, value)
