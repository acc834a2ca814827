"""The mistakes in `corpus_bleu` by theme, in the order in which they are tried."""

from course_lib.exercises._mistakes import Mistakes
from course_lib.exercises.decoding.corpus_bleu_mistakes import corpus, counts_and_penalty, means_and_penalties, ngrams

__all__ = ["mistake"]

mistake = Mistakes(counts_and_penalty, ngrams, means_and_penalties, corpus)
