"""Mistakes in `EncoderLayer`: the order of the steps, and what is added to what."""

from __future__ import annotations

from course_lib.exercises._headings import RESIDUALS
from course_lib.exercises._mistakes import Mistakes
from course_lib.exercises.transformer.encoder_layer import EncoderLayer
from course_lib.exercises.transformer.variants import attended_by, with_forward

mistake = Mistakes()


@mistake(by=with_forward(EncoderLayer))
def tuple_added(self, x, mask=None):
    """Attention returns a pair, `(output, weights)`, and a pair cannot be added to a tensor."""
    x = self.norm1(x + self.self_attention(x, x, x, mask))
    return self.norm2(x + self.feed_forward(x))


@mistake(by=with_forward(EncoderLayer))
def weights_added(self, x, mask=None):
    """The attention weights are added to x. Attention returns `(output, weights)`: which of the two has the shape of
    x?"""
    x = self.norm1(x + self.self_attention(x, x, x, mask)[1])
    return self.norm2(x + self.feed_forward(x))


@mistake(by=with_forward(EncoderLayer))
def weights_too(self, x, mask=None):
    """The weights are returned as well. The contract asks only for the output."""
    attended, weights = self.self_attention(x, x, x, mask)
    x = self.norm1(x + attended)
    return self.norm2(x + self.feed_forward(x)), weights


@mistake(by=with_forward(EncoderLayer))
def residual_in_place(self, x, mask=None):
    """The result is right, but x, which belongs to the caller, is changed: `+=` works in place."""
    x += attended_by(self, x, mask)
    x = self.norm1(x)
    return self.norm2(x + self.feed_forward(x))


@mistake(look=RESIDUALS, by=with_forward(EncoderLayer))
def second_residual_from_input(self, x, mask=None):
    """The second residual connection starts at the layer's input. It should start where its sub-layer does: at the
    output of norm1."""
    y = self.norm1(x + attended_by(self, x, mask))
    return self.norm2(x + self.feed_forward(y))


@mistake(look=RESIDUALS, by=with_forward(EncoderLayer))
def second_residual_before_norm(self, x, mask=None):
    """The second residual connection starts before norm1. It should start where its sub-layer does: at the output of
    norm1."""
    x = x + attended_by(self, x, mask)
    return self.norm2(x + self.feed_forward(self.norm1(x)))


@mistake(look=RESIDUALS, by=with_forward(EncoderLayer))
def second_residual_from_attention(self, x, mask=None):
    """The output of the attention alone is added to that of the feed-forward network. The residual connection should
    start at the output of norm1."""
    attended = attended_by(self, x, mask)
    return self.norm2(attended + self.feed_forward(self.norm1(x + attended)))


@mistake(by=with_forward(EncoderLayer))
def feed_forward_of_input(self, x, mask=None):
    """The feed-forward network works on the layer's input. It follows attention, so its input should be the output of
    norm1."""
    return self.norm2(self.norm1(x + attended_by(self, x, mask)) + self.feed_forward(x))


@mistake(by=with_forward(EncoderLayer))
def feed_forward_of_attention(self, x, mask=None):
    """The feed-forward network works on the output of the attention alone. Its input should be the output of norm1."""
    attended = attended_by(self, x, mask)
    return self.norm2(self.norm1(x + attended) + self.feed_forward(attended))


@mistake(by=with_forward(EncoderLayer))
def parallel(self, x, mask=None):
    """Attention and feed-forward network run in parallel on the same input. Here the second should work on the result
    of the first."""
    return self.norm2(self.norm1(x + attended_by(self, x, mask) + self.feed_forward(x)))


@mistake(look=RESIDUALS, by=with_forward(EncoderLayer))
def one_residual(self, x, mask=None):
    """There is a single residual connection around both sub-layers. Each should have its own."""
    return self.norm2(x + self.feed_forward(self.norm1(attended_by(self, x, mask))))


@mistake(by=with_forward(EncoderLayer))
def feed_forward_first(self, x, mask=None):
    """The feed-forward network comes before the attention. The order should be the other way round."""
    x = self.norm2(x + self.feed_forward(x))
    return self.norm1(x + attended_by(self, x, mask))


@mistake(by=with_forward(EncoderLayer))
def feed_forward_first_norms_in_order(self, x, mask=None):
    """The feed-forward network comes before the attention, though the norms are in their order. First the positions are
    mixed by attention, then each is processed separately."""
    x = self.norm1(x + self.feed_forward(x))
    return self.norm2(x + attended_by(self, x, mask))


@mistake(by=with_forward(EncoderLayer))
def length_first(self, x, mask=None):
    """Batch and length are exchanged before the attention, so each position attends to the other sequences of the
    batch. Here the batch comes first, in x and in the attention."""
    attended = attended_by(self, x.transpose(0, 1), mask).transpose(0, 1)
    x = self.norm1(x + attended)
    return self.norm2(x + self.feed_forward(x))
