"""The German–English translator: how it is trained, how it writes, and what it is worth.

`recipe` has all choices, `task` the sentence pairs, and `trainer` the training: `batches` of each epoch, the loop of
`course_lib.workshop.training_loop`, `validation` after each epoch, `checkpoints`, and `devices` (Lightning Fabric);
`fast_loss` and `dropout` save time on a CPU. `search` writes (greedy, beam, sampling, whole batches with a cache),
`alignments` compares attention with word alignments, and `translator` puts it all behind text in, text out. `commands`
are `course-lib train`, `translate` and `evaluate`.
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
