"""What training a transformer costs: operations by 6 N D and exactly, and the memory of a training step."""

from __future__ import annotations

from typing import NamedTuple

from course_kit._checks import check_instance
from course_kit.nn import TransformerConfig
from course_lib._checks import checked
from course_lib._typing import Count, Size
from course_lib.scaled_dot_product import attention_flops

__all__ = ["TrainingMemory", "language_model_flops", "training_flops", "training_memory", "transformer_flops"]


@checked
def training_flops(parameters: Count, tokens: Count) -> int:
    """The rule of thumb for the operations of a training run: `6 · N · D`.

    Each parameter of a matrix takes 2 operations per token (a multiplication and an addition) in the forward pass, and
    4 in the backward pass: 2 for the gradient of the input and 2 for that of the matrix.

    Args:
        parameters: N, those of matrices that tokens are multiplied by. An embedding counts if it is also the output
            projection.
        tokens: D, how many tokens pass through all of these parameters, over the whole run.

    Returns:
        Floating-point operations. The products inside attention are not included.

    Source: Kaplan et al. (2020), section 2.1, where N leaves out all embeddings.
    """
    return 6 * parameters * tokens


@checked
def language_model_flops(config: TransformerConfig, length: Size, batch_size: Size = 1) -> int:
    """Operations of all matrix products in a forward pass of `LanguageModel`; training takes three times as many.

    With T = batch_size · length tokens and d = d_model, a layer takes `8 T d²` for the projections, `4 T d · length`
    inside attention and `4 T d · d_ff` in the feed-forward network; the output projection takes `2 T d · vocab_size`.

    Args:
        config: sizes of the model.
        length: tokens in a sequence, padding included.
        batch_size: sequences.

    Returns:
        Floating-point operations, a multiply-add counted as 2. Softmax, norms and the other operations on single
        numbers are not counted, and neither is a causal mask, which saves nothing in a plain matrix product.

    Raises:
        TypeError: config is not a TransformerConfig.
    """
    check_instance(TransformerConfig, config=config)
    layer = _attention(config.d_model, length, length) + _feed_forward(config, length)
    return batch_size * (config.num_layers * layer + 2 * length * config.d_model * config.vocab_size)


@checked
def transformer_flops(config: TransformerConfig, len_source: Size, len_target: Size, batch_size: Size = 1) -> int:
    """Operations of all matrix products in a forward pass of `Transformer`; training takes three times as many.

    The terms are those of `language_model_flops`. A decoder layer has a second attention, whose keys and values are
    computed from the source. The output projection is applied to the target only.

    Args:
        config: sizes of the model.
        len_source: tokens in a source sequence, padding included.
        len_target: tokens in a target sequence, padding included.
        batch_size: pairs of sequences.

    Returns:
        Floating-point operations, counted as in `language_model_flops`.

    Raises:
        TypeError: config is not a TransformerConfig.
    """
    check_instance(TransformerConfig, config=config)
    d, vocab_size = config.d_model, config.target_vocab_size or config.vocab_size
    encoder_layer = _attention(d, len_source, len_source) + _feed_forward(config, len_source)
    decoder_layer = (
        _attention(d, len_target, len_target)
        + _attention(d, len_target, len_source)
        + _feed_forward(config, len_target)
    )
    output = 2 * len_target * d * vocab_size
    return batch_size * (config.num_layers * (encoder_layer + decoder_layer) + output)


class TrainingMemory(NamedTuple):
    """The memory of a training step in bytes, by what it is needed for."""

    weights: int
    gradients: int
    optimizer: int
    activations: int

    @property
    def total(self) -> int:
        """All four together."""
        return sum(self)


@checked
def training_memory(
    parameters: Count, activations: Count = 0, *, bytes_per_number: Size = 4, optimizer_numbers: Count = 2
) -> TrainingMemory:
    """What must be in memory at the end of the forward pass of a training step.

    Args:
        parameters: all trained parameters of the model.
        activations: how many numbers are kept for the backward pass, as `course_kit.costs.activations` computes or
            `course_kit.measuring.numbers_kept` measures.
        bytes_per_number: 4 in float32.
        optimizer_numbers: how many numbers the optimizer keeps per parameter: 2 for Adam and AdamW (running means of
            the gradient and of its square), 1 for SGD with momentum, 0 for plain SGD.

    Returns:
        Bytes of weights, gradients, optimizer state and activations, with their `total`.

    Source: Kingma & Ba (2015), algorithm 1, for the two numbers of Adam.
    """
    weights = parameters * bytes_per_number
    return TrainingMemory(weights, weights, optimizer_numbers * weights, activations * bytes_per_number)


def _attention(d_model: int, len_q: int, len_k: int) -> int:
    """Four projections, two of them of the queries' length, and the products of all heads together."""
    projections = 2 * (2 * len_q + 2 * len_k) * d_model * d_model
    return projections + attention_flops(len_q, len_k, d_model, d_model)


def _feed_forward(config: TransformerConfig, length: int) -> int:
    return 2 * 2 * length * config.d_model * config.d_ff
