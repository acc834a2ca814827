"""Mistakes in `transformer_parameter_count`: embeddings, biases, and what is returned."""

from __future__ import annotations

from course_lib.exercises._mistakes import Mistakes
from course_lib.exercises.transformer.transformer_parameter_count_mistakes.parts import count

mistake = Mistakes()


@mistake
def two_embeddings(vocab_size, d_model, num_layers, d_ff):
    """The embedding is counted twice. Source, target and output projection share one matrix."""
    return count(embeddings=2)(vocab_size, d_model, num_layers, d_ff)


@mistake
def three_embeddings(vocab_size, d_model, num_layers, d_ff):
    """The embedding is counted three times: for source, target and output projection, which share one matrix."""
    return count(embeddings=3)(vocab_size, d_model, num_layers, d_ff)


@mistake
def no_embedding(vocab_size, d_model, num_layers, d_ff):
    """The embedding is not counted. It is shared, but it counts once."""
    return count(embeddings=0)(vocab_size, d_model, num_layers, d_ff)


@mistake
def embedding_in_every_layer(vocab_size, d_model, num_layers, d_ff):
    """The embedding is multiplied by the number of layers. It comes only before the first layer."""
    return count(more=lambda v, d, n, f: (n - 1) * v * d)(vocab_size, d_model, num_layers, d_ff)


@mistake
def output_bias(vocab_size, d_model, num_layers, d_ff):
    """vocab_size too many: the output projection has no bias here."""
    return count(more=lambda v, d, n, f: v)(vocab_size, d_model, num_layers, d_ff)


@mistake
def output_projection_with_bias(vocab_size, d_model, num_layers, d_ff):
    """A separate output projection with a bias is counted. It shares the embedding matrix, without a bias."""
    return count(embeddings=2, more=lambda v, d, n, f: v)(vocab_size, d_model, num_layers, d_ff)


@mistake
def three_embeddings_and_bias(vocab_size, d_model, num_layers, d_ff):
    """Source embedding, target embedding and an output projection with a bias are counted. All three share one
    matrix, and there is no output bias."""
    return count(embeddings=3, more=lambda v, d, n, f: v)(vocab_size, d_model, num_layers, d_ff)


@mistake
def final_norms(vocab_size, d_model, num_layers, d_ff):
    """A norm after each stack is counted. Post-norm layers end in a norm already, and there is no other."""
    return count(more=lambda v, d, n, f: 4 * d)(vocab_size, d_model, num_layers, d_ff)


@mistake
def final_norm(vocab_size, d_model, num_layers, d_ff):
    """One norm too many: there is none after the last layer."""
    return count(more=lambda v, d, n, f: 2 * d)(vocab_size, d_model, num_layers, d_ff)


@mistake
def no_biases(vocab_size, d_model, num_layers, d_ff):
    """The biases of the Linears are not counted. Each has one, with one number per output feature."""
    return count(attention=lambda d: 4 * d * d, feed_forward=lambda d, f: 2 * d * f)(
        vocab_size, d_model, num_layers, d_ff
    )


@mistake
def no_biases_no_norms(vocab_size, d_model, num_layers, d_ff):
    """Only matrices are counted: biases and norms are missing."""
    return count(attention=lambda d: 4 * d * d, feed_forward=lambda d, f: 2 * d * f, norms=(0, 0))(
        vocab_size, d_model, num_layers, d_ff
    )


@mistake
def no_attention_biases(vocab_size, d_model, num_layers, d_ff):
    """The four projections of an attention are counted without their biases."""
    return count(attention=lambda d: 4 * d * d)(vocab_size, d_model, num_layers, d_ff)


@mistake
def no_biases_in_attention_no_norms(vocab_size, d_model, num_layers, d_ff):
    """The biases of the attention's projections and all norms are missing."""
    return count(attention=lambda d: 4 * d * d, norms=(0, 0))(vocab_size, d_model, num_layers, d_ff)


@mistake
def no_feed_forward_biases(vocab_size, d_model, num_layers, d_ff):
    """The feed-forward network is counted without its biases. How many hidden features does it have, and how many
    output features?"""
    return count(feed_forward=lambda d, f: 2 * d * f)(vocab_size, d_model, num_layers, d_ff)


@mistake
def one_attention_bias(vocab_size, d_model, num_layers, d_ff):
    """An attention has four projections, and each has its own bias."""
    return count(attention=lambda d: 4 * d * d + d)(vocab_size, d_model, num_layers, d_ff)
