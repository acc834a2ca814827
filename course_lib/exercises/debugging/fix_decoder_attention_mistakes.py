"""The mistakes in `fix_decoder_attention`."""

from __future__ import annotations

import torch
import torch.nn.functional as F

from course_lib.exercises._mistakes import Mistakes

mistake = Mistakes()

attention = F.scaled_dot_product_attention


def _then_memory(to_memory):
    """The right self-attention, and then this attention to the memory."""

    def solution(x, memory, self_mask, memory_mask):
        x = x + attention(x, x, x, self_mask)
        return x + to_memory(x, memory, self_mask, memory_mask)

    return solution


@mistake
def as_given(x, memory, self_mask, memory_mask):
    """The output still changes when padding is appended to the source: with the number of padded positions, and with
    the numbers in them."""
    x = x + attention(x, x, x, self_mask)
    return x + attention(x, memory, memory)


@mistake(by=_then_memory)
def padding_set_to_zero(x, memory, self_mask, memory_mask):
    """Padded source positions are set to zero, but they still get attention: the softmax makes a positive weight of a
    score of 0 too, and the real positions lose it. Padding has to be hidden from the softmax."""
    memory = memory * memory_mask.mT
    return attention(x, memory, memory)


@mistake(by=_then_memory)
def padded_values_set_to_zero(x, memory, self_mask, memory_mask):
    """The values of padded source positions count as zero, or their weights do after the softmax. But their scores
    still take part in the softmax, so the weights of the real positions sum to less than one."""
    return attention(x, memory, memory * memory_mask.mT)


@mistake(by=_then_memory)
def padded_keys_set_to_zero(x, memory, self_mask, memory_mask):
    """The scores of padded source positions are 0 before the softmax, but 0 is a score like any other: the padding
    still gets a positive weight. A hidden position needs the weight 0."""
    return attention(x, memory * memory_mask.mT, memory)


@mistake(by=_then_memory)
def mask_turned_round(x, memory, self_mask, memory_mask):
    """The target attends to the *padding* of the source, and to nothing else. True means *may attend*, in `memory_mask`
    as in fused attention."""
    return attention(x, memory, memory, ~memory_mask)


@mistake(by=_then_memory)
def mask_added_as_numbers(x, memory, self_mask, memory_mask):
    """The mask reaches the attention as numbers, 1 and 0, which are *added* to the scores. Padding still gets
    attention, only somewhat less."""
    return attention(x, memory, memory, memory_mask.to(x.dtype))


@mistake(by=_then_memory)
def one_source_for_all(x, memory, self_mask, memory_mask):
    """The padding of the first source is used for the whole batch. Each sequence has its own."""
    return attention(x, memory, memory, memory_mask[:1])


@mistake(by=_then_memory)
def self_mask_for_the_memory(x, memory, self_mask, memory_mask):
    """`self_mask` is applied to the source. Its last axis has the length of the target, so this fails where the lengths
    differ, and hides the wrong positions where they agree."""
    return attention(x, memory, memory, self_mask)


@mistake
def masks_exchanged(x, memory, self_mask, memory_mask):
    """The two masks have changed places. That fails where source and target have different lengths, and hides the wrong
    positions where they have the same."""
    x = x + attention(x, x, x, memory_mask)
    return x + attention(x, memory, memory, self_mask)


@mistake(by=_then_memory)
def both_masks_for_the_memory(x, memory, self_mask, memory_mask):
    """`self_mask` and `memory_mask` are combined for the attention to the memory. A target token may attend to all of
    the source except its padding; `self_mask` is about the target only."""
    return attention(x, memory, memory, self_mask & memory_mask)


@mistake(by=_then_memory)
def causal_source(x, memory, self_mask, memory_mask):
    """The attention to the source is causal, so the first target token gets only the first source token. The source
    is there as a whole from the beginning; only its padding is hidden."""
    len_target, len_source = x.shape[1], memory.shape[1]
    past = torch.ones(len_target, len_source, dtype=torch.bool).tril()
    return attention(x, memory, memory, past & memory_mask)


@mistake(by=_then_memory)
def not_scaled(x, memory, self_mask, memory_mask):
    """The source's padding is hidden, but the scores of the attention to the memory are not divided by √d."""
    return attention(x, memory, memory, memory_mask, scale=1.0)


@mistake
def self_mask_lost(x, memory, self_mask, memory_mask):
    """The source's padding is hidden now, but `self_mask` is not used any more: changing a later target token changes
    the output at earlier ones."""
    x = x + attention(x, x, x)
    return x + attention(x, memory, memory, memory_mask)


@mistake
def always_causal(x, memory, self_mask, memory_mask):
    """The self-attention is causal, whatever `self_mask` says. It may hide padding too, or be an entirely different
    mask."""
    x = x + attention(x, x, x, is_causal=True)
    return x + attention(x, memory, memory, memory_mask)


@mistake
def queries_from_the_input(x, memory, self_mask, memory_mask):
    """The queries of the attention to the memory are the original x. They should be the result of the self-attention,
    y."""
    return x + attention(x, x, x, self_mask) + attention(x, memory, memory, memory_mask)


@mistake
def second_residual_lost(x, memory, self_mask, memory_mask):
    """The second attention replaces y instead of being added to it, so the target reaches the output through its
    queries only."""
    x = x + attention(x, x, x, self_mask)
    return attention(x, memory, memory, memory_mask)


@mistake
def first_residual_lost(x, memory, self_mask, memory_mask):
    """The first attention replaces x instead of being added to it."""
    x = attention(x, x, x, self_mask)
    return x + attention(x, memory, memory, memory_mask)


@mistake
def both_residuals_lost(x, memory, self_mask, memory_mask):
    """Neither attention is added to what goes into it. The contract has a sum after each of the two."""
    x = attention(x, x, x, self_mask)
    return attention(x, memory, memory, memory_mask)


@mistake
def input_added_twice(x, memory, self_mask, memory_mask):
    """The second sum adds the original x and not y, so the result of the self-attention is missing in it."""
    y = x + attention(x, x, x, self_mask)
    return x + attention(y, memory, memory, memory_mask)


@mistake
def self_attention_left_out(x, memory, self_mask, memory_mask):
    """Only the attention to the memory is left; the self-attention is missing."""
    return x + attention(x, memory, memory, memory_mask)


@mistake
def memory_left_out(x, memory, self_mask, memory_mask):
    """Only the self-attention is left. The output no longer depends on the source's padding, but neither does it depend
    on the source."""
    return x + attention(x, x, x, self_mask)


@mistake
def memory_first(x, memory, self_mask, memory_mask):
    """The order is exchanged: the attention to the memory comes first, and the self-attention after it."""
    x = x + attention(x, memory, memory, memory_mask)
    return x + attention(x, x, x, self_mask)


@mistake
def caller_changed(x, memory, self_mask, memory_mask):
    """The numbers are right, but the caller's x is changed: `+=` works in place."""
    first = attention(x.clone(), x.clone(), x.clone(), self_mask)
    x += first
    return x + attention(x, memory, memory, memory_mask)
