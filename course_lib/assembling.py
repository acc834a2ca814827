"""Put a transformer together from parts that you wrote yourself: `assemble`.

What you solved in the exercises goes in, what you did not comes from the course, and `course_lib.tasks.train_on` shows
whether it learns.
"""

from __future__ import annotations

import contextlib
import functools
import html
import inspect
import io
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from course_lib._typing import Bool, Float, Int
from course_lib.attention import dot_product_score
from course_lib.masking import causal_mask, decoder_mask, masked_softmax, padding_mask
from course_lib.models import Decoder, Encoder, Transformer, TransformerConfig
from course_lib.multi_head import MultiHeadAttention, merge_heads, split_heads
from course_lib.positional_encoding import (
    AlibiPosition,
    LearnedPositionalEmbedding,
    RotaryPosition,
    alibi_bias,
    apply_rotary,
    sinusoidal_encoding,
)
from course_lib.scaled_dot_product import scaled_dot_product_attention
from course_lib.transformer import DecoderLayer, EncoderLayer, FeedForward, layer_norm

__all__ = ["AssembledSetEncoder", "AssembledTransformer", "assemble", "assemble_set_encoder"]

# Which part does the work of which others: where yours is given, those need not be listed, and cannot be called.
_CONTAINS = {
    "MultiHeadAttention": ("split_heads", "scaled_dot_product_attention", "merge_heads"),
    "scaled_dot_product_attention": ("masked_softmax", "attend", "softmax"),
    "decoder_mask": ("causal_mask",),
}
_POSITIONS = {
    "sinusoidal": "sinusoidal_encoding",
    "learned": "LearnedPositionalEmbedding",
    "rotary": "apply_rotary",
    "alibi": "alibi_bias",
}
_YOURS, _OURS, _STUB = "yours", "the course's", "the course's (yours is a stub)"


def assemble(
    *parts: Callable | Mapping[str, Callable],
    vocab_size: int,
    d_model: int = 64,
    num_heads: int = 4,
    d_ff: int = 128,
    num_layers: int = 2,
    pad_id: int = 0,
    positions: str | None = None,
    max_length: int = 512,
    seed: int = 0,
) -> AssembledTransformer:
    """An encoder–decoder from your parts; what you do not give comes from the course.

        model = assemble(softmax, split_heads, EncoderLayer, vocab_size=13)
        model  # shows what is whose

    The model is that of the exercises' contracts: post-norm, no dropout, embedding · √d_model + positions, one matrix for
    source, target and output. A part is put in wherever it has its place: your `FeedForward` into your `EncoderLayer` and
    into the course's `DecoderLayer`. A part that is still a stub is replaced by the course's.

    The weights are drawn from the seed in the order of their names, so that they do not depend on whose parts hold
    them. The global random state is left as it was.

    Args:
        parts: functions and classes that solve exercises, recognised by their names. One of another name is given in a
            dictionary from the exercise's name: `{"layer_norm": my_norm}`.
        vocab_size: number of tokens; a task has it as `task.vocab_size`.
        d_model: features of a position.
        num_heads: H, divides d_model.
        d_ff: hidden features of the feed-forward network.
        num_layers: in the encoder, and as many in the decoder.
        pad_id: the token that fills up short sequences.
        positions: "sinusoidal", "learned", "rotary", "alibi" or "none". Not given: the first of the four that you wrote
            and that can be put in, and sinusoidal where there is none.
        max_length: binds learned positions only.
        seed: of the initial weights.

    Returns:
        A `course_lib.Transformer` with an attribute `parts`, from the name of each part to whose it is.

    Raises:
        TypeError: a part is no function or class.
        ValueError: a part has an unknown name or no place here, comes twice, fails on a tiny input, or gives a wrong shape or
            dtype; or sizes do not fit, see `TransformerConfig`.
    """
    kit = _Kit(parts, d_model=d_model, num_heads=num_heads, d_ff=d_ff)
    config = TransformerConfig(
        vocab_size=vocab_size,
        d_model=d_model,
        num_heads=num_heads,
        num_layers=num_layers,
        d_ff=d_ff,
        dropout=0.0,
        positions=kit.choose_positions(positions),
        max_length=max_length,
        pad_id=pad_id,
    )
    # TODO
