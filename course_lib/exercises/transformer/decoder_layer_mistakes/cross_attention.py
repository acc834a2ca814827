"""Mistakes in `DecoderLayer`: the inputs of the cross-attention."""

from __future__ import annotations

from course_lib.exercises._headings import DECODER_LAYER, PRE_OR_POST
from course_lib.exercises._mistakes import Mistakes
from course_lib.exercises.transformer.decoder_layer import DecoderLayer, true
from course_lib.exercises.transformer.decoder_layer_mistakes.parts import cross
from course_lib.exercises.transformer.variants import attended_by, with_forward

mistake = Mistakes()


def _layer(cross_query=None, inputs=lambda x, memory: (x, memory, memory), own=lambda x, memory: (x, x, x)):
    """The decoder layer with other tensors in its attentions."""

    def forward(self, x, memory, self_mask=None, memory_mask=None):
        x = self.norm1(x + self.self_attention(*own(x, memory), self_mask)[0])
        x = self.norm2(x + self.cross_attention(*inputs(x, memory), memory_mask)[0])
        return self.norm3(x + self.feed_forward(x))

    return with_forward(DecoderLayer)(forward)


@mistake.built
def memory_asks():
    """In the cross-attention, the queries come from memory, and keys and values from the target. The result has one row
    per query: which sequence's rows are wanted?"""
    return _layer(inputs=lambda x, memory: (memory, x, x))


@mistake.built
def memory_alone():
    """In the cross-attention, queries come from memory like keys and values, so the target is not used. Which of the
    two sequences should the queries come from?"""
    return _layer(inputs=lambda x, memory: (memory, memory, memory))


@mistake.built
def memory_not_used():
    """The result does not depend on memory: the second attention attends to the target again. Where do its keys and
    values come from?"""
    return _layer(inputs=lambda x, memory: (x, x, x))


@mistake.built
def values_from_target():
    """In the cross-attention, keys come from memory and values from the target. A weight belongs to a source position,
    and so does the value that it weights."""
    return _layer(inputs=lambda x, memory: (x, memory, x))


@mistake.built
def keys_from_target():
    """In the cross-attention, values come from memory and keys from the target. A key and its value belong together:
    both come from the source."""
    return _layer(inputs=lambda x, memory: (x, x, memory))


@mistake.built
def inputs_exchanged():
    """The first attention attends to memory and the second to the target. The order should be the other way round."""
    return _layer(own=lambda x, memory: (x, memory, memory), inputs=lambda x, memory: (x, x, x))


@mistake.built
def memory_in_both():
    """Both attentions attend to memory. The first is self-attention: the target attends to itself."""
    return _layer(own=lambda x, memory: (x, memory, memory))


@mistake.built
def memory_detached():
    """The values are right, but no gradient reaches memory: the encoder would learn nothing from the target."""
    return _layer(inputs=lambda x, memory: (x, memory.detach(), memory.detach()))


@mistake(look=DECODER_LAYER, by=with_forward(DecoderLayer))
def cross_attention_causal(self, x, memory, self_mask=None, memory_mask=None):
    """The cross-attention hides later positions of the source. The source is known as a whole: every target position
    may attend to all of it that memory_mask allows."""
    earlier = true(x.shape[1], memory.shape[1]).tril()
    memory_mask = earlier if memory_mask is None else earlier & memory_mask
    return DecoderLayer.forward(self, x, memory, self_mask, memory_mask)


@mistake(look=PRE_OR_POST, by=with_forward(DecoderLayer))
def pre_norm_of_memory_too(self, x, memory, self_mask=None, memory_mask=None):
    """This is pre-norm, and memory goes through norm2 as well. In the paper, and here, each norm is applied to the sum
    after its sub-layer."""
    x = x + attended_by(self, self.norm1(x), self_mask)
    x = x + cross(self, self.norm2(x), self.norm2(memory), memory_mask)
    return x + self.feed_forward(self.norm3(x))


@mistake(look=PRE_OR_POST, by=with_forward(DecoderLayer))
def memory_normed(self, x, memory, self_mask=None, memory_mask=None):
    """memory goes through norm2 before it is attended to. It is the finished output of the encoder; norms follow
    sums."""
    memory = self.norm2(memory)
    return DecoderLayer.forward(self, x, memory, self_mask, memory_mask)


@mistake(by=with_forward(DecoderLayer))
def arguments_exchanged(self, x, memory, self_mask=None, memory_mask=None):
    """x and memory are exchanged: x, the target, is the first argument, and the result has its length."""
    return DecoderLayer.forward(self, memory, x, self_mask, memory_mask)


@mistake(by=with_forward(DecoderLayer))
def self_attention_again(self, x, memory, self_mask=None, memory_mask=None):
    """The second attention does the same as the first: the target attends to itself again, under self_mask, and memory
    is not used. Where do keys and values of the second one come from, and which mask is about them?"""
    x = self.norm1(x + attended_by(self, x, self_mask))
    x = self.norm2(x + self.cross_attention(x, x, x, self_mask)[0])
    return self.norm3(x + self.feed_forward(x))
