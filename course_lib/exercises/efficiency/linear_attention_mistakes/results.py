"""Mistakes in `linear_attention`: shapes, dtypes and what is returned."""

from __future__ import annotations

import torch

from course_lib.exercises._mistakes import Mistakes
from course_lib.exercises.efficiency.linear_attention import linear_attention
from course_lib.exercises.efficiency.linear_attention_mistakes.parts import linear_with, positive

mistake = Mistakes()


@mistake
def outputs_stacked_in_front(query, key, value):
    """The outputs of the positions are stacked along a new first axis. With a batch, the positions belong before the
    last axis."""
    return linear_attention(query, key, value).movedim(-2, 0)


@mistake
def outputs_stacked_at_axis_one(query, key, value):
    """The outputs of the positions are stacked along axis 1, counted from the left, which is right for exactly one
    batch dimension. Which axis is it, counted from the right?"""
    return torch.stack(linear_attention(query, key, value).unbind(-2), dim=1)


@mistake
def outputs_stacked_at_the_end(query, key, value):
    """The outputs of the positions are stacked along a new last axis. It should be `(..., L, d_v)`."""
    return linear_attention(query, key, value).mT


@mistake
def outputs_side_by_side(query, key, value):
    """The outputs are concatenated along the features. They need an axis of their own, that of the positions."""
    return linear_attention(query, key, value).flatten(-2)


@mistake
def list_of_outputs(query, key, value):
    """A list with the output of each position is returned. The contract asks for one tensor."""
    return list(linear_attention(query, key, value).unbind(-2))


@mistake
def only_the_last_output(query, key, value):
    """Only the output of the last position is returned. Every position has one."""
    return linear_attention(query, key, value)[..., -1, :]


@mistake
def state_returned_too(query, key, value):
    """The state is returned as well. The contract asks for the output alone."""
    return linear_attention(query, key, value), positive(key).transpose(-2, -1) @ value


@mistake
def positions_at_axis_one(query, key, value):
    """The loop runs over axis 1, counted from the left, which is that of the positions for exactly one batch
    dimension."""
    return linear_attention(*(x.movedim(1, -2) for x in (query, key, value))).movedim(-2, 1)


@mistake
def as_many_positions_as_the_first_axis(query, key, value):
    """The number of positions is read from the first axis, which is the batch where there is one."""
    count = query.shape[0]
    return linear_attention(*(x[..., :count, :] for x in (query, key, value)))


@mistake
def transposed_by_t(query, key, value):
    """`.T` reverses all axes, the batch included. Exchange only the last two."""
    return linear_with(compare=lambda q, k: q @ k.permute(*range(k.dim() - 1, -1, -1)))(query, key, value)


@mistake
def not_transposed(query, key, value):
    """Queries and keys are multiplied without a transpose, so the sum would run over the positions of one and the
    features of the other."""
    return linear_with(compare=lambda q, k: q @ k)(query, key, value)


@mistake
def features_not_summed(query, key, value):
    """Query and state are multiplied feature by feature, and the products are not summed. The contract has dot
    products."""
    query, key = positive(query), positive(key)
    state = (key[..., :, None] * value[..., None, :]).cumsum(-3)
    return query[..., None] * state / (query * key.cumsum(-2)).sum(-1)[..., None, None]


@mistake
def values_entry_by_entry(query, key, value):
    """Keys and values are multiplied entry by entry, which fits only if they are equally wide. The state is an outer
    product: every feature of the key with every feature of the value."""
    query, key = positive(query), positive(key)
    return query * (key * value).cumsum(-2) / (query * key.cumsum(-2)).sum(-1, keepdim=True)


@mistake
def float32_inside(query, key, value):
    """Somewhere inside, the numbers become float32, and float64 input loses half of its digits. A state that is created
    with `torch.zeros` needs the dtype of the inputs."""
    return linear_attention(query.float(), key.float(), value.float()).to(query.dtype)


@mistake
def float32_state(query, key, value):
    """The output is float32 whatever comes in. A tensor that you create needs the dtype of the inputs."""
    return linear_attention(query, key, value).float()


@mistake
def query_overwritten(query, key, value):
    """The feature map is computed in place and changes the caller's tensors. `inplace=True`, `+=` and methods whose
    name ends in `_` do that."""
    result = linear_attention(query, key, value)
    with torch.no_grad():
        query.copy_(positive(query))
        key.copy_(positive(key))
    return result
