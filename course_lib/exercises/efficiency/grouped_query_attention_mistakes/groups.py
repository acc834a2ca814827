"""Mistakes in `grouped_query_attention`: which query head uses which keys and values."""

from __future__ import annotations

from course_lib.exercises._mistakes import Mistakes
from course_lib.exercises.efficiency.grouped_query_attention_mistakes.parts import grouped, interleaved, repeated

mistake = Mistakes()


def _keys_and_values(match):
    """The same choice of heads for keys and values."""
    return grouped(keys=match, values=match)


@mistake
def interleaved_groups(query, key, value):
    """The query heads take turns: heads 0, G, 2G, … use head 0 of the keys. A group consists of *consecutive* query
    heads. `repeat` copies all heads one round after the other, and so does a new axis in front of the groups."""
    return _keys_and_values(interleaved)(query, key, value)


@mistake
def keys_interleaved(query, key, value):
    """The values are shared by consecutive query heads, but the keys are dealt out in turns. Both follow the same
    rule."""
    return grouped(keys=interleaved)(query, key, value)


@mistake
def values_interleaved(query, key, value):
    """The keys are shared by consecutive query heads, but the values are dealt out in turns, so weights are applied to
    values of another group."""
    return grouped(values=interleaved)(query, key, value)


@mistake
def group_size_for_number_of_groups(query, key, value):
    """The head number is divided by the number of groups. It has to be divided by the number of query heads *in* a
    group, which is another number unless H = G²."""
    groups = key.shape[1]
    return _keys_and_values(lambda x, heads: x[:, [head // groups for head in range(heads)]])(query, key, value)


@mistake
def remainder_of_the_group_size(query, key, value):
    """Query head h uses the head of the keys whose number is the remainder of h / (H / G). The heads of a group are
    consecutive: which operation gives consecutive numbers the same result?"""
    per_group = query.shape[1] // key.shape[1]
    return _keys_and_values(lambda x, heads: x[:, [head % per_group for head in range(heads)]])(query, key, value)


@mistake
def group_size_upside_down(query, key, value):
    """With fewer heads of keys than of queries, no heads of keys are left: each is repeated G / H times, rounded to 0.
    How many query heads share one?"""
    return _keys_and_values(lambda x, heads: x.repeat_interleave(x.shape[1] // heads, dim=1))(query, key, value)


@mistake
def groups_in_reverse(query, key, value):
    """The groups are in reverse order: the first query heads use the last head of the keys."""
    return _keys_and_values(lambda x, heads: repeated(x.flip(1), heads))(query, key, value)


@mistake
def groups_shifted_by_one(query, key, value):
    """The boundaries of the groups are shifted by one query head. The first group consists of the heads 0 … H/G − 1."""
    return _keys_and_values(lambda x, heads: repeated(x, heads).roll(-1, 1))(query, key, value)


@mistake
def first_head_for_all(query, key, value):
    """All query heads use the first head of keys and values. That is multi-query attention, with one group; here each
    group has a head of its own."""
    return _keys_and_values(lambda x, heads: x[:, :1].expand(-1, heads, -1, -1))(query, key, value)


@mistake
def last_head_for_all(query, key, value):
    """All query heads use the last head of keys and values. Each group has a head of its own."""
    return _keys_and_values(lambda x, heads: x[:, -1:].expand(-1, heads, -1, -1))(query, key, value)


@mistake
def averaged_over_the_heads(query, key, value):
    """Keys and values are averaged over their heads, and all query heads use the averages. The heads of keys stay
    separate: each serves its own group."""
    return _keys_and_values(lambda x, heads: x.mean(1, keepdim=True))(query, key, value)


@mistake
def keys_averaged(query, key, value):
    """The keys are averaged over their heads. Each group uses one head of the keys as it is."""
    return grouped(keys=lambda x, heads: x.mean(1, keepdim=True))(query, key, value)


@mistake
def values_averaged(query, key, value):
    """The values are averaged over their heads. Each group uses one head of the values as it is."""
    return grouped(values=lambda x, heads: x.mean(1, keepdim=True))(query, key, value)


@mistake
def summed_over_the_heads(query, key, value):
    """Keys and values are summed over their heads, and all query heads use the sums. The heads of keys stay separate:
    each serves its own group."""
    return _keys_and_values(lambda x, heads: x.sum(1, keepdim=True))(query, key, value)


@mistake
def queries_averaged(query, key, value):
    """The queries of a group are averaged, so there are only as many outputs as groups. Query heads share keys and
    values, but each has its own queries and its own output."""
    return grouped(keys=lambda x, heads: x, values=lambda x, heads: x)(
        query.unflatten(1, (key.shape[1], -1)).mean(2), key, value
    )


@mistake
def queries_averaged_and_repeated(query, key, value):
    """All query heads of a group have the same output, because their queries or their scores are averaged. Only keys
    and values are shared."""
    return repeated(queries_averaged(query, key, value), query.shape[1])


@mistake
def outputs_averaged(query, key, value):
    """The outputs are averaged over the query heads of each group. Each query head has an output of its own."""
    return grouped()(query, key, value).unflatten(1, (key.shape[1], -1)).mean(2)


@mistake
def outputs_summed(query, key, value):
    """The outputs are summed over the query heads of each group. Each query head has an output of its own."""
    return grouped()(query, key, value).unflatten(1, (key.shape[1], -1)).sum(2)


@mistake
def first_query_heads_only(query, key, value):
    """Only as many query heads are used as there are heads of keys. The output has H heads."""
    return grouped(keys=lambda x, heads: x, values=lambda x, heads: x)(query[:, : key.shape[1]], key, value)


@mistake
def first_query_head_of_each_group(query, key, value):
    """Only the first query head of each group is used. The output has H heads."""
    return grouped(keys=lambda x, heads: x, values=lambda x, heads: x)(
        query[:, :: query.shape[1] // key.shape[1]], key, value
    )


@mistake
def not_repeated(query, key, value):
    """Queries and keys, or weights and values, have different numbers of heads. An axis broadcasts only where its
    length is 1, so this works for one group and for as many groups as heads. Keys *and* values need a head for each
    query head, along axis 1, or the query heads an axis of groups."""
    return _keys_and_values(lambda x, heads: x)(query, key, value)


@mistake
def expanded_from_the_groups(query, key, value):
    """`expand` can only repeat an axis of length 1, and the axis of the groups is longer. Where would a new axis of
    length 1 have to be?"""
    return _keys_and_values(lambda x, heads: x.expand(-1, heads, -1, -1))(query, key, value)


@mistake
def expanded_with_the_batch_size(query, key, value):
    """`expand` was told to make H heads out of G. It can only repeat an axis of length 1: where would a new axis of
    that length have to be?"""
    return _keys_and_values(lambda x, heads: x.expand(len(x), heads, -1, -1))(query, key, value)


@mistake
def expanded_to_a_whole_shape(query, key, value):
    """The keys are expanded to a shape with H heads, but `expand` can only repeat an axis of length 1, and they have G.
    Where would a new axis of length 1 have to be?"""
    return _keys_and_values(lambda x, heads: x.expand(len(x), heads, *x.shape[2:]))(query, key, value)


@mistake
def repeated_as_often_as_there_are_heads(query, key, value):
    """Each head of the keys is repeated H times, so there are G · H of them. How many query heads share one?"""
    return _keys_and_values(lambda x, heads: x.repeat_interleave(heads, dim=1))(query, key, value)


@mistake
def repeated_as_often_as_there_are_groups(query, key, value):
    """Each head of the keys is repeated G times, so there are G² of them. How many query heads share one?"""
    return _keys_and_values(lambda x, heads: x.repeat_interleave(x.shape[1], dim=1))(query, key, value)


@mistake
def sequences_repeated(query, key, value):
    """The batch is repeated and not the heads. The axes are (B, G, L_k, d)."""
    return _keys_and_values(lambda x, heads: x.repeat_interleave(heads // x.shape[1], dim=0))(query, key, value)


@mistake
def repeated_without_an_axis(query, key, value):
    """`repeat_interleave` was not told which axis to repeat, so it flattens the tensor and repeats each number."""
    return _keys_and_values(lambda x, heads: x.repeat_interleave(heads // x.shape[1]))(query, key, value)


@mistake
def reshaped_to_more_heads(query, key, value):
    """The keys are reshaped to H heads. A reshape does not repeat anything: it only distributes the same numbers over
    other axes."""
    return _keys_and_values(lambda x, heads: x.reshape(x.shape[0], heads, -1, x.shape[-1]))(query, key, value)


@mistake
def heads_out_of_order(query, key, value):
    """The outputs are right, but the heads are in another order: groups and heads within a group have changed places
    before the two axes became one."""
    return grouped()(query, key, value).unflatten(1, (key.shape[1], -1)).transpose(1, 2).flatten(1, 2)


@mistake
def groups_left_apart(query, key, value):
    """The output is right, but its query heads are still split into groups and heads within a group. It should be `(B,
    H, L_q, d)`."""
    return grouped()(query, key, value).unflatten(1, (key.shape[1], -1))


@mistake
def keys_of_the_first_sequence(query, key, value):
    """The keys of the first sequence are used for the whole batch. Only query heads share keys."""
    return grouped()(query, key[:1].expand(key.shape), value)


@mistake
def keys_of_all_groups(query, key, value):
    """All heads of the keys are laid side by side along the positions, so that every query head attends to the keys of
    all groups. It should attend to those of its own group only."""
    return _keys_and_values(lambda x, heads: x.flatten(1, 2)[:, None])(query, key, value)
