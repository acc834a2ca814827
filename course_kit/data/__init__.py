"""Text to learn from: parallel corpora and a subword vocabulary.

`load_corpus` gives Multi30k where it can be had, and captions of the course's own grammar where not. Batches of these
texts are made by `course_kit.translator.TranslationTask`; tasks without text are in `course_kit.workshop.tasks`.
"""

from course_kit.data.corpus import ParallelCorpus, built_in_corpus
from course_kit.data.multi30k import load_corpus, multi30k
from course_kit.data.vocabulary import Vocabulary

__all__ = ["ParallelCorpus", "Vocabulary", "built_in_corpus", "load_corpus", "multi30k"]
