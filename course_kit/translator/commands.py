"""Commands of `course-lib` for the translator: train, translate, evaluate."""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import platform
import sys
import time
from pathlib import Path

__all__ = ["COMMANDS", "add_commands", "count"]

COMMANDS = ("train", "translate", "evaluate")
BUILT_IN = {"vocab_size": 2000, "warmup_steps": 200}  # of the default recipe, for a small corpus
UNKNOWN = 0.3  # share of unknown tokens in a line from which on its translation is worth nothing


def add_commands(commands: argparse._SubParsersAction) -> None:
    """Add the translator's commands to those of `course-lib`."""
    train = commands.add_parser(
        "train",
        help="train a translator with a recipe",
        description="Train with a recipe, and write checkpoints, history and the finished translator to a folder.",
    )
    train.add_argument("--config", type=Path, metavar="YAML", help="the recipe (default: the course's)")
    train.add_argument("--data", default="auto", metavar="CORPUS", help=DATA_HELP)
    train.add_argument("--out", type=_folder, required=True, metavar="DIR", help="checkpoints, history, translator")
    train.add_argument("--resume", action="store_true", help="continue from the last checkpoint in the folder")
    train.add_argument("--seed", type=int, help="instead of the recipe's")
    train.add_argument("--epochs", type=count, help="instead of the recipe's")
    train.add_argument("--accelerator", default="auto", help="auto, cpu, gpu, mps (default: auto)")
    train.add_argument(
        "--devices", type=count, default=1, help="processes, each with its share of a batch (default: 1)"
    )
    train.add_argument("--quiet", action="store_true", help="no progress bar")
    train.set_defaults(run=_train)

    translate = commands.add_parser(
        "translate",
        help="translate lines from standard input",
        description="Translate standard input, one sentence per line, to standard output. An empty line stays empty.",
    )
    _add_model(translate)
    translate.add_argument("--n-best", type=count, default=1, metavar="N", help="the N best, with their scores")
    translate.add_argument(
        "--attention", type=_picture, metavar="FILE", help="cross-attention of the first sentence, as .png or .svg"
    )
    translate.set_defaults(run=_translate)

    evaluate = commands.add_parser(
        "evaluate",
        help="BLEU, chrF and perplexity on a split of the corpus",
        description="Translate a split and compare with its references: sacreBLEU, chrF, perplexity.",
    )
    _add_model(evaluate)
    evaluate.add_argument("--data", default="auto", metavar="CORPUS", help=DATA_HELP)
    evaluate.add_argument("--split", help="default: val; use a test split once, at the end")
    evaluate.add_argument("--json", type=_output, metavar="FILE", help="the scores")
    evaluate.add_argument("--translations", type=_output, metavar="FILE", help="the translations, one per line")
    evaluate.set_defaults(run=_evaluate)


DATA_HELP = "multi30k, built-in, auto (Multi30k if available), or a folder with Multi30k's files (default: auto)"


def _add_model(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--model", metavar="DIR", help="folder of a trained translator (default: the one that comes with the package)"
    )
    parser.add_argument(
        "--beam", type=_beam, default=5, metavar="N", help="hypotheses in the beam; 1 is greedy (default: 5)"
    )
    parser.add_argument(
        "--length-penalty",
        type=_penalty,
        default=1.0,
        metavar="A",
        help="score = log-probability / tokens^A (default: 1)",
    )


# Types of arguments: what is wrong is said before the work, not after it.


def count(text: str) -> int:
    """A whole number of at least 1, as argparse reads it."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"must be a whole number of at least 1, got {text!r}")
    return int(text)


def _beam(text: str) -> int:
    from course_kit.translator.translator import MAX_BEAM

    if count(text) > MAX_BEAM:
        raise argparse.ArgumentTypeError(
            f"must be at most {MAX_BEAM}, got {text}; widths above 5 to 10 hardly improve the result"
        )
    return int(text)


def _penalty(text: str) -> float:
    from course_kit.translator.search_arguments import check_length_penalty

    try:
        check_length_penalty(float(text))
    except ValueError:
        raise argparse.ArgumentTypeError(f"must be a number between -10 and 10, got {text!r}") from None
    return float(text)


def _folder(text: str) -> Path:
    if Path(text).exists() and not Path(text).is_dir():
        raise argparse.ArgumentTypeError(f"must be a folder or a new name, got the file {text!r}")
    return Path(text)


def _output(text: str) -> Path:
    from course_kit._files import check_output

    try:
        check_output(Path(text), make_folder=False)
    except OSError as error:
        raise argparse.ArgumentTypeError(f"must be a file in an existing folder: {error}") from None
    return Path(text)


def _picture(text: str) -> Path:
    path = _output(text)
    if path.suffix.lower() not in (".png", ".svg"):
        raise argparse.ArgumentTypeError(f"must end with .png or .svg, got {text!r}")
    return path


def _train(options: argparse.Namespace) -> int:
    import torch

    from course_kit.data import Vocabulary
    from course_kit.translator import TranslationTask, Translator
    from course_kit.translator.devices import on_cpu
    from course_kit.translator.recipe import Recipe
    from course_kit.translator.trainer import train

    recipe = Recipe.read(options.config) if options.config else Recipe()
    changed = {name: getattr(options, name) for name in ("seed", "epochs") if getattr(options, name) is not None}
    recipe = dataclasses.replace(recipe, **changed)
    corpus = _corpus(options.data)
    cut = {} if options.config or corpus.name == "Multi30k" else BUILT_IN
    recipe = dataclasses.replace(recipe, **cut)
    first = int(os.environ.get("LOCAL_RANK", 0)) == 0  # of several processes one speaks
    say = print if first else (lambda *words: None)
    say(f"{corpus.name}: {corpus.licence}.")
    if cut:
        say(f"The recipe is made for Multi30k; for this corpus it is used with {BUILT_IN}.")
    vocabulary = Vocabulary.learn(corpus.sentences("train"), recipe.vocab_size)
    task = TranslationTask(corpus, vocabulary).by_recipe(recipe)
    for split in ("train", "val"):
        say(f"{split}: {task.figures(split)}")
    started, cpu = time.perf_counter(), time.process_time()
    model, history = train(
        task,
        recipe,
        out=options.out,
        resume=options.resume,
        accelerator=options.accelerator,
        devices=options.devices,
        strategy="ddp" if options.devices > 1 else "auto",
        show_progress=not options.quiet,
    )
    if not first:
        return 0
    translator = Translator(model, vocabulary)
    best = min(history, key=lambda epoch: epoch["val_loss"])
    took = {
        "minutes": round((time.perf_counter() - started) / 60, 1),
        "cpu_minutes": round((time.process_time() - cpu) / 60, 1),
        "accelerator": "cpu" if on_cpu(options.accelerator) else options.accelerator,
        "threads": torch.get_num_threads(),
        "machine": f"{platform.machine()}, {torch.backends.cpu.get_cpu_capability()}, torch {torch.__version__}",
        "devices": options.devices,
        "resumed": options.resume,
    }
    parameters = sum(p.numel() for p in model.parameters())
    target = options.out / "translator"
    about = {"corpus": corpus.name, "recipe": recipe.to_dict(), "best": best, "this_run": took}
    translator.save(target, card=_card(corpus, recipe, parameters, best), about=about)
    say(
        f"{parameters:,} parameters; best epoch {best['epoch']}: validation perplexity {best['val_perplexity']:.3f} "
        f"a token; this run took {took['minutes']:.0f} min ({took['cpu_minutes']:.0f} min of processor time)."
    )
    say(f"{target}: written. Try: course-lib translate --model {target}")
    return 0


def _card(corpus, recipe, parameters: int, best: dict[str, float]) -> str:
    import yaml

    return (
        f"# {corpus.source_language}→{corpus.target_language} translator of the course “Attention, Proven”\n\n"
        f"An encoder–decoder transformer of {parameters:,} parameters for short image captions, trained on "
        f"{corpus.name} alone. It is meant for learning about transformers, not for practical use: on anything but "
        f"captions it writes nonsense.\n\n"
        f"Licence of the data: {corpus.licence}.\n\n"
        f"Best epoch {best['epoch']} of {recipe.epochs}, validation perplexity {best['val_perplexity']:.3f} per "
        f"subword token.\n\n## Recipe\n\n```yaml\n{yaml.safe_dump(recipe.to_dict(), sort_keys=False)}```\n"
    )


def _translate(options: argparse.Namespace) -> int:
    translator = _translator(options)
    if options.n_best > options.beam:
        raise ValueError(f"--n-best must not exceed --beam = {options.beam}, got {options.n_best}")
    lines = _lines()
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(encoding="utf-8")
    for number, line in enumerate(lines, 1):
        share = translator.unknown_share(line)
        if share >= UNKNOWN:
            print(
                f"course-lib: line {number}: {share:.0%} of its tokens are unknown to the vocabulary, which was "
                f"learned from German and English; expect nonsense",
                file=sys.stderr,
            )
    found = translator.hypotheses(
        lines, beam_size=options.beam, num_best=options.n_best, length_penalty=options.length_penalty
    )
    for translations in found:
        for translation in translations:
            print(translation.text if options.n_best == 1 else f"{translation.score:.3f}\t{translation.text}")
    if options.attention:
        _draw_attention(translator, lines, found, options.attention)
    return 0


def _draw_attention(translator, lines: list[str], found, path: Path) -> None:
    from course_kit.viz import attention_map, save_figure

    number = next((i for i, line in enumerate(lines) if line.strip()), None)
    if number is None:
        raise ValueError("--attention needs a sentence, got empty lines only")
    source, written, weights = translator.attention(lines[number], found[number][0].tokens)
    save_figure(attention_map(weights.mean(0), written, source), path)
    print(f"{path}: cross-attention of line {number + 1}, last layer, mean of the heads", file=sys.stderr)


def _evaluate(options: argparse.Namespace) -> int:
    from course_kit._files import write_whole

    translator, corpus = _translator(options), _corpus(options.data)
    split = options.split or "val"
    print(f"{corpus.name}, {split}: {corpus.licence}.")
    scores, translations = translator.evaluate(
        corpus[split], beam_size=options.beam, length_penalty=options.length_penalty
    )
    print(scores)
    if options.json:
        about = {"corpus": corpus.name, "split": split, "beam": options.beam, "length_penalty": options.length_penalty}
        write_whole(options.json, json.dumps({**about, **dataclasses.asdict(scores)}, indent=1) + "\n")
    if options.translations:
        write_whole(options.translations, "".join(f"{line}\n" for line in translations))
    return 0


def _translator(options: argparse.Namespace):
    from course_kit.translator import Translator, pretrained

    if options.model is None:
        return pretrained()
    folder, inside = Path(options.model), Path(options.model, "translator")
    if not options.model or not (folder / "config.json").is_file():  # an empty name would be the current folder
        hint = "`course-lib train --out DIR` writes DIR/translator"
        if (inside / "config.json").is_file():
            hint = f"take {inside}"
        raise FileNotFoundError(f"--model must be the folder of a translator, got {options.model!r}; {hint}")
    return Translator.load(folder)


def _corpus(name: str):
    from course_kit.data import load_corpus
    from course_kit.data.multi30k import FOLDER_VARIABLE

    if name not in ("auto", "multi30k", "built-in"):
        if not Path(name).is_dir():
            raise NotADirectoryError(f"--data must be multi30k, built-in, auto or a folder, got {name!r}")
        os.environ[FOLDER_VARIABLE] = name
        name = "multi30k"
    return load_corpus(name)


def _lines() -> list[str]:
    """Standard input as UTF-8, whatever the machine takes for its encoding."""
    if sys.stdin is None or sys.stdin.closed:
        raise ValueError("expected lines on standard input, but it is closed; pipe a file into the command")
    if not hasattr(sys.stdin, "buffer"):
        return sys.stdin.read().splitlines()
    lines = []
    for number, line in enumerate(sys.stdin.buffer.read().removesuffix(b"\n").split(b"\n"), 1):
        try:
            lines.append(line.decode("utf-8").rstrip("\r"))
        except UnicodeDecodeError as error:
            raise ValueError(f"line {number} of standard input must be UTF-8, got {error}") from None
    return lines
