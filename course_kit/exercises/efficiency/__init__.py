"""Exercises of the chapter on what attention costs, in the order of the pages."""

__all__ = ["EXERCISES"]

EXERCISES = (
    "online_softmax_step",
    "tiled_attention",
    "cache_bytes",
    "grouped_query_attention",
    "convolution_layers",
    "linear_attention",
    "speculative_acceptance",
)
