"""Mistakes in `EncoderLayer`: residual connections, norms, and what the constructor builds."""

from __future__ import annotations

from course_lib.exercises._mistakes import Mistakes
from course_lib.exercises.multi_head.multi_head_attention import exercise as attention_exercise
from course_lib.exercises.transformer.encoder_layer import EncoderLayer
from course_lib.exercises.transformer.encoder_layer_mistakes.parts import encoder
from course_lib.exercises.transformer.parts_of_layers import add_inherited, add_norm_names, add_parts, layers_attending
from course_lib.exercises.transformer.residual_forms import add_ways

mistake = Mistakes()


add_ways(mistake, encoder, {"attention": "the attention", "feed_forward": "the feed-forward network"})


add_norm_names(mistake, encoder, 2)


add_parts(mistake, EncoderLayer, ("self_attention",), ("norm1", "norm2"))


add_inherited(mistake, EncoderLayer, ("norm1", "norm2"))


mistake.contains(
    attention_exercise, layers_attending(EncoderLayer, "self_attention"), called="attention", prefix="attention"
)
