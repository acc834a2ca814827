"""What is built on the reference, `course_lib`: exercises and their check, small models, figures, a translator.

    try what you wrote      check, hint, solution, progress, yours; assemble, assemble_set_encoder, train_on with a
                            task: reversal, copy, sort, anomaly
    a model's faults        diagnose
    the real translator     pretrained, Translator, Recipe; course_kit.translator.trainer.train
    a recurrent baseline    RecurrentEncoderDecoder

    layers and models       nn: the classes of course_lib with dropout, caches, position codes, configurations

Import everything else from its module:

    viz                     figures, diagrams and interactive views
    exercises, checker      the exercises, and what judges a solution and names its mistake
    workshop                small tasks, and models from a learner's own parts
    data, translator        corpora and vocabulary; training, batched decoding, the translator and its commands
    language_model          published language models in the course's blocks, and the command generate
    bert, interpret         trained encoders in the course's blocks, and ways to examine them
    costs                   what layers and training cost, by formula and counted
    diagnosing              all measurements of the chapter on debugging, on any model
    flash_attention         attention in tiles, with its backward pass; `chunked_linear_attention`
    beam_trace              all that a beam search considers, for a view of it
    shared_key_attention    grouped-query and latent attention; `window_cache`: a key–value cache of fixed size
    speculative             a small model that drafts for a large one
    stats, measuring        intervals and rank correlation; memory, counted in stored numbers
    chapters                the list of chapters
"""

import importlib

# Loaded when asked for: a page needs a few of them.
_HOMES = {
    "RecurrentEncoderDecoder": "recurrent",
    "Recipe": "translator.recipe",
    "Translator": "translator.translator",
    "anomaly": "workshop.tasks",
    "assemble": "workshop.assemble",
    "assemble_set_encoder": "workshop.assemble",
    "check": "checker.notebook",
    "copy": "workshop.tasks",
    "diagnose": "diagnosing",
    "hint": "checker.notebook",
    "pretrained": "translator.translator",
    "progress": "checker.notebook",
    "reversal": "workshop.tasks",
    "solution": "checker.notebook",
    "sort": "workshop.tasks",
    "train_on": "workshop.train_on",
    "yours": "checker.notebook",
}


def __getattr__(name: str):
    if name == "nn":
        return importlib.import_module("course_kit.nn")
    if name in _HOMES:
        return getattr(importlib.import_module(f"course_kit.{_HOMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = [
    "Recipe",
    "RecurrentEncoderDecoder",
    "Translator",
    "anomaly",
    "assemble",
    "assemble_set_encoder",
    "check",
    "copy",
    "diagnose",
    "hint",
    "pretrained",
    "progress",
    "reversal",
    "solution",
    "sort",
    "train_on",
    "yours",
]
