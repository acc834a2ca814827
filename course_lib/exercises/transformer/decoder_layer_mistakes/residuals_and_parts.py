"""Mistakes in `DecoderLayer`: residual connections, norms, and what the constructor builds."""

from __future__ import annotations

from course_lib.exercises._mistakes import Mistakes
from course_lib.exercises.multi_head.multi_head_attention import exercise as attention_exercise
from course_lib.exercises.transformer.decoder_layer import DecoderLayer
from course_lib.exercises.transformer.decoder_layer_mistakes.parts import decoder
from course_lib.exercises.transformer.parts_of_layers import add_inherited, add_norm_names, add_parts, layers_attending
from course_lib.exercises.transformer.residual_forms import add_ways

mistake = Mistakes()


add_ways(
    mistake,
    decoder,
    {
        "self_attention": "the self-attention",
        "cross_attention": "the cross-attention",
        "feed_forward": "the feed-forward network",
    },
)


add_norm_names(mistake, decoder, 3)


@mistake.built
def norm1_and_norm3_exchanged():
    """norm1 and norm3 are exchanged. The norms should follow the sub-layers in the order of their numbers."""
    return decoder(norms=(3, 2, 1))


@mistake.built
def norm1_again():
    """norm1 follows the cross-attention too, and norm2 comes after the feed-forward network, or not at all. Each of
    the three has its own place."""
    return decoder(norms=(1, 1, 2))


@mistake.built
def norm1_after_both_attentions():
    """norm1 follows both attentions. The cross-attention has a norm of its own: norm2."""
    return decoder(norms=(1, 1, 3))


@mistake.built
def norm2_twice():
    """norm2 follows the feed-forward network as well. That has its own norm: norm3."""
    return decoder(norms=(1, 2, 2))


add_parts(mistake, DecoderLayer, ("self_attention", "cross_attention"), ("norm1", "norm2", "norm3"))


add_inherited(mistake, DecoderLayer, ("norm1", "norm2", "norm3"))


mistake.contains(
    attention_exercise,
    layers_attending(DecoderLayer, "self_attention", "cross_attention"),
    called="attention",
    prefix="attention",
)


# A learner has one class for both attentions, so mistakes inside it affect both.
IN_ONE_PLACE = {
    "attends_across_heads",
    "biases_forgotten",
    "heads_not_split",
    "mask_added",
    "mask_after_softmax",
    "mask_filled_with_zero",
    "merged_without_transpose",
    "multiplied_by_root",
    "no_out_proj",
    "no_scale",
    "no_softmax",
    "scale_of_the_model",
    "scale_without_root",
    "softmax_over_heads",
    "softmax_over_queries",
    "values_not_projected",
    "view_straight",
    "weights_times_keys",
}


for _place in ("self_attention", "cross_attention"):
    mistake.contains(
        attention_exercise,
        layers_attending(DecoderLayer, _place),
        called=_place.replace("_", "-"),
        prefix=_place,
        without=tuple(m.key for m in attention_exercise.misconceptions if m.key not in IN_ONE_PLACE),
    )
