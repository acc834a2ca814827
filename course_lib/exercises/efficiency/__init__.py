"""Exercises of the chapter on what attention costs, in the order of the pages."""

__all__ = ["EXERCISES"]

EXERCISES: tuple[str, ...] = ("cache_bytes", "grouped_query_attention", "linear_attention", "speculative_acceptance")
