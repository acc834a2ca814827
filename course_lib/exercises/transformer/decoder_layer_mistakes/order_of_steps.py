"""Mistakes in `DecoderLayer`: the order of the steps, and what is added to what."""

from __future__ import annotations

from course_lib.exercises._headings import RESIDUALS
from course_lib.exercises._mistakes import Mistakes
from course_lib.exercises.transformer.decoder_layer import DecoderLayer
from course_lib.exercises.transformer.decoder_layer_mistakes.parts import cross
from course_lib.exercises.transformer.variants import attended_by, built_with, with_forward

mistake = Mistakes()


@mistake(by=with_forward(DecoderLayer))
def self_attention_for_both(self, x, memory, self_mask=None, memory_mask=None):
    """`self_attention` computes both attentions. The second one has its own weights: `cross_attention`."""
    x = self.norm1(x + attended_by(self, x, self_mask))
    x = self.norm2(x + self.self_attention(x, memory, memory, memory_mask)[0])
    return self.norm3(x + self.feed_forward(x))


@mistake(by=with_forward(DecoderLayer))
def cross_attention_for_both(self, x, memory, self_mask=None, memory_mask=None):
    """`cross_attention` computes both attentions; `self_attention`, with its own weights, is not used."""
    x = self.norm1(x + self.cross_attention(x, x, x, self_mask)[0])
    x = self.norm2(x + self.cross_attention(x, memory, memory, memory_mask)[0])
    return self.norm3(x + self.feed_forward(x))


@mistake(by=with_forward(DecoderLayer))
def attentions_exchanged(self, x, memory, self_mask=None, memory_mask=None):
    """`cross_attention` attends to the target and `self_attention` to memory: the two modules are exchanged."""
    x = self.norm1(x + self.cross_attention(x, x, x, self_mask)[0])
    x = self.norm2(x + self.self_attention(x, memory, memory, memory_mask)[0])
    return self.norm3(x + self.feed_forward(x))


@mistake(by=with_forward(DecoderLayer))
def cross_attention_first(self, x, memory, self_mask=None, memory_mask=None):
    """The cross-attention comes before the self-attention, with the norms in their order. The target should attend to
    itself first."""
    x = self.norm1(x + cross(self, x, memory, memory_mask))
    x = self.norm2(x + attended_by(self, x, self_mask))
    return self.norm3(x + self.feed_forward(x))


@mistake(by=with_forward(DecoderLayer))
def cross_attention_first_with_norm(self, x, memory, self_mask=None, memory_mask=None):
    """The cross-attention and its norm come before the self-attention and its norm. The target should attend to itself
    first."""
    x = self.norm2(x + cross(self, x, memory, memory_mask))
    x = self.norm1(x + attended_by(self, x, self_mask))
    return self.norm3(x + self.feed_forward(x))


@mistake(by=with_forward(DecoderLayer))
def feed_forward_in_the_middle(self, x, memory, self_mask=None, memory_mask=None):
    """The feed-forward network comes before the cross-attention. It should be the last of the three."""
    x = self.norm1(x + attended_by(self, x, self_mask))
    x = self.norm2(x + self.feed_forward(x))
    return self.norm3(x + cross(self, x, memory, memory_mask))


@mistake(by=with_forward(DecoderLayer))
def cross_attention_of_input(self, x, memory, self_mask=None, memory_mask=None):
    """The cross-attention's queries are the layer's input. They should be the output of norm1, after the
    self-attention."""
    y = self.norm1(x + attended_by(self, x, self_mask))
    y = self.norm2(y + cross(self, x, memory, memory_mask))
    return self.norm3(y + self.feed_forward(y))


@mistake(by=with_forward(DecoderLayer))
def attentions_side_by_side(self, x, memory, self_mask=None, memory_mask=None):
    """Both attentions start from the layer's input and are added in one sum. The second should work on the result of
    the first."""
    x = self.norm2(self.norm1(x + attended_by(self, x, self_mask) + cross(self, x, memory, memory_mask)))
    return self.norm3(x + self.feed_forward(x))


@mistake(look=RESIDUALS, by=with_forward(DecoderLayer))
def residual_never_updated(self, x, memory, self_mask=None, memory_mask=None):
    """All residual connections start at the layer's input. Each should start where its sub-layer does: at the output of
    the norm before it."""
    y = self.norm1(x + attended_by(self, x, self_mask))
    y = self.norm2(x + cross(self, y, memory, memory_mask))
    return self.norm3(x + self.feed_forward(y))


@mistake(look=RESIDUALS, by=with_forward(DecoderLayer))
def cross_residual_from_input(self, x, memory, self_mask=None, memory_mask=None):
    """The residual connection around the cross-attention starts at the layer's input. It should start at the output of
    norm1."""
    y = self.norm1(x + attended_by(self, x, self_mask))
    y = self.norm2(x + cross(self, y, memory, memory_mask))
    return self.norm3(y + self.feed_forward(y))


@mistake(look=RESIDUALS, by=with_forward(DecoderLayer))
def feed_forward_residual_from_input(self, x, memory, self_mask=None, memory_mask=None):
    """The residual connection around the feed-forward network starts at the layer's input. It should start at the
    output of norm2."""
    y = self.norm1(x + attended_by(self, x, self_mask))
    y = self.norm2(y + cross(self, y, memory, memory_mask))
    return self.norm3(x + self.feed_forward(y))


@mistake(look=RESIDUALS, by=with_forward(DecoderLayer))
def feed_forward_residual_from_norm1(self, x, memory, self_mask=None, memory_mask=None):
    """The residual connection around the feed-forward network starts at the output of norm1, bypassing the
    cross-attention. It should start at the output of norm2."""
    y = self.norm1(x + attended_by(self, x, self_mask))
    z = self.norm2(y + cross(self, y, memory, memory_mask))
    return self.norm3(y + self.feed_forward(z))


@mistake(by=with_forward(DecoderLayer))
def feed_forward_of_norm1(self, x, memory, self_mask=None, memory_mask=None):
    """The feed-forward network works on the output of norm1, bypassing the cross-attention. Its input should be the
    output of norm2."""
    x = self.norm1(x + attended_by(self, x, self_mask))
    return self.norm3(self.norm2(x + cross(self, x, memory, memory_mask)) + self.feed_forward(x))


@mistake(by=with_forward(DecoderLayer))
def feed_forward_of_input(self, x, memory, self_mask=None, memory_mask=None):
    """The feed-forward network works on the layer's input. Its input should be the output of norm2."""
    y = self.norm1(x + attended_by(self, x, self_mask))
    y = self.norm2(y + cross(self, y, memory, memory_mask))
    return self.norm3(y + self.feed_forward(x))


@mistake(look=RESIDUALS, by=with_forward(DecoderLayer))
def residual_from_memory(self, x, memory, self_mask=None, memory_mask=None):
    """memory is added to the output of the cross-attention. The residual connection belongs to x, the target."""
    x = self.norm1(x + attended_by(self, x, self_mask))
    x = self.norm2(memory + cross(self, x, memory, memory_mask))
    return self.norm3(x + self.feed_forward(x))


@mistake(by=with_forward(DecoderLayer))
def tuple_added(self, x, memory, self_mask=None, memory_mask=None):
    """Attention returns a pair, `(output, weights)`, and a pair cannot be added to a tensor."""
    x = self.norm1(x + self.self_attention(x, x, x, self_mask))
    x = self.norm2(x + self.cross_attention(x, memory, memory, memory_mask))
    return self.norm3(x + self.feed_forward(x))


@mistake(by=with_forward(DecoderLayer))
def weights_too(self, x, memory, self_mask=None, memory_mask=None):
    """Attention weights are returned as well. The contract asks only for the output."""
    x = self.norm1(x + attended_by(self, x, self_mask))
    attended, weights = self.cross_attention(x, memory, memory, memory_mask)
    x = self.norm2(x + attended)
    return self.norm3(x + self.feed_forward(x)), weights


@mistake(by=with_forward(DecoderLayer))
def memory_too(self, x, memory, self_mask=None, memory_mask=None):
    """memory is returned as well. The contract asks only for the output."""
    return DecoderLayer.forward(self, x, memory, self_mask, memory_mask), memory


@mistake(by=with_forward(DecoderLayer))
def residual_in_place(self, x, memory, self_mask=None, memory_mask=None):
    """The result is right, but x, which belongs to the caller, is changed: `+=` works in place."""
    x += attended_by(self, x, self_mask)
    x = self.norm1(x)
    x = self.norm2(x + cross(self, x, memory, memory_mask))
    return self.norm3(x + self.feed_forward(x))


@mistake.built(look=RESIDUALS)
def no_norm3():
    """There is no norm3. A decoder layer has three sub-layers, and each has a norm of its own."""
    return built_with(DecoderLayer, norm3=None)


@mistake.built
def no_cross_attention():
    """`cross_attention` has no parameters of its own: it is missing, or it is the same module as `self_attention`.
    Attention to the source needs its own weights."""
    return built_with(DecoderLayer, cross_attention=None)


@mistake.built
def encoder_layer():
    """This is an encoder layer: it has neither `cross_attention` nor a norm for it."""
    return built_with(DecoderLayer, cross_attention=None, norm3=None)
