"""The German–English translator: how it is trained, how it writes, and what it is worth.

`recipe` has all choices, `task` the sentence pairs, and `trainer` the training: `batches` of each epoch, the loop of
`course_kit.workshop.training_loop`, `validation` after each epoch, `checkpoints`, and `devices` (Lightning Fabric);
`fast_loss` and `dropout` save time on a CPU. `search` decodes whole batches (greedy, beam, sampling), with
`search_arguments` checked first, logits from `steps` (with a cache or without), tokens from `next_token` and
`hypotheses` as the result. `scores` are BLEU, chrF and the perplexity of a corpus, and `alignments` compares attention
with word alignments. `translator` puts it all behind text in, text out; `slices` are its batches, and `folder` is where
it is saved. `commands` are `course-lib train`, `translate` and `evaluate`.
"""

from course_kit.translator.recipe import Recipe
from course_kit.translator.scores import Scores
from course_kit.translator.task import SplitFigures, TranslationTask
from course_kit.translator.translator import PRETRAINED, Translation, Translator, pretrained

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
