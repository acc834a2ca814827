"""Mistakes in `transformer_parameter_count`: two at once."""

from __future__ import annotations

from course_lib.exercises._mistakes import Mistakes
from course_lib.exercises.transformer.transformer_parameter_count_mistakes.parts import count
from course_lib.exercises.transformer.two_slips import two_slips

mistake = Mistakes()


for _key, _says, _solution in two_slips(count):
    mistake.named(_key, _says)(_solution)


@mistake
def no_biases_no_norms_two_embeddings(vocab_size, d_model, num_layers, d_ff):
    """Only matrices are counted, without biases and norms, and the embedding twice, though all share one."""
    return count(
        attention=lambda d: 4 * d * d,
        feed_forward=lambda d, f: 2 * d * f,
        norms=(0, 0),
        embeddings=2,
    )(vocab_size, d_model, num_layers, d_ff)


@mistake
def no_biases_no_norms_three_embeddings(vocab_size, d_model, num_layers, d_ff):
    """Only matrices are counted, without biases and norms, and the embedding three times, though all share one."""
    return count(
        attention=lambda d: 4 * d * d,
        feed_forward=lambda d, f: 2 * d * f,
        norms=(0, 0),
        embeddings=3,
    )(vocab_size, d_model, num_layers, d_ff)


for _embeddings, _words in ((2, "twice"), (3, "three times")):
    mistake.named(
        f"no_biases_and_{_embeddings}_embeddings",
        f"Two things: the biases of the Linears are not counted, and the embedding is counted {_words}, though all "
        f"share one.",
    )(count(attention=lambda d: 4 * d * d, feed_forward=lambda d, f: 2 * d * f, embeddings=_embeddings))


@mistake(look="multi_head: The class MultiHeadAttention")
def heads_counted_apart(vocab_size, d_model, num_layers, d_ff):
    """The attention is counted once per head, or with d_ff features. Each of its four matrices is d_model × d_model,
    however many heads share it."""
    return count(attention=lambda d: 8 * (4 * d * d + 4 * d))(vocab_size, d_model, num_layers, d_ff)


@mistake
def positions_learned(vocab_size, d_model, num_layers, d_ff):
    """Learned positions are counted, 512 of them. The positions here are sinusoidal, so they have no parameters."""
    return count(more=lambda v, d, n, f: 512 * d)(vocab_size, d_model, num_layers, d_ff)
