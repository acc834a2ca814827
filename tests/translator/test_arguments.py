"""One wrong argument in the translator, its parts and its data: refused by name, or computed as the signature says."""

from __future__ import annotations

import dataclasses
import random
from tempfile import TemporaryDirectory

import torch
from wrong_arguments import Call, floats, right_and_wrong

from course_kit.bert import BertConfig
from course_kit.data import Vocabulary, built_in_corpus, load_corpus
from course_kit.nn import Transformer, TransformerConfig
from course_kit.translator import Recipe, TranslationTask, Translator, pretrained
from course_kit.translator.alignments import alignment_counts
from course_kit.translator.fast_loss import chunked_label_smoothing_loss
from course_kit.translator.search import beam, greedy, next_token_distribution, sample
from course_kit.translator.trainer import train

torch.manual_seed(0)
CORPUS = built_in_corpus(num_train=20, num_held_out=5)
VOCABULARY = Vocabulary.learn(CORPUS.sentences("train"), 100)
MODEL = Transformer(TransformerConfig(vocab_size=100, d_model=8, num_heads=2, num_layers=1, d_ff=8)).eval()
TRANSLATOR = Translator(MODEL, VOCABULARY)
TASK = TranslationTask(CORPUS, VOCABULARY)
RECIPE = Recipe(vocab_size=100, d_model=8, num_heads=2, num_layers=1, d_ff=8, epochs=1, precision="32-true")
OUT = TemporaryDirectory()  # what is written with arguments that are right
TRANSLATOR.save(f"{OUT.name}/translator")
SENTENCES, PAIRS = ["Ein Hund.", "Zwei Hunde."], [("Ein Hund.", "A dog."), ("Zwei Hunde.", "Two dogs.")]
FREE = "another text.*"  # a text says anything
TEXTS = "another text.*|empty"
OF_SENTENCES = {"called": {"sentences": "sentence"}, "open": {"sentences": TEXTS}}
OF_SEARCH = {"called": {"source": "tokens"}, "open": {"source": "bool|bytes"}}
SHARES = {"label_smoothing": 0.1, "bpe_dropout": 0.1}
SETTINGS = dataclasses.asdict(dataclasses.replace(RECIPE, **SHARES, weight_decay=0.1))
del SETTINGS["precision"]  # Lightning refuses what it does not know
SIZES = {"corpus": CORPUS, "vocabulary": VOCABULARY, "max_tokens": 64, **SHARES, "max_length": 50}
TRAIN = {
    "task": TASK, "recipe": RECIPE, "model": Transformer(RECIPE.model_config()), "accelerator": "cpu", "devices": 1,
    "strategy": "auto", "show_progress": False, "stop_after": 1,
}  # fmt: skip
BERT = {
    "family": "bert", "vocab_size": 9, "d_model": 4, "num_heads": 2, "num_layers": 1, "d_ff": 8, "max_positions": 7,
    "num_segments": 2, "pad_id": 0, "activation": "gelu", "norm_eps": 1e-12, "dropout": 0.1, "attention_dropout": 0.1,
}  # fmt: skip
SEARCH = {"model": MODEL, "source": torch.tensor([[5, 6, 0], [5, 5, 6]]), "bos_id": 2, "eos_id": 3, "max_length": 3}

CALLS = {
    "translate": Call(
        TRANSLATOR.translate,
        {"sentences": SENTENCES, "beam_size": 2, "length_penalty": 1.0, "max_tokens": 64},
        **OF_SENTENCES,
    ),
    "hypotheses": Call(
        TRANSLATOR.hypotheses,
        {"sentences": SENTENCES, "beam_size": 2, "num_best": 1, "length_penalty": 1.0, "max_tokens": 64},
        **OF_SENTENCES,
    ),
    "samples": Call(
        TRANSLATOR.samples,
        {"sentences": SENTENCES, "temperature": 1.0, "top_k": 3, "top_p": 0.9, "seed": 0, "max_tokens": 64},
        **OF_SENTENCES,
    ),
    "encode": Call(TRANSLATOR.encode, {"sentences": SENTENCES}, called={"sentences": "sentence"}),
    "unknown_share": Call(TRANSLATOR.unknown_share, {"sentence": "Ein Hund."}),
    "attention": Call(
        TRANSLATOR.attention, {"sentence": "Ein Hund.", "translation": [5, 6], "layer": 0}, open={"translation": "text"}
    ),
    "perplexity": Call(TRANSLATOR.perplexity, {"pairs": PAIRS, "max_tokens": 64}, called={"pairs": "pair"}),
    "evaluate": Call(TRANSLATOR.evaluate, {"pairs": PAIRS}, called={"pairs": "pair"}),
    "Translator": Call(Translator, {"model": MODEL, "vocabulary": VOCABULARY, "max_source_tokens": 64}),
    "Translator.save": Call(
        TRANSLATOR.save,
        {"folder": f"{OUT.name}/saved", "card": "A card.", "about": {"seed": 0}},
        open={"folder": FREE, "card": FREE, "about": "None"},
    ),
    "Translator.load": Call(Translator.load, {"folder": f"{OUT.name}/translator"}),
    "pretrained": Call(pretrained, {"name": "multi30k-de-en"}),
    "train": Call(
        train,
        TRAIN,
        called={"model": "Linear|Flatten|model"},
        open={"model": "None", "devices": "text", "stop_after": "None|huge"},  # "3" are three processes
    ),
    "train.out": Call(
        lambda out: train(TASK, RECIPE, out=out, accelerator="cpu", show_progress=False),
        {"out": None},
        covers=(),
        open={"out": "None|text"},  # those train
    ),
    "Recipe": Call(Recipe, SETTINGS),
    "Recipe.rate": Call(Recipe().rate, {"step": 3, "total_steps": 9}),
    "Vocabulary.learn": Call(
        Vocabulary.learn, {"sentences": [*CORPUS.sentences("train")], "size": 100}, open={"sentences": TEXTS}
    ),
    "Vocabulary.encode": Call(VOCABULARY.encode, {"sentence": "Ein Hund."}, open={"sentence": FREE}),
    "Vocabulary.encode_all": Call(VOCABULARY.encode_all, {"sentences": SENTENCES}, open={"sentences": TEXTS}),
    "Vocabulary.encode_all_at_random": Call(
        lambda sentences, dropout: VOCABULARY.encode_all_at_random(sentences, dropout, random.Random(0)),
        {"sentences": SENTENCES, "dropout": 0.1},
        open={"sentences": TEXTS},
    ),
    "Vocabulary.decode": Call(VOCABULARY.decode, {"ids": [5, 6]}, called={"ids": "token ids"}),
    "Vocabulary.tokens": Call(VOCABULARY.tokens, {"ids": [5, 6]}, called={"ids": "token ids"}),
    "Vocabulary.from_json": Call(Vocabulary.from_json, {"text": VOCABULARY.to_json()}),
    "built_in_corpus": Call(
        lambda **sizes: built_in_corpus(**sizes)["val"], {"num_train": 5, "num_held_out": 2}, covers=(built_in_corpus,)
    ),
    "load_corpus": Call(load_corpus, {"name": "built-in"}),
    "TranslationTask": Call(TranslationTask, SIZES),
    "TranslationTask.held_out": Call(TASK.held_out, {"size": 2, "number": 0}),
    "TranslationTask.epoch": Call(TASK.epoch, {"number": 1, "seed": 0}),
    "TranslationTask.split": Call(TASK.split, {"name": "val"}, called={"name": "splits"}, open={"name": "list"}),
    "TranslationTask.pairs": Call(TASK.pairs, {"pairs": PAIRS}),
    "greedy": Call(greedy, SEARCH, **OF_SEARCH),
    "beam": Call(beam, {**SEARCH, "beam_size": 2, "length_penalty": 0.5, "num_best": 1}, **OF_SEARCH),
    "sample": Call(
        sample,
        {**SEARCH, "temperature": 1.0, "top_k": 3, "top_p": 0.9, "num_samples": 2},
        **OF_SEARCH,
        draws=True,
    ),
    "next_token_distribution": Call(
        next_token_distribution, {"logits": floats(3, 5), "temperature": 1.0, "top_k": 3, "top_p": 0.9}
    ),
    "chunked_label_smoothing_loss": Call(
        chunked_label_smoothing_loss,
        {"logits": floats(3, 5), "targets": torch.tensor([1, 4, 0]), "smoothing": 0.1, "pad_id": 0},
    ),
    "alignment_counts": Call(alignment_counts, {"predicted": [(0, 1)], "sure": [(0, 1)], "possible": [(1, 1)]}),
    "BertConfig": Call(BertConfig, BERT),
}


test_the_documented_shapes_come_out, test_a_wrong_argument_is_refused_by_name_or_computed = right_and_wrong(CALLS)
