"""The mistakes in `corpus_bleu` by theme, in the order in which they are tried."""

from course_lib.exercises._mistakes import Mistakes
from course_lib.exercises.decoding.corpus_bleu_mistakes import corpus, means_and_penalties, ngrams, usual

__all__ = ["mistake"]

mistake = Mistakes(usual, ngrams, means_and_penalties, corpus)
