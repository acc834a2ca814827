"""Training runs of a second or two: their tasks and recipes, and how two of them are compared."""

import torch
import torch.nn.functional as F
from torch import nn

from course_kit.data import Vocabulary, built_in_corpus
from course_kit.translator import TranslationTask
from course_kit.translator.recipe import Recipe

TINY = {"d_model": 16, "num_heads": 2, "num_layers": 1, "d_ff": 24, "dropout": 0.1, "precision": "32-true"}
REVERSAL = Recipe(vocab_size=13, epochs=3, warmup_steps=50, learning_rate=3e-3, positions="sinusoidal", **TINY)
CAPTIONS = Recipe(vocab_size=250, epochs=2, warmup_steps=10, max_tokens=256, **TINY)
QUIET = {"accelerator": "cpu", "show_progress": False}


def made_task(num_train=120):
    corpus = built_in_corpus(num_train=num_train, num_held_out=30)
    return TranslationTask(corpus, Vocabulary.learn(corpus.sentences("train"), 250), max_tokens=256, bpe_dropout=0.1)


def same(one: nn.Module, other: nn.Module) -> bool:
    pairs = zip(one.state_dict().values(), other.state_dict().values(), strict=True)
    return all(torch.equal(a, b) for a, b in pairs)


def loss_per_token(model, task):
    """Of "val", each pair by itself."""
    total, count = 0.0, 0
    for pair in task.corpus["val"]:
        batch = task.pairs([pair])
        with torch.no_grad():
            total += F.cross_entropy(model(batch.source, batch.inputs)[0], batch.labels[0], reduction="sum").item()
        count += batch.labels.shape[1]
    return total / count
