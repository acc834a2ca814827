"""What a transformer keeps from the forward to the backward pass, counted in numbers by formula.

The counts are those of `course_kit.measuring.numbers_kept`, without the model's parameters, for PyTorch on a CPU.
"""

from __future__ import annotations

from course_kit._checks import check_instance
from course_kit.nn import TransformerConfig
from course_lib._checks import checked
from course_lib._typing import Size

__all__ = ["language_model_activations", "transformer_activations"]


@checked
def language_model_activations(
    config: TransformerConfig, length: Size, batch_size: Size = 1, *, fused: bool = True
) -> int:
    """Numbers kept by `LanguageModel` and a mean cross-entropy over all its positions.

    Per token (d = d_model, H = num_heads, L = length), a layer keeps `8 d + d_ff + 5` numbers: the inputs of its two
    norms and of its matrices, queries, keys and values, the hidden features, and five numbers of norms and mask. To
    these, attention adds its `H L` weights, or `d + H + L` if it is fused: its output, a sum per head, and the mask as
    numbers. The loss keeps the `vocab_size` log-probabilities per token. With dropout, a layer keeps another
    `2 d + 2 d_ff + 2 H L`. Each layer also keeps a copy of three projection matrices, `3 d²` for the whole batch.

    Args:
        config: sizes and choices of the model.
        length: tokens in a sequence, padding included.
        batch_size: sequences.
        fused: whether attention runs in a kernel that does not keep its weights.

    Returns:
        How many numbers are kept, masks and token ids included. Explicit attention of a single sequence or a single
        head keeps another 2 d per token and layer, since its values are then a view of queries, keys and values
        together.

    Raises:
        TypeError: config is not a TransformerConfig.
        ValueError: positions are not added to the embedding, or fused is asked for with dropout.
    """
    _check_counted(config, fused)
    per_sequence = config.num_layers * (
        _attention(config, length, length, mask=length * length, rows=length, fused=fused)
        + _feed_forward(config, length)
    ) + _ends(config, length, config.vocab_size)
    copies = config.num_layers * 3 * config.d_model**2
    return batch_size * per_sequence + copies + 1  # the loss keeps the number of its targets


@checked
def transformer_activations(
    config: TransformerConfig, len_source: Size, len_target: Size, batch_size: Size = 1, *, fused: bool = True
) -> int:
    """Numbers kept by `Transformer` and a mean cross-entropy over all target positions.

    The terms are those of `language_model_activations`. A decoder layer has a second attention, which keeps queries and
    output per target token, and keys and values per source token; all layers share the encoder's output.

    Args:
        config: sizes and choices of the model.
        len_source: tokens in a source sequence, padding included.
        len_target: tokens in a target sequence, padding included.
        batch_size: pairs of sequences.
        fused: whether attention runs in a kernel that does not keep its weights.

    Returns:
        How many numbers are kept, masks and token ids included.

    Raises:
        TypeError: config is not a TransformerConfig.
        ValueError: positions are not added to the embedding, or fused is asked for with dropout.
    """
    _check_counted(config, fused)
    padding = {"mask": len_source, "rows": 1, "fused": fused}  # (B, 1, 1, L_source), the same for all queries
    causal = {"mask": len_target * len_target, "rows": len_target, "fused": fused}
    encoder_layer = _attention(config, len_source, len_source, **padding) + _feed_forward(config, len_source)
    decoder_layer = (
        _attention(config, len_target, len_target, **causal)
        + _attention(config, len_target, len_source, **padding)
        + _feed_forward(config, len_target)
    )
    ends = _ends(config, len_source, 0) + _ends(config, len_target, config.target_vocab_size or config.vocab_size)
    copies = config.num_layers * (3 + 3 + 2) * config.d_model**2
    return batch_size * (config.num_layers * (encoder_layer + decoder_layer) + ends) + copies + 1


def _attention(config: TransformerConfig, len_q: int, len_k: int, *, mask: int, rows: int, fused: bool) -> int:
    """Norm, projections, attention and residual connection, per sequence."""
    d, pairs = config.d_model, config.num_heads * len_q * len_k
    kept = len_q * (2 * d + 2)  # inputs of norm and projections, mean and deviation
    kept += len_q * d + len_k * 2 * d  # queries; keys and values
    kept += len_q * d + rows  # the input of the output projection; which queries have a key
    kept += len_q * (d + config.num_heads) + mask if fused else pairs
    return kept + (len_q * d + 2 * pairs if config.dropout else 0)  # what dropout multiplies by, and its results


def _feed_forward(config: TransformerConfig, length: int) -> int:
    """Norm, hidden features and residual connection, per sequence."""
    kept = length * (2 * config.d_model + 2 + config.d_ff)
    return kept + (length * (config.d_model + 2 * config.d_ff) if config.dropout else 0)


def _ends(config: TransformerConfig, length: int, vocab_size: int) -> int:
    """Embedding and last norm, and the loss if there is a vocabulary to choose from, per sequence."""
    ids = 2 if vocab_size else 1  # what the embedding looks up, and the targets
    norm = config.d_model + 2 if config.norm == "pre" else 0
    dropout = config.d_model if config.dropout else 0
    return length * (ids + norm + dropout + config.d_model + vocab_size)


def _check_counted(config: TransformerConfig, fused: bool) -> None:
    check_instance(TransformerConfig, config=config)
    if config.positions in ("rotary", "alibi"):
        raise ValueError(
            f"positions must be added to the embedding, as the sinusoidal and the learned ones are, got "
            f"{config.positions!r}; measure other models with numbers_kept"
        )
    if fused and config.dropout:
        raise ValueError(
            f"fused attention must be without dropout, got dropout = {config.dropout}; pass fused=False, since PyTorch "
            f"has no fused kernel with dropout on a CPU"
        )
