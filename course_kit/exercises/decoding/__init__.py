"""Exercises of the chapter on decoding, in the order of the page."""

__all__ = ["EXERCISES"]

EXERCISES = ("greedy_decode", "beam_search", "top_p_filter", "corpus_bleu", "cached_attention")
