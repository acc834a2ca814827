"""Text to learn from: parallel corpora, a subword vocabulary, and translation as a task.

`load_corpus` gives Multi30k where it can be had, and captions of the course's own grammar where not. The small tasks
without text (copy, reversal, sort, anomaly) are in `course_lib.tasks`; all share one interface, `Task`.
"""

from course_lib.data.corpus import ParallelCorpus, built_in_corpus
from course_lib.data.multi30k import load_corpus, multi30k
from course_lib.data.translation import SplitFigures, TranslationTask
from course_lib.data.vocabulary import Vocabulary

__all__ = [
    "ParallelCorpus",
    "SplitFigures",
    "TranslationTask",
    "Vocabulary",
    "built_in_corpus",
    "load_corpus",
    "multi30k",
]
