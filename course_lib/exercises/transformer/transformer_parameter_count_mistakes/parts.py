"""The building blocks of the mistakes in `transformer_parameter_count`."""

from __future__ import annotations

__all__ = ["count"]


def count(
    attention=lambda d: 4 * d * d + 4 * d,
    feed_forward=lambda d, f: 2 * d * f + f + d,
    norm=lambda d: 2 * d,
    attentions=(1, 2),
    norms=(2, 3),
    embeddings=1,
    stacks=(1, 1),
    more=lambda v, d, n, f: 0,
):
    """The count with one part replaced; pairs are for encoder and decoder."""

    def count(vocab_size, d_model, num_layers, d_ff):
        layers = sum(
            stack * (a * attention(d_model) + feed_forward(d_model, d_ff) + b * norm(d_model))
            for stack, a, b in zip(stacks, attentions, norms, strict=True)
        )
        return embeddings * vocab_size * d_model + num_layers * layers + more(vocab_size, d_model, num_layers, d_ff)

    return count
