"""Exercises of the chapter on the transformer"s layers, in the order of the page."""

__all__ = ["EXERCISES"]

EXERCISES = ("layer_norm", "feed_forward", "encoder_layer", "decoder_layer", "transformer_parameter_count")
