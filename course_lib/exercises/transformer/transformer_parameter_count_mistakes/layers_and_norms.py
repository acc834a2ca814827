"""Mistakes in `transformer_parameter_count`: layers and norms."""

from __future__ import annotations

import torch

from course_lib.exercises._headings import DECODER_LAYER, ENCODER_LAYER, RESIDUALS
from course_lib.exercises._mistakes import Mistakes
from course_lib.exercises.transformer.transformer_parameter_count_mistakes.parts import count
from course_lib.transformer import transformer_parameter_count

mistake = Mistakes()


@mistake(look="multi_head: The class MultiHeadAttention")
def three_projections(vocab_size, d_model, num_layers, d_ff):
    """An attention is counted with three projections: query, key and value. Which one comes after the heads?"""
    return count(attention=lambda d: 3 * d * d + 3 * d)(vocab_size, d_model, num_layers, d_ff)


@mistake
def out_projection_without_bias(vocab_size, d_model, num_layers, d_ff):
    """The biases of only three of the attention's four projections are counted."""
    return count(attention=lambda d: 4 * d * d + 3 * d)(vocab_size, d_model, num_layers, d_ff)


@mistake(look="multi_head: The class MultiHeadAttention")
def one_projection(vocab_size, d_model, num_layers, d_ff):
    """An attention is counted with one matrix. It has four."""
    return count(attention=lambda d: d * d + d)(vocab_size, d_model, num_layers, d_ff)


@mistake
def one_matrix_in_feed_forward(vocab_size, d_model, num_layers, d_ff):
    """The feed-forward network is counted with one of its two Linears."""
    return count(feed_forward=lambda d, f: d * f + f)(vocab_size, d_model, num_layers, d_ff)


@mistake
def second_matrix_in_feed_forward_only(vocab_size, d_model, num_layers, d_ff):
    """Of the feed-forward network only the second Linear is counted."""
    return count(feed_forward=lambda d, f: d * f + d)(vocab_size, d_model, num_layers, d_ff)


@mistake
def feed_forward_biases_of_width(vocab_size, d_model, num_layers, d_ff):
    """Both biases of the feed-forward network are counted with d_ff numbers. How many output features does the second
    have?"""
    return count(feed_forward=lambda d, f: 2 * d * f + 2 * f)(vocab_size, d_model, num_layers, d_ff)


@mistake
def feed_forward_biases_of_model(vocab_size, d_model, num_layers, d_ff):
    """Both biases of the feed-forward network are counted with d_model numbers. How many output features does the first
    have?"""
    return count(feed_forward=lambda d, f: 2 * d * f + 2 * d)(vocab_size, d_model, num_layers, d_ff)


@mistake
def feed_forward_output_bias_only(vocab_size, d_model, num_layers, d_ff):
    """The feed-forward network has another bias, of its first Linear."""
    return count(feed_forward=lambda d, f: 2 * d * f + d)(vocab_size, d_model, num_layers, d_ff)


@mistake
def width_ignored(vocab_size, d_model, num_layers, d_ff):
    """The feed-forward network is counted as four times as wide as the model. Its width is d_ff."""
    return count(feed_forward=lambda d, f: 8 * d * d + 5 * d)(vocab_size, d_model, num_layers, d_ff)


@mistake
def no_feed_forward(vocab_size, d_model, num_layers, d_ff):
    """The feed-forward networks are not counted."""
    return count(feed_forward=lambda d, f: 0)(vocab_size, d_model, num_layers, d_ff)


@mistake
def no_attention(vocab_size, d_model, num_layers, d_ff):
    """The attentions are not counted."""
    return count(attentions=(0, 0))(vocab_size, d_model, num_layers, d_ff)


@mistake(look=DECODER_LAYER)
def no_cross_attention(vocab_size, d_model, num_layers, d_ff):
    """A decoder layer is counted with one attention. It attends to the target and to the source, each with its own
    weights."""
    return count(attentions=(1, 1))(vocab_size, d_model, num_layers, d_ff)


@mistake(look=DECODER_LAYER)
def two_encoders(vocab_size, d_model, num_layers, d_ff):
    """The decoder's layers are counted as encoder layers. What do they have in addition?"""
    return count(attentions=(1, 1), norms=(2, 2))(vocab_size, d_model, num_layers, d_ff)


@mistake(look=ENCODER_LAYER)
def two_decoders(vocab_size, d_model, num_layers, d_ff):
    """The encoder's layers are counted as decoder layers. What do they not have?"""
    return count(attentions=(2, 2), norms=(3, 3))(vocab_size, d_model, num_layers, d_ff)


@mistake(look=DECODER_LAYER)
def two_norms_in_decoder(vocab_size, d_model, num_layers, d_ff):
    """2 · d_model parameters are missing from each pair of layers: the third norm of the decoder layer, or the biases
    of both second Linears."""
    return count(norms=(2, 2))(vocab_size, d_model, num_layers, d_ff)


@mistake(look=ENCODER_LAYER)
def three_norms_in_encoder(vocab_size, d_model, num_layers, d_ff):
    """An encoder layer is counted with three norms. One follows each of its two sub-layers."""
    return count(norms=(3, 3))(vocab_size, d_model, num_layers, d_ff)


@mistake(look=RESIDUALS)
def one_norm_a_layer(vocab_size, d_model, num_layers, d_ff):
    """Each layer is counted with one norm. One follows each sub-layer."""
    return count(norms=(1, 1))(vocab_size, d_model, num_layers, d_ff)


@mistake(look=RESIDUALS)
def no_norms(vocab_size, d_model, num_layers, d_ff):
    """The norms are not counted. Each has a gain and a bias."""
    return count(norms=(0, 0))(vocab_size, d_model, num_layers, d_ff)


@mistake(look=RESIDUALS)
def gain_only(vocab_size, d_model, num_layers, d_ff):
    """Each norm is counted with d_model numbers. It has a gain and a bias."""
    return count(norm=lambda d: d)(vocab_size, d_model, num_layers, d_ff)


@mistake(look=RESIDUALS)
def two_numbers_a_norm(vocab_size, d_model, num_layers, d_ff):
    """Each norm is counted with two numbers. It has a gain and a bias for every feature."""
    return count(norm=lambda d: 2)(vocab_size, d_model, num_layers, d_ff)


@mistake(look=ENCODER_LAYER)
def encoder_only(vocab_size, d_model, num_layers, d_ff):
    """Only the encoder's layers are counted."""
    return count(stacks=(1, 0))(vocab_size, d_model, num_layers, d_ff)


@mistake(look=DECODER_LAYER)
def decoder_only(vocab_size, d_model, num_layers, d_ff):
    """Only the decoder's layers are counted."""
    return count(stacks=(0, 1))(vocab_size, d_model, num_layers, d_ff)


@mistake
def layers_shared(vocab_size, d_model, num_layers, d_ff):
    """The number of layers makes no difference. Each layer has weights of its own."""
    return transformer_parameter_count(vocab_size, d_model, 1, d_ff)


@mistake
def layers_in_all(vocab_size, d_model, num_layers, d_ff):
    """num_layers layers are counted in all. The encoder has that many, and so has the decoder."""
    return vocab_size * d_model + (transformer_parameter_count(0, d_model, 1, d_ff) * num_layers) // 2


@mistake
def float_on_the_way(*sizes):
    """Right for small models, but some digits are lost for large ones, because the number has been converted to a
    float. `/` gives a float; products and sums of ints do not."""
    return int(float(transformer_parameter_count(*sizes)))


@mistake
def tensor_result(*sizes):
    """The number is returned in a tensor. A count is a Python int."""
    return torch.tensor(transformer_parameter_count(*sizes))


@mistake
def float_result(*sizes):
    """The number is right, but its type is not: a count is an int. `/` and `**` with a fraction give a float, which is
    not exact for large numbers."""
    return float(transformer_parameter_count(*sizes))
