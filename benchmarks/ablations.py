"""What each choice of the recipe is worth: small models on Multi30k, one switch each, equal budgets, three seeds.

    python -m benchmarks.ablations          run what is missing, a line of results a run
    python -m benchmarks.ablations --table  print the table

Each run trains a model of about a million parameters for the same number of epochs and is measured on the validation
set: perplexity per token, and BLEU of greedy translations. Results are kept as they come, so that a run of hours can be
stopped and gone on with. The page `training_recipes` shows them. The last three rows were run later than the others, on
another machine; there the base's first seed has 9.62 and 25.70 instead of 9.61 and 25.90.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import statistics
import time
from collections.abc import Sequence
from pathlib import Path

import torch

from course_kit._files import write_whole
from course_kit.data import Vocabulary, load_corpus
from course_kit.translator import PRETRAINED, TranslationTask, Translator
from course_kit.translator.recipe import Recipe
from course_kit.translator.trainer import train

RESULTS = PRETRAINED / "multi30k-de-en/ablations.json"
SEEDS = (0, 1, 2)
BASE = Recipe(
    vocab_size=2000,
    d_model=128,
    num_heads=4,
    num_layers=2,
    d_ff=256,
    dropout=0.1,
    positions="sinusoidal",
    bpe_dropout=0.0,
    epochs=3,
    max_tokens=1024,
    learning_rate=2e-3,
    embedding_rate=1.0,
    warmup_steps=400,
    precision="32-true",
)
PAPER = dataclasses.replace(BASE, norm="post", schedule="inverse_sqrt", learning_rate=1.5e-3)
FIXED = {"schedule": "constant", "warmup_steps": 1, "learning_rate": 5e-4}
# group, what is switched, recipe
RUNS = (
    ("paper or BERT", "the paper's recipe", PAPER),
    ("paper or BERT", "learned positions", dataclasses.replace(PAPER, positions="learned")),
    ("paper or BERT", "fixed rate", dataclasses.replace(PAPER, **FIXED)),
    ("paper or BERT", "no label smoothing", dataclasses.replace(PAPER, label_smoothing=0.0)),
    (
        "paper or BERT",
        "all three: BERT's recipe",
        dataclasses.replace(PAPER, positions="learned", label_smoothing=0.0, **FIXED),
    ),
    ("one switch each", "none: the base", BASE),
    ("one switch each", "embeddings not tied", dataclasses.replace(BASE, tie_embeddings=False)),
    ("one switch each", "no label smoothing", dataclasses.replace(BASE, label_smoothing=0.0)),
    ("one switch each", "no warm-up", dataclasses.replace(BASE, warmup_steps=1)),
    ("one switch each", "learned positions", dataclasses.replace(BASE, positions="learned")),
    ("one switch each", "rotary positions", dataclasses.replace(BASE, positions="rotary")),
    ("one switch each", "post-norm", dataclasses.replace(BASE, norm="post")),
    ("one switch each", "BPE-dropout 0.1", dataclasses.replace(BASE, bpe_dropout=0.1)),
    ("one switch each", "dropout 0.3", dataclasses.replace(BASE, dropout=0.3)),
    ("one switch each", "embeddings at 3 × the rate", dataclasses.replace(BASE, embedding_rate=3.0)),
    ("one switch each", "rotary, embeddings at 3 ×", dataclasses.replace(BASE, positions="rotary", embedding_rate=3.0)),
)


def run_missing(path: Path = RESULTS, seeds: Sequence[int] = SEEDS) -> None:
    """Every run that has no result yet with its recipe of today, seed by seed: a stopped series has all rows."""
    results = read_results(path)
    done = {(r["group"], r["switch"], r["seed"]) for r in results}
    corpus = load_corpus("multi30k")
    vocabulary = Vocabulary.learn(corpus.sentences("train"), BASE.vocab_size)
    for seed in seeds:
        for group, switch, recipe in RUNS:
            if (group, switch, seed) in done:
                continue
            started = time.process_time()
            figures = measure(corpus, vocabulary, dataclasses.replace(recipe, seed=seed))
            row = {"group": group, "switch": switch, "seed": seed, **figures}
            results.append({**row, "recipe": {**recipe.to_dict(), "seed": seed}})
            path.parent.mkdir(parents=True, exist_ok=True)
            write_whole(path, json.dumps(results, indent=1) + "\n")
            print(f"{group:16} {switch:28} {seed}  {figures}  {time.process_time() - started:.0f} s", flush=True)


def read_results(path: Path) -> list[dict]:
    """The results in a file whose recipe is that of today; others are named, and left out."""
    results = json.loads(path.read_text()) if path.exists() else []
    today = {(group, switch): recipe.to_dict() for group, switch, recipe in RUNS}
    kept = []
    for result in results:
        recipe = BASE.to_dict() | result["recipe"]  # a setting that is newer than the result had the base's value
        if recipe == {**today.get((result["group"], result["switch"]), {}), "seed": result["seed"]}:
            kept.append(result)
        else:
            print(f"left out, of another recipe: {result['group']}, {result['switch']}, seed {result['seed']}")
    return kept


def measure(corpus, vocabulary: Vocabulary, recipe: Recipe) -> dict[str, float]:
    """Train by a recipe; perplexity and BLEU on the validation set."""
    from sacrebleu import corpus_bleu

    model, history = train(TranslationTask(corpus, vocabulary), recipe, accelerator="cpu", show_progress=False)
    source, target = zip(*corpus["val"], strict=True)
    translations = Translator(model, vocabulary).translate(source, beam_size=1)
    return {
        "val_perplexity": round(history[-1]["val_perplexity"], 3),
        "val_bleu": round(corpus_bleu(translations, [list(target)]).score, 2),
        "parameters": sum(p.numel() for p in model.parameters()),
    }


def table(path: Path = RESULTS) -> str:
    """Mean and spread over the seeds of each run, as text."""
    results = read_results(path)
    lines = []
    for group, switch, _ in RUNS:
        rows = [r for r in results if (r["group"], r["switch"]) == (group, switch)]
        if rows:
            columns = [[r[name] for r in rows] for name in ("val_perplexity", "val_bleu")]
            shown = [f"{statistics.mean(c):6.2f} ({min(c):.2f} – {max(c):.2f})" for c in columns]
            lines.append(f"{group:16} {switch:28} {len(rows)} seeds  {'   '.join(shown)}")
    return "\n".join(lines)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--table", action="store_true", help="print what is there")
    parser.add_argument("--seeds", type=int, nargs="+", default=SEEDS, metavar="N", help="only these (default: all)")
    parser.add_argument(
        "--results", type=Path, default=RESULTS, metavar="FILE", help="where they are kept; one process a file"
    )
    options = parser.parse_args()
    if options.table:
        print(table(options.results))
    else:
        torch.set_num_threads(1)
        run_missing(options.results, options.seeds)
