"""Mistakes in `head_switched_off`: which head is switched off."""

from __future__ import annotations

from course_lib.exercises._mistakes import Mistakes
from course_lib.exercises.inspection.head_switched_off_mistakes.parts import (
    features_zeroed,
    output_with,
    without,
    zeroed,
)

mistake = Mistakes()


@mistake
def the_head_alone(heads, weight, bias, off):
    """This is the contribution of head `off`, with all other heads switched off: the opposite of what is wanted."""
    return output_with(lambda heads, off: heads - without(heads, off))(heads, weight, bias, off)


@mistake
def nothing_off(heads, weight, bias, off):
    """This is the full output: no head has been switched off."""
    return output_with(lambda heads, off: heads)(heads, weight, bias, off)


@mistake
def counted_from_one(heads, weight, bias, off):
    """Head `off − 1` is switched off. Heads are counted from 0."""
    return output_with(lambda heads, off: without(heads, off - 1))(heads, weight, bias, off)


@mistake
def all_from_there_on(heads, weight, bias, off):
    """Head `off` and all heads after it are switched off. Only head `off` should be."""
    return output_with(lambda heads, off: zeroed(heads, (slice(None), slice(off, None))))(heads, weight, bias, off)


@mistake
def all_up_to_there(heads, weight, bias, off):
    """Head `off` and all heads before it are switched off. Only head `off` should be."""
    return output_with(lambda heads, off: zeroed(heads, (slice(None), slice(off + 1))))(heads, weight, bias, off)


@mistake
def all_off(heads, weight, bias, off):
    """All heads are switched off, so that only the bias is left. Only head `off` should be."""
    return output_with(lambda heads, off: heads * 0)(heads, weight, bias, off)


@mistake
def always_the_first(heads, weight, bias, off):
    """Head 0 is switched off, whatever `off` is."""
    return output_with(lambda heads, off: without(heads, 0))(heads, weight, bias, off)


@mistake
def always_the_last(heads, weight, bias, off):
    """The last head is switched off, whatever `off` is."""
    return output_with(lambda heads, off: without(heads, -1))(heads, weight, bias, off)


@mistake
def counted_from_the_end(heads, weight, bias, off):
    """The heads are counted from the end. Head 0 is the first one."""
    return output_with(lambda heads, off: without(heads, heads.shape[1] - 1 - off))(heads, weight, bias, off)


@mistake
def negative_index(heads, weight, bias, off):
    """Head `−off` is switched off, which counts from the end. Heads are counted from 0 at the front."""
    return output_with(lambda heads, off: without(heads, -off))(heads, weight, bias, off)


@mistake
def next_head(heads, weight, bias, off):
    """The head after head `off` is switched off, or the first one if there is none. Heads are counted from 0."""
    return output_with(lambda heads, off: without(heads, (off + 1) % heads.shape[1]))(heads, weight, bias, off)


@mistake
def two_heads(heads, weight, bias, off):
    """Two heads are switched off, head `off` and the one after it: the slice ends one too late."""
    return output_with(lambda heads, off: zeroed(heads, (slice(None), slice(off, off + 2))))(heads, weight, bias, off)


@mistake
def all_before(heads, weight, bias, off):
    """All heads *before* head `off` are switched off, and head `off` itself is not."""
    return output_with(lambda heads, off: zeroed(heads, (slice(None), slice(off))))(heads, weight, bias, off)


@mistake
def all_after(heads, weight, bias, off):
    """All heads *after* head `off` are switched off, and head `off` itself is not."""
    return output_with(lambda heads, off: zeroed(heads, (slice(None), slice(off + 1, None))))(heads, weight, bias, off)


@mistake
def only_in_the_first_sequence(heads, weight, bias, off):
    """The head is switched off in the first sequence of the batch only."""
    return output_with(lambda heads, off: zeroed(heads, (0, off)))(heads, weight, bias, off)


@mistake
def only_at_the_first_position(heads, weight, bias, off):
    """The head is switched off at the first position only. It should contribute nothing at any position."""
    return output_with(lambda heads, off: zeroed(heads, (slice(None), off, 0)))(heads, weight, bias, off)


@mistake
def only_at_the_last_position(heads, weight, bias, off):
    """The head is switched off at the last position only. It should contribute nothing at any position."""
    return output_with(lambda heads, off: zeroed(heads, (slice(None), off, -1)))(heads, weight, bias, off)


@mistake
def only_its_first_feature(heads, weight, bias, off):
    """Only the first feature of the head is set to zero. All of its features have to be."""
    return features_zeroed(lambda off, num_heads, d_head: off * d_head)(heads, weight, bias, off)
