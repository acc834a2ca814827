"""Mistakes in `DecoderLayer`: what the cross-attention looks at."""

from __future__ import annotations

from course_lib.exercises._mistakes import Mistakes
from course_lib.exercises.transformer.decoder_layer import DecoderLayer, true
from course_lib.exercises.transformer.decoder_layer_mistakes.parts import cross
from course_lib.exercises.transformer.variants import attended_by, with_forward

mistake = Mistakes()


POST = "pre_norm_post_norm: Pre-norm and post-norm"
IN_DECODER = "transformer: The decoder layer"


def _layer(cross_query=None, inputs=lambda x, memory: (x, memory, memory), own=lambda x, memory: (x, x, x)):
    """The decoder layer with other tensors in its attentions."""

    def forward(self, x, memory, self_mask=None, memory_mask=None):
        x = self.norm1(x + self.self_attention(*own(x, memory), self_mask)[0])
        x = self.norm2(x + self.cross_attention(*inputs(x, memory), memory_mask)[0])
        return self.norm3(x + self.feed_forward(x))

    return with_forward(DecoderLayer)(forward)


@mistake.built
def memory_asks():
    """In the cross-attention, memory asks and the target answers. The result has a row for every query: whose rows
    are wanted?"""
    return _layer(inputs=lambda x, memory: (memory, x, x))


@mistake.built
def memory_alone():
    """In the cross-attention, queries come from memory like keys and values, so nothing crosses over. Who asks the
    source: the source, or the target?"""
    return _layer(inputs=lambda x, memory: (memory, memory, memory))


@mistake.built
def memory_not_used():
    """The result does not depend on memory: the second attention looks at the target again. Where do its keys and
    values come from?"""
    return _layer(inputs=lambda x, memory: (x, x, x))


@mistake.built
def values_from_target():
    """In the cross-attention, keys come from memory and values from the target. A weight belongs to a source
    position; so does the value that it weighs."""
    return _layer(inputs=lambda x, memory: (x, memory, x))


@mistake.built
def keys_from_target():
    """In the cross-attention, values come from memory and keys from the target. Each key has its value: both are of
    the source."""
    return _layer(inputs=lambda x, memory: (x, x, memory))


@mistake.built
def inputs_exchanged():
    """The first attention looks at memory and the second at the target. The order is the other way round."""
    return _layer(own=lambda x, memory: (x, memory, memory), inputs=lambda x, memory: (x, x, x))


@mistake.built
def memory_in_both():
    """Both attentions look at memory. The first is self-attention: the target looks at itself."""
    return _layer(own=lambda x, memory: (x, memory, memory))


@mistake.built
def memory_detached():
    """The values are right, but no gradient reaches memory: the encoder would learn nothing from the target."""
    return _layer(inputs=lambda x, memory: (x, memory.detach(), memory.detach()))


@mistake(look=IN_DECODER, by=with_forward(DecoderLayer))
def cross_attention_causal(self, x, memory, self_mask=None, memory_mask=None):
    """The cross-attention hides later positions of the source. The source is known as a whole: every target position
    may look at all of it that memory_mask allows."""
    earlier = true(x.shape[1], memory.shape[1]).tril()
    memory_mask = earlier if memory_mask is None else earlier & memory_mask
    return DecoderLayer.forward(self, x, memory, self_mask, memory_mask)


@mistake(look=POST, by=with_forward(DecoderLayer))
def pre_norm_of_memory_too(self, x, memory, self_mask=None, memory_mask=None):
    """This is pre-norm, and memory goes through norm2 as well. In the paper, and here, each norm is applied to the
    sum that comes out of its sub-layer."""
    x = x + attended_by(self, self.norm1(x), self_mask)
    x = x + cross(self, self.norm2(x), self.norm2(memory), memory_mask)
    return x + self.feed_forward(self.norm3(x))


@mistake(look=POST, by=with_forward(DecoderLayer))
def memory_normed(self, x, memory, self_mask=None, memory_mask=None):
    """memory goes through norm2 before it is attended to. It comes ready from the encoder; norms stand after sums."""
    memory = self.norm2(memory)
    return DecoderLayer.forward(self, x, memory, self_mask, memory_mask)


@mistake(by=with_forward(DecoderLayer))
def arguments_exchanged(self, x, memory, self_mask=None, memory_mask=None):
    """x and memory have changed places: x, the target, is the first argument, and the result has its length."""
    return DecoderLayer.forward(self, memory, x, self_mask, memory_mask)
