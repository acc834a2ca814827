"""Mistakes in `tiled_attention`: how the blocks are put together."""

from __future__ import annotations

from course_lib.exercises._mistakes import Mistakes
from course_lib.exercises.efficiency.online_softmax_step_mistakes.parts import step_with
from course_lib.exercises.efficiency.tiled_attention_mistakes.parts import by_softmax_of_blocks, tiled_with

mistake = Mistakes()


@mistake
def softmax_of_each_block_averaged(*args):
    """Each block has a softmax of its own, and the outputs of the blocks are averaged. A block with large scores has to
    count for more than one with small scores."""
    return by_softmax_of_blocks(lambda outputs, lengths, len_k: sum(outputs) / len(outputs))(*args)


@mistake
def softmax_of_each_block_summed(*args):
    """Each block has a softmax of its own, and the outputs of the blocks are added up, so all weights together sum to
    the number of blocks."""
    return by_softmax_of_blocks(lambda outputs, lengths, len_k: sum(outputs))(*args)


@mistake
def softmax_of_each_block_by_length(*args):
    """Each block has a softmax of its own, and counts in proportion to its number of keys. It should count in
    proportion to the sum of its exponentials."""
    return by_softmax_of_blocks(
        lambda outputs, lengths, len_k: sum(n * output for n, output in zip(lengths, outputs, strict=True)) / len_k
    )(*args)


@mistake
def softmax_of_the_last_block(*args):
    """Only the last block is left in the output: each block overwrites the results of the one before."""
    return by_softmax_of_blocks(lambda outputs, lengths, len_k: outputs[-1])(*args)


@mistake
def nothing_rescaled(*args):
    """Total and output so far keep their size when a later block has a larger maximum, although their exponentials were
    computed with the old one. Both need the same factor."""
    return tiled_with(
        step=step_with(rescaled_total=lambda total, factor: total, rescaled_output=lambda output, factor: output)
    )(*args)


@mistake
def output_not_rescaled(*args):
    """The total is rescaled when a later block has a larger maximum, but the output so far is not. Both are sums of
    exponentials with the old maximum in them."""
    return tiled_with(step=step_with(rescaled_output=lambda output, factor: output))(*args)


@mistake
def total_not_rescaled(*args):
    """The output is rescaled when a later block has a larger maximum, but the total so far is not. Both are sums of
    exponentials with the old maximum in them."""
    return tiled_with(step=step_with(rescaled_total=lambda total, factor: total))(*args)


@mistake
def maximum_of_the_block_only(*args):
    """Each block subtracts its own largest score, and the sums so far are not adapted to it. All terms have to refer to
    one maximum, that of all keys so far."""
    return tiled_with(
        step=step_with(
            larger=lambda maximum, scores: scores.amax(-1),
            rescaled_total=lambda total, factor: total,
            rescaled_output=lambda output, factor: output,
        )
    )(*args)


@mistake
def maximum_of_the_block_kept(*args):
    """The maximum that is kept is the largest score of the newest block. If an earlier key had a larger score, the
    factor of the old sums grows without bound: it overflows."""
    return tiled_with(step=step_with(larger=lambda maximum, scores: scores.amax(-1)))(*args)


@mistake
def no_maximum(*args):
    """No maximum is subtracted before the exponential. That is right for small scores, and overflows for large ones."""
    return tiled_with(
        step=step_with(
            correction=lambda old, new, scores: (new - new).exp(), weights=lambda scores, new, old: scores.exp()
        )
    )(*args)


@mistake
def divided_in_the_loop(*args):
    """The output is divided by the total after every block, and the next block continues with the quotient. The
    division comes once, after the last block."""

    def step(*state):
        maximum, total, output = step_with()(*state)
        return maximum, total, output / total[..., None]

    return tiled_with(step=step, finish=lambda maximum, total, output: output)(*args)


@mistake
def divided_in_the_loop_and_after_it(*args):
    """The output is divided by the total after every block, and again at the end. The division comes once, after the
    last block."""

    def step(*state):
        maximum, total, output = step_with()(*state)
        return maximum, total, output / total[..., None]

    return tiled_with(step=step)(*args)


@mistake
def infinity_minus_infinity(*args):
    """At the first block, −∞ is subtracted from −∞, which gives `nan`. Subtract the new maximum, which is finite, from
    the old one."""
    return tiled_with(step=step_with(correction=lambda old, new, scores: (old - new + (old - old)).exp()))(*args)


@mistake
def starts_from_zero(*args):
    """The maximum starts at 0 instead of −∞, as if there were a key with score 0. If all scores are far below, their
    exponentials vanish, and the total is 0."""
    return tiled_with(
        step=step_with(larger=lambda maximum, scores: maximum.clamp(min=0.0).maximum(scores.amax(-1))),
    )(*args)


@mistake
def starts_from_minus_hundred(*args):
    """The maximum starts at a finite number such as −100 or −1,000. Scores may be lower than that. Which number is
    below all scores?"""
    return tiled_with(
        step=step_with(larger=lambda maximum, scores: maximum.clamp(min=-100.0).maximum(scores.amax(-1))),
    )(*args)
