"""Put a trained translator into the package: weights, history, scores, model card.

    python -m tools.pretrained RUN [RUN …]

Each RUN is a folder that `course-lib train --out RUN` wrote, one a seed. The first is the one that is put in; the
others are scored beside it, for the spread. This is the only place where a test set is read, once for each model: a run
whose scores are in the package already keeps them.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import shutil
import statistics
from pathlib import Path

import yaml

from course_kit._files import write_whole
from course_kit.data import load_corpus
from course_kit.translator import PRETRAINED, Translator
from course_kit.translator.recipe import Recipe

NAME = "multi30k-de-en"
SPLITS = ("val", "test_2016_flickr")
BEAM, LENGTH_PENALTY = 5, 1.0
OTHER_SEARCHES = (1, 1.0), (5, 0.6), (5, 1.4)  # beam, length penalty: what else was tried, on the first split


def publish(runs: list[Path], target: Path) -> None:
    """Score every run, and write the first one's translator with all the scores into the target folder."""
    corpus = load_corpus("multi30k")
    search = {"beam": BEAM, "length_penalty": LENGTH_PENALTY}
    scored = json.loads((target / "scores.json").read_text()) if (target / "scores.json").exists() else []
    known = {row.get("weights_sha256"): row for row in scored if search.items() <= row.items()}
    rows: list[dict] = []
    for run in runs:
        config = json.loads((run / "translator/config.json").read_text(encoding="utf-8"))
        weights = config["sha256"]["weights.safetensors"]
        if weights in known:
            rows.append(known[weights])
            continue
        translator = Translator.load(run / "translator")
        row = {name: config["recipe"][name] for name in ("seed", "epochs")} | search
        row |= {name: config["this_run"][name] for name in ("cpu_minutes", "minutes")} | {"weights_sha256": weights}
        for split in SPLITS:
            scores, _ = translator.evaluate(corpus[split], beam_size=BEAM, length_penalty=LENGTH_PENALTY)
            row[split] = dataclasses.asdict(scores)
            print(f"{run}, {split}:\n{scores}\n", flush=True)
        rows.append(row)
    first = Translator.load(runs[0] / "translator")
    if "other_searches" not in rows[0]:
        rows[0]["other_searches"] = [
            {"beam": beam, "length_penalty": penalty, "bleu": _bleu(first, corpus[SPLITS[0]], beam, penalty)}
            for beam, penalty in OTHER_SEARCHES
        ]
    config = json.loads((runs[0] / "translator/config.json").read_text(encoding="utf-8"))
    kept = {name: config[name] for name in ("corpus", "recipe", "best", "this_run")}
    kept["precision"] = config["precision"] = json.loads((runs[0] / "run.json").read_text())["precision"]
    first.save(target, card=card(config, rows, first), about=kept)
    shutil.copyfile(runs[0] / "history.json", target / "history.json")
    write_whole(target / "scores.json", json.dumps(rows, indent=1) + "\n")
    write_whole(target / "recipe.yaml", yaml.safe_dump(Recipe.from_dict(config["recipe"]).to_dict(), sort_keys=False))
    print(f"{target}: written")


def _bleu(translator: Translator, pairs, beam: int, length_penalty: float) -> float:
    scores, _ = translator.evaluate(pairs, beam_size=beam, length_penalty=length_penalty)
    return scores.bleu


def card(config: dict, rows: list[dict], translator: Translator) -> str:
    """The model card: what it is, what it was trained on and how, how good it is, and what it is not for."""
    parameters = sum(p.numel() for p in translator.model.parameters())
    head = rows[0]
    lines = [
        "# German→English translator of the course “Attention, Proven”",
        "",
        f"An encoder–decoder transformer of {parameters:,} parameters and {len(translator.vocabulary):,} subwords, "
        f"written in `course_kit.nn`, trained from scratch on the training set of Multi30k, task 1. It is here "
        f"to learn from: it translates short captions of photographs, and writes nonsense for anything else (news, "
        f"dialogue, other languages, sentences of more than some 50 words). It repeats the prejudices of captions.",
        "",
        "## Data and licence",
        "",
        "Multi30k (Elliott, Frank, Sima'an and Specia, 2016, doi:10.18653/v1/W16-3210), from its public repository at "
        "a pinned commit. Its sentences describe photographs from Flickr and may be used for research and teaching; "
        "use these weights likewise. Vocabulary and model have seen the training set only; the validation set chose "
        "the epoch and the recipe; each run below was scored on the test set once.",
        "",
        "## Scores",
        "",
        f"Beam {head['beam']}, length penalty {head['length_penalty']}, by `python -m tools.pretrained`. BLEU and chrF "
        f"are sacreBLEU's, cased and detokenised ({head[SPLITS[1]]['bleu_signature']}); perplexity is per subword, end "
        f"of sentence included.",
        "",
        "| seed | epochs | split | BLEU | BLEU, lower case | chrF | perplexity |",
        "|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        for split in SPLITS:
            s = row[split]
            lines.append(
                f"| {row['seed']} | {row['epochs']} | {split} | {s['bleu']:.2f} | {s['bleu_lowercase']:.2f} | "
                f"{s['chrf']:.2f} | {s['perplexity']:.3f} |"
            )
    for epochs in sorted({row["epochs"] for row in rows}):
        tested = [row[SPLITS[1]]["bleu"] for row in rows if row["epochs"] == epochs]
        if len(tested) > 1:
            lines += [
                "",
                f"{SPLITS[1]}, {len(tested)} seeds with {epochs} epochs: mean {statistics.mean(tested):.2f}, from "
                f"{min(tested):.2f} to {max(tested):.2f}.",
            ]
    if len(rows) > 1:
        lines += ["", "The weights are those of the first row."]
    lines += [
        "",
        f"The first run took {head['minutes']:.0f} minutes{_where(config['this_run'])}, in precision "
        f"{config['precision']}.",
        "",
        "## Recipe",
        "",
        "```yaml",
        yaml.safe_dump(config["recipe"], sort_keys=False).rstrip(),
        "```",
        "",
    ]
    return "\n".join(lines)


def _where(run: dict) -> str:
    """On what, as far as the run wrote it down."""
    if run.get("resumed"):
        return " in its last part (it was resumed)"
    if run.get("accelerator", "cpu") != "cpu":
        return f" on {run.get('devices', 1)} × {run['accelerator']}"
    threads = run.get("threads")
    cores = "" if threads is None else " with one thread" if threads == 1 else f" with {threads} threads"
    machine = f"{run['machine']}; " if "machine" in run else ""
    return f" on a CPU{cores} ({machine}{run['cpu_minutes']:.0f} minutes of processor time)"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", nargs="+", type=Path, metavar="RUN")
    parser.add_argument("--target", type=Path, default=PRETRAINED / NAME)
    options = parser.parse_args()
    publish(options.runs, options.target)
