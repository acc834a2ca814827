"""Mistakes in `MultiHeadAttention`: what is returned."""

from __future__ import annotations

from course_lib.exercises._mistakes import Mistakes
from course_lib.exercises.multi_head.multi_head_attention_mistakes.parts import attend_with, variant

mistake = Mistakes()


@mistake.built
def weights_averaged():
    """The weights are averaged over the heads, as `nn.MultiheadAttention` does by default. The contract asks for those
    of every head."""
    return variant(finish=lambda output, weights: (output, weights.mean(1)))


@mistake.built
def weights_summed():
    """The weights are added up over the heads. The contract asks for those of every head."""
    return variant(finish=lambda output, weights: (output, weights.sum(1)))


@mistake.built
def weights_of_the_last_head():
    """Only the last head's weights are returned: does a loop over the heads overwrite them?"""
    return variant(finish=lambda output, weights: (output, weights[:, -1]))


@mistake.built
def weights_of_the_first_head():
    """Only the first head's weights are returned. The contract asks for those of every head."""
    return variant(finish=lambda output, weights: (output, weights[:, 0]))


@mistake.built
def weights_heads_first():
    """In the weights the heads come before the batch: (H, B, L_q, L_k)."""
    return variant(finish=lambda output, weights: (output, weights.transpose(0, 1)))


@mistake.built
def weights_heads_after_queries():
    """In the weights the heads come after the queries: (B, L_q, H, L_k)."""
    return variant(finish=lambda output, weights: (output, weights.transpose(1, 2)))


@mistake.built
def weights_heads_last():
    """In the weights the heads come last: (B, L_q, L_k, H)."""
    return variant(finish=lambda output, weights: (output, weights.movedim(1, -1)))


@mistake.built
def weights_transposed():
    """The weights have one row per key: (B, H, L_k, L_q). A row belongs to a query."""
    return variant(finish=lambda output, weights: (output, weights.transpose(-2, -1)))


@mistake.built
def weights_batch_and_heads_in_one():
    """In the weights batch and heads share one axis. The contract keeps them apart."""
    return variant(finish=lambda output, weights: (output, weights.flatten(0, 1)))


@mistake.built
def weights_batch_and_heads_mixed():
    """Batch and heads were merged into one axis and split in the other order, so weights belong to the wrong sequence.
    Which of the two indices changes faster?"""
    return variant(finish=lambda output, weights: (output, weights.transpose(0, 1).reshape(weights.shape)))


@mistake.built
def weights_side_by_side():
    """The heads' weights are side by side like their features, (B, L_q, H · L_k). They need an axis of their own."""
    return variant(finish=lambda output, weights: (output, weights.transpose(1, 2).flatten(-2)))


@mistake.built
def outputs_swapped():
    """Weights and output are returned in the wrong order: the contract says `(output, weights)`."""
    return variant(finish=lambda output, weights: (weights, output))


@mistake.built
def only_output():
    """Only the output is returned. The contract asks for `(output, weights)`."""
    return variant(finish=lambda output, weights: output)


@mistake.built
def weights_detached():
    """The returned weights are detached from the graph. A loss may depend on them, so gradients have to flow."""
    return variant(finish=lambda output, weights: (output, weights.detach()))


@mistake.built
def scores_returned():
    """The second result holds the scores before the softmax; it should hold the weights."""
    return variant(
        attend=lambda q, k, v, mask: (
            attend_with()(q, k, v, mask)[0],
            attend_with(softmax=lambda s, dim: s)(q, k, k, mask)[1],
        )
    )


@mistake.built
def output_squeezed():
    """`squeeze` removes every axis of length one from the output, including that of a single sequence or query."""
    return variant(finish=lambda output, weights: (output.squeeze(), weights))


@mistake.built
def weights_squeezed():
    """`squeeze` removes every axis of length one from the weights, including that of a single sequence or head."""
    return variant(finish=lambda output, weights: (output, weights.squeeze()))


@mistake.built
def heads_returned():
    """The output still has an axis of heads: (B, H, L_q, d_head), neither merged nor projected."""
    return variant(merge=lambda x: x, out=lambda self, merged, query: merged)
