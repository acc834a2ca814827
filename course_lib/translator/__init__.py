"""The German–English translator: how it is trained, how it writes, and what it is worth.

`recipe` has all choices, `task` the batches, `trainer` the training, `fast_loss` label smoothing in less time;
`search` writes (greedy, beam, sampling, whole batches with a cache), `alignments` compares attention with word
alignments, and `translator` puts it all behind text in, text out. `commands` are `course-lib train`, `translate` and
`evaluate`.
"""

from course_lib.translator.recipe import Recipe
from course_lib.translator.task import SplitFigures, TranslationTask
from course_lib.translator.translator import PRETRAINED, Scores, Translation, Translator, pretrained

__all__ = [
    "PRETRAINED",
    "Recipe",
    "Scores",
    "SplitFigures",
    "Translation",
    "TranslationTask",
    "Translator",
    "pretrained",
]
